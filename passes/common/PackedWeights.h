//===- PackedWeights.h - right factors of products in panels --------------===//
//
// The panels of a matrix [k, n] are a tensor [ceil(n / c), k, c]: c columns lie
// together, those that are missing are 0. c is 64 where vectors have 512 bits,
// else 16: rows of a panel then follow each other in what a tile reads, as in a
// panel that a product makes itself.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_COMMON_PACKEDWEIGHTS_H
#define TANDEM_PASSES_COMMON_PACKEDWEIGHTS_H

#include "ir/Ops.h"

namespace tandem {

/// The columns that panels may have, most first.
inline constexpr int64_t kPanelColumns[] = {64, 16};

/// The columns of the panels that are made for an op's target.
int64_t panelColumns(mlir::Operation *op);

/// True for types and targets whose products can read panels in place.
bool canReadPanels(MatmulOp product);

/// The panels that `product` reads its right factor from, through views that
/// show [k, n]; null if it reads none.
mlir::Value panelsOf(MatmulOp product);

} // namespace tandem

#endif
