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

/// 2^x = 2^k 2^r with x = k + r and |r| <= 1/2; 2^r is a polynomial of least
/// relative error (2e-9) among those that are 1 at 0.
Value lower::emitExp2(OpBuilder &b, Location loc, Value x) {
  using P = arith::CmpFPredicate;
  FloatCode w(b, loc, x.getType());
  Value low = w.number(-125), high = w.number(128);
  x = w.select(P::OLT, high, x, high, x);
  // Added to 1.5 * 2^23, x is rounded to an integer, in the last bits.
  Value shifted = w.addFloat(x, w.number(0x1.8p23));
  Value r = w.subFloat(x, w.subFloat(shifted, w.number(0x1.8p23)));
  Value p = w.number(1.5353348320e-4);
  for (double c : {1.3398885986e-3, 9.6184374785e-3, 5.5503324448e-2,
                   2.4022647912e-1, 6.9314720287e-1, 1.0})
    p = w.fma(p, r, w.number(c));
  Value power =
      w.ofBits(w.add(w.left(w.bitsOf(shifted), 23), w.integer(127 << 23)));
  return w.select(P::OLT, x, low, w.number(0), w.mul(p, power));
}

void lower::populatePolynomials(RewritePatternSet &patterns) {
  populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
    return llvm::is_contained(ArrayRef<StringRef>{"math.log", "math.log1p",
                                                  "math.tanh", "math.erf",
                                                  "math.sin", "math.cos"},
                              name);
  });
  patterns.add<LowerExp>(patterns.getContext());
}
