//===- Entry.h - what all functions of the driver begin with --------------===//
//
// The functions are defined in the files Entry*.cpp, one for each line of
// cuda/DriverFunctions.def: EntryTable.cpp does not link where one is missing.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_ENTRY_H
#define TANDEM_CUDA_EMULATOR_ENTRY_H

#include "cuda/emulator/DriverEntries.h"
#include "cuda/emulator/Machine.h"

#include <new>

namespace tandem::emulator {

/// Runs the body of a function of the driver: with the machine's lock, after
/// cuInit, and not from a host function.
template <typename Body> driver::CUresult withDriver(Body &&body) {
  Machine &m = machine();
  std::lock_guard<std::recursive_mutex> guard(m.lock);
  if (Machine::thread().inHostFunction)
    return driver::CUDA_ERROR_NOT_PERMITTED;
  if (!m.started)
    return driver::CUDA_ERROR_NOT_INITIALIZED;
  try {
    return body(m);
  } catch (const std::bad_alloc &) {
    return driver::CUDA_ERROR_OUT_OF_MEMORY;
  }
}

/// The same, with the current context's device, where that is not broken.
template <typename Body> driver::CUresult withDevice(Body &&body) {
  return withDriver([&](Machine &m) {
    Device *device = Machine::current();
    if (!device)
      return driver::CUDA_ERROR_INVALID_CONTEXT;
    return device->error ? device->error : body(m, *device);
  });
}

/// The same, with a stream.
template <typename Body>
driver::CUresult withStream(driver::CUstream handle, Body &&body) {
  return withDevice([&](Machine &m, Device &) {
    Stream *stream = m.stream(handle);
    if (!stream)
      return driver::CUDA_ERROR_INVALID_HANDLE;
    return stream->device->error ? stream->device->error : body(m, *stream);
  });
}

/// Returns the device of a context's handle, or null.
Device *deviceOf(driver::CUcontext context);
inline driver::CUcontext contextOf(Device &device) {
  return reinterpret_cast<driver::CUcontext>(&device);
}

} // namespace tandem::emulator

#endif
