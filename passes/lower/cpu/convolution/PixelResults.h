//===- PixelResults.h - kernels whose vectors are pixels of results -------===//
//
// What PixelConvolution and PlaneConvolution share: the filter that they read,
// and where sums of neighbouring pixels go. The kernel's result takes whole
// vectors of them where nothing follows from the sums, or what does can be
// finished in registers; else they are kept, and finished pixel by pixel.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_CONVOLUTION_PIXELRESULTS_H
#define TANDEM_PASSES_LOWER_CPU_CONVOLUTION_PIXELRESULTS_H

#include "passes/lower/common/KernelBody.h"
#include "passes/lower/common/VectorFinish.h"
#include "passes/lower/cpu/convolution/ConvolutionSides.h"

namespace tandem::lower::cpu {

class PixelResults : protected ConvolutionSides {
protected:
  using Product = ConvolutionProduct;
  using Value = mlir::Value;

  /// Binds the filter. Vectors are the processor's, until `lanes` is set.
  PixelResults(AnchorKernel &kernel, const Product &product);

  /// Binds the result. `areWhole`: vectors have sums of all planes.
  void bindResults(bool areWhole);
  bool takesVectors() const { return output || ends; }
  /// A tap of the item's group, widened and in all lanes; null is 0.
  Value tap(Value row, Value plane, int64_t tapY, int64_t tapX);
  /// Stores the lanes of `sums` that are on in `mask`, or all, at `pixel` and
  /// those behind it of a row's plane.
  void storeVector(Value sums, Value row, Value pixel, Value mask);
  /// Finishes `count` pixels of a row's plane from `first` on, one after the
  /// other, whose sums are in `sums` from 0 on.
  void finishPixels(Value sums, Value row, Value first, Value count);

  AnchorKernel &kernel;
  Code &code;
  const Product &product;
  const Convolution2d &conv;
  int64_t lanes;
  Operand filter; ///< [group][row][plane][tap along y][tap along x]
  std::optional<Operand> output;
  std::optional<VectorFinish> ends; ///< where results are not the sums
  Value atImage, atGroup;           ///< of the item
};

} // namespace tandem::lower::cpu

#endif
