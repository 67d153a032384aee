//===- FmaLoops.h - loops that do nothing but multiply and add ------------===//
//
// The arithmetic roof of a machine is what these loops reach. Each is compiled
// for the vectors that it uses, whatever the rest of the program is compiled
// for; which of them may run is found when the program does.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_FMALOOPS_H
#define TANDEM_TOOLS_COMMANDS_FMALOOPS_H

#include "runtime/artifact/DType.h"

#include <cstdint>

namespace tandem::commands {

struct FmaLoop {
  const char *name; ///< of the instructions: "avx512f"
  double flops;     ///< of one iteration
  void (*run)(int64_t iterations);
};

/// Returns the widest loop that this processor runs in which factors are of
/// type `dtype`, or of f32 where there is none or that is faster.
FmaLoop widestFmaLoop(artifact::DType dtype);

} // namespace tandem::commands

#endif
