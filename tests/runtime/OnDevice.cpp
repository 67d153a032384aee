//===- OnDevice.cpp - runs a test program's models on a device ------------===//
//
// Linked into a test program, it puts all models, and their tensors unless
// TANDEM_TEST_TENSORS is "host", on the fake device.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/TestModel.h"

#include <cstdlib>
#include <string>

namespace tandem::test {

static const bool isSet = [] {
  testDevice() = FakeDevice::at(0).device();
  const char *tensors = std::getenv("TANDEM_TEST_TENSORS");
  if (!tensors || std::string(tensors) != "host")
    tensorDevice() = testDevice();
  return true;
}();

} // namespace tandem::test
