//===- Background.cpp - one thing done while another is -------------------===//
#include "tools/commands/Background.h"

#include <new>
#include <system_error>
#include <utility>

namespace tandem::commands {

Background::~Background() {
  {
    std::lock_guard lock(mutex_);
    isOver_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable())
    thread_.join();
}

bool Background::start(std::function<Status()> work) {
  if (!thread_.joinable())
    try {
      thread_ = std::thread([this] { serve(); });
    } catch (const std::system_error &) {
      return false;
    }
  {
    std::lock_guard lock(mutex_);
    work_ = std::move(work);
  }
  isBusy_ = true;
  changed_.notify_all();
  return true;
}

Status Background::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !work_; });
  isBusy_ = false;
  return std::exchange(result_, Status::success());
}

void Background::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return work_ || isOver_; });
    if (isOver_)
      return;
    lock.unlock();
    Status result;
    try {
      result = work_();
    } catch (const std::bad_alloc &) {
      result = Status::failed("there is no memory for the next batch");
    }
    lock.lock();
    result_ = std::move(result);
    work_ = nullptr;
    changed_.notify_all();
  }
}

} // namespace tandem::commands
