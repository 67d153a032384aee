//===- CpuFeatures.h - what this processor can do -------------------------===//
//
// Tells which of the instruction set features that an artifact's code needs
// this processor (and the operating system, for wide registers) does not have.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_CPUFEATURES_H
#define TANDEM_RUNTIME_CPUFEATURES_H

#include <string>
#include <vector>

namespace tandem::runtime {

/// Returns those of `features` (LLVM's names, "avx2") that are not available
/// here; a name that this runtime does not know counts as not available.
std::vector<std::string>
missingCpuFeatures(const std::vector<std::string> &features);

} // namespace tandem::runtime

#endif
