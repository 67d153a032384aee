//===- PaddedRowsTest.cpp - rows that end with zeros, or with anything
//-----===//
//
// Kernels that store rows at multiples of 16 bytes, and products that read
// them. Results are poisoned before a run, so that zeros at the ends of rows
// were stored; what lies behind the rows that are read is not a number.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/cuda/CudaCheck.h"

#include <limits>

using namespace tandem;
using namespace tandem::test;

namespace {

std::string tensor(int64_t rows, int64_t columns, const std::string &element) {
  return "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) +
         "x" + element + ">";
}

/// `%p`, the rows of %y of so many columns in rows of `whole`.
std::string padding(int64_t rows, int64_t columns, int64_t whole,
                    const std::string &element) {
  return "\n%p = tandem.pad %y low [0, 0] high [0, " +
         std::to_string(whole - columns) +
         "] interior [0, 0] with 0.0 : " + element +
         " {tandem.row_padding} : " + tensor(rows, columns, element) + " -> " +
         tensor(rows, whole, element) + "\n";
}

std::string rowsOf(int64_t rows, int64_t columns, int64_t whole,
                   const std::string &element) {
  return "%s = tandem.slice %0 from [0, 0] to [" + std::to_string(rows) + ", " +
         std::to_string(columns) +
         "] step [1, 1] : " + tensor(rows, whole, element) + " -> " +
         tensor(rows, columns, element) + "\n";
}

/// A product whose lhs has rows of `whole` elements.
struct Padded {
  int64_t M, N, K;
  bool tl, tr;
  int64_t whole;
  std::string element = "bf16";

  std::string module() const {
    int64_t rows = tl ? K : M, columns = tl ? M : K;
    std::string lhs = tensor(rows, whole, element),
                rhs = tr ? tensor(N, K, element) : tensor(K, N, element),
                y = tensor(M, N, element);
    std::string attributes = element == "f32" ? "precision = \"tf32\"" : "";
    for (auto [is, name] :
         {std::pair{tl, "transpose_lhs"}, std::pair{tr, "transpose_rhs"}})
      if (is)
        attributes += (attributes.empty() ? "" : ", ") + std::string(name);
    return kernelModule({lhs, rhs}, {y},
                        rowsOf(rows, columns, whole, element) +
                            "%y = tandem.matmul %s, %1 {" + attributes +
                            "} : " + tensor(rows, columns, element) + ", " +
                            rhs + " -> " + y + "\ntandem.yield %y : " + y);
  }
};

/// Runs it with NaN behind the rows of the lhs; returns the PTX.
std::string checkBehind(const Padded &p, const CudaOptions &options) {
  SCOPED_TRACE(p.module());
  CudaKernel kernel(p.module(), options);
  EXPECT_TRUE(kernel.ok()) << kernel.error;
  if (!kernel.ok())
    return "";
  auto inputs = randomInputs(kernel.inputTypes, 8);
  int64_t columns = p.tl ? p.M : p.K;
  for (int64_t i = 0; i < inputs[0].size(); ++i)
    if (i % p.whole >= columns)
      inputs[0][i] = std::numeric_limits<double>::quiet_NaN();
  auto expected = kernel.expected(inputs);
  auto got = kernel.outputs(inputs, emulator::Order::Random);
  EXPECT_EQ(kernel.error, "");
  Tolerance tolerance{static_cast<double>(p.K)};
  if (p.element == "f32") // factors have 10 bits after the point
    tolerance.factors = 1.0 / 2048;
  expectClose(got, expected, kernel.outputTypes, tolerance);
  return kernel.ptx();
}

constexpr bool both[] = {false, true};

} // namespace

TEST(CudaPaddedRows, ProductsOfWarpgroups) {
  for (bool tl : both)
    for (bool tr : both) {
      // N and the contiguous dimension of the rhs are whole; the lhs' is not.
      Padded p{tl ? 257 : 136, 264, tl ? 136 : 257, tl, tr, 264};
      if (tr && !tl)
        continue; // the rhs has rows of K, too
      std::string ptx = checkBehind(p, {"sm_90a", "f32", true, "wgmma"});
      EXPECT_NE(ptx.find("wgmma.mma_async"), std::string::npos);
    }
}

