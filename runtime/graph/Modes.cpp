//===- Modes.cpp - what a thread's graphs are made and run under ----------===//
#include "runtime/graph/Modes.h"

#include <cmath>
#include <utility>

namespace tandem::graph {

Modes &modes() {
  static thread_local Modes own;
  return own;
}

static thread_local Node *runningNode = nullptr;

Node *currentNode() { return runningNode; }
Node *exchangeCurrentNode(Node *node) {
  return std::exchange(runningNode, node);
}

Status checkDeterministic(const Node &node) {
  if (!modes().deterministic || node.isDeterministic())
    return Status::success();
  return Status::usage("node " + describe(node) +
                       " is not deterministic, but deterministic mode is on");
}

Result<int64_t> findAnomaly(const Tensor &tensor, const Anomaly &anomaly) {
  if (!tensor.defined() || artifact::isInteger(tensor.dtype()))
    return -1;
  Result<Tensor> host = tensor.onHost();
  if (host)
    host = host->to(artifact::DType::F64);
  if (!host)
    return std::move(host).status();
  const auto *values = host->data<double>();
  for (int64_t i = 0; i < host->elements(); ++i)
    if ((anomaly.findsNan && std::isnan(values[i])) ||
        (anomaly.findsInfinity && std::isinf(values[i])))
      return i;
  return -1;
}

} // namespace tandem::graph
