//===- WindowPack.h - what windows see, as the panels of a product --------===//
//
// Packs the B of a convolution's product (Convolution.cpp): the elements of an
// image that lines of pixels or of taps see, and 0 where they see padding.
// Lanes that see neighbours are loaded together, others gathered; what is seen
// of an image that has no strides is computed element by element.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_CONVOLUTION_WINDOWPACK_H
#define TANDEM_PASSES_LOWER_CPU_CONVOLUTION_WINDOWPACK_H

#include "passes/lower/common/ConvolutionProduct.h"
#include "passes/lower/cpu/products/Gemm.h"

namespace tandem::lower::cpu {

using namespace lower;

class WindowPack {
public:
  using Product = ConvolutionProduct;
  using Lanes = Product::Lanes;

  /// Of operand `number` of the anchor: [images, planes, height, width].
  WindowPack(AnchorKernel &kernel, unsigned number, const Convolution2d &conv,
             Lanes lanes);
  /// An item of this image and group begins.
  void enter(mlir::Value image, mlir::Value group);
  /// Whether lines of pixels can be read as vectors where lanes are taps: those
  /// of single pixels with strides.
  bool isTransposed() const;
  /// Makes the windows the product's B.
  void bindB(Gemm &gemm);

private:
  using Value = mlir::Value;
  /// A coordinate of the image, and whether it is inside.
  struct Seen {
    Value at, inside;
  };
  void packPixels(const GemmPanel &panel);
  void packTaps(const GemmPanel &panel);
  void packTransposed(const GemmPanel &panel);
  void packElements(const GemmPanel &panel);

  /// Calls `body(plane, row)` for each plane that the panel's k has, with the
  /// panel's row of the plane and `tap`.
  void forEachPlane(const GemmPanel &panel, Value tap,
                    llvm::function_ref<void(Value plane, Value row)> body);
  /// What a pixel sees at a tap in direction `d`; index or i32 vectors.
  Seen look(int d, Value pixel, Value tap);
  /// The position in the image's memref of (image, plane, y, x).
  Value position(Value image, Value plane, Value y, Value x);
  /// Whether offsets within the planes of a group fit 32 bits.
  bool isSmall() const;

  AnchorKernel &kernel;
  Code &code;
  unsigned number;
  const Window2d &window;
  Lanes lanes;
  int64_t planes; ///< of the operand, in a group
  int64_t taps;
  Window2d::Pair seen, grid; ///< sizes of the operand's planes, of the pixels'
  llvm::SmallVector<mlir::AffineExpr> dims;
  llvm::SmallVector<int64_t> sizes;
  Operand operand;
  mlir::Type type; ///< of the sums
  int64_t N = 0;
  bool tapIsK1 = false; ///< else there is one tap, and k1 is the plane
  Value atImage, firstPlane;
};

} // namespace tandem::lower::cpu

#endif
