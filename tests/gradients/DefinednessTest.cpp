//===- DefinednessTest.cpp - conditions on cotangents ---------------------===//
#include "passes/autodiff/Definedness.h"
#include "ir/Ops.h"
#include "tests/support/TestModule.h"

#include "mlir/AsmParser/AsmParser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

namespace {

class Conditions : public testing::Test {
protected:
  ArrayAttr parse(const char *text) {
    return cast<ArrayAttr>(parseAttribute(text, &t.context));
  }
  static std::string print(ArrayAttr condition) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    condition.print(stream);
    return text;
  }
  TestModule t;
};

} // namespace

TEST_F(Conditions, AreKeptInNormalForm) {
  ArrayAttr a = parse(R"([["a"]])"), b = parse(R"([["b"]])"),
            always = parse("[]");
  EXPECT_EQ(print(definedBoth(b, a)), R"([["a"], ["b"]])");
  EXPECT_EQ(print(definedEither(b, a)), R"([["a", "b"]])");
  EXPECT_EQ(definedBoth(a, always), a);
  EXPECT_EQ(definedEither(a, always), always);
  // a or (a and b) is a; a and (a or b) is a.
  EXPECT_EQ(definedEither(a, definedBoth(a, b)), a);
  EXPECT_EQ(definedBoth(definedEither(a, b), a), a);
  EXPECT_EQ(print(definedEither(parse(R"([["a"], ["b"]])"),
                                parse(R"([["c"], ["d"]])"))),
            R"([["a", "c"], ["a", "d"], ["b", "c"], ["b", "d"]])");
}

TEST_F(Conditions, AreEvaluatedAndImplied) {
  ArrayAttr both = parse(R"([["a"], ["b"]])"),
            either = parse(R"([["a", "b"]])");
  EXPECT_TRUE(evaluateDefined(both, {"a", "b"}));
  EXPECT_FALSE(evaluateDefined(both, {"a"}));
  EXPECT_TRUE(evaluateDefined(either, {"b"}));
  EXPECT_FALSE(evaluateDefined(either, {}));
  EXPECT_TRUE(evaluateDefined(parse("[]"), {}));
  EXPECT_TRUE(definedImplies(both, either));
  EXPECT_FALSE(definedImplies(either, both));
  EXPECT_TRUE(definedImplies(either, parse("[]")));
  EXPECT_FALSE(definedImplies(parse("[]"), either));
}

TEST_F(Conditions, OfValues) {
  ASSERT_TRUE(t.parse(R"(
    func.func @backward(
        %x: tensor<f32> {tandem.role = #tandem.role<input "x">},
        %a: tensor<f32> {tandem.role = #tandem.role<cotangent of "a">},
        %b: tensor<f32> {tandem.role = #tandem.role<cotangent of "b">},
        %c: tensor<f32> {tandem.role = #tandem.role<cotangent of "c">}) {
      %0 = tandem.sin %x : tensor<f32>
      %1 = tandem.mul %a, %0 : tensor<f32>
      %2 = tandem.mul %a, %b : tensor<f32>
      %3 = tandem.accumulate %1, %b : tensor<f32>
      %4 = tandem.accumulate %3, %c : tensor<f32>
      %5 = tandem.or_zero %1 needs [["b", "a"]] : tensor<f32>
      %6 = tandem.if_defined %1 else %x when [["a"]] : tensor<f32>
      return
    })"))
      << t.diagnostics;
  auto func = t.function("backward");
  Definedness definedness(func);
  SmallVector<std::string> got;
  // From the last: what it depends on is found on the way.
  for (Operation &op :
       llvm::reverse(func.getBody().front().without_terminator()))
    got.insert(got.begin(), print(definedness.of(op.getResult(0))));
  EXPECT_EQ(got, (SmallVector<std::string>{
                     "[]", R"([["a"]])", R"([["a"], ["b"]])", R"([["a", "b"]])",
                     // One of all is defined, or nothing runs.
                     "[]", R"([["a", "b"]])", "[]"}));
}

// One cotangent is certain where the backward runs at all; in @grad_forward all
// are.
TEST_F(Conditions, CertainCotangents) {
  const std::string
      a = R"(%a: tensor<f32> {tandem.role = #tandem.role<cotangent of "a">})",
      b = R"(%b: tensor<f32> {tandem.role = #tandem.role<cotangent of "b">})";
  for (const std::string &signature :
       {"@backward(" + a + ")", "@grad_forward(" + a + ", " + b + ")"}) {
    TestModule t("func.func " + signature + R"( {
      %0 = tandem.sin %a : tensor<f32>
      return
    })");
    ASSERT_TRUE(t.module) << t.diagnostics;
    auto func = *t.module->getOps<func::FuncOp>().begin();
    Definedness definedness(func);
    Operation &sin = func.getBody().front().front();
    EXPECT_EQ(definedness.of(sin.getResult(0)), definedness.always());
  }
}
