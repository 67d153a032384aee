//===- EvaluatorTest.cpp - whole functions, in double ---------------------===//
#include "ir/reference/Evaluator.h"
#include "tests/support/TestModule.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::test;
using reference::Array;
using reference::evaluate;

using Elements = std::vector<double>;

TEST(Evaluator, Tensors) {
  TestModule t(R"(
    func.func @f(%a: tensor<2x2xf32>, %b: tensor<2x2xf32>)
        -> (tensor<2xf32>, tensor<2x2xf32>) {
      %y = tandem.matmul %a, %b : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
      %z = tandem.mul %y, %y : tensor<2x2xf32>
      %s = tandem.reduce_sum %z over [1] : tensor<2x2xf32> -> tensor<2xf32>
      return %s, %y : tensor<2xf32>, tensor<2x2xf32>
    })");
  auto results = evaluate(t.function("f"), {array({2, 2}, {1, 2, 3, 4}),
                                            array({2, 2}, {1, 0, 1, 1})});
  ASSERT_TRUE(mlir::succeeded(results)) << t.diagnostics;
  EXPECT_EQ((*results)[0].data, Elements({9 + 4, 49 + 16}));
  EXPECT_EQ((*results)[1].data, Elements({3, 2, 7, 4}));
}

TEST(Evaluator, ViewsOfARefShareItsStorage) {
  TestModule t(R"(
    func.func @f(%x: !tandem.ref<2x3xf32>) -> (tensor<6xf32>, tensor<3x2xf32>) {
      %t = tandem.permute %x by [1, 0] : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
      %row = tandem.slice %t from [1, 0] to [2, 2] step [1, 1] : !tandem.ref<3x2xf32> -> !tandem.ref<1x2xf32>
      %flat = tandem.reshape %x to [6] : !tandem.ref<2x3xf32> -> !tandem.ref<6xf32>
      %before = tandem.read %flat : !tandem.ref<6xf32>
      %c = tandem.constant dense<[[10.0, 20.0]]> : tensor<1x2xf32>
      tandem.write %c into %row : tensor<1x2xf32>, !tandem.ref<1x2xf32>
      %after = tandem.read %t : !tandem.ref<3x2xf32>
      return %before, %after : tensor<6xf32>, tensor<3x2xf32>
    })");
  Array x = array({2, 3}, {1, 2, 3, 4, 5, 6});
  llvm::SmallVector<Array> after;
  auto results = evaluate(t.function("f"), x, &after);
  ASSERT_TRUE(mlir::succeeded(results)) << t.diagnostics;
  EXPECT_EQ((*results)[0].data, x.data);
  EXPECT_EQ((*results)[1].data, Elements({1, 4, 10, 20, 3, 6}));
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].data, Elements({1, 10, 3, 4, 20, 6}));
}

TEST(Evaluator, NewStorageIsACopy) {
  TestModule t(R"(
    func.func @f(%x: tensor<2xf32>) -> (tensor<2xf32>, !tandem.ref<2xf32>) {
      %r = tandem.make_ref %x : tensor<2xf32>
      %n = tandem.neg %x : tensor<2xf32>
      tandem.write %n into %r : tensor<2xf32>, !tandem.ref<2xf32>
      return %x, %r : tensor<2xf32>, !tandem.ref<2xf32>
    })");
  auto results = evaluate(t.function("f"), array({2}, {1, 2}));
  ASSERT_TRUE(mlir::succeeded(results)) << t.diagnostics;
  EXPECT_EQ((*results)[0].data, Elements({1, 2}));
  EXPECT_EQ((*results)[1].data, Elements({-1, -2}));
}

TEST(Evaluator, Kernels) {
  TestModule t(R"(
    func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
      %y = tandem.kernel "add_neg" (%a, %a) {
        ^bb0(%x0: tensor<2xf32>, %x1: tensor<2xf32>):
          %s = tandem.add %x0, %x1 : tensor<2xf32>
          %r = tandem.neg %s : tensor<2xf32>
          tandem.yield %r : tensor<2xf32>
      } : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      return %y : tensor<2xf32>
    })");
  auto results = evaluate(t.function("f"), array({2}, {1, 2}));
  ASSERT_TRUE(mlir::succeeded(results)) << t.diagnostics;
  EXPECT_EQ((*results)[0].data, Elements({-2, -4}));
}

TEST(Evaluator, Errors) {
  TestModule t(R"(
    func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
      return %a : tensor<2xf32>
    }
    func.func private @g(%a: tensor<2xf32>)
    func.func @h(%a: tensor<2xf32>) -> tensor<2xf32> {
      %x = tandem.launch @cpu::@k(%a) {buffers = [#tandem.buffer<result 0>], work = 1 : i64, grain = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
      return %x : tensor<2xf32>
    })");
  EXPECT_TRUE(mlir::failed(evaluate(t.function("f"), {})));
  EXPECT_TRUE(mlir::failed(evaluate(t.function("f"), array({1}, {1}))));
  EXPECT_TRUE(mlir::failed(evaluate(t.function("g"), array({2}, {1, 2}))));
  EXPECT_TRUE(mlir::failed(evaluate(t.function("h"), array({2}, {1, 2}))));
  EXPECT_EQ(t.diagnostics,
            "expected 1 arguments but got 0\n"
            "expected argument #0 of type 'tensor<2xf32>' but got shape [1]\n"
            "expected function 'g' to have a body\n"
            "'tandem.launch' op has no reference\n");
}
