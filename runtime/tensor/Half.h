//===- Half.h - floats of 16 and 8 bits as numbers ------------------------===//
//
// Conversions between float and the two 16-bit and the two 8-bit formats, given
// as their bits. To fewer bits they round to nearest even; infinities,
// subnormals and NaN (made quiet) are kept, but for infinity in f8E4M3FN, which
// has none: there what is too large is NaN, as in PyTorch. From fewer bits they
// are exact.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_TENSOR_HALF_H
#define TANDEM_RUNTIME_TENSOR_HALF_H

#include <bit>
#include <cmath>
#include <cstdint>

namespace tandem::runtime {

inline float floatFromBF16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

inline uint16_t bf16FromFloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  bits += 0x7fffu + ((bits >> 16) & 1);
  return static_cast<uint16_t>(bits >> 16);
}

inline float floatFromF16(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 31, mantissa = bits & 0x3ff;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    // A subnormal is mantissa * 2^-24, which a float holds exactly.
    float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) |
                              (mantissa << 13));
}

inline uint16_t f16FromFloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u)
    return sign | 0x7e00 | static_cast<uint16_t>((bits >> 13) & 0x3ff);
  if (bits >= 0x47800000u) // 65536 and above
    return sign | 0x7c00;
  if (bits < 0x38800000u) {
    // Below 2^-14: adding 0.5 puts the result's last bit, 2^-24, at the end of
    // the float's mantissa, and the addition rounds to nearest even.
    float shifted = std::bit_cast<float>(bits) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) -
                                        0x3f000000u);
  }
  // Rounding may carry into the exponent, up to infinity: that is right.
  bits += 0xfffu + ((bits >> 13) & 1);
  return sign | static_cast<uint16_t>((bits - 0x38000000u) >> 13);
}

inline float floatFromF8E5M2(uint8_t bits) {
  return floatFromF16(static_cast<uint16_t>(bits << 8));
}

inline float floatFromF8E4M3FN(uint8_t bits) {
  if ((bits & 0x7f) == 0x7f)
    return std::bit_cast<float>(0x7fc00000u | uint32_t(bits & 0x80) << 24);
  // The digits as those of an f16, whose exponent's bias is 8 more.
  return 256 * floatFromF16(static_cast<uint16_t>((bits & 0x80) << 8 |
                                                  (bits & 0x7f) << 7));
}

/// The bits of `value` as a float with `digits` after the point and 7 - digits
/// bits of exponent; `end` is what is too large.
inline uint8_t f8FromFloat(float value, int digits, uint32_t end) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  auto sign = static_cast<uint8_t>((bits >> 24) & 0x80);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u)
    return sign | 0x7f;
  int bias = (1 << (6 - digits)) - 1, dropped = 23 - digits;
  if (bits < static_cast<uint32_t>(128 - bias) << 23) {
    // Subnormal, as in f16FromFloat.
    float least = std::ldexp(1.0f, 24 - bias - digits);
    float shifted = std::bit_cast<float>(bits) + least;
    return sign | static_cast<uint8_t>(std::bit_cast<uint32_t>(shifted) -
                                       std::bit_cast<uint32_t>(least));
  }
  bits += (1u << (dropped - 1)) - 1 + ((bits >> dropped) & 1);
  bits = (bits >> dropped) - (static_cast<uint32_t>(127 - bias) << digits);
  return sign | static_cast<uint8_t>(bits > end ? end : bits);
}
inline uint8_t f8E4M3FNFromFloat(float value) {
  return f8FromFloat(value, 3, 0x7f);
}
inline uint8_t f8E5M2FromFloat(float value) {
  return f8FromFloat(value, 2, 0x7c);
}

/// Returns `value` as a float rounded to odd: an inexact result has its last
/// bit set, so that a second rounding to fewer bits rounds as one rounding
/// would.
inline float floatRoundedToOdd(double value) {
  auto nearest = static_cast<float>(value);
  double back = nearest;
  if (back == value || std::isnan(value) || std::isinf(value))
    return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(back) > std::fabs(value))
    --bits; // towards zero; also takes an overflow back to the largest float
  return std::bit_cast<float>(bits | 1);
}

} // namespace tandem::runtime

#endif
