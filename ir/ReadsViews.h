//===- ReadsViews.h - operands that need no memory of their own -----------===//
#ifndef TANDEM_IR_READSVIEWS_H
#define TANDEM_IR_READSVIEWS_H

#include "ir/Dialect.h"

namespace tandem {

/// True if a kernel around `op` reads its operands as well where the elements
/// of a view are in the view's source, as long as neighbours along the last
/// dimension are neighbours there.
bool readsViews(mlir::Operation *op);

} // namespace tandem

#endif
