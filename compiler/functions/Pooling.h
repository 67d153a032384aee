//===- Pooling.h - what kinds of pooling share ----------------------------===//
#ifndef TANDEM_COMPILER_FUNCTIONS_POOLING_H
#define TANDEM_COMPILER_FUNCTIONS_POOLING_H

#include "compiler/functions/Build.h"
#include "compiler/functions/Function.h"

namespace tandem::functions {

/// Rows beyond this would make tables that no program should hold.
inline constexpr int64_t kMaxTable = int64_t(1) << 24;

/// table[index], for a table that is known.
Expr lookUp(Call &call, const Expr &index, llvm::ArrayRef<int64_t> table);

/// Adds adaptive_avg_pool and adaptive_max_pool to the family.
void addAdaptivePooling(FunctionTable &table);

} // namespace tandem::functions

#endif
