//===- Half.h - f16 and bf16 as numbers -----------------------------------===//
//
// Conversions between float and the two 16-bit formats, given as their bits.
// To 16 bits they round to nearest even; infinities, subnormals and NaN (made
// quiet) are kept. From 16 bits they are exact.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_RUNTIME_HALF_H
#define TANDEM_RUNTIME_HALF_H

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
