//===- EvaluateTest.cpp - programs that evaluate do nothing of training ---===//
//
// A table of the ops whose behaviour depends on training, by the doors through
// which a model comes. What `evaluate` gives is written down here, as PyTorch's
// eval() has it: dropout leaves its operand, batch norm takes the running
// statistics. What the graph gives in training has to be something else.
//
//===----------------------------------------------------------------------===//
#include "compiler/Compile.h"
#include "compiler/import/JsonGraph.h"
#include "compiler/import/onnx/Import.h"
#include "compiler/trace/Functions.h"
#include "ir/Signature.h"
#include "ir/reference/Evaluator.h"
#include "tests/onnx/Models.h"
#include "tests/support/TestModule.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::onnx;
using namespace tandem::onnx::test;
using reference::Array;

namespace {

const std::vector<int64_t> kShape = {16, 3};
const std::vector<float> kScale = {1, 2, 0.5}, kBias = {0, -1, 3},
                         kMean = {0.5, -0.25, 1}, kVariance = {1, 0.25, 4};

using Module = mlir::OwningOpRef<mlir::ModuleOp>;

struct Row {
  std::string name;
  std::function<Module(mlir::MLIRContext &)> build;
  /// What `y` is in `evaluate`, of an element of x in this channel.
  std::function<double(double, int)> expected;
  /// Whether the graph in training does anything else.
  bool trains = true;
};

/// Into the names of the tests, which would have bytes of pointers.
void PrintTo(const Row &row, std::ostream *out) { *out << row.name; }

double same(double x, int) { return x; }

double normalized(double x, int channel) {
  return (x - kMean[channel]) / std::sqrt(kVariance[channel] + 1e-5) *
             kScale[channel] +
         kBias[channel];
}

//===----------------------------------------------------------------------===//
// The doors
//===----------------------------------------------------------------------===//

struct Asked {
  bool withLoss = false, keepEval = false;
};

Module importOnnx(mlir::MLIRContext &context, const Model &model, Asked asked) {
  ImportOptions options;
  options.loss = asked.withLoss ? "mse:y,target" : "";
  options.keepEval = asked.keepEval;
  Import made = importModel(model, "small.onnx", options, context);
  EXPECT_EQ(made.status().message(), "");
  return std::move(made.module);
}

Model ofRows(int64_t opset) {
  Model model = empty(opset);
  model.graph.inputs = {value("x", ElementKind::F32, kShape)};
  model.graph.outputs = {value("y", ElementKind::F32, kShape)};
  // What --loss trains, so that there is something.
  model.graph.initializers = {floats("zero", {3}, {0, 0, 0})};
  model.graph.nodes = {node("Add", {"x", "zero"}, {"h"})};
  return model;
}

TensorPtr boolean(const std::string &name, bool value) {
  return tensor<uint8_t>(name, ElementKind::Bool, {}, {value});
}

/// `mode`: what the node says of training, -1 for nothing.
Row dropoutOf(int64_t opset, int mode, Asked asked, bool hasMask = false,
              bool isRatioData = false) {
  std::string name = "onnx_dropout_opset" + std::to_string(opset) +
                     (mode < 0   ? ""
                      : mode > 0 ? "_mode_true"
                                 : "_mode_false") +
                     (asked.withLoss ? "_loss" : "") +
                     (asked.keepEval ? "_keep_eval" : "") +
                     (hasMask ? "_mask" : "") + (isRatioData ? "_ratio" : "");
  bool trains = !asked.keepEval && (asked.withLoss || mode > 0);
  auto build = [=](mlir::MLIRContext &context) {
    Model model = ofRows(opset);
    std::vector<std::string> inputs = {"h"}, outputs = {"y"};
    if (opset >= 12 && (mode >= 0 || isRatioData)) {
      inputs.insert(inputs.end(), {"ratio", mode < 0 ? "" : "mode"});
      if (isRatioData)
        model.graph.inputs.push_back(value("ratio", ElementKind::F32, {}));
      else
        model.graph.initializers.push_back(floats("ratio", {}, {0.5}));
      model.graph.initializers.push_back(boolean("mode", mode > 0));
    }
    if (hasMask) {
      outputs = {"dropped", "mask"};
      // The mask takes part, so that it is right too.
      model.graph.nodes.push_back(
          node("Cast", {"mask"}, {"kept"}, {integer("to", 1)}));
      model.graph.nodes.push_back(node("Mul", {"dropped", "kept"}, {"y"}));
    }
    std::vector<onnx::Attribute> attributes;
    if (opset < 12)
      attributes = {number("ratio", 0.5F)};
    model.graph.nodes.insert(model.graph.nodes.begin() + 1,
                             node("Dropout", inputs, outputs, attributes));
    return importOnnx(context, model, asked);
  };
  return {name, build, same, trains};
}

/// As networks from PyTorch have them: one after another, in training mode.
Row manyDropouts(Asked asked) {
  std::string name = std::string("onnx_many_dropouts") +
                     (asked.withLoss ? "_loss" : "") +
                     (asked.keepEval ? "_keep_eval" : "");
  auto build = [=](mlir::MLIRContext &context) {
    Model model = ofRows(17);
    model.graph.initializers.push_back(floats("ratio", {}, {0.1F}));
    model.graph.initializers.push_back(boolean("mode", true));
    std::string last = "h";
    for (const char *next : {"a", "b", "c", "d", "e", "f", "y"}) {
      model.graph.nodes.push_back(
          node("Dropout", {last, "ratio", "mode"}, {next}));
      last = next;
    }
    return importOnnx(context, model, asked);
  };
  return {name, build, same, !asked.keepEval};
}

/// The mean of x as a loop of 100 iterations drops it, in each anew.
Row loopOfDropouts(Asked asked) {
  auto build = [=](mlir::MLIRContext &context) {
    Model model = ofRows(17);
    model.graph.initializers.push_back(floats("ratio", {}, {0.5}));
    model.graph.initializers.push_back(boolean("mode", true));
    model.graph.initializers.push_back(
        tensor<int64_t>("hundred", ElementKind::I64, {}, {100}));
    Graph body;
    body.inputs = {value("i", ElementKind::I64, {}),
                   value("go", ElementKind::Bool, {})};
    body.nodes = {node("Identity", {"go"}, {"on"}),
                  node("Dropout", {"h", "ratio", "mode"}, {"d"})};
    body.outputs = {value("on", ElementKind::Bool, {}),
                    value("d", ElementKind::F32, kShape)};
    onnx::Attribute graph, axes;
    graph.name = "body";
    graph.form = onnx::Attribute::Form::Graph;
    graph.graphs = {std::make_shared<Graph>(std::move(body))};
    axes.name = "axes";
    axes.form = onnx::Attribute::Form::Ints;
    axes.integers = {0};
    model.graph.nodes.push_back(node("Loop", {"hundred", ""}, {"s"}, {graph}));
    model.graph.nodes.push_back(
        node("ReduceMean", {"s"}, {"y"}, {axes, integer("keepdims", 0)}));
    return importOnnx(context, model, asked);
  };
  return {std::string("onnx_loop") + (asked.withLoss ? "_loss" : ""), build,
          same};
}

Row batchNormOf(int64_t opset, bool isAsked, Asked asked) {
  std::string name = "onnx_batch_norm_opset" + std::to_string(opset) +
                     (isAsked ? "_training" : "") +
                     (asked.withLoss ? "_loss" : "") +
                     (asked.keepEval ? "_keep_eval" : "");
  auto build = [=](mlir::MLIRContext &context) {
    Model model = ofRows(opset);
    for (auto [name, data] : {std::pair{"scale", &kScale},
                              {"bias", &kBias},
                              {"mean", &kMean},
                              {"variance", &kVariance}})
      model.graph.initializers.push_back(floats(name, {3}, *data));
    std::vector<std::string> outputs = {"y"};
    std::vector<onnx::Attribute> attributes;
    if (isAsked) {
      outputs.insert(outputs.end(), {"mean_after", "variance_after"});
      if (opset < 14)
        outputs.insert(outputs.end(), {"saved_mean", "saved_variance"});
      else
        attributes = {integer("training_mode", 1)};
      model.graph.outputs.push_back(value("mean_after", ElementKind::F32, {3}));
      model.graph.outputs.push_back(
          value("variance_after", ElementKind::F32, {3}));
    }
    model.graph.nodes.push_back(node("BatchNormalization",
                                     {"h", "scale", "bias", "mean", "variance"},
                                     outputs, attributes));
    return importOnnx(context, model, asked);
  };
  return {name, build, normalized,
          !asked.keepEval && (isAsked || asked.withLoss)};
}

Module importJson(mlir::MLIRContext &context, const std::string &nodes) {
  std::string text = R"({"format": "tandem-graph", "version": 1, "name": "g",
    "inputs": [{"name": "x", "type": "f32", "shape": [16, 3]}],
    "states": [)";
  for (const char *name : {"scale", "bias", "mean", "variance"})
    text += R"({"name": ")" + std::string(name) +
            R"(", "type": "f32", "shape": [3]}, )";
  text += R"({"name": "random", "type": "i64", "shape": [2],
      "init": {"kind": "seed"}}],
    "nodes": [)" +
          nodes + R"(,
      {"op": "constant", "type": "i64", "shape": [2], "value": [0, 1],
       "outputs": ["step"]},
      {"op": "add", "inputs": ["random", "step"], "outputs": ["next"]},
      {"op": "write", "inputs": ["next", "random"]}],
    "outputs": [{"name": "y", "value": "y"}]})";
  Status status;
  Module module = importJsonGraph(text, "g.json", context, status);
  EXPECT_EQ(status.message(), "");
  return module;
}

