//===- RankProgress.h - ranks go on by themselves -------------------------===//
//
// A GPU runs what is queued although nobody waits for it, and another rank may
// wait for what it sends. So a thread runs, a few thousand times a second, what
// this process's collectives need, whatever the policy is.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_RANKPROGRESS_H
#define TANDEM_CUDA_EMULATOR_RANKPROGRESS_H

#include "cuda/emulator/Operation.h"

namespace tandem::emulator {

/// The machine's lock is held.
void keepGoing(const OperationPtr &operation);

} // namespace tandem::emulator

#endif
