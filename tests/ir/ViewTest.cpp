//===- ViewTest.cpp - the index maps of views, against loops --------------===//
//
// The reference evaluates views through their affine maps, as lowering does.
// Here the same is done by loops that know what the op means.
//
//===----------------------------------------------------------------------===//
#include "ir/reference/Evaluator.h"
#include "tests/support/TestModule.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace tandem;
using namespace tandem::test;
using reference::Array;
using Index = llvm::ArrayRef<int64_t>;

namespace {

/// 1, 2, 3, ... in `shape`.
Array counting(Index shape) {
  Array array(shape);
  std::iota(array.data.begin(), array.data.end(), 1.0);
  return array;
}

/// The result of a function of one tensor; its text has one op, `op`.
Array run(const std::string &from, const std::string &op, const std::string &to,
          const Array &x) {
  TestModule t("func.func @f(%x: tensor<" + from + ">) -> tensor<" + to +
               "> {\n %y = " + op + " : tensor<" + from + "> -> tensor<" + to +
               ">\n return %y : tensor<" + to + ">\n}");
  if (!t.module) {
    ADD_FAILURE() << t.diagnostics;
    return {};
  }
  auto results = reference::evaluate(t.function("f"), x);
  EXPECT_TRUE(mlir::succeeded(results)) << t.diagnostics;
  return (*results)[0];
}

} // namespace

TEST(View, Broadcast) {
  Array x = counting({3, 1});
  Array y = run("3x1xf32", "tandem.broadcast %x to [2, 3, 5, 4] along [1, 3]",
                "2x3x5x4xf32", x);
  reference::forEachIndex(y.shape, [&](Index i) {
    EXPECT_EQ(y(i), x({i[1], 0}));
  });
}

TEST(View, BroadcastOfAScalar) {
  Array y = run("f32", "tandem.broadcast %x to [2, 2] along []", "2x2xf32",
                array({}, {7}));
  EXPECT_EQ(y.data, (std::vector<double>{7, 7, 7, 7}));
}

// Groups of dimensions that merge, split, both, and ones anywhere.
TEST(View, Reshape) {
  struct Case {
    std::string from, to, list;
    std::vector<int64_t> shape;
  };
  for (const Case &c : {Case{"2x3x4xf32", "6x4xf32", "[6, 4]", {2, 3, 4}},
                        {"6x4xf32", "2x3x2x2xf32", "[2, 3, 2, 2]", {6, 4}},
                        {"4x6xf32", "8x3xf32", "[8, 3]", {4, 6}},
                        {"1x6x1xf32", "2x1x3xf32", "[2, 1, 3]", {1, 6, 1}},
                        {"1x1xf32", "f32", "[]", {1, 1}},
                        {"f32", "1x1x1xf32", "[1, 1, 1]", {}}}) {
    SCOPED_TRACE(c.from + " to " + c.to);
    Array x = counting(c.shape);
    Array y = run(c.from, "tandem.reshape %x to " + c.list, c.to, x);
    EXPECT_EQ(y.data, x.data);
  }
}

TEST(View, Permute) {
  Array x = counting({2, 3, 4});
  Array y = run("2x3x4xf32", "tandem.permute %x by [2, 0, 1]", "4x2x3xf32", x);
  reference::forEachIndex(y.shape, [&](Index i) {
    EXPECT_EQ(y(i), x({i[1], i[2], i[0]}));
  });
}

TEST(View, Slice) {
  Array x = counting({5, 7});
  Array y = run("5x7xf32", "tandem.slice %x from [1, 2] to [5, 7] step [3, 2]",
                "2x3xf32", x);
  reference::forEachIndex(y.shape, [&](Index i) {
    EXPECT_EQ(y(i), x({1 + 3 * i[0], 2 + 2 * i[1]}));
  });
}

TEST(View, Pad) {
  Array x = counting({2, 3});
  Array y = run("2x3xf32",
                "tandem.pad %x low [1, 0] high [0, 2] interior [2, 1] with "
                "-1.0 : f32",
                "5x7xf32", x);
  Array expected({5, 7});
  llvm::fill(expected.data, -1.0);
  reference::forEachIndex(x.shape, [&](Index i) {
    expected({1 + 3 * i[0], 2 * i[1]}) = x(i);
  });
  EXPECT_EQ(y.data, expected.data);
}

TEST(View, ReductionsOverSomeDimensions) {
  Array x = counting({2, 3, 4});
  llvm::fill(x.data, 0);
  for (int64_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<double>(i * 7 % 11) - 5;
  Array sum = run("2x3x4xf32", "tandem.reduce_sum %x over [0, 2]", "3xf32", x);
  Array max = run("2x3x4xf32", "tandem.reduce_max %x over [1]", "2x4xf32", x);
  Array min = run("2x3x4xf32", "tandem.reduce_min %x over [0, 1, 2]", "f32", x);
  Array expectedSum(std::vector<int64_t>{3});
  Array expectedMax(std::vector<int64_t>{2, 4});
  llvm::fill(expectedMax.data, -100);
  reference::forEachIndex(x.shape, [&](Index i) {
    expectedSum({i[1]}) += x(i);
    double &largest = expectedMax({i[0], i[2]});
    largest = std::max(largest, x(i));
  });
  EXPECT_EQ(sum.data, expectedSum.data);
  EXPECT_EQ(max.data, expectedMax.data);
  EXPECT_EQ(min[0], *std::min_element(x.data.begin(), x.data.end()));
}
