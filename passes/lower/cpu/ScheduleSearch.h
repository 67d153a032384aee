//===- ScheduleSearch.h - which schedules of a kernel are worth trying ----===//
//
// First the methods that compute the kernel, where its table lets tuning choose
// (Methods.cpp); then, round by round, what the row of the best of them says.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_SCHEDULESEARCH_H
#define TANDEM_PASSES_LOWER_CPU_SCHEDULESEARCH_H

#include "passes/lower/cpu/ScheduleRounds.h"

#include <map>

namespace tandem::lower::cpu {

class ScheduleSearch {
public:
  /// Asks the kernel's table, whatever the kernel's `schedule` says.
  explicit ScheduleSearch(KernelOp kernel);

  /// How many rounds there are at most; 0 if the kernel has no choice. Round 0
  /// is that of methods.
  size_t rounds() const;
  /// The variants of `best`, which is not among them; none where the method has
  /// no such round.
  llvm::SmallVector<ScheduleOverride>
  variants(size_t round, const ScheduleOverride &best) const;
  /// The names of the methods that round 0 tries; empty without a choice.
  llvm::ArrayRef<ScheduleMethod> methods() const { return tried; }

private:
  CpuModel target;
  llvm::SmallVector<ScheduleMethod> tried;
  std::map<ScheduleMethod, llvm::ArrayRef<ScheduleRound>> roundsOf;
  std::optional<ScheduleMethod> chosen;
};

} // namespace tandem::lower::cpu

#endif
