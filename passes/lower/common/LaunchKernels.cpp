//===- LaunchKernels.cpp - programs become lists of launches --------------===//
#include "passes/Passes.h"
#include "passes/lower/common/Kernels.h"

#include "ir/KernelFunctions.h"

namespace tandem {
#define GEN_PASS_DEF_LAUNCHKERNELS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

namespace {
struct LaunchKernels : tandem::impl::LaunchKernelsBase<LaunchKernels> {
  void runOnOperation() final;
};
} // namespace

/// Puts a launch of `function` in the kernel's place, as `facts` of it say.
static void replace(KernelOp kernel, SymbolRefAttr symbol, Operation *function,
                    KernelFactsAttr facts) {
  OpBuilder b(kernel);
  auto launch = LaunchOp::create(
      b, kernel.getLoc(), kernel.getResultTypes(), symbol, kernel.getInputs(),
      kernel.getBuffersAttr(), b.getI64IntegerAttr(facts.getItems()),
      b.getI64IntegerAttr(grainOf(function)),
      b.getI64IntegerAttr(kernel.getStream()), kernel.getNeedsAttr(),
      kernel.getChoicesAttr(), facts.getBlocks(), kernel.getLibraryAttr());
  kernel.replaceAllUsesWith(launch.getResults());
  kernel.erase();
}

void LaunchKernels::runOnOperation() {
  ModuleOp module = getOperation();
  SymbolTableCollection symbols;
  SmallVector<Operation *> functions;
  bool isBroken = false;
  for (KernelOp kernel : programKernels(module)) {
    SymbolRefAttr symbol = kernelFunction(kernel);
    Operation *function =
        symbol ? symbols.lookupSymbolIn(module, symbol) : nullptr;
    KernelFactsAttr facts =
        function ? KernelFactsAttr::of(function) : KernelFactsAttr();
    if (!facts || !kernel.getBuffersAttr()) {
      kernel.emitOpError() << "expected "
                           << (facts ? "'buffers': plan comes before lower"
                                     : "a function of it that says '" +
                                           kKernelAttr.str() + "'");
      isBroken = true;
      continue;
    }
    // Names may have been edited.
    ArrayAttr ops = describeKernel(kernel, {}).getOps();
    if (facts.getOps() != ops) {
      kernel.emitOpError() << "expected '" << kFunctionAttr
                           << "' to name a function of " << ops << ", but "
                           << symbol << " is one of " << facts.getOps();
      isBroken = true;
      continue;
    }
    replace(kernel, symbol, function, facts);
    functions.push_back(function);
    ++launched;
  }
  for (Operation *function : functions)
    function->removeAttr(kGrainAttr);
  if (isBroken)
    signalPassFailure();
}
