//===- Window.h - the windows of convolution and pooling ------------------===//
//
// The geometry that conv2d, its gradients and the pooling ops share, checked
// once from their attributes, for inference, the reference and lowering. Entry
// 0 of each pair is for height, entry 1 for width.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_OPS_WINDOW_H
#define TANDEM_IR_OPS_WINDOW_H

#include "ir/ops/Inference.h"

#include <array>

namespace tandem {

struct Window2d {
  using Pair = std::array<int64_t, 2>;
  Pair input, output, kernel, stride, dilation;
  Pair before; ///< padding above and left
  Pair after;  ///< padding below and right

  /// Checks the attributes and derives `output`. `padding` is [top, bottom,
  /// left, right].
  static mlir::FailureOr<Window2d>
  get(infer::Loc loc, infer::Sizes input, infer::Sizes kernel,
      infer::Sizes strides, infer::Sizes padding, infer::Sizes dilation);

  /// The input position in direction `d` that window `out` sees at `tap`; may
  /// be outside.
  int64_t at(int d, int64_t out, int64_t tap) const {
    return out * stride[d] - before[d] + tap * dilation[d];
  }
  bool inside(int d, int64_t position) const {
    return position >= 0 && position < input[d];
  }

  /// Calls `body(tap, position)` for every tap of window (oh, ow) that is
  /// inside the input, in row-major order; both are row-major.
  template <typename Body>
  void forEachTap(int64_t oh, int64_t ow, Body body) const {
    for (int64_t kh = 0; kh < kernel[0]; ++kh)
      for (int64_t kw = 0; kw < kernel[1]; ++kw) {
        int64_t h = at(0, oh, kh), w = at(1, ow, kw);
        if (inside(0, h) && inside(1, w))
          body(kh * kernel[1] + kw, h * input[1] + w);
      }
  }
};

} // namespace tandem

#endif
