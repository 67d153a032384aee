//===- Driver.h - the CUDA driver, opened at run time ---------------------===//
//
// Opens the driver's library (or one that stands in for it) and looks up every
// function that the device layer uses. What is not right is said here, once:
// no library, a driver that is too old, one that does not start, no device.
// The library stays open for the rest of the process: its threads and the
// memory it manages cannot be unloaded safely.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_DRIVER_H
#define TANDEM_CUDA_DRIVER_H

#include "cuda/DriverApi.h"
#include "runtime/artifact/Status.h"
#include "runtime/device/Device.h"

#include <string>

namespace tandem::cuda {

class Driver {
public:
  /// Opens `library` ("libcuda.so.1", or a path) and starts the driver.
  /// NoDevice, with the cause, if it cannot be used.
  static Result<Driver> open(const std::string &library);

  /// The functions; none is null.
  const driver::Functions *operator->() const { return &table; }

  /// Returns the version as 1000 * major + 10 * minor.
  int version() const { return found; }
  /// Returns "13.0".
  std::string versionText() const { return text(found); }
  /// Returns the number of devices, at least one.
  int devices() const { return count; }

  /// Runs what is queued, and returns what the emulator found wrong with it (a
  /// race, an access out of bounds), or null; always null of a real driver.
  const char *complaint() const { return firstError ? firstError() : nullptr; }

  /// Tells the emulator that the host reads or writes pinned memory now, which
  /// it must have waited for; a real driver does not ask.
  void noteHostAccess(const void *data, int64_t bytes, bool isWrite) const {
    if (hostAccess)
      hostAccess(data, static_cast<size_t>(bytes), isWrite);
  }

  /// Tells the emulator that this thread looks on: that it sees work done is no
  /// wait of the program's.
  void lookOn(bool on) const {
    if (setLookingOn)
      setLookingOn(on);
  }

  /// Returns the status of `call` ("cuLaunchKernel"), which returned `result`:
  /// "cuLaunchKernel failed: CUDA_ERROR_... (the driver's words)".
  Status check(driver::CUresult result, const char *call) const;
  /// Returns "CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure)".
  std::string describe(driver::CUresult result) const;

  /// Returns "'cuda:0' (NVIDIA H200), 'cuda:1' (NVIDIA H200)".
  std::string deviceNames(runtime::DeviceKind kind) const;
  /// Returns what the environment says of which devices there are, for the end
  /// of a message; nothing if it says nothing.
  std::string visibleDevices() const;

  static std::string text(int version);

private:
  driver::Functions table;
  int found = 0, count = 0;
  // Of the emulator (Control.h):
  const char *(*firstError)() = nullptr;
  void (*hostAccess)(const void *, size_t, int) = nullptr;
  void (*setLookingOn)(int) = nullptr;
};

/// Returns what to do about an error that keeps a device from being used, for
/// the end of a message; nothing if it says all.
std::string adviceFor(driver::CUresult result);

/// True if the device cannot be used any more after such an error: every later
/// call of its context fails.
bool isFatal(driver::CUresult result);

} // namespace tandem::cuda

#endif
