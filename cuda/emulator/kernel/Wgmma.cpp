//===- Wgmma.cpp - products of a warpgroup --------------------------------===//
//
// D (64 x n) = A (64 x k) B (k x n) + D, k of 32 bytes. B, and A unless it is
// in registers, are in shared memory where a descriptor says (PTX ISA, "Matrix
// Descriptor" and "Strides"). With T = 16 bytes of elements and a swizzle of s
// bytes (16: none), an element stands at
//   k contiguous:   row / 8 SBO + row % 8 s + k          (none: + k / T LBO)
//   rows contiguous: row / (s/2) LBO + k / 8 SBO + k % 8 s + row % (s/2)
//                   (none: row / T SBO + k / 8 LBO + k % 8 T + row % T)
// and the address bits 4 to 6 are permuted by the bits 7 to 9.
// Thread t of the group holds rows 16 (t / 32) + t % 32 / 4 (+ 8), columns
// 8 i + 2 (t % 4) and the next, as mma.sync.
//
// Sums are in f32, in the order of k, or in s32. Of f8 values they are as
// Hopper's cores are known to make them (DeepSeek-V3's report, 3.3.2): the 32
// products and the sum are aligned to the largest of them, of which about 14
// bits are kept.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/kernel/Functions.h"
#include "cuda/emulator/kernel/SmallFloats.h"

#include <algorithm>
#include <cstring>

namespace tandem::emulator::kernel::functions {

namespace {

using artifact::MmaType;
using artifact::WgmmaCode;

struct WgmmaIn {
  const u32 *registers;
  WgmmaCode code;
};

u32 bytesOf(MmaType type) {
  switch (type) {
  case MmaType::TF32:
    return 4;
  case MmaType::E4M3:
  case MmaType::E5M2:
  case MmaType::S8:
  case MmaType::U8:
    return 1;
  default:
    return 2;
  }
}

bool isFloat8(MmaType type) {
  return type == MmaType::E4M3 || type == MmaType::E5M2;
}

float valueOf(const std::byte *bytes, MmaType type) {
  u32 bits = 0;
  std::memcpy(&bits, bytes, bytesOf(type));
  switch (type) {
  case MmaType::F16:
    return fromHalf(bits);
  case MmaType::BF16:
    return fromBFloat(bits);
  case MmaType::E4M3:
    return fromE4M3(bits);
  case MmaType::E5M2:
    return fromE5M2(bits);
  case MmaType::S8:
    return static_cast<int8_t>(bits);
  case MmaType::U8:
    return static_cast<float>(bits);
  default:
    return std::bit_cast<float>(bits & 0xffffe000);
  }
}

/// A matrix in shared memory.
class SharedMatrix {
public:
  SharedMatrix(const Thread &thread, u64 descriptor)
      : thread(thread), start((descriptor & 0x3fff) << 4),
        leading((descriptor >> 16 & 0x3fff) << 4),
        stride((descriptor >> 32 & 0x3fff) << 4) {
    const u32 sizes[] = {16, 128, 64, 32};
    swizzle = sizes[descriptor >> 62];
    if (descriptor >> 49 & 7)
      thread.block->fail(thread, "wgmma", "a descriptor with a base offset");
  }

