//===- Polynomials.h - functions of f32 without libm ----------------------===//
//
// exp, log, log1p, tanh, erf, sin, cos and sigmoid of f32, scalars or vectors,
// as arithmetic without divisions, so that loops of them are vectorized.
// Greatest errors, in units in the last place
// (tests/lower/FunctionErrorsTest.cpp measures them):
//
//     exp 1.1    log 0.9    log1p 1.5    tanh 1.8    erf 1.8    sigmoid 2.5
//
// denormal arguments and results included. NaN stays NaN, zeros keep their
// sign, and infinities give what they give in libm. sin and cos are off by
// 1.5e-7 at most.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_POLYNOMIALS_H
#define TANDEM_PASSES_LOWER_COMMON_POLYNOMIALS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

namespace tandem::lower {

/// Beyond it, what is left of an angle after its quarters of a turn is less and
/// less exact: sin and cos are made of integers there, which takes longer.
inline constexpr double kFarAngle = 2e5;

/// Of a math.exp: 0 in place of what f32 holds as denormal numbers. Some
/// processors take a hundred times as long for products of these.
inline constexpr auto kDropsDenormals = mlir::arith::FastMathFlags::afn;

struct FloatOptions {
  /// The target multiplies by a power of two, and rounds once, in one step.
  bool hasScale = false;
  /// In fewer steps: exp is off by 3 + |x| / 4 units, and what is below 2^-126
  /// is 0; tanh by 2.5; and 1 / (1 + e^y) by 6 where |y| is below 8.
  bool isFast = false;
};

/// Patterns of sigmoid alone, which is 1 / (1 + e^-x) until then: they come
/// before those of e^x.
void populateLogistic(mlir::RewritePatternSet &patterns, FloatOptions options);

void populatePolynomials(mlir::RewritePatternSet &patterns,
                         FloatOptions options = {});

} // namespace tandem::lower

#endif
