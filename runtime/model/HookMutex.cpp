//===- HookMutex.cpp - a mutex that is held while hooks run ---------------===//
//
// Only a thread that holds one and waits for another can be part of a cycle.
// Such threads say what they wait for, under one lock, before they do: the last
// of a cycle finds the others.
//
//===----------------------------------------------------------------------===//
#include "runtime/model/HookMutex.h"

#include <vector>

namespace tandem::runtime {

namespace {

struct Wait {
  std::thread::id thread;
  const HookMutex *mutex;
};
struct Waits {
  std::mutex mutex; ///< guards the list
  std::vector<Wait> list;
};
/// Never destroyed: threads may wait while the process ends.
Waits &waits() {
  static auto *made = new Waits;
  return *made;
}

thread_local int held = 0;

} // namespace

int heldHookMutexes() { return held; }

/// True if the holder waits, through others perhaps, for what this thread
/// holds. With the lock of the list held.
bool HookMutex::leadsToThisThread() const {
  const HookMutex *at = this;
  while (at) {
    std::thread::id thread = at->holder;
    if (thread == std::this_thread::get_id())
      return true;
    at = nullptr;
    for (const Wait &wait : waits().list)
      if (wait.thread == thread)
        at = wait.mutex;
  }
  return false;
}

HookMutex::Answer HookMutex::lock() {
  std::thread::id own = std::this_thread::get_id();
  if (holder.load() == own)
    return Answer::IsMine;
  if (held == 0) {
    mutex.lock();
  } else if (!mutex.try_lock()) {
    Waits &all = waits();
    {
      std::lock_guard lock(all.mutex);
      if (leadsToThisThread())
        return Answer::WouldWaitForEver;
      all.list.push_back({own, this});
    }
    mutex.lock();
    std::lock_guard lock(all.mutex);
    std::erase_if(all.list,
                  [&](const Wait &wait) { return wait.thread == own; });
  }
  holder = own;
  ++held;
  return Answer::Held;
}

void HookMutex::unlock() {
  --held;
  holder = std::thread::id();
  mutex.unlock();
}

} // namespace tandem::runtime
