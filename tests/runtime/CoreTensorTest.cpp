//===- CoreTensorTest.cpp - tensors, views, conversions, DLPack -----------===//
//
// Tests of runtime/tensor/Tensor.h: shapes and bounds, element conversion
// against exact expectations, versions, and DLPack in both directions.
//
//===----------------------------------------------------------------------===//
#include "runtime/dlpack.h"
#include "runtime/tensor/Half.h"
#include "runtime/tensor/Tensor.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <vector>

using namespace tandem;
using namespace tandem::runtime;

namespace {

using Sizes = std::vector<int64_t>;

Tensor iota(Sizes shape) {
  Tensor t = *Tensor::empty(DType::F32, shape);
  std::iota(t.mutableData<float>(), t.mutableData<float>() + t.elements(), 0);
  return t;
}

TEST(Tensor, RowMajorStridesAndAlignment) {
  Tensor t = iota({2, 3, 4});
  EXPECT_EQ(t.elements(), 24);
  EXPECT_EQ(t.strides()[0], 12);
  EXPECT_EQ(t.strides()[2], 1);
  EXPECT_TRUE(t.isDense());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
  EXPECT_EQ(describe(t.dtype(), t.shape()), "f32 [2, 3, 4]");
}

TEST(Tensor, RefusesBadShapes) {
  EXPECT_FALSE(Tensor::empty(DType::F32, Sizes{-1}));
  EXPECT_FALSE(Tensor::empty(DType::F32, Sizes(17, 1)));
  EXPECT_FALSE(Tensor::empty(DType::F64, Sizes{int64_t(1) << 46, 1}));
  EXPECT_FALSE(
      Tensor::empty(DType::F32, Sizes{int64_t(1) << 62, int64_t(1) << 62}));
  Result<Tensor> none = Tensor::empty(DType::F32, Sizes{0, 5});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->elements(), 0);
  EXPECT_NE(none->data(), nullptr);
}

TEST(Tensor, ViewsStayWithinTheStorage) {
  Tensor t = iota({3, 16});
  EXPECT_TRUE(t.view(Sizes{16, 3}, Sizes{1, 16}));
  EXPECT_FALSE(t.view(Sizes{16, 3}, Sizes{1, 16}, 1));
  EXPECT_FALSE(t.view(Sizes{2}, Sizes{-1}));
  EXPECT_TRUE(t.view(Sizes{2}, Sizes{-1}, 1));
  EXPECT_FALSE(t.view(Sizes{4}, Sizes{int64_t(1) << 61}));
  EXPECT_FALSE(t.view(Sizes{1}, Sizes{1}, int64_t(1) << 62));
  Tensor rows = *t.slice(1, 3);
  EXPECT_EQ(rows.at(0), 16);
  EXPECT_FALSE(t.slice(2, 4));
  EXPECT_FALSE(t.slice(-1, 1));
  EXPECT_FALSE(t.slice(2, 1));
  EXPECT_EQ(t.slice(3, 3)->elements(), 0);
}

TEST(Tensor, StridedCopyAndVersions) {
  Tensor t = iota({3, 5});
  Tensor transposed = *t.view(Sizes{5, 3}, Sizes{1, 5});
  EXPECT_FALSE(transposed.isDense());
  Tensor dense = *transposed.dense();
  EXPECT_EQ(dense.at(1), 5);
  EXPECT_EQ(dense.at(14), 14);
  uint64_t before = t.version();
  ASSERT_TRUE(transposed.fill(2).ok());
  EXPECT_GT(t.version(), before);
  EXPECT_EQ(t.at(7), 2);
  EXPECT_FALSE(t.copyFrom(dense).ok()) << "shapes differ";
  ASSERT_TRUE(transposed.copyFrom(dense).ok());
  EXPECT_EQ(t.at(7), 7);
  EXPECT_FALSE(t.view(Sizes{3, 3}, Sizes{5, 1})
                   ->copyFrom(*t.view(Sizes{3, 3}, Sizes{1, 5}))
                   .ok())
      << "overlapping strided views";
}

