//===- Polynomials.cpp - functions of f32 without libm --------------------===//
//
// exp is written here: MLIR's own saturates where exp overflows, and never
// reaches 0. Accuracy: 1.3 units in the last place, denormals included.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/Polynomials.h"
#include "passes/lower/common/FloatCode.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using tandem::lower::FloatCode;

namespace {
/// exp(x) = 2^k e^r with x = k log(2) + r and |r| <= log(2) / 2.
struct LowerExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    if (!getElementTypeOrSelf(x).isF32())
      return failure();
    using P = arith::CmpFPredicate;
    FloatCode w(rewriter, op.getLoc(), x.getType());
    // Bounded, so that it is an integer of 32 bits whatever x is.
    Value k = w.round(w.mul(x, w.number(1.44269504088896341)));
    Value low = w.number(-150.0), high = w.number(130.0);
    k = w.select(P::OGT, k, low, k, low);
    k = w.select(P::OLT, k, high, k, high);
    Value r = w.fma(k, w.number(-0.693359375), x);
    r = w.fma(k, w.number(2.12194440e-4), r);
    Value p = w.number(1.9875691500e-4);
    for (double c : {1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
                     1.6666665459e-1, 5.0000001201e-1, 1.0, 1.0})
      p = w.fma(p, r, w.number(c));
    // In two steps, since 2^k alone may be too large or too small for f32.
    Value exponent = w.toInteger(k), half = w.half(exponent);
    Value y = w.mul(w.mul(p, w.powerOfTwo(half)),
                    w.powerOfTwo(w.sub(exponent, half)));
    y = w.select(P::OGT, x, w.number(89.0),
                 w.number(std::numeric_limits<double>::infinity()), y);
    y = w.select(P::OLT, x, w.number(-104.0), w.number(0.0), y);
    rewriter.replaceOp(op, y);
    return success();
  }
};
} // namespace

void lower::populatePolynomials(RewritePatternSet &patterns) {
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
    return llvm::is_contained(ArrayRef<StringRef>{"math.log", "math.log1p",
                                                  "math.tanh", "math.erf",
                                                  "math.sin", "math.cos"},
                              name);
  });
  patterns.add<LowerExp>(patterns.getContext());
}
