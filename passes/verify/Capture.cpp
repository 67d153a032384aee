//===- Capture.cpp - what holds of a graph that comes in ------------------===//
#include "passes/verify/PhaseVerifier.h"
#include "passes/verify/PhaseVerifiers.h"

using namespace mlir;
using namespace tandem;

/// True if `location` leads to a place or a name.
static bool isKnown(Location location) {
  bool found = false;
  location->walk([&](Location part) {
    found |= isa<FileLineColRange, NameLoc>(part);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

LogicalResult tandem::verifyCapture(ModuleOp module) {
  PhaseVerifier verifier(module, "capture");
  verifier.functions({"graph"}, {});
  if (verifier.hasFailed())
    return failure();
  func::FuncOp graph = verifier.function("graph");
  verifier.unmarked(graph);
  graph.walk([&](Operation *op) {
    if (op == graph)
      return;
    if (!isa<func::ReturnOp>(op) && !isa<TandemDialect>(op->getDialect()))
      verifier.error(op) << "'" << op->getName()
                         << "', an op of another dialect";
    else if (!op->hasTrait<OpTrait::IsTerminator>() && !isKnown(op->getLoc()))
      verifier.error(op) << "'" << op->getName()
                         << "' without a place in the model";
  });
  return verifier.result();
}
