//===- JsonGraphTest.cpp - JSON graphs, right and wrong -------------------===//
#include "tests/compiler/JsonGraphs.h"

#include <fstream>
#include <sstream>

using namespace tandem;
using namespace tandem::test;

TEST(JsonGraph, ImportsWhatItSays) {
  Outcome outcome = import(kGraph);
  EXPECT_EQ(outcome.message, "");
  for (const char *part :
       {"module @tiny", "tandem.phase = \"capture\"",
        "#tandem.role<input \"x\">", "transpose_rhs",
        "!tandem.ref<f32> {tandem.role = #tandem.role<state \"s\">}",
        "tandem.write"})
    EXPECT_NE(outcome.module.find(part), std::string::npos) << part << "\n"
                                                            << outcome.module;
}

TEST(JsonGraph, ConstantsAreNumbersOfTheirType) {
  auto graph = [](const char *type, const char *value) {
    return std::string(R"({"format": "tandem-graph", "version": 1,
      "name": "c", "nodes": [{"op": "constant", "type": ")") +
           type + R"(", "shape": [2], "value": )" + value +
           R"(, "outputs": ["y"]}],
      "outputs": [{"name": "y", "value": "y"}]})";
  };
  Outcome large = import(graph("u64", "[18446744073709551615, 1]"));
  EXPECT_EQ(large.message, "");
  EXPECT_NE(large.module.find("dense<[18446744073709551615, 1]>"),
            std::string::npos)
      << large.module;
  Outcome small = import(graph("i8", "[-128, 127]"));
  EXPECT_EQ(small.message, "");
  EXPECT_NE(small.module.find("dense<[-128, 127]>"), std::string::npos);
  for (auto [type, value] :
       {std::pair("u8", "[256, 0]"), std::pair("u8", "[-1, 0]"),
        std::pair("i8", "[128, 0]"), std::pair("u16", "[0, 65536]")}) {
    Outcome wrong = import(graph(type, value));
    EXPECT_NE(wrong.message.find(std::string("expected an element of ") + type),
              std::string::npos)
        << type << ": " << wrong.message;
  }
  // They became infinity.
  for (auto [type, value] :
       {std::pair("f32", "[1e39, 0]"), std::pair("f32", "[0, -1e300]"),
        std::pair("f16", "[65520, 0]")}) {
    Outcome wrong = import(graph(type, value));
    EXPECT_NE(wrong.message.find(
                  std::string("expected a number of at most the largest '") +
                  type + "', but got "),
              std::string::npos)
        << type << ": " << wrong.message;
  }
  EXPECT_EQ(import(graph("f16", "[65519, -65504]")).message, "");
}

