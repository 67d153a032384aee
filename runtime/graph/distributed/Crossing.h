//===- Crossing.h - nodes where the graph crosses to another worker -------===//
//
// A message with tensors that require grad makes a send node where they leave
// and a receive node where they arrive, tied by the number of the message. In
// the backward the receive node runs as any node does, and its gradients come
// to the send node of the other worker, which is a root there.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_DISTRIBUTED_CROSSING_H
#define TANDEM_RUNTIME_GRAPH_DISTRIBUTED_CROSSING_H

#include "runtime/graph/Node.h"

#include <map>
#include <set>

namespace tandem::graph::distributed {

class Context;

/// The numbers of contexts, messages and backwards: 16 bits of the worker that
/// made it and 48 bits of a counter, so that workers need not agree.
constexpr int counterBits = 48;
constexpr uint64_t mostOfCounter = (uint64_t(1) << counterBits) - 1;
constexpr uint32_t mostWorkers = 1 << 16;
inline uint32_t workerOf(uint64_t id) {
  return static_cast<uint32_t>(id >> counterBits);
}
/// Returns "2:17".
std::string describeId(uint64_t id);

/// Either side of a message.
class Crossing : public Node {
public:
  Crossing(uint64_t message, uint32_t peer) : message(message), peer(peer) {}

  const uint64_t message;
  const uint32_t peer; ///< the worker on the other side
};

/// Has an edge to each tensor that left, and gives them what came.
class SendNode : public Crossing {
public:
  using Crossing::Crossing;
  std::string name() const override;
  Status run(Gradients &inputs, Gradients &outputs, const RunMode &) override {
    outputs.swap(inputs);
    return Status::success();
  }
};

/// Has an input for each tensor that arrived, and sends what it gets. No edge:
/// the graph goes on elsewhere.
class ReceiveNode : public Crossing {
public:
  ReceiveNode(uint64_t message, uint32_t peer, std::weak_ptr<Context> context)
      : Crossing(message, peer), context(std::move(context)) {}
  std::string name() const override;
  Status run(Gradients &inputs, Gradients &outputs,
             const RunMode &mode) override;

private:
  std::weak_ptr<Context> context;
  std::atomic<bool> isUsed{false}; ///< by a backward that does not retain it
};

/// Adds the receive nodes that lie below a node to `found`, each once; `seen`
/// are nodes that were looked at.
void findReceives(const std::shared_ptr<Node> &from, std::set<Node *> &seen,
                  std::vector<const ReceiveNode *> &found);

} // namespace tandem::graph::distributed

#endif
