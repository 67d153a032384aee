//===- Partition.cpp - what holds of programs -----------------------------===//
#include "passes/verify/Agreement.h"
#include "passes/verify/PhaseVerifier.h"
#include "passes/verify/PhaseVerifiers.h"

#include "ir/PartitionMarks.h"
#include "ir/Signature.h"
#include "ir/Tags.h"

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

/// @prepare takes params and states and gives what @evaluate alone takes.
static void verifyPrepared(PhaseVerifier &verifier) {
  auto prepare = verifier.function("prepare");
  for (auto func : verifier.module.getOps<func::FuncOp>())
    if (func != prepare && (func.getName() != "evaluate" || !prepare))
      verifier.noneOfKind(func, RoleKind::Prepared);
  if (!prepare)
    return;
  auto evaluate = verifier.function("evaluate");
  for (unsigned i = 0, n = prepare.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(prepare, i);
    if (!role || (role.getKind() != RoleKind::Param &&
                  role.getKind() != RoleKind::State))
      verifier.error(prepare)
          << "argument #" << i << " of 'prepare' that is no param or state";
    else if (auto value = evaluate ? findValue(evaluate, role.getName())
                                   : std::optional<unsigned>())
      verifier.sameArgument(prepare, i, evaluate.getArgumentTypes()[*value],
                            "evaluate");
  }
  for (unsigned i = 0, n = prepare.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(prepare, i);
        !role || role.getKind() != RoleKind::Prepared)
      verifier.error(prepare)
          << "result #" << i << " of 'prepare' that is not prepared";
  verifyHanded(verifier, RoleKind::Prepared, "prepare", prepare, {evaluate});
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
