//===- Doors.cpp - what holds between two phases --------------------------===//
#include "passes/Doors.h"
#include "passes/Agreement.h"

#include "ir/Nearest.h"
#include "ir/Ops.h"
#include "ir/Signature.h"
#include "ir/Tags.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tandem;

LogicalResult tandem::expectPhase(ModuleOp module, StringRef phase) {
  auto stamp = module->getAttrOfType<StringAttr>(kPhaseAttr);
  if (stamp && stamp.getValue() == phase)
    return success();
  InFlightDiagnostic error = module.emitError()
                             << "expected phase '" << phase << "' but got ";
  if (stamp)
    error << "'" << stamp.getValue() << "'";
  else
    error << "none";
  return error;
}

void tandem::setPhase(ModuleOp module, StringRef phase) {
  module->setAttr(kPhaseAttr, StringAttr::get(module.getContext(), phase));
}

StringRef tandem::passOf(Operation *op) {
  auto tag = op->getAttrOfType<StringAttr>(kPassAttr);
  return tag ? tag.getValue() : "";
}

bool tandem::isBackward(RoleAttr role) {
  return role.getKind() == RoleKind::Cotangent ||
         role.getKind() == RoleKind::Grad || role.has("pass");
}

LogicalResult tandem::leavePhase(ModuleOp module, StringRef phase) {
  setPhase(module, phase);
  return checkDoor(module, phase);
}

namespace {

/// One check of a door. Every error names the phase.
class Door {
public:
  Door(ModuleOp module, StringRef phase) : module(module), phase(phase) {}

  InFlightDiagnostic error(Operation *op) {
    failed = true;
    return op->emitError() << "phase '" << phase << "' left ";
  }
  LogicalResult result() const { return failure(failed); }

  /// The functions are `required`, and perhaps `optional`; all have roles.
  void functions(ArrayRef<StringRef> required, ArrayRef<StringRef> optional);
  /// No op has an effect, no value is a ref, every op belongs to the dialect.
  void valuesOnly(func::FuncOp func);
  void tagged(func::FuncOp func);
  void untagged(func::FuncOp func);
  void joint(func::FuncOp func);
  void gradJoint(func::FuncOp func);
  void programs();
  void saved();
  void prepared();
  void handed(RoleKind kind, StringRef verb, func::FuncOp giver,
              ArrayRef<func::FuncOp> takers);
  void noneOfKind(func::FuncOp func, RoleKind kind);
  void sameArgument(func::FuncOp func, unsigned index, Type expected,
                    StringRef other);

  ModuleOp module;
  StringRef phase;
  bool failed = false;
};

} // namespace

void Door::functions(ArrayRef<StringRef> required,
                     ArrayRef<StringRef> optional) {
  for (StringRef name : required)
    if (!module.lookupSymbol<func::FuncOp>(name))
      error(module) << "no function '" << name << "'";
  SmallVector<StringRef> known(required);
  llvm::append_range(known, optional);
  for (auto func : module.getOps<func::FuncOp>()) {
    StringRef name = func.getName();
    if (!llvm::is_contained(known, name))
      error(func) << "an unexpected function '" << name << "'"
                  << didYouMean(name, known);
    if (func.isExternal() || !func.getBody().hasOneBlock())
      error(func) << "function '" << name << "' without a body of one block";
    else
      failed |= mlir::failed(verifySignature(func));
  }
}

void Door::valuesOnly(func::FuncOp func) {
  auto isRef = [](Type type) { return isa<RefType>(type); };
  if (llvm::any_of(func.getArgumentTypes(), isRef) ||
      llvm::any_of(func.getResultTypes(), isRef))
    error(func) << "a ref in the signature of '" << func.getName() << "'";
  for (Operation &op : func.getOps()) {
    if (isa<func::ReturnOp>(op))
      continue;
    if (!isa<TandemDialect>(op.getDialect()))
      error(&op) << "'" << op.getName() << "', an op of another dialect";
    else if (!isMemoryEffectFree(&op))
      error(&op) << "'" << op.getName() << "', an op with a memory effect";
    else if (llvm::any_of(op.getResultTypes(), isRef))
      error(&op) << "'" << op.getName() << "', an op that makes a ref";
  }
}

void Door::tagged(func::FuncOp func) {
  for (Operation &op : func.getOps())
    if (!isa<func::ReturnOp>(op) && passOf(&op).empty())
      error(&op) << "'" << op.getName() << "' without '" << kPassAttr << "'";
}

