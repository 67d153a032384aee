//===- ProductTest.cpp - what CUDA's products have of their own -----------===//
#include "tests/lower/cuda/CudaCheck.h"

#include "compiler/emit/Assemble.h"

#include <sstream>

using namespace tandem::test;

static std::string tensor(int64_t rows, int64_t columns,
                          const std::string &element) {
  return "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) +
         "x" + element + ">";
}

static std::string product(int64_t M, int64_t N, int64_t K, bool tl, bool tr,
                           const std::string &element) {
  std::string lhs = tl ? tensor(K, M, element) : tensor(M, K, element);
  std::string rhs = tr ? tensor(N, K, element) : tensor(K, N, element);
  std::string y = tensor(M, N, element);
  std::string attributes = std::string(tl ? "transpose_lhs" : "") +
                           (tl && tr ? ", " : "") + (tr ? "transpose_rhs" : "");
  return kernelModule({lhs, rhs}, {y},
                      "%y = tandem.matmul %0, %1 {" + attributes +
                          "} : " + lhs + ", " + rhs + " -> " + y +
                          "\ntandem.yield %y : " + y);
}

static constexpr bool kBoth[] = {false, true};

/// Whole tiles and pieces of 16 bytes: asynchronous copies, no guards.
TEST(CudaProduct, WholeTiles) {
  for (const char *element : {"f32", "f64", "f16", "bf16"})
    for (bool tl : kBoth)
      for (bool tr : kBoth)
        checkCuda(product(128, 128, 96, tl, tr, element), {96});
}

/// Aligned rows, but no whole tiles.
TEST(CudaProduct, GuardedPieces) {
  for (const char *element : {"f32", "bf16"})
    for (bool tl : kBoth)
      for (bool tr : kBoth)
        checkCuda(product(72, 136, 40, tl, tr, element), {40});
}

/// Rows that are not aligned.
TEST(CudaProduct, OddRows) {
  for (const char *element : {"f32", "f16"})
    for (bool tl : kBoth)
      for (bool tr : kBoth)
        checkCuda(product(67, 131, 37, tl, tr, element), {37});
}

/// What an update in place reads for several pieces is read before the first of
/// them is stored: a load behind a store that may be to the same address waits.
TEST(CudaProduct, EpiloguesReadBeforeTheyStore) {
  std::string lhs = tensor(4096, 64, "bf16"), rhs = tensor(64, 4096, "bf16"),
              product = tensor(4096, 4096, "bf16"),
              y = tensor(4096, 4096, "f32");
  std::string text =
      kernelModule({lhs, rhs, y, y}, {y, y},
                   "%p = tandem.matmul %0, %1 : " + lhs + ", " + rhs + " -> " +
                       product + "\n%g = tandem.cast %p : " + product + " to " +
                       y + "\n%m = tandem.add %2, %g : " + y +
                       "\n%w = tandem.sub %3, %m : " + y +
                       "\ntandem.yield %w, %m : " + y + ", " + y);
  size_t place = text.find("{buffers = ");
  ASSERT_NE(place, std::string::npos);
  text.insert(place + 1, "in_place = #tandem.in_place<0 over 3, 1 over 2>, ");
  CudaKernel kernel(text, {"sm_80", "f32", /*emulate=*/false});
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  std::string order;
  std::istringstream lines(kernel.ptx());
  for (std::string line; std::getline(lines, line);)
    for (const char *access : {"ld.global", "st.global"})
      if (line.find(access) != std::string::npos)
        order += *access;
  size_t first = order.find('s');
  ASSERT_NE(first, std::string::npos) << order;
  EXPECT_GE(first, 8u) << order;
  EXPECT_EQ(order.find('l', first), std::string::npos) << order;
}

/// Few tiles and many k: several blocks share them.
TEST(CudaProduct, SplitK) {
  for (const char *element : {"f32", "f64", "bf16"}) {
    CudaKernel kernel(product(24, 40, 8200, false, false, element));
    ASSERT_TRUE(kernel.ok()) << kernel.error;
    EXPECT_GT(kernel.blocks, 1) << element;
    EXPECT_GT(kernel.scratchBytes, 0) << element;
    checkCuda(product(24, 40, 8200, false, false, element), {8200});
    checkCuda(product(17, 33, 5001, true, true, element), {5001});
  }
}

