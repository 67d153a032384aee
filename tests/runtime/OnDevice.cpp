//===- OnDevice.cpp - puts a test program's models on a device ------------===//
//
// Linked into a test program, it puts all models on the fake device, and their
// tensors too unless TANDEM_TEST_HOST_TENSORS is defined.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/TestModel.h"

namespace tandem::test {

static const bool isSet = [] {
  testDevice() = FakeDevice::at(0).device();
#ifndef TANDEM_TEST_HOST_TENSORS
  tensorDevice() = testDevice();
#endif
  return true;
}();

} // namespace tandem::test
