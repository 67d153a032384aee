//===- Streams.h - the rows on streams, timed on a device -----------------===//
#ifndef TANDEM_TOOLS_BENCH_CUDA_STREAMS_H
#define TANDEM_TOOLS_BENCH_CUDA_STREAMS_H

#include "runtime/device/Backend.h"

#include <nlohmann/json.hpp>

namespace tandem::gpu {

/// Returns a row for each thing that gradients on streams have to do, and how
/// many failed.
Result<nlohmann::ordered_json> checkStreams(runtime::Device device);

} // namespace tandem::gpu

#endif
