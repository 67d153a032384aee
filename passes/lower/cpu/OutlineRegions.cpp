//===- OutlineRegions.cpp - regions of branches and loops as functions ----===//
#include "passes/Passes.h"
#include "passes/lower/common/CodeDialects.h"
#include "passes/lower/common/Kernels.h"
#include "passes/lower/cpu/FlowKernel.h"

#include "ir/KernelFunctions.h"

#include "llvm/ADT/StringMap.h"

namespace tandem {
#define GEN_PASS_DEF_OUTLINEREGIONS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

namespace {

struct OutlineRegions : tandem::impl::OutlineRegionsBase<OutlineRegions> {
  void runOnOperation() final {
    SymbolTable symbols(getOperation());
    DistinctKernels known;
    SmallVector<ArrayAttr> made; // of each distinct kernel
    SmallVector<KernelOp> kernels;
    auto addKernels = [&](Operation *of) {
      of->walk([&](KernelOp kernel) {
        if (lower::cpu::flowOf(kernel))
          kernels.push_back(kernel);
      });
    };
    addKernels(getOperation());
    // Those that a region has come behind.
    for (size_t next = 0; next < kernels.size(); ++next) {
      KernelOp kernel = kernels[next];
      auto [number, isNew] = known.insert(kernel);
      if (isNew) {
        FailureOr<SmallVector<func::FuncOp>> regions = outline(kernel, symbols);
        if (failed(regions))
          return signalPassFailure();
        SmallVector<Attribute> names;
        for (func::FuncOp region : *regions) {
          names.push_back(FlatSymbolRefAttr::get(region));
          addKernels(region);
        }
        made.push_back(ArrayAttr::get(&getContext(), names));
      }
      kernel->setAttr(kRegionsAttr, made[number]);
    }
  }

private:
  /// Each region of a branch or a loop as a planned function.
  FailureOr<SmallVector<func::FuncOp>> outline(KernelOp kernel,
                                               SymbolTable &symbols) {
    SmallVector<func::FuncOp> functions;
    for (Region &region : lower::cpu::flowOf(kernel)->getRegions()) {
      std::string name =
          (kernel.getName() + ".region" + Twine(functions.size())).str();
      FailureOr<func::FuncOp> function =
          lower::cpu::planRegion(getOperation(), region, name);
      if (failed(function))
        return failure();
      function->setPrivate();
      // Two kernels may have one name.
      (*function)->remove();
      symbols.insert(*function);
      functions.push_back(*function);
      ++outlined;
    }
    return functions;
  }
};

} // namespace
