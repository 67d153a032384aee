//===- ConvolutionKernel.h - kernels of convolutions, for tests -----------===//
#ifndef TANDEM_TESTS_LOWER_ANCHOR_CONVOLUTIONKERNEL_H
#define TANDEM_TESTS_LOWER_ANCHOR_CONVOLUTIONKERNEL_H

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::test {

struct Convolution {
  int64_t batch, channels, height, width, filters, kh, kw;
  int64_t stride[2] = {1, 1};
  int64_t padding[4] = {0, 0, 0, 0}; ///< top, bottom, left, right
  int64_t dilation[2] = {1, 1};
  int64_t groups = 1;
  std::string element = "f32";
  bool givesSums =
      false; ///< the gradient of the filter, of bf16 or f16, in f32

  int64_t outHeight() const {
    return (height + padding[0] + padding[1] - (kh - 1) * dilation[0] - 1) /
               stride[0] +
           1;
  }
  int64_t outWidth() const {
    return (width + padding[2] + padding[3] - (kw - 1) * dilation[1] - 1) /
               stride[1] +
           1;
  }
};

enum class ConvolutionPass { Forward, InputGrad, FilterGrad };
inline constexpr ConvolutionPass kConvolutionPasses[] = {
    ConvolutionPass::Forward, ConvolutionPass::InputGrad,
    ConvolutionPass::FilterGrad};

/// The module of a kernel (see kernelModule) of the convolution or one of its
/// gradients alone. With `hasEnd`, a residual is added and relu taken.
std::string convolutionKernel(const Convolution &convolution,
                              ConvolutionPass pass, bool hasEnd = false);

/// How many products an element is the sum of, at most.
double termsOf(const Convolution &convolution, ConvolutionPass pass);

} // namespace tandem::test

#endif