TEST(JsonGraph, EveryMistakeHasAPointerAndAReason) {
  struct Row {
    const char *from, *to, *problem;
  };
  const Row rows[] = {
      {"\"x\", \"w\"]", "\"x\", \"v\"]",
       "tiny.json: /nodes/0/inputs/1: unknown value 'v'"},
      {"[3, 8]", "[3, -8]", "/params/0/shape/1: expected a size of at least 0"},
      {"[3, 8]", "[3, 9]", "/nodes/0: expected lhs columns (8)"},
      {"\"f32\"", "\"f33\"", "/inputs/0: expected a type"},
      {"matmul", "matmull",
       "/nodes/0: unknown op 'matmull' (did you mean 'matmul'?)"},
      {"matmul", "embedding",
       "/nodes/0: unknown op 'embedding' (did you mean 'take'?)"},
      {"transpose_rhs", "transposed", "no attribute 'transposed'"},
      {"[0, 1]", "[0, \"1\"]",
       "/nodes/1/attributes/dims: expected a list of "
       "numbers"},
      {"\"version\": 1", "\"version\": 2", "expected 'version' to be 1"},
      {"\"format\": \"tandem-graph\", ", "", "expected 'format'"},
      {"\"name\": \"w\"", "\"name\": \"x\"", "expected names to be unique"},
      {"uniform", "gauss",
       "/params/0/init: expected the kind in 'init' of 'param \"w\"'"},
      {"uniform", "unifrom", "got 'unifrom' (did you mean 'uniform'?)"},
      {"\"low\": -0.3, ", "",
       "/params/0/init: expected 'init' of 'param \"w\"', of the kind "
       "'uniform', to have a finite number 'low'"},
      {"\"low\": -0.3", "\"low\": 3",
       "/params/0/init: expected 'low' of 'init' of 'param \"w\"' to be at "
       "most 'high'"},
      {"\"low\": -0.3", "\"low\": -1e300", "to be finite in 'f32'"},
      {"[\"loss\", \"s\"]", "[\"loss\", \"x\"]",
       "/nodes/2: 'tandem.write' op expected a value of type "
       "'tensor<4x8xf32>'"},
      {"\"op\": \"write\", \"inputs\": [\"loss\", \"s\"]",
       "\"op\": \"read\", \"inputs\": [\"s\"]", "/nodes/2: unknown op 'read'"},
      {"[3, 8]", "[3, 1099511627776]", "/params/0: the tensor is too large"},
      // A 'high' of 0 made a module that could not be read back.
      {"\"shape\": [4, 8]}", "\"shape\": [4, 8], \"high\": 0}",
       "/inputs/0/high: expected at least 1, but got 0"},
      {"\"value\": \"loss\"", "\"value\": 3",
       "/outputs/0/value: expected the name of a value"},
      {"\"nodes\"", "\"knots\"", "/knots: unknown field 'knots'"},
      {"\"outputs\": [{\"name\": \"loss\", \"value\": \"loss\"}]",
       "\"outputs\": [3]", "/outputs/0: expected an object"},
      {"\"shape\": [4, 8]}", "\"shape\": [4, 8], \"shape\": [4, 8]}",
       "key 'shape' is there twice"},
      {"[4, 8]", "[4, 8", "not JSON"},
  };
  for (const Row &row : rows)
    expectProblem(replaced(kGraph, row.from, row.to), row.problem);
}

/// A range that no role can have was taken, and printed as text that nobody can
/// read.
TEST(JsonGraph, RolesAreVerified) {
  std::string text =
      replaced(kGraph, R"("inputs": [{"name": "x")",
               R"("inputs": [{"name": "n", "type": "i64", "shape": [],
                              "high": 0},
                             {"name": "x")");
  expectProblem(text, "/inputs/0/high: expected at least 1, but got 0");
}

/// B9: one mistake brought others that were none ("expected 1 operands, but got
/// 0" of a node that says `input`).
TEST(JsonGraph, OneMistakeBringsNoOthers) {
  struct Row {
    const char *from, *to, *problem;
  };
  const Row rows[] = {
      {"\"inputs\": [\"x\", \"w\"]", "\"input\": [\"x\", \"w\"]",
       "/nodes/0/input: unknown field 'input' (did you mean 'inputs'?)"},
      {"\"op\": \"matmul\"", "\"opp\": \"matmul\"",
       "/nodes/0: expected a field 'op'"},
      {"matmul", "matmull", "/nodes/0: unknown op 'matmull'"}};
  for (const Row &row : rows) {
    Outcome outcome = import(replaced(kGraph, row.from, row.to));
    EXPECT_NE(outcome.message.find(row.problem), std::string::npos)
        << outcome.message;
    // A line each; a node without an op has two.
    EXPECT_LE(llvm::StringRef(outcome.message).count("/nodes/0"), 2u)
        << outcome.message;
    EXPECT_EQ(outcome.message.find("/nodes/1"), std::string::npos)
        << outcome.message;
    EXPECT_EQ(outcome.message.find("operands"), std::string::npos)
        << outcome.message;
  }
}

TEST(JsonGraph, AllMistakesAreReportedAtOnce) {
  std::string text = replaced(kGraph, "[3, 8]", "[3, -8]");
  text = replaced(text, "reduce_sum", "reduce_some");
  text = replaced(text, "\"version\": 1", "\"version\": 7");
  Outcome outcome = import(text);
  EXPECT_NE(outcome.message.find("/params/0/shape/1"), std::string::npos);
  EXPECT_NE(outcome.message.find("expected 'version' to be 1"),
            std::string::npos);
}

TEST(JsonGraph, SyntaxErrorsNameLineAndColumn) {
  expectProblem("{\n \"format\": ,\n}", "tiny.json:2:");
}