void Door::untagged(func::FuncOp func) {
  for (Operation &op : func.getOps())
    for (NamedAttribute attribute : op.getDiscardableAttrs())
      if (StringRef name = attribute.getName();
          (name == kPassAttr && func.getName() != "step") || isTag(name))
        error(&op) << "'" << name << "' on '" << op.getName() << "' in '"
                   << func.getName() << "'";
}

void Door::noneOfKind(func::FuncOp func, RoleKind kind) {
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i)
    if (RoleAttr role = roleOfArgument(func, i); role && role.getKind() == kind)
      error(func) << "'" << role.str() << "' as an argument of '"
                  << func.getName() << "'";
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(func, i); role && role.getKind() == kind)
      error(func) << "'" << role.str() << "' as a result of '" << func.getName()
                  << "'";
}

/// What a cotangent of `func` belongs to: an output, or the update of an input.
static std::optional<unsigned> findTarget(func::FuncOp func, StringRef name) {
  if (name.consume_front("update of "))
    return findResult(func, RoleKind::Update, name);
  return findResult(func, RoleKind::Output, name);
}

/// The type of the gradient of argument `index`.
static Type gradientType(func::FuncOp func, unsigned index) {
  auto type = cast<RankedTensorType>(func.getArgumentTypes()[index]);
  auto wanted =
      roleOfArgument(func, index).getProperties().getAs<TypeAttr>("grad_type");
  return wanted ? type.clone(wanted.getValue()) : type;
}

/// Cotangents belong to outputs and updates, and gradients to arguments that
/// require one, each of the same type; what is forward depends on nothing
/// backward.
void Door::joint(func::FuncOp func) {
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(func, i);
    if (role.getKind() != RoleKind::Cotangent)
      continue;
    auto target = findTarget(func, role.getName());
    if (!target || func.getResultTypes()[*target] != func.getArgumentTypes()[i])
      error(func) << "'" << role.str() << "' without an output of its type";
  }
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(func, i);
    if (role.getKind() != RoleKind::Grad)
      continue;
    auto value = findValue(func, role.getName());
    if (!value || gradientType(func, *value) != func.getResultTypes()[i] ||
        !roleOfArgument(func, *value).has("requires_grad"))
      error(func) << "'" << role.str()
                  << "' without an argument of its type that requires grad";
  }
  tagged(func);
  if (failed)
    return;
  auto backward = [&](Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return isBackward(roleOfArgument(func, argument.getArgNumber()));
    return passOf(value.getDefiningOp()) == "backward";
  };
  for (Operation &op : func.getOps())
    if (passOf(&op) == "forward" && llvm::any_of(op.getOperands(), backward))
      error(&op) << "'" << op.getName()
                 << "', a forward op that depends on the backward";
  Operation *terminator = func.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
    if (RoleAttr role = roleOfResult(func, i);
        !isBackward(role) && backward(value))
      error(func) << "'" << role.str() << "' depending on the backward";
}

/// The second joint takes what the first one takes.
void Door::gradJoint(func::FuncOp func) {
  auto joint = module.lookupSymbol<func::FuncOp>("joint");
  if (!joint) {
    error(func) << "'grad_joint' without a 'joint'";
    return;
  }
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(func, i);
    StringRef name = role.getName();
    if (isBackward(role))
      continue;
    auto same = name.consume_front("cotangent of ")
                    ? findArgument(joint, RoleKind::Cotangent, name)
                    : (name.consume_front("backward of "),
                       findArgument(joint, role.getKind(), name));
    if (same)
      sameArgument(func, i, joint.getArgumentTypes()[*same], "joint");
    else
      error(func) << "'" << role.str()
                  << "' in 'grad_joint', which is nothing of 'joint'";
  }
}

void Door::sameArgument(func::FuncOp func, unsigned index, Type expected,
                        StringRef other) {
  Type type = func.getArgumentTypes()[index];
  if (type != expected)
    error(func) << "'" << roleOfArgument(func, index).str() << "' of type "
                << type << " in '" << func.getName() << "', but of type "
                << expected << " in '" << other << "'";
}

