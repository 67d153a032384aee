//===- Context.h - what belongs to one distributed forward and backward ---===//
//
// A context ties together what several workers do for one gradient. Each worker
// that takes part has a Context of the same number: the send nodes of messages
// that left here, the workers that it talked to, and the gradients that its
// leaves collected. Contexts know nothing of each other, so that several may
// share parameters.
//
// At most one backward of a context runs at a time: its part on this worker is
// a Session.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_DISTRIBUTED_CONTEXT_H
#define TANDEM_RUNTIME_GRAPH_DISTRIBUTED_CONTEXT_H

#include "runtime/graph/Leaf.h"
#include "runtime/graph/distributed/Crossing.h"

namespace tandem::graph::distributed {

class Session;
class Worker;

class Context : public std::enable_shared_from_this<Context> {
public:
  Context(uint64_t id, Worker &worker) : id(id), worker(worker) {}

  const uint64_t id;
  Worker &worker; ///< outlives all that runs in its contexts
  GradientMap gradients;

  /// Notes a worker that takes part.
  void addPeer(uint32_t peer);
  std::vector<uint64_t> knownPeers() const;
  /// Makes a send node for the values that require grad; null if none does.
  Result<std::shared_ptr<SendNode>> send(std::span<const Value> values,
                                         uint64_t message, uint32_t peer);
  /// Gives the tensors of `values` that are marked the history of a receive
  /// node.
  Status receive(std::span<Value> values, const std::vector<bool> &marked,
                 uint64_t message, uint32_t peer);

  mutable std::mutex mutex; ///< guards what follows, and the session's members
  std::set<uint32_t> peers;
  std::map<uint64_t, std::shared_ptr<SendNode>> sends; ///< by message
  std::shared_ptr<Session> session; ///< of the backward that runs
  bool isReleased = false;
  /// Messages whose gradient came or will come in the backward `markedFor`.
  std::set<uint64_t> marked;
  uint64_t markedFor = 0;
  std::set<uint64_t>
      stopped; ///< backwards that failed: what comes late is dropped
};

/// Makes a context the thread's current one until it ends.
class CurrentContext {
public:
  explicit CurrentContext(std::shared_ptr<Context> context);
  ~CurrentContext();
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;

private:
  std::shared_ptr<Context> before;
};

/// The thread's; null: none.
const std::shared_ptr<Context> &currentContext();
std::shared_ptr<Context> exchangeContext(std::shared_ptr<Context> context);

} // namespace tandem::graph::distributed

#endif
