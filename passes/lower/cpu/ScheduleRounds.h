//===- ScheduleRounds.h - what tuning varies of a method's schedule -------===//
//
// A search goes in rounds: each varies what the best schedule so far says about
// one side of the kernel, and the best of the round goes on. The rows of
// Methods.cpp say which rounds a method has.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_SCHEDULEROUNDS_H
#define TANDEM_PASSES_LOWER_CPU_SCHEDULEROUNDS_H

#include "passes/lower/common/ScheduleOverride.h"
#include "passes/target/CpuModel.h"

namespace tandem::lower::cpu {

using namespace lower;

/// The variants of `best`, which is not among them, that a round tries. Several
/// may come to the same code.
using Variants = llvm::SmallVector<ScheduleOverride>(
    const ScheduleOverride &best, const CpuModel &target);
using ScheduleRound = Variants *;

namespace rounds {
/// Tiles whose sums, a row of the right factor and an element of the left one
/// fill the registers.
Variants tiles;
/// The rows of items, and packing.
Variants rowsAndPacking;
/// What is a good number of tiles for one method is one of planes or pixels for
/// another.
Variants blocksAndPlanes;
/// The rows and columns of items of matrix tiles.
Variants matrixTiles;
/// The vectors of own rows of attention.
Variants ownRows;
/// The items of loops, and what they ask for ahead.
Variants elements, columns, ahead;
/// Vectors side by side.
Variants vectors;
} // namespace rounds

} // namespace tandem::lower::cpu

#endif
