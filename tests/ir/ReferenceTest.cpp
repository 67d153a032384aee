//===- ReferenceTest.cpp - references that are not generic ----------------===//
//
// Convolution, pooling, indexing and the optimizers against small computations
// of their own: the definition written out, values worked out by hand, and for
// pairs of adjoint ops `<A x, y> = <x, A' y>`.
//
//===----------------------------------------------------------------------===//
#include "ir/reference/Evaluator.h"
#include "tests/ir/Random.h"
#include "tests/support/TestModule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

using namespace tandem;
using namespace tandem::test;
using reference::Array;
using Elements = std::vector<double>;

namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

llvm::SmallVector<Array> run(TestModule &t, llvm::ArrayRef<Array> arguments) {
  if (!t.module) {
    ADD_FAILURE() << t.diagnostics;
    return {};
  }
  auto results = reference::evaluate(t.function("f"), arguments);
  EXPECT_TRUE(mlir::succeeded(results)) << t.diagnostics;
  return mlir::succeeded(results) ? *results : llvm::SmallVector<Array>();
}

double inner(const Array &a, const Array &b) {
  EXPECT_EQ(a.shape, b.shape);
  return std::inner_product(a.data.begin(), a.data.end(), b.data.begin(), 0.0);
}

std::vector<Array> randomArguments(TestModule &t, int64_t integers = 1) {
  std::mt19937_64 random(5);
  std::vector<Array> arguments;
  for (mlir::Type type : t.function("f").getArgumentTypes())
    arguments.push_back(randomArray(mlir::cast<mlir::RankedTensorType>(type),
                                    random, -1, 1, integers));
  return arguments;
}

} // namespace

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

// Strides, uneven padding, dilation and groups at once.
static const char kConvolution[] = R"(
  func.func @f(%x: tensor<2x4x7x6xf64>, %w: tensor<6x2x3x2xf64>,
               %dy: tensor<2x6x4x3xf64>)
      -> (tensor<2x6x4x3xf64>, tensor<2x4x7x6xf64>, tensor<6x2x3x2xf64>) {
    %y = tandem.conv2d %x, %w strides [2, 3] padding [2, 3, 1, 2] dilation [2, 1] groups 2
      : tensor<2x4x7x6xf64>, tensor<6x2x3x2xf64> -> tensor<2x6x4x3xf64>
    %dx = tandem.conv2d_input_grad %dy, %w to [2, 4, 7, 6] strides [2, 3] padding [2, 3, 1, 2] dilation [2, 1] groups 2
      : tensor<2x6x4x3xf64>, tensor<6x2x3x2xf64> -> tensor<2x4x7x6xf64>
    %dw = tandem.conv2d_filter_grad %x, %dy to [6, 2, 3, 2] strides [2, 3] padding [2, 3, 1, 2] dilation [2, 1] groups 2
      : tensor<2x4x7x6xf64>, tensor<2x6x4x3xf64> -> tensor<6x2x3x2xf64>
    return %y, %dx, %dw : tensor<2x6x4x3xf64>, tensor<2x4x7x6xf64>, tensor<6x2x3x2xf64>
  })";

TEST(Reference, Conv2dIsItsDefinition) {
  TestModule t(kConvolution);
  auto arguments = randomArguments(t);
  auto results = run(t, arguments);
  ASSERT_EQ(results.size(), 3u);
  const Array &x = arguments[0], &w = arguments[1];
  reference::forEachIndex(results[0].shape, [&](llvm::ArrayRef<int64_t> i) {
    double sum = 0;
    int64_t group = i[1] / 3;
    for (int64_t c = 0; c < 2; ++c)
      for (int64_t kh = 0; kh < 3; ++kh)
        for (int64_t kw = 0; kw < 2; ++kw) {
          int64_t h = i[2] * 2 - 2 + kh * 2, v = i[3] * 3 - 1 + kw;
          if (h >= 0 && h < 7 && v >= 0 && v < 6)
            sum += x({i[0], group * 2 + c, h, v}) * w({i[1], c, kh, kw});
        }
    EXPECT_NEAR(results[0](i), sum, 1e-13);
  });
}

