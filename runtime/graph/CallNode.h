//===- CallNode.h - a call of a compiled program as a node ----------------===//
//
// Chains compiled programs: what one gives is what another takes, and gradients
// flow back through both. The node of a call holds its context: it runs the
// model's backward on the stream of the forward, once, or again where the graph
// is retained.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_CALLNODE_H
#define TANDEM_RUNTIME_GRAPH_CALLNODE_H

#include "runtime/Model.h"
#include "runtime/graph/Node.h"

#include <span>
#include <string>

namespace tandem::graph {

struct NamedValue {
  std::string name;
  Value value;
};

/// Runs "forward" of `model`, which must outlive what it gives. `inputs` are
/// the program's; `params` says where the gradients of params go (those that
/// are left out get none). Returns the outputs called `outputs`, with their
/// history where the model has a gradient for them.
Result<std::vector<Value>> call(runtime::Model &model,
                                std::span<const NamedValue> inputs,
                                std::span<const NamedValue> params,
                                std::span<const std::string> outputs);

} // namespace tandem::graph

#endif
