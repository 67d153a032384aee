//===- DecompositionTest.cpp - composites mean what they decompose into ---===//
//
// Each composite op is evaluated twice in double: by its own reference, which
// is the formula, and as the ops that it decomposes into.
//
//===----------------------------------------------------------------------===//
#include "ir/Ops.h"
#include "ir/reference/Evaluator.h"
#include "passes/autodiff/Decompose.h"
#include "tests/ir/Random.h"
#include "tests/support/TestModule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::test;
using reference::Array;

namespace {

/// One function body: the arguments' types, the op, its result types.
struct Row {
  const char *name;
  const char *arguments; ///< of block arguments %0, %1, ...
  const char *op;        ///< defines %r
  const char *results;
  int64_t resultCount = 1;
  double low = -2, high = 2; ///< of float arguments
  int64_t integers = 5;      ///< integer arguments are in [0, integers)
  /// In f32 the constants of formulas are rounded.
  double tolerance = 1e-12;
};

void PrintTo(const Row &row, std::ostream *out) { *out << row.name; }

const Row kRows[] = {
    {"gelu", "%0: tensor<3x4xf64>", "tandem.gelu %0 : tensor<3x4xf64>",
     "tensor<3x4xf64>"},
    {"gelu_tanh", "%0: tensor<3x4xf64>",
     "tandem.gelu %0 {approximate = \"tanh\"} : tensor<3x4xf64>",
     "tensor<3x4xf64>"},
    {"silu", "%0: tensor<7xbf16>", "tandem.silu %0 : tensor<7xbf16>",
     "tensor<7xbf16>"},
    {"softmax", "%0: tensor<2x5x3xf32>",
     "tandem.softmax %0 dim 1 : tensor<2x5x3xf32>", "tensor<2x5x3xf32>", 1,
     -300, 300},
    {"log_softmax", "%0: tensor<4x6xf16>",
     "tandem.log_softmax %0 dim 1 : tensor<4x6xf16>", "tensor<4x6xf16>", 1,
     -300, 300},
    {"layer_norm",
     "%0: tensor<2x3x4xf32>, %1: tensor<3x4xf32>, "
     "%2: tensor<3x4xf32>",
     "tandem.layer_norm %0, %1, %2 axis 1 : tensor<2x3x4xf32>, "
     "tensor<3x4xf32>, tensor<3x4xf32> -> tensor<2x3x4xf32>",
     "tensor<2x3x4xf32>"},
    {"layer_norm_mixed",
     "%0: tensor<5x8xbf16>, %1: tensor<8xf32>, %2: tensor<8xf32>",
     "tandem.layer_norm %0, %1, %2 axis 1 {epsilon = 1.0e-3} : "
     "tensor<5x8xbf16>, tensor<8xf32>, tensor<8xf32> -> tensor<5x8xbf16>",
     "tensor<5x8xbf16>", 1, -2, 2, 1, 1e-6},
    {"batch_norm_training",
     "%0: tensor<2x3x4x2xf32>, %1: tensor<3xf32>, %2: tensor<3xf32>, "
     "%3: tensor<3xf32>, %4: tensor<3xf32>",
     "tandem.batch_norm %0, %1, %2, %3, %4 {training} : (tensor<2x3x4x2xf32>, "
     "tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> "
     "(tensor<2x3x4x2xf32>, tensor<3xf32>, tensor<3xf32>)",
     "tensor<2x3x4x2xf32>, tensor<3xf32>, tensor<3xf32>", 3, 0.1, 2},
    {"batch_norm",
     "%0: tensor<5x3xf32>, %1: tensor<3xf32>, %2: tensor<3xf32>, "
     "%3: tensor<3xf32>, %4: tensor<3xf32>",
     "tandem.batch_norm %0, %1, %2, %3, %4 : (tensor<5x3xf32>, tensor<3xf32>, "
     "tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<5x3xf32>, "
     "tensor<3xf32>, tensor<3xf32>)",
     "tensor<5x3xf32>, tensor<3xf32>, tensor<3xf32>", 3, 0.1, 2},
    {"cross_entropy", "%0: tensor<4x5xf32>, %1: tensor<4xi64>",
     "tandem.cross_entropy %0, %1 : tensor<4x5xf32>, tensor<4xi64> -> "
     "tensor<f32>",
     "tensor<f32>", 1, -90, 90},
    {"cross_entropy_sum", "%0: tensor<2x3x5xf32>, %1: tensor<2x3xi8>",
     "tandem.cross_entropy %0, %1 {reduction = \"sum\"} : tensor<2x3x5xf32>, "
     "tensor<2x3xi8> -> tensor<f32>",
     "tensor<f32>"},
    {"cross_entropy_ignore", "%0: tensor<9x5xf32>, %1: tensor<9xi32>",
     "tandem.cross_entropy %0, %1 {ignore_index = 2} : tensor<9x5xf32>, "
     "tensor<9xi32> -> tensor<f32>",
     "tensor<f32>"},
    {"cross_entropy_none_outside", "%0: tensor<9x3xf32>, %1: tensor<9xi32>",
     "tandem.cross_entropy %0, %1 {reduction = \"none\", ignore_index = 4} : "
     "tensor<9x3xf32>, tensor<9xi32> -> tensor<9xf32>",
     "tensor<9xf32>"},
    {"cross_entropy_all_ignored", "%0: tensor<2x3xf32>, %1: tensor<2xi32>",
     "tandem.cross_entropy %0, %1 {ignore_index = 0} : tensor<2x3xf32>, "
     "tensor<2xi32> -> tensor<f32>",
     "tensor<f32>", 1, -1, 1, 1},
    {"cross_entropy_scalar", "%0: tensor<5xf32>, %1: tensor<i32>",
     "tandem.cross_entropy %0, %1 : tensor<5xf32>, tensor<i32> -> tensor<f32>",
     "tensor<f32>"},
    {"mse_loss", "%0: tensor<3x2xf32>, %1: tensor<3x2xf32>",
     "tandem.mse_loss %0, %1 : tensor<3x2xf32>, tensor<3x2xf32> -> tensor<f32>",
     "tensor<f32>"},
    {"mse_loss_sum", "%0: tensor<3x2xf16>, %1: tensor<3x2xf16>",
     "tandem.mse_loss %0, %1 {reduction = \"sum\"} : tensor<3x2xf16>, "
     "tensor<3x2xf16> -> tensor<f16>",
     "tensor<f16>"},
    {"mse_loss_none", "%0: tensor<3x2xf32>, %1: tensor<3x2xf32>",
     "tandem.mse_loss %0, %1 {reduction = \"none\"} : tensor<3x2xf32>, "
     "tensor<3x2xf32> -> tensor<3x2xf32>",
     "tensor<3x2xf32>"},
    {"linear", "%0: tensor<2x3x4xf32>, %1: tensor<5x4xf32>, %2: tensor<5xf32>",
     "tandem.linear %0, %1, %2 : (tensor<2x3x4xf32>, tensor<5x4xf32>, "
     "tensor<5xf32>) -> tensor<2x3x5xf32>",
     "tensor<2x3x5xf32>"},
    {"linear_vector", "%0: tensor<4xf32>, %1: tensor<5x4xf32>",
     "tandem.linear %0, %1 : (tensor<4xf32>, tensor<5x4xf32>) -> tensor<5xf32>",
     "tensor<5xf32>"},
    {"random_bits", "%0: tensor<2xi64>",
     "tandem.random_bits %0 draw 5 : tensor<3x5xi32>", "tensor<3x5xi32>"},
    {"random_uniform", "%0: tensor<2xi64>",
     "tandem.random_uniform %0 draw 5 : tensor<3x5xf64>", "tensor<3x5xf64>"},
    {"random_uniform_scalar", "%0: tensor<2xi64>",
     "tandem.random_uniform %0 draw 16777215 : tensor<bf16>", "tensor<bf16>"},
    {"random_normal", "%0: tensor<2xi64>",
     "tandem.random_normal %0 draw 8388607 : tensor<3x5xf16>",
     "tensor<3x5xf16>", 1, 0, 0, 5, 1e-6},
    {"bernoulli", "%0: tensor<2xi64>",
     "tandem.bernoulli %0 draw 1 p 0.3 : tensor<3x5xi1>", "tensor<3x5xi1>"},
    {"dropout", "%0: tensor<3x5xf64>, %1: tensor<2xi64>",
     "tandem.dropout %0, %1 draw 1 p 0.3 {training} : tensor<3x5xf64>",
     "tensor<3x5xf64>"},
    {"dropout_inference", "%0: tensor<3x5xf32>, %1: tensor<2xi64>",
     "tandem.dropout %0, %1 draw 1 p 0.3 : tensor<3x5xf32>", "tensor<3x5xf32>"},
    {"dropout_none", "%0: tensor<3x5xf32>, %1: tensor<2xi64>",
     "tandem.dropout %0, %1 draw 1 p 0.0 {training} : tensor<3x5xf32>",
     "tensor<3x5xf32>", 1, -2, 2, 5, 0},
    {"dropout_all", "%0: tensor<3x5xf32>, %1: tensor<2xi64>",
     "tandem.dropout %0, %1 draw 1 p 1.0 {training} : tensor<3x5xf32>",
     "tensor<3x5xf32>", 1, -2, 2, 5, 0},
    {"attention",
     "%0: tensor<2x3x4xf32>, %1: tensor<2x5x4xf32>, "
     "%2: tensor<2x5x6xf32>",
     "tandem.attention %0, %1, %2 : tensor<2x3x4xf32>, tensor<2x5x4xf32>, "
     "tensor<2x5x6xf32> -> tensor<2x3x6xf32>",
     "tensor<2x3x6xf32>"},
    {"attention_causal",
     "%0: tensor<5x4xf32>, %1: tensor<5x4xf32>, "
     "%2: tensor<5x4xf32>",
     "tandem.attention %0, %1, %2 {causal, scale = 0.25} : tensor<5x4xf32>, "
     "tensor<5x4xf32>, tensor<5x4xf32> -> tensor<5x4xf32>",
     "tensor<5x4xf32>"},
    {"attention_causal_fewer_keys",
     "%0: tensor<5x4xf32>, %1: tensor<3x4xf32>, "
     "%2: tensor<3x4xf32>",
     "tandem.attention %0, %1, %2 {causal} : tensor<5x4xf32>, "
     "tensor<3x4xf32>, tensor<3x4xf32> -> tensor<5x4xf32>",
     "tensor<5x4xf32>"},
    {"attention_biased",
     "%0: tensor<5x4xf32>, %1: tensor<3x4xf32>, "
     "%2: tensor<3x4xf32>, %3: tensor<5x3xf32>",
     "tandem.attention %0, %1, %2, %3 {causal} : tensor<5x4xf32>, "
     "tensor<3x4xf32>, tensor<3x4xf32>, tensor<5x3xf32> -> tensor<5x4xf32>",
     "tensor<5x4xf32>"},
    {"attention_masked",
     "%0: tensor<5x4xf32>, %1: tensor<3x4xf32>, "
     "%2: tensor<3x4xf32>, %3: tensor<5x3xi1>",
     "tandem.attention %0, %1, %2, %3 : tensor<5x4xf32>, "
     "tensor<3x4xf32>, tensor<3x4xf32>, tensor<5x3xi1> -> tensor<5x4xf32>",
     "tensor<5x4xf32>"},
    {"reduce_mean", "%0: tensor<2x3x4xf32>",
     "tandem.reduce_mean %0 over [0, 2] : tensor<2x3x4xf32> -> tensor<3xf32>",
     "tensor<3xf32>"},
    {"argmax", "%0: tensor<2x5x3xf32>",
     "tandem.argmax %0 dim 1 : tensor<2x5x3xf32> -> tensor<2x3xi64>",
     "tensor<2x3xi64>"},
    {"argmax_ties", "%0: tensor<40x7xi8>",
     "tandem.argmax %0 dim 1 : tensor<40x7xi8> -> tensor<40xi64>",
     "tensor<40xi64>"},
    {"concat",
     "%0: tensor<2x1x2xf32>, %1: tensor<2x4x2xf32>, "
     "%2: tensor<2x2x2xf32>",
     "tandem.concat %0, %1, %2 dim 1 : tensor<2x1x2xf32>, tensor<2x4x2xf32>, "
     "tensor<2x2x2xf32> -> tensor<2x7x2xf32>",
     "tensor<2x7x2xf32>"},
    {"as_strided_overlapping", "%0: tensor<2x6xf32>",
     "tandem.as_strided %0 sizes [2, 3] strides [2, 3] offset 1 : "
     "tensor<2x6xf32> -> tensor<2x3xf32>",
     "tensor<2x3xf32>"},
    {"concat_one", "%0: tensor<3xi1>",
     "tandem.concat %0 dim 0 : tensor<3xi1> -> tensor<3xi1>", "tensor<3xi1>", 1,
     0, 1, 2},
    {"sgd", "%0: tensor<4xf64>, %1: tensor<4xf64>, %2: tensor<f32>",
     "tandem.sgd %0, %1, %2 {weight_decay = 0.1} : (tensor<4xf64>, "
     "tensor<4xf64>, tensor<f32>) -> tensor<4xf64>",
     "tensor<4xf64>"},
    {"momentum",
     "%0: tensor<4xf64>, %1: tensor<4xf64>, %2: tensor<4xf64>, "
     "%3: tensor<f32>",
     "tandem.momentum %0, %1, %2, %3 {momentum = 0.8, dampening = 0.25} : "
     "(tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<f32>) -> "
     "(tensor<4xf64>, tensor<4xf64>)",
     "tensor<4xf64>, tensor<4xf64>", 2},
    {"momentum_nesterov",
     "%0: tensor<4xf64>, %1: tensor<4xf64>, "
     "%2: tensor<4xf64>, %3: tensor<f32>",
     "tandem.momentum %0, %1, %2, %3 {nesterov, weight_decay = 0.5} : "
     "(tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<f32>) -> "
     "(tensor<4xf64>, tensor<4xf64>)",
     "tensor<4xf64>, tensor<4xf64>", 2},
    {"adam",
     "%0: tensor<4xf64>, %1: tensor<4xf64>, %2: tensor<4xf64>, "
     "%3: tensor<4xf64>, %4: tensor<f32>, %5: tensor<f32>",
     "tandem.adam %0, %1, %2, %3, %4, %5 {weight_decay = 0.3} : "
     "(tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, tensor<4xf64>, "
     "tensor<f32>, tensor<f32>) -> (tensor<4xf64>, tensor<4xf64>, "
     "tensor<4xf64>)",
     "tensor<4xf64>, tensor<4xf64>, tensor<4xf64>", 3, 0.5, 3},
    {"adamw",
     "%0: tensor<4xbf16>, %1: tensor<4xbf16>, %2: tensor<4xf32>, "
     "%3: tensor<4xf32>, %4: tensor<f32>, %5: tensor<f32>",
     "tandem.adamw %0, %1, %2, %3, %4, %5 : (tensor<4xbf16>, tensor<4xbf16>, "
     "tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> "
     "(tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>)",
     "tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>", 3, 0.5, 3, 1, 1e-6},
};

std::string functionText(const Row &row) {
  std::string text = "func.func @f(";
  text += row.arguments;
  text += std::string(") -> (") + row.results + ") {\n  %r";
  std::string values = "%r";
  if (row.resultCount > 1) {
    text += ":" + std::to_string(row.resultCount);
    values = "%r#0";
    for (int64_t i = 1; i < row.resultCount; ++i)
      values += ", %r#" + std::to_string(i);
  }
  return text + " = " + row.op + "\n  return " + values + " : " + row.results +
         "\n}\n";
}

void expectNear(const Array &actual, const Array &expected, double tolerance) {
  ASSERT_EQ(actual.shape, expected.shape);
  for (int64_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(actual[i])) << "element " << i;
    } else
      EXPECT_NEAR(actual[i], expected[i],
                  tolerance * std::max(1.0, std::abs(expected[i])))
          << "element " << i;
  }
}

