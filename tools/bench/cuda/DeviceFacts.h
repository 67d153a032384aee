//===- DeviceFacts.h - what a device is, and how fast it copies -----------===//
#ifndef TANDEM_TOOLS_BENCH_CUDA_DEVICEFACTS_H
#define TANDEM_TOOLS_BENCH_CUDA_DEVICEFACTS_H

#include "runtime/device/Backend.h"

#include <nlohmann/json.hpp>

namespace tandem::gpu {

/// Returns the device's description and bandwidths, in 1e9 bytes per second:
/// of copies on it (reads and writes counted), of fills, and of copies from and
/// to pinned memory of the host. Those of an emulated device mean nothing.
Result<nlohmann::ordered_json> deviceFacts(runtime::Device device);

} // namespace tandem::gpu

#endif
