//===- Array.h - a tensor of doubles, for the reference -------------------===//
//
// The reference computes everything in double, whatever the element type:
// integers up to 2^53 are exact, booleans are 0 and 1. Row-major, dense.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_REFERENCE_ARRAY_H
#define TANDEM_IR_REFERENCE_ARRAY_H

#include "mlir/IR/BuiltinTypes.h"

#include <cstdint>
#include <vector>

namespace tandem::reference {

struct Array {
  Array() = default;
  explicit Array(llvm::ArrayRef<int64_t> shape)
      : shape(shape.begin(), shape.end()) {
    int64_t n = 1;
    for (int64_t dim : shape)
      n *= dim;
    data.assign(n, 0.0);
  }
  explicit Array(mlir::RankedTensorType type) : Array(type.getShape()) {}

  int64_t size() const { return static_cast<int64_t>(data.size()); }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t dim(int64_t i) const { return shape[i]; }
  double &operator[](int64_t i) { return data[i]; }
  double operator[](int64_t i) const { return data[i]; }

  /// The row-major position of an index.
  int64_t at(llvm::ArrayRef<int64_t> index) const {
    int64_t position = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      position = position * shape[d] + index[d];
    return position;
  }
  double &operator()(llvm::ArrayRef<int64_t> index) { return data[at(index)]; }
  double operator()(llvm::ArrayRef<int64_t> index) const {
    return data[at(index)];
  }

  std::vector<int64_t> shape;
  std::vector<double> data;
};

/// Calls `body` with every index of a tensor of `shape`, in row-major order.
template <typename Body>
void forEachIndex(llvm::ArrayRef<int64_t> shape, Body body) {
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t dim : shape)
    if (dim == 0)
      return;
  while (true) {
    body(llvm::ArrayRef<int64_t>(index));
    int64_t d = static_cast<int64_t>(shape.size()) - 1;
    while (d >= 0 && ++index[d] == shape[d])
      index[d--] = 0;
    if (d < 0)
      return;
  }
}

/// The matrix of `rows` rows as one of `columns` rows, so that a product's
/// innermost loop goes along its elements.
inline std::vector<double> turned(const double *matrix, int64_t rows,
                                  int64_t columns) {
  std::vector<double> result(rows * columns);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < columns; ++k)
      result[k * rows + i] = matrix[i * columns + k];
  return result;
}

} // namespace tandem::reference

#endif
