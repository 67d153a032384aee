//===- ScheduleSearch.h - which schedules of a kernel are worth trying ----===//
//
// A search goes in rounds: each varies what the best schedule so far says about
// one side of the kernel, and the best of the round goes on.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_SCHEDULESEARCH_H
#define TANDEM_PASSES_LOWER_CPU_SCHEDULESEARCH_H

#include "passes/lower/cpu/AskedSchedule.h"

namespace tandem::cpu {

/// The variants of `best`, which is not among them, that a round tries. Several
/// may come to the same code.
using ScheduleRound = llvm::SmallVector<AskedSchedule> (*)(
    const AskedSchedule &best, const CpuModel &target);

/// The rounds for a kernel: none if it has no choice.
llvm::SmallVector<ScheduleRound> scheduleRounds(KernelOp kernel);

} // namespace tandem::cpu

#endif
