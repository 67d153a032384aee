//===- CompileThreads.h - the threads that passes run on ------------------===//
//
// MLIR's context takes a pool of threads. LLVM's own starts a thread when there
// is work for it, and ends the process where the system gives none (a limit of
// processes, a container without memory). This one asks for all of them when
// it is made and goes on with those it gets, also with none: who waits for
// tasks works on them, too.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_COMPILETHREADS_H
#define TANDEM_TOOLS_TANDEM_COMPILETHREADS_H

#include "llvm/Support/ThreadPool.h"

#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem::commands {

class CompileThreads : public llvm::ThreadPoolInterface {
public:
  /// For work on so many threads, of which the caller's is one.
  explicit CompileThreads(unsigned threads);
  ~CompileThreads() override;

  void wait() override;
  void wait(llvm::ThreadPoolTaskGroup &group) override;
  unsigned getMaxConcurrency() const override;

private:
  struct Task {
    llvm::unique_function<void()> run;
    llvm::ThreadPoolTaskGroup *group;
  };

  void asyncEnqueue(llvm::unique_function<void()> run,
                    llvm::ThreadPoolTaskGroup *group) override;
  /// Runs tasks until there is none of `group` (null: none at all), neither
  /// waiting nor running.
  void finish(llvm::ThreadPoolTaskGroup *group);
  void work();
  void runFront(std::unique_lock<std::mutex> &lock,
                std::list<Task>::iterator task);

  std::mutex mutex_;
  std::condition_variable changed_; ///< a task came or ended, or all ends
  std::list<Task> waiting_, running_;
  std::vector<std::thread> workers_;
  bool ends_ = false;
};

} // namespace tandem::commands

#endif