TEST(JsonGraph, NothingIsTooStrange) {
  for (const char *text :
       {"", "null", "[]", "3", "{\"nodes\": 3}", "{\"nodes\": [3]}",
        "{\"inputs\": [{\"name\": \"\", \"type\": 3, \"shape\": {}}]}",
        "{\"format\": \"tandem-graph\", \"version\": 1, \"name\": \"n\","
        "\"nodes\": [{\"op\": \"constant\", \"outputs\": [1]}],"
        "\"outputs\": [{\"name\": \"o\", \"value\": \"o\"}]}"})
    EXPECT_EQ(import(text).module, "") << text;
  std::string deep(100000, '[');
  EXPECT_EQ(import(deep).module, "");
}

TEST(JsonGraph, NodesAreAtTheirLines) {
  mlir::MLIRContext context;
  Status status;
  auto module = importJsonGraph(kGraph, "tiny.json", context, status);
  ASSERT_TRUE(module);
  std::string text;
  llvm::raw_string_ostream out(text);
  module->print(out, mlir::OpPrintingFlags().enableDebugInfo());
  for (const char *part :
       {"= loc(\"tiny.json\":8:3)", "loc(\"matmul\"(", "loc(\"write\"("})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

namespace {

/// A graph of one node on an image.
std::string ofImage(const std::string &node) {
  return R"({"format": "tandem-graph", "version": 1, "name": "g",
    "inputs": [{"name": "x", "type": "f32", "shape": [2, 3, 6, 6]},
               {"name": "c", "type": "f32", "shape": [3]},
               {"name": "s", "type": "i64", "shape": [2]}],
    "nodes": [)" +
         node + R"(], "outputs": [{"name": "y", "value": "y"}]})";
}

} // namespace

// A reshape took no -1, and windows wanted every number.
TEST(JsonGraph, ShortAttributesAreWrittenOut) {
  struct {
    const char *node, *text;
  } rows[] = {
      {R"({"op": "reshape", "inputs": ["x"], "outputs": ["y"],
           "attributes": {"shape": [2, -1]}})",
       "ref<2x108xf32>"},
      {R"({"op": "max_pool2d", "inputs": ["x"], "outputs": ["y"],
           "attributes": {"kernel": 2, "strides": 2}})",
       "tensor<2x3x3x3xf32>"},
      {R"({"op": "max_pool2d", "inputs": ["x"], "outputs": ["y"],
           "attributes": {"kernel": [3, 3], "padding": 1}})",
       "padding [1, 1, 1, 1]"},
      {R"({"op": "avg_pool2d", "inputs": ["x"], "outputs": ["y"],
           "attributes": {"kernel": [3, 5], "padding": [1, 2]}})",
       "padding [1, 1, 2, 2]"},
  };
  for (auto &row : rows) {
    Outcome outcome = import(ofImage(row.node));
    EXPECT_EQ(outcome.message, "");
    EXPECT_NE(outcome.module.find(row.text), std::string::npos)
        << row.text << "\n"
        << outcome.module;
  }
  for (const char *shape : {"[-1, -1]", "[5, -1]", "[0, -1]", "[-1, -3]"})
    expectProblem(
        ofImage(R"({"op": "reshape", "inputs": ["x"], "outputs": ["y"],
          "attributes": {"shape": )" +
                std::string(shape) + "}}"),
        "/nodes/0/attributes/shape: expected one -1, and sizes whose product "
        "divides 216");
}

// A dropout that did not say 'training' dropped nothing.
TEST(JsonGraph, WhatDependsOnTrainingSaysSo) {
  const char *part = "/nodes/0: expected the attribute 'training'";
  expectProblem(ofImage(R"({"op": "dropout", "inputs": ["x", "s"],
    "outputs": ["y"], "attributes": {"draw": 0, "p": 0.5}})"),
                part);
  expectProblem(ofImage(R"({"op": "batch_norm",
    "inputs": ["x", "c", "c", "c", "c"], "outputs": ["y"]})"),
                part);
  for (const char *value : {"true", "false"})
    EXPECT_EQ(import(ofImage(R"({"op": "batch_norm",
      "inputs": ["x", "c", "c", "c", "c"], "outputs": ["y"],
      "attributes": {"training": )" +
                             std::string(value) + "}}"))
                  .message,
              "");
}

