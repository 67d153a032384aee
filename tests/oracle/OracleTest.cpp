//===- OracleTest.cpp - every case of the fixtures, in all ways -----------===//
//
// Each case is imported as a JSON graph and evaluated by the reference, in
// double, before anything is decomposed (values) and after its gradients were
// made, and by compiled code for the CPU, in f32 and f64. Neither PyTorch nor
// the network is needed.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Function.h"
#include "ir/Dialect.h"
#include "tests/oracle/Fixtures.h"
#include "tests/oracle/Run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

using namespace tandem;
using namespace tandem::oracle;

/// Fixtures have 12 digits.
static constexpr double kReference = 1e-9;
static constexpr double kCompiledF64 = 1e-9;
/// About 80 units in the last place of f32, where PyTorch's own f32 is no
/// worse; else five times what that is off by.
static constexpr double kCompiledF32 = 1e-5;
static constexpr double kOfItsError = 5;
/// A result that is an f32 in any case.
static constexpr double kRoundedF32 = 1e-7;

/// Cases that are compiled together: compiling one module of many small
/// kernels is faster than many modules, and memory is planned for all at once.
static constexpr size_t kBatch = 24;

/// What differs between the outputs of a case and what they are to be, a line
/// each (the first elements that differ); "" if nothing does.
static std::string differences(const Case &c, Asked asked,
                               const NamedNumbers &got, double tolerance) {
  std::string lines;
  for (auto &[name, expected] : c.outputs(asked)) {
    auto found = got.find(name);
    if (found == got.end()) {
      lines += c.op() + ": " + name + " is missing\n";
      continue;
    }
    if (found->second.shape != expected.shape) {
      lines += c.op() + ": " + name + " has another shape\n";
      continue;
    }
    double largest = 0;
    for (double x : expected.data)
      if (std::isfinite(x))
        largest = std::max(largest, std::abs(x));
    double relative =
        expected.isF32 ? std::max(tolerance, kRoundedF32) : tolerance;
    double bound = expected.isFloat ? relative * (1 + largest) : 0;
    int shown = 0;
    for (size_t i = 0; i < expected.data.size() && shown < 3; ++i) {
      double a = expected.data[i], b = found->second.data[i];
      bool isSame = std::isfinite(a) ? std::abs(a - b) <= bound
                                     : a == b || (a != a && b != b);
      if (isSame)
        continue;
      char text[160];
      std::snprintf(text, sizeof text,
                    " element %zu: expected %.10g but got %.10g\n", i, a, b);
      lines += c.op() + ": " + name + text;
      ++shown;
    }
  }
  return lines;
}

class Oracle : public testing::TestWithParam<std::string> {};

/// What the ops themselves say, composites undivided.
TEST_P(Oracle, ValuesOnTheReference) {
  for (const Case &c : readFamily(GetParam())) {
    NamedNumbers got;
    std::string error = evaluate({&c}, "f64", Asked::Values, got);
    EXPECT_EQ(error, "") << c.name();
    if (error.empty())
      EXPECT_EQ(differences(c, Asked::Values, got, kReference), "");
  }
}

TEST_P(Oracle, DerivativesOnTheReference) {
  for (const Case &c : readFamily(GetParam())) {
    NamedNumbers got;
    std::string error = evaluate({&c}, "f64", Asked::Derivatives, got);
    EXPECT_EQ(error, "") << c.name();
    if (error.empty())
      EXPECT_EQ(differences(c, Asked::Derivatives, got, kReference), "");
  }
}

/// Compiles and runs `cases` as one program; if that fails, each on its own, so
/// that the message names the one.
static void checkCompiled(const Cases &cases, const std::string &type,
                          int effort) {
  NamedNumbers got;
  std::string error = runCompiled(cases, type, effort, got);
  if (!error.empty() && cases.size() > 1) {
    for (const Case *c : cases)
      checkCompiled({c}, type, effort);
    return;
  }
  ASSERT_EQ(error, "") << cases[0]->name();
  for (const Case *c : cases) {
    double tolerance =
        type == "f64" ? kCompiledF64
                      : std::max(kCompiledF32, kOfItsError * c->f32Error());
    EXPECT_EQ(differences(*c, Asked::Derivatives, got, tolerance), "");
  }
}

