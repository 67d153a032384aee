//===- PackWeights.h - weights as kernels read them best ------------------===//
#ifndef TANDEM_PASSES_PARTITION_PACKWEIGHTS_H
#define TANDEM_PASSES_PARTITION_PACKWEIGHTS_H

#include "ir/Ops.h"

namespace tandem {

/// True if a product on a processor gains by reading its right factor from
/// panels that were made before (passes/Panels.h): with wide vectors, of so
/// many rows that panels are better than the weights in place, of so few that
/// making them is not hidden behind the products, and of a k for which caches
/// hold a panel.
bool gainsByPanels(MatmulOp product);

/// Makes the panels of a product's right factor: views in front of it.
mlir::Value buildPanels(MatmulOp product);

/// Makes `product` read its right factor, which is what they show, from
/// `panels`, through views.
void readPanels(MatmulOp product, mlir::Value panels);

} // namespace tandem

#endif
