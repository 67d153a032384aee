//===- Philox.h - the counter-based generator, one block at a time --------===//
//
// Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
// easy as 1, 2, 3" (SC 2011), and how `tandem.philox` asks it. The reference's
// words; kernels make the same ones from `scalar::philox`.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_OPS_PHILOX_H
#define TANDEM_IR_OPS_PHILOX_H

#include "mlir/IR/Types.h"

#include <array>
#include <cstdint>

namespace tandem::random {

constexpr int kRounds = 10;
/// What the first and the third word of a counter are multiplied by.
constexpr uint32_t kMultipliers[] = {0xD2511F53, 0xCD9E8D57};
/// What a round adds to the key: the golden ratio, and sqrt(3) - 1.
constexpr uint32_t kWeyl[] = {0x9E3779B9, 0xBB67AE85};

/// Draws are numbered below this.
constexpr int64_t kDraws = int64_t(1) << 24;
/// A normal number takes `draw` and `draw + kSecondDraw`.
constexpr int64_t kSecondDraw = kDraws / 2;

/// How many binary digits a random number of a float type has.
inline int digitsOf(mlir::Type element) {
  return element.isF64() ? 53 : element.isF32() ? 24 : element.isF16() ? 11 : 8;
}

using Block = std::array<uint32_t, 4>;

/// The four words of a counter under a key.
constexpr Block philox(Block c, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    uint64_t a = uint64_t(kMultipliers[0]) * c[0];
    uint64_t b = uint64_t(kMultipliers[1]) * c[2];
    c = {uint32_t(b >> 32) ^ c[1] ^ key[0], uint32_t(b),
         uint32_t(a >> 32) ^ c[3] ^ key[1], uint32_t(a)};
    key = {key[0] + kWeyl[0], key[1] + kWeyl[1]};
  }
  return c;
}

/// The words for block number `block` of a draw.
constexpr Block words(uint64_t seed, uint64_t offset, int64_t block,
                      int64_t draw) {
  return philox({uint32_t(block),
                 (uint32_t(uint64_t(block) >> 32) & 0xFF) | uint32_t(draw) << 8,
                 uint32_t(offset), uint32_t(offset >> 32)},
                {uint32_t(seed), uint32_t(seed >> 32)});
}

/// The 32 bits at a position.
constexpr uint32_t bits(uint64_t seed, uint64_t offset, int64_t position,
                        int64_t draw) {
  return words(seed, offset, position >> 2, draw)[position & 3];
}

/// The number in [0, 1) at a position, a multiple of 2^-digits; 53 digits are
/// those of two words, up to 32 of one.
constexpr double uniform(uint64_t seed, uint64_t offset, int64_t position,
                         int64_t draw, int digits) {
  if (digits <= 32)
    return double(bits(seed, offset, position, draw) >> (32 - digits)) /
           double(int64_t(1) << digits);
  Block w = words(seed, offset, position >> 1, draw);
  int64_t first = 2 * (position & 1);
  uint64_t both = uint64_t(w[first]) << 32 | w[first + 1];
  return double(both >> (64 - digits)) / double(int64_t(1) << digits);
}

} // namespace tandem::random

#endif