TEST(JsonGraph, TheExamplesOfTheDocumentationAreRight) {
  std::ifstream file(TANDEM_SOURCE_DIR "/docs/JSON_GRAPH.md");
  std::stringstream page;
  page << file.rdbuf();
  std::string text = page.str();
  const char *parts[] = {"tandem.cross_entropy",     "tandem.transpose_",
                         "alias = {of = \"buffer\"", "tandem.dropout",
                         "tandem.custom_vjp",        "tandem.scan"};
  size_t end = 0;
  for (const char *part : parts) {
    size_t begin = text.find("```json\n", end);
    ASSERT_NE(begin, std::string::npos);
    begin += 8;
    end = text.find("```", begin);
    Outcome outcome = import(text.substr(begin, end - begin));
    EXPECT_EQ(outcome.message, "");
    EXPECT_NE(outcome.module.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(text.find("```json\n", end), std::string::npos);
}

//===----------------------------------------------------------------------===//
// Tags
//===----------------------------------------------------------------------===//

namespace {

/// The lines of `text` that have `part`.
std::string linesWith(const std::string &text, const std::string &part) {
  std::istringstream stream(text);
  std::string lines;
  for (std::string line; std::getline(stream, line);)
    if (line.find(part) != std::string::npos)
      lines += line + "\n";
  return lines;
}

} // namespace

TEST(JsonGraph, NodesHaveTagsAndPaths) {
  Outcome outcome = import(replaced(
      kGraph, R"({"op": "reduce_sum", "inputs": ["h"])",
      R"({"op": "module", "name": "h0", "checkpoint": "first", "nodes": [
           {"op": "exp", "name": "up", "inputs": ["h"], "outputs": ["e"], "save": true},
           {"op": "permute", "inputs": ["e"], "outputs": ["t"], "attributes": {"permutation": [1, 0]},
            "recompute": false},
           {"op": "module", "name": "inner", "nodes": [
             {"op": "sin", "inputs": ["t"], "outputs": ["s2"], "checkpoint": "second"}]},
           {"op": "cos", "inputs": ["h"], "outputs": ["c"]},
           {"op": "permute", "inputs": ["c"], "outputs": ["ct"], "attributes": {"permutation": [1, 0]},
            "recompute": true}]},
         {"op": "reduce_sum", "inputs": ["s2"])"));
  ASSERT_EQ(outcome.message, "");
  std::string text = outcome.module;
  EXPECT_NE(linesWith(text, "tandem.exp")
                .find("{tandem.checkpoint = \"first\", tandem.save}"),
            std::string::npos)
      << text;
  EXPECT_NE(linesWith(text, "tandem.sin").find("\"second\"}"),
            std::string::npos)
      << text;
  // What a view shows is what is tagged.
  EXPECT_NE(linesWith(text, "tandem.cos").find("tandem.recompute}"),
            std::string::npos)
      << text;
  EXPECT_EQ(linesWith(text, "tandem.reduce_sum").find("tandem.checkpoint"),
            std::string::npos)
      << text;
}

TEST(JsonGraph, P06_TagsThatCannotBeObeyed) {
  expectProblem(replaced(kGraph, R"("inputs": ["loss", "s"])",
                         R"("inputs": ["loss", "s"], "recompute": true)"),
                "/nodes/2: 'tandem.write' op writes memory, and cannot be "
                "computed again as 'tandem.recompute' says");
  expectProblem(
      replaced(kGraph, R"("outputs": ["h"],)",
               R"("outputs": ["h"], "recompute": true, "save": true,)"),
      "/nodes/0: 'tandem.matmul' op expected one of 'tandem.save' "
      "and 'tandem.recompute', but got both");
  expectProblem(replaced(kGraph, R"("outputs": ["h"],)",
                         R"("outputs": ["h"], "checkpoint": "",)"),
                "/nodes/0/checkpoint: expected the name of a region");
  expectProblem(replaced(kGraph, R"({"op": "write",)",
                         R"({"op": "constant", "type": "f32", "shape": [],
                             "value": 1.0, "outputs": ["one"], "save": true},
                            {"op": "write",)"),
                "/nodes/2: a constant is in every program");
  expectProblem(replaced(kGraph, R"("outputs": ["h"],)",
                         R"("outputs": ["h"], "save": 1,)"),
                "/nodes/0/save");
}

static std::string withCall(const std::string &attributes) {
  return replaced(kGraph, R"({"op": "reduce_sum", "inputs": ["h"])",
                  R"({"op": "leaky_relu", "inputs": ["h"],
                      "attributes": )" +
                      attributes + R"(, "outputs": ["a"], "save": true},
                     {"op": "reduce_sum", "inputs": ["a"])");
}

// A stride of 2.0 was an attribute of another type, which an op refused without
// a place in the file.
TEST(JsonGraph, StridesAreIntegers) {
  std::string convolution = replaced(
      replaced(kGraph, R"("shape": [4, 8]})", R"("shape": [1, 1, 4, 4]})"),
      R"({"op": "matmul", "inputs": ["x", "w"], "outputs": ["h"],
   "attributes": {"transpose_rhs": true}})",
      R"({"op": "max_pool2d", "inputs": ["x"], "outputs": ["h"],
   "attributes": {"kernel": 2, "strides": 2.0}})");
  expectProblem(convolution,
                "/nodes/0/attributes/strides: expected an integer or a list of "
                "integers, but got 2.0");
}