static void checkFamily(const std::string &family, const std::string &type) {
  std::vector<Case> cases = readFamily(family);
  // Both kinds of code, and the common one takes LLVM twice the time: that is
  // every other batch of f32.
  int effort = type == "f32" ? 2 : 0;
  for (bool trains : {false, true}) {
    Cases batch;
    for (const Case &c : cases) {
      if (c.isTraining() == trains)
        batch.push_back(&c);
      if (!batch.empty() && (batch.size() == kBatch || &c == &cases.back())) {
        checkCompiled(batch, type, effort);
        effort = type == "f32" ? 2 - effort : 0;
        batch.clear();
      }
    }
  }
}

TEST_P(Oracle, CompiledInF32) { checkFamily(GetParam(), "f32"); }
TEST_P(Oracle, CompiledInF64) { checkFamily(GetParam(), "f64"); }

INSTANTIATE_TEST_SUITE_P(, Oracle, testing::ValuesIn(familyNames()),
                         [](const auto &info) { return info.param; });

TEST(OracleFixtures, NamesAreUnique) {
  std::set<std::string> names;
  for (const std::string &family : familyNames())
    for (const Case &c : readFamily(family))
      EXPECT_TRUE(names.insert(c.name()).second) << c.name();
  EXPECT_GT(names.size(), 2000u);
}

/// The comparison sees a wrong number, and says which.
TEST(OracleFixtures, SeesAWrongNumber) {
  Case c(Json{
      {"name", "t.0"},
      {"op", "t"},
      {"order", 0},
      {"inputs", Json::array()},
      {"nodes", Json::array()},
      {"outputs",
       {{{"name", "y"}, {"type", "f"}, {"shape", {2}}, {"data", {1, 2}}}}}});
  NamedNumbers got = {{"t.0/y", {{2}, {1, 2.5}}}};
  EXPECT_EQ(differences(c, Asked::Values, got, kReference),
            "t: t.0/y element 1: expected 2 but got 2.5\n");
  got["t.0/y"].data[1] = 2 + 1e-10;
  EXPECT_EQ(differences(c, Asked::Values, got, kReference), "");
}

/// Every op that a model can name has a case but for these.
static bool isElsewhere(llvm::StringRef op) {
  static const std::set<llvm::StringRef> others = {
      // Made by phases; models are differentiated, and these with them.
      "accumulate", "attention_forward", "attention_key_grad",
      "attention_query_grad", "avg_pool2d_grad", "conv2d_filter_grad",
      "conv2d_input_grad", "if_defined", "kernel", "launch", "max_pool2d_grad",
      "max_pool2d_take", "or_zero", "pass_grad", "take_grad", "to_device",
      "to_host", "undefined", "yield",
      // Storage, and what has regions (tests/semantics, tests/property).
      // PyTorch does not differentiate a loop without an end.
      "custom_vjp", "grad", "make_ref", "read", "resize_", "set_", "transpose_",
      "while", "write",
      // PyTorch draws other numbers (tests/reference/PhiloxTest.cpp).
      "bernoulli", "philox", "random_bits", "random_normal", "random_uniform",
      // Of f32 the bits.
      "bitcast",
      // Of several ranks (tests/gradients/CollectiveTest.cpp).
      "all_gather", "all_reduce", "all_to_all", "barrier", "broadcast_from",
      "rank_slice", "reduce_scatter"};
  return others.count(op);
}

TEST(OracleFixtures, EveryOpHasACase) {
  std::set<std::string> seen;
  for (const std::string &family : familyNames())
    for (const Case &c : readFamily(family))
      seen.insert(c.op());
  mlir::MLIRContext context;
  context.loadDialect<TandemDialect>();
  std::string missing;
  for (auto name : context.getRegisteredOperationsByDialect("tandem"))
    if (llvm::StringRef op = name.stripDialect();
        !isElsewhere(op) && !seen.count(op.str()))
      missing += " " + op.str();
  EXPECT_EQ(missing, "");
}

/// Every function has a case, but for what PyTorch has not: the cases of
/// linear_attention are ONNX's (tests/onnx), with its values and gradients
/// against differences.
TEST(OracleFixtures, EveryFunctionHasACase) {
  std::set<std::string> seen;
  for (const std::string &family : familyNames())
    for (const Case &c : readFamily(family))
      seen.insert(c.op());
  std::string missing;
  for (auto &[name, function] : FunctionTable::get().all())
    if (!seen.count(name) && name != "linear_attention")
      missing += " " + name;
  EXPECT_EQ(missing, "");
}
