//===- RegisteredMemory.h - what copies registered host memory ------------===//
//
// Host memory of the caller's that a driver knows, and the copies from and to
// there that devices were given: their end, of whichever device, is waited for
// before the driver forgets the memory. To wait for each of them by its event
// disturbs no capture of a graph, which to wait for the whole device does.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_REGISTEREDMEMORY_H
#define TANDEM_CUDA_REGISTEREDMEMORY_H

#include "cuda/Context.h"
#include "cuda/Events.h"

#include <cstdint>

namespace tandem::cuda {

/// Notes that the driver knows the memory from now on.
void addRegistered(const Driver &driver, const void *data, int64_t bytes);

/// Notes that a copy from or to `data`, pinned memory of the host, was queued
/// on `stream` of the device; nothing for what is not registered, and for a
/// stream that captures. Needs a Scope of the context around it.
Status noteCopy(const Context &context, EventPool &events, const void *data,
                driver::CUstream stream);

/// Returns when the copies from and to the memory have run, and forgets it.
void finishRegistered(const Driver &driver, const void *data);

/// Forgets the copies of a device that ends.
void forgetCopies(const Context &context);

} // namespace tandem::cuda

#endif
