//===- PartitionMarks.h - what passes of partition say to each other ------===//
//
// Discardable attributes of @joint, @grad_joint and @evaluate, from the pass of
// partition that chooses to the pass that divides. A module that was printed
// between the two can be edited.
//
//   tandem.saved = "reason"   on an op with one result, or on an argument of a
//                             joint: the forward saves it for the backward
//   tandem.saved = ["reason", unit]
//                             on an op with several results: of each the
//                             reason, or `unit` where it is not saved
//   tandem.saved_by = "min-cut"
//                             on a joint: what is saved has been chosen, and
//                             how
//   tandem.prepared = "panels"
//                             on an op of @evaluate: its result is computed
//                             once, under this name
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_PARTITIONMARKS_H
#define TANDEM_IR_PARTITIONMARKS_H

#include "mlir/IR/Operation.h"

namespace tandem {

inline constexpr llvm::StringLiteral kSavedAttr = "tandem.saved";
inline constexpr llvm::StringLiteral kSavedByAttr = "tandem.saved_by";
inline constexpr llvm::StringLiteral kPreparedAttr = "tandem.prepared";

/// True for the three names above.
bool isPartitionMark(llvm::StringRef name);

/// Checks the form of a mark on `op`; the error is the op's.
mlir::LogicalResult verifyPartitionMark(mlir::Operation *op,
                                        mlir::NamedAttribute mark);

} // namespace tandem

#endif
