//===- LoopFit.cpp - which loop nests a method of loops computes ----------===//
#include "passes/lower/common/LoopFit.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

Fit lower::fitReductions(const LoopNest &nest, bool keepsInnermost) {
  if (nest.reductions.empty())
    return Fit::impossible("expected reductions but got none");
  bool keeps = !nest.reduced.empty() && !nest.reduced.back() &&
               llvm::is_contained(nest.reduced, true);
  if (keeps != keepsInnermost)
    return Fit::impossible(
        "expected the innermost index of " + crossed(nest.sizes) + " to be " +
        (keepsInnermost ? "kept but got one that is reduced"
                        : "reduced but got one that is kept"));
  return Fit::good();
}