TEST(JsonGraph, FunctionsAreNodes) {
  Outcome outcome = import(withCall(R"({"negative_slope": 0.5})"));
  EXPECT_EQ(outcome.message, "");
  EXPECT_NE(outcome.module.find("tandem.select"), std::string::npos);
  EXPECT_NE(outcome.module.find("tandem.save"), std::string::npos);
}

TEST(JsonGraph, MistakesInCallsAreReported) {
  expectProblem(withCall(R"({"slope": 0.5})"), "has no attribute 'slope'");
  expectProblem(withCall(R"({"negative_slope": [1, 2]})"),
                "expected 'negative_slope' to be a number");
  expectProblem(replaced(withCall("{}"), R"("inputs": ["h"],)",
                         R"("inputs": ["h", "h"],)"),
                "expected 1 operands, but got 2");
  expectProblem(replaced(withCall("{}"), R"("inputs": ["h"],)",
                         R"("inputs": ["h"], "type": "f32",)"),
                "expected no 'type'");
  // What follows from one mistake was a second one.
  Outcome once = import(replaced(withCall("{}"), "transpose_rhs", "turned"));
  EXPECT_EQ(once.message.find("operand #0"), std::string::npos) << once.message;
}

// Ops of one result and of two, with flags and names among their attributes.
TEST(JsonGraph, SortedSummedAndScattered) {
  std::string nodes = R"(
  {"op": "sort", "inputs": ["x"], "outputs": ["v", "i"],
   "attributes": {"dim": 1, "descending": true}},
  {"op": "cumsum", "inputs": ["v"], "outputs": ["c"],
   "attributes": {"dim": 1, "exclusive": true, "reverse": true}},
  {"op": "reverse", "inputs": ["c"], "outputs": ["r"],
   "attributes": {"dims": [0, 1]}},
  {"op": "slice", "inputs": ["i"], "outputs": ["j"],
   "attributes": {"starts": [0, 0], "limits": [1, 4], "strides": [1, 1]}},
  {"op": "reshape", "inputs": ["j"], "outputs": ["k"],
   "attributes": {"shape": [4]}},
  {"op": "scatter", "inputs": ["w", "k", "r"], "outputs": ["t"],
   "attributes": {"combine": "max"}},
  {"op": "matmul",)";
  std::string text = replaced(kGraph, "\n  {\"op\": \"matmul\",", nodes);
  Outcome outcome = import(text);
  EXPECT_EQ(outcome.message, "");
  for (const char *part :
       {"dim 1 descending", "dim 1 exclusive reverse", "along [0, 1]", "max %"})
    EXPECT_NE(outcome.module.find(part), std::string::npos) << part;
  expectProblem(replaced(text, "\"max\"", "\"most\""),
                "expected set, add, mul, min or max, but got \"most\"");
  expectProblem(replaced(text, "\"combine\": \"max\"", ""), "combine");
}
