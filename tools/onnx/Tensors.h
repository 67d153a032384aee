//===- Tensors.h - between ONNX's tensors and the runtime's ---------------===//
#ifndef TANDEM_TOOLS_ONNX_TENSORS_H
#define TANDEM_TOOLS_ONNX_TENSORS_H

#include "compiler/import/onnx/Graph.h"
#include "runtime/model/Model.h"

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

/// Reads the `INPUT=VALUE` in `texts`, of inputs of the model in `path`.
Status readValues(const std::string &path,
                  const std::vector<std::string> &texts,
                  std::map<std::string, TensorPtr> &to);

/// Sets parameters and states of a model.
Status setWeights(runtime::Model &model,
                  const std::map<std::string, TensorPtr> &weights);
/// Writes them to a safetensors file, from which --params reads them, and whose
/// metadata says that they are initial values of `model`.
Status writeWeights(const std::string &path,
                    const std::map<std::string, TensorPtr> &weights,
                    const std::string &model);

} // namespace tandem::onnx

#endif
