//===- PlannedScratch.h - the scratch memory that a plan counts on --------===//
//
// A kernel's code may need memory beside its buffers: packed panels, sums that
// are not finished. How much follows from its method and its schedule, which
// stand on the kernel; the plan says the bytes there too, so that a report of
// the memory counts them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_PLANNEDSCRATCH_H
#define TANDEM_IR_PLANNEDSCRATCH_H

#include "mlir/IR/Operation.h"

#include <optional>

namespace tandem {

/// `tandem.scratch_bytes = 4096 : i64` on a kernel, set by
/// tandem-choose-methods: the bytes that each thread needs for it, or for cuda
/// each stream.
inline constexpr llvm::StringLiteral kScratchBytesAttr = "tandem.scratch_bytes";

/// What the attribute says; null where no method was chosen.
std::optional<int64_t> plannedScratch(mlir::Operation *kernel);
void setPlannedScratch(mlir::Operation *kernel, int64_t bytes);

/// Checks the attribute where it stands; the error is the op's.
mlir::LogicalResult verifyPlannedScratch(mlir::Operation *op,
                                         mlir::NamedAttribute attribute);

} // namespace tandem

#endif
