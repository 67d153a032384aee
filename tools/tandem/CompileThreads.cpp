//===- CompileThreads.cpp - the threads that passes run on ----------------===//
#include "tools/tandem/CompileThreads.h"

#include <algorithm>
#include <system_error>

using namespace tandem::commands;
using llvm::ThreadPoolTaskGroup;

CompileThreads::CompileThreads(unsigned threads) {
  try {
    while (workers_.size() + 1 < threads)
      workers_.emplace_back([this] { work(); });
  } catch (const std::system_error &) {
    // The system gives no more.
  }
}

CompileThreads::~CompileThreads() {
  finish(nullptr);
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread &worker : workers_)
    worker.join();
}

void CompileThreads::wait() { finish(nullptr); }

void CompileThreads::wait(ThreadPoolTaskGroup &group) { finish(&group); }

unsigned CompileThreads::getMaxConcurrency() const {
  return static_cast<unsigned>(workers_.size()) + 1;
}

void CompileThreads::asyncEnqueue(llvm::unique_function<void()> run,
                                  ThreadPoolTaskGroup *group) {
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(run), group});
  }
  changed_.notify_all();
}

void CompileThreads::runFront(std::unique_lock<std::mutex> &lock,
                              std::list<Task>::iterator task) {
  running_.splice(running_.end(), waiting_, task);
  lock.unlock();
  task->run();
  lock.lock();
  running_.erase(task);
  changed_.notify_all();
}

void CompileThreads::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty())
      return;
    runFront(lock, waiting_.begin());
  }
}

void CompileThreads::finish(ThreadPoolTaskGroup *group) {
  auto isOfGroup = [group](const Task &task) {
    return !group || task.group == group;
  };
  std::unique_lock lock(mutex_);
  while (true) {
    auto next = std::find_if(waiting_.begin(), waiting_.end(), isOfGroup);
    if (next != waiting_.end())
      runFront(lock, next);
    else if (std::any_of(running_.begin(), running_.end(), isOfGroup))
      changed_.wait(lock);
    else
      return;
  }
}
