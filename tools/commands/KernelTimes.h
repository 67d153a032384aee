//===- KernelTimes.h - how fast each kernel of a program is ---------------===//
//
// Times every launch inside of whole calls, so that each finds the caches as it
// does in use, and compares it with what the machine could do (Roofs.h).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_KERNELTIMES_H
#define TANDEM_TOOLS_COMMANDS_KERNELTIMES_H

#include "tools/commands/Timing.h"

namespace tandem::commands {

/// Calls the program with `inputs`, and prints a table of its kernels, those
/// first that lose most time against the roof; or a JSON object. Unsupported on
/// a device.
Status benchKernels(const Repeats &repeats, runtime::Model &model,
                    const artifact::Program &program,
                    std::vector<NamedTensor> &inputs, bool asJson);

} // namespace tandem::commands

#endif
