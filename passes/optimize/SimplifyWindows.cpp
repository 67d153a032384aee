//===- SimplifyWindows.cpp - windows that are whole images ----------------===//
//
// A convolution whose one window is the whole image is a product of matrices,
// and so are its gradients: the layers that squeeze and excite planes are
// convolutions of images of one pixel, whose vectors of pixels would have one
// element. An average over the whole image is a sum, and its gradient a
// broadcast, which other ops take into their loops.
//
// Sums are made in another order than a convolution's. An average of a narrow
// type is computed in f32 and rounded once, as that of a window is.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/optimize/ReplaceTagged.h"

#include "ir/Ops.h"
#include "ir/ops/Convolution.h"
#include "ir/ops/Scalar.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tandem {
#define GEN_PASS_DEF_SIMPLIFYWINDOWS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// Whether there is one window, and what it sees is the image.
static bool isWhole(const Window2d &window) {
  for (int d : {0, 1})
    if (window.output[d] != 1 || window.before[d] != 0 ||
        window.after[d] != 0 || window.kernel[d] != window.input[d] ||
        (window.kernel[d] > 1 && window.dilation[d] != 1))
      return false;
  return true;
}

/// As a matrix with a row for each index of the first dimension.
static Expr rows(const Expr &x) {
  return x.reshape({x.dim(0), llvm::product_of(x.shape().drop_front())});
}

static Expr product(const Expr &a, const Expr &b, bool transposeA,
                    bool transposeB, StringAttr precision) {
  return a.wrap(MatmulOp::create(*a.builder, a.loc, a, b, transposeA,
                                 transposeB, precision));
}

static Expr widened(const Expr &x) {
  return x.cast(scalar::computeType(x.type().getElementType()));
}

static double count(const Window2d &window) {
  return static_cast<double>(window.kernel[0] * window.kernel[1]);
}

/// What the op is as a formula; none if its windows are no whole images.
static Expr formulaOf(Operation *op, OpBuilder &builder) {
  auto expr = [&](Value value) { return Expr(builder, op->getLoc(), value); };
  auto isProduct = [](const Convolution2d &conv) {
    return conv.groups == 1 && isWhole(conv.window) && conv.batch > 0;
  };
  return llvm::TypeSwitch<Operation *, Expr>(op)
      .Case([&](Conv2dOp conv) {
        if (!isProduct(conv.getConvolution()))
          return Expr();
        Expr y = product(rows(expr(conv.getX())), rows(expr(conv.getW())),
                         false, true, conv.getPrecisionAttr());
        return y.reshape(conv.getY().getType().getShape());
      })
      .Case([&](Conv2dInputGradOp conv) {
        if (!isProduct(conv.getConvolution()))
          return Expr();
        Expr dx = product(rows(expr(conv.getDy())), rows(expr(conv.getW())),
                          false, false, conv.getPrecisionAttr());
        return dx.reshape(conv.getShape());
      })
      .Case([&](Conv2dFilterGradOp conv) {
        // Of narrow operands, the sum would not be f32.
        if (!isProduct(conv.getConvolution()) ||
            conv.getY().getType().getElementType() !=
                conv.getX().getType().getElementType())
          return Expr();
        Expr dw = product(rows(expr(conv.getDy())), rows(expr(conv.getX())),
                          true, false, conv.getPrecisionAttr());
        return dw.reshape(conv.getShape());
      })
      .Case([&](AvgPool2dOp pool) {
        if (!isWhole(pool.getWindow()))
          return Expr();
        Expr x = expr(pool.getX());
        Expr mean = widened(x).reduceSum({2, 3}) / count(pool.getWindow());
        return mean.cast(x.type().getElementType())
            .reshape(pool.getY().getType().getShape());
      })
      .Case([&](AvgPool2dGradOp pool) {
        if (!isWhole(pool.getWindow()))
          return Expr();
        Expr dy = expr(pool.getDy());
        Expr share = widened(dy.reshape(dy.shape().take_front(2))) /
                     count(pool.getWindow());
        return share.cast(dy.type().getElementType())
            .broadcastTo(pool.getShape(), {0, 1});
      })
      .Default([](Operation *) { return Expr(); });
}

namespace {

struct SimplifyWindows : tandem::impl::SimplifyWindowsBase<SimplifyWindows> {
  void runOnOperation() final {
    SmallVector<Operation *> windows;
    getOperation().walk([&](Operation *op) {
      if (isa<Conv2dOp, Conv2dInputGradOp, Conv2dFilterGradOp, AvgPool2dOp,
              AvgPool2dGradOp>(op))
        windows.push_back(op);
    });
    for (Operation *op : windows)
      simplified += replaceTagged(
          op, [&](OpBuilder &builder) { return formulaOf(op, builder); });
  }
};

} // namespace
