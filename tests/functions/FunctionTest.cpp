//===- FunctionTest.cpp - every function, its gradients and its checks ----===//
#include "compiler/functions/Function.h"
#include "ir/Signature.h"
#include "ir/reference/Evaluator.h"
#include "tests/functions/Rows.h"
#include "tests/gradients/GradientCheck.h"
#include "tests/support/TestModule.h"

#include "mlir/AsmParser/AsmParser.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

std::vector<FunctionRow> test::functionRows() {
  std::vector<FunctionRow> rows;
  addActivationFunctionRows(rows);
  addConvolutionFunctionRows(rows);
  addPoolingFunctionRows(rows);
  addMathFunctionRows(rows);
  addArithmeticFunctionRows(rows);
  addLogicFunctionRows(rows);
  addReductionFunctionRows(rows);
  addOrderFunctionRows(rows);
  addProductFunctionRows(rows);
  addShapeFunctionRows(rows);
  addPadFunctionRows(rows);
  addDiagonalFunctionRows(rows);
  addGatherFunctionRows(rows);
  addScatterFunctionRows(rows);
  addCreationFunctionRows(rows);
  addInterpolationFunctionRows(rows);
  addSamplingFunctionRows(rows);
  addSignalFunctionRows(rows);
  addQuantizationFunctionRows(rows);
  addNormalizationFunctionRows(rows);
  addLossFunctionRows(rows);
  addAttentionFunctionRows(rows);
  addRecurrentFunctionRows(rows);
  addRandomFunctionRows(rows);
  return rows;
}

namespace {

/// A module whose graph is one call; empty, with diagnostics, after a mistake.
class CallModule {
public:
  explicit CallModule(const FunctionRow &row);

  TestModule module;
  bool made = false;
};

} // namespace

