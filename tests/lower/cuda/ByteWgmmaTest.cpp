//===- ByteWgmmaTest.cpp - products of 8 bits by warpgroups ---------------===//
//
// The emulator adds f8 products as Hopper's cores are known to: cut off 13 bits
// below the largest of 32 and the sum. What that leaves out does not grow with
// k as f32 adds the sums of each 128. Sums of integers are exact.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/anchor/MethodRows.h"
#include "tests/lower/cuda/ByteProduct.h"

#include "compiler/emit/Assemble.h"

#include <algorithm>

using namespace tandem::test;

namespace {

const CudaOptions hopper{"sm_90a", "f32", true, "wgmma"};

/// Products are exact; of sums of f8 some 13 bits are.
Tolerance toleranceOf(const ByteProduct &p) {
  Tolerance tolerance = p.tolerance();
  if (p.a[0] == 'f')
    tolerance.factors = 1.0 / 8192;
  return tolerance;
}

void expectWgmma(const std::string &ptx, const std::string &types) {
  EXPECT_NE(ptx.find("wgmma.mma_async.sync.aligned.m64n"), std::string::npos);
  EXPECT_NE(ptx.find("k32." + types + " "), std::string::npos) << types;
  EXPECT_EQ(ptx.find("mma.sync"), std::string::npos);
}

std::string check(const ByteProduct &p,
                  const std::string &types = "f32.e4m3.e4m3") {
  std::string ptx = checkCuda(p.module(), toleranceOf(p), 120, hopper);
  expectWgmma(ptx, types);
  return ptx;
}

} // namespace

TEST(ByteWgmma, WholeTiles) {
  check({128, 128, 128});
  check({128, 192, 256});
  check({256, 256, 384});
}

/// Either factor may have another format.
TEST(ByteWgmma, Formats) {
  ByteProduct p{64, 64, 160};
  p.a = "f8E5M2";
  check(p, "f32.e5m2.e4m3");
  p.b = "f8E5M2";
  check(p, "f32.e5m2.e5m2");
  p.a = "f8E4M3FN";
  check(p, "f32.e4m3.e5m2");
}

/// What is outside of the tensors is zero, and is not stored: lines may be any,
/// rows are of 16 bytes.
TEST(ByteWgmma, Edges) {
  check({72, 136, 48});
  check({67, 131, 16});
  check({200, 313, 112});
  check({2, 3, 32});
}

/// Many more tiles of k than there are stages: each is used again and again.
TEST(ByteWgmma, RingOfStages) { check({128, 128, 128 * 15 + 16}); }

TEST(ByteWgmma, Batches) {
  ByteProduct p{40, 24, 80};
  p.batch = "3x";
  check(p);
}

/// Several blocks share a long k, and the last of them adds, integers too.
TEST(ByteWgmma, SplitK) {
  ByteProduct p{24, 48, 128 * 65};
  CudaKernel kernel(p.module(), hopper);
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  EXPECT_GT(kernel.blocks, 1);
  EXPECT_GT(kernel.scratchBytes, 0);
  check(p);
  p.a = p.b = "i8";
  check(p, "s32.s8.s8");
}

/// Sums are exact, also where f32 has no room for them; f32 and f64 alike.
TEST(ByteWgmma, Integers) {
  for (const char *wide : {"f32", "f64"})
    for (auto [a, b, types] : {std::tuple{"i8", "i8", "s32.s8.s8"},
                               {"ui8", "i8", "s32.u8.s8"},
                               {"i8", "ui8", "s32.s8.u8"},
                               {"ui8", "ui8", "s32.u8.u8"}}) {
      ByteProduct p{130, 70, 144};
      p.a = a;
      p.b = b;
      p.wide = wide;
      p.precision = "f32";
      SCOPED_TRACE(p.module());
      check(p, types);
    }
  // 2,064 products of 120 by 120 are more than 2^24.
  ByteProduct p{16, 32, 2064};
  p.a = p.b = "i8";
  p.wide = "f64";
  check(p, "s32.s8.s8");
}

