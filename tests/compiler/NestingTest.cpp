//===- NestingTest.cpp - texts and names that may be anything -------------===//
#include "compiler/Nesting.h"
#include "compiler/Compile.h"
#include "compiler/capture/Names.h"
#include "tests/support/Folder.h"

#include "mlir/IR/MLIRContext.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace tandem;

namespace {

std::string repeated(const std::string &text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i)
    out += text;
  return out;
}

std::string problem(const std::string &text) {
  return checkNesting(text, "m.mlir").message();
}

// Attack 5: 100,000 modules in one another, or as many '[', ended the compiler
// with signal 11 and without a message.
TEST(Nesting, DeepTextsAreRefused) {
  const char *limit = ": expected at most 256 levels of brackets and aliases "
                      "in one another";
  for (const char *open :
       {"module {\n", "[", "module attributes {a = [", "\"a.b\"() ({",
        "#a = tuple<", "(", "func.func @f() -> ("}) {
    std::string message = problem(repeated(open, 100000));
    EXPECT_NE(message.find(limit), std::string::npos) << open << message;
  }
  EXPECT_EQ(problem(repeated("module {\n", 257)),
            std::string("m.mlir:257:8") + limit);
  EXPECT_EQ(problem(repeated("module {\n", 256) + repeated("}\n", 256)), "");
  // Brackets that are closed, and those of comments and strings, do not count.
  EXPECT_EQ(problem(repeated("[]{}()<>\n", 5000)), "");
  EXPECT_EQ(problem("// " + repeated("[", 1000) + "\n\"" +
                    repeated("[\\\"", 1000) + "\"\n"),
            "");
  // Arrows and comparisons are no brackets.
  EXPECT_EQ(problem(repeated("() -> () ", 5000)), "");
  EXPECT_EQ(problem(repeated("d0 <= 3, d0 >= 3, ", 5000)), "");
}

// Attack 5: an alias of an alias of ... nests without brackets, and one that
// has the one before twice is printed as large as 2 to the number of its lines.
TEST(Nesting, AliasesCount) {
  auto chain = [](const std::string &use, int length) {
    std::string text = "#a0 = 1 : i32\n";
    for (int i = 1; i < length; ++i) {
      std::string one = use;
      for (size_t at; (at = one.find('@')) != std::string::npos;)
        one.replace(at, 1, "#a" + std::to_string(i - 1));
      text += "#a" + std::to_string(i) + " = " + one + "\n";
    }
    return text;
  };
  EXPECT_EQ(problem(chain("[@]", 100)), "");
  EXPECT_NE(problem(chain("[@]", 200)).find("256 levels"), std::string::npos);
  EXPECT_NE(problem(chain("\n[@]", 200)).find("256 levels"), std::string::npos);
  EXPECT_NE(problem(chain("[@, @]", 40)).find("65536 brackets and aliases"),
            std::string::npos);
  // What follows the aliases is no part of the last one.
  EXPECT_EQ(
      problem(chain("[@]", 50) +
              repeated("func.func @f() {a = [#a49], b = #a48} {}\n", 40000)),
      "");
}

// Attack 5: each operator of an affine expression nests in the next.
TEST(Nesting, ExpressionsHaveALimit) {
  for (const char *one : {" + d0", " * 2", " mod 7", " - 1", "-"})
    EXPECT_NE(
        problem("#m = affine_map<(d0) -> (d0" + repeated(one, 2000) + ")>")
            .find("expected at most 1024 operators"),
        std::string::npos)
        << one;
  EXPECT_EQ(problem("dense<[" + repeated("-1.0e-5, ", 100000) + "-1.0]>"), "");
}

class Files : public testing::Test {
protected:
  /// Reads the text as a file of that name; returns all that is wrong.
  std::string read(const std::string &name, const std::string &text) {
    std::ofstream(folder / name) << text;
    mlir::DialectRegistry registry;
    registerCompiler(registry);
    mlir::MLIRContext context(registry);
    std::string all;
    context.getDiagEngine().registerHandler(
        [&](mlir::Diagnostic &diagnostic) { all += diagnostic.str() + "\n"; });
    Status status;
    readModel((folder / name).string(), context, status, {}, nullptr);
    return all + status.message();
  }

  test::Folder made;
  const std::filesystem::path folder = made.path();
};

