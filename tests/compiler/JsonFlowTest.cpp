//===- JsonFlowTest.cpp - branches and loops in JSON graphs ---------------===//
#include "compiler/import/JsonGraph.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace tandem;

namespace {

/// A graph of the inputs x and c, n, and these nodes; "y" goes out.
std::string graph(const std::string &nodes) {
  return R"({"format": "tandem-graph", "version": 1, "name": "flow",
 "inputs": [{"name": "x", "type": "f32", "shape": [3, 4]},
            {"name": "c", "type": "bool", "shape": []},
            {"name": "n", "type": "i64", "shape": []}],
 "nodes": [)" +
         nodes + R"(],
 "outputs": [{"name": "y", "value": "y"}]})";
}

/// The module, or the message.
std::string import(const std::string &nodes) {
  mlir::MLIRContext context;
  Status status;
  auto module = importJsonGraph(graph(nodes), "flow.json", context, status);
  if (!module)
    return status.message();
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  return text;
}

void expectPart(const std::string &nodes, const std::string &part) {
  std::string text = import(nodes);
  EXPECT_NE(text.find(part), std::string::npos)
      << "expected: " << part << "\ngot: " << text;
}

const std::string kThen =
    R"("then": {"inputs": ["a"], "nodes": [{"op": "exp", "inputs": ["a"],
        "outputs": ["b"]}], "outputs": ["b"]})";
const std::string kElse =
    R"("else": {"inputs": ["a"], "nodes": [], "outputs": ["a"]})";
const std::string kBody =
    R"("body": {"inputs": ["h", "s"], "nodes": [{"op": "add",
        "inputs": ["h", "s"], "outputs": ["t"]}], "outputs": ["t", "h"]})";

std::string branch(const std::string &inputs, const std::string &then = kThen,
                   const std::string &otherwise = kElse) {
  return R"({"op": "if", "outputs": ["y"], "inputs": [)" + inputs + "], " +
         then + ", " + otherwise + "}";
}

/// Carries a slice of x, and scans x.
std::string scan(const std::string &fields, const std::string &body = kBody) {
  return R"({"op": "constant", "type": "f32", "shape": [4], "value": 1,
    "outputs": ["h0"]}, {"op": "scan", "carries": ["h0"], "inputs": ["x"],
    "outputs": ["y", "ys"], )" +
         fields + body + "}";
}

} // namespace

TEST(JsonFlow, Branches) {
  expectPart(branch(R"("c", "x")"), "tandem.if %");
  expectPart(branch(R"("c", "x")"), "tandem.exp");
  expectPart(
      branch(R"("x", "x")"),
      "expected the condition to be one bool, but got 'tensor<3x4xf32>'");
  expectPart(branch(""), "expected the condition as the first of 'inputs'");
  expectPart(branch(R"("c", "x")", kThen, R"("no": 1)"), "unknown field 'no'");
  expectPart(branch(R"("c", "x")", kThen, R"("no": 1)"),
             "expected a field 'else'");
  // Names of the outside are not known, and types must agree.
  expectPart(branch(R"("c", "x")",
                    R"("then": {"inputs": ["a"], "nodes": [],
                       "outputs": ["x"]})"),
             "/nodes/0/then/outputs/0: unknown value 'x'");
  expectPart(branch(R"("c", "x")", R"("then": {"inputs": ["a", "b"]})"),
             "expected 1 names in 'inputs', but got 2");
  expectPart(branch(R"("c", "x")", kThen,
                    R"("else": {"inputs": ["a"], "nodes": [{"op": "reduce_sum",
                "inputs": ["a"], "attributes": {"dims": [0]},
                "outputs": ["b"]}], "outputs": ["b"]})"),
             "expected what the second region yields to have types "
             "('tensor<3x4xf32>'), but got ('tensor<4xf32>')");
}

TEST(JsonFlow, Scans) {
  expectPart(scan(""), "tandem.scan 3 carries");
  expectPart(scan(R"("reverse": true, "trips": "n", )"),
             "tandem.scan 3 reverse trips %");
  expectPart(scan(R"("length": 4, )"),
             "expected input #0 to have 4 slices along dimension 0, but got "
             "'tensor<3x4xf32>'");
  expectPart(scan(R"("trips": "x", )"), "expected the trips to be one i64");
  expectPart(scan(R"("trips": "z", )"), "unknown value 'z'");
  expectPart(scan("", R"("body": {"inputs": ["h", "s"], "nodes": [],
                       "outputs": []})"),
             "expected the body to yield at least 1 values, one for each "
             "carry, but got 0");
  expectPart(
      R"({"op": "scan", "carries": ["x"], "outputs": ["y"], "body": {}})",
      "expected a field 'length', or inputs with slices");
  // A tensor of 2^40 elements at most.
  expectPart(R"({"op": "scan", "carries": ["n"], "length": 1099511627776,
               "outputs": ["y"], "constants": ["x"], "body": {
               "inputs": ["i", "x"], "nodes": [], "outputs": ["i", "x"]}})",
             "expected a stack of 1099511627776 slices of type "
             "'tensor<3x4xf32>'");
}

TEST(JsonFlow, Loops) {
  auto loop = [](const std::string &condition, const std::string &body) {
    return R"({"op": "while", "carries": ["x"], "constants": ["c"],
      "outputs": ["y"], "condition": {"inputs": ["a", "d"], "nodes": [],
      "outputs": [)" +
           condition + R"(]}, "body": {"inputs": ["a", "d"], "nodes": [],
      "outputs": [)" +
           body + "]}}";
  };
  expectPart(loop(R"("d")", R"("a")"), "tandem.while carries");
  expectPart(loop(R"("a")", R"("a")"),
             "expected what the condition yields to have types ('tensor<i1>')");
  expectPart(loop(R"("d")", R"("d")"),
             "expected what the body yields to have types ('tensor<3x4xf32>')");
}

// Regions write copies of their own, and nothing else.
TEST(JsonFlow, Writes) {
  const char *write = R"("then": {"inputs": ["a"], "nodes": [
    {"op": "exp", "inputs": ["a"], "outputs": ["b"]},
    {"op": "write", "inputs": ["b", "%"]}], "outputs": ["%"]})";
  auto to = [&](const std::string &name) {
    std::string text = write;
    for (size_t at; (at = text.find('%')) != std::string::npos;)
      text.replace(at, 1, name);
    return branch(R"("c", "x")", text);
  };
  expectPart(to("b"), "tandem.if");
  expectPart(to("a"), "writes argument #0 of the branch 'then', which is a "
                      "value; expected a clone of it to be written");
}

// What saves memory is said of the op, and not inside.
TEST(JsonFlow, Tags) {
  expectPart(scan(R"("save": true, )"), "tandem.save");
  std::string then = kThen;
  then.replace(then.find(R"("op")"), 0, R"("save": true, )");
  expectPart(branch(R"("c", "x")", then),
             "expected no 'save' inside of a branch or a loop");
}