Row jsonOf(const std::string &name, const std::string &node,
           std::function<double(double, int)> expected) {
  return {"json_" + name,
          [=](mlir::MLIRContext &context) { return importJson(context, node); },
          std::move(expected)};
}

Module parse(mlir::MLIRContext &context, Result<std::string> text) {
  EXPECT_TRUE(text.ok());
  return mlir::parseSourceString<mlir::ModuleOp>(*text, &context);
}

Module traced(mlir::MLIRContext &context, bool isNorm) {
  Trace trace("g");
  Tensor x = trace.input("x", kShape);
  auto state = [&](const char *name) {
    return trace.state(name, {3}, Init::constant(0));
  };
  if (isNorm)
    trace.output("y", batchNorm(x, state("scale"), state("bias"), state("mean"),
                                state("variance")));
  else
    trace.output("y", dropout(dropout(x, 0.5), 0.25));
  return parse(context, trace.finish());
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

std::vector<Row> allRows() {
  std::vector<Row> rows;
  Asked loss{true, false}, keep{true, true}, nothing;
  for (int64_t opset : {7, 9, 10})
    for (Asked asked : {nothing, loss, keep})
      rows.push_back(dropoutOf(opset, -1, asked));
  rows.push_back(dropoutOf(10, -1, loss, /*hasMask=*/true));
  for (int64_t opset : {12, 13, 17, 20, 21, 22, 28})
    for (int mode : {-1, 0, 1})
      for (Asked asked : {nothing, loss, keep})
        rows.push_back(dropoutOf(opset, mode, asked));
  for (Asked asked : {nothing, loss, keep}) {
    rows.push_back(dropoutOf(17, 1, asked, /*hasMask=*/true));
    rows.push_back(dropoutOf(17, 1, asked, false, /*isRatioData=*/true));
    rows.push_back(dropoutOf(17, 1, asked, true, true));
  }
  for (Asked asked : {nothing, loss, keep})
    rows.push_back(manyDropouts(asked));
  for (Asked asked : {nothing, loss})
    rows.push_back(loopOfDropouts(asked));
  for (int64_t opset : {7, 9, 14, 15, 21, 22, 28})
    for (bool isAsked : {false, true})
      for (Asked asked : {nothing, loss, keep})
        rows.push_back(batchNormOf(opset, isAsked, asked));

  rows.push_back(jsonOf("dropout", R"({"op": "dropout",
    "inputs": ["x", "random"], "outputs": ["y"],
    "attributes": {"draw": 0, "p": 0.5, "training": true}})",
                        same));
  rows.push_back(jsonOf("native_dropout", R"({"op": "native_dropout",
    "inputs": ["x", "random"], "outputs": ["d", "mask"],
    "attributes": {"p": 0.5}},
    {"op": "cast", "inputs": ["mask"], "type": "f32", "outputs": ["kept"]},
    {"op": "mul", "inputs": ["d", "kept"], "outputs": ["y"]})",
                        same));
  rows.push_back(jsonOf("batch_norm", R"({"op": "batch_norm",
    "inputs": ["x", "scale", "bias", "mean", "variance"], "outputs": ["y"],
    "attributes": {"training": true}})",
                        normalized));
  rows.push_back(jsonOf("batch_norm_functional",
                        R"({"op": "batch_norm_functional",
    "inputs": ["x", "scale", "bias", "mean", "variance"],
    "outputs": ["y", "m", "i", "mean1", "variance1"]},
    {"op": "write", "inputs": ["mean1", "mean"]},
    {"op": "write", "inputs": ["variance1", "variance"]})",
                        normalized));
  // Every weight of attention is dropped, and none in `evaluate`, where one
  // position sees itself alone.
  rows.push_back(jsonOf("attention", R"({"op": "reshape", "inputs": ["x"],
    "outputs": ["q"], "attributes": {"shape": [-1, 1, 3]}},
    {"op": "scaled_dot_product_attention",
     "inputs": ["q", "q", "q", "", "random"], "outputs": ["a"],
     "attributes": {"dropout_p": 0.5}},
    {"op": "reshape", "inputs": ["a"], "outputs": ["y"],
     "attributes": {"shape": [16, -1]}})",
                        same));
  rows.push_back({"trace_dropout",
                  [](mlir::MLIRContext &c) { return traced(c, false); }, same});
  rows.push_back({"trace_batch_norm",
                  [](mlir::MLIRContext &c) { return traced(c, true); },
                  normalized});
  rows.push_back({"mlir_dropout",
                  [](mlir::MLIRContext &context) {
                    return parse(context, std::string(R"(
module @g attributes {tandem.phase = "capture"} {
  func.func @graph(
      %x: tensor<16x3xf32> {tandem.role = #tandem.role<input "x">},
      %r: tensor<2xi64> {tandem.role = #tandem.role<input "random">})
      -> (tensor<16x3xf32> {tandem.role = #tandem.role<output "y">}) {
    %y = tandem.dropout %x, %r draw 0 p 5.0e-01 {training} : tensor<16x3xf32>
    return %y : tensor<16x3xf32>
  }
})"));
                  },
                  same});
  return rows;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Array arrayFor(const std::string &name, mlir::RankedTensorType type) {
  Array made(type);
  const std::vector<float> *data = name == "scale"      ? &kScale
                                   : name == "bias"     ? &kBias
                                   : name == "mean"     ? &kMean
                                   : name == "variance" ? &kVariance
                                                        : nullptr;
  for (int64_t i = 0; i < made.size(); ++i)
    made[i] = name == "x"        ? 1 + i % 7 * 0.25 - i % 3
              : name == "random" ? 7 + i
              : name == "ratio"  ? 0.5
              : data             ? (*data)[i]
                                 : 0;
  return made;
}

/// What a function makes of the first output, `y`.
Array run(mlir::func::FuncOp func) {
  std::vector<Array> arguments;
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    auto type = mlir::cast<mlir::RankedTensorType>(func.getArgumentTypes()[i]);
    arguments.push_back(
        arrayFor(roleOfArgument(func, i).getName().str(), type));
  }
  auto results = reference::evaluate(func, arguments);
  EXPECT_TRUE(mlir::succeeded(results));
  return mlir::succeeded(results)
             ? (*results)[*findResult(func, RoleKind::Output, "y")]
             : Array(llvm::ArrayRef<int64_t>());
}

class Evaluates : public testing::TestWithParam<Row> {};

std::string nameOf(const testing::TestParamInfo<Row> &info) {
  return info.param.name;
}

} // namespace

// An ONNX Dropout with training_mode dropped in `evaluate` too, with
// --inference and with --keep-eval; its batch norm took the batch's statistics.
TEST_P(Evaluates, AsInInference) {
  const Row &row = GetParam();
  mlir::DialectRegistry registry;
  registerCompiler(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  Module module = row.build(context);
  ASSERT_TRUE(module);
  for (bool inference : {false, true}) {
    Module copy(module->clone());
    CompileOptions options;
    options.inference = inference;
    std::vector<PhaseTime> times;
    options.stopAfter = "functionalize";
    ASSERT_TRUE(runPhases(*copy, options, times).ok());
    Array trained = run(copy->lookupSymbol<mlir::func::FuncOp>("graph"));
    options.stopAfter = "joint";
    ASSERT_TRUE(runPhases(*copy, options, times).ok());
    Array got = run(copy->lookupSymbol<mlir::func::FuncOp>("evaluate"));
    Array x = arrayFor("x", mlir::RankedTensorType::get(
                                kShape, mlir::Float32Type::get(&context)));
    ASSERT_EQ(got.size(), x.size());
    double off = 0, moved = 0;
    for (int64_t i = 0; i < x.size(); ++i) {
      double expected = row.expected(x[i], i % 3);
      off = std::max(off, std::abs(got[i] - expected));
      moved = std::max(moved, std::abs(trained[i] - expected));
    }
    EXPECT_LT(off, 1e-5);
    EXPECT_EQ(moved > 1e-2, row.trains) << moved;
  }
}

// Every iteration of a loop dropped the same elements.
TEST(EvaluatesLoops, EachIterationDrawsAnew) {
  mlir::DialectRegistry registry;
  registerCompiler(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  Module module = loopOfDropouts({true, false}).build(context);
  ASSERT_TRUE(module);
  CompileOptions options;
  options.stopAfter = "functionalize";
  std::vector<PhaseTime> times;
  ASSERT_TRUE(runPhases(*module, options, times).ok());
  Array y = run(module->lookupSymbol<mlir::func::FuncOp>("graph"));
  Array x = arrayFor("x", mlir::RankedTensorType::get(
                              kShape, mlir::Float32Type::get(&context)));
  ASSERT_EQ(y.size(), x.size());
  // The mean of 100 masks is 1, give or take 0.1; of one mask it is 0 or 2.
  for (int64_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(y[i], x[i], 0.6 * std::abs(x[i])) << i;
}

INSTANTIATE_TEST_SUITE_P(, Evaluates, testing::ValuesIn(allRows()), nameOf);
