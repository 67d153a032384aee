//===- ConvolutionSides.cpp - a convolution from where its results are ----===//
#include "passes/lower/cpu/convolution/ConvolutionSides.h"
#include "passes/lower/common/Indices.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;
using namespace tandem::lower::cpu;

static WindowAxis axisOf(const ConvolutionProduct &product, int d) {
  const Window2d &window = product.conv.window;
  return product.lanes == ConvolutionProduct::InputPixels
             ? WindowAxis::ofInput(window, d)
             : WindowAxis::ofOutput(window, d);
}

ConvolutionSides::ConvolutionSides(AnchorKernel &kernel,
                                   const ConvolutionProduct &product)
    : y(axisOf(product, 0)), x(axisOf(product, 1)),
      across(product.sizes[ConvolutionProduct::M]),
      taps(product.conv.window.kernel[0] * product.conv.window.kernel[1]),
      type(scalar::computeType(
          getElementTypeOrSelf(kernel.anchor->getResult(0).getType()))) {
  const Convolution2d &conv = product.conv;
  bool isOfX = product.lanes == ConvolutionProduct::InputPixels;
  planes = isOfX ? conv.filtersPerGroup() : conv.channelsPerGroup();
  seenShape = isOfX ? conv.outputShape() : conv.inputShape();
  image = kernel.operand(product.bNumber,
                         dimensions(kernel.anchor->getContext(), 4), seenShape);
}
