//===- GradientTest.cpp - every row, and the engine's own rules -----------===//

#include "passes/autodiff/Engine.h"
#include "tests/gradients/GradientCheck.h"
#include "tests/support/TestModule.h"

#include "ir/Signature.h"
#include "ir/reference/Evaluator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <gtest/gtest.h>

#include <set>

using namespace tandem;
using namespace tandem::test;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

class Gradient : public testing::TestWithParam<GradientRow> {};

TEST_P(Gradient, EqualsDifferences) {
  EXPECT_EQ(checkGradients(GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(Rows, Gradient, testing::ValuesIn(gradientRows()),
                         [](const auto &info) { return info.param.name; });

TEST(GradientTable, NamesAreUnique) {
  std::set<std::string> names;
  for (const GradientRow &row : gradientRows())
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
}

// Every row's ops are printed as they are read, in their own syntax and in the
// generic one: a pointwise op has no other test of its syntax.
TEST(GradientTable, RowsRoundTrip) {
  for (const GradientRow &row : gradientRows()) {
    TestModule read(textOf(row));
    ASSERT_TRUE(read.module) << row.name << "\n" << read.diagnostics;
    std::string printed = read.print(), generic;
    EXPECT_NE(printed.find(row.op + " "), std::string::npos) << printed;
    llvm::raw_string_ostream stream(generic);
    read.module->print(stream, mlir::OpPrintingFlags().printGenericOpForm());
    for (const std::string &text : {printed, generic}) {
      TestModule again(text);
      ASSERT_TRUE(again.module) << row.name << "\n" << again.diagnostics;
      EXPECT_EQ(again.print(), printed) << row.name;
    }
  }
}

// The check itself sees a wrong gradient: detach hides half of the square.
TEST(GradientTable, SeesAWrongGradient) {
  GradientRow row{"tandem.mul",
                  "wrong",
                  {{"tensor<3xf64>"}},
                  "%d = tandem.detach %0 : tensor<3xf64>\n"
                  "%y = tandem.mul %d, %0 : tensor<3xf64>",
                  {{"%y", "tensor<3xf64>"}}};
  EXPECT_NE(checkGradients(row).find("order 1, input \"x0\": the gradient"),
            std::string::npos);
}

//===----------------------------------------------------------------------===//
// The engine
//===----------------------------------------------------------------------===//

// x^3: the derivatives are 3 x^2, 6 x and 6.
TEST(Joint, ThirdOrder) {
  TestModule t(R"(
    module attributes {tandem.phase = "functionalize"} {
      func.func @graph(%x: tensor<f64> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<f64> {tandem.role = #tandem.role<output "y">}) {
        %s = tandem.mul %x, %x : tensor<f64>
        %y = tandem.mul %s, %x : tensor<f64>
        return %y : tensor<f64>
      }
    })");
  std::string output = "y";
  llvm::SmallVector<reference::Array> arguments = {array({}, {2})};
  for (double expected : {12.0, 12.0, 6.0}) {
    ASSERT_TRUE(
        runPasses(*t.module, "tandem-build-joint{loss=\"" + output + "\"}"))
        << t.diagnostics;
    auto joint = t.function("joint");
    arguments.push_back(array({}, {1}));
    auto results = reference::evaluate(joint, arguments);
    ASSERT_TRUE(mlir::succeeded(results));
    auto gradient = findResult(joint, RoleKind::Grad, "x");
    ASSERT_TRUE(gradient);
    EXPECT_EQ((*results)[*gradient][0], expected);
    // Only the derivative for x is differentiated again.
    makeJointTheGraph(*t.module);
    auto graph = t.function("graph");
    for (unsigned i = 1; i < graph.getNumArguments(); ++i)
      setRoleOfArgument(
          graph, i,
          RoleAttr::get(&t.context, RoleKind::Input, "c" + std::to_string(i)));
    for (unsigned i = 0; i < graph.getNumResults(); ++i)
      setRoleOfResult(
          graph, i,
          RoleAttr::get(&t.context, RoleKind::Output, "o" + std::to_string(i)));
    output = "o" + std::to_string(graph.getNumResults() - 1);
  }
}

// Every op without a gradient is reported, but only those on the way; each says
// which argument wants it.
TEST(Joint, J13_MissingGradients) {
  TestModule t;
  t.context.loadDialect<mlir::arith::ArithDialect>();
  ASSERT_TRUE(t.parse(R"(
    func.func @f(%x: tensor<2xf64> {tandem.role = #tandem.role<param "x" {requires_grad}>},
                 %z: tensor<2xf64> {tandem.role = #tandem.role<input "z">})
        -> (tensor<2xf64> {tandem.role = #tandem.role<output "y">}) {
      %a = arith.negf %x : tensor<2xf64>
      %b = arith.addf %a, %z : tensor<2xf64>
      %aside = arith.mulf %x, %x : tensor<2xf64>
      %free = arith.negf %z : tensor<2xf64>
      %y = arith.addf %b, %free : tensor<2xf64>
      return %y : tensor<2xf64>
    })"))
      << t.diagnostics;
  auto func = t.function("f");
  mlir::Operation *end = func.getBody().front().getTerminator();
  GradientEngine engine(func, end, {func.getArgument(0)});
  mlir::Value y = end->getOperand(0);
  EXPECT_TRUE(engine.depends(y));
  auto wanter = [](mlir::Value) { return std::string("'param \"x\"'"); };
  EXPECT_TRUE(mlir::failed(engine.prune(y, wanter)));
  EXPECT_EQ(t.diagnostics,
            "'arith.negf' op has no gradient, but 'param \"x\"' requires one\n"
            "'arith.addf' op has no gradient, but 'param \"x\"' requires one\n"
            "'arith.addf' op has no gradient, but 'param \"x\"' requires "
            "one\n");
}
