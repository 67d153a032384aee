//===- Collectives.h - collectives among the kernels of a program ---------===//
#ifndef TANDEM_PASSES_PLAN_COLLECTIVES_H
#define TANDEM_PASSES_PLAN_COLLECTIVES_H

#include "ir/Collective.h"
#include "ir/HostCopy.h"

namespace tandem {

/// The collective that a kernel is, or a `rank_slice`; null for any other.
CollectiveOpInterface collectiveOf(KernelOp kernel);

/// True for what no kernel's code computes, and nothing fuses with: copies to
/// the host and back, and ops over ranks.
inline bool standsAlone(mlir::Operation *op) {
  return isHostCopy(op) || isCollective(op);
}

/// The same of a kernel, which has such an op alone.
bool standsAlone(KernelOp kernel);

} // namespace tandem

#endif
