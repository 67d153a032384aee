//===- Models.h - small ONNX models, written down -------------------------===//
#ifndef TANDEM_TESTS_ONNX_MODELS_H
#define TANDEM_TESTS_ONNX_MODELS_H

#include "compiler/import/onnx/Graph.h"

#include <cstring>

namespace tandem::onnx::test {

template <typename T>
TensorPtr tensor(const std::string &name, ElementKind kind,
                 std::vector<int64_t> shape, const std::vector<T> &elements) {
  auto data = std::make_shared<TensorData>();
  data->name = name;
  data->kind = kind;
  data->shape = std::move(shape);
  data->bytes.resize(elements.size() * sizeof(T));
  std::memcpy(data->bytes.data(), elements.data(), data->bytes.size());
  return data;
}

inline TensorPtr floats(const std::string &name, std::vector<int64_t> shape,
                        const std::vector<float> &elements) {
  return tensor(name, ElementKind::F32, std::move(shape), elements);
}

inline TensorPtr ints(const std::string &name,
                      const std::vector<int64_t> &elements) {
  return tensor(name, ElementKind::I64, {static_cast<int64_t>(elements.size())},
                elements);
}

inline NamedType value(const std::string &name, ElementKind kind,
                       const std::vector<int64_t> &shape) {
  NamedType made{name, {}};
  made.type.form = ValueType::Form::Tensor;
  made.type.kind = kind;
  made.type.hasShape = true;
  for (int64_t size : shape)
    made.type.shape.push_back({size, ""});
  return made;
}

inline Attribute integer(const std::string &name, int64_t number) {
  Attribute made;
  made.name = name;
  made.form = Attribute::Form::Int;
  made.integer = number;
  return made;
}

inline Attribute number(const std::string &name, float value) {
  Attribute made;
  made.name = name;
  made.form = Attribute::Form::Float;
  made.number = value;
  return made;
}

inline Attribute tensorOf(const std::string &name, const TensorPtr &data) {
  Attribute made;
  made.name = name;
  made.form = Attribute::Form::Tensor;
  made.tensors = {data};
  return made;
}

inline NodeData node(const std::string &op, std::vector<std::string> inputs,
                     std::vector<std::string> outputs,
                     std::vector<Attribute> attributes = {}) {
  NodeData made;
  made.name = outputs.empty() ? op : "make_" + outputs[0];
  made.op = op;
  made.inputs = std::move(inputs);
  made.outputs = std::move(outputs);
  made.attributes = std::move(attributes);
  return made;
}

/// A model without nodes: x [2, 3] in, y out.
inline Model empty(int64_t opset = 17) {
  Model model;
  model.irVersion = 8;
  model.opsets[""] = opset;
  model.graph.name = "small";
  model.graph.inputs = {value("x", ElementKind::F32, {2, 3})};
  model.graph.outputs = {value("y", ElementKind::F32, {2, 3})};
  return model;
}

} // namespace tandem::onnx::test

#endif
