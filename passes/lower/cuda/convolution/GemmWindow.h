//===- GemmWindow.h - what windows see, as a factor of a product ----------===//
//
// The B of a convolution's product: lines are the pixels of all images, k the
// planes and taps; or, for the filter's gradient, lines are channels and taps,
// k the pixels of all images. An element is that of the image which the pixel
// sees at the tap, 0 where it sees padding.
//
// A position is a sum of what follows from the pixel and what follows from the
// plane and tap; whether it is inside is a bit of the pixel's, one for each
// tap. In a thread one of the two does not change from piece to piece, so that
// an element costs few instructions beside its load.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_CONVOLUTION_GEMMWINDOW_H
#define TANDEM_PASSES_LOWER_CUDA_CONVOLUTION_GEMMWINDOW_H

#include "passes/lower/common/ConvolutionProduct.h"
#include "passes/lower/cuda/products/Gemm.h"

namespace tandem::lower::cuda {

class WindowFactor : public GemmFactor {
public:
  WindowFactor(AnchorKernel &kernel, ThreadCode &code,
               const ConvolutionProduct &product);

  /// A block begins, of this group.
  void enter(Value group);

  Spot spot(Value line, Value k) override;
  Value compute(Value line, Value k) override;
  int64_t tableBytes(int64_t depth) const override;
  void fillTable(Value first, int64_t depth, int64_t threads) override;

private:
  /// A coordinate of the image, and whether it is inside.
  struct Seen {
    Value at, inside;
  };
  /// An element's image and plane in the group, and the pixel that sees it at a
  /// tap.
  struct Look {
    Value image, plane, pixel, tap;
  };
  Look look(Value line, Value k);
  Seen see(int direction, Value pixel, Value tap);
  /// What follows from a pixel, and from a plane and tap; i32.
  struct PixelPart {
    Value base, inside; ///< a bit for each tap
  };
  struct TapPart {
    Value offset, bit;
  };
  PixelPart pixelPart(Value image, Value pixel);
  TapPart tapPart(Value plane, Value tap);
  TapPart tapPart(Value k); ///< from the table
  /// Both coordinates of what is seen.
  std::pair<Seen, Seen> see(const Look &look);

  AnchorKernel &kernel;
  ThreadCode &code;
  const ConvolutionProduct &product;
  const Window2d &window;
  int64_t planes; ///< of the operand, in a group
  int64_t taps;
  Window2d::Pair seen, grid; ///< sizes of the operand's planes, of the pixels'
  llvm::SmallVector<mlir::AffineExpr> dims;
  llvm::SmallVector<int64_t> sizes;
  Operand operand;
  /// Positions and everything below them fit 32 bits.
  bool isSmall;
  /// Positions are made of parts.
  bool hasParts;
  Value table, tableFirst; ///< tap parts of k from the first on
  Value firstPlane;
};

} // namespace tandem::lower::cuda

#endif