TEST(Tensor, Conversions) {
  std::vector<double> values = {1.5, -1.5, 300, -300, 1e30, -1e30, NAN, 0.25};
  Tensor d = *Tensor::copyOf(values.data(), DType::F64, Sizes{8});
  Tensor i8 = *d.to(DType::I8), u8 = *d.to(DType::U8), i64 = *d.to(DType::I64);
  EXPECT_EQ(i8.at(0), 1);
  EXPECT_EQ(i8.at(2), 127);
  EXPECT_EQ(i8.at(3), -128);
  EXPECT_EQ(i8.at(6), 0);
  EXPECT_EQ(u8.at(2), 255);
  EXPECT_EQ(u8.at(1), 0);
  EXPECT_EQ(i64.data<int64_t>()[4], std::numeric_limits<int64_t>::max());
  EXPECT_EQ(i64.data<int64_t>()[5], std::numeric_limits<int64_t>::min());
  EXPECT_EQ(d.to(DType::Bool)->at(7), 1);
  int64_t big = (int64_t(1) << 53) + 1;
  Tensor exact = *Tensor::copyOf(&big, DType::I64, Sizes{});
  EXPECT_EQ(exact.to(DType::I32)->at(0), std::numeric_limits<int32_t>::max());
}

TEST(Tensor, ConversionsOfUnsigned) {
  std::vector<double> values = {1.5, -1.5, 70000, 5e9, 2e19, NAN, 0x1p63};
  Tensor d = *Tensor::copyOf(values.data(), DType::F64, Sizes{7});
  Tensor u16 = *d.to(DType::U16), u32 = *d.to(DType::U32),
         u64 = *d.to(DType::U64);
  EXPECT_EQ(u16.data<uint16_t>()[0], 1);
  EXPECT_EQ(u16.data<uint16_t>()[1], 0);
  EXPECT_EQ(u16.data<uint16_t>()[2], 65535);
  EXPECT_EQ(u32.data<uint32_t>()[2], 70000u);
  EXPECT_EQ(u32.data<uint32_t>()[3], 4294967295u);
  EXPECT_EQ(u64.data<uint64_t>()[4], std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(u64.data<uint64_t>()[5], 0u);
  EXPECT_EQ(u64.data<uint64_t>()[6], uint64_t(1) << 63);
  EXPECT_EQ(u64.at(6), 0x1p63);
  EXPECT_EQ(u64.to(DType::I64)->data<int64_t>()[6],
            std::numeric_limits<int64_t>::max());
  EXPECT_EQ(u64.to(DType::F32)->at(6), 0x1p63);
  EXPECT_EQ(u32.to(DType::I16)->at(3), 32767);
  int64_t negative = -1;
  Tensor signedOne = *Tensor::copyOf(&negative, DType::I64, Sizes{});
  EXPECT_EQ(signedOne.to(DType::U64)->at(0), 0);
}

TEST(Tensor, FloatsOf8Bits) {
  std::vector<double> values = {1, -448, 1e9, NAN, 0x1p-9};
  Tensor d = *Tensor::copyOf(values.data(), DType::F64, Sizes{5});
  Tensor finite = *d.to(DType::F8E4M3FN), half = *d.to(DType::F8E5M2);
  EXPECT_EQ(finite.at(1), -448);
  EXPECT_TRUE(std::isnan(finite.at(2)));
  EXPECT_TRUE(std::isnan(finite.at(3)));
  EXPECT_EQ(finite.at(4), 0x1p-9);
  EXPECT_EQ(half.at(1), -448);
  EXPECT_EQ(half.at(2), INFINITY);
  EXPECT_TRUE(std::isnan(half.at(3)));
  EXPECT_EQ(half.to(DType::F32)->at(0), 1);
}

TEST(Half, EveryF16RoundTrips) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    float value = floatFromF16(bits);
    uint16_t back = f16FromFloat(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(floatFromF16(back)));
    } else {
      EXPECT_EQ(back, bits);
    }
    float wide = floatFromBF16(bits);
    if (!std::isnan(wide)) {
      EXPECT_EQ(bf16FromFloat(wide), bits);
    }
  }
}

