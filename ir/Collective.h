//===- Collective.h - what the ranks of a mesh do together ----------------===//
//
// Apart from ir/Ops.h: what a model computes on one process has none of these
// ops. The mesh that they speak of is the module's (`tandem.mesh`).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_COLLECTIVE_H
#define TANDEM_IR_COLLECTIVE_H

#include "ir/Ops.h"

namespace tandem {
/// What the ranks of a group do together, for MLIR's side effects.
struct Ranks : mlir::SideEffects::Resource::Base<Ranks> {
  llvm::StringRef getName() final { return "tandem.ranks"; }
};
} // namespace tandem

#define GET_OP_CLASSES
#include "ir/ops/Collective.h.inc"

namespace tandem {

/// True for ops over the ranks of a group, with and without communication.
inline bool isCollective(mlir::Operation *op) {
  return mlir::isa<CollectiveOpInterface>(op);
}

/// True for ops that communicate: these keep their order and their number.
bool communicates(mlir::Operation *op);

/// The ranks of a group over `axes` in the mesh around `op`.
int64_t groupSize(mlir::Operation *op, mlir::ArrayAttr axes);

/// Returns `type` with the size of `dim` multiplied by `times`, or divided by
/// `-times`, without a remainder; null where there is one or no such tensor.
mlir::RankedTensorType withDim(mlir::RankedTensorType type, int64_t dim,
                               int64_t times);

} // namespace tandem

#endif