TEST(Reference, Conv2dGradientsAreAdjoints) {
  TestModule t(kConvolution);
  auto arguments = randomArguments(t);
  auto results = run(t, arguments);
  ASSERT_EQ(results.size(), 3u);
  double form = inner(results[0], arguments[2]);
  EXPECT_NEAR(inner(results[1], arguments[0]), form, 1e-12);
  EXPECT_NEAR(inner(results[2], arguments[1]), form, 1e-12);
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

TEST(Reference, MaxPool2d) {
  TestModule t(R"(
    func.func @f(%x: tensor<1x1x4x4xf32>)
        -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xi32>) {
      %y, %i = tandem.max_pool2d %x kernel [2, 2] strides [2, 2]
        : tensor<1x1x4x4xf32> -> tensor<1x1x2x2xf32>, tensor<1x1x2x2xi32>
      return %y, %i : tensor<1x1x2x2xf32>, tensor<1x1x2x2xi32>
    })");
  auto results = run(t, array({1, 1, 4, 4}, {1, 7, 3, 3,         //
                                             7, 2, 3, 3,         //
                                             -kInf, -kInf, 1, 9, //
                                             -kInf, -kInf, kNaN, kNaN}));
  ASSERT_EQ(results.size(), 2u);
  // The first of equal ones, even of -inf; the first NaN.
  EXPECT_EQ(results[1].data, Elements({1, 2, 8, 14}));
  EXPECT_EQ(results[0][0], 7);
  EXPECT_EQ(results[0][1], 3);
  EXPECT_EQ(results[0][2], -kInf);
  EXPECT_TRUE(std::isnan(results[0][3]));
}

TEST(Reference, MaxPool2dPadsWithNothing) {
  TestModule t(R"(
    func.func @f(%x: tensor<1x1x1x3xf32>)
        -> (tensor<1x1x1x2xf32>, tensor<1x1x1x2xi32>) {
      %y, %i = tandem.max_pool2d %x kernel [2, 2] strides [2, 3] padding [1, 1, 1, 1] dilation [2, 1]
        : tensor<1x1x1x3xf32> -> tensor<1x1x1x2xf32>, tensor<1x1x1x2xi32>
      return %y, %i : tensor<1x1x1x2xf32>, tensor<1x1x1x2xi32>
    })");
  auto results = run(t, array({1, 1, 1, 3}, {-1, -2, -3}));
  ASSERT_EQ(results.size(), 2u);
  // Rows -1 and 1 of a plane of one row: these windows see only padding.
  EXPECT_EQ(results[0].data, Elements({-kInf, -kInf}));
  EXPECT_EQ(results[1].data, Elements({-1, -1}));
}

TEST(Reference, MaxPool2dGradIgnoresIndicesOutside) {
  TestModule t(R"(
    func.func @f(%dy: tensor<1x2x1x3xf32>, %i: tensor<1x2x1x3xi32>, %x: tensor<1x2x2x2xf32>)
        -> (tensor<1x2x2x2xf32>, tensor<1x2x1x3xf32>) {
      %dx = tandem.max_pool2d_grad %dy, %i to [1, 2, 2, 2]
        : tensor<1x2x1x3xf32>, tensor<1x2x1x3xi32> -> tensor<1x2x2x2xf32>
      %y = tandem.max_pool2d_take %x, %i
        : tensor<1x2x2x2xf32>, tensor<1x2x1x3xi32> -> tensor<1x2x1x3xf32>
      return %dx, %y : tensor<1x2x2x2xf32>, tensor<1x2x1x3xf32>
    })");
  auto results = run(t, {array({1, 2, 1, 3}, {1, 2, 4, 8, 16, 32}),
                         array({1, 2, 1, 3}, {3, 3, -1, 4, 0, 1}),
                         array({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].data, Elements({0, 0, 0, 3, 16, 32, 0, 0}));
  EXPECT_EQ(results[1].data, Elements({4, 4, 0, 0, 5, 6}));
}

TEST(Reference, AvgPool2d) {
  for (bool countPadding : {true, false}) {
    SCOPED_TRACE(countPadding);
    std::string attribute = countPadding ? "" : " {count_include_pad = false}";
    TestModule t(R"(
      func.func @f(%x: tensor<2x3x5x4xf64>, %dy: tensor<2x3x3x5xf64>)
          -> (tensor<2x3x3x5xf64>, tensor<2x3x5x4xf64>) {
        %y = tandem.avg_pool2d %x kernel [3, 2] strides [2, 1] padding [1, 1, 1, 1])" +
                 attribute + R"( : tensor<2x3x5x4xf64> -> tensor<2x3x3x5xf64>
        %dx = tandem.avg_pool2d_grad %dy to [2, 3, 5, 4] kernel [3, 2] strides [2, 1] padding [1, 1, 1, 1])" +
                 attribute + R"( : tensor<2x3x3x5xf64> -> tensor<2x3x5x4xf64>
        return %y, %dx : tensor<2x3x3x5xf64>, tensor<2x3x5x4xf64>
      })");
    ASSERT_TRUE(t.module) << t.diagnostics;
    auto arguments = randomArguments(t);
    auto results = run(t, arguments);
    ASSERT_EQ(results.size(), 2u);
    const Array &x = arguments[0];
    // The corner window sees rows 0 and 1 of column 0.
    double corner = x({0, 0, 0, 0}) + x({0, 0, 1, 0});
    EXPECT_NEAR(results[0][0], corner / (countPadding ? 6 : 2), 1e-14);
    // An inner window sees six elements.
    double sum = 0;
    for (int64_t h = 1; h < 4; ++h)
      sum += x({1, 2, h, 1}) + x({1, 2, h, 2});
    EXPECT_NEAR(results[0]({1, 2, 1, 2}), sum / 6, 1e-14);
    EXPECT_NEAR(inner(results[0], arguments[1]), inner(results[1], x), 1e-12);
  }
}