/// Evaluates @f by the references, then as what it decomposes into.
void expectDecomposes(TestModule &t, llvm::ArrayRef<Array> arguments,
                      double tolerance = 1e-12) {
  auto direct = reference::evaluate(t.function("f"), arguments);
  ASSERT_TRUE(mlir::succeeded(direct)) << t.diagnostics;
  ASSERT_TRUE(mlir::succeeded(decomposeComposites(t.function("f"))));
  ASSERT_TRUE(mlir::succeeded(mlir::verify(*t.module))) << t.diagnostics;
  auto decomposed = reference::evaluate(t.function("f"), arguments);
  ASSERT_TRUE(mlir::succeeded(decomposed)) << t.diagnostics;
  ASSERT_EQ(decomposed->size(), direct->size());
  for (size_t i = 0; i < direct->size(); ++i) {
    SCOPED_TRACE("result " + std::to_string(i));
    expectNear((*decomposed)[i], (*direct)[i], tolerance);
  }
}

class Decomposition : public testing::TestWithParam<Row> {};

} // namespace

TEST_P(Decomposition, EqualsTheReference) {
  const Row &row = GetParam();
  TestModule t;
  ASSERT_TRUE(t.parse(functionText(row))) << t.diagnostics;
  std::mt19937_64 random(17);
  std::vector<Array> arguments;
  for (mlir::Type type : t.function("f").getArgumentTypes())
    arguments.push_back(randomArray(mlir::cast<mlir::RankedTensorType>(type),
                                    random, row.low, row.high, row.integers));
  expectDecomposes(t, arguments, row.tolerance);
}

