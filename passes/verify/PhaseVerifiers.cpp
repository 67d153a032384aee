//===- PhaseVerifiers.cpp - the verifier of each phase --------------------===//
#include "passes/verify/PhaseVerifiers.h"
#include "passes/common/Phase.h"

using namespace mlir;
using namespace tandem;

LogicalResult tandem::verifyAfter(ModuleOp module, StringRef phase) {
  constexpr std::pair<StringLiteral, LogicalResult (*)(ModuleOp)> verifiers[] =
      {{"capture", verifyCapture},     {"functionalize", verifyFunctionalize},
       {"joint", verifyJoint},         {"optimize", verifyOptimize},
       {"partition", verifyPartition}, {"plan", verifyPlan},
       {"lower", verifyLower}};
  for (auto [name, verify] : verifiers)
    if (name == phase)
      return verify(module);
  return module.emitError() << "expected a phase but got '" << phase << "'";
}

LogicalResult tandem::leavePhase(ModuleOp module, StringRef phase) {
  setPhase(module, phase);
  return verifyAfter(module, phase);
}
