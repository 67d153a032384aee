//===- SimplifyWindowsTest.cpp - windows that are whole images ------------===//
//
// Products and sums that stand for convolutions and averages are compared with
// them.
//
//===----------------------------------------------------------------------===//
#include "ir/Ops.h"
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

constexpr const char *text = R"(
func.func @f(%x: tensor<3x4x2x3xf64>, %w: tensor<5x4x2x3xf64>, %dy: tensor<3x5x1x1xf64>, %dm: tensor<3x4x1x1xf64>)
    -> (tensor<3x5x1x1xf64>, tensor<3x4x2x3xf64>, tensor<5x4x2x3xf64>, tensor<3x4x1x1xf64>, tensor<3x4x2x3xf64>) {
  %y = tandem.conv2d %x, %w strides [2, 1] : tensor<3x4x2x3xf64>, tensor<5x4x2x3xf64> -> tensor<3x5x1x1xf64>
  %dx = tandem.conv2d_input_grad %dy, %w to [3, 4, 2, 3] : tensor<3x5x1x1xf64>, tensor<5x4x2x3xf64> -> tensor<3x4x2x3xf64>
  %dw = tandem.conv2d_filter_grad %x, %dy to [5, 4, 2, 3] : tensor<3x4x2x3xf64>, tensor<3x5x1x1xf64> -> tensor<5x4x2x3xf64>
  %m = tandem.avg_pool2d %x kernel [2, 3] strides [2, 3] : tensor<3x4x2x3xf64> -> tensor<3x4x1x1xf64>
  %g = tandem.avg_pool2d_grad %dm to [3, 4, 2, 3] kernel [2, 3] : tensor<3x4x1x1xf64> -> tensor<3x4x2x3xf64>
  return %y, %dx, %dw, %m, %g : tensor<3x5x1x1xf64>, tensor<3x4x2x3xf64>, tensor<5x4x2x3xf64>, tensor<3x4x1x1xf64>, tensor<3x4x2x3xf64>
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

auto results(TestModule &t) {
  return reference::evaluate(t.function("f"), {numbers({3, 4, 2, 3}, 0.7),
                                               numbers({5, 4, 2, 3}, 1.1),
                                               numbers({3, 5, 1, 1}, 1.7),
                                               numbers({3, 4, 1, 1}, 2.3)});
}

} // namespace

TEST(SimplifyWindows, AreWhatConvolutionsAndAveragesAre) {
  TestModule t(text);
  ASSERT_TRUE(t.module) << t.diagnostics;
  auto expected = results(t);
  PassManager passes(&t.context);
  passes.nest<func::FuncOp>().addPass(createSimplifyWindows());
  ASSERT_TRUE(succeeded(passes.run(*t.module)));
  t.module->walk([&](Operation *op) {
    EXPECT_FALSE((isa<Conv2dOp, Conv2dInputGradOp, Conv2dFilterGradOp,
                      AvgPool2dOp, AvgPool2dGradOp>(op)))
        << t.print();
  });
  auto got = results(t);
  ASSERT_TRUE(succeeded(expected));
  ASSERT_TRUE(succeeded(got));
  for (size_t i = 0; i < expected->size(); ++i) {
    ASSERT_EQ((*got)[i].data.size(), (*expected)[i].data.size());
    for (size_t e = 0; e < (*got)[i].data.size(); ++e)
      EXPECT_NEAR((*got)[i].data[e], (*expected)[i].data[e], 1e-12)
          << "result " << i << ", element " << e;
  }
}
