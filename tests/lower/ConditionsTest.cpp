//===- ConditionsTest.cpp - programs with undefined cotangents ------------===//
//
// Backward programs are planned, lowered and run with every set of defined
// cotangents. A gradient that is defined must be what it is with zeros in place
// of the undefined cotangents; what is undefined here is NaN, so that a kernel
// that reads it shows.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/Machine.h"

#include "ir/Signature.h"
#include "passes/autodiff/Definedness.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

namespace {

const std::string kType = "tensor<6x5xf32>";

std::string argument(const std::string &name, const std::string &role) {
  return "%" + name + ": " + kType + " {tandem.role = #tandem.role<" + role +
         ">}";
}

std::string cotangents(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += ", " + argument(name, "cotangent of \"" + name + "\"");
  return text;
}

/// @backward with an input x, cotangents, and results of kType.
std::string
backward(const std::vector<std::string> &names, const std::string &body,
         const std::vector<std::pair<std::string, std::string>> &results,
         const std::string &more = "") {
  std::string roles, values, types;
  for (auto &[role, value] : results) {
    std::string comma = roles.empty() ? "" : ", ";
    roles += comma + kType + " {tandem.role = #tandem.role<" + role + ">}";
    values += comma + value;
    types += comma + kType;
  }
  return "module @m attributes {tandem.phase = \"partition\"} {\n"
         "func.func @backward(" +
         argument("x", "input \"x\"") + more + cotangents(names) + ") -> (" +
         roles + ") {\n" + body + "return " + values + " : " + types +
         "\n}\n}\n";
}

/// "%r = tandem.op operands" of kType.
std::string op(const std::string &result, const std::string &text) {
  return "%" + result + " = tandem." + text + " : " + kType + "\n";
}

std::vector<std::string> subset(const std::vector<std::string> &names,
                                unsigned mask) {
  std::vector<std::string> chosen;
  for (size_t i = 0; i < names.size(); ++i)
    if (mask & (1u << i))
      chosen.push_back(names[i]);
  return chosen;
}

/// The condition that the planned program says of result `index`.
bool isDefined(Machine &machine, unsigned index,
               const std::vector<std::string> &defined) {
  auto func = machine.planned().lookupSymbol<func::FuncOp>("backward");
  auto needs =
      roleOfResult(func, index).getProperties().getAs<ArrayAttr>("needs");
  SmallVector<StringRef> names(defined.begin(), defined.end());
  return !needs || evaluateDefined(needs, names);
}

/// The arguments with zeros for the cotangents that are not defined.
Arrays zeroFilled(Machine &machine, Arrays arguments,
                  const std::vector<std::string> &defined) {
  auto func = machine.planned().lookupSymbol<func::FuncOp>("backward");
  for (auto [i, array] : llvm::enumerate(arguments)) {
    RoleAttr role = roleOfArgument(func, i);
    if (role.getKind() == RoleKind::Cotangent &&
        !llvm::is_contained(defined, role.getName().str()))
      std::fill(array.data.begin(), array.data.end(), 0.0);
  }
  return arguments;
}

/// Runs with every set of cotangents; results that are defined must be those
/// with zeros. `definedAt(mask, result)` says which must be.
template <typename DefinedAt>
void checkMasks(const std::string &text, const std::vector<std::string> &names,
                DefinedAt definedAt) {
  Machine machine(text);
  ASSERT_EQ(machine.error(), "") << text;
  Arrays arguments = machine.randomArguments("backward", 3);
  for (unsigned mask = 1; mask < 1u << names.size(); ++mask) {
    SCOPED_TRACE("mask " + std::to_string(mask));
    std::vector<std::string> defined = subset(names, mask);
    Arrays got = machine.run("backward", arguments, 0, &defined);
    Arrays expected =
        machine.reference("backward", zeroFilled(machine, arguments, defined));
    machine.round("backward", expected);
    for (size_t r = 0; r < got.size(); ++r) {
      EXPECT_EQ(isDefined(machine, r, defined), definedAt(mask, r)) << r;
      if (!definedAt(mask, r))
        continue;
      for (int64_t i = 0; i < got[r].size(); ++i)
        ASSERT_NEAR(got[r][i], expected[r][i],
                    2e-6 * std::max(1.0, std::abs(expected[r][i])))
            << "result " << r << " element " << i;
    }
  }
}

TEST(Conditions, J05_AllMasksOfUndefinedCotangents) {
  // d(x) = a x + (b + sin(c)) x + c; d(y) = b c (both are needed), d(z) = a.
  std::vector<std::string> names = {"a", "b", "c"};
  std::string body = op("ax", "mul %a, %x") + op("sc", "mul %c, %x") +
                     op("bc", "accumulate %b, %sc") + op("t", "sin %x") +
                     op("bx", "mul %bc, %t") + op("s", "accumulate %ax, %bx") +
                     op("dx", "accumulate %s, %c") + op("dy", "mul %b, %c") +
                     op("dz", "exp %a");
  checkMasks(backward(names, body,
                      {{"grad of \"x\"", "%dx"},
                       {"grad of \"y\"", "%dy"},
                       {"grad of \"z\"", "%dz"}}),
             names, [](unsigned mask, size_t result) {
               return result == 0   ? true
                      : result == 1 ? (mask & 6) == 6
                                    : (mask & 1) == 1;
             });
}

TEST(Conditions, J05_ViewsBetweenSumsOfGradients) {
  std::vector<std::string> names = {"a", "b"};
  std::string body =
      "%f = tandem.reshape %a to [30] : " + kType + " -> tensor<30xf32>\n" +
      "%g = tandem.reshape %b to [30] : " + kType + " -> tensor<30xf32>\n" +
      "%s = tandem.accumulate %f, %g : tensor<30xf32>\n" +
      "%c = tandem.constant dense<2.0> : tensor<30xf32>\n" +
      "%t = tandem.accumulate %c, %g : tensor<30xf32>\n" +
      "%u = tandem.add %s, %t : tensor<30xf32>\n" +
      "%dx = tandem.reshape %u to [6, 5] : tensor<30xf32> -> " + kType + "\n";
  checkMasks(backward(names, body, {{"grad of \"x\"", "%dx"}}), names,
             [](unsigned, size_t) { return true; });
}

TEST(Conditions, J12_ZerosWhereACotangentIsUndefined) {
  // exp(0) where b is undefined but a is not; nothing where neither is.
  std::vector<std::string> names = {"a", "b", "c"};
  std::string body = op("z", "or_zero %b needs [[\"a\", \"b\"]]") +
                     op("dx", "exp %z") + op("dy", "mul %c, %x");
  checkMasks(backward(names, body,
                      {{"grad of \"x\"", "%dx"}, {"grad of \"y\"", "%dy"}}),
             names, [](unsigned mask, size_t result) {
               return result == 0 ? (mask & 3) != 0 : (mask & 4) != 0;
             });
}

TEST(Conditions, J04_LaunchesOfUndefinedCotangentsDoNotRun) {
  std::vector<std::string> names = {"a", "b"};
  std::string body = op("e", "exp %x") + op("dx", "mul %a, %e") +
                     op("t", "tanh %x") + op("u", "sin %b") +
                     op("dy", "mul %u, %t");
  Machine machine(backward(
      names, body, {{"grad of \"x\"", "%dx"}, {"grad of \"y\"", "%dy"}}));
  ASSERT_EQ(machine.error(), "");
  Arrays arguments = machine.randomArguments("backward", 1);
  std::vector<std::string> a = {"a"}, b = {"b"};
  machine.run("backward", arguments);
  EXPECT_EQ(machine.launches(), 2u);
  machine.run("backward", arguments, 0, &a);
  EXPECT_EQ(machine.launches(), 1u);
  machine.run("backward", arguments, 0, &b);
  EXPECT_EQ(machine.launches(), 1u);
}

TEST(Conditions, B17_AnUpdateHappensWhereItsCotangentIsDefined) {
  // The second write reads what the first wrote (B14).
  std::vector<std::string> names = {"a", "b", "c"};
  std::string body = op("n1", "add %s, %a") +
                     op("s1", "if_defined %n1 else %s when [[\"a\"]]") +
                     op("n2", "mul %s1, %b") +
                     op("s2", "if_defined %n2 else %s1 when [[\"b\"]]") +
                     op("dx", "exp %c");
  std::string text =
      backward(names, body,
               {{"update of \"s\" {pass = \"backward\"}", "%s2"},
                {"grad of \"x\"", "%dx"}},
               ", " + argument("s", "state \"s\" {pass = \"backward\"}"));
  Machine machine(text);
  ASSERT_EQ(machine.error(), "");
  Arrays arguments = machine.randomArguments("backward", 5);
  const reference::Array &s = arguments[1], &a = arguments[2],
                         &b = arguments[3];
  for (unsigned mask = 1; mask < 8; ++mask) {
    std::vector<std::string> defined = subset(names, mask);
    Arrays got = machine.run("backward", arguments, 0, &defined);
    EXPECT_EQ(isDefined(machine, 0, defined), (mask & 3) != 0);
    for (int64_t i = 0; i < s.size(); ++i) {
      float expected = static_cast<float>(s[i]);
      if (mask & 1)
        expected += static_cast<float>(a[i]);
      if (mask & 2)
        expected *= static_cast<float>(b[i]);
      // In place: the argument's storage, whether or not anything was written.
      ASSERT_EQ(got[0][i], expected) << mask;
    }
  }
  auto func = machine.planned().lookupSymbol<func::FuncOp>("backward");
  EXPECT_TRUE(roleOfResult(func, 0).has("in_place"));
}

TEST(Conditions, J04_OneCotangentHasNoConditions) {
  std::string body = op("s", "accumulate %a, %x") + op("dx", "exp %s");
  Machine machine(backward({"a"}, body, {{"grad of \"x\"", "%dx"}}));
  ASSERT_EQ(machine.error(), "");
  auto kernels = machine.kernels("backward");
  ASSERT_EQ(kernels.size(), 1u); // the sum is an ordinary one: it fuses
  EXPECT_FALSE(kernels[0].getNeedsAttr());
  EXPECT_FALSE(kernels[0].getChoicesAttr());
}

} // namespace
