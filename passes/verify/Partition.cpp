//===- Partition.cpp - what holds of programs -----------------------------===//
#include "passes/verify/Agreement.h"
#include "passes/verify/PhaseVerifier.h"
#include "passes/verify/PhaseVerifiers.h"

#include "ir/PartitionMarks.h"
#include "ir/Signature.h"
#include "ir/Tags.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tandem;

static constexpr StringRef programNames[] = {
    "evaluate", "prepare",      "forward",      "backward",
    "update",   "step",         "accumulate",   "accumulation",
    "norm",     "grad_forward", "grad_backward"};

const ArrayRef<StringRef> tandem::kProgramNames = programNames;

static void verifyUntagged(PhaseVerifier &verifier, func::FuncOp func) {
  for (Operation &op : func.getOps())
    for (NamedAttribute attribute : op.getDiscardableAttrs())
      if (StringRef name = attribute.getName();
          (name == kPassAttr && func.getName() != "step" &&
           func.getName() != "accumulate") ||
          isTag(name) || isPartitionMark(name))
        verifier.error(&op) << "'" << name << "' on '" << op.getName()
                            << "' in '" << func.getName() << "'";
}

/// What `giver` hands out as `kind` is what `takers` take, by name and type,
/// and each value is taken.
static void verifyHanded(PhaseVerifier &verifier, RoleKind kind, StringRef verb,
                         func::FuncOp giver, ArrayRef<func::FuncOp> takers) {
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
        verifier.error(taker)
            << "'" << role.str() << "' in '" << taker.getName() << "' that '"
            << giver.getName() << "' does not " << verb;
      else
        verifier.sameArgument(taker, i, it->second, giver.getName());
    }
  if (values.size() != taken.size())
    verifier.error(giver) << values.size() << " " << stringifyRoleKind(kind)
                          << " values in '" << giver.getName() << "' of which "
                          << taken.size() << " are taken";
}

static void verifySaved(PhaseVerifier &verifier) {
  func::FuncOp gradForward = verifier.function("grad_forward");
  verifyHanded(verifier, RoleKind::Saved, "save", verifier.function("forward"),
               {verifier.function("backward"), gradForward});
  if (gradForward)
    verifyHanded(verifier, RoleKind::Saved, "save", gradForward,
                 {verifier.function("grad_backward")});
}

/// The params that result `i` of @prepare is computed from.
static SetVector<StringRef> sourcesOf(func::FuncOp prepare, unsigned i) {
  SetVector<StringRef> names;
  SetVector<Value> work;
  work.insert(prepare.getBody().front().getTerminator()->getOperand(i));
  for (size_t at = 0; at < work.size(); ++at) {
    if (Operation *op = work[at].getDefiningOp())
      work.insert(op->operand_begin(), op->operand_end());
    else if (auto argument = dyn_cast<BlockArgument>(work[at]);
             argument.getOwner() == &prepare.getBody().front())
      if (RoleAttr role = roleOfArgument(prepare, argument.getArgNumber()))
        names.insert(role.getName().getValue());
  }
  return names;
}

/// A program that gives copies gives those of all params that it updates: the
/// runtime takes what it then has for copies of the new values.
static void verifyRenewed(PhaseVerifier &verifier, func::FuncOp prepare,
                          func::FuncOp program) {
  RoleIndex index(program);
  auto updates = [&](StringRef name, RoleKind kind) {
    auto result = index.result(RoleKind::Update, name);
    auto argument = index.argument(kind, name);
    Operation *end = program.getBody().front().getTerminator();
    return result &&
           !(argument && *result < end->getNumOperands() &&
             end->getOperand(*result) == program.getArgument(*argument));
  };
  bool givesAny = false;
  for (unsigned i = 0, n = prepare.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(prepare, i))
      givesAny |= index.result(RoleKind::Update, role.getName()).has_value();
  if (!givesAny ||
      prepare.getBody().front().getTerminator()->getNumOperands() !=
          prepare.getNumResults())
    return;
  for (unsigned i = 0, n = prepare.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(prepare, i);
    if (!role || index.result(RoleKind::Update, role.getName()))
      continue;
    for (StringRef name : sourcesOf(prepare, i))
      if (updates(name, RoleKind::Param))
        verifier.error(program)
            << "no 'update of " << role.getName().getValue() << "' in '"
            << program.getName() << "', although it updates '" << name
            << "', of which 'prepare' makes that";
  }
}