CallModule::CallModule(const FunctionRow &row) {
  MLIRContext *context = &module.context;
  OpBuilder b(context);
  Location loc = b.getUnknownLoc();
  module.module = ModuleOp::create(b, loc);
  (*module.module)->setAttr(kPhaseAttr, b.getStringAttr("functionalize"));
  b.setInsertionPointToEnd(module.module->getBody());
  func::FuncOp graph = createGraphFunction(b, loc, "graph", {}, {});
  Block &block = graph.getBody().front();
  b.setInsertionPointToEnd(&block);
  SmallVector<Value> operands;
  SmallVector<RoleAttr> roles;
  for (const RowOperand &operand : row.operands) {
    if (operand.type.empty()) {
      operands.push_back({});
      continue;
    }
    Type type = parseType(operand.type, context);
    if (!type) {
      ADD_FAILURE() << operand.type;
      return;
    }
    RoleAttr role = RoleAttr::get(context, RoleKind::Input,
                                  "x" + std::to_string(roles.size()));
    if (operand.differentiate &&
        isa<FloatType>(cast<RankedTensorType>(type).getElementType()))
      role = role.withUnit("requires_grad");
    operands.push_back(block.addArgument(type, loc));
    roles.push_back(role);
  }
  DictionaryAttr attributes = b.getDictionaryAttr({});
  if (!row.attributes.empty()) {
    attributes = dyn_cast_or_null<DictionaryAttr>(
        parseAttribute(row.attributes, context));
    if (!attributes) {
      ADD_FAILURE() << row.attributes;
      return;
    }
  }
  CallResults results =
      callFunction(b, loc, row.function, operands, attributes.getValue());
  if (failed(results))
    return;
  SmallVector<Type> types;
  for (Value result : *results)
    types.push_back(result.getType());
  func::ReturnOp::create(b, loc, *results);
  graph.setType(FunctionType::get(
      context, SmallVector<Type>(block.getArgumentTypes()), types));
  for (auto [i, role] : llvm::enumerate(roles))
    setRoleOfArgument(graph, i, role);
  for (unsigned i = 0; i < types.size(); ++i)
    setRoleOfResult(
        graph, i,
        RoleAttr::get(context, RoleKind::Output, "y" + std::to_string(i)));
  made = succeeded(verify(*module.module));
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

class FunctionRows : public testing::TestWithParam<FunctionRow> {};

TEST_P(FunctionRows, GradientEqualsDifferences) {
  const FunctionRow &row = GetParam();
  CallModule call(row);
  ASSERT_TRUE(call.made) << call.module.diagnostics;
  GradientRow check;
  check.name = row.name;
  for (const RowOperand &operand : row.operands)
    if (!operand.type.empty())
      check.operands.push_back(operand);
  check.order = row.order;
  check.tolerance = row.tolerance;
  check.module = call.module.print();
  if (row.order > 0) {
    EXPECT_EQ(checkGradients(check), "");
    return;
  }
  std::mt19937_64 generator(1);
  SmallVector<reference::Array> arguments;
  func::FuncOp graph = call.module.function("graph");
  for (auto [type, operand] :
       llvm::zip(graph.getArgumentTypes(), check.operands)) {
    reference::Array array(cast<RankedTensorType>(type));
    for (double &x : array.data)
      x = std::floor(operand.low + (operand.high - operand.low) *
                                       (double(generator() >> 11) * 0x1p-53));
    arguments.push_back(std::move(array));
  }
  EXPECT_TRUE(succeeded(reference::evaluate(graph, arguments)))
      << call.module.diagnostics;
}

INSTANTIATE_TEST_SUITE_P(Table, FunctionRows, testing::ValuesIn(functionRows()),
                         [](const auto &info) { return info.param.name; });

TEST(FunctionTable, EveryFunctionHasARow) {
  std::set<std::string> called, names;
  for (const FunctionRow &row : functionRows()) {
    called.insert(row.function);
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
  ASSERT_FALSE(FunctionTable::get().all().empty());
  for (const auto &[name, function] : FunctionTable::get().all()) {
    EXPECT_TRUE(called.count(name)) << name << " has no row";
    EXPECT_FALSE(function.meaning.empty()) << name;
  }
}

// As PyTorch. softshrink and hardshrink made 0 of a NaN, and hid it.
TEST(FunctionTable, ActivationsOfNaNAreNaN) {
  for (const char *name : {"leaky_relu", "elu", "celu", "selu", "threshold",
                           "shrink", "softshrink", "hardshrink", "hardtanh",
                           "relu6", "hardsigmoid", "hardswish", "softplus",
                           "logsigmoid", "softsign", "mish", "tanhshrink"}) {
    CallModule call({name, name, {{"tensor<1xf32>"}}, ""});
    ASSERT_TRUE(call.made) << call.module.diagnostics;
    func::FuncOp graph = call.module.function("graph");
    reference::Array x(cast<RankedTensorType>(graph.getArgumentTypes()[0]));
    x.data[0] = std::numeric_limits<double>::quiet_NaN();
    auto y = reference::evaluate(graph, x);
    ASSERT_TRUE(succeeded(y)) << call.module.diagnostics;
    EXPECT_TRUE(std::isnan((*y)[0].data[0])) << name;
  }
}

//===----------------------------------------------------------------------===//
// What is wrong
//===----------------------------------------------------------------------===//

static std::string wrong(const FunctionRow &row) {
  CallModule call(row);
  EXPECT_FALSE(call.made);
  return call.module.diagnostics;
}

TEST(FunctionCall, SaysWhatIsWrong) {
  EXPECT_EQ(wrong({"nothing", "", {}, ""}), "unknown function 'nothing'\n");
  EXPECT_EQ(wrong({"leaky_relu", "", {}, ""}),
            "'leaky_relu' expected 1 operands, but got 0: leaky_relu(x; "
            "negative_slope=0.01)\n");
  EXPECT_EQ(wrong({"leaky_relu", "", {{"tensor<2xf32>"}}, "{slope = 1.0}"}),
            "'leaky_relu' has no attribute 'slope': leaky_relu(x; "
            "negative_slope=0.01)\n");
  EXPECT_EQ(
      wrong(
          {"leaky_relu", "", {{"tensor<2xf32>"}}, "{negative_slope = \"a\"}"}),
      "'leaky_relu' expected 'negative_slope' to be a number, but got "
      "\"a\"\n");
  EXPECT_EQ(wrong({"leaky_relu", "", {{"tensor<2xi32>"}}, ""}),
            "'leaky_relu' expected operand #0 to have floats, but got "
            "tensor<2xi32>\n");
}

TEST(FunctionCall, SaysWhichShapesDoNotFit) {
  EXPECT_EQ(
      wrong(
          {"einsum", "", {{"tensor<2x3xf32>"}}, "{equation = \"ij,jk->ik\"}"}),
      "'einsum' expected an equation of 1 operands, but got "
      "'ij,jk->ik'\n");
  EXPECT_EQ(
      wrong({"split", "", {{"tensor<3xf32>"}}, "{sizes = array<i64: 1, 1>}"}),
      "'split' expected 'sizes' that add up to 3, but got [1, 1]\n");
  EXPECT_EQ(wrong({"gather",
                   "",
                   {{"tensor<2x3xf32>"}, {"tensor<2x3xf32>"}},
                   "{dim = 1 : i64}"}),
            "'gather' expected operand #1 to have integers, but got "
            "tensor<2x3xf32>\n");
  EXPECT_EQ(
      wrong({"view", "", {{"tensor<2x3xf32>"}}, "{shape = array<i64: 4, -1>}"}),
      "'view' expected a shape of 6 elements with one size left open, but got "
      "[4, -1]\n");
  EXPECT_EQ(wrong({"linalg_matmul",
                   "",
                   {{"tensor<2x3xf32>"}, {"tensor<2x3xf32>"}},
                   ""}),
            "'linalg_matmul' expected matrices of which the first has as many "
            "columns as the second has rows, but got [2, 3] and [2, 3]\n");
}

/// Calls a function with operands and attributes that may be anything: it
/// builds valid ops or says what is wrong.
TEST(FunctionCall, RubbishIsRefused) {
  static const char *types[] = {
      "tensor<f32>",       "tensor<3xf32>",       "tensor<2x3xf32>",
      "tensor<2x3x4xf32>", "tensor<1x2x3x4xf32>", "tensor<2x2x3x3x3xf32>",
      "tensor<3xi64>",     "tensor<2x3xi1>",      "tensor<2x3xf16>",
      "tensor<i32>",       "tensor<1xf64>",       "tensor<0x3xf32>",
      "tensor<2x0x4xf32>", "tensor<0x2x3x3xf32>", ""};
  static const char *values[] = {
      "0 : i64",
      "-1 : i64",
      "3 : i64",
      "9223372036854775807 : i64",
      "-9223372036854775808 : i64",
      "array<i64>",
      "array<i64: 0>",
      "array<i64: 1, 1>",
      "array<i64: 2, -1, 5>",
      "array<i64: 4611686018427387904, 4611686018427387904>",
      "0.5 : f64",
      "0x7FF8000000000000 : f64",
      "\"mean\"",
      "\"\"",
      "true",
      "unit"};
  std::mt19937_64 generator(7);
  auto pick = [&](auto &list) { return list[generator() % std::size(list)]; };
  for (const auto &[name, function] : FunctionTable::get().all())
    for (int i = 0; i < 60; ++i) {
      FunctionRow row{name, "", {}, ""};
      size_t count = function.fewest + generator() % 2;
      const char *same = pick(types);
      for (size_t k = 0; k < count; ++k)
        row.operands.push_back({generator() % 2 && *same ? same : pick(types)});
      std::string list;
      for (const std::string &attribute : function.attributes)
        if (generator() % 3 == 0)
          list += (list.empty() ? "" : ", ") + attribute + " = " + pick(values);
      row.attributes = list.empty() ? "" : "{" + list + "}";
      CallModule call(row);
      EXPECT_TRUE(call.made || !call.module.diagnostics.empty())
          << name << " " << row.attributes;
    }
}
