//===- Crew.h - threads for what may wait ---------------------------------===//
//
// Handlers and backwards of a worker wait for other workers, which may wait for
// this one in turn: each gets a thread of its own, and a thread that is done is
// used again. The threads end with the crew.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_DISTRIBUTED_CREW_H
#define TANDEM_RUNTIME_GRAPH_DISTRIBUTED_CREW_H

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem::graph::distributed {

class Crew {
public:
  Crew() = default;
  /// Waits for all that runs.
  ~Crew();
  Crew(const Crew &) = delete;
  Crew &operator=(const Crew &) = delete;

  /// Runs `work` on a thread at once; false if the system gives no thread.
  bool run(std::function<void()> work);
  /// How many threads there are.
  size_t size() const;

private:
  void serve();

  mutable std::mutex mutex;
  std::condition_variable filled;
  std::deque<std::function<void()>> waiting;
  std::vector<std::thread> threads;
  size_t idle = 0;
  bool isEnding = false;
};

} // namespace tandem::graph::distributed

#endif