/// Scales stand behind the product, which stores what they make of its sums.
TEST(ByteWgmma, ScalesBehind) {
  ByteProduct p{72, 80, 96};
  std::string y = p.y();
  std::string text = kernelModule(
      {ByteProduct::type(p.lhs(), p.a), ByteProduct::type(p.rhs(), p.b),
       "tensor<f32>"},
      {y},
      p.body() +
          "%s = tandem.broadcast %2 to [72, 80] along [] : tensor<f32> -> " +
          y + "\n%y = tandem.mul %p, %s : " + y + "\ntandem.yield %y : " + y);
  expectWgmma(checkCuda(text, toleranceOf(p), 8, hopper), "f32.e4m3.e4m3");
}

/// 8,192 products of 2.25 are 18,432: a sum in the core alone, whose last bit
/// is then worth 2, would no longer grow by quarters.
TEST(ByteWgmma, SumsDoNotStall) {
  ByteProduct p{8, 16, 8192};
  CudaKernel kernel(scheduled(p.module(), "#tandem.schedule<method = wgmma, "
                                          "splits = 1>"),
                    hopper);
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  EXPECT_EQ(kernel.blocks, 1);
  auto inputs = randomInputs(kernel.inputTypes, 2);
  for (auto &input : inputs)
    std::fill(input.data.begin(), input.data.end(), 1.5);
  auto results = kernel.outputs(inputs, tandem::emulator::Order::Random);
  EXPECT_EQ(kernel.error, "");
  expectClose(results, kernel.expected(inputs), kernel.outputTypes, {0});
}

/// Factors along the lines, and rows that are no pieces of 16 bytes, are for
/// mma.sync.
TEST(ByteWgmma, Fallback) {
  for (const ByteProduct &p :
       {ByteProduct{64, 64, 64, true, true},
        ByteProduct{64, 64, 64, false, false}, ByteProduct{64, 64, 40}}) {
    std::string ptx = checkCuda(p.module(), p.tolerance(), 8, hopper);
    EXPECT_EQ(ptx.find("wgmma"), std::string::npos);
    EXPECT_NE(ptx.find("m16n8k32"), std::string::npos);
  }
}

/// Without being told, large products on sm_90a, and no others.
TEST(ByteWgmma, Choice) {
  auto usesWgmma = [](const ByteProduct &p, const std::string &arch) {
    CudaKernel kernel(p.module(), {arch, "f32", false});
    EXPECT_TRUE(kernel.ok()) << kernel.error;
    return kernel.ok() && kernel.ptx().find("wgmma") != std::string::npos;
  };
  for (const char *element : {"f8E4M3FN", "i8"}) {
    ByteProduct large{4096, 4096, 4096};
    large.a = large.b = element;
    EXPECT_TRUE(usesWgmma(large, "sm_90a"));
    EXPECT_FALSE(usesWgmma(large, "sm_90"));
  }
  EXPECT_FALSE(usesWgmma({64, 64, 64}, "sm_90a"));
}

/// What ptxas says of the code: all sums in registers, products not one by one.
TEST(ByteWgmma, Assembles) {
  if (tandem::findPtxas().empty())
    GTEST_SKIP() << "there is no ptxas";
  for (const char *element : {"f8E4M3FN", "f8E5M2", "i8", "ui8"})
    for (auto [m, n, k] : {std::tuple{4096, 4096, 4096},
                           {1000, 1000, 4096},
                           {128, 128, 32768}}) {
      ByteProduct p{m, n, k};
      p.a = p.b = element;
      CudaOptions options = hopper;
      options.emulate = false;
      CudaKernel kernel(p.module(), options);
      ASSERT_TRUE(kernel.ok()) << kernel.error;
      auto resources = tandem::resourcesOf(kernel.ptx(), options.arch);
      ASSERT_TRUE(resources) << resources.status().message();
      for (const tandem::KernelResources &r : *resources) {
        EXPECT_EQ(r.spillStoreBytes + r.spillLoadBytes, 0) << p.module();
        EXPECT_LE(r.registers, 168);
        EXPECT_TRUE(r.remarks.empty()) << r.remarks.front();
      }
    }
}
