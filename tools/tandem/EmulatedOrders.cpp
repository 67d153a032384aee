//===- EmulatedOrders.cpp - in which order the emulated GPU works ---------===//
#include "tools/tandem/EmulatedOrders.h"
#include "cuda/Register.h"
#include "cuda/emulator/Control.h"

#include <dlfcn.h>
#include <string>

using namespace tandem;

Status tandem::setEmulatedOrder(const char *order) {
  // The same library as the device's; it stays open, as that does.
  void *library = ::dlopen(cuda::driverOf(true).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *error = ::dlerror();
    return {Code::NoDevice,
            std::string("cannot open the emulator: ") + (error ? error : "")};
  }
  auto set = reinterpret_cast<decltype(&tandemEmulatorSetPolicy)>(
      ::dlsym(library, "tandemEmulatorSetPolicy"));
  if (!set || set(order) != 0)
    return Status::failed("the emulator knows no order '" + std::string(order) +
                          "'");
  return Status::success();
}
