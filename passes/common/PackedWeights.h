//===- PackedWeights.h - right factors of products in panels --------------===//
//
// The panels of a matrix [k, n] are a tensor [ceil(n / 64), k, 64]: 64 columns
// lie together, those that are missing are 0. A multiple of every vector, so
// that the variants of an artifact can have tiles of their own widths in them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_COMMON_PACKEDWEIGHTS_H
#define TANDEM_PASSES_COMMON_PACKEDWEIGHTS_H

#include "ir/Ops.h"

namespace tandem {

inline constexpr int64_t kPanelColumns = 64;

/// True for types and targets whose products can read panels in place.
bool canReadPanels(MatmulOp product);

/// The panels that `product` reads its right factor from, through views that
/// show [k, n]; null if it reads none.
mlir::Value panelsOf(MatmulOp product);

} // namespace tandem

#endif
