//===- Sharding.h - how programs are divided among ranks ------------------===//
//
// Attributes of the module, beside its mesh, of which tandem-assign-shardings
// makes the shardings of roles:
//
//   tandem.parallel = ["ddp", "tp"]          ready-made plans
//   tandem.shard = {"fc0.w" = [["tensor"], []]}
//                                            by names: a regular expression,
//                                            and axes for each dimension
//   tandem.batch_norm = "per-rank"           statistics of each rank's rows
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_SHARDING_H
#define TANDEM_IR_SHARDING_H

#include "ir/Dialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// A property of a role, beside `sharding`, in a function that is local to a
/// rank: the sizes of the whole value, `array<i64: 7, 4>`, where a dimension
/// does not divide. Each rank has as many of its indices as the first one, and
/// what lies behind the end of the value is padding. Without the property, the
/// sizes are those of a piece times the ranks.
inline constexpr llvm::StringLiteral kWholeSizes = "whole";

inline constexpr llvm::StringLiteral kParallelAttr = "tandem.parallel";
/// Whose rows batch norm has statistics of: "per-rank". Without it, of the
/// whole batch.
inline constexpr llvm::StringLiteral kBatchNormAttr = "tandem.batch_norm";
inline constexpr llvm::StringLiteral kShardAttr = "tandem.shard";
/// The bytes that small sums wait for before they go in one exchange. Without
/// it, what the target's links make worth it (passes/target/Rates.h).
inline constexpr llvm::StringLiteral kBucketBytesAttr = "tandem.bucket_bytes";
/// What it can be: the rule of artifacts (`bucket_bytes` in Manifest.def).
inline constexpr int64_t kLeastBucketBytes = 4, kMostBucketBytes = int64_t(1)
                                                                   << 30;

/// Returns the type of the whole value of which an argument or result of `func`
/// has a rank's piece: `type` where the function is of one process.
mlir::Type wholeType(mlir::func::FuncOp func, RoleAttr role, mlir::Type type);

/// Makes `func` local to a rank (`tandem.local`) if `like` is.
void setLocalAs(mlir::func::FuncOp func, mlir::func::FuncOp like);

} // namespace tandem

#endif
