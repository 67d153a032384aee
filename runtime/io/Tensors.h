//===- Tensors.h - between files' arrays and the runtime's tensors --------===//
#ifndef TANDEM_RUNTIME_IO_TENSORS_H
#define TANDEM_RUNTIME_IO_TENSORS_H

#include "runtime/io/Array.h"
#include "runtime/tensor/Tensor.h"

namespace tandem::io {

/// Returns a new tensor with the elements of `array`.
inline Result<runtime::Tensor> toTensor(const ArrayView &array) {
  return runtime::Tensor::copyOf(array.bytes.data(), array.dtype, array.shape);
}

/// Returns a view of a dense tensor on the host, valid as long as the tensor.
inline ArrayView viewOf(const runtime::Tensor &tensor) {
  return {tensor.dtype(), tensor.shape(),
          Bytes(tensor.data<std::byte>(), size_t(tensor.bytes()))};
}

} // namespace tandem::io

#endif
