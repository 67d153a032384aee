//===- CallbackLock.cpp - one callback of a node at a time ----------------===//
#include "runtime/graph/CallbackLock.h"

#include <utility>

namespace tandem::graph {

using runtime::HookMutex;

static thread_local HookMutex *held = nullptr;

static Status waitsForEver() {
  return Status::usage(
      "a callback would wait for ever: it holds a model or a function that "
      "another thread waits for, which holds what the callback needs");
}

CallbackPause::CallbackPause() : paused(std::exchange(held, nullptr)) {
  if (paused)
    paused->unlock();
}

Status CallbackPause::end() {
  HookMutex *mutex = std::exchange(paused, nullptr);
  if (!mutex)
    return Status::success();
  if (mutex->lock() != HookMutex::Answer::Held)
    return waitsForEver();
  held = mutex;
  return Status::success();
}

CallbackLock::CallbackLock(HookMutex &mutex)
    : mutex(mutex), isHeld(mutex.lock() == HookMutex::Answer::Held) {
  if (isHeld)
    held = &mutex;
}

CallbackLock::~CallbackLock() {
  if (held != &mutex) // not held, or not any more
    return;
  held = nullptr;
  mutex.unlock();
}

Status CallbackLock::status() const {
  return isHeld ? Status::success() : waitsForEver();
}

} // namespace tandem::graph
