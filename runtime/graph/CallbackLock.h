//===- CallbackLock.h - one callback of a node at a time ------------------===//
//
// Internal to the graph. A callback of a node runs while its thread holds the
// node's lock, so that the callbacks of one node do not run side by side. A
// thread holds one such lock at most: while a callback runs a backward of its
// own, or a callback of another node, its lock is given back. So two threads
// whose backwards nest the other way round do not wait for each other.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_GRAPH_CALLBACKLOCK_H
#define TANDEM_RUNTIME_GRAPH_CALLBACKLOCK_H

#include <mutex>

namespace tandem::graph {

/// Gives the lock that the thread holds back until it ends.
class CallbackPause {
public:
  CallbackPause();
  ~CallbackPause();
  CallbackPause(const CallbackPause &) = delete;
  CallbackPause &operator=(const CallbackPause &) = delete;

private:
  std::mutex *paused;
};

/// Holds a node's lock, and no other, until it ends.
class CallbackLock {
public:
  explicit CallbackLock(std::mutex &mutex);
  ~CallbackLock();
  CallbackLock(const CallbackLock &) = delete;
  CallbackLock &operator=(const CallbackLock &) = delete;

private:
  CallbackPause outer; ///< ends after the lock is given back
  std::mutex &mutex;
};

} // namespace tandem::graph

#endif
