//===- Saved.h - what must be saved, and what is --------------------------===//
#ifndef TANDEM_TOOLS_BENCH_PARTITION_SAVED_H
#define TANDEM_TOOLS_BENCH_PARTITION_SAVED_H

#include "runtime/artifact/Manifest.h"
#include "tools/bench/workloads/Workloads.h"

#include <optional>

namespace tandem::bench {

/// The bytes that a training step of the workload has to keep between forward
/// and backward if no product and no convolution runs twice, and everything
/// else may: a goal, counted from the model's sizes. What each workload keeps
/// is said at its formula. Nothing for a workload without one.
std::optional<int64_t> mustSave(const workloads::Workload &workload);

/// The bytes between a manifest's forward and backward. What lies in an output
/// takes none.
int64_t savedBytes(const artifact::Manifest &manifest);

/// The ops that the backward runs again, and those of them that are products,
/// convolutions or attention.
struct Repeats {
  int64_t ops = 0, contractions = 0;
};
Repeats repeatedOps(const artifact::Manifest &manifest);

} // namespace tandem::bench

#endif
