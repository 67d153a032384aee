//===- KernelCommands.h - what gpu-check does on a device -----------------===//
#ifndef TANDEM_TOOLS_BENCH_CUDA_KERNELCOMMANDS_H
#define TANDEM_TOOLS_BENCH_CUDA_KERNELCOMMANDS_H

#include "tools/commands/Commands.h"

#include <vector>

namespace tandem::gpu {

/// `device`, `streams`, `expect`, `kernels` and `time`.
std::vector<commands::Command> kernelCommands();

} // namespace tandem::gpu

#endif
