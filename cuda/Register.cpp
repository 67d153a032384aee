//===- Register.cpp - makes GPUs known to the runtime ---------------------===//
//
// A driver is opened at the first device of its kind. One that could not be
// opened is tried again at the next: the cause may be gone by then.
//
//===----------------------------------------------------------------------===//
#include "cuda/Register.h"

#include "cuda/CudaDevice.h"
#include "runtime/comm/Plugin.h"

#include <cstdlib>
#include <filesystem>

namespace tandem::cuda {

using runtime::Backend;
using runtime::Device;
using runtime::DeviceKind;

std::string driverOf(bool isEmulated) {
  if (!isEmulated)
    return "libcuda.so.1";
  if (const char *set = std::getenv("TANDEM_CUDA_EMULATOR"); set && *set)
    return set;
  const std::string name = "libtandem-cuda-emulator.so";
  std::error_code error;
  if (std::filesystem::path own = comm::ownFolder(); !own.empty())
    for (const char *folder : {".", "../lib"})
      if (std::filesystem::path path = own / folder / name;
          std::filesystem::exists(path, error))
        return path.lexically_normal().string();
  return name;
}

LibraryFiles filesOf(bool isEmulated) {
  if (!isEmulated)
    return LibraryFiles::installed();
  // The emulator has functions of the libraries, too.
  std::string path = driverOf(true);
  return {{path}, {path}, {path}};
}

namespace {

/// The driver of one kind of devices, opened once.
struct SharedDriver {
  std::mutex mutex;
  std::shared_ptr<const Driver> driver;

  Result<std::shared_ptr<const Driver>> get(const std::string &library,
                                            const char *hint) {
    std::lock_guard<std::mutex> lock(mutex);
    if (driver)
      return driver;
    Result<Driver> opened = Driver::open(library);
    if (!opened)
      return Status(opened.status().code(), opened.status().message() + hint);
    driver = std::make_shared<const Driver>(*opened);
    return driver;
  }
};

Result<std::shared_ptr<Backend>> openOn(SharedDriver &shared,
                                        const std::string &library,
                                        Device device, LibraryFiles files,
                                        const char *hint = "") {
  Result<std::shared_ptr<const Driver>> driver = shared.get(library, hint);
  if (!driver)
    return std::move(driver).status();
  return CudaDevice::open(*driver, device, std::move(files));
}

Result<std::shared_ptr<Backend>> openCuda(int index) {
  static SharedDriver shared;
  return openOn(shared, driverOf(false), {DeviceKind::Cuda, index},
                filesOf(false));
}

Result<std::shared_ptr<Backend>> openEmulator(int index) {
  static SharedDriver shared;
  return openOn(shared, driverOf(true), {DeviceKind::CudaEmu, index},
                filesOf(true),
                "; the emulator comes with the package tandem-compiler, and "
                "'ninja -C build tandem-cuda-emulator' builds it");
}

} // namespace

void registerDevices() {
  runtime::registerBackend(DeviceKind::Cuda, openCuda);
  runtime::registerBackend(DeviceKind::CudaEmu, openEmulator);
}

} // namespace tandem::cuda
