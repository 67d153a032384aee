//===- KernelTimes.h - how long launches take on a device -----------------===//
#ifndef TANDEM_TOOLS_BENCH_CUDA_KERNELTIMES_H
#define TANDEM_TOOLS_BENCH_CUDA_KERNELTIMES_H

#include "runtime/model/Model.h"

#include <nlohmann/json.hpp>

namespace tandem::gpu {

/// Times whole calls of a program (as graphs) for `seconds`, and the launches
/// of `calls` calls by events, one by one. A row for each kernel and call of a
/// library: how often one call launches it, the median of a launch, and what it
/// computes and moves. Variables and inputs are made up.
Result<nlohmann::ordered_json> timeKernels(runtime::Model &model,
                                           const std::string &program,
                                           double seconds, int64_t calls);

} // namespace tandem::gpu

#endif
