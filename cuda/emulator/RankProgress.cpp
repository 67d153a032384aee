//===- RankProgress.cpp - ranks go on by themselves -----------------------===//
#include "cuda/emulator/RankProgress.h"

#include "cuda/emulator/Machine.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <thread>

using namespace tandem::emulator;

namespace {

/// Never destroyed, as the machine.
struct Progress {
  std::condition_variable_any changed;
  std::deque<OperationPtr> waiting; ///< guarded by the machine's lock

  Progress() {
    std::thread([this] { run(); }).detach();
  }

  void run() {
    Machine &m = machine();
    std::unique_lock<std::recursive_mutex> lock(m.lock);
    for (;;) {
      while (waiting.empty())
        changed.wait(lock);
      // Its functions and memory may be gone.
      if (m.isClosing)
        return;
      while (!waiting.empty() && m.scheduler.need(*waiting.front()))
        waiting.pop_front();
      if (waiting.empty())
        continue;
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      lock.lock();
    }
  }
};

} // namespace

void tandem::emulator::keepGoing(const OperationPtr &operation) {
  static Progress *progress = new Progress;
  if (operation->done)
    return;
  progress->waiting.push_back(operation);
  progress->changed.notify_one();
}
