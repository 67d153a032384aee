//===- Action.h - what a launch does in a call ----------------------------===//
//
// Where all cotangents are defined, launches run their kernels; else some are
// skipped, and some only copy or zero the buffer that they write.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_DEVICE_ACTION_H
#define TANDEM_RUNTIME_DEVICE_ACTION_H

#include <cstdint>

namespace tandem::runtime {

/// What a launch does in a call: not negative is the position of the buffer
/// that is copied to the one that it writes.
using Action = int32_t;
inline constexpr Action writeZeros = -1, runKernel = -2, skipLaunch = -3;

} // namespace tandem::runtime

#endif
