//===- PhiloxTest.cpp - the generator against published words -------------===//
//
// The known answers are those of Random123's tests for philox4x32-10.
//
//===----------------------------------------------------------------------===//
#include "ir/ops/Philox.h"
#include "ir/reference/Evaluator.h"
#include "tests/support/TestModule.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace tandem;
using namespace tandem::test;
using random::Block;
using reference::Array;

TEST(Philox, KnownAnswers) {
  constexpr uint32_t kAll = 0xFFFFFFFF;
  EXPECT_EQ(random::philox({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  EXPECT_EQ(random::philox({kAll, kAll, kAll, kAll}, {kAll, kAll}),
            (Block{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT_EQ(random::philox({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344},
                           {0xA4093822, 0x299F31D0}),
            (Block{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

// How an op asks: the position in 40 bits, the draw in 24, the offset in 64.
TEST(Philox, CounterOfAPosition) {
  Block pi = {0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1};
  for (int64_t word = 0; word < 4; ++word)
    EXPECT_EQ(random::bits(0x299F31D0A4093822, 0x0370734413198A2E,
                           (0xD3243F6A88 << 2) + word, 0x85A308),
              pi[word]);
  double uniform = random::uniform(0x299F31D0A4093822, 0x0370734413198A2E,
                                   (0xD3243F6A88 << 1) + 1, 0x85A308, 53);
  EXPECT_EQ(uniform, double(0x5001E42024126EA1 >> 11) * 0x1p-53);
}

// Five standard errors of each estimate.
TEST(Philox, Moments) {
  TestModule t(R"(
func.func @f(%s: tensor<2xi64>) -> (tensor<65536xf32>, tensor<65536xf64>,
    tensor<65536xi1>, tensor<65536xf32>, tensor<65536xf32>) {
  %0 = tandem.random_uniform %s draw 0 : tensor<65536xf32>
  %1 = tandem.random_normal %s draw 1 : tensor<65536xf64>
  %2 = tandem.bernoulli %s draw 2 p 0.3 : tensor<65536xi1>
  %x = tandem.constant dense<1.0> : tensor<65536xf32>
  %3 = tandem.dropout %x, %s draw 3 p 0.3 {training} : tensor<65536xf32>
  %4 = tandem.random_uniform %s draw 4 : tensor<65536xf32>
  return %0, %1, %2, %3, %4 : tensor<65536xf32>, tensor<65536xf64>,
    tensor<65536xi1>, tensor<65536xf32>, tensor<65536xf32>
})");
  Array state({2});
  state[0] = 11;
  state[1] = 5;
  auto r = reference::evaluate(t.function("f"), state);
  ASSERT_TRUE(mlir::succeeded(r)) << t.diagnostics;
  double n = 65536;
  auto mean = [&](auto value) {
    double sum = 0;
    for (int64_t i = 0; i < 65536; ++i)
      sum += value(i) / n;
    return sum;
  };
  auto expectMean = [&](double expected, double deviation, auto value) {
    EXPECT_NEAR(mean(value), expected, 5 * deviation / std::sqrt(n));
  };
  const Array &u = (*r)[0], &g = (*r)[1], &v = (*r)[4];
  // Of u and of (u - 1/2)^2: 1/12, 1/80 - 1/144. Of g^2 and g^4: 2, 96.
  expectMean(0.5, std::sqrt(1 / 12.), [&](int64_t i) { return u[i]; });
  expectMean(1 / 12., std::sqrt(1 / 180.),
             [&](int64_t i) { return std::pow(u[i] - 0.5, 2); });
  expectMean(0, 1, [&](int64_t i) { return g[i]; });
  expectMean(1, std::sqrt(2.), [&](int64_t i) { return g[i] * g[i]; });
  expectMean(3, std::sqrt(96.), [&](int64_t i) { return std::pow(g[i], 4); });
  double keeps = std::sqrt(0.3 * 0.7);
  expectMean(0.3, keeps, [&](int64_t i) { return (*r)[2][i]; });
  expectMean(0.7, keeps, [&](int64_t i) { return (*r)[3][i] != 0; });
  expectMean(1, keeps / 0.7, [&](int64_t i) { return (*r)[3][i]; });
  // Neighbours, and draws: no correlation.
  auto centered = [](const Array &a, int64_t i) {
    return (a[i % 65536] - 0.5) * std::sqrt(12.);
  };
  expectMean(0, 1,
             [&](int64_t i) { return centered(u, i) * centered(u, i + 1); });
  expectMean(0, 1, [&](int64_t i) { return centered(u, i) * centered(v, i); });
}

TEST(Philox, TheOpsGiveTheseWords) {
  TestModule t(R"(
func.func @f(%s: tensor<2xi64>) -> (tensor<2x3xi32>, tensor<6xf32>,
    tensor<6xbf16>, tensor<6xf16>, tensor<2xf64>, tensor<6xi32>) {
  %0 = tandem.random_bits %s draw 0 : tensor<2x3xi32>
  %1 = tandem.random_uniform %s draw 0 : tensor<6xf32>
  %2 = tandem.random_uniform %s draw 0 : tensor<6xbf16>
  %3 = tandem.random_uniform %s draw 0 : tensor<6xf16>
  %4 = tandem.random_uniform %s draw 0 : tensor<2xf64>
  %5 = tandem.random_bits %s draw 1 : tensor<6xi32>
  return %0, %1, %2, %3, %4, %5 : tensor<2x3xi32>, tensor<6xf32>,
    tensor<6xbf16>, tensor<6xf16>, tensor<2xf64>, tensor<6xi32>
})");
  Array state({2});
  auto r = reference::evaluate(t.function("f"), state);
  ASSERT_TRUE(mlir::succeeded(r)) << t.diagnostics;
  uint32_t words[] = {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ((*r)[0][i], double(int32_t(words[i])));
    EXPECT_EQ((*r)[1][i], double(words[i] >> 8) * 0x1p-24);
    EXPECT_EQ((*r)[2][i], double(words[i] >> 24) * 0x1p-8);
    EXPECT_EQ((*r)[3][i], double(words[i] >> 21) * 0x1p-11);
    EXPECT_NE((*r)[5][i], (*r)[0][i]);
  }
  EXPECT_EQ((*r)[4][0], double(0x6627E8D5E169C58D >> 11) * 0x1p-53);
  EXPECT_EQ((*r)[4][1], double(0xBC57AC4C9B00DBD8 >> 11) * 0x1p-53);
  // Another block, and then another offset.
  EXPECT_EQ((*r)[0][4], double(int32_t(random::bits(0, 0, 4, 0))));
  EXPECT_NE((*r)[0][4], (*r)[0][0]);
}
