//===- LoopFit.h - which loop nests a method of loops computes ------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_LOOPFIT_H
#define TANDEM_PASSES_LOWER_COMMON_LOOPFIT_H

#include "passes/lower/common/Method.h"
#include "passes/plan/LoopNest.h"

namespace tandem::lower {

/// Good for a nest that reduces and whose innermost index is kept
/// (`keepsInnermost`), or is reduced.
Fit fitReductions(const LoopNest &nest, bool keepsInnermost);

} // namespace tandem::lower

#endif
