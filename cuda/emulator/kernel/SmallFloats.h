//===- SmallFloats.h - 8- and 16-bit floating point types -----------------===//
//
// Bits to float and back, rounded to nearest even. What is too large becomes
// infinity in f16 and bf16, the largest finite value in e4m3 and e5m2 (PTX's
// .satfinite, the only way there is). NaNs are the GPU's.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_KERNEL_SMALLFLOATS_H
#define TANDEM_CUDA_EMULATOR_KERNEL_SMALLFLOATS_H

#include <bit>
#include <cmath>
#include <cstdint>

namespace tandem::emulator::kernel {

/// The value of a number with an exponent of `exponentBits` and a fraction of
/// `fractionBits`, all finite but what the caller excludes.
inline float decodeSmall(uint32_t bits, int exponentBits, int fractionBits) {
  int bias = (1 << (exponentBits - 1)) - 1;
  uint32_t fraction = bits & ((1u << fractionBits) - 1);
  int exponent =
      static_cast<int>(bits >> fractionBits) & ((1 << exponentBits) - 1);
  float magnitude =
      exponent
          ? std::ldexp(static_cast<float>(fraction + (1u << fractionBits)),
                       exponent - bias - fractionBits)
          : std::ldexp(static_cast<float>(fraction), 1 - bias - fractionBits);
  return bits >> (exponentBits + fractionBits) & 1 ? -magnitude : magnitude;
}

/// The bits of a finite `x`, without a bound on the exponent: the caller looks
/// whether the result is too large.
inline uint32_t encodeSmall(float x, int exponentBits, int fractionBits) {
  int bias = (1 << (exponentBits - 1)) - 1;
  uint32_t sign = std::bit_cast<uint32_t>(x) >> 31;
  float magnitude = std::fabs(x);
  uint32_t bits = 0;
  if (magnitude > 0) {
    int exponent = std::ilogb(magnitude);
    if (exponent < 1 - bias)
      exponent = 1 - bias;
    // In units of the last place; exact, then rounded to even.
    float units = std::ldexp(magnitude, fractionBits - exponent);
    auto rounded = static_cast<uint32_t>(std::nearbyint(units));
    bits =
        rounded + (static_cast<uint32_t>(exponent + bias - 1) << fractionBits);
  }
  return sign << (exponentBits + fractionBits) | bits;
}

inline float fromBFloat(uint32_t bits) {
  return std::bit_cast<float>(bits << 16);
}
inline uint32_t toBFloat(float x) {
  if (x != x)
    return 0x7fff;
  auto bits = std::bit_cast<uint32_t>(x);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

inline float fromHalf(uint32_t bits) {
  bits &= 0xffff;
  if ((bits & 0x7c00) == 0x7c00)
    return std::bit_cast<float>((bits & 0x8000) << 16 | 0x7f800000 |
                                (bits & 0x3ff) << 13);
  return decodeSmall(bits, 5, 10);
}
inline uint32_t toHalf(float x) {
  if (x != x)
    return 0x7fff;
  uint32_t sign = std::bit_cast<uint32_t>(x) >> 16 & 0x8000;
  if (std::fabs(x) >= 65520.0f)
    return sign | 0x7c00;
  return encodeSmall(x, 5, 10);
}

inline float fromE4M3(uint32_t bits) {
  if ((bits & 0x7f) == 0x7f)
    return std::bit_cast<float>(0x7fc00000u);
  return decodeSmall(bits & 0xff, 4, 3);
}
inline uint32_t toE4M3(float x) {
  if (x != x)
    return 0x7f;
  uint32_t sign = std::bit_cast<uint32_t>(x) >> 24 & 0x80;
  if (std::fabs(x) >= 448.0f)
    return sign | 0x7e;
  return encodeSmall(x, 4, 3);
}

inline float fromE5M2(uint32_t bits) {
  bits &= 0xff;
  if ((bits & 0x7c) == 0x7c)
    return fromHalf(bits << 8);
  return decodeSmall(bits, 5, 2);
}
inline uint32_t toE5M2(float x) {
  if (x != x)
    return 0x7f;
  uint32_t sign = std::bit_cast<uint32_t>(x) >> 24 & 0x80;
  if (std::fabs(x) >= 57344.0f)
    return sign | 0x7b;
  return encodeSmall(x, 5, 2);
}

/// Rounds to 10 bits of fraction, ties away from zero (cvt.rna.tf32).
inline uint32_t toTf32Away(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  if (x != x)
    return 0x7fffffff;
  if ((bits & 0x7f800000) == 0x7f800000)
    return bits;
  return (bits + 0x1000) & 0xffffe000;
}

} // namespace tandem::emulator::kernel

#endif
