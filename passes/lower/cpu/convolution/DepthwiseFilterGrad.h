//===- DepthwiseFilterGrad.h - gradients of filters of one plane ----------===//
#ifndef TANDEM_PASSES_LOWER_CPU_CONVOLUTION_DEPTHWISEFILTERGRAD_H
#define TANDEM_PASSES_LOWER_CPU_CONVOLUTION_DEPTHWISEFILTERGRAD_H

#include "passes/lower/common/Method.h"
#include "passes/lower/cpu/KernelEmitter.h"

namespace tandem::lower::cpu {

/// The row of conv2d_filter_grad whose groups have one plane of x and one of dy
/// each, whose windows are a pixel or two apart along lines.
Fit fitDepthwiseFilterGrad(AnchorKernel &kernel);
double secondsOfDepthwiseFilterGrad(AnchorKernel &kernel);
int64_t scratchOfDepthwiseFilterGrad(AnchorKernel &kernel);
mlir::FailureOr<Work> emitDepthwiseFilterGrad(AnchorKernel &kernel);

} // namespace tandem::lower::cpu

#endif
