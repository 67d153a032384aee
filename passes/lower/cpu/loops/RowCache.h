//===- RowCache.h - what a row kernel computes once for several levels ----===//
#ifndef TANDEM_PASSES_LOWER_CPU_LOOPS_ROWCACHE_H
#define TANDEM_PASSES_LOWER_CPU_LOOPS_ROWCACHE_H

#include "passes/plan/LoopNest.h"

#include <vector>

namespace tandem::lower::cpu {

/// A value with one element per index of the nest, used at that index only, of
/// which the loops of `level` keep a row for those of later levels.
struct CachedRow {
  mlir::Value value;
  unsigned level;
  llvm::SmallVector<mlir::AffineExpr> index;
};

/// The last values of the chains that several levels need, where a chain is
/// more work than a store and loads: expensive ones first, as many as fit the
/// second-level cache beside what else a row needs.
std::vector<CachedRow> chooseCachedRows(mlir::Block &region,
                                        const LoopNest &nest);

} // namespace tandem::lower::cpu

#endif
