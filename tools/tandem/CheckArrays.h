//===- CheckArrays.h - numbers of gradients, for 'check' ------------------===//
#ifndef TANDEM_TOOLS_TANDEM_CHECKARRAYS_H
#define TANDEM_TOOLS_TANDEM_CHECKARRAYS_H

#include "ir/reference/Array.h"
#include "runtime/tensor/Tensor.h"

#include <cmath>

namespace tandem {

/// Euclidean.
inline double norm(const reference::Array &a) {
  double sum = 0;
  for (double x : a.data)
    sum += x * x;
  return std::sqrt(sum);
}

inline reference::Array toArray(const runtime::Tensor &tensor) {
  reference::Array array(
      llvm::ArrayRef<int64_t>(tensor.shape().data(), tensor.shape().size()));
  for (int64_t i = 0; i < array.size(); ++i)
    array[i] = tensor.at(i);
  return array;
}

} // namespace tandem

#endif
