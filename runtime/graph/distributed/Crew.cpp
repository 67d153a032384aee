//===- Crew.cpp - threads for what may wait -------------------------------===//
#include "runtime/graph/distributed/Crew.h"

#include <system_error>

namespace tandem::graph::distributed {

Crew::~Crew() {
  {
    std::lock_guard lock(mutex);
    isEnding = true;
  }
  filled.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

bool Crew::run(std::function<void()> work) {
  std::lock_guard lock(mutex);
  if (waiting.size() >= idle) {
    try {
      threads.emplace_back([this] { serve(); });
    } catch (const std::system_error &) {
      return false;
    }
    ++idle; // it looks at the queue before it waits
  }
  waiting.push_back(std::move(work));
  filled.notify_one();
  return true;
}

size_t Crew::size() const {
  std::lock_guard lock(mutex);
  return threads.size();
}

void Crew::serve() {
  std::unique_lock lock(mutex);
  while (true) {
    filled.wait(lock, [&] { return isEnding || !waiting.empty(); });
    if (waiting.empty())
      return;
    std::function<void()> work = std::move(waiting.front());
    waiting.pop_front();
    --idle;
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
    ++idle;
  }
}

} // namespace tandem::graph::distributed
