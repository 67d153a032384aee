//===- JsonGraphs.h - graphs as text, and what becomes of them ------------===//
#ifndef TANDEM_TESTS_COMPILER_JSONGRAPHS_H
#define TANDEM_TESTS_COMPILER_JSONGRAPHS_H

#include "compiler/import/JsonGraph.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace tandem::test {

/// A graph of one matmul, with a place to put mistakes.
inline const char *const kGraph = R"({
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

inline std::string replaced(std::string text, const std::string &from,
                            const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

struct Outcome {
  std::string module, message;
};

inline Outcome import(const std::string &text) {
  mlir::MLIRContext context;
  Status status;
  auto module = importJsonGraph(text, "tiny.json", context, status);
  Outcome outcome{"", status.message()};
  if (module)
    llvm::raw_string_ostream(outcome.module) << *module;
  return outcome;
}

inline void expectProblem(const std::string &text, const std::string &part) {
  Outcome outcome = import(text);
  EXPECT_EQ(outcome.module, "");
  EXPECT_NE(outcome.message.find(part), std::string::npos)
      << "expected: " << part << "\ngot: " << outcome.message;
}

/// A graph of these nodes over x: f32[2, 3], y: f32[3, 2], a state s: f32[2,
/// 3].
inline std::string
graphOf(const std::string &nodes,
        const std::string &outputs = R"({"name": "o", "value": "o"})",
        const std::string &inputs = "") {
  return R"({"format": "tandem-graph", "version": 1, "name": "g",
 "inputs": [{"name": "x", "type": "f32", "shape": [2, 3]},
            {"name": "y", "type": "f32", "shape": [3, 2]})" +
         inputs + R"(],
 "states": [{"name": "s", "type": "f32", "shape": [2, 3]}],
 "nodes": [)" +
         nodes + "],\n \"outputs\": [" + outputs + "]}";
}

inline void expectParts(const std::string &text,
                        const std::vector<std::string> &parts) {
  Outcome outcome = import(text);
  EXPECT_EQ(outcome.message, "");
  for (const std::string &part : parts)
    EXPECT_NE(outcome.module.find(part), std::string::npos) << part << "\n"
                                                            << outcome.module;
}

} // namespace tandem::test

#endif