/// What `giver` hands out as `kind` is what `takers` take, by name and type,
/// and each value is taken.
void Door::handed(RoleKind kind, StringRef verb, func::FuncOp giver,
                  ArrayRef<func::FuncOp> takers) {
  llvm::StringMap<Type> values;
  for (unsigned i = 0, n = giver.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(giver, i); role && role.getKind() == kind)
      values[role.getName()] = giver.getResultTypes()[i];
  llvm::StringSet<> taken;
  for (func::FuncOp taker : takers)
    for (unsigned i = 0, n = taker ? taker.getNumArguments() : 0; i < n; ++i) {
      RoleAttr role = roleOfArgument(taker, i);
      if (!role || role.getKind() != kind)
        continue;
      taken.insert(role.getName());
      auto it = values.find(role.getName());
      if (it == values.end())
        error(taker) << "'" << role.str() << "' in '" << taker.getName()
                     << "' that '" << giver.getName() << "' does not " << verb;
      else
        sameArgument(taker, i, it->second, giver.getName());
    }
  if (values.size() != taken.size())
    error(giver) << values.size() << " " << stringifyRoleKind(kind)
                 << " values in '" << giver.getName() << "' of which "
                 << taken.size() << " are taken";
}

void Door::saved() {
  auto lookup = [&](StringRef name) {
    return module.lookupSymbol<func::FuncOp>(name);
  };
  func::FuncOp gradForward = lookup("grad_forward");
  handed(RoleKind::Saved, "save", lookup("forward"),
         {lookup("backward"), gradForward});
  if (gradForward)
    handed(RoleKind::Saved, "save", gradForward, {lookup("grad_backward")});
}

/// @prepare takes params and states and gives what @evaluate alone takes.
void Door::prepared() {
  auto prepare = module.lookupSymbol<func::FuncOp>("prepare");
  for (auto func : module.getOps<func::FuncOp>())
    if (func != prepare && (func.getName() != "evaluate" || !prepare))
      noneOfKind(func, RoleKind::Prepared);
  if (!prepare)
    return;
  auto evaluate = module.lookupSymbol<func::FuncOp>("evaluate");
  for (unsigned i = 0, n = prepare.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(prepare, i);
    if (!role || (role.getKind() != RoleKind::Param &&
                  role.getKind() != RoleKind::State))
      error(prepare) << "argument #" << i
                     << " of 'prepare' that is no param or state";
    else if (auto value = evaluate ? findValue(evaluate, role.getName())
                                   : std::optional<unsigned>())
      sameArgument(prepare, i, evaluate.getArgumentTypes()[*value], "evaluate");
  }
  for (unsigned i = 0, n = prepare.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(prepare, i);
        !role || role.getKind() != RoleKind::Prepared)
      error(prepare) << "result #" << i << " of 'prepare' that is not prepared";
  handed(RoleKind::Prepared, "prepare", prepare, {evaluate});
}

/// The cotangents and gradients are the backwards' alone.
void Door::programs() {
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  noneOfKind(forward, RoleKind::Cotangent);
  noneOfKind(forward, RoleKind::Grad);
  for (auto func : module.getOps<func::FuncOp>())
    untagged(func);
  saved();
}

/// From partition on.
static constexpr StringRef kPrograms[] = {
    "evaluate", "prepare", "forward",      "backward",
    "update",   "step",    "grad_forward", "grad_backward"};

LogicalResult tandem::checkHandedValues(ModuleOp module) {
  Door door(module, "partition");
  door.prepared();
  if (module.lookupSymbol("forward") && module.lookupSymbol("backward"))
    door.saved();
  return door.result();
}

LogicalResult tandem::checkDoor(ModuleOp module, StringRef phase) {
  Door door(module, phase);
  bool isJoint = phase == "joint" || phase == "optimize";
  if (phase != "functionalize" && failed(verifyMutatedInBackward(module)))
    return failure();
  if (phase == "functionalize")
    door.functions({"graph"}, {});
  else if (isJoint)
    door.functions({"evaluate"}, {"joint", "grad_joint"});
  else if (phase == "partition")
    door.functions({"evaluate"}, kPrograms);
  else
    return success();
  if (door.failed)
    return failure();
  for (auto func : module.getOps<func::FuncOp>()) {
    door.valuesOnly(func);
    if (isJoint && func.getName() != "evaluate")
      door.joint(func);
    if (isJoint && func.getName() == "grad_joint")
      door.gradJoint(func);
  }
  if (phase == "partition")
    door.prepared();
  if (phase == "partition" && module.lookupSymbol("forward"))
    door.programs();
  if (door.failed || phase == "functionalize")
    return door.result();
  return checkAgreement(module, phase);
}

LogicalResult tandem::checkPrograms(ModuleOp module, StringRef phase) {
  Door door(module, phase);
  door.functions({}, kPrograms);
  if (door.failed || failed(verifyMutatedInBackward(module)))
    return failure();
  door.prepared();
  if (module.lookupSymbol("forward") && module.lookupSymbol("backward"))
    door.saved();
  return success(succeeded(checkAgreement(module, phase)) && !door.failed);
}