INSTANTIATE_TEST_SUITE_P(Rows, Decomposition, testing::ValuesIn(kRows),
                         [](const auto &info) { return info.param.name; });

TEST(Decompositions, EveryCompositeHasARow) {
  TestModule t;
  std::string all;
  for (const Row &row : kRows)
    all += std::string(row.op).substr(0, std::string(row.op).find(' ')) + "\n";
  for (mlir::RegisteredOperationName op :
       t.context.getRegisteredOperationsByDialect("tandem"))
    if (op.hasInterface<CompositeOpInterface>()) {
      EXPECT_NE(all.find(op.getStringRef().str() + "\n"), std::string::npos)
          << op.getStringRef().str() << " has no row";
    }
}

TEST(Decompositions, ArgmaxOfNaNs) {
  TestModule t("func.func @f(%0: tensor<3x4xf32>) -> tensor<3xi64> {\n"
               "  %r = tandem.argmax %0 dim 1 : tensor<3x4xf32> -> "
               "tensor<3xi64>\n  return %r : tensor<3xi64>\n}");
  double nan = std::numeric_limits<double>::quiet_NaN();
  double inf = std::numeric_limits<double>::infinity();
  Array x =
      array({3, 4}, {1, nan, 5, nan, -inf, -inf, -inf, -inf, 2, inf, 7, inf});
  auto index = reference::evaluate(t.function("f"), x);
  ASSERT_TRUE(mlir::succeeded(index));
  EXPECT_EQ((*index)[0].data, (std::vector<double>{1, 0, 1}));
  expectDecomposes(t, x);
}