const char *graph = R"(
  func.func @graph(%x: tensor<f32> {tandem.role = #tandem.role<input "@">})
      -> (tensor<f32> {tandem.role = #tandem.role<output "y">}) {
    return %x : tensor<f32>
  })";

std::string graphWith(const std::string &input) {
  std::string text = graph;
  return text.replace(text.find('@', text.find("input")), 1, input);
}

#define EXPECT_IN(part, text)                                                  \
  EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(Files, DeepModulesAreRefusedWhereTheyAreRead) {
  EXPECT_IN("x.mlir:257:8: expected at most 256 levels",
            read("x.mlir", repeated("module {\n", 100000)));
  EXPECT_IN("x.json:1:1: expected at most 200 levels of lists and objects",
            read("x.json", repeated("[", 100000)));
  EXPECT_IN("expected MLIR as text, but got its bytecode",
            read("x.mlir", "ML\xefR and so on"));
  // As deep as it may be: MLIR says what is wrong with it.
  EXPECT_EQ(read("x.mlir", repeated("module {\n", 255) + repeated("}\n", 255))
                .find("levels"),
            std::string::npos);
}

// MLIR's parser crashed at it.
TEST_F(Files, ArraysOfIndicesAreRefused) {
  for (std::string array : {"array<index: 1>", "array <  index : 1>",
                            "array // a comment\n < // and one\nindex>"})
    EXPECT_IN("x.mlir:1:24: expected an array of integers or floats, but got "
              "one of 'index'",
              read("x.mlir", "module attributes {a = " + array + "} {}"));
  // What only looks like one.
  EXPECT_EQ(read("x.mlir", "module attributes {a.a = \"array<index: 1>\", "
                           "a.array = array<i64: 1>} {" +
                               graphWith("x") + "}"),
            "");
}

// An op used what a region after it defines, and a syntax error followed the
// region: the parser deleted it first, and wrote to what was freed.
TEST_F(Files, SyntaxErrorsBehindRegionsAreErrors) {
  const std::string body =
                        "{\n^bb0(%a: tensor<4xf32>):\n  %9 = tandem.sin %a : "
                        "tensor<4xf32>\n  tandem.yield %9 : tensor<4xf32>\n}",
                    other = "{\n^bb0(%b: tensor<4xf32>):\n  tandem.yield %b : "
                            "tensor<4xf32>\n}";
  for (const std::string &op :
       {"tandem.custom_vjp \"s\"(%x) forward " + other + " backward " + body,
        "tandem.if %c(%x) then " + body + " else " + other,
        "tandem.scan 6 carries(%x) inputs() constants() " + body,
        "tandem.while carries(%x) constants() condition " + body + " body " +
            other,
        "tandem.kernel \"k\"(%x) " + body,
        "\"tandem.if\"(%c, %x) (" + body + ", " + other + ")"}) {
    std::string all =
        read("x.mlir", "func.func @graph(%x: tensor<4xf32>, %c: tensor<i1>) {\n"
                       "%u = tandem.sin %9 : tensor<4xf32>\n"
                       "%v = tandem.sin %9 : tensor<4xf32>\n%4 = " +
                           op + " { broken");
    EXPECT_IN("expected '}' in attribute dictionary", all);
    // What was written to is handed out again.
    std::vector<std::unique_ptr<char[]>> blocks;
    for (size_t size = 16; size <= 1024; size += 16)
      for (int i = 0; i < 16; ++i)
        blocks.push_back(std::make_unique<char[]>(size));
  }
}

// MLIR's parser said that a string had no end, and went on without its line, so
// that a write was missing in what was compiled.
TEST_F(Files, StringsWithoutAnEndAreErrors) {
  std::string all =
      read("x.mlir", "module attributes {tandem.phase = \"capture\"} {\n"
                     "func.func @graph(%s: !tandem.ref<4xf32> {tandem.role = "
                     "#tandem.role<state \"s\">}) {\n"
                     "%0 = tandem.read %s : !tandem.ref<4xf32>\n"
                     "\" tandem.write %0 into %s : tensor<4xf32>, "
                     "!tandem.ref<4xf32>\n"
                     "return\n}\n}\n");
  EXPECT_IN("expected '\"' in string literal", all);
  EXPECT_IN("x.mlir' is not a valid module", all);
}

// As many strings as no memory holds ended the reader of bytecode with abort().
TEST_F(Files, CountsOfBytecodeThatAreTooLargeAreErrors) {
  const char bytes[] = "ML\xefR\x0dStableHLO\0"
                       "\0\x13\0\xff\xff\xff\xff\xff\xff\xff\x0f" // strings
                       "\1\1\2\1\3\1\4\1\x08\1"; // the other sections are empty
  EXPECT_EXIT(read("x.mlir", std::string(bytes, sizeof(bytes) - 1)),
              testing::ExitedWithCode(1),
              "tandem: error: '.*/x.mlir': malformed bytecode \\(SmallVector");
}

// A21: a model called "../evil" wrote its dumps outside of the folder that was
// asked for, and names with escape sequences were printed as they are.
TEST_F(Files, NamesThatMakePathsAreRefused) {
  EXPECT_EQ(read("x.mlir", "module @fine {" + graphWith("x") + "}"), "");
  EXPECT_IN("expected a model's name without '/', '\\' and control characters, "
            "since files are named after it, but got '../evil'",
            read("x.mlir", "module @\"../evil\" {" + graphWith("x") + "}"));
  EXPECT_IN("but got 'a\\x1bb'",
            read("x.mlir", "module @\"a\\1Bb\" {" + graphWith("x") + "}"));
  EXPECT_IN("expected a name without control characters, but got 'a\\x0ab'",
            read("x.mlir", "module {" + graphWith("a\\0Ab") + "}"));
  EXPECT_IN("/name: expected a model's name without '/'",
            read("x.json", R"({"format": "tandem-graph", "version": 1,
                 "name": "../evil"})"));
  EXPECT_EQ(modelNameOf("../e\nvil"), ".._e_vil");
  EXPECT_EQ(modelNameOf(""), "model");
  EXPECT_EQ(modelNameOf("torch-jit-export"), "torch-jit-export");
}

} // namespace
