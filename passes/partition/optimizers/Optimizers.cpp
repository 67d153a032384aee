//===- Optimizers.cpp - the table of optimizers ---------------------------===//
#include "passes/partition/optimizers/Optimizers.h"

#include "llvm/ADT/STLExtras.h"

using namespace tandem;

llvm::ArrayRef<OptimizerKind> tandem::optimizerKinds() {
  static const auto all = [] {
    llvm::SmallVector<OptimizerKind> kinds;
    for (llvm::ArrayRef<OptimizerKind> family :
         {sgdKinds(), adamKinds(), adaptiveKinds(), wholeKinds(),
          quantizedKinds(), scheduleFreeKinds()})
      llvm::append_range(kinds, family);
    return kinds;
  }();
  return all;
}