// A row that sees nothing has no softmax; one NaN spoils its own row alone.
TEST(Decompositions, SoftmaxOfInfinities) {
  TestModule t("func.func @f(%0: tensor<4x2xf32>) -> tensor<4x2xf32> {\n"
               "  %r = tandem.softmax %0 dim 1 : tensor<4x2xf32>\n"
               "  return %r : tensor<4x2xf32>\n}");
  double nan = std::numeric_limits<double>::quiet_NaN();
  double inf = std::numeric_limits<double>::infinity();
  expectDecomposes(t,
                   array({4, 2}, {-inf, -inf, -inf, 3, nan, 1, 1e300, 1e300}));
}

// One quotient a row: what divides each element takes a processor 16 cycles a
// vector. A model's own quotients stay.
TEST(Decompositions, SoftmaxDividesOncePerRow) {
  TestModule t("func.func @f(%0: tensor<4x9xf32>) -> tensor<4x9xf32> {\n"
               "  %r = tandem.softmax %0 dim 1 : tensor<4x9xf32>\n"
               "  %s = tandem.div %r, %0 : tensor<4x9xf32>\n"
               "  return %s : tensor<4x9xf32>\n}");
  ASSERT_TRUE(mlir::succeeded(decomposeComposites(t.function("f"))));
  std::vector<int64_t> sizes;
  t.function("f").walk(
      [&](DivOp op) { sizes.push_back(op.getType().getNumElements()); });
  EXPECT_EQ(sizes, (std::vector<int64_t>{4, 36}));
}

