//===- PlannedMemory.h - what a step allocates, as planned ----------------===//
//
// The memory of a step (StepMemory) is planned before its kernels are code:
// scratch memory of kernels, which is known afterwards and is wanted once for
// each thread, comes on top. Inputs are the caller's own, and constants of host
// code lie in the artifact.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_ARTIFACT_PLANNEDMEMORY_H
#define TANDEM_RUNTIME_ARTIFACT_PLANNEDMEMORY_H

#include "runtime/artifact/Manifest.h"

#include <algorithm>

namespace tandem::artifact {

/// What lies between the scratch memories of two threads, in bytes: a processor
/// fetches some lines ahead of what a thread walks through, and would take them
/// away from the other one, which writes them. 512 are enough on x86.
inline constexpr int64_t scratchGap = 2048;

/// The bytes that one thread needs for the kernels of `program`, with the gap
/// behind them.
inline int64_t scratchOfThread(const Manifest &manifest,
                               const Program &program) {
  int64_t bytes = 0;
  for (const Launch &launch : program.launches)
    if (launch.hasKernel())
      bytes = std::max(bytes, manifest.kernels[launch.kernel].scratchBytes);
  return bytes ? (bytes + 63) / 64 * 64 + scratchGap : 0;
}

/// What the runtime has allocated after steps of a model on the host with so
/// many threads, if `used` are the programs that run: the peak of its account.
inline int64_t plannedOnHost(const Manifest &manifest, const StepMemory &plan,
                             std::initializer_list<const Program *> used,
                             int64_t threads) {
  int64_t scratch = 0;
  for (const Program *program : used)
    scratch = std::max(scratch, scratchOfThread(manifest, *program));
  return plan.peak() - plan.inputs - plan.constants + scratch * threads;
}

} // namespace tandem::artifact

#endif
