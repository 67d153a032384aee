//===- CpuFeatures.h - what this processor can do -------------------------===//
//
// Tells which of the instruction set features that an artifact's code needs
// this processor (and the operating system, for wide registers) does not have.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_DEVICE_CPUFEATURES_H
#define TANDEM_RUNTIME_DEVICE_CPUFEATURES_H

#include <string>
#include <vector>

namespace tandem::runtime {

/// Returns those of `features` (LLVM's names, "avx2") that are not available
/// here; a name that this runtime does not know counts as not available.
/// Matrix tiles ("amx-tile") a process has to ask the system for, on Linux:
/// this does, and from then on all threads of the process may use them.
std::vector<std::string>
missingCpuFeatures(const std::vector<std::string> &features);

/// Returns what keeps code that needs `features` from running here, as a
/// sentence without its end: that the processor lacks some, or that the system
/// does not let the process use them, and why. Empty if nothing does. Asks for
/// tiles as missingCpuFeatures does.
std::string cpuProblem(const std::vector<std::string> &features);

} // namespace tandem::runtime

#endif
