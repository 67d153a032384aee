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

#include "runtime/artifact/Status.h"
#include "runtime/model/HookMutex.h"

namespace tandem::graph {

/// Gives the lock that the thread holds back until it ends.
class CallbackPause {
public:
  CallbackPause();
  ~CallbackPause() { (void)end(); }
  /// Takes the lock again. An error if the thread would wait for ever: the rest
  /// of the callback runs without it.
  Status end();
  CallbackPause(const CallbackPause &) = delete;
  CallbackPause &operator=(const CallbackPause &) = delete;

private:
  runtime::HookMutex *paused;
};

/// Holds a node's lock, and no other, until it ends.
class CallbackLock {
public:
  explicit CallbackLock(runtime::HookMutex &mutex);
  ~CallbackLock();
  /// An error if the thread would wait for ever.
  Status status() const;
  CallbackLock(const CallbackLock &) = delete;
  CallbackLock &operator=(const CallbackLock &) = delete;

private:
  CallbackPause outer; ///< ends after the lock is given back
  runtime::HookMutex &mutex;
  bool isHeld;
};

} // namespace tandem::graph

#endif
