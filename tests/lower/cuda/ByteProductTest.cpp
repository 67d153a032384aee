//===- ByteProductTest.cpp - products of 8 bits by tensor cores -----------===//
//
// Products of two f8 values are exact in f32, and sums of integers in 32 bits:
// numbers are the reference's up to the rounding of sums in f32, and integers
// the reference's to the bit.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/cuda/ByteProduct.h"
#include "tests/lower/anchor/MethodRows.h"

#include "compiler/emit/Assemble.h"

using namespace tandem::test;

namespace {

const CudaOptions ada{"sm_89"};

constexpr bool kBoth[] = {false, true};

/// Checks a product in all four layouts of its factors.
std::string checkLayouts(ByteProduct p, const CudaOptions &options = ada) {
  std::string ptx;
  for (p.tl = false;; p.tl = true) {
    for (bool tr : kBoth) {
      p.tr = tr;
      ptx = checkCuda(p.module(), p.tolerance(), 120, options);
    }
    if (p.tl)
      return ptx;
  }
}

void expectMma(const std::string &ptx, const std::string &types) {
  std::string name = "mma.sync.aligned.m16n8k32.row.col." + types;
  EXPECT_NE(ptx.find(name), std::string::npos) << name;
}

} // namespace

/// Whole tiles and pieces of 16 bytes: asynchronous copies, no guards.
TEST(CudaByteProduct, WholeTiles) {
  expectMma(checkLayouts({128, 128, 192}), "f32.e4m3.e4m3.f32");
  // A step of several tiles of k, of the largest tile.
  checkCuda(ByteProduct{512, 1024, 256}.module(), {256}, 8, ada);
}

/// A gradient is of f8E5M2: either factor may have another format.
TEST(CudaByteProduct, Formats) {
  ByteProduct p{64, 64, 128};
  p.a = "f8E5M2";
  expectMma(checkLayouts(p), "f32.e5m2.e4m3.f32");
  p.b = "f8E5M2";
  expectMma(checkLayouts(p), "f32.e5m2.e5m2.f32");
  p.a = "f8E4M3FN";
  expectMma(checkLayouts(p), "f32.e4m3.e5m2.f32");
}

/// Aligned rows but no whole tiles, rows of pieces of 4 bytes, and odd ones.
TEST(CudaByteProduct, OddSizes) {
  checkLayouts({80, 144, 48});
  checkLayouts({72, 136, 44});
  checkLayouts({67, 131, 37});
  checkLayouts({1, 3, 5});
  checkLayouts({17, 1, 33});
}

/// Few tiles and many k: several blocks share them.
TEST(CudaByteProduct, SplitK) {
  ByteProduct p{24, 48, 4112};
  CudaKernel kernel(p.module(), ada);
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  EXPECT_GT(kernel.blocks, 1);
  EXPECT_GT(kernel.scratchBytes, 0);
  checkLayouts(p);
  p.a = p.b = "i8";
  checkLayouts(p);
}

TEST(CudaByteProduct, Batches) {
  ByteProduct p{40, 24, 72};
  p.batch = "3x";
  checkLayouts(p);
  // A right factor that all batches share makes more rows of one product.
  std::string text =
      kernelModule({"tensor<6x5x32xf8E4M3FN>", "tensor<32x48xf8E4M3FN>"},
                   {"tensor<6x5x48xf32>"}, R"(
    %x = tandem.cast %0 : tensor<6x5x32xf8E4M3FN> to tensor<6x5x32xf32>
    %b = tandem.broadcast %1 to [6, 32, 48] along [1, 2] : tensor<32x48xf8E4M3FN> -> tensor<6x32x48xf8E4M3FN>
    %w = tandem.cast %b : tensor<6x32x48xf8E4M3FN> to tensor<6x32x48xf32>
    %y = tandem.matmul %x, %w {precision = "tf32"} : tensor<6x5x32xf32>, tensor<6x32x48xf32> -> tensor<6x5x48xf32>
    tandem.yield %y : tensor<6x5x48xf32>)");
  CudaKernel kernel(text, ada);
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  EXPECT_LT(kernel.blocks, 6);
  expectMma(checkCuda(text, {32}, 8, ada), "f32.e4m3.e4m3.f32");
}

