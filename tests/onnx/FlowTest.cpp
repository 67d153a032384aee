//===- FlowTest.cpp - ONNX: If, Loop and Scan where data decides ----------===//
#include "compiler/import/onnx/Import.h"
#include "ir/reference/Evaluator.h"
#include "tests/onnx/Models.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::onnx;
using namespace tandem::onnx::test;

namespace {

using Numbers = std::vector<double>;

Attribute graphOf(const std::string &name, Graph graph) {
  Attribute made;
  made.name = name;
  made.form = Attribute::Form::Graph;
  made.graphs = {std::make_shared<Graph>(std::move(graph))};
  return made;
}
Attribute integers(const std::string &name, std::vector<int64_t> list) {
  Attribute made;
  made.name = name;
  made.form = Attribute::Form::Ints;
  made.integers = std::move(list);
  return made;
}
NamedType floatsOf(const std::string &name, std::vector<int64_t> shape) {
  return value(name, ElementKind::F32, shape);
}

class OnnxFlow : public testing::Test {
protected:
  Import run(const Model &model) {
    return importModel(model, "flow.onnx", {}, context);
  }
  /// What the captured program gives for these arguments, output by output.
  std::vector<Numbers> evaluate(const Model &model,
                                const std::vector<Numbers> &arguments) {
    Import made = run(model);
    EXPECT_EQ(made.status().message(), "");
    if (!made.module)
      return {};
    auto graph = made.module->lookupSymbol<mlir::func::FuncOp>("graph");
    llvm::SmallVector<reference::Array> arrays;
    for (auto [type, numbers] :
         llvm::zip_equal(graph.getArgumentTypes(), arguments)) {
      arrays.emplace_back(mlir::cast<mlir::RankedTensorType>(type));
      arrays.back().data = numbers;
    }
    auto results = reference::evaluate(graph, arrays);
    EXPECT_TRUE(mlir::succeeded(results));
    std::vector<Numbers> list;
    if (mlir::succeeded(results))
      for (const reference::Array &array : *results)
        list.push_back(array.data);
    std::string text;
    llvm::raw_string_ostream(text) << *made.module;
    captured = text;
    return list;
  }
  bool has(const std::string &part) const {
    return captured.find(part) != std::string::npos;
  }

  mlir::MLIRContext context;
  std::string captured; ///< the module that evaluate() ran
};

/// x [2] and c in; y [2] out.
Model small() {
  Model model = empty();
  model.graph.inputs = {floatsOf("x", {2})};
  model.graph.outputs = {floatsOf("y", {2})};
  return model;
}

} // namespace

// Branches see names of the outside, which become operands.
TEST_F(OnnxFlow, ABranchOfData) {
  Model model = small();
  model.graph.inputs.push_back(value("c", ElementKind::Bool, {1}));
  model.graph.nodes.push_back(node("Add", {"x", "x"}, {"d"}));
  Graph then, otherwise;
  then.nodes = {node("Mul", {"d", "x"}, {"p"})};
  then.outputs = {floatsOf("p", {2})};
  otherwise.initializers = {floats("k", {2}, {10, 20})};
  otherwise.nodes = {node("Add", {"d", "k"}, {"q"})};
  otherwise.outputs = {floatsOf("q", {2})};
  model.graph.nodes.push_back(
      node("If", {"c"}, {"y"},
           {graphOf("then_branch", then), graphOf("else_branch", otherwise)}));
  EXPECT_EQ(evaluate(model, {{1, 2}, {1}}), (std::vector<Numbers>{{2, 8}}));
  EXPECT_TRUE(has("tandem.if"));
  EXPECT_EQ(evaluate(model, {{1, 2}, {0}}), (std::vector<Numbers>{{12, 24}}));

  otherwise.initializers = {floats("k", {1, 2}, {10, 20})};
  model.graph.nodes.back() =
      node("If", {"c"}, {"y"},
           {graphOf("then_branch", then), graphOf("else_branch", otherwise)});
  Import made = run(model);
  EXPECT_FALSE(made.module);
  EXPECT_EQ(made.status().code(), Code::Unsupported);
  EXPECT_NE(made.status().message().find("branches that give other types"),
            std::string::npos)
      << made.status().message();
}

namespace {
/// v' = v + x while the sum of v is below a limit: an output for the condition,
/// v, and, if asked for, a slice.
Graph adding(bool counts, bool stacks) {
  Graph body;
  body.inputs = {value("i", ElementKind::I64, {}),
                 value("go", ElementKind::Bool, {}), floatsOf("v", {2})};
  body.nodes = {node("Add", {"v", "x"}, {"w"})};
  body.outputs = {value("on", ElementKind::Bool, {}), floatsOf("w", {2})};
  if (counts) {
    body.nodes.push_back(node("Identity", {"go"}, {"on"}));
  } else {
    body.initializers = {floats("limit", {}, {9.5}),
                         tensor<int64_t>("zero", ElementKind::I64, {}, {0})};
    body.nodes.push_back(node("Gather", {"w", "zero"}, {"first"}));
    body.nodes.push_back(node("Less", {"first", "limit"}, {"on"}));
  }
  if (stacks) {
    body.nodes.push_back(node("Mul", {"v", "v"}, {"s"}));
    body.outputs.push_back(floatsOf("s", {2}));
  }
  return body;
}

Model loop(bool counts, bool stacks, const std::string &trips,
           const std::string &condition) {
  Model model = small();
  model.graph.inputs.push_back(value("n", ElementKind::I64, {}));
  model.graph.initializers = {
      tensor<int64_t>("hundred", ElementKind::I64, {}, {100})};
  std::vector<std::string> outputs = {"y"};
  if (stacks) {
    outputs.push_back("s");
    model.graph.outputs.push_back(floatsOf("s", {100, 2}));
  }
  model.graph.inputs.push_back(value("c", ElementKind::Bool, {}));
  model.graph.nodes = {node("Loop", {trips, condition, "x"}, outputs,
                            {graphOf("body", adding(counts, stacks))})};
  return model;
}
} // namespace

