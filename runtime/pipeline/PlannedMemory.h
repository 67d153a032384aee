//===- PlannedMemory.h - what a rank of a pipeline allocates, as planned --===//
#ifndef TANDEM_RUNTIME_PIPELINE_PLANNEDMEMORY_H
#define TANDEM_RUNTIME_PIPELINE_PLANNEDMEMORY_H

#include "runtime/artifact/Manifest.h"

namespace tandem::pipeline {

struct PlannedMemory {
  int64_t bytes = 0; ///< the peak: Pipeline::peak()
  /// Of these, what further batches under way take beside the first one.
  int64_t inFlight = 0;
};

/// Returns what the ranks at place `rank` along `pipe` have allocated on the
/// host after updates of `batches` batches, each with so many threads. `stages`
/// are all of one compilation, in their order. It plays what a rank does step
/// by step, as Pipeline::train does it.
Result<PlannedMemory>
plannedMemory(const std::vector<artifact::Manifest> &stages, int64_t rank,
              int64_t batches, int64_t threads);

} // namespace tandem::pipeline

#endif
