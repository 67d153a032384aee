//===- Driver.cpp - the CUDA driver, opened at run time -------------------===//
//
// A driver that is too old lacks functions; so the version is asked for first,
// and a missing function is reported only of a driver that should have it.
//
//===----------------------------------------------------------------------===//
#include "cuda/Driver.h"
#include "cuda/Symbols.h"

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
    return Status::noDevice("expected a driver for CUDA " +
                            text(driver::oldestVersion) +
                            " or later but got one for CUDA " +
                            text(opened.found) + " ('" + library + "')");
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
                            opened.versionText() + " finds none");
  if (result)
    return Status::noDevice("the CUDA driver does not start: cuInit returned " +
                            opened.describe(result));
  if (CUresult counted = opened->deviceGetCount(&opened.count))
    return Status::noDevice("cuDeviceGetCount returned " +
                            opened.describe(counted));
  if (opened.count < 1)
    return Status::noDevice("no CUDA device: the driver for CUDA " +
                            opened.versionText() + " finds none");
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

Status Driver::check(CUresult result, const char *call) const {
  if (result == CUDA_SUCCESS)
    return Status::success();
  return Status::failed(std::string(call) + " failed: " + describe(result));
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
