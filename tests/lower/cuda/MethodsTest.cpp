//===- MethodsTest.cpp - the tables of methods for CUDA -------------------===//
//
// Which row each kernel comes to and the reasons against the others; rows asked
// for by name give the reference's numbers in the emulator.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/anchor/AttentionKernel.h"
#include "tests/lower/anchor/MatmulKernel.h"
#include "tests/lower/anchor/MethodRows.h"
#include "tests/lower/cuda/CudaCheck.h"

using namespace tandem;
using namespace tandem::test;

static Product square(int64_t size, const std::string &element) {
  Product p{{}, size, size, size};
  p.element = element;
  return p;
}

static std::string turned(int64_t n, int64_t m) {
  std::string sizes = std::to_string(n) + "x" + std::to_string(m);
  std::string x = "tensor<" + sizes + "xf32>";
  std::string y =
      "tensor<" + std::to_string(m) + "x" + std::to_string(n) + "xf32>";
  return kernelModule({x}, {y},
                      "%y = tandem.permute %0 by [1, 0] : " + x + " -> " + y +
                          "\ntandem.yield %y : " + y);
}

static std::string sumOver(const std::string &over, const std::string &result) {
  const std::string x = "tensor<40x66xf32>";
  return kernelModule({x}, {result},
                      "%y = tandem.reduce_sum %0 over [" + over + "] : " + x +
                          " -> " + result + "\ntandem.yield %y : " + result);
}

/// The cheaper of two kinds of tensor cores, or threads.
TEST(CudaMethods, RowsOfProducts) {
  auto large = explained(productKernel(square(4096, "bf16")),
                         test::cudaTarget("sm_90a"));
  EXPECT_EQ(chosen(large), "wgmma");
  EXPECT_EQ(against(large, "simt"),
            "expected factors that tensor cores do not take but got bf16");
  EXPECT_TRUE(llvm::StringRef(against(large, "mma"))
                  .starts_with("expected less than the "))
      << against(large, "mma");
  EXPECT_LT(*large.methods[0].seconds, *large.methods[1].seconds);
  auto older =
      explained(productKernel(square(256, "f16")), test::cudaTarget("sm_80"));
  EXPECT_EQ(chosen(older), "mma");
  EXPECT_EQ(against(older, "wgmma"),
            "expected a target of sm_90a but got sm_80");
  auto f32 =
      explained(productKernel(square(256, "f32")), test::cudaTarget("sm_90a"));
  EXPECT_EQ(chosen(f32), "simt");
  EXPECT_EQ(against(f32, "mma"),
            "expected factors of f16, bf16 or tf32 but got f32");
  EXPECT_EQ(chosen(explained(productKernel(square(256, "f32")),
                             test::cudaTarget("sm_90", "tf32"))),
            "mma");
  EXPECT_EQ(chosen(explained(productKernel(square(64, "f64")),
                             test::cudaTarget("sm_90"))),
            "simt");
}

TEST(CudaMethods, RowsOfAttention) {
  Heads heads{.leading = "2x", .T = 40, .S = 40, .D = 32, .E = 32};
  auto text = [&] { return attentionKernel(heads, AttentionKernel::Forward); };
  auto tiles = explained(text(), test::cudaTarget("sm_90"));
  EXPECT_EQ(chosen(tiles), "tiles");
  EXPECT_EQ(against(tiles, "rows"), "'tiles' is asked first");
  heads.element = "f64";
  EXPECT_EQ(against(explained(text(), test::cudaTarget("sm_90")), "tiles"),
            "expected elements of at most 32 bits but got f64");
  heads.element = "f32";
  heads.D = 300;
  auto wide = explained(text(), test::cudaTarget("sm_90"));
  EXPECT_EQ(chosen(wide), "rows");
  EXPECT_EQ(against(wide, "tiles"), "expected at most 256 columns but got 300");
}

TEST(CudaMethods, RowsOfLoops) {
  auto target = test::cudaTarget("sm_90");
  auto tile = explained(turned(64, 96), target);
  EXPECT_EQ(chosen(tile), "transposed");
  EXPECT_EQ(against(tile, "pointwise"), "'transposed' is asked first");
  auto narrow = explained(turned(8, 64), target);
  EXPECT_EQ(chosen(narrow), "pointwise");
  EXPECT_EQ(against(narrow, "transposed"),
            "expected at least 16 neighbours but got 8");
  EXPECT_EQ(chosen(explained(sumOver("1", "tensor<40xf32>"), target)), "rows");
  auto columns = explained(sumOver("0", "tensor<66xf32>"), target);
  EXPECT_EQ(chosen(columns), "columns");
  EXPECT_EQ(against(columns, "transposed"),
            "expected no reductions but got some");
}

