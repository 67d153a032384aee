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
#include <span>
#include <vector>

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

/// The bytes of an allocation of its own: whole lines of a cache, at least one.
inline int64_t allocatedBytes(int64_t bytes) {
  return std::max<int64_t>((bytes + 63) / 64, 1) * 64;
}
inline int64_t allocatedBytes(const Slot &slot) {
  return allocatedBytes(tensorBytes(slot.dtype, slot.shape).value_or(0));
}

/// What calls of `programs` share: an arena, and scratch memory for so many
/// threads.
inline int64_t sharedOnHost(const Manifest &manifest,
                            std::span<const Program *const> programs,
                            int64_t threads) {
  int64_t arena = 0, scratch = 0;
  for (const Program *program : programs) {
    arena = std::max(arena, program->arenaBytes);
    scratch = std::max(scratch, scratchOfThread(manifest, *program));
  }
  return (arena ? allocatedBytes(arena) : 0) + scratch * threads;
}

/// What a program keeps for results that no caller takes: updates that are not
/// made in place, and outputs that `isTaken` says no of.
template <typename IsTaken>
int64_t keptResults(const Program &program, IsTaken isTaken) {
  int64_t bytes = 0;
  for (const Slot &slot : program.results)
    if (slot.role == Role::Update ? !slot.inPlace
                                  : slot.role == Role::Output && !isTaken(slot))
      bytes += allocatedBytes(slot);
  return bytes;
}

/// The programs that one step calls: `step`, else `forward` and `backward`;
/// none where it has not both of these.
inline std::vector<const Program *> programsOfStep(const Manifest &manifest) {
  if (const Program *step = manifest.findProgram("step"))
    return {step};
  const Program *forward = manifest.findProgram("forward"),
                *backward = manifest.findProgram("backward");
  if (forward && backward)
    return {forward, backward};
  return {};
}

/// The bytes that one thread needs for the kernels of a step.
inline int64_t scratchOfStep(const Manifest &manifest) {
  int64_t bytes = 0;
  for (const Program *program : programsOfStep(manifest))
    bytes = std::max(bytes, scratchOfThread(manifest, *program));
  return bytes;
}

/// What the runtime has allocated after updates of a model on the host with so
/// many threads, the peak of its account. `programs` are those that ran: the
/// programs of a step that `plan` is of, and `accumulate` where several batches
/// are one update.
inline int64_t plannedOnHost(const Manifest &manifest, const StepMemory &plan,
                             std::span<const Program *const> programs,
                             int64_t threads) {
  int64_t bytes = plan.peak() - plan.inputs - plan.constants - plan.arena +
                  sharedOnHost(manifest, programs, threads);
  for (const Program *program : programs)
    if (program->name == "accumulate")
      bytes += keptResults(*program, [](const Slot &) { return false; });
  return bytes;
}

} // namespace tandem::artifact

#endif
