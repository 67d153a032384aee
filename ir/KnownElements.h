//===- KnownElements.h - the elements of a value that inputs do not decide ===//
//
// Exporters write masks as programs: positions by `iota`, compared, joined and
// stretched. What such a program gives is known when compiling.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_KNOWNELEMENTS_H
#define TANDEM_IR_KNOWNELEMENTS_H

#include "mlir/IR/Value.h"

#include <optional>
#include <vector>

namespace tandem {

/// What is added to a score to hide a position: so much less has no weight
/// beside others. It may be the least number of a type.
inline constexpr double kHides = -1e30;

/// The elements of a tensor; bools are 0 and 1. A dimension along which they
/// are all equal has size 1 here.
struct KnownElements {
  llvm::SmallVector<int64_t> shape;
  std::vector<double> elements; ///< row-major

  /// Whether they differ along the dimension.
  bool varies(size_t dim) const { return shape[dim] != 1; }
};

/// Those of the value, where it follows from constants and positions alone;
/// nothing where it does not, where there are too many, or where its type would
/// have rounded some.
std::optional<KnownElements> knownElements(mlir::Value value);

} // namespace tandem

#endif
