//===- Driver.cpp - the CUDA driver, opened at run time -------------------===//
//
// A driver that is too old lacks functions; so the version is asked for first,
// and a missing function is reported only of a driver that should have it.
//
//===----------------------------------------------------------------------===//
#include "cuda/Driver.h"
#include "cuda/Symbols.h"

#include <cstdlib>
#include <dlfcn.h>

namespace tandem::cuda {

using namespace driver;

std::string Driver::text(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

Result<Driver> Driver::open(const std::string &library) {
  // Never closed: see the header.
  void *handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *why = ::dlerror();
    return Status::noDevice("no CUDA driver: cannot open '" + library +
                            "': " + (why ? why : "unknown reason"));
  }
  Driver opened;
  std::string missing;
  find(handle, "cuDriverGetVersion", opened.table.driverGetVersion, missing);
  if (!missing.empty())
    return Status::noDevice("no CUDA driver: '" + library + "' has no " +
                            missing);
  if (CUresult result = opened.table.driverGetVersion(&opened.found))
    return Status::noDevice("no CUDA driver: cuDriverGetVersion of '" +
                            library + "' returned error " +
                            std::to_string(result));
  if (opened.found < driver::oldestVersion)
    return Status::noDevice("the driver is too old: expected one for CUDA " +
                            text(driver::oldestVersion) +
                            " (525 or later) but got one for CUDA " +
                            text(opened.found) + " ('" + library +
                            "'); a later driver runs all that this one does");
#define TANDEM_DRIVER_FUNCTION(member, symbol, parameters)                     \
  find(handle, #symbol, opened.table.member, missing);
#include "cuda/DriverFunctions.def"
#undef TANDEM_DRIVER_FUNCTION
  if (!missing.empty())
    return Status::noDevice("the driver for CUDA " + opened.versionText() +
                            " ('" + library + "') has no " + missing);

  opened.firstError = reinterpret_cast<const char *(*)()>(
      ::dlsym(handle, "tandemEmulatorFirstError"));
  opened.hostAccess = reinterpret_cast<void (*)(const void *, size_t, int)>(
      ::dlsym(handle, "tandemEmulatorHostAccess"));
  opened.setLookingOn =
      reinterpret_cast<void (*)(int)>(::dlsym(handle, "tandemEmulatorLookOn"));

  CUresult result = opened->init(0);
  if (result == CUDA_ERROR_NO_DEVICE)
    return Status::noDevice("no CUDA device: the driver for CUDA " +
                            opened.versionText() + " finds none" +
                            opened.visibleDevices());
  if (result)
    return Status::noDevice("the CUDA driver does not start: cuInit returned " +
                            opened.describe(result) + adviceFor(result));
  if (CUresult counted = opened->deviceGetCount(&opened.count))
    return Status::noDevice("cuDeviceGetCount returned " +
                            opened.describe(counted));
  if (opened.count < 1)
    return Status::noDevice("no CUDA device: the driver for CUDA " +
                            opened.versionText() + " finds none" +
                            opened.visibleDevices());
  return Result<Driver>(std::move(opened));
}

std::string Driver::describe(CUresult result) const {
  const char *name = nullptr, *words = nullptr;
  if (table.getErrorName(result, &name) || !name)
    return "error " + std::to_string(result);
  std::string described = name;
  if (!table.getErrorString(result, &words) && words)
    described += " (" + std::string(words) + ")";
  return described;
}

std::string Driver::deviceNames(runtime::DeviceKind kind) const {
  std::string names;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    char name[256] = {};
    names += (i ? ", '" : "'") + toString(runtime::Device{kind, i}) + "'";
    if (!table.deviceGet(&device, i) &&
        !table.deviceGetName(name, sizeof(name) - 1, device))
      names += " (" + std::string(name) + ")";
  }
  return names;
}

std::string Driver::visibleDevices() const {
  const char *visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!visible)
    return "";
  return "; CUDA_VISIBLE_DEVICES is '" + std::string(visible) +
         "', which hides all others and gives these their numbers";
}

Status Driver::check(CUresult result, const char *call) const {
  if (result == CUDA_SUCCESS)
    return Status::success();
  return Status::failed(std::string(call) + " failed: " + describe(result));
}

std::string adviceFor(CUresult result) {
  switch (result) {
  case CUDA_ERROR_STUB_LIBRARY:
    return "; the library is the toolkit's, to link with: the driver's own "
           "comes with the driver";
  case CUDA_ERROR_DEVICE_UNAVAILABLE:
    return "; another process has the device for itself, or too many have it "
           "(its compute mode: nvidia-smi -q -d COMPUTE)";
  case CUDA_ERROR_DEVICE_NOT_LICENSED:
    return "; the virtual GPU has no license";
  case CUDA_ERROR_SYSTEM_NOT_READY:
    return "; the service that connects the GPUs does not run "
           "(nvidia-fabricmanager)";
  case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    return "; the system's kernel runs another driver than the library is of: "
           "restart after an update";
  case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    return "; the library is of a compatibility package (cuda-compat), which "
           "this GPU is not for: use the driver's own";
  default:
    return "";
  }
}

bool isFatal(CUresult result) {
  switch (result) {
  case CUDA_ERROR_DEINITIALIZED:
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_NVLINK_UNCORRECTABLE:
  case CUDA_ERROR_CONTAINED:
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_CONTEXT_IS_DESTROYED:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
  case CUDA_ERROR_TENSOR_MEMORY_LEAK:
  case CUDA_ERROR_MPS_CLIENT_TERMINATED:
  case CUDA_ERROR_EXTERNAL_DEVICE:
  case CUDA_ERROR_UNKNOWN:
    return true;
  default:
    return false;
  }
}

} // namespace tandem::cuda