/// A weight that all batches share makes one product of more rows.
TEST(CudaProduct, SharedRhs) {
  std::string text = kernelModule({"tensor<6x5x32xf32>", "tensor<32x48xf32>"},
                                  {"tensor<6x5x48xf32>"}, R"(
    %b = tandem.broadcast %1 to [6, 32, 48] along [1, 2] : tensor<32x48xf32> -> tensor<6x32x48xf32>
    %y = tandem.matmul %0, %b : tensor<6x5x32xf32>, tensor<6x32x48xf32> -> tensor<6x5x48xf32>
    tandem.yield %y : tensor<6x5x48xf32>)");
  CudaKernel kernel(text);
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  EXPECT_LT(kernel.blocks, 6);
  checkCuda(text, {32});
}

/// What is computed on the way to a factor is computed where it is needed: for
/// windows, only where they see it.
TEST(CudaProduct, ComputedFactors) {
  for (std::string e : {"f32", "bf16"}) {
    auto type = [&](const std::string &shape) {
      return "tensor<" + shape + "x" + e + ">";
    };
    std::string y = type("2x6x5x5"), w = type("6x4x3x3"), x = type("2x4x9x9");
    Tolerance tolerance{54, 0, e == "f32" ? 0 : 1.0 / 256};
    checkCuda(kernelModule(
                  {y, y, w}, {x},
                  "%m = tandem.mul %0, %1 : " + y +
                      "\n%e = tandem.exp %m : " + y +
                      "\n%x = tandem.conv2d_input_grad %e, %2 to [2, 4, "
                      "9, 9] strides [2, 2] padding [1, 1, 1, 1] : " +
                      y + ", " + w + " -> " + x + "\ntandem.yield %x : " + x),
              tolerance);
    checkCuda(kernelModule(
                  {x, y}, {w},
                  "%e = tandem.exp %0 : " + x +
                      "\n%w = tandem.conv2d_filter_grad %e, %1 to [6, "
                      "4, 3, 3] strides [2, 2] padding [1, 1, 1, 1] : " +
                      x + ", " + y + " -> " + w + "\ntandem.yield %w : " + w),
              tolerance);
    std::string a = type("40x24"), b = type("24x48"), c = type("40x48");
    checkCuda(kernelModule({a, b, b}, {c},
                           "%e = tandem.exp %0 : " + a +
                               "\n%m = tandem.mul %1, %2 : " + b +
                               "\n%c = tandem.matmul %e, %m : " + a + ", " + b +
                               " -> " + c + "\ntandem.yield %c : " + c),
              tolerance);
  }
}

TEST(CudaProduct, Tf32) {
  // Factors have 10 bits after the point.
  Tolerance tolerance{96, 0, 1.0 / 2048};
  for (bool tl : kBoth)
    for (bool tr : kBoth) {
      std::string ptx = checkCuda(product(64, 128, 96, tl, tr, "f32"),
                                  tolerance, 8, {"sm_90", "tf32"});
      EXPECT_NE(ptx.find("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
                std::string::npos);
      checkCuda(product(67, 131, 37, tl, tr, "f32"), tolerance, 8,
                {"sm_80", "tf32"});
    }
}

/// The registers of large tiles hold what they have to.
TEST(CudaProduct, NoSpills) {
  if (tandem::findPtxas().empty())
    GTEST_SKIP() << "there is no ptxas";
  auto expectNone = [](const std::string &text, CudaOptions options) {
    options.emulate = false;
    CudaKernel kernel(text, options);
    ASSERT_TRUE(kernel.ok()) << kernel.error;
    auto resources = tandem::resourcesOf(kernel.ptx(), options.arch);
    ASSERT_TRUE(resources) << resources.status().message();
    for (const tandem::KernelResources &r : *resources)
      EXPECT_EQ(r.spillStoreBytes + r.spillLoadBytes, 0) << text;
  };
  for (const char *arch : {"sm_80", "sm_90"})
    for (const char *element : {"f32", "f64", "f16", "bf16"})
      for (bool t : kBoth) {
        expectNone(product(4096, 4096, 4096, t, !t, element), {arch});
        expectNone(product(1024, 768, 3072, t, t, element), {arch});
        expectNone(product(333, 555, 777, !t, t, element), {arch});
      }
  expectNone(product(4096, 4096, 4096, false, true, "f32"), {"sm_90", "tf32"});
}

TEST(CudaProduct, Instructions) {
  std::string half = checkCuda(product(64, 64, 64, false, false, "bf16"), {64});
  EXPECT_NE(half.find("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
            std::string::npos);
  EXPECT_NE(half.find("ldmatrix.sync.aligned.m8n8.x4.trans"),
            std::string::npos);
  EXPECT_NE(half.find("cp.async.cg.shared.global"), std::string::npos);
  // f32 stays f32.
  std::string single = checkCuda(product(64, 64, 64, false, true, "f32"), {64});
  EXPECT_EQ(single.find("mma.sync"), std::string::npos);
  EXPECT_NE(single.find("fma.rn.f32"), std::string::npos);
}
