//===- ConvolutionProduct.h - convolutions as implicit matrix products ----===//
//
// With P pixels of an image, R taps of the kernel, and all of it per group:
//   conv2d              C(filter, pixel of y)     = w(filter, k) x(k, pixel),
//                       k = (channel, tap)
//   conv2d_input_grad   C(channel, pixel of x)    = w(k, channel) dy(k, pixel),
//                       k = (filter, tap)
//   conv2d_filter_grad  C(filter, (channel, tap)) = dy(filter, k) x(k, ...),
//                       k = (image, pixel of y)
// The dimensions are image, group, m, n, k0, k1 of the product. B is what
// windows see: gathered, unless they are single pixels side by side.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_CONVOLUTIONPRODUCT_H
#define TANDEM_PASSES_LOWER_COMMON_CONVOLUTIONPRODUCT_H

#include "passes/lower/common/Anchor.h"

#include "ir/ops/Convolution.h"

namespace tandem::lower {

/// The convolution that one of the three ops belongs to.
Convolution2d convolutionOf(mlir::Operation *op);

/// One of the three ops as a product.
struct ConvolutionProduct {
  enum Dim : unsigned { Image, Group, M, N, K0, K1, Dims };
  /// What n and k are.
  enum Lanes {
    OutputPixels, ///< n a pixel of y; k (channel, tap) of x
    InputPixels,  ///< n a pixel of x; k (filter, tap) of dy
    Taps,         ///< n (channel, tap); k (image of x, pixel of y)
  };

  static ConvolutionProduct of(mlir::Operation *op);

  Convolution2d conv;
  llvm::SmallVector<int64_t> sizes; ///< of the dimensions
  unsigned aNumber, bNumber;        ///< which operand is which factor
  /// Indices of the factors and the result; B's where windows are pixels.
  llvm::SmallVector<mlir::AffineExpr> a, b, y;
  Lanes lanes;
  int64_t lineLength; ///< the last dimension of the result

  /// Windows of one pixel, side by side, without padding.
  bool isPointwise() const;
  /// The result's index of row m and n = line * lineLength + column.
  llvm::SmallVector<mlir::Value> index(Code &code, mlir::Value image,
                                       mlir::Value group, mlir::Value m,
                                       mlir::Value line,
                                       mlir::Value column) const;
};

} // namespace tandem::lower

#endif
