//===- Scheduler.h - when queued operations run ---------------------------===//
//
// Deterministic: operations run on the caller's thread, when something needs
// them, in an order that the policy chooses among those that the waits allow.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_SCHEDULER_H
#define TANDEM_CUDA_EMULATOR_SCHEDULER_H

#include "cuda/emulator/Operation.h"

#include <map>
#include <random>
#include <set>
#include <string_view>

namespace tandem::emulator {

enum class Policy { Eager, Lazy, OthersFirst, Random };

class Scheduler {
public:
  /// `runner` does what an operation does.
  explicit Scheduler(std::function<void(Operation &)> runner)
      : runner(std::move(runner)) {}

  /// "eager", "lazy", "others-first", "random:SEED"; false for another text.
  bool setPolicy(std::string_view text);
  Policy policy() const { return chosen; }
  uint64_t seed() const { return randomSeed; }

  /// Takes an operation whose `waitsFor` is set, in the order of submission.
  void submit(const OperationPtr &operation);
  /// Runs until `target` is done; false where something that it waits for is
  /// held (Command::isHeld), and all else has run.
  bool need(Operation &target);
  /// Runs all but what is held, and what waits for that.
  void drain();
  bool isIdle() const { return pending.empty(); }
  static bool isHeld(const Operation &operation) {
    return operation.isHeld && operation.isHeld();
  }

private:
  void run(Operation &operation);
  bool runWhatItNeeds(Operation &target);
  bool runOthersFirst(Operation &target);
  bool runAtRandom(Operation &target);

  std::function<void(Operation &)> runner;
  Policy chosen = Policy::Eager;
  uint64_t randomSeed = 1;
  std::mt19937_64 random{1};
  std::map<uint64_t, OperationPtr> pending; ///< by order of submission
  std::set<uint64_t> ready;                 ///< those that wait for nothing
};

} // namespace tandem::emulator

#endif
