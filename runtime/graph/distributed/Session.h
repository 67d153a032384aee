//===- Session.h - one worker's part of a distributed backward ------------===//
//
// The worker that calls the backward runs what its roots reach; every other one
// begins its part when the first gradient comes. A part's roots are all send
// nodes of the context (FAST mode): each is counted before anything runs, so
// that gradients may come in any order and are only queued. One thread runs the
// part; it waits where nothing is ready.
//
// The end (Dijkstra and Scholten, "Termination detection for diffusing
// computations", 1980). The gradient that begins a part, or wakes it after it
// said that it rests, is answered when the part rests: no node is ready, and
// each gradient that it sent was answered. All other gradients are answered at
// once. So when the caller's part rests, all do, and no gradient is under way.
// Answers bring along how many send nodes still wait on each worker.
//
// If some wait then, nobody uses what they sent, or what they lead to waits for
// such a one. The caller follows the graph over all workers and marks on each
// the messages that got a gradient or will get one; the others count as unused,
// and the rest runs to its end. The search begins at the caller's roots and, in
// each part, at the messages that have their gradient: parts that ended before
// have forgotten their messages, but what these lead to has its gradient, too.
// The marks stay on the workers for parts that begin later: they leave out what
// is unused from the start.
//
// The first error of a part goes to the caller through the answers; the caller
// stops the parts of all workers before it returns.
//
// Locks: the context's mutex guards everything here. It is not held during
// calls of the messenger that may call back.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_DISTRIBUTED_SESSION_H
#define TANDEM_RUNTIME_GRAPH_DISTRIBUTED_SESSION_H

#include "runtime/graph/Engine.h"
#include "runtime/graph/distributed/Context.h"
#include "runtime/graph/distributed/Messenger.h"

#include <condition_variable>
#include <deque>

namespace tandem::graph::distributed {

struct SessionOptions {
  bool retainGraph = false;
  bool isStrict = false; ///< a message that nobody uses is an error
};

class Session : public Arrivals, public std::enable_shared_from_this<Session> {
public:
  /// With the context's mutex held: the send nodes that there are.
  Session(std::shared_ptr<Context> context, uint64_t id, SessionOptions options,
          std::vector<Root> roots);
  ~Session() override;

  const uint64_t id;
  const SessionOptions options;

  /// Runs the part and waits for its end: for the caller, that of all parts.
  Status run();

  // With the context's mutex held:
  /// Messages whose gradient has come.
  const std::vector<uint64_t> &usedMessages() const { return used; }
  /// A gradient for a message; its answer comes at once, or when the part
  /// rests.
  void give(const Asker &asker, uint64_t message, Gradients gradients);
  /// What was not marked is unused.
  void resolve(const Asker &asker);
  /// Ends the part with an error; the answer comes when nothing of it runs.
  void stop(const Asker &asker, Status status);

  /// Ends the part with an error.
  void fail(Status status);
  /// Sends what came to a receive node; called by the node.
  Status sendBack(const ReceiveNode &node, const Gradients &gradients);

  // Of the engine.
  std::span<const std::shared_ptr<Node>> expected() const override {
    return nodes;
  }
  Status look(const Node &node) override;
  Status goOn() override;
  Result<std::optional<Arrival>> next() override;

private:
  bool isCaller() const;
  /// Sends a request that the end of the backward waits for.
  void sendCounted(uint32_t to, Bytes request);
  void answered(Result<Bytes> answer);
  void engage(const Asker &asker);
  void restIfPossible();
  void failLocked(Status status);
  void dropUnused();
  Status settle();
  Status waitForAnswers();
  bool isOthersWaiting() const;
  Status checkNobodyWaits() const;
  Bytes report();
  void stopOthers(const Status &status);
  void wait(std::unique_lock<std::mutex> &lock);
  Result<std::optional<Arrival>> takeArrival();

  std::shared_ptr<Context> context;
  std::vector<Root> roots;
  std::vector<std::shared_ptr<Node>> nodes; ///< the send nodes
  /// Messages without gradient.
  std::map<uint64_t, std::shared_ptr<SendNode>> outstanding;
  std::vector<uint64_t> used; ///< messages with one
  std::condition_variable changed;
  std::deque<Arrival> arrived;
  std::optional<Asker> waker; ///< gets an answer when the part rests
  std::vector<Asker> stoppers;
  int unanswered = 0;
  bool isWaiting = false; ///< no node is ready
  bool isFinished = false;
  bool isSettled = false; ///< unused messages were looked for
  Status outcome;         ///< the first error
  std::optional<std::chrono::steady_clock::time_point> deadline;
  struct Report {
    uint64_t number = 0; ///< the newest counts
    uint64_t waiting = 0;
  };
  std::map<uint32_t, Report> reports; ///< by worker
};

} // namespace tandem::graph::distributed

#endif
