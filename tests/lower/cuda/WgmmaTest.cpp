//===- WgmmaTest.cpp - products of warpgroups from bulk copies ------------===//
//
// The emulator makes the copies at the last moment, and finds accesses that no
// barrier orders, barriers that nobody completes, and copies that are not in
// their tensors.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/anchor/MethodRows.h"
#include "tests/lower/cuda/CudaCheck.h"

#include "compiler/emit/Assemble.h"

using namespace tandem::test;

namespace {

std::string tensor(const std::vector<int64_t> &shape,
                   const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

struct Product {
  int64_t M, N, K;
  bool tl = false, tr = false;
  std::string element = "bf16";
  std::vector<int64_t> batch = {};

  std::string type(int64_t rows, int64_t columns) const {
    std::vector<int64_t> shape = batch;
    shape.push_back(rows);
    shape.push_back(columns);
    return tensor(shape, element);
  }
  std::string lhs() const { return tl ? type(K, M) : type(M, K); }
  std::string rhs() const { return tr ? type(N, K) : type(K, N); }
  std::string y() const { return type(M, N); }
  std::string op(const std::string &name) const {
    std::string attributes;
    auto add = [&](const std::string &one) {
      attributes += (attributes.empty() ? "" : ", ") + one;
    };
    if (element == "f32")
      add("precision = \"tf32\"");
    if (tl)
      add("transpose_lhs");
    if (tr)
      add("transpose_rhs");
    return "%" + name + " = tandem.matmul %0, %1 {" + attributes +
           "} : " + lhs() + ", " + rhs() + " -> " + y() + "\n";
  }
  std::string module() const {
    return kernelModule({lhs(), rhs()}, {y()},
                        op("y") + "tandem.yield %y : " + y());
  }
};

const CudaOptions hopper{"sm_90a", "f32", true, "wgmma"};

/// Of sums over K of factors of the element type.
Tolerance toleranceOf(const Product &p) {
  auto terms = static_cast<double>(p.K);
  if (p.element == "f32") // factors have 10 bits after the point
    return {terms, 0, 1.0 / 2048};
  return {terms};
}

std::string check(const Product &p) {
  std::string ptx = checkCuda(p.module(), toleranceOf(p), 8, hopper);
  EXPECT_NE(ptx.find("wgmma.mma_async.sync.aligned.m64n"), std::string::npos);
  EXPECT_NE(ptx.find("cp.async.bulk.tensor"), std::string::npos);
  EXPECT_EQ(ptx.find("mma.sync"), std::string::npos);
  return ptx;
}

constexpr bool both[] = {false, true};

} // namespace

/// Whole tiles, in all four orders of the factors.
TEST(Wgmma, WholeTiles) {
  for (const char *element : {"bf16", "f16"})
    for (bool tl : both)
      for (bool tr : both)
        check({128, 256, 128, tl, tr, element});
}

/// What is outside of the tensors is zero, and is not stored.
TEST(Wgmma, Edges) {
  for (bool tl : both)
    for (bool tr : both) {
      check({72, 136, 40, tl, tr});
      check({200, 312, 104, tl, tr, "f16"});
    }
}

/// Many more tiles of k than there are stages: each is used again and again.
TEST(Wgmma, RingOfStages) {
  for (bool tl : both)
    for (bool tr : both)
      check({128, 128, 64 * 21 + 8, tl, tr});
}

/// One tile of k: nothing to wait for but itself.
TEST(Wgmma, OneTile) { check({128, 128, 8, false, true}); }

/// Batches are dimensions of the tensors.
TEST(Wgmma, Batches) {
  check({128, 136, 72, false, true, "bf16", {3}});
  check({136, 128, 72, true, false, "f16", {2, 3}});
}

/// A factor that is a part of its buffer; and one that all batches share.
TEST(Wgmma, Views) {
  Product p{128, 136, 128, false, true};
  std::string whole = tensor({144, 256}, "bf16");
  auto expectWgmma = [](const std::string &text) {
    std::string ptx = checkCuda(text, {128}, 8, hopper);
    EXPECT_NE(ptx.find("wgmma"), std::string::npos);
  };
  expectWgmma(kernelModule(
      {whole, p.rhs()}, {p.y()},
      "%s = tandem.slice %0 from [8, 64] to [136, 192] step [1, 1] : " + whole +
          " -> " + p.lhs() +
          "\n%y = tandem.matmul %s, %1 {transpose_rhs} : " + p.lhs() + ", " +
          p.rhs() + " -> " + p.y() + "\ntandem.yield %y : " + p.y()));
  std::string lhs = tensor({3, 48, 64}, "bf16"),
              rhs = tensor({64, 136}, "bf16"),
              shared = tensor({3, 64, 136}, "bf16"),
              y = tensor({3, 48, 136}, "bf16");
  expectWgmma(kernelModule(
      {lhs, rhs}, {y},
      "%b = tandem.broadcast %1 to [3, 64, 136] along [1, 2] : " + rhs +
          " -> " + shared + "\n%y = tandem.matmul %0, %b : " + lhs + ", " +
          shared + " -> " + y + "\ntandem.yield %y : " + y));
}

/// A convolution with one pixel for a window is a product of matrices.
TEST(Wgmma, PointwiseConvolution) {
  std::string x = tensor({1, 72, 16, 8}, "bf16"),
              w = tensor({136, 72, 1, 1}, "bf16"),
              y = tensor({1, 136, 16, 8}, "bf16");
  std::string ptx =
      checkCuda(kernelModule({x, w}, {y},
                             "%y = tandem.conv2d %0, %1 : " + x + ", " + w +
                                 " -> " + y + "\ntandem.yield %y : " + y),
                {72}, 8, hopper);
  EXPECT_NE(ptx.find("wgmma"), std::string::npos);
}

/// Rounded to nearest by the copies.
TEST(Wgmma, Tf32) {
  std::string ptx = check({136, 264, 100, false, true, "f32"});
  EXPECT_NE(ptx.find(".f32.tf32.tf32"), std::string::npos);
  check({128, 128, 32 * 11, false, true, "f32", {2}});
  // Words are not transposed: mma.sync.
  Product turned{128, 128, 64, true, false, "f32"};
  std::string other =
      checkCuda(turned.module(), toleranceOf(turned), 8, hopper);
  EXPECT_EQ(other.find("wgmma"), std::string::npos);
  EXPECT_NE(other.find("mma.sync"), std::string::npos);
}

/// Several blocks share a long k, and the last of them stores.
TEST(Wgmma, SplitK) {
  Product p{64, 64, 64 * 130, false, true};
  CudaKernel kernel(p.module(), hopper);
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  EXPECT_GT(kernel.scratchBytes, 0);
  check(p);
}

/// Bias, activation, residual and a cast follow where they follow any product.
TEST(Wgmma, Epilogue) {
  Product p{136, 264, 72, false, true};
  std::string f32 = tensor({136, 264}, "f32"), bias = tensor({264}, "bf16");
  std::string ptx = checkCuda(
      kernelModule(
          {p.lhs(), p.rhs(), bias, p.y()}, {p.y(), f32, p.y()},
          p.op("m") + "%b = tandem.broadcast %2 to [136, 264] along [1] : " +
              bias + " -> " + p.y() + "\n%s = tandem.add %m, %b : " + p.y() +
              "\n%t = tandem.tanh %s : " + p.y() +
              "\n%r = tandem.add %t, %3 : " + p.y() +
              "\n%c = tandem.cast %r : " + p.y() + " to " + f32 +
              // Beside the product, of what its epilogue reads.
              "\n%e = tandem.tanh %3 : " + p.y() +
              "\n%g = tandem.mul %e, %b : " + p.y() +
              "\ntandem.yield %r, %c, %g : " + p.y() + ", " + f32 + ", " +
              p.y()),
      {72, 0, 1.0 / 64}, 8, hopper);
  EXPECT_NE(ptx.find("wgmma"), std::string::npos);
}

/// Sums over 64 rows of a tile, of what is stored beside them; by warpgroups
/// and by warps.
TEST(Wgmma, TileSums) {
  Product p{256, 256, 72, false, true};
  std::string f32 = tensor({256, 256}, "f32"),
              parts = tensor({4, 64, 256}, "f32"),
              sums = tensor({4, 256}, "f32");
  std::string text = kernelModule(
      {p.lhs(), p.rhs(), p.y()}, {p.y(), sums},
      p.op("m") + "%t = tandem.mul %m, %2 : " + p.y() +
          "\n%c = tandem.cast %t : " + p.y() + " to " + f32 +
          "\n%r = tandem.reshape %c to [4, 64, 256] : " + f32 + " -> " + parts +
          "\n%s = tandem.reduce_sum %r over [1] : " + parts + " -> " + sums +
          "\ntandem.yield %t, %s : " + p.y() + ", " + sums);
  for (const char *method : {"wgmma", "mma"}) {
    std::string ptx =
        checkCuda(byMethod(text, method), {72 * 64, 0, 1.0 / 64}, 8, hopper);
    EXPECT_EQ(ptx.find("wgmma") != std::string::npos,
              method == std::string("wgmma"));
  }
}

/// A factor that is computed, and rows that are no multiples of 16 bytes, are
/// for mma.sync.
TEST(Wgmma, Fallback) {
  Product odd{128, 128, 68};
  Product p{128, 128, 64};
  for (const std::string &text :
       {odd.module(),
        kernelModule({p.lhs(), p.rhs()}, {p.y()},
                     "%e = tandem.exp %0 : " + p.lhs() +
                         "\n%y = tandem.matmul %e, %1 : " + p.lhs() + ", " +
                         p.rhs() + " -> " + p.y() +
                         "\ntandem.yield %y : " + p.y())}) {
    std::string ptx = checkCuda(text, {68, 0, 1.0 / 64}, 8, hopper);
    EXPECT_EQ(ptx.find("wgmma"), std::string::npos);
    EXPECT_NE(ptx.find("mma.sync"), std::string::npos);
  }
}

/// Without being told, large products on sm_90a, and no others.
TEST(Wgmma, Choice) {
  auto usesWgmma = [](const Product &p, const std::string &arch) {
    CudaKernel kernel(p.module(), {arch, "f32", false});
    EXPECT_TRUE(kernel.ok()) << kernel.error;
    return kernel.ok() && kernel.ptx().find("wgmma") != std::string::npos;
  };
  for (const char *element : {"bf16", "f16", "f32"}) {
    EXPECT_TRUE(usesWgmma({4096, 4096, 4096, false, true, element}, "sm_90a"));
    EXPECT_FALSE(usesWgmma({4096, 4096, 4096, false, true, element}, "sm_90"));
    EXPECT_FALSE(usesWgmma({16, 4096, 4096, false, true, element}, "sm_90a"));
    EXPECT_FALSE(usesWgmma({64, 64, 64, false, true, element}, "sm_90a"));
  }
}

/// What ptxas says of the code: all sums in registers, products not one by one.
TEST(Wgmma, Assembles) {
  if (tandem::findPtxas().empty())
    GTEST_SKIP() << "there is no ptxas";
  for (const Product &p :
       {Product{4096, 4096, 4096, false, true}, Product{4096, 4096, 64, true},
        Product{1000, 1000, 4096, false, false, "f16"},
        Product{4096, 4096, 4096, false, true, "f32"},
        Product{128, 128, 65536, false, true}}) {
    CudaOptions options = hopper;
    options.emulate = false;
    CudaKernel kernel(p.module(), options);
    ASSERT_TRUE(kernel.ok()) << kernel.error;
    auto resources = tandem::resourcesOf(kernel.ptx(), options.arch);
    ASSERT_TRUE(resources) << resources.status().message();
    for (const tandem::KernelResources &r : *resources) {
      EXPECT_EQ(r.spillStoreBytes + r.spillLoadBytes, 0);
      EXPECT_LE(r.registers, 168);
      EXPECT_TRUE(r.remarks.empty()) << r.remarks.front();
    }
  }
}
