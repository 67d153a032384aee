//===- JsonGraphTest.cpp - JSON graphs, right and wrong -------------------===//
#include "compiler/import/JsonGraph.h"

#include "mlir/IR/MLIRContext.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

using namespace tandem;

namespace {

/// A graph of one matmul, with a place to put mistakes.
const char *kGraph = R"({
 "format": "tandem-graph", "version": 1, "name": "tiny",
 "inputs": [{"name": "x", "type": "f32", "shape": [4, 8]}],
 "params": [{"name": "w", "type": "f32", "shape": [3, 8],
             "init": {"kind": "uniform", "low": -0.3, "high": 0.3}}],
 "states": [{"name": "s", "type": "f32", "shape": []}],
 "nodes": [
  {"op": "matmul", "inputs": ["x", "w"], "outputs": ["h"],
   "attributes": {"transpose_rhs": true}},
  {"op": "reduce_sum", "inputs": ["h"], "outputs": ["loss"],
   "attributes": {"dims": [0, 1]}},
  {"op": "write", "inputs": ["loss", "s"]}],
 "outputs": [{"name": "loss", "value": "loss"}]})";

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

struct Outcome {
  std::string module, message;
};

Outcome import(const std::string &text) {
  mlir::MLIRContext context;
  Status status;
  auto module = importJsonGraph(text, "tiny.json", context, status);
  Outcome outcome{"", status.message()};
  if (module)
    llvm::raw_string_ostream(outcome.module) << *module;
  return outcome;
}

void expectProblem(const std::string &text, const std::string &part) {
  Outcome outcome = import(text);
  EXPECT_EQ(outcome.module, "");
  EXPECT_NE(outcome.message.find(part), std::string::npos)
      << "expected: " << part << "\ngot: " << outcome.message;
}

} // namespace

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
      {"matmul", "matmull", "/nodes/0: unknown op 'matmull'"},
      {"transpose_rhs", "transposed", "no attribute 'transposed'"},
      {"[0, 1]", "[0, \"1\"]",
       "/nodes/1/attributes/dims: expected a list of "
       "integers"},
      {"\"version\": 1", "\"version\": 2", "expected 'version' to be 1"},
      {"\"format\": \"tandem-graph\", ", "", "expected 'format'"},
      {"\"name\": \"w\"", "\"name\": \"x\"", "expected names to be unique"},
      {"uniform", "gauss", "/params/0/init: expected a 'kind'"},
      {"\"low\": -0.3, ", "", "/params/0/init: expected a field 'low'"},
      {"[\"loss\", \"s\"]", "[\"loss\", \"x\"]",
       "/nodes/2/inputs/1: expected a state to write to"},
      {"\"value\": \"loss\"", "\"value\": 3",
       "/outputs/0/value: expected the name of a value"},
      {"\"nodes\"", "\"knots\"", "/knots: unknown field 'knots'"},
      {"\"outputs\": [{\"name\": \"loss\", \"value\": \"loss\"}]",
       "\"outputs\": []", "expected at least one output"},
      {"\"shape\": [4, 8]}", "\"shape\": [4, 8], \"shape\": [4, 8]}",
       "key 'shape' is there twice"},
      {"[4, 8]", "[4, 8", "not JSON"},
  };
  for (const Row &row : rows)
    expectProblem(replaced(kGraph, row.from, row.to), row.problem);
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

TEST(JsonGraph, TheExampleOfTheDocumentationIsRight) {
  std::ifstream file(TANDEM_SOURCE_DIR "/docs/JSON_GRAPH.md");
  std::stringstream page;
  page << file.rdbuf();
  std::string text = page.str();
  size_t begin = text.find("```json\n");
  ASSERT_NE(begin, std::string::npos);
  begin += 8;
  Outcome outcome = import(text.substr(begin, text.find("```", begin) - begin));
  EXPECT_EQ(outcome.message, "");
  EXPECT_NE(outcome.module.find("tandem.cross_entropy"), std::string::npos);
}
