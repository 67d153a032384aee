//===- HookMutex.h - a mutex that is held while hooks run -----------------===//
//
// A model's call, and the callback of a node, hold a mutex while they run code
// of the user, which may ask for another such mutex. Two threads that do so the
// other way round would wait for each other for ever: the second of them is
// refused. So is a thread that asks for what it holds.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_MODEL_HOOKMUTEX_H
#define TANDEM_RUNTIME_MODEL_HOOKMUTEX_H

#include <atomic>
#include <mutex>
#include <thread>

namespace tandem::runtime {

class HookMutex {
public:
  HookMutex() = default;
  HookMutex(const HookMutex &) = delete;
  HookMutex &operator=(const HookMutex &) = delete;

  enum class Answer { Held, IsMine, WouldWaitForEver };
  /// Waits until the thread holds the mutex, or says why it cannot.
  Answer lock();
  void unlock();

private:
  bool leadsToThisThread() const;

  std::mutex mutex;
  std::atomic<std::thread::id> holder;
};

/// The number of such mutexes that this thread holds.
int heldHookMutexes();

} // namespace tandem::runtime

#endif
