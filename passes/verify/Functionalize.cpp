//===- Functionalize.cpp - what holds of a graph of values ----------------===//
#include "passes/verify/PhaseVerifier.h"
#include "passes/verify/PhaseVerifiers.h"

using namespace mlir;
using namespace tandem;

LogicalResult tandem::verifyFunctionalize(ModuleOp module) {
  PhaseVerifier verifier(module, "functionalize");
  verifier.functions({"graph"}, {});
  if (verifier.hasFailed())
    return failure();
  verifier.valuesOnly(verifier.function("graph"));
  verifier.unmarked(verifier.function("graph"));
  return verifier.result();
}
