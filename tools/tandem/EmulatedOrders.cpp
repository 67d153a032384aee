//===- EmulatedOrders.cpp - in which order the emulated GPU works ---------===//
#include "tools/tandem/EmulatedOrders.h"
#include "cuda/Register.h"
#include "cuda/emulator/Control.h"

#include <dlfcn.h>
#include <string>

using namespace tandem;

/// The same library as the device's; it stays open, as that does.
static Result<void *> emulator() {
  void *library = ::dlopen(cuda::driverOf(true).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library)
    return library;
  const char *error = ::dlerror();
  return Status(Code::NoDevice, std::string("cannot open the emulator: ") +
                                    (error ? error : ""));
}

Status tandem::resetEmulator() {
  auto library = emulator();
  if (!library)
    return library.status();
  auto reset = reinterpret_cast<decltype(&tandemEmulatorReset)>(
      ::dlsym(*library, "tandemEmulatorReset"));
  if (!reset)
    return Status::failed("the emulator has no reset");
  reset();
  return Status::success();
}

Status tandem::setEmulatedOrder(const char *order) {
  auto library = emulator();
  if (!library)
    return library.status();
  auto set = reinterpret_cast<decltype(&tandemEmulatorSetPolicy)>(
      ::dlsym(*library, "tandemEmulatorSetPolicy"));
  if (!set || set(order) != 0)
    return Status::failed("the emulator knows no order '" + std::string(order) +
                          "'");
  return Status::success();
}
