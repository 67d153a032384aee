//===- Window.cpp - the windows of convolution and pooling ----------------===//
#include "ir/ops/Window.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::infer;

FailureOr<Window2d> Window2d::get(Loc loc, Sizes input, Sizes kernel,
                                  Sizes strides, Sizes padding,
                                  Sizes dilation) {
  if (failed(expectList(loc, "kernel", kernel, 2, 1)) ||
      failed(expectList(loc, "strides", strides, 2, 1)) ||
      failed(expectList(loc, "padding", padding, 4, 0)) ||
      failed(expectList(loc, "dilation", dilation, 2, 1)))
    return failure();
  Window2d window;
  for (int d = 0; d < 2; ++d) {
    window.input[d] = input[d];
    window.kernel[d] = kernel[d];
    window.stride[d] = strides[d];
    window.dilation[d] = dilation[d];
    window.before[d] = padding[2 * d];
    window.after[d] = padding[2 * d + 1];
    // Each factor is at most 2^40: compare by division, then multiply.
    int64_t padded = input[d] + padding[2 * d] + padding[2 * d + 1];
    if (padded < 1 || (kernel[d] - 1) > (padded - 1) / dilation[d])
      return fail(loc, "expected the dilated kernel to fit into the padded " +
                           Twine(d ? "width" : "height") + " (" +
                           Twine(padded) + "), but got kernel " +
                           Twine(kernel[d]) + " with dilation " +
                           Twine(dilation[d]));
    window.output[d] =
        (padded - 1 - (kernel[d] - 1) * dilation[d]) / strides[d] + 1;
  }
  return window;
}
