//===- PlaneConvolution.h - depthwise convolutions of small images --------===//
//
// conv2d and conv2d_input_grad of groups of one plane, whose results have lines
// as long as those of what they look at. Then a tap sees the plane at a
// distance that is the same for all pixels, and a vector of neighbouring
// pixels, over the ends of lines, sees a vector of the plane where it is: what
// is outside of the image is masked. So images of 4x4 and 7x7 fill vectors, and
// nothing is padded.
//
// Sums are made in the order of taps.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_CONVOLUTION_PLANECONVOLUTION_H
#define TANDEM_PASSES_LOWER_CPU_CONVOLUTION_PLANECONVOLUTION_H

#include "passes/lower/common/ScheduleOverride.h"
#include "passes/lower/cpu/convolution/PixelResults.h"

#include "llvm/Support/MathExtras.h"

namespace tandem::lower::cpu {

/// How the method of pixels (PixelConvolution.h) emits such a kernel.
class PlaneConvolution : PixelResults {
public:
  PlaneConvolution(AnchorKernel &kernel, const Product &product)
      : PixelResults(kernel, product) {}
  /// Whether it is one whose code, which is written out, is not too long.
  bool fits() const;
  /// Of whole vectors of pixels.
  double multiplyAdds() const;
  ScheduleOverride numbers() const;
  void takeScratch();
  Work emit();

private:
  int64_t pixels() const { return y.results * x.results; }
  int64_t vectors() const { return llvm::divideCeil(pixels(), lanes); }
  Code::Values multiply(Value from, int64_t first, int64_t count);
  void keep(int64_t vector, Value sums);

  Value sums; ///< of a plane, where the result takes no vectors
};

} // namespace tandem::lower::cpu

#endif
