//===- Tags.h - what a program says about saving and recomputing ----------===//
//
// Discardable attributes of ops, from capture to partition, which obeys them
// and takes them off:
//
//   tandem.save              the results are saved for the backward
//   tandem.recompute         the results are never saved
//   tandem.offload           the results are saved, in the host's memory where
//                            the program is a device's; where it is the host's,
//                            it says nothing
//   tandem.checkpoint = "R"  the op is of the region R: of the region, what
//                            enters it is kept, and the rest computed again
//
// An op has either `recompute`, or any of `save` and `offload`; what an op of a
// region says itself counts more than its region.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_TAGS_H
#define TANDEM_IR_TAGS_H

#include "mlir/IR/Operation.h"

namespace tandem {

inline constexpr llvm::StringLiteral kSaveAttr = "tandem.save";
inline constexpr llvm::StringLiteral kRecomputeAttr = "tandem.recompute";
inline constexpr llvm::StringLiteral kOffloadAttr = "tandem.offload";
inline constexpr llvm::StringLiteral kCheckpointAttr = "tandem.checkpoint";

/// True for the four names above.
bool isTag(llvm::StringRef name);

/// True if `op` can be computed twice: it writes no storage and changes no
/// handle.
bool isRepeatable(mlir::Operation *op);

/// True if `op` makes values from values: what tags but that of a region are
/// about.
bool isTaggable(mlir::Operation *op);

/// Checks a tag of `op`; the error is the op's.
mlir::LogicalResult verifyTag(mlir::Operation *op, mlir::NamedAttribute tag);

/// Gives `op` the tags of `from`, but for those that its own decide about.
void addTags(mlir::Operation *op, mlir::Operation *from);

void dropTags(mlir::Operation *op);

} // namespace tandem

#endif
