//===- Allocations.cpp - giving memory out and taking it back -------------===//
#include "cuda/emulator/Machine.h"

using namespace tandem::emulator;
using namespace tandem::cuda::driver;

CUresult Machine::allocate(Device &device, size_t bytes, MemoryKind kind,
                           Pool *pool, Allocation *&result) {
  result = nullptr;
  if (!bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (kind == MemoryKind::Device) {
    ++report.counts.allocations;
    if (failures.strikes(Failures::Allocate))
      return CUDA_ERROR_OUT_OF_MEMORY;
    auto fits = [&] {
      return bytes <= traits.memory && device.used <= traits.memory - bytes &&
             (!pool || !pool->maxBytes || bytes + pool->used <= pool->maxBytes);
    };
    // Memory whose free is queued is there once that has run.
    if (!fits())
      scheduler.drain();
    if (!fits())
      return CUDA_ERROR_OUT_OF_MEMORY;
  } else {
    ++report.counts.hostAllocations;
  }
  result = memory.allocate(bytes, kind, &device);
  if (!result)
    return CUDA_ERROR_OUT_OF_MEMORY;
  shadow.forget(result->begin, result->end());
  result->pool = pool;
  if (kind == MemoryKind::Device)
    device.used += bytes;
  if (pool) {
    pool->used += bytes;
    pool->usedHigh = std::max(pool->usedHigh, pool->used);
  }
  return CUDA_SUCCESS;
}

void Machine::release(Allocation &allocation) {
  if (allocation.kind == MemoryKind::Device)
    allocation.device->used -= allocation.bytes;
  if (allocation.pool)
    allocation.pool->used -= allocation.bytes;
  memory.release(allocation);
}

void Machine::hostAccess(uintptr_t begin, size_t bytes, bool isWrite,
                         const char *writes) {
  scheduler.drain();
  const Origin host{"the host", "", writes, 0};
  shadow.check(begin, begin + bytes, isWrite, hostClock,
               [&](const Origin &earlier, uintptr_t at, bool wrote) {
                 report.race(host, isWrite, earlier, wrote,
                             memory.describe(at));
               });
}
