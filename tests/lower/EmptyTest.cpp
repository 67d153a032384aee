//===- EmptyTest.cpp - programs with tensors without elements -------------===//
//
// Whatever is made of nothing is a constant before kernels form: results have
// the shapes and the numbers of the reference, and where nothing else is
// computed there is no kernel at all.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/Check.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::test;

namespace {

struct Row {
  const char *name, *signature, *body;
  std::vector<double> expected; ///< of the first result
  size_t kernels;               ///< of the plan
};

void PrintTo(const Row &row, std::ostream *out) { *out << row.name; }

const double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

const Row rows[] = {
    {"pointwise",
     "x: tensor<0x3xf32>, y: tensor<0x3xf32> -> tensor<0x3xf32>",
     R"(%a = tandem.add %x, %y : tensor<0x3xf32>
        %b = tandem.exp %a : tensor<0x3xf32>
        return %b : tensor<0x3xf32>)",
     {},
     0},
    {"argument",
     "x: tensor<2x0xi32> -> tensor<2x0xi32>",
     "return %x : tensor<2x0xi32>",
     {},
     0},
    {"views",
     "x: tensor<0x3xf32> -> tensor<3x4x0xf32>",
     R"(%a = tandem.permute %x by [1, 0] : tensor<0x3xf32> -> tensor<3x0xf32>
        %b = tandem.broadcast %a to [3, 4, 0] along [0, 2] : tensor<3x0xf32> -> tensor<3x4x0xf32>
        return %b : tensor<3x4x0xf32>)",
     {},
     0},
    {"stretched",
     "x: tensor<1x3xf32> -> tensor<0x3xf32>",
     R"(%a = tandem.broadcast %x to [0, 3] along [0, 1] : tensor<1x3xf32> -> tensor<0x3xf32>
        return %a : tensor<0x3xf32>)",
     {},
     0},
    {"reshape",
     "x: tensor<0x3xf32> -> tensor<5x0x2xf32>",
     R"(%a = tandem.reshape %x to [5, 0, 2] : tensor<0x3xf32> -> tensor<5x0x2xf32>
        return %a : tensor<5x0x2xf32>)",
     {},
     0},
    {"slice",
     "x: tensor<4x3xf32> -> tensor<0x3xf32>",
     R"(%a = tandem.slice %x from [4, 0] to [4, 3] step [2, 1] : tensor<4x3xf32> -> tensor<0x3xf32>
        return %a : tensor<0x3xf32>)",
     {},
     0},
    {"sum",
     "x: tensor<2x0xf32> -> tensor<2xf32>",
     R"(%a = tandem.reduce_sum %x over [1] : tensor<2x0xf32> -> tensor<2xf32>
        return %a : tensor<2xf32>)",
     {0, 0},
     1},
    {"product",
     "x: tensor<2x0xui8> -> tensor<2xui8>",
     R"(%a = tandem.reduce_prod %x over [1] : tensor<2x0xui8> -> tensor<2xui8>
        return %a : tensor<2xui8>)",
     {1, 1},
     1},
    {"largest",
     "x: tensor<0x2xf32> -> tensor<2xf32>",
     R"(%a = tandem.reduce_max %x over [0] : tensor<0x2xf32> -> tensor<2xf32>
        return %a : tensor<2xf32>)",
     {-kInfinity, -kInfinity},
     1},
    {"kept",
     "x: tensor<0x2xf32> -> tensor<0xf32>",
     R"(%a = tandem.reduce_sum %x over [1] : tensor<0x2xf32> -> tensor<0xf32>
        return %a : tensor<0xf32>)",
     {},
     0},
    {"matmul",
     "x: tensor<2x0xf32>, y: tensor<0x3xf32>, z: tensor<2x3xf32> -> "
     "tensor<2x3xf32>",
     R"(%a = tandem.matmul %x, %y : tensor<2x0xf32>, tensor<0x3xf32> -> tensor<2x3xf32>
        %c = tandem.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
        %b = tandem.add %a, %c : tensor<2x3xf32>
        return %b : tensor<2x3xf32>)",
     {1, 2, 3, 4, 5, 6},
     1},
    {"convolution",
     "x: tensor<1x0x2x2xf32>, w: tensor<2x0x1x1xf32> -> tensor<1x2x2x2xf32>",
     R"(%a = tandem.conv2d %x, %w : tensor<1x0x2x2xf32>, tensor<2x0x1x1xf32> -> tensor<1x2x2x2xf32>
        return %a : tensor<1x2x2x2xf32>)",
     {0, 0, 0, 0, 0, 0, 0, 0},
     1},
    {"padded",
     "x: tensor<0xf32> -> tensor<3xf32>",
     R"(%a = tandem.pad %x low [1] high [2] interior [1] with 4.0 : f32 : tensor<0xf32> -> tensor<3xf32>
        return %a : tensor<3xf32>)",
     {4, 4, 4},
     1},
    {"no rows",
     "t: tensor<0x2xf32>, i: tensor<2xi32> -> tensor<2x2xf32>",
     R"(%a = tandem.take %t, %i : tensor<0x2xf32>, tensor<2xi32> -> tensor<2x2xf32>
        return %a : tensor<2x2xf32>)",
     {kNaN, kNaN, kNaN, kNaN},
     1},
    {"no integer rows",
     "t: tensor<0x2xi32>, i: tensor<1xi32> -> tensor<1x2xi32>",
     R"(%a = tandem.take %t, %i : tensor<0x2xi32>, tensor<1xi32> -> tensor<1x2xi32>
        return %a : tensor<1x2xi32>)",
     {0, 0},
     1},
    {"no indices",
     "d: tensor<0x2xf32>, i: tensor<0xi64> -> tensor<2x2xf32>",
     R"(%a = tandem.take_grad %d, %i to [2, 2] : tensor<0x2xf32>, tensor<0xi64> -> tensor<2x2xf32>
        return %a : tensor<2x2xf32>)",
     {0, 0, 0, 0},
     1},
};

class Empty : public testing::TestWithParam<Row> {};

TEST_P(Empty, IsWhatTheReferenceSays) {
  const Row &row = GetParam();
  Options options;
  options.tolerance = 0;
  check(program(row.signature, row.body), options);
  for (const char *target : {"cpu", "cuda"}) {
    Machine machine(program(row.signature, row.body), target);
    ASSERT_EQ(machine.error(), "");
    EXPECT_EQ(machine.kernels("evaluate").size(), row.kernels) << target;
    Arrays got = machine.run("evaluate",
                             machine.randomArguments("evaluate", 1, -1, 1), 0);
    ASSERT_FALSE(got.empty());
    ASSERT_EQ(got[0].data.size(), row.expected.size());
    for (size_t i = 0; i < row.expected.size(); ++i)
      EXPECT_TRUE(got[0][i] == row.expected[i] ||
                  (std::isnan(got[0][i]) && std::isnan(row.expected[i])))
          << i << ": " << got[0][i];
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, Empty, testing::ValuesIn(rows),
                         [](const auto &info) {
                           std::string name = info.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

} // namespace
