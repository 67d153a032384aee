//===- ScheduleRounds.h - what tuning varies of a method's schedule -------===//
//
// A search goes in rounds: each varies what the best schedule so far says about
// one side of the kernel, and the best of the round goes on. The rows of
// Methods.cpp say which rounds a method has.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_SCHEDULEROUNDS_H
#define TANDEM_PASSES_LOWER_CPU_SCHEDULEROUNDS_H

#include "passes/lower/cpu/AskedSchedule.h"

namespace tandem::cpu {

/// The variants of `best`, which is not among them, that a round tries. Several
/// may come to the same code.
using ScheduleRound = llvm::SmallVector<AskedSchedule> (*)(
    const AskedSchedule &best, const CpuModel &target);

namespace rounds {
/// Tiles whose sums, a row of the right factor and an element of the left one
/// fill the registers.
llvm::SmallVector<AskedSchedule> tiles(const AskedSchedule &best,
                                       const CpuModel &target);
/// The rows of items, and packing.
llvm::SmallVector<AskedSchedule> rowsAndPacking(const AskedSchedule &best,
                                                const CpuModel &target);
/// What is a good number of tiles for one method is one of planes or pixels for
/// another.
llvm::SmallVector<AskedSchedule> blocksAndPlanes(const AskedSchedule &best,
                                                 const CpuModel &target);
/// The rows and columns of items of matrix tiles.
llvm::SmallVector<AskedSchedule> matrixTiles(const AskedSchedule &best,
                                             const CpuModel &target);
/// The vectors of own rows of attention.
llvm::SmallVector<AskedSchedule> ownRows(const AskedSchedule &best,
                                         const CpuModel &target);
/// The items of loops, and what they ask for ahead.
llvm::SmallVector<AskedSchedule> elements(const AskedSchedule &best,
                                          const CpuModel &target);
llvm::SmallVector<AskedSchedule> columns(const AskedSchedule &best,
                                         const CpuModel &target);
llvm::SmallVector<AskedSchedule> ahead(const AskedSchedule &best,
                                       const CpuModel &target);
/// Vectors side by side.
llvm::SmallVector<AskedSchedule> vectors(const AskedSchedule &best,
                                         const CpuModel &target);
} // namespace rounds

} // namespace tandem::cpu

#endif
