//===- TileTest.cpp - products of bf16 by matrix tiles --------------------===//
//
// By those of a processor, and by vectors of pairs where there are none.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/anchor/ScheduleCheck.h"

#include "runtime/device/CpuFeatures.h"

using namespace tandem;
using namespace tandem::test;

namespace {

struct Product {
  std::vector<int64_t> batch;
  int64_t M, N, K;
  bool transposeLhs = false, transposeRhs = false;
};

std::string tensor(std::vector<int64_t> shape, int64_t rows, int64_t columns,
                   bool transposed = false) {
  shape.push_back(transposed ? columns : rows);
  shape.push_back(transposed ? rows : columns);
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + "bf16>";
}

/// What a module is compiled for.
struct Processor {
  const char *name, *arch;
  std::vector<std::string> features;
};

const Processor processors[] = {
    {"Own",
     "sapphirerapids",
     {"amx-bf16", "amx-tile", "avx512bf16", "avx512bw"}},
    {"OfVectors", "cooperlake", {"avx512bf16", "avx512bw"}}};
const Processor *processor = processors; ///< of the test that runs

/// The module around a kernel, for that processor.
std::string withTiles(const std::string &function) {
  std::string features = "\"avx512f\", \"f16c\"";
  for (const std::string &feature : processor->features)
    features = "\"" + feature + "\", " + features;
  return "module attributes {tandem.target = #tandem.target<cpu {arch = \"" +
         std::string(processor->arch) + "\", features = [" + features +
         "], vector_bits = 512 : i64}>} {\n" + function + "}\n";
}

std::string product(const Product &p) {
  std::string lhs = tensor(p.batch, p.M, p.K, p.transposeLhs);
  std::string rhs = tensor(p.batch, p.K, p.N, p.transposeRhs);
  std::string y = tensor(p.batch, p.M, p.N);
  std::string attributes = std::string(p.transposeLhs ? "transpose_lhs" : "") +
                           (p.transposeLhs && p.transposeRhs ? ", " : "") +
                           (p.transposeRhs ? "transpose_rhs" : "");
  return withTiles(kernelModule({lhs, rhs}, {y},
                                "%y = tandem.matmul %0, %1 {" + attributes +
                                    "} : " + lhs + ", " + rhs + " -> " + y +
                                    "\ntandem.yield %y : " + y));
}

class Tiles : public ::testing::TestWithParam<const Processor *> {
protected:
  void SetUp() override {
    processor = GetParam();
    if (auto missing = tandem::runtime::missingCpuFeatures(processor->features);
        !missing.empty())
      GTEST_SKIP() << "this processor has no '" << missing.front() << "'";
  }
  bool hasOwn() const { return processor == processors; }
  static void check(const Product &p) {
    checkKernel(product(p), {static_cast<double>(p.K)});
  }
  static void checkAll(const Product &p) {
    for (bool tl : {false, true})
      for (bool tr : {false, true})
        check({p.batch, p.M, p.N, p.K, tl, tr});
  }
};

/// A long k in several panels, and few rows, whose product is turned.
TEST_P(Tiles, SchedulesHaveTheSameBits) {
  checkBits(product({{}, 300, 500, 100}), {100});
  checkBits(product({{2}, 100, 90, 5000, true}), {5000});
  checkBits(product({{}, 9, 300, 256, false, true}), {256});
}

TEST_P(Tiles, Shapes) {
  const int64_t shapes[][3] = {
      {32, 32, 32},  {64, 64, 64},  {1, 1, 1},     {1, 17, 3},     {16, 16, 33},
      {31, 100, 19}, {130, 10, 33}, {97, 65, 50},  {2, 200, 65},   {200, 2, 31},
      {48, 48, 96},  {17, 130, 64}, {64, 16, 128}, {128, 96, 160}, {33, 31, 1}};
  for (auto [M, N, K] : shapes)
    checkAll({{}, M, N, K});
}

TEST_P(Tiles, FewRows) {
  // Of which the right factor's transpose by the left one's is made, where the
  // right factor lies along k in whole tiles; and some where it does not.
  for (int64_t rows : {1, 5, 8, 16, 17}) {
    checkAll({{}, rows, 128, 96});
    check({{}, rows, 320, 1536, false, true});
    check({{}, rows, 64, 33, false, true});
    check({{2}, rows, 192, 64, false, true});
  }
  checkKernel(
      withTiles(kernelModule(
          {"tensor<3x256xbf16>", "tensor<64x256xbf16>", "tensor<64xf32>"},
          {"tensor<3x64xf32>", "tensor<3x64xbf16>"}, R"(
    %y = tandem.matmul %0, %1 {transpose_rhs} : tensor<3x256xbf16>, tensor<64x256xbf16> -> tensor<3x64xbf16>
    %f = tandem.cast %y : tensor<3x64xbf16> to tensor<3x64xf32>
    %b = tandem.broadcast %2 to [3, 64] along [1] : tensor<64xf32> -> tensor<3x64xf32>
    %s = tandem.add %f, %b : tensor<3x64xf32>
    tandem.yield %s, %y : tensor<3x64xf32>, tensor<3x64xbf16>)")),
      {0, 0, 0x1p-5});
}

/// The bytes of the product of two matrices, given in any form.
std::vector<uint8_t> bytesOf(const Product &p,
                             std::vector<tandem::reference::Array> factors) {
  JitKernel kernel(product(p));
  EXPECT_TRUE(kernel.ok()) << kernel.error;
  auto turn = [&](tandem::reference::Array &matrix, unsigned number) {
    tandem::reference::Array turned(kernel.inputTypes[number]);
    int64_t rows = matrix.dim(0), columns = matrix.dim(1);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        turned.data[j * rows + i] = matrix.data[i * columns + j];
    matrix = turned;
  };
  if (p.transposeLhs)
    turn(factors[0], 0);
  if (p.transposeRhs)
    turn(factors[1], 1);
  return kernel.outputs(factors, kernel.work).front();
}

TEST_P(Tiles, BitsDoNotDependOnTheForm) {
  for (int64_t K : {96, 200, 1440, 2560}) {
    Product whole = {{}, 40, 128, K};
    JitKernel kernel(product(whole));
    auto factors = randomInputs(kernel.inputTypes, 8);
    auto expected = bytesOf(whole, factors);
    for (bool tl : {false, true})
      for (bool tr : {false, true})
        EXPECT_EQ(bytesOf({{}, 40, 128, K, tl, tr}, factors), expected);
    // Its first rows alone, where the product is turned.
    int64_t first = hasOwn() ? 4 : 9;
    JitKernel few(product({{}, first, 128, K}));
    tandem::reference::Array rows(few.inputTypes[0]);
    std::copy_n(factors[0].data.begin(), rows.size(), rows.data.begin());
    expected.resize(first * 128 * 2);
    EXPECT_EQ(bytesOf({{}, first, 128, K, false, true}, {rows, factors[1]}),
              expected);
  }
}

TEST_P(Tiles, ManyParts) {
  // Sums that rest between parts of k, and panels that are packed in parts.
  checkAll({{}, 40, 70, 1500});
  checkAll({{}, 200, 330, 2051});
  checkAll({{}, 70, 100, 5000});
  checkAll({{}, 3, 20, 2500});
}

TEST_P(Tiles, ManyItems) {
  checkAll({{}, 600, 40, 96});
  checkAll({{}, 300, 1100, 64});
  checkAll({{}, 1030, 300, 40});
}

TEST_P(Tiles, Batches) {
  checkAll({{3}, 12, 12, 16});
  checkAll({{2, 3}, 33, 40, 24});
  checkAll({{5, 1, 2}, 1, 1, 7});
  checkAll({{4}, 64, 64, 64});
}

TEST_P(Tiles, Ends) {
  checkKernel(
      withTiles(kernelModule({"tensor<45x96xbf16>", "tensor<96x70xbf16>",
                              "tensor<70xf32>", "tensor<45x70xf32>"},
                             {"tensor<45x70xf32>", "tensor<45x70xbf16>"}, R"(
    %y = tandem.matmul %0, %1 : tensor<45x96xbf16>, tensor<96x70xbf16> -> tensor<45x70xbf16>
    %f = tandem.cast %y : tensor<45x70xbf16> to tensor<45x70xf32>
    %b = tandem.broadcast %2 to [45, 70] along [1] : tensor<70xf32> -> tensor<45x70xf32>
    %s = tandem.add %f, %b : tensor<45x70xf32>
    %t = tandem.tanh %s : tensor<45x70xf32>
    %z = tandem.mul %t, %3 : tensor<45x70xf32>
    %c = tandem.cast %s : tensor<45x70xf32> to tensor<45x70xbf16>
    tandem.yield %z, %c : tensor<45x70xf32>, tensor<45x70xbf16>)")),
      {0, 0, 0x1p-6});
  // An update behind a weight gradient.
  for (const char *sizes : {"64x200", "300x77", "520x130", "1400x64"}) {
    std::string k = std::string(sizes).substr(0, std::string(sizes).find('x'));
    std::string n = std::string(sizes).substr(k.size() + 1);
    std::string a = "tensor<" + k + "x83xbf16>",
                b = "tensor<" + k + "x" + n + "xbf16>",
                g = "tensor<83x" + n + "xbf16>", y = "tensor<83x" + n + "xf32>";
    checkKernel(withTiles(kernelModule(
                    {a, b, y, y}, {y, y},
                    "%h = tandem.matmul %0, %1 {transpose_lhs} : " + a + ", " +
                        b + " -> " + g + "\n%g = tandem.cast %h : " + g +
                        " to " + y + "\n%v = tandem.add %2, %g : " + y +
                        "\n%w = tandem.sub %3, %v : " + y +
                        "\ntandem.yield %w, %v : " + y + ", " + y)),
                {0, 0, 0x1p-4});
  }
}

TEST_P(Tiles, ViewsAround) {
  // Heads out of and back into rows, as attention does.
  checkKernel(
      withTiles(kernelModule({"tensor<2x10x3x32xbf16>", "tensor<2x10x96xbf16>"},
                             {"tensor<2x10x3x10xbf16>"}, R"(
    %q = tandem.permute %0 by [0, 2, 1, 3] : tensor<2x10x3x32xbf16> -> tensor<2x3x10x32xbf16>
    %h = tandem.reshape %1 to [2, 10, 3, 32] : tensor<2x10x96xbf16> -> tensor<2x10x3x32xbf16>
    %k = tandem.permute %h by [0, 2, 1, 3] : tensor<2x10x3x32xbf16> -> tensor<2x3x10x32xbf16>
    %y = tandem.matmul %q, %k {transpose_rhs} : tensor<2x3x10x32xbf16>, tensor<2x3x10x32xbf16> -> tensor<2x3x10x10xbf16>
    %z = tandem.permute %y by [0, 2, 1, 3] : tensor<2x3x10x10xbf16> -> tensor<2x10x3x10xbf16>
    tandem.yield %z : tensor<2x10x3x10xbf16>)")),
      {32});
  // A pad and a slice before, a transpose after the product.
  for (const char *transpose : {"", " {transpose_lhs}"}) {
    bool isLhs = *transpose != 0;
    std::string p = isLhs ? "%s, %p" : "%p, %s";
    checkKernel(withTiles(kernelModule(
                    {"tensor<9x5xbf16>", "tensor<16x30xbf16>"},
                    {isLhs ? "tensor<8x30xbf16>" : "tensor<30x9xbf16>"},
                    isLhs ? R"(
    %p = tandem.pad %0 low [0, 1] high [0, 2] interior [0, 0] with 1.0 : bf16 : tensor<9x5xbf16> -> tensor<9x8xbf16>
    %s = tandem.slice %1 from [0, 0] to [9, 30] step [1, 1] : tensor<16x30xbf16> -> tensor<9x30xbf16>
    %y = tandem.matmul %p, %s {transpose_lhs} : tensor<9x8xbf16>, tensor<9x30xbf16> -> tensor<8x30xbf16>
    tandem.yield %y : tensor<8x30xbf16>)"
                          : R"(
    %p = tandem.pad %0 low [0, 1] high [0, 2] interior [0, 0] with 1.0 : bf16 : tensor<9x5xbf16> -> tensor<9x8xbf16>
    %s = tandem.slice %1 from [0, 0] to [16, 30] step [2, 1] : tensor<16x30xbf16> -> tensor<8x30xbf16>
    %y = tandem.matmul %p, %s : tensor<9x8xbf16>, tensor<8x30xbf16> -> tensor<9x30xbf16>
    %z = tandem.permute %y by [1, 0] : tensor<9x30xbf16> -> tensor<30x9xbf16>
    tandem.yield %z : tensor<30x9xbf16>)")),
                {9});
  }
}

INSTANTIATE_TEST_SUITE_P(, Tiles, ::testing::Values(processors, processors + 1),
                         [](const auto &info) {
                           return std::string(info.param->name);
                         });

} // namespace