/// Scales stand behind the product, which stores what they make of its sums.
TEST(CudaByteProduct, ScalesBehind) {
  ByteProduct p{72, 80, 96};
  std::string y = p.y();
  std::string text = kernelModule(
      {ByteProduct::type(p.lhs(), p.a), ByteProduct::type(p.rhs(), p.b),
       "tensor<f32>", "tensor<72xf32>"},
      {y},
      p.body() +
          "%s = tandem.broadcast %2 to [72, 80] along [] : tensor<f32> "
          "-> " +
          y +
          "\n%r = tandem.broadcast %3 to [72, 80] along [0] : "
          "tensor<72xf32> -> " +
          y + "\n%m = tandem.mul %p, %s : " + y +
          "\n%y = tandem.mul %m, %r : " + y + "\ntandem.yield %y : " + y);
  expectMma(checkCuda(text, {96}, 8, ada), "f32.e4m3.e4m3.f32");
}

/// The largest magnitudes of each 64 rows of a tile, and sums, beside what is
/// stored: by warps and by warpgroups. A NaN is larger than all.
TEST(CudaByteProduct, TileMaxima) {
  ByteProduct p{256, 256, 64};
  std::string y = p.y(), parts = "tensor<4x64x256xf32>",
              few = "tensor<4x256xf32>", f8 = "tensor<256x256xf8E4M3FN>";
  std::string text = kernelModule(
      {ByteProduct::type(p.lhs(), p.a), ByteProduct::type(p.rhs(), p.b), y},
      {f8, few, few},
      p.body() + "%s = tandem.mul %p, %2 : " + y + "\n%q = tandem.cast %s : " +
          y + " to " + f8 + "\n%m = tandem.abs %s : " + y +
          "\n%r = tandem.reshape %m to [4, 64, 256] : " + y + " -> " + parts +
          "\n%largest = tandem.reduce_max %r over [1] : " + parts + " -> " +
          few + "\n%t = tandem.reshape %s to [4, 64, 256] : " + y + " -> " +
          parts + "\n%sum = tandem.reduce_sum %t over [1] : " + parts + " -> " +
          few + "\ntandem.yield %q, %largest, %sum : " + f8 + ", " + few +
          ", " + few);
  for (auto [arch, method] :
       {std::pair{"sm_89", "mma"}, {"sm_90a", "wgmma"}, {"sm_90a", "mma"}}) {
    SCOPED_TRACE(method);
    CudaOptions options{arch};
    std::string ptx =
        checkCuda(byMethod(text, method), {64 * 64, 0, 1.0 / 8192}, 8, options);
    EXPECT_EQ(ptx.find("wgmma") != std::string::npos,
              method == std::string("wgmma"));
    CudaKernel kernel(byMethod(text, method), options);
    auto inputs = randomInputs(kernel.inputTypes, 8);
    inputs[2][70 * 256 + 9] = NAN;
    auto results = kernel.outputs(inputs, tandem::emulator::Order::Random);
    EXPECT_EQ(kernel.error, "");
    auto *largest = reinterpret_cast<const float *>(results[1].data());
    for (int64_t i = 0; i < 4 * 256; ++i)
      EXPECT_EQ(std::isnan(largest[i]), i == 256 + 9) << i;
  }
}

/// Sums are exact, also where f32 has no room for them; f32 and f64 alike.
TEST(CudaByteProduct, Integers) {
  for (const char *wide : {"f32", "f64"})
    for (auto [a, b, types] : {std::tuple{"i8", "i8", "s32.s8.s8.s32"},
                               {"ui8", "i8", "s32.u8.s8.s32"},
                               {"i8", "ui8", "s32.s8.u8.s32"},
                               {"ui8", "ui8", "s32.u8.u8.s32"}}) {
      ByteProduct p{48, 40, 112};
      p.a = a;
      p.b = b;
      p.wide = wide;
      p.precision = "f32";
      SCOPED_TRACE(p.module());
      expectMma(checkLayouts(p, {"sm_80"}), types);
      p.M = 33;
      p.N = 21;
      p.K = 83;
      checkLayouts(p, {"sm_80"});
    }
  // 2,064 products of 120 by 120 are more than 2^24.
  ByteProduct p{16, 32, 2064};
  p.a = p.b = "i8";
  p.wide = "f64";
  checkLayouts(p, {"sm_80"});
}