/// Checks the kernel by each method that computes it; returns how many.
static int checkEach(const std::string &text, Tolerance tolerance,
                     const CudaOptions &options = {}) {
  int count = 0;
  auto kernel =
      explained(text, test::cudaTarget(options.arch, options.matmulPrecision));
  for (const std::string &method : possible(kernel)) {
    SCOPED_TRACE(method);
    checkCuda(byMethod(text, method), tolerance, 8, options);
    ++count;
  }
  return count;
}

TEST(CudaMethods, ProductsByEachMethod) {
  for (const char *element : {"f16", "bf16"}) {
    Product p{{}, 72, 136, 40};
    p.element = element;
    EXPECT_EQ(checkEach(productKernel(p), {40}), 2);
    p.transposeLhs = p.transposeRhs = true;
    p.M = 33;
    EXPECT_EQ(checkEach(productKernel(p), {40}), 2);
  }
  EXPECT_EQ(checkEach(productKernel(square(128, "bf16")), {128}, {"sm_90a"}),
            3);
  CudaOptions tf32{"sm_90", "tf32"};
  EXPECT_EQ(checkEach(productKernel({{}, 40, 24, 50}), {50, 0, 0x1p-11}, tf32),
            2);
}

TEST(CudaMethods, OthersByEachMethod) {
  Heads heads{.leading = "2x", .T = 33, .S = 40, .D = 16, .E = 24};
  for (AttentionKernel kernel : kAttentionKernels)
    EXPECT_EQ(checkEach(attentionKernel(heads, kernel), toleranceOf(heads)), 2);
  EXPECT_EQ(checkEach(turned(33, 47), {1}), 2);
}

/// What went wrong: kernels of poolings, indices and lines had no table, and a
/// schedule that named the method of another family was taken without a word.
TEST(CudaMethods, FamiliesOfOneMethod) {
  struct Case {
    const char *method;
    std::string text;
  };
  const Case cases[] = {
      {"pooling",
       kernelModule({"tensor<2x3x6x6xf32>"}, {"tensor<2x3x3x3xf32>"},
                    "%y, %i = tandem.max_pool2d %0 kernel [2, 2] strides "
                    "[2, 2] : tensor<2x3x6x6xf32> -> tensor<2x3x3x3xf32>, "
                    "tensor<2x3x3x3xi32>\n"
                    "tandem.yield %y : tensor<2x3x3x3xf32>")},
      {"lines", kernelModule({"tensor<3x40xf32>"}, {"tensor<3x40xf32>"},
                             "%y = tandem.cumsum %0 dim 1 : "
                             "tensor<3x40xf32> -> tensor<3x40xf32>\n"
                             "tandem.yield %y : tensor<3x40xf32>")}};
  for (const Case &one : cases) {
    auto kernel = explained(one.text, test::cudaTarget("sm_90"));
    EXPECT_EQ(possible(kernel), std::vector<std::string>{one.method});
    EXPECT_EQ(chosen(kernel), one.method);
    CudaKernel other(byMethod(one.text, "simt"));
    EXPECT_FALSE(other.ok());
    EXPECT_NE(other.error.find("for cuda to be '" + std::string(one.method) +
                               "', but got 'simt'"),
              std::string::npos)
        << other.error;
  }
}

/// Among them numbers of a CPU, and tiles that are none of the table.
TEST(CudaMethods, WhatIsRefused) {
  CudaKernel impossible(byMethod(turned(8, 64), "transposed"));
  EXPECT_FALSE(impossible.ok());
  EXPECT_NE(impossible.error.find(
                "method 'transposed' does not compute this kernel: expected at "
                "least 16 neighbours but got 8"),
            std::string::npos)
      << impossible.error;
  CudaKernel numbers(scheduled(turned(64, 64), "#tandem.schedule<rows = 4>"));
  EXPECT_FALSE(numbers.ok());
  EXPECT_NE(numbers.error.find("'rows' of a schedule is of a CPU, but the "
                               "kernel is for CUDA"),
            std::string::npos)
      << numbers.error;
  CudaKernel tile(scheduled(productKernel(square(64, "f32")),
                            "#tandem.schedule<block_m = 48>"));
  EXPECT_FALSE(tile.ok());
  EXPECT_NE(tile.error.find("method 'simt' cannot cut this kernel with "
                            "'block_m' = 48 and what else its schedule says"),
            std::string::npos)
      << tile.error;
}
