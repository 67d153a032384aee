//===- FunctionalizeRefs.cpp - storage becomes values ---------------------===//
#include "passes/Passes.h"
#include "passes/functionalize/GraphFunctionalizer.h"

#include "ir/Signature.h"

namespace tandem {
#define GEN_PASS_DEF_FUNCTIONALIZEREFS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

LogicalResult GraphFunctionalizer::run() {
  if (failed(replaceArguments()) || failed(functionalizer.run()))
    return failure();
  // Everything that is wrong at the end is reported at once.
  bool ok = succeeded(checkAliases());
  ok &= succeeded(describeHandles());
  ok &= succeeded(addOutputs());
  ok &= succeeded(checkPrivateStates());
  if (!ok)
    return failure();
  addUpdates();
  finish();
  return success();
}

namespace {

struct FunctionalizeRefs
    : tandem::impl::FunctionalizeRefsBase<FunctionalizeRefs> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto graph = module.lookupSymbol<func::FuncOp>("graph");
    if (!graph || graph.isExternal() || !graph.getBody().hasOneBlock()) {
      module.emitError() << "expected a function 'graph' with a body of one "
                            "block";
      return signalPassFailure();
    }
    if (failed(verifySignature(graph)) ||
        failed(GraphFunctionalizer(graph).run()))
      signalPassFailure();
  }
};

} // namespace