/// Which products are multiplied as bytes: where cores have them, sums are as
/// exact as is asked for, and no sum of integers can be too large.
TEST(CudaByteProduct, WhichAre) {
  auto isOfBytes = [](const ByteProduct &p, const std::string &arch) {
    CudaKernel kernel(p.module(), {arch, "f32", /*emulate=*/false});
    EXPECT_TRUE(kernel.ok()) << kernel.error;
    return kernel.ptx().find("m16n8k32") != std::string::npos;
  };
  ByteProduct p{32, 32, 64};
  EXPECT_TRUE(isOfBytes(p, "sm_89"));
  EXPECT_TRUE(isOfBytes(p, "sm_90"));
  EXPECT_TRUE(isOfBytes(p, "sm_120"));
  EXPECT_FALSE(isOfBytes(p, "sm_80"));
  p.precision = "f32";
  EXPECT_FALSE(isOfBytes(p, "sm_89"));
  p.a = p.b = "ui8";
  EXPECT_TRUE(isOfBytes(p, "sm_80"));
  p.K = 33025; // 33,025 * 255 * 255 < 2^31
  EXPECT_TRUE(isOfBytes(p, "sm_80"));
  p.K = 33026;
  EXPECT_FALSE(isOfBytes(p, "sm_80"));
  p.b = "i8";
  EXPECT_TRUE(isOfBytes(p, "sm_80"));
}

TEST(CudaByteProduct, RowsOfTheTable) {
  auto large =
      explained(ByteProduct{1024, 1024, 1024}.module(), cudaTarget("sm_89"));
  EXPECT_EQ(chosen(large), "mma");
  EXPECT_EQ(against(large, "simt"),
            "expected factors that tensor cores do not take but got f8E4M3FN");
  ByteProduct half{1024, 1024, 1024};
  half.a = half.b = "f16";
  half.wide = "f16";
  // Twice the rate: the same product of f16 takes longer.
  std::string f16 = kernelModule(
      {"tensor<1024x1024xf16>", "tensor<1024x1024xf16>"},
      {"tensor<1024x1024xf16>"},
      "%y = tandem.matmul %0, %1 {transpose_rhs} : tensor<1024x1024xf16>, "
      "tensor<1024x1024xf16> -> tensor<1024x1024xf16>\ntandem.yield %y : "
      "tensor<1024x1024xf16>");
  auto wide = explained(f16, cudaTarget("sm_89"));
  ASSERT_EQ(chosen(wide), "mma");
  EXPECT_LT(*large.methods[1].seconds, *wide.methods[1].seconds);
  // Threads multiply what the bytes are cast to.
  for (const std::string &method : possible(large)) {
    SCOPED_TRACE(method);
    ByteProduct p{40, 24, 36};
    checkCuda(byMethod(p.module(), method), p.tolerance(), 8, ada);
  }
}

/// The first version of PTX that has them; what ptxas says of it, if there is
/// one.
TEST(CudaByteProduct, Ptx) {
  for (const char *arch : {"sm_89", "sm_90", "sm_120"}) {
    CudaKernel kernel(ByteProduct{4096, 4096, 4096}.module(),
                      {arch, "f32", /*emulate=*/false});
    ASSERT_TRUE(kernel.ok()) << kernel.error;
    if (std::string(arch) != "sm_120") {
      EXPECT_NE(kernel.ptx().find(".version 8.4"), std::string::npos);
    }
    EXPECT_NE(kernel.ptx().find("cp.async.cg.shared.global"),
              std::string::npos);
  }
  if (tandem::findPtxas().empty())
    GTEST_SKIP() << "there is no ptxas";
  for (const char *arch : {"sm_89", "sm_90"})
    for (const char *element : {"f8E4M3FN", "f8E5M2", "i8"})
      for (bool t : kBoth) {
        ByteProduct p{4096, 4096, 4096, t, !t};
        p.a = p.b = element;
        CudaKernel kernel(p.module(), {arch, "f32", /*emulate=*/false});
        ASSERT_TRUE(kernel.ok()) << kernel.error;
        auto resources = tandem::resourcesOf(kernel.ptx(), arch);
        ASSERT_TRUE(resources) << resources.status().message();
        for (const tandem::KernelResources &r : *resources)
          EXPECT_EQ(r.spillStoreBytes + r.spillLoadBytes, 0) << p.module();
      }
}
