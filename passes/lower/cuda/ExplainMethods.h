//===- ExplainMethods.h - what CUDA's tables say of a kernel --------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_EXPLAINMETHODS_H
#define TANDEM_PASSES_LOWER_CUDA_EXPLAINMETHODS_H

#include "passes/lower/common/ExplainMethods.h"

namespace tandem::lower::cuda {

/// Of a kernel at `plan`.
std::optional<lower::ExplainedKernel> explainMethods(KernelOp kernel);

} // namespace tandem::lower::cuda

#endif