//===----------------------------------------------------------------------===//
// Indexing
//===----------------------------------------------------------------------===//

TEST(Reference, TakeAndItsGradient) {
  TestModule t(R"(
    func.func @f(%t: tensor<3x2xf32>, %i: tensor<2x2xi8>, %dy: tensor<2x2x2xf32>,
                 %ti: tensor<3xi32>)
        -> (tensor<2x2x2xf32>, tensor<3x2xf32>, tensor<2x2xi32>) {
      %y = tandem.take %t, %i : tensor<3x2xf32>, tensor<2x2xi8> -> tensor<2x2x2xf32>
      %dt = tandem.take_grad %dy, %i to [3, 2] : tensor<2x2x2xf32>, tensor<2x2xi8> -> tensor<3x2xf32>
      %n = tandem.take %ti, %i : tensor<3xi32>, tensor<2x2xi8> -> tensor<2x2xi32>
      return %y, %dt, %n : tensor<2x2x2xf32>, tensor<3x2xf32>, tensor<2x2xi32>
    })");
  auto results =
      run(t, {array({3, 2}, {1, 2, 3, 4, 5, 6}), array({2, 2}, {2, -1, 2, 3}),
              array({2, 2, 2}, {1, 2, 4, 8, 16, 32, 64, 128}),
              array({3}, {7, 8, 9})});
  ASSERT_EQ(results.size(), 3u);
  const Array &y = results[0];
  EXPECT_EQ(y[0], 5);
  EXPECT_EQ(y[1], 6);
  EXPECT_TRUE(std::isnan(y[2]) && std::isnan(y[3]));
  EXPECT_EQ(y[4], 5);
  EXPECT_TRUE(std::isnan(y[6]) && std::isnan(y[7]));
  EXPECT_EQ(results[1].data, Elements({0, 0, 0, 0, 17, 34}));
  EXPECT_EQ(results[2].data, Elements({9, 0, 9, 0}));
}

//===----------------------------------------------------------------------===//
// Optimizers
//===----------------------------------------------------------------------===//

// Two steps, with the state handed on, worked out from PyTorch's update of one
// parameter: adamw(lr 0.1, betas 0.9 and 0.999, eps 1e-8, weight_decay 0.1).
TEST(Reference, AdamWTwoSteps) {
  TestModule t(R"(
    func.func @f(%p: tensor<f64>, %g: tensor<f64>, %m: tensor<f64>, %v: tensor<f64>,
                 %step: tensor<f32>, %lr: tensor<f32>)
        -> (tensor<f64>, tensor<f64>, tensor<f64>) {
      %r:3 = tandem.adamw %p, %g, %m, %v, %step, %lr {weight_decay = 0.1}
        : (tensor<f64>, tensor<f64>, tensor<f64>, tensor<f64>, tensor<f32>, tensor<f32>)
        -> (tensor<f64>, tensor<f64>, tensor<f64>)
      return %r#0, %r#1, %r#2 : tensor<f64>, tensor<f64>, tensor<f64>
    })");
  auto scalar = [](double x) { return array({}, {x}); };
  auto first = run(t, {scalar(1), scalar(0.5), scalar(0), scalar(0), scalar(1),
                       scalar(0.1)});
  ASSERT_EQ(first.size(), 3u);
  // Bias correction makes the first step lr * sign(g), after decay by 1 %.
  EXPECT_NEAR(first[0][0], 0.99 - 0.1 * 0.5 / (0.5 + 1e-8), 1e-12);
  EXPECT_NEAR(first[1][0], 0.05, 1e-15);
  EXPECT_NEAR(first[2][0], 0.00025, 1e-15);
  auto second = run(
      t, {first[0], scalar(-1), first[1], first[2], scalar(2), scalar(0.1)});
  ASSERT_EQ(second.size(), 3u);
  EXPECT_NEAR(second[1][0], -0.055, 1e-15);
  EXPECT_NEAR(second[2][0], 0.00124975, 1e-15);
  double m = -0.055 / 0.19, v = 0.00124975 / 0.001999;
  EXPECT_NEAR(second[0][0],
              first[0][0] * 0.99 - 0.1 * m / (std::sqrt(v) + 1e-8), 1e-12);
}
