//===- ReduceBlocksTest.cpp - sums, largest and smallest of blocks --------===//
#include "runtime/comm/ReduceBlocks.h"
#include "runtime/tensor/Half.h"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

using namespace tandem;
using namespace tandem::comm;
using artifact::DType;

namespace {

template <typename T>
std::vector<T> reduced(DType type, Reduce reduce,
                       const std::vector<std::vector<T>> &blocks) {
  std::vector<const void *> places;
  for (const std::vector<T> &block : blocks)
    places.push_back(block.data());
  std::vector<T> result(blocks[0].size());
  Status status =
      reduceBlocks(type, reduce, places, result.data(), int64_t(result.size()));
  EXPECT_TRUE(status.ok()) << status.message();
  return result;
}

TEST(ReduceBlocks, AddsInTheOrderOfTheBlocks) {
  // In another order, the small number is not lost.
  EXPECT_EQ(reduced<float>(DType::F32, Reduce::Sum, {{1}, {1e9f}, {-1e9f}})[0],
            0);
  EXPECT_EQ(reduced<float>(DType::F32, Reduce::Sum, {{1e9f}, {-1e9f}, {1}})[0],
            1);
  EXPECT_EQ(
      reduced<double>(DType::F64, Reduce::Sum, {{1e-12}, {1e9}, {-1e9}})[0],
      (1e-12 + 1e9) - 1e9);
}

TEST(ReduceBlocks, AddsHalvesInF32) {
  auto half = [](float value) { return runtime::f16FromFloat(value); };
  // In f16, 2048 + 1 is 2048.
  EXPECT_EQ(reduced<uint16_t>(DType::F16, Reduce::Sum,
                              {{half(2048)}, {half(1)}, {half(1)}})[0],
            half(2050));
  auto brain = [](float value) { return runtime::bf16FromFloat(value); };
  EXPECT_EQ(reduced<uint16_t>(DType::BF16, Reduce::Sum,
                              {{brain(256)}, {brain(1)}, {brain(1)}})[0],
            brain(258));
  auto eight = [](float value) { return runtime::f8E4M3FNFromFloat(value); };
  EXPECT_EQ(reduced<uint8_t>(DType::F8E4M3FN, Reduce::Sum,
                             {{eight(16)}, {eight(1)}, {eight(1)}})[0],
            eight(18));
}

TEST(ReduceBlocks, WrapsIntegersAround) {
  int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(reduced<int64_t>(DType::I64, Reduce::Sum, {{most}, {1}})[0],
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(reduced<int8_t>(DType::I8, Reduce::Sum, {{100}, {100}})[0], -56);
}

TEST(ReduceBlocks, ComparesWithSignsAndKeepsNaN) {
  float nan = std::nanf("");
  EXPECT_EQ(reduced<int8_t>(DType::I8, Reduce::Max, {{-1}, {1}})[0], 1);
  EXPECT_EQ(reduced<uint8_t>(DType::U8, Reduce::Max, {{255}, {1}})[0], 255);
  EXPECT_EQ(reduced<int64_t>(DType::I64, Reduce::Min, {{-1}, {1}})[0], -1);
  for (Reduce reduce : {Reduce::Sum, Reduce::Max, Reduce::Min})
    for (float value : reduced<float>(DType::F32, reduce,
                                      {{nan, 1, 1}, {1, nan, 1}, {1, 1, nan}}))
      EXPECT_TRUE(std::isnan(value));
}

TEST(ReduceBlocks, HasNoSumOfBools) {
  EXPECT_EQ(reduced<uint8_t>(DType::Bool, Reduce::Max, {{0}, {1}})[0], 1);
  EXPECT_EQ(reduced<uint8_t>(DType::Bool, Reduce::Min, {{0}, {1}})[0], 0);
  EXPECT_EQ(reduceBlocks(DType::Bool, Reduce::Sum, {}, nullptr, 0).message(),
            "bools have no sum over ranks");
}

TEST(ReduceBlocks, MayWriteToOneOfThem) {
  std::vector<float> a(1000), b(1000);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = float(i), b[i] = 2 * float(i);
  std::array<const void *, 2> blocks{a.data(), b.data()};
  ASSERT_TRUE(reduceBlocks(DType::F32, Reduce::Sum, blocks, b.data(), 1000));
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(b[i], 3 * float(i));
}

} // namespace
