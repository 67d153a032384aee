//===- CallNode.cpp - a call of a compiled program as a node --------------===//
#include "runtime/graph/CallNode.h"

namespace tandem::graph {

using runtime::Argument;
using runtime::Destination;

namespace {

class CallNode : public Node {
public:
  CallNode(runtime::Model &model, runtime::Context context)
      : model(model), context(std::move(context)) {}

  std::string name() const override { return model.manifest().model; }

  Status run(Gradients inputs, Gradients &outputs, bool retain) override {
    std::vector<Argument> cotangents;
    for (size_t i = 0; i < inputs.size(); ++i)
      cotangents.emplace_back(outputNames[i], &inputs[i]);
    std::vector<Destination> grads;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (edges()[i])
        grads.push_back({gradNames[i], &outputs[i]});
    runtime::BackwardOptions options;
    options.retainGraph = retain;
    return model.backward(context, cotangents, grads, options);
  }

  runtime::Model &model;
  runtime::Context context;
  std::vector<std::string> outputNames; ///< of the inputs
  std::vector<std::string> gradNames;   ///< of the edges
};

/// True if the backward takes a cotangent of the output.
bool isDifferentiable(const artifact::Program &backward,
                      const std::string &output) {
  for (const artifact::Slot &slot : backward.arguments)
    if (slot.role == artifact::Role::Cotangent && slot.name == output)
      return true;
  return false;
}

bool hasGradient(const artifact::Program &backward, const std::string &name) {
  for (const artifact::Slot &slot : backward.results)
    if (slot.role == artifact::Role::Grad && slot.name == name)
      return true;
  return false;
}

} // namespace

Result<std::vector<Value>> call(runtime::Model &model,
                                std::span<const NamedValue> inputs,
                                std::span<const NamedValue> params,
                                std::span<const std::string> outputs) {
  std::vector<Argument> arguments;
  for (const NamedValue &input : inputs)
    arguments.emplace_back(input.name, &input.value.tensor);
  std::vector<Value> values(outputs.size());
  std::vector<Destination> destinations;
  for (size_t i = 0; i < outputs.size(); ++i)
    destinations.push_back({outputs[i], &values[i].tensor});
  Result<runtime::Context> context = model.forward(arguments, destinations);
  if (!context)
    return context.status();
  const artifact::Program *backward = model.manifest().findProgram("backward");
  if (!backward)
    return values;
  auto node = std::make_shared<CallNode>(model, std::move(*context));
  bool needsGradient = false;
  for (std::span<const NamedValue> list : {inputs, params})
    for (const NamedValue &one : list)
      if (one.value.edge && hasGradient(*backward, one.name)) {
        node->addEdge(one.value.edge);
        node->gradNames.push_back(one.name);
        needsGradient = true;
      }
  if (!needsGradient)
    return values;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!isDifferentiable(*backward, outputs[i]))
      continue;
    Result<int> input = node->addInput(values[i].tensor);
    if (!input)
      return input.status();
    node->outputNames.push_back(outputs[i]);
    values[i].edge = {node, *input};
  }
  return values;
}

} // namespace tandem::graph
