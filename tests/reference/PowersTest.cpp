//===- PowersTest.cpp - products and roots are what powers are ------------===//
//
// A root of a negative zero or of a negative infinity is no power of it: what
// stands for a power is compared with it where numbers end.
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

const std::vector<double> kNumbers = {
    0.0,   -0.0, 1,     -1,    0.5,     -2.75,    3,         300,
    -1000, 7e9,  1e-12, -1e10, 1.0 / 3, INFINITY, -INFINITY, std::nan("")};

/// Powers of all numbers, as they are or expanded.
std::vector<double> powers(double exponent, const std::string &type,
                           bool expand) {
  std::string of =
      "tensor<" + std::to_string(kNumbers.size()) + "x" + type + ">";
  char number[32];
  std::snprintf(number, sizeof(number), "%.1f", exponent);
  TestModule t("func.func @f(%x: " + of + ") -> " + of +
               " {\n"
               "%n = tandem.constant dense<" +
               number + "> : " + of +
               "\n"
               "%y = tandem.pow %x, %n : " +
               of +
               "\n"
               "return %y : " +
               of + "\n}");
  EXPECT_TRUE(t.module) << t.diagnostics;
  if (expand) {
    PassManager passes(&t.context);
    passes.nest<func::FuncOp>().addPass(createExpandPowers());
    EXPECT_TRUE(succeeded(passes.run(*t.module)));
    EXPECT_TRUE(t.function("f").getOps<PowOp>().empty()) << t.print();
  }
  auto n = static_cast<int64_t>(kNumbers.size());
  auto y = reference::evaluate(t.function("f"), array({n}, kNumbers));
  EXPECT_TRUE(succeeded(y));
  return (*y)[0].data;
}

} // namespace

TEST(ExpandPowers, AreWhatPowersAre) {
  for (std::string type : {"f64", "f32", "f16", "bf16"})
    for (double exponent :
         {0.0, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0, -3.0, 0.5, -0.5, 1.5, -1.5}) {
      std::vector<double> expected = powers(exponent, type, false);
      std::vector<double> got = powers(exponent, type, true);
      for (size_t i = 0; i < kNumbers.size(); ++i) {
        std::string what = type + ": " + std::to_string(kNumbers[i]) + " to " +
                           std::to_string(exponent);
        if (std::isnan(expected[i])) {
          EXPECT_TRUE(std::isnan(got[i])) << what;
          continue;
        }
        EXPECT_EQ(std::signbit(got[i]), std::signbit(expected[i])) << what;
        if (expected[i] == 0 || std::isinf(expected[i]))
          EXPECT_EQ(got[i], expected[i]) << what;
        else
          EXPECT_LE(std::abs(got[i] / expected[i] - 1), 1e-15) << what;
      }
    }
}
