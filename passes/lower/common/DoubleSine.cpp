//===- DoubleSine.cpp - sin and cos of f64 without libm
//--------------------===//
//
// sin(x) is sin(r) or cos(r) up to sign, with x = k pi/2 + r, |r| <= pi/4. For
// x up to 1e5, r is found with pi/2 in three parts; beyond, from the bits of
// 2/pi that matter at x's exponent (Payne and Hanek).
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/DoubleFunctions.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using tandem::lower::Formula;

/// 64 zeros, and the bits of 2/pi.
static constexpr uint64_t kTwoOverPi[] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
    0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08};

/// Entry `i` of the table: no memory for a table that is hardly ever read.
static Formula wordOf(const Formula &i) {
  Formula word = i.bits(kTwoOverPi[0]);
  for (size_t n = 1; n < std::size(kTwoOverPi); ++n)
    word = i.is(n).select(i.bits(kTwoOverPi[n]), word);
  return word;
}

namespace {
/// r, and k mod 4 as an i64 whose upper bits may be anything.
struct Reduced {
  Formula r, k;
};
} // namespace

static Reduced reduceNear(const Formula &x) {
  Formula k = (x * 0.63661977236758134308).round();
  Formula r = k.fma(-0x1.921fb54442d18p+0, x);
  r = k.fma(-0x1.1a62633145c07p-54, r);
  r = k.fma(0x1.f1976b7ed8fbcp-110, r);
  return {r, k.toInteger()};
}

/// Of x >= 1: with x = m 2^e and m of 64 bits, the bits of 2/pi before bit
/// e - 2 contribute multiples of 4 to x 2/pi, and those after the next 192
/// contribute too little.
static Reduced reduceFar(const Formula &x) {
  Formula bits = x.asBits();
  Formula m = (bits << 11) | 0x8000000000000000;
  Formula position = ((bits >> 52) & 0x7ff).plus(-1023 - 63 - 2 + 64);
  Formula word = position >> 6, shift = position & 63;
  Formula w[] = {wordOf(word), wordOf(word.plus(1)), wordOf(word.plus(2)),
                 wordOf(word.plus(3))};
  auto funnel = [&](const Formula &a, const Formula &b) {
    return (a << shift) | ((b >> 1) >> shift.bits(63).minus(shift));
  };
  Formula high = funnel(w[0], w[1]), middle = funnel(w[1], w[2]),
          low = funnel(w[2], w[3]);
  // x 2/pi / 4 mod 1, in units of 2^-64 and 2^-128.
  Formula b = m.times(middle), extra = m.timesHigh(low);
  Formula rest = b.plus(extra);
  Formula carry = rest.isBelow(b).select(b.bits(1), b.bits(0));
  Formula a = m.times(high).plus(m.timesHigh(middle)).plus(carry);
  Formula k = a >> 62;
  Formula fraction = (a << 2) | (rest >> 62), below = rest << 2;
  // From a half on the next k is nearer.
  Formula up = fraction >> 63, flip = up.bits(0).minus(up);
  k = k.plus(up);
  fraction = fraction ^ flip;
  below = below ^ flip;
  Formula zeros = fraction.leadingZeros();
  Formula top =
      (fraction << zeros) | ((below >> 1) >> zeros.bits(63).minus(zeros));
  // In units of 2^-64 / 2^zeros: 53 bits and 11 bits, each exact in f64.
  Formula scale = (zeros.bits(1023 - 64).minus(zeros) << 52).asNumber();
  Formula main = (top >> 11 << 11 >> 1).toNumber() * 2.0;
  Formula last = (top & 0x7ff).toNumber();
  constexpr double halfPi = 0x1.921fb54442d18p+0;
  Formula product = main * halfPi;
  Formula lost = main.fma(halfPi, -product) +
                 main.fma(0x1.1a62633145c07p-54, last * halfPi);
  Formula r = (product + lost) * scale;
  return {up.is(1).select(-r, r), k};
}

Formula lower::sine(const Formula &x, bool isCosine) {
  constexpr double least = 1e5;
  Formula a = x.abs();
  Reduced near = reduceNear(a);
  Formula isFar = a > least;
  Formula r = isFar.branch([&] { return reduceFar(a).r; }, near.r);
  Formula k = isFar.branch([&] { return reduceFar(a).k; }, near.k);
  Formula z = r * r;
  Formula s =
      r.fma(z * z.polynomial({1.0 / 355687428096000, -1.0 / 1307674368000,
                              1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880,
                              -1.0 / 5040, 1.0 / 120, -1.0 / 6}),
            r);
  // 1 - z/2 rounds; what it loses is added again.
  Formula half = z * 0.5, main = half.like(1.0) - half;
  Formula lost = (half.like(1.0) - main) - half;
  Formula c =
      main + (z * z).fma(z.polynomial({1.0 / 20922789888000, -1.0 / 87178291200,
                                       1.0 / 479001600, -1.0 / 3628800,
                                       1.0 / 40320, -1.0 / 720, 1.0 / 24}),
                         lost);
  if (isCosine)
    k = k.plus(1);
  Formula y = (k & 1).is(0).select(s, c);
  y = (k & 2).is(0).select(y, -y);
  if (!isCosine) // odd
    y = (x.asBits() >> 63).is(0).select(y, -y);
  return (a < std::numeric_limits<double>::infinity())
      .select(y, std::numeric_limits<double>::quiet_NaN());
}