/// @prepare takes params and states, and gives what @evaluate, or a step,
/// takes.
static void verifyPrepared(PhaseVerifier &verifier) {
  auto prepare = verifier.function("prepare");
  SmallVector<func::FuncOp> takers;
  for (auto func : verifier.module.getOps<func::FuncOp>()) {
    if (func == prepare)
      continue;
    bool isStep = func.getName() == "step" || func.getName() == "accumulate";
    if (!prepare || (!isStep && func.getName() != "evaluate"))
      verifier.noneOfKind(func, RoleKind::Prepared);
    else
      takers.push_back(func);
    // Kernels have parts for several params later.
    if (prepare && isStep && verifier.phase == "partition")
      verifyRenewed(verifier, prepare, func);
  }
  if (!prepare)
    return;
  for (unsigned i = 0, n = prepare.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(prepare, i);
    if (!role || (role.getKind() != RoleKind::Param &&
                  role.getKind() != RoleKind::State)) {
      verifier.error(prepare)
          << "argument #" << i << " of 'prepare' that is no param or state";
      continue;
    }
    for (func::FuncOp taker : takers)
      if (auto value = findValue(taker, role.getName()))
        verifier.sameArgument(prepare, i, taker.getArgumentTypes()[*value],
                              taker.getName());
  }
  for (unsigned i = 0, n = prepare.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(prepare, i);
        !role || role.getKind() != RoleKind::Prepared)
      verifier.error(prepare)
          << "result #" << i << " of 'prepare' that is not prepared";
  verifyHanded(verifier, RoleKind::Prepared, "prepare", prepare, takers);
}

void tandem::verifyHandedValues(PhaseVerifier &verifier) {
  verifyPrepared(verifier);
  if (verifier.function("forward") && verifier.function("backward"))
    verifySaved(verifier);
}

LogicalResult tandem::verifyPrograms(ModuleOp module, StringRef phase) {
  PhaseVerifier verifier(module, phase);
  verifier.functions({}, kProgramNames);
  if (verifier.hasFailed() || failed(verifyMutatedInBackward(module)))
    return failure();
  verifyHandedValues(verifier);
  bool agree = succeeded(checkAgreement(module, phase));
  return success(agree && !verifier.hasFailed());
}

LogicalResult tandem::verifyPartition(ModuleOp module) {
  PhaseVerifier verifier(module, "partition");
  if (failed(verifyMutatedInBackward(module)))
    return failure();
  verifier.functions({"evaluate"}, kProgramNames);
  if (verifier.hasFailed())
    return failure();
  for (auto func : module.getOps<func::FuncOp>()) {
    verifier.valuesOnly(func);
    verifyUntagged(verifier, func);
  }
  verifyPrepared(verifier);
  if (auto forward = verifier.function("forward")) {
    // The cotangents and gradients are the backwards' alone.
    verifier.noneOfKind(forward, RoleKind::Cotangent);
    verifier.noneOfKind(forward, RoleKind::Grad);
    verifySaved(verifier);
  }
  if (verifier.hasFailed())
    return failure();
  return checkAgreement(module, "partition");
}

LogicalResult tandem::checkHandedValues(ModuleOp module) {
  PhaseVerifier verifier(module, "partition");
  verifyHandedValues(verifier);
  return verifier.result();
}

LogicalResult tandem::checkSignatures(ModuleOp module) {
  PhaseVerifier verifier(module, "partition");
  for (auto func : module.getOps<func::FuncOp>())
    verifier.hasBody(func);
  return verifier.result();
}