/// Pieces of 16 bytes, the last of a row in part.
TEST(CudaPaddedRows, ProductsOfWarps) {
  for (const char *arch : {"sm_80", "sm_90"})
    for (bool tl : both) {
      Padded p{tl ? 131 : 72, 136, tl ? 72 : 131, tl, false, 136};
      std::string ptx = checkBehind(p, {arch});
      EXPECT_NE(ptx.find("mma.sync"), std::string::npos);
      EXPECT_EQ(ptx.find("ld.global.b16"), std::string::npos);
    }
  checkBehind({33, 64, 70, false, false, 72, "f32"}, {"sm_80", "tf32"});
  checkBehind({70, 64, 33, true, false, 72, "f32"}, {"sm_80", "tf32"});
  checkBehind({70, 64, 33, true, false, 72, "f32"}, {"sm_80"});
}

/// A slice that ends where its tensor does has nothing behind it.
TEST(CudaPaddedRows, NothingBehindTheLastRow) {
  std::string whole = tensor(33, 135, "bf16"), rhs = tensor(135, 64, "bf16"),
              y = tensor(33, 64, "bf16");
  checkCuda(kernelModule({whole, rhs}, {y},
                         "%y = tandem.matmul %0, %1 : " + whole + ", " + rhs +
                             " -> " + y + "\ntandem.yield %y : " + y),
            {135});
}

TEST(CudaPaddedRows, Pointwise) {
  for (auto [columns, whole] :
       {std::pair<int64_t, int64_t>{257, 264}, {258, 264}, {260, 264}}) {
    std::string x = tensor(19, columns, "bf16"), y = tensor(19, whole, "bf16");
    checkCuda(kernelModule({x, x}, {y},
                           "%y = tandem.add %0, %1 : " + x +
                               padding(19, columns, whole, "bf16") +
                               "tandem.yield %p : " + y),
              {1});
  }
}

/// Rows that a warp, a block, and a block several times work on; what is
/// reduced is read from rows that are padded, too, and written over.
TEST(CudaPaddedRows, Rows) {
  for (int64_t columns : {129, 1025, 40001}) {
    int64_t whole = (columns + 7) / 8 * 8, rows = 5;
    std::string x = tensor(rows, columns, "bf16"),
                wide = tensor(rows, columns, "f32"),
                y = tensor(rows, whole, "bf16");
    std::string code =
        rowsOf(rows, columns, whole, "bf16") + "%w = tandem.cast %s : " + x +
        " to " + wide + "\n%m = tandem.reduce_max %w over [1] : " + wide +
        " -> tensor<5xf32>\n%b = tandem.broadcast %m to [5, " +
        std::to_string(columns) + "] along [0] : tensor<5xf32> -> " + wide +
        "\n%d = tandem.sub %w, %b : " + wide +
        "\n%y = tandem.cast %d : " + wide + " to " + x +
        padding(rows, columns, whole, "bf16") + "tandem.yield %p : " + y;
    checkCuda(kernelModule({y}, {y}, code), {2});
  }
}

TEST(CudaPaddedRows, Products) {
  std::string lhs = tensor(40, 72, "bf16"), rhs = tensor(131, 72, "bf16"),
              y = tensor(40, 131, "bf16"), p = tensor(40, 136, "bf16");
  for (const CudaOptions &options :
       {CudaOptions{"sm_80"}, CudaOptions{"sm_90a", "f32", true, "wgmma"}})
    checkCuda(kernelModule(
                  {lhs, rhs}, {p},
                  "%y = tandem.matmul %0, %1 {transpose_rhs} : " + lhs + ", " +
                      rhs + " -> " + y + padding(40, 131, 136, "bf16") +
                      "tandem.yield %p : " + p),
              {72}, 8, options);
}
