//===- FmaLoopsTest.cpp - the loops that give the roof --------------------===//
#include "tools/commands/FmaLoops.h"

#include "runtime/device/CpuFeatures.h"

#include <chrono>
#include <gtest/gtest.h>

namespace tandem::commands::test {
namespace {

using artifact::DType;

/// Flops a second, of the best of some rounds.
double rate(const FmaLoop &loop) {
  double best = 0;
  for (int round = 0; round < 20; ++round) {
    auto begin = std::chrono::steady_clock::now();
    loop.run(10000);
    std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - begin;
    best = std::max(best, 10000 * loop.flops / seconds.count());
  }
  return best;
}

TEST(FmaLoops, AreTheWidestThatRunHere) {
  FmaLoop single = widestFmaLoop(DType::F32);
  FmaLoop twice = widestFmaLoop(DType::F64);
  EXPECT_EQ(single.flops, 2 * twice.flops);
  // Not a processor of this century is below it; a loop that the compiler
  // took away would be above any.
  EXPECT_GT(rate(single), 5e8);
  EXPECT_LT(rate(single), 2e12);
  EXPECT_GT(rate(twice), 2.5e8);
  if (runtime::missingCpuFeatures({"avx512f"}).empty()) {
    EXPECT_STREQ(single.name, "avx512f");
  } else if (runtime::missingCpuFeatures({"avx2", "fma"}).empty()) {
    EXPECT_STREQ(single.name, "avx2");
  }
}

TEST(FmaLoops, ProductsOfBFloatsOrElseOfFloats) {
  FmaLoop narrow = widestFmaLoop(DType::BF16),
          single = widestFmaLoop(DType::F32);
  if (runtime::missingCpuFeatures({"amx-tile", "amx-bf16"}).empty()) {
    EXPECT_STREQ(narrow.name, "amx-bf16");
    EXPECT_GT(rate(narrow), 2 * rate(single));
    EXPECT_LT(rate(narrow), 2e13);
  } else if (std::string(narrow.name) == "avx512bf16") {
    EXPECT_EQ(narrow.flops, 2 * single.flops);
  } else {
    EXPECT_STREQ(narrow.name, single.name);
  }
  EXPECT_GT(rate(narrow), 5e8);
}

} // namespace
} // namespace tandem::commands::test
