//===- Ranks.h - a program on all ranks of a mesh, by the reference -------===//
//
// Runs programs that are local to a rank for all ranks at once, op by op and in
// double, and takes values apart and together as their roles say.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_SHARD_RANKS_H
#define TANDEM_TESTS_SHARD_RANKS_H

#include "passes/shard/Distribution.h"

#include "ir/reference/Array.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <string>

namespace tandem::test {

using reference::Array;
/// Whole values by kind and name: `param "w"`.
using Values = std::map<std::string, Array>;

/// Runs `func`, of one process or of a rank, with `values` for its arguments,
/// on every rank of its module's mesh. Returns the whole results. Fails the
/// test where ranks that must have the same piece do not. Padding of arguments
/// is no numbers, and any indices; that of results is left out.
Values runOnRanks(mlir::func::FuncOp func, const Values &values);

} // namespace tandem::test

#endif