TEST(Half, RoundsToNearestEvenOnce) {
  EXPECT_EQ(f16FromFloat(65519.0f), 0x7bff);
  EXPECT_EQ(f16FromFloat(65520.0f), 0x7c00);
  EXPECT_EQ(f16FromFloat(0x1p-25f), 0);
  EXPECT_EQ(f16FromFloat(0x1.8p-25f), 1);
  EXPECT_EQ(f16FromFloat(-0x1p-14f), 0x8400);
  // Midway between two halves plus a little that a float cannot hold: rounding
  // first to float would lose it and then round to even, downwards.
  double justAbove = 1 + 0x1p-11 + 0x1p-40;
  Tensor d = *Tensor::copyOf(&justAbove, DType::F64, Sizes{});
  EXPECT_EQ(d.to(DType::F16)->at(0), 1 + 0x1p-10);
  EXPECT_EQ(bf16FromFloat(1 + 0x1p-8f), 0x3f80);
  EXPECT_EQ(bf16FromFloat(1 + 0x1.8p-8f), 0x3f81);
}

TEST(DLPack, RoundTripSharesMemory) {
  Tensor t = iota({4, 6});
  Tensor view = *t.view(Sizes{6, 2}, Sizes{1, 12}, 6);
  Result<DLManagedTensor *> managed = view.toDLPack();
  ASSERT_TRUE(managed);
  EXPECT_EQ((*managed)->dl_tensor.strides[1], 12);
  Result<Tensor> back = Tensor::fromDLPack(*managed);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->data(), view.data());
  EXPECT_EQ(back->at(1), view.at(1));
  EXPECT_FALSE(back->isDense());
}

TEST(DLPack, EveryTypeRoundTrips) {
  for (int i = 0; i <= static_cast<int>(artifact::kLastDType); ++i) {
    auto dtype = static_cast<DType>(i);
    Tensor t = *Tensor::zeros(dtype, Sizes{3});
    Result<DLManagedTensor *> managed = t.toDLPack();
    ASSERT_TRUE(managed);
    DLDataType type = (*managed)->dl_tensor.dtype;
    EXPECT_EQ(type.bits, byteSize(dtype) * 8);
    EXPECT_EQ(type.code == kDLUInt, isUnsigned(dtype)) << spelling(dtype);
    Result<Tensor> back = Tensor::fromDLPack(*managed);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->dtype(), dtype) << spelling(dtype);
  }
}

TEST(DLPack, DeleterRunsOnceAfterTheLastUser) {
  static int deleted;
  deleted = 0;
  float data[2] = {1, 2};
  int64_t shape[1] = {2};
  DLManagedTensor managed{};
  managed.dl_tensor = {data,    {kDLCPU, 0},      1, {kDLFloat, 32, 1}, shape,
                       nullptr, sizeof(float) * 0};
  managed.deleter = [](DLManagedTensor *) { ++deleted; };
  {
    Tensor a = *Tensor::fromDLPack(&managed);
    Tensor b = *a.slice(1, 2);
    a = Tensor();
    EXPECT_EQ(deleted, 0);
    EXPECT_EQ(b.at(0), 2);
  }
  EXPECT_EQ(deleted, 1);
  managed.dl_tensor.dtype.lanes = 4;
  EXPECT_FALSE(Tensor::fromDLPack(&managed));
  EXPECT_EQ(deleted, 1) << "a refused tensor stays the caller's";
}

// A missing shape was called a wrong number of dimensions; an offset that wraps
// around gave a tensor before the memory.
TEST(DLPack, RefusesWhatIsNoTensor) {
  float data[2] = {1, 2};
  DLManagedTensor managed{};
  managed.dl_tensor = {data,    {kDLCPU, 0}, 1, {kDLFloat, 32, 1},
                       nullptr, nullptr,     0};
  EXPECT_EQ(Tensor::fromDLPack(&managed).status().message(),
            "expected a DLPack tensor of 1 dimensions to have a shape but got "
            "null");
  int64_t shape[1] = {2};
  managed.dl_tensor.shape = shape;
  managed.dl_tensor.byte_offset = uint64_t(0) - 4;
  EXPECT_EQ(Tensor::fromDLPack(&managed).status().message(),
            "expected a DLPack tensor to begin within the memory but got the "
            "byte offset 18446744073709551612");
}

TEST(Memory, AccountsAndReturns) {
  auto account = std::make_shared<MemoryAccount>();
  {
    Tensor a = *Tensor::zeros(DType::F32, Sizes{16}, account);
    Tensor b = *Tensor::zeros(DType::F32, Sizes{32}, account);
    EXPECT_EQ(account->current, 192);
    b = Tensor();
    EXPECT_EQ(account->current, 64);
  }
  EXPECT_EQ(account->current, 0);
  EXPECT_EQ(account->peak, 192);
}

} // namespace
