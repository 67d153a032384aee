//===- TestNodes.h - nodes of tests ---------------------------------------===//
#ifndef TANDEM_TESTS_RUNTIME_GRAPH_TESTNODES_H
#define TANDEM_TESTS_RUNTIME_GRAPH_TESTNODES_H

#include "runtime/graph/Engine.h"

#include <functional>

namespace tandem::graph::testing {

/// A node that does what a function says.
class FunctionNode : public Node {
public:
  using Function = std::function<Status(Gradients inputs, Gradients &outputs)>;

  FunctionNode(std::string name, Function function)
      : name_(std::move(name)), function(std::move(function)) {}

  /// A node with one input like `value`, and edges to `edges`.
  static Value make(std::string name, const Tensor &value,
                    std::vector<Edge> edges, Function function) {
    auto node =
        std::make_shared<FunctionNode>(std::move(name), std::move(function));
    for (Edge &edge : edges)
      node->addEdge(std::move(edge));
    int input = *node->addInput(value);
    return {value, {node, input}};
  }

  std::string name() const override { return name_; }
  Status run(Gradients inputs, Gradients &outputs, bool) override {
    return function(std::move(inputs), outputs);
  }

private:
  std::string name_;
  Function function;
};

/// Gives its gradient to all edges.
inline FunctionNode::Function passOn() {
  return [](Gradients inputs, Gradients &outputs) {
    for (Tensor &output : outputs)
      output = inputs[0];
    return Status::success();
  };
}

} // namespace tandem::graph::testing

#endif