  /// Copies 16 bytes: of row `row` from byte `at` of k on, or of the rows from
  /// `row` on at `at` of k.
  void chunk(u32 row, u32 at, bool rowsContiguous, std::byte *to) const {
    size_t offset = start;
    if (!rowsContiguous) {
      offset += row / 8 * stride + row % 8 * swizzle;
      offset += swizzle == 16 ? at / 16 * leading : at;
    } else if (swizzle == 16) {
      offset += row / 8 * stride + at / 8 * leading + at % 8 * 16;
    } else {
      u32 rows = swizzle / 2; // elements of 16 bits
      offset += row / rows * leading + at / 8 * stride + at % 8 * swizzle +
                row % rows * 2;
    }
    offset ^= (offset >> 7 & (swizzle / 16 - 1)) << 4;
    Block &block = *thread.block;
    if (offset + 16 > block.sharedBytes)
      block.fail(thread, "shared memory out of bounds",
                 "wgmma reads offset " + std::to_string(offset) + " of " +
                     std::to_string(block.sharedBytes));
    block.conflict(thread,
                   block.races.read(block.races.products(), offset, 16));
    std::memcpy(to, block.shared + offset, 16);
  }

private:
  const Thread &thread;
  size_t start, leading, stride;
  u32 swizzle;
};

/// Reads `rows` rows of k elements: to[row * pitchRow + k * pitchK].
void readMatrix(const SharedMatrix &matrix, MmaType type, bool rowsContiguous,
                u32 rows, float sign, float *to, size_t pitchRow,
                size_t pitchK) {
  const u32 bytes = bytesOf(type), each = 16 / bytes, k = 32 / bytes;
  std::byte chunk[16];
  if (rowsContiguous) {
    for (u32 p = 0; p < k; ++p)
      for (u32 row = 0; row < rows; row += each) {
        matrix.chunk(row, p, true, chunk);
        for (u32 i = 0; i < each; ++i)
          to[(row + i) * pitchRow + p * pitchK] =
              sign * valueOf(chunk + i * bytes, type);
      }
    return;
  }
  for (u32 row = 0; row < rows; ++row)
    for (u32 half = 0; half < 2; ++half) {
      matrix.chunk(row, half * 16, false, chunk);
      for (u32 i = 0; i < each; ++i)
        to[row * pitchRow + (half * each + i) * pitchK] =
            sign * valueOf(chunk + i * bytes, type);
    }
}

/// `sum` and the products of k elements of x and y, whose neighbours are
/// `pitch` apart, cut off 13 bits below the largest of them all.
float addAligned(float sum, const float *x, const float *y, u32 k,
                 size_t pitch) {
  float largest = std::fabs(sum), plain = sum;
  for (u32 p = 0; p < k; ++p) {
    float product = x[p] * y[p * pitch];
    plain += product;
    largest = std::max(largest, std::fabs(product));
  }
  // Neither zeros nor what is infinite or NaN has a place to cut at.
  if (!std::isfinite(plain) || largest < 0x1p-100f)
    return plain;
  const float unit = std::ldexp(1.0f, std::ilogb(largest) - 13),
              inverse = 1 / unit;
  auto units = static_cast<int32_t>(sum * inverse);
  for (u32 p = 0; p < k; ++p)
    units += static_cast<int32_t>(x[p] * y[p * pitch] * inverse);
  return static_cast<float>(units) * unit;
}

u64 wide(const u32 *words) {
  u64 value = 0;
  std::memcpy(&value, words, 8);
  return value;
}

uint64_t hashOf(const u32 *words, u32 count) {
  uint64_t hash = 0xcbf29ce484222325;
  for (u32 i = 0; i < count; ++i)
    hash = (hash ^ words[i]) * 0x100000001b3;
  return hash;
}

/// Sums and factors in registers may be used from a wgmma.fence on until
/// something else writes them: sums that are not those of a product before,
/// although those have been waited for.
void checkRegisters(Thread &thread, const u32 *sums, u32 count, bool adds) {
  if (!thread.productsFenced)
    thread.block->error(thread, "wgmma", "there is no wgmma.fence before it");
  else if (adds && thread.productsAwaited && !thread.sums.empty() &&
           std::find(thread.sums.begin(), thread.sums.end(),
                     hashOf(sums, count)) == thread.sums.end())
    thread.block->error(
        thread, "wgmma",
        "the sums were changed without a wgmma.fence behind it");
}

void multiplyGroup(Lanes &lanes) {
  Thread *threads = lanes.first;
  const auto in = [&](u32 t) -> const WgmmaIn & {
    return *static_cast<const WgmmaIn *>(threads[t].in);
  };
  const WgmmaCode code = in(0).code;
  const u32 n = code.n8 * 8, k = 32 / bytesOf(code.a);
  const bool isHalf = code.d == MmaType::F16,
             isInteger = code.d == MmaType::S32;
  const u32 count = isHalf ? n / 4 : n / 2; // D's registers
  const bool hasRegisters = code.flags & WgmmaCode::kARegisters;
  const u32 aWords = hasRegisters ? 4 : 2;
  SharedRaces &races = lanes.block.races;
  Clock issued;
  for (u32 t = 0; t < 128; ++t) {
    races.release(threads[t].index, issued);
    const u32 *operands = in(t).registers + count,
              *first = in(0).registers + count;
    // What must be the same in all threads.
    bool same = operands[0] == first[0] &&
                wide(operands + 1 + aWords) == wide(first + 1 + aWords) &&
                (hasRegisters || wide(operands + 1) == wide(first + 1));
    if (!same)
      lanes.block.fail(threads[t], "wgmma",
                       "threads of a warpgroup differ in their operands");
  }
  races.acquire(races.products(), issued);
  for (u32 t = 0; t < 128; ++t)
    checkRegisters(threads[t], in(t).registers, count, in(t).registers[count]);

  std::vector<float> a(64 * k), b(k * n), d(64 * n, 0.0f);
  const u32 *operands = in(0).registers + count;
  float signA = code.flags & WgmmaCode::kNegateA ? -1.0f : 1.0f;
  float signB = code.flags & WgmmaCode::kNegateB ? -1.0f : 1.0f;
  const u32 e = 4 / bytesOf(code.a);
  if (hasRegisters) {
    for (u32 t = 0; t < 128; ++t)
      for (u32 r = 0; r < 4; ++r)
        for (u32 i = 0; i < e; ++i) {
          u32 row = t / 32 * 16 + t % 32 / 4 + 8 * (r & 1);
          u32 column = t % 4 * e + (r >> 1) * 4 * e + i;
          auto *bytes = reinterpret_cast<const std::byte *>(in(t).registers +
                                                            count + 1 + r);
          a[row * k + column] =
              signA * valueOf(bytes + i * bytesOf(code.a), code.a);
        }
  } else {
    readMatrix(SharedMatrix(threads[0], wide(operands + 1)), code.a,
               code.flags & WgmmaCode::kTransposeA, 64, signA, a.data(), k, 1);
  }
  readMatrix(SharedMatrix(threads[0], wide(operands + 1 + aWords)), code.b,
             code.flags & WgmmaCode::kTransposeB, n, signB, b.data(), 1, n);

  auto forEach = [&](auto visit) {
    for (u32 t = 0; t < 128; ++t)
      for (u32 i = 0; i < n / 2; ++i)
        visit(t, i,
              d[(t / 32 * 16 + t % 32 / 4 + 8 * (i / 2 % 2)) * n + i / 4 * 8 +
                t % 4 * 2 + i % 2]);
  };
  if (operands[0] && !isInteger) // scale-d
    forEach([&](u32 t, u32 i, float &sum) {
      const u32 *c = in(t).registers;
      sum = isHalf ? fromHalf(c[i / 2] >> (16 * (i % 2)))
                   : std::bit_cast<float>(c[i]);
    });
  for (u32 row = 0; row < 64 && isFloat8(code.a); ++row)
    for (u32 j = 0; j < n; ++j)
      d[row * n + j] = addAligned(d[row * n + j], &a[row * k], &b[j], k, n);
  for (u32 row = 0; row < 64 && !isFloat8(code.a); ++row)
    for (u32 p = 0; p < k; ++p) {
      const float x = a[row * k + p], *y = &b[p * n];
      float *sum = &d[row * n];
      for (u32 j = 0; j < n; ++j)
        sum[j] += x * y[j];
    }
  forEach([&](u32 t, u32 i, float sum) {
    u32 *out = static_cast<u32 *>(threads[t].out);
    if (isInteger) // 32 products have less than 24 bits, and are exact
      out[i] = static_cast<u32>(static_cast<int32_t>(sum)) +
               (operands[0] ? in(t).registers[i] : 0);
    else if (!isHalf)
      out[i] = std::bit_cast<u32>(sum);
    else if (i % 2 == 0)
      out[i / 2] = toHalf(sum);
    else
      out[i / 2] |= toHalf(sum) << 16;
  });

  Clock done;
  races.release(races.products(), done);
  for (u32 t = 0; t < 128; ++t) {
    threads[t].openProducts = done;
    threads[t].sums.push_back(
        hashOf(static_cast<const u32 *>(threads[t].out), count));
  }
}

} // namespace

void wgmma(T base, u32 *out, const u32 *in, u64 code) {
  Thread &thread = threadOf(base);
  WgmmaIn operands{in, std::bit_cast<WgmmaCode>(code)};
  thread.block->warpgroup(thread, "wgmma.mma_async", multiplyGroup, &operands,
                          out);
}

void wgmmaFence(T t) {
  Thread &thread = threadOf(t);
  thread.productsFenced = true;
  thread.productsAwaited = false;
  thread.sums.clear();
}

void wgmmaCommit(T t) {
  threadOf(t).productGroups.push_back(std::move(threadOf(t).openProducts));
  threadOf(t).openProducts.clear();
}

void wgmmaWait(T t, u64 most) {
  Thread &thread = threadOf(t);
  thread.productsAwaited = true;
  while (thread.productGroups.size() > most) {
    thread.block->races.acquire(thread.index, thread.productGroups.front());
    thread.productGroups.erase(thread.productGroups.begin());
  }
}

} // namespace tandem::emulator::kernel::functions
