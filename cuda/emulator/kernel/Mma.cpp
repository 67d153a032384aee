//===- Mma.cpp - mma.sync -------------------------------------------------===//
//
// The lane that comes last gathers the fragments of all lanes into matrices,
// multiplies, and hands the results out. With g = lane / 4, t = lane % 4 and e
// elements in a register (PTX ISA, "Matrix Fragments for mma"):
//   A, register r: row g + 8 (r % 2), columns t e + 4 e (r / 2) and following
//   B, register r: rows t e + 4 e r and following, column g
//   C, D, element i: row g + 8 (i / 2), column 2 t + i % 2
// Sums are in f32 (f64, s32), in the order of k; a tensor core's are wider.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/kernel/Functions.h"
#include "cuda/emulator/kernel/SmallFloats.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
// Images need these instructions anyway (Image.cpp).
#define TANDEM_WIDE __attribute__((target("avx2,fma,f16c")))
#else
#define TANDEM_WIDE
#endif

namespace tandem::emulator::kernel::functions {

namespace {

using artifact::MmaCode;
using artifact::MmaType;

struct MmaIn {
  const u32 *registers;
  MmaCode code;
  u32 count;
};

/// How many registers of 32 bits a lane has of each matrix.
struct Sizes {
  u32 a, b, d;
};

u32 bitsOf(MmaType type) {
  switch (type) {
  case MmaType::F16:
  case MmaType::BF16:
    return 16;
  case MmaType::F64:
    return 64;
  case MmaType::S8:
  case MmaType::U8:
  case MmaType::E4M3:
  case MmaType::E5M2:
    return 8;
  default:
    return 32;
  }
}

Sizes sizesOf(const MmaCode &code) {
  u32 a = code.m * code.k * bitsOf(code.a) / 1024;
  u32 b = code.k * code.n * bitsOf(code.b) / 1024;
  u32 d = code.m * code.n * bitsOf(code.d) / 1024;
  return {a, b, d};
}

constexpr u32 kMostK = 32;

/// The fragments as whole matrices of raw elements of type Raw; B by columns.
template <typename Raw> struct Operands {
  alignas(32) Raw a[16][kMostK];
  alignas(32) Raw b[8][kMostK];
};

template <typename Raw>
void gather(Lanes &lanes, const MmaCode &code, size_t offset,
            Operands<Raw> &operands) {
  constexpr u32 e = sizeof(Raw) < 4 ? 4 / sizeof(Raw) : 1;
  constexpr u32 words = e * sizeof(Raw) / 4;
  const Sizes sizes = sizesOf(code);
  const u32 aCount = sizes.a / words, bCount = sizes.b / words;
  const u32 rows = code.m / 8; // registers of one column step
  for (u32 l = 0; l < 32; ++l) {
    const u32 *in = lanes.in<MmaIn>(l).registers + offset;
    u32 g = l >> 2, t = l & 3;
    for (u32 r = 0; r < aCount; ++r)
      std::memcpy(&operands.a[g + 8 * (r % rows)][t * e + r / rows * 4 * e],
                  in + r * words, words * 4);
    for (u32 r = 0; r < bCount; ++r)
      std::memcpy(&operands.b[g][t * e + r * 4 * e], in + sizes.a + r * words,
                  words * 4);
  }
}

/// Calls visit(lane, index of the element in the lane's C, row, column).
template <typename Visit> inline void forEachResult(u32 m, Visit visit) {
  for (u32 l = 0; l < 32; ++l)
    for (u32 i = 0; i < m / 4; ++i)
      visit(l, i, (l >> 2) + 8 * (i >> 1), (l & 3) * 2 + (i & 1));
}

template <typename Sum>
TANDEM_WIDE void multiplyWide(const Sum (&a)[16][kMostK],
                              const Sum (&b)[kMostK][8], Sum (&d)[16][8], u32 m,
                              u32 k) {
  for (u32 i = 0; i < m; ++i) {
    Sum row[8];
    for (u32 j = 0; j < 8; ++j)
      row[j] = d[i][j];
    for (u32 p = 0; p < k; ++p)
      for (u32 j = 0; j < 8; ++j)
        row[j] += a[i][p] * b[p][j];
    for (u32 j = 0; j < 8; ++j)
      d[i][j] = row[j];
  }
}

/// Converts raw elements and turns B's columns into rows.
template <typename Raw, typename Sum, typename Convert>
TANDEM_WIDE inline void expand(const Operands<Raw> &raw, u32 m, u32 k,
                               Sum (&a)[16][kMostK], Sum (&b)[kMostK][8],
                               Convert ofA, Convert ofB) {
  for (u32 i = 0; i < m; ++i)
    for (u32 p = 0; p < k; ++p)
      a[i][p] = ofA(raw.a[i][p]);
  for (u32 p = 0; p < k; ++p)
    for (u32 j = 0; j < 8; ++j)
      b[p][j] = ofB(raw.b[j][p]);
}

#if defined(__x86_64__)
TANDEM_WIDE inline float halfOf(uint16_t x) { return _cvtsh_ss(x); }
#else
inline float halfOf(uint16_t x) { return fromHalf(x); }
#endif
inline float bfloatOf(uint16_t x) { return fromBFloat(x); }
/// The hardware ignores the low 13 bits of a tf32 operand.
inline float tf32Of(u32 x) { return std::bit_cast<float>(x & 0xffffe000); }

struct Eight {
  float e4m3[256], e5m2[256];
  Eight() {
    for (u32 i = 0; i < 256; ++i) {
      e4m3[i] = fromE4M3(i);
      e5m2[i] = fromE5M2(i);
    }
  }
};
const Eight &eight() {
  static const Eight table;
  return table;
}

TANDEM_WIDE void expandFloats(Lanes &lanes, const MmaCode &code, size_t offset,
                              float (&a)[16][kMostK], float (&b)[kMostK][8]) {
  if (bitsOf(code.a) == 16) {
    Operands<uint16_t> raw;
    gather(lanes, code, offset, raw);
    if (code.a == MmaType::F16) {
#if defined(__x86_64__)
      for (u32 i = 0; i < code.m; ++i)
        for (u32 p = 0; p < code.k; p += 8)
          _mm256_store_ps(&a[i][p],
                          _mm256_cvtph_ps(_mm_load_si128(
                              reinterpret_cast<__m128i *>(&raw.a[i][p]))));
      float columns[8][kMostK];
      for (u32 j = 0; j < 8; ++j)
        for (u32 p = 0; p < code.k; p += 8)
          _mm256_storeu_ps(&columns[j][p],
                           _mm256_cvtph_ps(_mm_load_si128(
                               reinterpret_cast<__m128i *>(&raw.b[j][p]))));
      for (u32 p = 0; p < code.k; ++p)
        for (u32 j = 0; j < 8; ++j)
          b[p][j] = columns[j][p];
#else
      expand(raw, code.m, code.k, a, b, halfOf, halfOf);
#endif
    } else {
      expand(raw, code.m, code.k, a, b, bfloatOf, bfloatOf);
    }
  } else if (code.a == MmaType::TF32) {
    Operands<u32> raw;
    gather(lanes, code, offset, raw);
    expand(raw, code.m, code.k, a, b, tf32Of, tf32Of);
  } else {
    Operands<uint8_t> raw;
    gather(lanes, code, offset, raw);
    const float *ofA = code.a == MmaType::E4M3 ? eight().e4m3 : eight().e5m2;
    const float *ofB = code.b == MmaType::E4M3 ? eight().e4m3 : eight().e5m2;
    for (u32 i = 0; i < code.m; ++i)
      for (u32 p = 0; p < code.k; ++p)
        a[i][p] = ofA[raw.a[i][p]];
    for (u32 p = 0; p < code.k; ++p)
      for (u32 j = 0; j < 8; ++j)
        b[p][j] = ofB[raw.b[j][p]];
  }
}

void floatProduct(Lanes &lanes, const MmaCode &code, size_t in, size_t out) {
  alignas(32) float a[16][kMostK], b[kMostK][8], d[16][8];
  expandFloats(lanes, code, in, a, b);
  const Sizes sizes = sizesOf(code);
  size_t c = in + sizes.a + sizes.b;
  bool isHalf = code.d == MmaType::F16;
  forEachResult(code.m, [&](u32 l, u32 i, u32 row, u32 column) {
    const u32 *registers = lanes.in<MmaIn>(l).registers + c;
    d[row][column] =
        isHalf
            ? halfOf(static_cast<uint16_t>(registers[i / 2] >> (16 * (i % 2))))
            : std::bit_cast<float>(registers[i]);
  });
  multiplyWide(a, b, d, code.m, code.k);
  forEachResult(code.m, [&](u32 l, u32 i, u32 row, u32 column) {
    u32 *registers = &lanes.out<u32>(l) + out;
    if (!isHalf)
      registers[i] = std::bit_cast<u32>(d[row][column]);
    else if (i % 2 == 0)
      registers[i / 2] = toHalf(d[row][column]);
    else
      registers[i / 2] |= toHalf(d[row][column]) << 16;
  });
}

void doubleProduct(Lanes &lanes, const MmaCode &code, size_t in, size_t out) {
  Operands<double> raw;
  gather(lanes, code, in, raw);
  double b[kMostK][8], d[16][8];
  for (u32 p = 0; p < code.k; ++p)
    for (u32 j = 0; j < 8; ++j)
      b[p][j] = raw.b[j][p];
  const Sizes sizes = sizesOf(code);
  size_t c = in + sizes.a + sizes.b;
  forEachResult(code.m, [&](u32 l, u32 i, u32 row, u32 column) {
    std::memcpy(&d[row][column], lanes.in<MmaIn>(l).registers + c + 2 * i, 8);
  });
  multiplyWide(raw.a, b, d, code.m, code.k);
  forEachResult(code.m, [&](u32 l, u32 i, u32 row, u32 column) {
    std::memcpy(&lanes.out<u32>(l) + out + 2 * i, &d[row][column], 8);
  });
}

void integerProduct(Lanes &lanes, const MmaCode &code, size_t in, size_t out) {
  Operands<uint8_t> raw;
  gather(lanes, code, in, raw);
  int64_t a[16][kMostK], b[kMostK][8], d[16][8];
  auto wide = [](uint8_t x, MmaType type) -> int64_t {
    return type == MmaType::S8 ? static_cast<int8_t>(x) : x;
  };
  for (u32 i = 0; i < code.m; ++i)
    for (u32 p = 0; p < code.k; ++p)
      a[i][p] = wide(raw.a[i][p], code.a);
  for (u32 p = 0; p < code.k; ++p)
    for (u32 j = 0; j < 8; ++j)
      b[p][j] = wide(raw.b[j][p], code.b);
  const Sizes sizes = sizesOf(code);
  size_t c = in + sizes.a + sizes.b;
  forEachResult(code.m, [&](u32 l, u32 i, u32 row, u32 column) {
    d[row][column] = static_cast<int32_t>(lanes.in<MmaIn>(l).registers[c + i]);
  });
  multiplyWide(a, b, d, code.m, code.k);
  forEachResult(code.m, [&](u32 l, u32 i, u32 row, u32 column) {
    int64_t sum = d[row][column];
    if (code.saturates)
      sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
    (&lanes.out<u32>(l))[out + i] = static_cast<u32>(sum);
  });
}

void multiplyLanes(Lanes &lanes) {
  const auto &first = lanes.in<MmaIn>(0);
  const MmaCode code = first.code;
  const Sizes sizes = sizesOf(code);
  for (u32 i = 0; i < first.count; ++i) {
    size_t in = i * (sizes.a + sizes.b + sizes.d), out = i * sizes.d;
    if (code.d == MmaType::F64)
      doubleProduct(lanes, code, in, out);
    else if (code.d == MmaType::S32)
      integerProduct(lanes, code, in, out);
    else
      floatProduct(lanes, code, in, out);
  }
}

} // namespace

void mma(T base, u32 *out, const u32 *in, u64 code, u32 count) {
  Thread &thread = threadOf(base);
  requireWholeWarp(thread, "mma.sync");
  MmaIn operands{in, std::bit_cast<MmaCode>(code), count};
  thread.block->collective(thread, ~0u, "mma.sync", multiplyLanes, &operands,
                           out, true);
}

} // namespace tandem::emulator::kernel::functions
