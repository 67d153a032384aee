//===- DepthwiseFilterGrad.h - gradients of filters of one plane ----------===//
#ifndef TANDEM_PASSES_LOWER_CPU_DEPTHWISEFILTERGRAD_H
#define TANDEM_PASSES_LOWER_CPU_DEPTHWISEFILTERGRAD_H

#include "passes/lower/cpu/KernelEmitter.h"

#include <optional>

namespace tandem::cpu {

/// The kernel of a conv2d_filter_grad whose groups have one plane of x and one
/// of dy each, whose windows are a pixel apart along lines. Nothing, and no
/// code, for others.
std::optional<Work> emitDepthwiseFilterGrad(AnchorKernel &kernel);

} // namespace tandem::cpu

#endif
