//===- PixelConvolution.h - convolutions of few planes --------------------===//
//
// conv2d and conv2d_input_grad where a group has too few planes of the result
// to be the vectors of DirectConvolution.h: depthwise convolutions, the
// gradient of an image of three channels. Vectors are neighbouring pixels of
// one phase, and what they see at a tap is a vector of a padded image
// (PaddedImages.h), read where it is; the taps are broadcast. A tile is some
// planes and lines of the result and some vectors, whose sums are in registers.
// Images whose lines would not fill half of a vector, as those of 7x7 and 4x4
// at the end of a network, have shorter vectors, and what follows from their
// results runs over the lines of a plane at once.
//
// Sums are made in the order of planes and taps, in blocks of planes that
// follow from shapes and the target alone.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_CONVOLUTION_PIXELCONVOLUTION_H
#define TANDEM_PASSES_LOWER_CPU_CONVOLUTION_PIXELCONVOLUTION_H

#include "passes/lower/common/ConvolutionProduct.h"
#include "passes/lower/common/Method.h"

namespace tandem::lower::cpu {

using namespace lower;

/// The row of this method (Methods.cpp).
Fit fitPixelConvolution(AnchorKernel &kernel);
double secondsOfPixelConvolution(AnchorKernel &kernel);
int64_t scratchOfPixelConvolution(AnchorKernel &kernel);
ScheduleOverride cutPixelConvolution(AnchorKernel &kernel);
mlir::FailureOr<Work> emitPixelConvolution(AnchorKernel &kernel);

} // namespace tandem::lower::cpu

#endif
