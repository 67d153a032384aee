//===- TestNodes.h - nodes of tests ---------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_GRAPH_TESTNODES_H
#define TANDEM_TESTS_RUNTIME_GRAPH_TESTNODES_H

#include "runtime/graph/Engine.h"
#include "runtime/graph/Hooks.h"
#include "runtime/graph/Leaf.h"

#include <functional>

namespace tandem::graph::testing {

using Tensors = std::vector<Tensor>;

/// A node that does what a function says.
class FunctionNode : public Node {
public:
  using Function = std::function<Status(Tensors inputs, Tensors &outputs)>;

  FunctionNode(std::string name, Function function)
      : name_(std::move(name)), function(std::move(function)) {}

  /// A node with one input like `value`, and edges to `edges`.
  static Value make(std::string name, const Tensor &value,
                    std::vector<Edge> edges, Function function) {
    auto node =
        std::make_shared<FunctionNode>(std::move(name), std::move(function));
    for (Edge &edge : edges)
      (void)node->addEdge(std::move(edge));
    int input = *node->addInput(value);
    return {value, {node, input}};
  }

  std::string name() const override { return name_; }
  Status run(Gradients &inputs, Gradients &outputs, const RunMode &) override {
    Tensors given, made(outputs.size());
    for (Value &input : inputs)
      given.push_back(std::move(input.tensor));
    Status status = function(std::move(given), made);
    outputs.resize(made.size());
    for (size_t i = 0; i < made.size(); ++i)
      outputs[i] = std::move(made[i]);
    return status;
  }

private:
  std::string name_;
  Function function;
};

/// Gives its gradient to all edges.
inline FunctionNode::Function passOn() {
  return [](Tensors inputs, Tensors &outputs) {
    for (Tensor &output : outputs)
      output = inputs[0];
    return Status::success();
  };
}

} // namespace tandem::graph::testing

#endif
