//===- ConvolutionSides.h - a convolution from where its results are ------===//
//
// What the methods that keep padded images (PaddedImages.h) begin with: results
// are pixels of y, which look at x (conv2d, and conv2d_filter_grad, which sums
// over them), or pixels of x, which look at y (conv2d_input_grad).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_CONVOLUTION_CONVOLUTIONSIDES_H
#define TANDEM_PASSES_LOWER_CPU_CONVOLUTION_CONVOLUTIONSIDES_H

#include "passes/lower/common/ConvolutionProduct.h"
#include "passes/lower/cpu/convolution/WindowAxis.h"

namespace tandem::lower::cpu {

struct ConvolutionSides {
  ConvolutionSides(AnchorKernel &kernel, const ConvolutionProduct &product);

  WindowAxis y, x; ///< along height and width
  /// Planes that are looked at, and those of the result, of a group.
  int64_t planes, across;
  int64_t taps;
  mlir::Type type;                      ///< of the sums
  llvm::SmallVector<int64_t> seenShape; ///< of the image that is looked at
  Operand image;
};

} // namespace tandem::lower::cpu

#endif
