//===- Background.h - one thing done while another is ---------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_BACKGROUND_H
#define TANDEM_TOOLS_COMMANDS_BACKGROUND_H

#include "runtime/artifact/Status.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tandem::commands {

/// A thread that does one piece of work after the other. One thread calls it.
class Background {
public:
  Background() = default;
  Background(const Background &) = delete;
  ~Background();

  /// Begins `work`, after wait() for what was begun before. Returns false where
  /// the system gives no thread: nothing was begun.
  bool start(std::function<Status()> work);
  /// Waits for the work, and returns what came of it.
  Status wait();
  bool isBusy() const { return isBusy_; }

private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<Status()> work_; ///< until it is done
  Status result_;
  bool isOver_ = false;
  bool isBusy_ = false; ///< for the caller: start() without wait()
  std::thread thread_;
};

} // namespace tandem::commands

#endif
