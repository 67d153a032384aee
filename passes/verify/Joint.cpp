//===- Joint.cpp - what holds of joints -----------------------------------===//
//
// After joint, after optimize, and for the passes of partition until a joint is
// divided.
//
//===----------------------------------------------------------------------===//
#include "passes/common/Phase.h"
#include "passes/verify/Agreement.h"
#include "passes/verify/PhaseVerifier.h"
#include "passes/verify/PhaseVerifiers.h"

#include "ir/Sharding.h"
#include "ir/Signature.h"

using namespace mlir;
using namespace tandem;

static void verifyTagged(PhaseVerifier &verifier, func::FuncOp func) {
  for (Operation &op : func.getOps())
    if (!isa<func::ReturnOp>(op) && passOf(&op).empty())
      verifier.error(&op) << "'" << op.getName() << "' without '" << kPassAttr
                          << "'";
}

/// What a cotangent of `func` belongs to: an output, or the update of an input.
static std::optional<unsigned> findTarget(func::FuncOp func, StringRef name) {
  if (name.consume_front("update of "))
    return findResult(func, RoleKind::Update, name);
  return findResult(func, RoleKind::Output, name);
}

/// The type of the gradient of argument `index`, as a whole: ranks may have
/// other pieces of it than of the argument.
static Type gradientType(func::FuncOp func, unsigned index) {
  RoleAttr role = roleOfArgument(func, index);
  auto type = cast<RankedTensorType>(
      wholeType(func, role, func.getArgumentTypes()[index]));
  auto wanted = role.getProperty<TypeAttr>(RoleAttr::kGradType);
  return wanted ? type.clone(wanted.getValue()) : type;
}

/// Cotangents belong to outputs and updates, and gradients to arguments that
/// require one, each of the same type; what is forward depends on nothing
/// backward.
static void verifyJointFunction(PhaseVerifier &verifier, func::FuncOp func) {
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(func, i);
    if (role.getKind() != RoleKind::Cotangent)
      continue;
    auto target = findTarget(func, role.getName());
    if (!target || func.getResultTypes()[*target] != func.getArgumentTypes()[i])
      verifier.error(func) << "'" << role.str()
                           << "' without an output of its type";
  }
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(func, i);
    if (role.getKind() != RoleKind::Grad)
      continue;
    auto value = findValue(func, role.getName());
    Type type = wholeType(func, role, func.getResultTypes()[i]);
    if (!value || gradientType(func, *value) != type ||
        !roleOfArgument(func, *value).has(RoleAttr::kRequiresGrad))
      verifier.error(func)
          << "'" << role.str()
          << "' without an argument of its type that requires grad";
  }
  verifyTagged(verifier, func);
  if (verifier.hasFailed())
    return;
  auto backward = [&](Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return isBackward(roleOfArgument(func, argument.getArgNumber()));
    return passOf(value.getDefiningOp()) == "backward";
  };
  for (Operation &op : func.getOps())
    if (passOf(&op) == "forward" && llvm::any_of(op.getOperands(), backward))
      verifier.error(&op) << "'" << op.getName()
                          << "', a forward op that depends on the backward";
  Operation *terminator = func.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
    if (RoleAttr role = roleOfResult(func, i);
        !isBackward(role) && backward(value))
      verifier.error(func) << "'" << role.str()
                           << "' depending on the backward";
}

/// The second joint takes what the first one takes.
static void verifyGradJoint(PhaseVerifier &verifier, func::FuncOp func) {
  auto joint = verifier.function("joint");
  if (!joint) {
    verifier.error(func) << "'grad_joint' without a 'joint'";
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
      verifier.sameArgument(func, i, joint.getArgumentTypes()[*same], "joint");
    else
      verifier.error(func) << "'" << role.str()
                           << "' in 'grad_joint', which is nothing of 'joint'";
  }
}

static LogicalResult verify(ModuleOp module, StringRef phase) {
  PhaseVerifier verifier(module, phase);
  if (failed(verifyMutatedInBackward(module)))
    return failure();
  verifier.functions({"evaluate"}, {"joint", "grad_joint"});
  if (verifier.hasFailed())
    return failure();
  for (auto func : module.getOps<func::FuncOp>()) {
    verifier.valuesOnly(func);
    if (phase == "joint")
      verifier.unmarked(func);
    if (func.getName() != "evaluate")
      verifyJointFunction(verifier, func);
    if (func.getName() == "grad_joint")
      verifyGradJoint(verifier, func);
  }
  if (verifier.hasFailed())
    return failure();
  return checkAgreement(module, phase);
}

LogicalResult tandem::verifyJoint(ModuleOp module) {
  return verify(module, "joint");
}

LogicalResult tandem::verifyOptimize(ModuleOp module) {
  return verify(module, "optimize");
}

LogicalResult tandem::checkJoints(ModuleOp module) {
  PhaseVerifier verifier(module, "optimize");
  for (StringRef name : {"joint", "grad_joint"})
    if (auto func = verifier.function(name); func && verifier.hasBody(func)) {
      verifier.valuesOnly(func);
      verifyJointFunction(verifier, func);
    }
  if (auto func = verifier.function("grad_joint");
      func && !verifier.hasFailed())
    verifyGradJoint(verifier, func);
  return verifier.result();
}
