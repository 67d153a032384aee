//===- ReduceBlocks.cpp - one block of numbers out of several -------------===//
//
// Tile by tile, so that what is added stays in registers and L1: all blocks'
// elements of a tile are read before any is written.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/ReduceBlocks.h"

#include "runtime/tensor/Half.h"

#include <algorithm>
#include <array>
#include <type_traits>

namespace tandem::comm {

using artifact::DType;

namespace {

constexpr int64_t tileElements = 256;

/// How a type is kept, and what it is added as: integers in 64 bits, of which
/// the low ones are the same whatever is above them.
template <typename StoredT, typename SumT> struct Plain {
  using Stored = StoredT;
  using Sum = SumT;
  static Sum load(Stored value) { return static_cast<Sum>(value); }
  static Stored store(Sum value) { return static_cast<Stored>(value); }
};

template <typename StoredT, float (*From)(StoredT), StoredT (*To)(float)>
struct Small {
  using Stored = StoredT;
  using Sum = float;
  static float load(Stored bits) { return From(bits); }
  static Stored store(float value) { return To(value); }
};
using F16 = Small<uint16_t, runtime::floatFromF16, runtime::f16FromFloat>;
using BF16 = Small<uint16_t, runtime::floatFromBF16, runtime::bf16FromFloat>;
using F8E4M3FN =
    Small<uint8_t, runtime::floatFromF8E4M3FN, runtime::f8E4M3FNFromFloat>;
using F8E5M2 =
    Small<uint8_t, runtime::floatFromF8E5M2, runtime::f8E5M2FromFloat>;

template <typename T> T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

/// sums[i] becomes it and values[i]. A NaN on either side stays.
template <typename T>
[[gnu::noinline]] void combine(Reduce reduce, T *sums, const T *values,
                               int64_t count) {
  switch (reduce) {
  case Reduce::Sum:
    for (int64_t i = 0; i < count; ++i)
      sums[i] = add(sums[i], values[i]);
    return;
  case Reduce::Max:
    for (int64_t i = 0; i < count; ++i)
      sums[i] = sums[i] > values[i] || sums[i] != sums[i] ? sums[i] : values[i];
    return;
  case Reduce::Min:
    for (int64_t i = 0; i < count; ++i)
      sums[i] = sums[i] < values[i] || sums[i] != sums[i] ? sums[i] : values[i];
    return;
  }
}

template <typename Format>
void reduceAs(Reduce reduce, std::span<const void *const> blocks, void *to,
              int64_t elements) {
  using Stored = typename Format::Stored;
  using Sum = typename Format::Sum;
  std::array<Sum, tileElements> sums, values;
  auto load = [&](const void *block, int64_t first, int64_t count, Sum *into) {
    const auto *from = static_cast<const Stored *>(block) + first;
    for (int64_t i = 0; i < count; ++i)
      into[i] = Format::load(from[i]);
  };
  for (int64_t first = 0; first < elements; first += tileElements) {
    int64_t count = std::min(tileElements, elements - first);
    load(blocks[0], first, count, sums.data());
    for (const void *block : blocks.subspan(1)) {
      load(block, first, count, values.data());
      combine(reduce, sums.data(), values.data(), count);
    }
    auto *out = static_cast<Stored *>(to) + first;
    for (int64_t i = 0; i < count; ++i)
      out[i] = Format::store(sums[size_t(i)]);
  }
}

template <typename T>
void reduceIntegers(Reduce reduce, std::span<const void *const> blocks,
                    void *to, int64_t elements) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  reduceAs<Plain<T, Wide>>(reduce, blocks, to, elements);
}

} // namespace

Status reduceBlocks(DType type, Reduce reduce,
                    std::span<const void *const> blocks, void *to,
                    int64_t elements) {
  switch (type) {
  case DType::Bool:
    if (reduce == Reduce::Sum)
      return Status::unsupported("bools have no sum over ranks");
    reduceIntegers<uint8_t>(reduce, blocks, to, elements);
    break;
  case DType::I8:
    reduceIntegers<int8_t>(reduce, blocks, to, elements);
    break;
  case DType::U8:
    reduceIntegers<uint8_t>(reduce, blocks, to, elements);
    break;
  case DType::I16:
    reduceIntegers<int16_t>(reduce, blocks, to, elements);
    break;
  case DType::U16:
    reduceIntegers<uint16_t>(reduce, blocks, to, elements);
    break;
  case DType::I32:
    reduceIntegers<int32_t>(reduce, blocks, to, elements);
    break;
  case DType::U32:
    reduceIntegers<uint32_t>(reduce, blocks, to, elements);
    break;
  case DType::I64:
    reduceIntegers<int64_t>(reduce, blocks, to, elements);
    break;
  case DType::U64:
    reduceIntegers<uint64_t>(reduce, blocks, to, elements);
    break;
  case DType::F16:
    reduceAs<F16>(reduce, blocks, to, elements);
    break;
  case DType::BF16:
    reduceAs<BF16>(reduce, blocks, to, elements);
    break;
  case DType::F32:
    reduceAs<Plain<float, float>>(reduce, blocks, to, elements);
    break;
  case DType::F64:
    reduceAs<Plain<double, double>>(reduce, blocks, to, elements);
    break;
  case DType::F8E4M3FN:
    reduceAs<F8E4M3FN>(reduce, blocks, to, elements);
    break;
  case DType::F8E5M2:
    reduceAs<F8E5M2>(reduce, blocks, to, elements);
    break;
  }
  return Status::success();
}

} // namespace tandem::comm
