//===- Summary.cpp - what is in an ONNX model, as text --------------------===//
#include "tools/onnx/Summary.h"

#include <cstdio>

namespace tandem::onnx {

static std::string textOf(const ValueType &type) {
  switch (type.form) {
  case ValueType::Form::Tensor:
    break;
  case ValueType::Form::Sequence:
    return "sequence of " + (type.element ? textOf(*type.element) : "?");
  case ValueType::Form::Optional:
    return "optional " + (type.element ? textOf(*type.element) : "?");
  case ValueType::Form::Map:
    return "map";
  case ValueType::Form::Sparse:
    return "sparse tensor";
  case ValueType::Form::Nothing:
    return "no type";
  }
  std::string text = spelling(type.kind);
  if (!type.hasShape)
    return text + " of any shape";
  text += "[";
  for (size_t i = 0; i < type.shape.size(); ++i) {
    const Dim &dim = type.shape[i];
    text += (i ? ", " : "") + (dim.size >= 0      ? std::to_string(dim.size)
                               : dim.name.empty() ? "?"
                                                  : dim.name);
  }
  return text + "]";
}

static std::string row(const char *role, const std::string &name,
                       const std::string &rest) {
  char text[160];
  std::snprintf(text, sizeof text, "%-10s %-32s ", role, name.c_str());
  return text + rest + "\n";
}

std::string summaryOf(const Model &model, const Import &import) {
  std::string text;
  if (!import.problems.empty()) {
    int64_t unsupported = 0;
    for (const Problem &problem : import.problems)
      unsupported += problem.isUnsupported;
    text += std::to_string(import.problems.size()) +
            (import.problems.size() == 1 ? " problem, " : " problems, ") +
            std::to_string(unsupported) + " of them not supported:\n";
    for (const Problem &problem : import.problems)
      text += "  " + problem.where + ": " + problem.text + "\n";
    text += "\n";
  }
  text += "ONNX version " + std::to_string(model.irVersion);
  for (const auto &[domain, version] : model.opsets)
    text += ", " + (domain.empty() ? std::string("ai.onnx") : domain) + " " +
            std::to_string(version);
  if (!model.producer.empty())
    text += ", made by " + model.producer;
  text += "\n\n";
  std::set<std::string> initializers;
  int64_t elements = 0;
  for (const TensorPtr &data : model.graph.initializers)
    initializers.insert(data->name);
  for (const NamedType &input : model.graph.inputs)
    if (!initializers.count(input.name))
      text += row("input", input.name, textOf(input.type));
  for (const NamedType &output : model.graph.outputs)
    text += row("output", output.name, textOf(output.type));
  for (const auto &[name, data] : import.weights)
    elements += data->elements();
  text +=
      "\n" + std::to_string(model.graph.initializers.size()) + " initializers";
  if (import.module)
    text += ", " + std::to_string(import.weights.size()) +
            " parameters and states of " + std::to_string(elements) +
            " elements";
  text += "\n";
  for (const auto &[name, count] : import.operators)
    text += row("operator", name, std::to_string(count));
  return text;
}

} // namespace tandem::onnx