TEST(Decompositions, InferenceUsesTheGivenStatistics) {
  TestModule t(functionText(*llvm::find_if(kRows, [](const Row &row) {
    return row.name == std::string("batch_norm_training");
  })));
  t.function("f").walk(
      [](tandem::CompositeOpInterface composite) { composite.setInference(); });
  std::vector<Array> arguments = {
      array({2, 3, 4, 2}, std::vector<double>(48, 5)), array({3}, {1, 2, 3}),
      array({3}, {0, 0, 1}), array({3}, {5, 4, 3}), array({3}, {1, 1, 4})};
  auto results = reference::evaluate(t.function("f"), arguments);
  ASSERT_TRUE(mlir::succeeded(results)) << t.diagnostics;
  EXPECT_EQ((*results)[0][0], 0);
  EXPECT_NEAR((*results)[0][8], 2 / std::sqrt(1 + 1e-5), 1e-12);
  EXPECT_NEAR((*results)[0][16], 3 * 2 / std::sqrt(4 + 1e-5) + 1, 1e-12);
  EXPECT_EQ((*results)[1].data, arguments[3].data);
  EXPECT_EQ((*results)[2].data, arguments[4].data);
  expectDecomposes(t, arguments, 1e-7);
}

TEST(Decompositions, DropoutOfNothingAndOfAllIsExact) {
  for (auto [p, name] : {std::pair<double, const char *>{0, "dropout_none"},
                         {1, "dropout_all"}}) {
    TestModule t(functionText(*llvm::find_if(
        kRows, [&](const Row &row) { return row.name == std::string(name); })));
    Array x({3, 5});
    for (int64_t i = 0; i < x.size(); ++i)
      x[i] = i == 7 ? std::numeric_limits<double>::infinity() : 0.1 * i;
    std::vector<Array> arguments = {x, array({2}, {3, 4})};
    std::vector<double> expected = p == 0 ? x.data : std::vector<double>(15);
    for (bool decomposed : {false, true}) {
      if (decomposed) {
        ASSERT_TRUE(mlir::succeeded(decomposeComposites(t.function("f"))));
      }
      auto results = reference::evaluate(t.function("f"), arguments);
      ASSERT_TRUE(mlir::succeeded(results)) << t.diagnostics;
      EXPECT_EQ((*results)[0].data, expected);
    }
  }
}
