//===- InPlace.h - results that can be computed where an input lies -------===//
#ifndef TANDEM_PASSES_PLAN_INPLACE_H
#define TANDEM_PASSES_PLAN_INPLACE_H

#include "ir/Ops.h"

namespace tandem {

/// Which input each result of a planned kernel overwrites; -1 for none.
llvm::SmallVector<int64_t> inPlaceInputs(KernelOp kernel);

/// Answers, for each kernel once, which results can overwrite which inputs: the
/// kernel reads such an input only at the place in memory at which it writes
/// the result, before it does. Whether anybody else needs the input is not
/// asked here.
class InPlacePairs {
public:
  InPlacePairs() = default;
  /// As an analysis of a function, which passes that erase kernels keep.
  explicit InPlacePairs(mlir::Operation *) {}

  /// By rising result, then input.
  llvm::ArrayRef<InPlacePair> of(KernelOp kernel);
  /// Before a kernel is erased.
  void forget(KernelOp kernel) { known.erase(kernel); }

private:
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<InPlacePair, 4>> known;
};

} // namespace tandem

#endif
