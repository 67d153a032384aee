//===- Functions.h - what kernels call ------------------------------------===//
//
// One C++ function per entry of runtime/artifact/EmulatedFunctions.def, by the
// calling convention of runtime/artifact/Emulation.h. They run on the fiber of
// the thread that calls them.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_KERNEL_FUNCTIONS_H
#define TANDEM_CUDA_EMULATOR_KERNEL_FUNCTIONS_H

#include "cuda/emulator/kernel/Block.h"

#include <string_view>

namespace tandem::emulator::kernel {

/// Returns the function called `name`, or null.
void *findFunction(std::string_view name);

inline Thread &threadOf(artifact::EmulatedThread *thread) {
  return *static_cast<Thread *>(thread);
}

namespace functions {

using T = artifact::EmulatedThread *;
using u32 = uint32_t;
using u64 = uint64_t;

// Checks.
void checkAccess(T, const void *pointer, u32 bytes, u32 flags, u32 site);
void checkRange(T, const void *pointer, u64 bytes, u32 flags, u32 site);
void checkLocal(T, const void *pointer, u32 bytes, const void *variable,
                u64 variableBytes, u32 site);
void trap(T);

// Barriers.
void barrierSyncAll(T, u32 id);
void barrierSyncAlignedAll(T, u32 id);
void barrierSyncCount(T, u32 id, u32 count);
void barrierSyncAlignedCount(T, u32 id, u32 count);
void barrierArriveCount(T, u32 id, u32 count);
u32 barrierRedPopcAll(T, u32 id, u32 value);
u32 barrierRedAndAll(T, u32 id, u32 value);
u32 barrierRedOrAll(T, u32 id, u32 value);
void barWarpSync(T, u32 mask);

// Warp collectives.
u32 shflBfly(T, u32 mask, u32 value, u32 b, u32 c);
u32 shflIdx(T, u32 mask, u32 value, u32 b, u32 c);
u32 shflUp(T, u32 mask, u32 value, u32 b, u32 c);
u32 shflDown(T, u32 mask, u32 value, u32 b, u32 c);
void shflBflyP(T, u32 *out, u32 mask, u32 value, u32 b, u32 c);
void shflIdxP(T, u32 *out, u32 mask, u32 value, u32 b, u32 c);
void shflUpP(T, u32 *out, u32 mask, u32 value, u32 b, u32 c);
void shflDownP(T, u32 *out, u32 mask, u32 value, u32 b, u32 c);
u32 voteAll(T, u32 mask, u32 value);
u32 voteAny(T, u32 mask, u32 value);
u32 voteUni(T, u32 mask, u32 value);
u32 voteBallot(T, u32 mask, u32 value);
u32 matchAny32(T, u32 mask, u32 value);
u32 matchAny64(T, u32 mask, u64 value);
void matchAll32(T, u32 *out, u32 mask, u32 value);
void matchAll64(T, u32 *out, u32 mask, u64 value);
u32 reduxAdd(T, u32 value, u32 mask);
u32 reduxUmin(T, u32 value, u32 mask);
u32 reduxUmax(T, u32 value, u32 mask);
u32 reduxMin(T, u32 value, u32 mask);
u32 reduxMax(T, u32 value, u32 mask);
u32 reduxAnd(T, u32 value, u32 mask);
u32 reduxOr(T, u32 value, u32 mask);
u32 reduxXor(T, u32 value, u32 mask);
void electSync(T, u32 *out, u32 mask);
u32 activeMask(T);
void nanosleep(T, u32 time);
u64 threadClock(T);

} // namespace functions
} // namespace tandem::emulator::kernel

#endif
