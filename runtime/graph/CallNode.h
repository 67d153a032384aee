//===- CallNode.h - a call of a compiled program as a node ----------------===//
//
// Chains compiled programs: what one gives is what another takes, and gradients
// flow back through both. The node of a call holds its context: it runs the
// model's backward on the stream of the forward, once, or again where the graph
// is retained. Where a graph of the backward is made, the gradients have a node
// of their own, if the artifact has second derivatives.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_CALLNODE_H
#define TANDEM_RUNTIME_GRAPH_CALLNODE_H

#include "runtime/graph/Node.h"
#include "runtime/model/Model.h"

#include <span>
#include <string>

namespace tandem::graph {

struct NamedValue {
  std::string name;
  Value value;
};

/// Runs "forward" of `model`. `inputs` are the program's; `params` says where
/// the gradients of params go (those that are left out get none). Returns the
/// outputs called `outputs`, with their history where the model has a gradient
/// for them. An input that the program visibly writes gets the history of what
/// was written. With grad mode off, nothing is kept, and nothing has history.
///
/// `places` are tensors that outputs are written to, as of `Model::forward`:
/// undefined ones, or as many as `outputs`.
Result<std::vector<Value>> call(runtime::Model &model,
                                std::span<NamedValue> inputs,
                                std::span<const NamedValue> params,
                                std::span<const std::string> outputs,
                                std::vector<Value> places = {});

} // namespace tandem::graph

#endif