// More iterations than are written out: a scan.
TEST_F(OnnxFlow, ALoopThatCounts) {
  Model model = loop(/*counts=*/true, /*stacks=*/true, "hundred", "");
  std::vector<Numbers> made = evaluate(model, {{1, -0.5}, {0}, {0}});
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0], (Numbers{101, -50.5}));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(made[1][2 * i], (i + 1.0) * (i + 1));
    EXPECT_EQ(made[1][2 * i + 1], (i + 1) * (i + 1) / 4.0);
  }
  EXPECT_TRUE(has("tandem.scan 100 carries"));
}

// What ends it is data: its length bounds it, and it has a gradient; or it is a
// while.
TEST_F(OnnxFlow, ALoopThatDataEnds) {
  for (const char *trips : {"hundred", "n", ""}) {
    SCOPED_TRACE(trips);
    Model model = loop(/*counts=*/false, /*stacks=*/false, trips, "c");
    EXPECT_EQ(evaluate(model, {{1, 2}, {3}, {1}})[0],
              (std::string(trips) == "n" ? Numbers{4, 8} : Numbers{10, 20}));
    EXPECT_EQ(has("tandem.scan"), std::string(trips) == "hundred");
    EXPECT_EQ(has("tandem.while"), std::string(trips) != "hundred");
    EXPECT_EQ(evaluate(model, {{1, 2}, {100}, {1}})[0], (Numbers{10, 20}));
    EXPECT_EQ(evaluate(model, {{1, 2}, {100}, {0}})[0], (Numbers{1, 2}));
  }
}

// How many slices there are must be known.
TEST_F(OnnxFlow, ALoopThatStacksAsMuchAsDataSays) {
  Import made = run(loop(/*counts=*/true, /*stacks=*/true, "n", ""));
  EXPECT_FALSE(made.module);
  EXPECT_NE(made.status().message().find("the trip count"), std::string::npos)
      << made.status().message();
  EXPECT_NE(made.status().message().find("--value=n="), std::string::npos)
      << made.status().message();
  made = run(loop(/*counts=*/false, /*stacks=*/true, "hundred", ""));
  EXPECT_FALSE(made.module);
  EXPECT_EQ(made.status().code(), Code::Unsupported);
  EXPECT_NE(made.status().message().find("as many tensors as data says"),
            std::string::npos)
      << made.status().message();
}

namespace {
/// Sums of the slices of x [2, 3] so far, and slices of y [3, 2] times k.
Model scanning(std::vector<Attribute> attributes, std::vector<int64_t> sums,
               std::vector<int64_t> products) {
  Model model = empty();
  model.graph.inputs.push_back(floatsOf("y", {3, 2}));
  model.graph.initializers = {floats("k", {}, {2}),
                              floats("zero", {2}, {0, 0})};
  model.graph.outputs = {floatsOf("last", {2}), floatsOf("sums", sums),
                         floatsOf("products", products)};
  Graph body;
  body.inputs = {floatsOf("s", {2}), floatsOf("a", {2}), floatsOf("b", {2})};
  body.nodes = {node("Add", {"s", "a"}, {"t"}), node("Mul", {"b", "k"}, {"p"}),
                node("Identity", {"t"}, {"u"})};
  body.outputs = {floatsOf("t", {2}), floatsOf("u", {2}), floatsOf("p", {2})};
  attributes.push_back(graphOf("body", body));
  attributes.push_back(integer("num_scan_inputs", 2));
  attributes.push_back(integers("scan_input_axes", {1, -2}));
  model.graph.nodes = {node("Scan", {"zero", "x", "y"},
                            {"last", "sums", "products"}, attributes)};
  return model;
}
} // namespace

TEST_F(OnnxFlow, AScanAlongAxesInDirections) {
  const Numbers x = {1, 2, 3, 10, 20, 30}, y = {1, 2, 3, 4, 5, 6};
  // The zeros are a parameter.
  auto run = [&](const Model &model) {
    return evaluate(model, {x, y, {0, 0}});
  };
  auto first = run(scanning({}, {3, 2}, {3, 2}));
  EXPECT_EQ(first, (std::vector<Numbers>{
                       {6, 60}, {1, 10, 3, 30, 6, 60}, {2, 4, 6, 8, 10, 12}}));
  EXPECT_TRUE(has("tandem.scan 3 carries"));
  auto backward = run(scanning({integers("scan_input_directions", {1, 1}),
                                integers("scan_output_directions", {1, 1}),
                                integers("scan_output_axes", {1, 0})},
                               {2, 3}, {3, 2}));
  EXPECT_EQ(backward,
            (std::vector<Numbers>{
                {6, 60}, {6, 5, 3, 60, 50, 30}, {2, 4, 6, 8, 10, 12}}));
  EXPECT_TRUE(has("tandem.scan 3 reverse carries"));
  // Directions that do not agree.
  auto mixed = run(scanning({integers("scan_input_directions", {0, 1}),
                             integers("scan_output_directions", {1, 0})},
                            {3, 2}, {3, 2}));
  EXPECT_EQ(mixed, (std::vector<Numbers>{
                       {6, 60}, {6, 60, 3, 30, 1, 10}, {10, 12, 6, 8, 2, 4}}));
  EXPECT_FALSE(has("tandem.scan"));
}
