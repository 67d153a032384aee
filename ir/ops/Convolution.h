//===- Convolution.h - the geometry of a convolution ----------------------===//
//
// One struct for conv2d and its two gradients: inference fills it from shapes
// and attributes, the reference and lowering read it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_OPS_CONVOLUTION_H
#define TANDEM_IR_OPS_CONVOLUTION_H

#include "ir/ops/Window.h"

namespace tandem {

/// x is [batch, channels, input], w is [filters, channels / groups, kernel],
/// y is [batch, filters, output].
struct Convolution2d {
  int64_t batch, channels, filters, groups;
  Window2d window;

  /// Checks the shapes and attributes against each other.
  static mlir::FailureOr<Convolution2d>
  get(infer::Loc loc, infer::Sizes x, infer::Sizes w, infer::Sizes strides,
      infer::Sizes padding, infer::Sizes dilation, int64_t groups);

  int64_t channelsPerGroup() const { return channels / groups; }
  int64_t filtersPerGroup() const { return filters / groups; }
  llvm::SmallVector<int64_t> inputShape() const {
    return {batch, channels, window.input[0], window.input[1]};
  }
  llvm::SmallVector<int64_t> filterShape() const {
    return {filters, channelsPerGroup(), window.kernel[0], window.kernel[1]};
  }
  llvm::SmallVector<int64_t> outputShape() const {
    return {batch, filters, window.output[0], window.output[1]};
  }
};

} // namespace tandem

#endif
