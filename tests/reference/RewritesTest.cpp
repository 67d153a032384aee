//===- RewritesTest.cpp - sums and products in place of others ------------===//
//
// Products and sums that stand for convolutions and averages of whole images,
// and sums over pieces that stand for convolutions of what is concatenated, are
// compared with them.
//
//===----------------------------------------------------------------------===//
#include "ir/Ops.h"
#include "ir/ops/Composite.h"
#include "ir/reference/Evaluator.h"
#include "passes/Passes.h"
#include "tests/support/TestModule.h"

#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

namespace {

constexpr const char *windows = R"(
func.func @f(%x: tensor<3x4x2x3xf64>, %w: tensor<5x4x2x3xf64>, %dy: tensor<3x5x1x1xf64>, %dm: tensor<3x4x1x1xf64>)
    -> (tensor<3x5x1x1xf64>, tensor<3x4x2x3xf64>, tensor<5x4x2x3xf64>, tensor<3x4x1x1xf64>, tensor<3x4x2x3xf64>) {
  %y = tandem.conv2d %x, %w strides [2, 1] : tensor<3x4x2x3xf64>, tensor<5x4x2x3xf64> -> tensor<3x5x1x1xf64>
  %dx = tandem.conv2d_input_grad %dy, %w to [3, 4, 2, 3] : tensor<3x5x1x1xf64>, tensor<5x4x2x3xf64> -> tensor<3x4x2x3xf64>
  %dw = tandem.conv2d_filter_grad %x, %dy to [5, 4, 2, 3] : tensor<3x4x2x3xf64>, tensor<3x5x1x1xf64> -> tensor<5x4x2x3xf64>
  %m = tandem.avg_pool2d %x kernel [2, 3] strides [2, 3] : tensor<3x4x2x3xf64> -> tensor<3x4x1x1xf64>
  %g = tandem.avg_pool2d_grad %dm to [3, 4, 2, 3] kernel [2, 3] : tensor<3x4x1x1xf64> -> tensor<3x4x2x3xf64>
  return %y, %dx, %dw, %m, %g : tensor<3x5x1x1xf64>, tensor<3x4x2x3xf64>, tensor<5x4x2x3xf64>, tensor<3x4x1x1xf64>, tensor<3x4x2x3xf64>
})";

constexpr const char *concats = R"(
func.func @f(%a: tensor<2x3x9x8xf64>, %b: tensor<2x5x9x8xf64>, %c: tensor<2x1x9x8xf64>, %w: tensor<2x9x1x1xf64>, %v: tensor<1x9x1x1xf64>)
    -> (tensor<2x2x2x2xf64>, tensor<2x1x11x9xf64>) {
  %x = tandem.concat %a, %b, %c dim 1 : tensor<2x3x9x8xf64>, tensor<2x5x9x8xf64>, tensor<2x1x9x8xf64> -> tensor<2x9x9x8xf64>
  %p, %i = tandem.max_pool2d %x kernel [3, 3] strides [2, 2] padding [0, 1, 0, 1] : tensor<2x9x9x8xf64> -> tensor<2x9x4x4xf64>, tensor<2x9x4x4xi32>
  %y = tandem.conv2d %p, %w strides [2, 2] : tensor<2x9x4x4xf64>, tensor<2x9x1x1xf64> -> tensor<2x2x2x2xf64>
  %q = tandem.concat %a, %b, %c dim 1 : tensor<2x3x9x8xf64>, tensor<2x5x9x8xf64>, tensor<2x1x9x8xf64> -> tensor<2x9x9x8xf64>
  %z = tandem.conv2d %q, %v padding [2, 0, 1, 0] : tensor<2x9x9x8xf64>, tensor<1x9x1x1xf64> -> tensor<2x1x11x9xf64>
  return %y, %z : tensor<2x2x2x2xf64>, tensor<2x1x11x9xf64>
})";

reference::Array numbers(std::vector<int64_t> shape, double step) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  std::vector<double> data;
  for (int64_t i = 0; i < count; ++i)
    data.push_back(std::sin(step * static_cast<double>(i + 1)));
  return array(shape, data);
}

using Shapes = std::vector<std::vector<int64_t>>;

/// The results of @f for arguments of these shapes.
auto results(TestModule &t, const Shapes &shapes) {
  std::vector<reference::Array> arguments;
  for (const std::vector<int64_t> &shape : shapes)
    arguments.push_back(
        numbers(shape, 0.7 + 0.4 * static_cast<double>(arguments.size())));
  return reference::evaluate(t.function("f"), std::move(arguments));
}

/// Whether @f has the same results, and none of the ops `Replaced`, behind a
/// pass.
template <typename... Replaced>
void expectSame(const char *text, const Shapes &shapes,
                std::unique_ptr<Pass> pass) {
  TestModule t(text);
  ASSERT_TRUE(t.module) << t.diagnostics;
  auto expected = results(t, shapes);
  PassManager passes(&t.context);
  passes.nest<func::FuncOp>().addPass(std::move(pass));
  ASSERT_TRUE(succeeded(passes.run(*t.module)));
  t.module->walk(
      [&](Operation *op) { EXPECT_FALSE(isa<Replaced...>(op)) << t.print(); });
  auto got = results(t, shapes);
  ASSERT_TRUE(succeeded(expected));
  ASSERT_TRUE(succeeded(got));
  for (size_t i = 0; i < expected->size(); ++i) {
    ASSERT_EQ((*got)[i].data.size(), (*expected)[i].data.size());
    for (size_t e = 0; e < (*got)[i].data.size(); ++e)
      EXPECT_NEAR((*got)[i].data[e], (*expected)[i].data[e], 1e-12)
          << "result " << i << ", element " << e;
  }
}

} // namespace

TEST(Rewrites, WholeWindowsAreWhatConvolutionsAndAveragesAre) {
  expectSame<Conv2dOp, Conv2dInputGradOp, Conv2dFilterGradOp, AvgPool2dOp,
             AvgPool2dGradOp>(
      windows, {{3, 4, 2, 3}, {5, 4, 2, 3}, {3, 5, 1, 1}, {3, 4, 1, 1}},
      createSimplifyWindows());
}

TEST(Rewrites, SumsOverPiecesAreWhatConvolutionsOfAllAre) {
  expectSame<ConcatOp>(
      concats,
      {{2, 3, 9, 8}, {2, 5, 9, 8}, {2, 1, 9, 8}, {2, 9, 1, 1}, {1, 9, 1, 1}},
      createSplitConcats());
}
