//===- CallbackLock.cpp - one callback of a node at a time ----------------===//
#include "runtime/graph/CallbackLock.h"

#include <utility>

namespace tandem::graph {

static thread_local std::mutex *held = nullptr;

CallbackPause::CallbackPause() : paused(std::exchange(held, nullptr)) {
  if (paused)
    paused->unlock();
}

CallbackPause::~CallbackPause() {
  if (paused)
    paused->lock();
  held = paused;
}

CallbackLock::CallbackLock(std::mutex &mutex) : mutex(mutex) {
  mutex.lock();
  held = &mutex;
}

CallbackLock::~CallbackLock() {
  held = nullptr;
  mutex.unlock();
}

} // namespace tandem::graph
