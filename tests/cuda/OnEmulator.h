//===- OnEmulator.h - the test models, on the emulator --------------------===//
//
// Linked into a test program, OnEmulator.cpp puts the hand-written models
// (tests/runtime/TestModel.h) and their tensors on "cuda:0", which is the
// device layer over the driver emulator. The kernels are those of
// TestKernels.c, as twins. Under the policy "lazy", unless
// TANDEM_EMULATOR_POLICY says otherwise; what the emulator finds wrong fails
// the test.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TESTS_CUDA_ONEMULATOR_H
#define TANDEM_TESTS_CUDA_ONEMULATOR_H

#include "cuda/Driver.h"
#include "runtime/device/Backend.h"

namespace tandem::test {

/// The device that the models are on.
inline constexpr runtime::Device emulated{runtime::DeviceKind::Cuda, 0};

/// Makes the driver start with this many devices, before any test. Returns
/// true.
bool startWithDevices(int count);

/// The driver under it, with the device's context current on this thread.
const cuda::Driver &emulatedDriver();

} // namespace tandem::test

#endif
