//===- Worker.h - one of several that compute one gradient ----------------===//
//
// What a program does with workers: it serves functions by name, calls those of
// others within a context, runs the backward of the context, and lets
// optimizers of all workers use its gradients.
//
// Threads. All calls may come from any thread. Each call of a function of this
// worker, and each part of a backward, runs on a thread of its own. A context
// is current on the thread that made it until it is released there or left.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_DISTRIBUTED_WORKER_H
#define TANDEM_RUNTIME_GRAPH_DISTRIBUTED_WORKER_H

#include "runtime/graph/distributed/Crew.h"
#include "runtime/graph/distributed/Session.h"
#include "runtime/graph/distributed/Wire.h"

#include <deque>

namespace tandem::graph::distributed {

/// What requests ask for. A request begins with one of them.
enum class Verb : uint8_t {
  Call,     ///< a function
  Gradient, ///< for a message
  Mark,     ///< which messages a backward will use
  Resolve,  ///< the others are unused
  Stop,     ///< a backward
  Release,  ///< a context
  Step,     ///< the optimizers
  Meet,     ///< at a place
  Leave     ///< nothing more will be asked
};

struct WorkerOptions {
  Milliseconds silence{30'000}; ///< after which a worker counts as gone
  /// Of a call, a backward or a step as a whole; 0: none.
  Milliseconds limit{600'000};
};

/// A function that other workers call: sets `outputs`, as many as are wanted.
using Served = std::function<Status(std::vector<Value> &inputs,
                                    std::vector<Value> &outputs)>;
/// Updates `params` with what the context has for them, undefined where
/// nothing.
using Optimizer = std::function<Status(
    uint64_t context, std::span<Value> params, std::span<Value> gradients)>;

struct WorkerCounts {
  size_t contexts = 0;  ///< that are not released
  size_t backwards = 0; ///< that run
  size_t requests = 0;  ///< without answers
  size_t threads = 0;
};

class Worker {
public:
  Worker(std::unique_ptr<Transport> transport, const WorkerOptions &options);
  /// Without `leave`: others will find this worker gone.
  ~Worker();
  Worker(const Worker &) = delete;
  Worker &operator=(const Worker &) = delete;

  uint32_t number() const { return messenger->worker(); }
  uint32_t count() const { return messenger->workers(); }

  /// Lets others call a function. A name is served once.
  Status serve(std::string name, Served function);
  /// Calls a function of a worker, perhaps this one. In the thread's context
  /// tensors keep their history.
  Result<std::vector<Value>> call(uint32_t to, const std::string &name,
                                  std::span<const Value> inputs,
                                  size_t wanted = 1);

  /// Makes a context, and makes it the thread's.
  Result<uint64_t> begin();
  /// Makes a context of this worker the thread's, or none (0).
  Status enter(uint64_t context);
  /// Ends the context on all workers. One that is gone is no error.
  void release(uint64_t context);

  /// Roots are scalars that other nodes made; their gradient is 1.
  Status backward(uint64_t context, std::span<const Value> roots,
                  SessionOptions options = {});
  /// What came for a leaf; undefined: nothing.
  Result<Value> gradient(uint64_t context, const Node &leaf);
  Result<std::vector<std::pair<std::shared_ptr<Leaf>, Value>>>
  gradients(uint64_t context);

  /// Adds parameters with what updates them.
  void optimize(std::vector<Value> params, Optimizer optimizer);
  /// Runs the optimizers of all workers of the context.
  Status step(uint64_t context);

  /// Waits until all workers came to the same place.
  Status meet(const std::string &place);
  /// Waits until all workers have called it, or are gone. The worker goes on
  /// serving until it ends.
  Status leave();
  WorkerCounts counts() const;

  // For contexts and sessions.
  uint64_t newId() { return (uint64_t(number()) << counterBits) | ++idCount; }
  Messenger &messages() { return *messenger; }
  Milliseconds limit() const { return options.limit; }
  Milliseconds silence() const { return options.silence; }
  Result<std::shared_ptr<Context>> find(uint64_t context) const;
  /// Asks worker after worker that takes part, beginning with this one's
  /// peers, until `peersOf(worker)` names no new one.
  Status
  visit(const Context &context,
        const std::function<Result<std::vector<uint64_t>>(uint32_t)> &peersOf);

private:
  void handle(const Asker &from, Bytes request);
  void gone(uint32_t worker);
  Result<std::shared_ptr<Context>> findOrJoin(uint64_t id, uint32_t peer);
  Result<Bytes> runCall(uint32_t from, Reader &reader);
  Result<Bytes> runStep(uint32_t from, Reader &reader);
  Result<Bytes> runMark(uint32_t from, Reader &reader);
  void takeRelease(const Asker &from, Reader &reader);
  void takeMeet(const Asker &from, Reader &reader);
  void takeGradient(const Asker &from, Reader &reader);
  void takeResolve(const Asker &from, Reader &reader);
  void takeStop(const Asker &from, Reader &reader);
  Status stepHere(Context &context);
  void releaseHere(uint64_t id);
  void runOnCrew(const Asker &from, Bytes request,
                 Result<Bytes> (Worker::*run)(uint32_t, Reader &));

  WorkerOptions options;
  mutable std::mutex mutex; ///< guards what follows
  std::map<uint64_t, std::shared_ptr<Context>> contexts;
  std::set<uint64_t> released; ///< lately: what comes late joins none of them
  std::deque<uint64_t> releasedInOrder; ///< the same, the earliest first
  std::map<std::string, Served> functions;
  struct Optimized {
    std::vector<Value> params;
    Optimizer optimizer;
  };
  std::vector<std::shared_ptr<Optimized>> optimizers;
  std::set<uint32_t> left;
  std::map<std::string, std::vector<Asker>> meetings; ///< who waits where
  bool isReady = false;                               ///< before, requests wait
  std::condition_variable changed;

  std::mutex stepMutex; ///< steps of contexts do not mix
  std::atomic<uint64_t> idCount{0};
  std::unique_ptr<Messenger> messenger;
  std::unique_ptr<Crew> crew;
};

/// An error: there is no such context.
Status unknownContext(uint64_t id);

/// Each tensor with whether it has history.
Status writeValues(Writer &writer, std::span<const Value> values,
                   bool hasHistory);
Result<std::vector<Value>> readValues(Reader &reader,
                                      std::vector<bool> &marked);

/// What a worker knows of a backward's messages.
struct Marks {
  std::vector<uint64_t> reached; ///< worker and message, in turn
  std::vector<uint64_t> peers;
  std::vector<uint64_t> unmarked; ///< message and peer, in turn
};
/// Marks messages of the context, and when the backward asks for the first time
/// those that have their gradient, and looks where they lead to. An error while
/// another backward runs.
Result<Marks> mark(Context &context, uint64_t backward,
                   std::span<const uint64_t> messages);
Bytes write(const Marks &marks);
Result<Marks> readMarks(const Bytes &bytes);

} // namespace tandem::graph::distributed

#endif
