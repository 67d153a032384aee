//===- Math.cpp - PTX's mathematics ---------------------------------------===//
//
// Approximations are computed with the host's library, so they are at least as
// good as the GPU's. Roundings other than to nearest are made from the exact
// error of the nearest one.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/kernel/Functions.h"
#include "cuda/emulator/kernel/SmallFloats.h"

#include <cmath>
#include <limits>

namespace tandem::emulator::kernel::functions {

/// Denormals become zeros of their sign.
static float flush(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min()
             ? std::copysign(0.0f, x)
             : x;
}

float ex2(float x) { return std::exp2(x); }
float ex2Ftz(float x) { return flush(std::exp2(flush(x))); }
float lg2(float x) { return std::log2(x); }
float lg2Ftz(float x) { return std::log2(flush(x)); }
float sine(float x) { return std::sin(x); }
float sineFtz(float x) { return flush(std::sin(flush(x))); }
float cosine(float x) { return std::cos(x); }
float cosineFtz(float x) { return flush(std::cos(flush(x))); }
float hyperbolicTangent(float x) { return std::tanh(x); }
float reciprocal(float x) { return 1.0f / x; }
float reciprocalFtz(float x) { return flush(1.0f / flush(x)); }
double reciprocalDouble(double x) { return 1.0 / x; }
float reciprocalRoot(float x) { return 1.0f / std::sqrt(x); }
float reciprocalRootFtz(float x) { return 1.0f / std::sqrt(flush(x)); }
double reciprocalRootDouble(double x) { return 1.0 / std::sqrt(x); }
float squareRoot(float x) { return std::sqrt(x); }
float squareRootFtz(float x) { return std::sqrt(flush(x)); }
double squareRootDouble(double x) { return std::sqrt(x); }
float quotient(float x, float y) { return x / y; }
float quotientFtz(float x, float y) { return flush(flush(x) / flush(y)); }
double quotientDouble(double x, double y) { return x / y; }
float sum(float x, float y) { return x + y; }
double sumDouble(double x, double y) { return x + y; }
float product(float x, float y) { return x * y; }
double productDouble(double x, double y) { return x * y; }
float fusedRn(float x, float y, float z) { return std::fma(x, y, z); }
double fusedRnDouble(double x, double y, double z) { return std::fma(x, y, z); }

/// x * y + z - nearest, its sign exact: the product of two floats is a double,
/// and the sum's own error is added.
static double errorOf(float x, float y, float z, float nearest) {
  double product = static_cast<double>(x) * y, addend = z;
  double sum = product + addend;
  double back = sum - product;
  double low = (product - (sum - back)) + (addend - back);
  return (sum - nearest) + low;
}
float fusedRm(float x, float y, float z) {
  float result = std::fma(x, y, z);
  return std::isfinite(result) && errorOf(x, y, z, result) < 0
             ? std::nextafter(result, -INFINITY)
             : result;
}
float fusedRp(float x, float y, float z) {
  float result = std::fma(x, y, z);
  return std::isfinite(result) && errorOf(x, y, z, result) > 0
             ? std::nextafter(result, INFINITY)
             : result;
}

// A NaN saturates to zero.
float saturate(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
float saturateFtz(float x) { return saturate(flush(x)); }
double saturateDouble(double x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
float absoluteFtz(float x) { return std::fabs(flush(x)); }

// min and max give the other operand for a NaN; .nan ones give NaN.
static float leastOf(float x, float y) {
  if (x == y)
    return std::signbit(x) ? x : y;
  return std::fmin(x, y);
}
static float greatestOf(float x, float y) {
  if (x == y)
    return std::signbit(x) ? y : x;
  return std::fmax(x, y);
}
static const float kNan = std::bit_cast<float>(0x7fffffffu);
float least(float x, float y) { return leastOf(x, y); }
float leastFtz(float x, float y) { return leastOf(flush(x), flush(y)); }
float leastNan(float x, float y) {
  return x != x || y != y ? kNan : leastOf(x, y);
}
double leastDouble(double x, double y) { return std::fmin(x, y); }
float greatest(float x, float y) { return greatestOf(x, y); }
float greatestFtz(float x, float y) { return greatestOf(flush(x), flush(y)); }
float greatestNan(float x, float y) {
  return x != x || y != y ? kNan : greatestOf(x, y);
}
double greatestDouble(double x, double y) { return std::fmax(x, y); }

float down(float x) { return std::floor(x); }
double downDouble(double x) { return std::floor(x); }
float up(float x) { return std::ceil(x); }
double upDouble(double x) { return std::ceil(x); }
float toward(float x) { return std::trunc(x); }
double towardDouble(double x) { return std::trunc(x); }
float nearest(float x) { return std::nearbyint(x); }
double nearestDouble(double x) { return std::nearbyint(x); }

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// An integral value as an integer; out of range the nearest, a NaN zero.
template <typename Integer> static Integer clampTo(float x) {
  using Limits = std::numeric_limits<Integer>;
  if (x != x)
    return 0;
  if (x >= std::ldexp(1.0f, Limits::digits))
    return Limits::max();
  if (x < static_cast<float>(Limits::min()))
    return Limits::min();
  return static_cast<Integer>(x);
}

u32 toIntRn(float x) {
  return static_cast<u32>(clampTo<int32_t>(std::nearbyint(x)));
}
u32 toIntRz(float x) {
  return static_cast<u32>(clampTo<int32_t>(std::trunc(x)));
}
u32 toIntRm(float x) {
  return static_cast<u32>(clampTo<int32_t>(std::floor(x)));
}
u32 toIntRp(float x) {
  return static_cast<u32>(clampTo<int32_t>(std::ceil(x)));
}
u32 toUnsignedRn(float x) { return clampTo<u32>(std::nearbyint(x)); }
u32 toUnsignedRz(float x) { return clampTo<u32>(std::trunc(x)); }
u64 toLongRn(float x) {
  return static_cast<u64>(clampTo<int64_t>(std::nearbyint(x)));
}
u64 toLongRz(float x) {
  return static_cast<u64>(clampTo<int64_t>(std::trunc(x)));
}
u64 toUnsignedLongRz(float x) { return clampTo<u64>(std::trunc(x)); }

u32 toTf32Rna(float x) { return toTf32Away(x); }
u32 toTf32Rn(float x) {
  auto bits = std::bit_cast<u32>(x);
  if (x != x)
    return 0x7fffffff;
  return (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
}

static float relu(float x) { return x < 0 ? 0.0f : x; }
static u32 truncated(float x) {
  return x != x ? 0x7fff : std::bit_cast<u32>(x) >> 16;
}
u32 toBFloatRn(float x) { return toBFloat(x); }
u32 toBFloatRnRelu(float x) { return toBFloat(relu(x)); }
u32 toBFloatRz(float x) { return truncated(x); }
u32 toBFloatPairRn(float high, float low) {
  return toBFloat(high) << 16 | toBFloat(low);
}
u32 toBFloatPairRnRelu(float high, float low) {
  return toBFloat(relu(high)) << 16 | toBFloat(relu(low));
}
u32 toBFloatPairRz(float high, float low) {
  return truncated(high) << 16 | truncated(low);
}
u32 toHalfRn(float x) { return toHalf(x); }
u32 toHalfPairRn(float high, float low) {
  return toHalf(high) << 16 | toHalf(low);
}
u32 toHalfPairRnRelu(float high, float low) {
  return toHalf(relu(high)) << 16 | toHalf(relu(low));
}
u32 toE4M3Pair(float high, float low) {
  return toE4M3(high) << 8 | toE4M3(low);
}
u32 toE4M3PairRelu(float high, float low) {
  return toE4M3Pair(relu(high), relu(low));
}
u32 toE5M2Pair(float high, float low) {
  return toE5M2(high) << 8 | toE5M2(low);
}
u32 toE5M2PairRelu(float high, float low) {
  return toE5M2Pair(relu(high), relu(low));
}
u32 halfToE4M3Pair(u32 pair) {
  return toE4M3Pair(fromHalf(pair >> 16), fromHalf(pair));
}
u32 halfToE5M2Pair(u32 pair) {
  return toE5M2Pair(fromHalf(pair >> 16), fromHalf(pair));
}
u32 fromE4M3Pair(u32 pair) {
  return toHalf(fromE4M3(pair >> 8)) << 16 | toHalf(fromE4M3(pair));
}
u32 fromE5M2Pair(u32 pair) {
  return toHalf(fromE5M2(pair >> 8)) << 16 | toHalf(fromE5M2(pair));
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

u32 permute(u32 a, u32 b, u32 selector) {
  u64 bytes = static_cast<u64>(b) << 32 | a;
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) {
    u32 control = selector >> (4 * i) & 15;
    u32 byte = bytes >> (8 * (control & 7)) & 0xff;
    if (control & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}
u32 highProduct(u32 a, u32 b) {
  return static_cast<u32>(static_cast<int64_t>(static_cast<int32_t>(a)) *
                              static_cast<int32_t>(b) >>
                          32);
}
u32 highProductUnsigned(u32 a, u32 b) {
  return static_cast<u32>(static_cast<u64>(a) * b >> 32);
}
u64 highProductLong(u64 a, u64 b) {
  return static_cast<u64>(static_cast<__int128>(static_cast<int64_t>(a)) *
                              static_cast<int64_t>(b) >>
                          64);
}
u64 highProductUnsignedLong(u64 a, u64 b) {
  return static_cast<u64>(static_cast<unsigned __int128>(a) * b >> 64);
}
u32 dotSigned(u32 a, u32 b, u32 c) {
  for (u32 i = 0; i < 32; i += 8)
    c += static_cast<u32>(static_cast<int8_t>(a >> i) *
                          static_cast<int8_t>(b >> i));
  return c;
}
u32 dotUnsigned(u32 a, u32 b, u32 c) {
  for (u32 i = 0; i < 32; i += 8)
    c += (a >> i & 0xff) * (b >> i & 0xff);
  return c;
}
u32 lowHalf(double x) { return static_cast<u32>(std::bit_cast<u64>(x)); }
u32 highHalf(double x) { return static_cast<u32>(std::bit_cast<u64>(x) >> 32); }
double fromHalves(u32 low, u32 high) {
  return std::bit_cast<double>(static_cast<u64>(high) << 32 | low);
}

} // namespace tandem::emulator::kernel::functions
