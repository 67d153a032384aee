//===- ImportTest.cpp - what a module of StableHLO becomes, or is not -----===//
#include "compiler/import/stablehlo/Import.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace tandem;

namespace {

struct Made {
  bool isModule = false;
  Status status;
  std::string text, errors;
};

Made import(const std::string &body, const ImportOptions &options = {}) {
  mlir::MLIRContext context;
  Made made;
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          made.errors += diagnostic.str() + "\n";
        return mlir::success();
      });
  auto module = stablehlo::importModule(body, "small.mlir", context,
                                        made.status, options);
  made.isModule = module.operator bool();
  if (module)
    llvm::raw_string_ostream(made.text) << *module;
  return made;
}

/// A function `main` of x.
std::string mainOf(const std::string &ops, const std::string &result) {
  return "module @m { func.func public @main(%x: tensor<2x3xf32>) -> " +
         result + " {\n" + ops + "\n} }";
}

} // namespace

TEST(StablehloImport, ModulesAreKnownByWhatIsInThem) {
  EXPECT_TRUE(stablehlo::isModule("func.func @main() { stablehlo.return }"));
  EXPECT_TRUE(stablehlo::isModule("%0 = \"stablehlo.add\"(%a, %a)"));
  EXPECT_FALSE(stablehlo::isModule("module attributes {tandem.phase = "
                                   "\"capture\"} {} loc(\"stablehlo.add\")"));
  EXPECT_FALSE(stablehlo::isModule("// stablehlo.add\nmodule {}"));
}

TEST(StablehloImport, ArgumentsHaveTheNamesOfTheirLocations) {
  Made made = import(
      "module @jit_f { func.func public @main(%arg0: tensor<3xf32> "
      "loc(\"params['w']\"), %arg1: tensor<3xf32>) -> (tensor<3xf32> "
      "{jax.result_info = \"result['y']\"}) { %0 = stablehlo.add %arg0, %arg1 "
      ": tensor<3xf32>\n return %0 : tensor<3xf32> } }");
  ASSERT_TRUE(made.isModule) << made.errors;
  EXPECT_NE(made.text.find("param \"params['w']\""), std::string::npos)
      << made.text;
  EXPECT_NE(made.text.find("input \"arg1\""), std::string::npos);
  EXPECT_NE(made.text.find("output \"result['y']\""), std::string::npos);
  EXPECT_NE(made.text.find("module @f "), std::string::npos);
}

TEST(StablehloImport, EverythingUnsupportedIsListed) {
  Made made = import(mainOf(
      "%0 = \"stablehlo.fft\"(%x) <{fft_type = #stablehlo<fft_type FFT>}> : "
      "(tensor<2x3xf32>) -> tensor<2x3xf32>\n"
      "%1 = stablehlo.add %0, %x : tensor<2x3xf32>\n"
      "%2 = stablehlo.custom_call @solve(%1) : (tensor<2x3xf32>) -> "
      "tensor<2x3xf32>\n"
      "return %2 : tensor<2x3xf32>",
      "tensor<2x3xf32>"));
  EXPECT_FALSE(made.isModule);
  EXPECT_EQ(made.status.code(), Code::Unsupported);
  EXPECT_EQ(made.errors,
            "unsupported: the op 'stablehlo.fft'\n"
            "unsupported: 'stablehlo.custom_call': a call of 'solve', which is "
            "no part of the module\n");
}

// Rules of Shardy for calls ended at their arrows.
TEST(StablehloImport, RulesOfShardingHaveArrows) {
  Made made = import(mainOf(
      "%0 = stablehlo.custom_call @lapack_strsm_ffi(%x) {sdy.sharding_rule = "
      "#sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=3, j=3}, custom>} : "
      "(tensor<2x3xf32>) -> tensor<2x3xf32>\n"
      "return %0 : tensor<2x3xf32>",
      "tensor<2x3xf32>"));
  EXPECT_EQ(made.status.code(), Code::Unsupported);
  EXPECT_EQ(made.errors,
            "unsupported: 'stablehlo.custom_call': a call of "
            "'lapack_strsm_ffi', which is no part of the module\n");
}

// It was an error in the model, not an op that is unsupported.
TEST(StablehloImport, SumsAndProductsOfBoolsAreOrAndAnd) {
  for (auto [op, made] :
       {std::pair("add", "bit_or"), std::pair("multiply", "bit_and"),
        std::pair("maximum", "bit_or"), std::pair("minimum", "bit_and")}) {
    Made module =
        import(mainOf("%b = stablehlo.compare EQ, %x, %x : (tensor<2x3xf32>, "
                      "tensor<2x3xf32>) -> tensor<2x3xi1>\n%0 = stablehlo." +
                          std::string(op) +
                          " %b, %b : tensor<2x3xi1>\n"
                          "return %0 : tensor<2x3xi1>",
                      "tensor<2x3xi1>"));
    EXPECT_TRUE(module.isModule) << module.errors;
    EXPECT_NE(module.text.find(std::string("tandem.") + made),
              std::string::npos);
  }
}

// Of crossed bounds small numbers got the lower one.
TEST(StablehloImport, TheUpperOfCrossedBoundsWins) {
  Made made =
      import(mainOf("%l = stablehlo.constant dense<2.0> : tensor<2x3xf32>\n"
                    "%h = stablehlo.constant dense<1.0> : tensor<2x3xf32>\n"
                    "%0 = stablehlo.clamp %l, %x, %h : tensor<2x3xf32>\n"
                    "return %0 : tensor<2x3xf32>",
                    "tensor<2x3xf32>"));
  EXPECT_TRUE(made.isModule) << made.errors;
  EXPECT_NE(made.text.find("tandem.minimum"), std::string::npos);
  EXPECT_NE(made.text.find("lt %0, %1"), std::string::npos) << made.text;
}
