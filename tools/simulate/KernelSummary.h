//===- KernelSummary.h - the types in a kernel's summary ------------------===//
#ifndef TANDEM_TOOLS_SIMULATE_KERNELSUMMARY_H
#define TANDEM_TOOLS_SIMULATE_KERNELSUMMARY_H

#include "runtime/artifact/DType.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::simulate {

/// A tensor of "matmul 64x1024xbf16 1024x64xbf16 -> 64x64".
struct SummaryType {
  std::vector<int64_t> shape;
  artifact::DType dtype = artifact::DType::F32;

  double elements() const;
  double bytes() const;
};

/// What computes most in a kernel (artifact::Kernel::summary).
struct KernelSummary {
  std::string op;
  std::vector<SummaryType> operands, results;
};

/// Takes what can be read; a summary is for people, and may be anything.
KernelSummary readSummary(std::string_view text);

} // namespace tandem::simulate

#endif
