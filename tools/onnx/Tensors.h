//===- Tensors.h - between ONNX's tensors and the runtime's ---------------===//
#ifndef TANDEM_TOOLS_ONNX_TENSORS_H
#define TANDEM_TOOLS_ONNX_TENSORS_H

#include "compiler/import/onnx/Graph.h"
#include "runtime/Tensor.h"

namespace tandem::onnx {

/// The runtime's element type; none for strings, complex numbers and the like.
std::optional<artifact::DType> dtypeOf(ElementKind kind);
ElementKind kindOf(artifact::DType dtype);

/// Returns a new tensor on the host.
Result<runtime::Tensor> toTensor(const TensorData &data);
/// Returns the elements of a tensor on the host.
Result<TensorPtr> toData(const runtime::Tensor &tensor);

/// Reads the value of `--value=NAME=VALUE`: FILE.npy, FILE.pb, a number, or a
/// list such as [2,3] (of integers, or of floats if one has a point). Elements
/// of a list get the type `kind` where that is not Undefined.
Result<TensorPtr> parseValueText(const std::string &text, ElementKind kind);

} // namespace tandem::onnx

#endif
