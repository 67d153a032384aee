//===- DeduplicateKernels.cpp - which kernels share a function ------------===//
#include "passes/Passes.h"
#include "passes/lower/common/Kernels.h"

#include "ir/KernelFunctions.h"

#include "llvm/ADT/StringMap.h"

namespace tandem {
#define GEN_PASS_DEF_DEDUPLICATEKERNELS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

namespace {

struct DeduplicateKernels
    : tandem::impl::DeduplicateKernelsBase<DeduplicateKernels> {
  using DeduplicateKernelsBase::DeduplicateKernelsBase;
  void runOnOperation() final;
};

/// The functions of one module.
class Functions {
public:
  explicit Functions(StringAttr target) : target(target) {}

  /// Names the kernel's function, and those of the kernels of its regions.
  void name(KernelOp kernel);
  size_t count() const { return symbols.size(); }

private:
  StringAttr target;
  DistinctKernels known;
  SmallVector<SymbolRefAttr> symbols; ///< of each distinct kernel
  llvm::StringMap<int> namesUsed;
};

} // namespace

void Functions::name(KernelOp kernel) {
  auto [number, isNew] = known.insert(kernel);
  if (isNew) {
    std::string name =
        (kernel.getName() + "_" + Twine(namesUsed[kernel.getName()]++)).str();
    symbols.push_back(SymbolRefAttr::get(
        target, FlatSymbolRefAttr::get(target.getContext(), name)));
  }
  kernel->setAttr(kFunctionAttr, symbols[number]);
  // Regions belong to the first of equal kernels.
  if (isNew)
    for (KernelOp inner : regionKernels(kernel))
      this->name(inner);
}

void DeduplicateKernels::runOnOperation() {
  Functions made(StringAttr::get(&getContext(), target));
  SmallVector<KernelOp> kernels = programKernels(getOperation());
  for (KernelOp kernel : kernels)
    made.name(kernel);
  functions = made.count();
  shared = kernels.size() - std::min(kernels.size(), made.count());
}
