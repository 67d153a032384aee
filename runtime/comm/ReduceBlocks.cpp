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

/// How a type is kept, and what it is added as.
template <typename StoredT, typename SumT> struct Plain {
  using Stored = StoredT;
  using Sum = SumT;
  static Sum load(Stored value) { return static_cast<Sum>(value); }
  static Stored store(Sum value) { return static_cast<Stored>(value); }
};
template <typename T> using Same = Plain<T, T>;
/// Unsigned sums wrap around, and have the bits of signed ones.
template <typename T> using Wrapped = Plain<T, std::make_unsigned_t<T>>;

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

struct Add {
  template <typename T> static T apply(T a, T b) {
    return static_cast<T>(a + b);
  }
};
// a != a: a NaN stays. b != b: a NaN is taken.
struct Max {
  template <typename T> static T apply(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct Min {
  template <typename T> static T apply(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

template <typename Format, typename Op>
void reduceAs(std::span<const void *const> blocks, void *to, int64_t elements) {
  using Stored = typename Format::Stored;
  std::array<typename Format::Sum, tileElements> sums;
  for (int64_t first = 0; first < elements; first += tileElements) {
    int64_t count = std::min(tileElements, elements - first);
    const auto *own = static_cast<const Stored *>(blocks[0]) + first;
    for (int64_t i = 0; i < count; ++i)
      sums[size_t(i)] = Format::load(own[i]);
    for (const void *block : blocks.subspan(1)) {
      const auto *from = static_cast<const Stored *>(block) + first;
      for (int64_t i = 0; i < count; ++i)
        sums[size_t(i)] = Op::apply(sums[size_t(i)], Format::load(from[i]));
    }
    auto *out = static_cast<Stored *>(to) + first;
    for (int64_t i = 0; i < count; ++i)
      out[i] = Format::store(sums[size_t(i)]);
  }
}

/// `Sums` adds, `Orders` compares.
template <typename Sums, typename Orders = Sums>
void reduceWith(Reduce reduce, std::span<const void *const> blocks, void *to,
                int64_t elements) {
  switch (reduce) {
  case Reduce::Sum:
    return reduceAs<Sums, Add>(blocks, to, elements);
  case Reduce::Max:
    return reduceAs<Orders, Max>(blocks, to, elements);
  case Reduce::Min:
    return reduceAs<Orders, Min>(blocks, to, elements);
  }
}

template <typename T>
void reduceIntegers(Reduce reduce, std::span<const void *const> blocks,
                    void *to, int64_t elements) {
  reduceWith<Wrapped<T>, Same<T>>(reduce, blocks, to, elements);
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
    reduceWith<F16>(reduce, blocks, to, elements);
    break;
  case DType::BF16:
    reduceWith<BF16>(reduce, blocks, to, elements);
    break;
  case DType::F32:
    reduceWith<Same<float>>(reduce, blocks, to, elements);
    break;
  case DType::F64:
    reduceWith<Same<double>>(reduce, blocks, to, elements);
    break;
  case DType::F8E4M3FN:
    reduceWith<F8E4M3FN>(reduce, blocks, to, elements);
    break;
  case DType::F8E5M2:
    reduceWith<F8E5M2>(reduce, blocks, to, elements);
    break;
  }
  return Status::success();
}

} // namespace tandem::comm
