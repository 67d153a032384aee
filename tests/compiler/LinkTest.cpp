//===- LinkTest.cpp - what was composed at run time becomes one program ---===//
//
// Row N32 from its other side: models that are composed as nodes of a run-time
// graph, and the program that the linker makes of them, give the same values
// and gradients. Everything in this process, in f64.
//
//===----------------------------------------------------------------------===//
#include "compiler/link/Link.h"
#include "compiler/Compile.h"
#include "compiler/import/JsonGraph.h"
#include "runtime/graph/CallNode.h"
#include "runtime/graph/Engine.h"
#include "runtime/graph/Function.h"
#include "runtime/graph/Hooks.h"
#include "runtime/graph/Leaf.h"
#include "runtime/graph/Ops.h"
#include "runtime/graph/Write.h"

#include "mlir/IR/MLIRContext.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace tandem;
using namespace tandem::graph;
using artifact::DType;
using mlir::ModuleOp;
using mlir::OwningOpRef;
using Random = std::mt19937;

namespace {

const std::vector<int64_t> kShape = {3, 3};

mlir::MLIRContext &theContext() {
  static mlir::MLIRContext *context = [] {
    mlir::DialectRegistry registry;
    registerCompiler(registry);
    return new mlir::MLIRContext(registry,
                                 mlir::MLIRContext::Threading::DISABLED);
  }();
  return *context;
}

OwningOpRef<ModuleOp> read(const std::string &json) {
  Status status;
  auto module = importJsonGraph(json, "piece.json", theContext(), status);
  EXPECT_TRUE(module) << status.message() << "\n" << json;
  return module;
}

/// The module as text, if that is not compiled.
std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out);
  return text;
}

runtime::Model compile(OwningOpRef<ModuleOp> module) {
  CompileOptions options;
  options.target = "cpu";
  options.threads = 1;
  std::vector<PhaseTime> times;
  std::string text = textOf(*module);
  auto modules = runTargets(std::move(module), options, times);
  EXPECT_TRUE(modules.ok()) << modules.status().message() << "\n" << text;
  auto writer = emitTargets(*modules, options, times);
  EXPECT_TRUE(writer.ok()) << writer.status().message() << "\n" << text;
  auto bytes = *writer->bytes();
  auto model = runtime::Model::load(
      *artifact::ArtifactReader::fromMemory(std::as_bytes(std::span(bytes))),
      {.threads = 1});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(*model);
}

Tensor randomTensor(Random &random,
                    const std::vector<int64_t> &shape = kShape) {
  Tensor made = *Tensor::empty(DType::F64, shape);
  std::uniform_real_distribution<double> draw(-1, 1);
  for (int64_t i = 0; i < made.elements(); ++i)
    made.mutableData<double>()[i] = draw(random);
  return made;
}

Value leafOf(Tensor tensor) {
  EXPECT_TRUE(tensor.setRequiresGrad(true).ok());
  return *Leaf::make("leaf", tensor);
}

Tensor gradientOf(const Value &leaf) {
  return static_cast<Leaf &>(*leaf.edge.node).gradient();
}

/// A model of a few ops on x and y, with a param w and the outputs o and p, of
/// one shape.
std::string pieceJson(Random &random, const std::string &name) {
  auto pick = [&](int count) { return static_cast<int>(random() % count); };
  std::vector<std::string> values = {"x", "y", "w"};
  std::string nodes;
  int count = 1 + pick(4);
  for (int i = 0; i < count; ++i) {
    static const char *const binary[] = {"add", "mul", "sub", "matmul"};
    static const char *const unary[] = {"tanh", "sigmoid", "sin"};
    bool isBinary = pick(3) > 0;
    std::string made = "v" + std::to_string(i);
    auto operand = [&] { return values[size_t(pick(int(values.size())))]; };
    nodes += std::string(i ? ", " : "") + "{\"op\": \"" +
             (isBinary ? binary[pick(4)] : unary[pick(3)]) +
             "\", \"inputs\": [\"" + operand() + "\"" +
             (isBinary ? ", \"" + operand() + "\"" : "") +
             "], \"outputs\": [\"" + made + "\"]}";
    values.push_back(made);
  }
  std::string type = "\"type\": \"f64\", \"shape\": [3, 3]";
  // Every value is used, so that each has a gradient.
  nodes += ", {\"op\": \"add\", \"inputs\": [\"x\", \"y\"], \"outputs\": "
           "[\"xy\"]}, {\"op\": \"matmul\", \"inputs\": [\"xy\", \"w\"], "
           "\"outputs\": [\"xyw\"]}, {\"op\": \"tanh\", \"inputs\": [\"xyw\"], "
           "\"outputs\": [\"o\"]}";
  return "{\"format\": \"tandem-graph\", \"version\": 1, \"name\": \"" + name +
         "\", \"inputs\": [{\"name\": \"x\", " + type +
         ", \"requires_grad\": true}, {\"name\": \"y\", " + type +
         ", \"requires_grad\": true}], \"params\": [{\"name\": \"w\", " + type +
         ", \"init\": {\"kind\": \"constant\", \"value\": 0.5}}], \"nodes\": "
         "[" +
         nodes + "], \"outputs\": [{\"name\": \"o\", \"value\": \"o\"}, " +
         "{\"name\": \"p\", \"value\": \"" + values.back() + "\"}]}";
}

/// Models, and what is composed of them.
struct Composition {
  std::vector<link::Piece> pieces;
  std::vector<runtime::Model> models;
  std::vector<Value> params;       ///< of each model
  std::vector<std::string> labels; ///< of each model in the linked program
  std::vector<Value> leaves;       ///< beside them

  void add(const std::string &json, Random &random) {
    link::Piece piece;
    piece.module = read(json);
    piece.model = piece.module.get().getName()->str();
    piece.path = piece.model + ".json";
    models.push_back(compile(read(json)));
    Tensor w = randomTensor(random);
    EXPECT_TRUE(models.back().initialize(0).ok());
    EXPECT_TRUE(models.back().set("w", w).ok());
    params.push_back(leafOf(*models.back().get("w")));
    labels.push_back(piece.model);
    pieces.push_back(std::move(piece));
  }

  /// Calls a model; returns "o", or "o" and "p".
  std::vector<Value> call(size_t model, const Value &x, const Value &y,
                          bool both = false) {
    std::vector<NamedValue> inputs = {{"x", x}, {"y", y}};
    std::vector<NamedValue> given = {{"w", params[model]}};
    std::vector<std::string> outputs = {"o"};
    if (both)
      outputs.emplace_back("p");
    auto made = graph::call(models[model], inputs, given, outputs);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *made;
  }

  Result<link::Linked> link(const Value &root) {
    Edge edges[] = {root.edge};
    auto file = link::readGraphFile(asJson(edges), "graph.json");
    EXPECT_TRUE(file.ok()) << file.status().message();
    return link::linkGraph(*file, pieces, theContext());
  }
};

double distance(const Tensor &x, const Tensor &y) {
  double far = 0;
  for (int64_t i = 0; i < x.elements(); ++i)
    far =
        std::max(far, std::fabs(x.at(i) - y.at(i)) / (1 + std::fabs(x.at(i))));
  return far;
}

constexpr double kClose = 1e-12;

} // namespace

TEST(Link, N32_RandomCompositionsAreAsTheLinkedProgram) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    auto pick = [&](size_t count) { return random() % count; };
    Composition it;
    for (size_t i = 0, n = 1 + pick(3); i < n; ++i)
      it.add(pieceJson(random, "piece" + std::to_string(i)), random);
    std::vector<Value> pool;
    for (int i = 0; i < 2; ++i) {
      it.leaves.push_back(leafOf(randomTensor(random)));
      pool.push_back(it.leaves.back());
    }
    Value last = pool[0];
    for (size_t i = 0, n = 2 + pick(5); i < n; ++i) {
      Value x = last, y = pool[pick(pool.size())];
      switch (pick(6)) {
      case 0:
        last = *ops::add(x, y);
        break;
      case 1:
        last = *ops::mul(x, y);
        break;
      case 2:
        last = *ops::scale(x, -0.75);
        break;
      default: {
        bool both = pick(2);
        auto made = it.call(pick(it.models.size()), x, y, both);
        last = made[0];
        pool.push_back(made.back());
      }
      }
      pool.push_back(last);
    }
    for (size_t i = 0; i < it.models.size(); ++i) // each model once at least
      last = it.call(i, last, it.leaves[i % 2])[0];
    Value loss = *ops::sum(*ops::mul(last, *ops::add(last, pool[0])));
    auto linked = it.link(loss);
    ASSERT_TRUE(linked.ok()) << linked.status().message();
    EXPECT_TRUE(linked->left.empty());
    // Inputs by the leaves that they stand for.
    std::vector<NamedValue> inputs;
    for (const Value &leaf : it.leaves)
      for (const link::LinkedInput &input : linked->inputs)
        if (input.leaf == static_cast<int64_t>(leaf.edge.node->number()))
          inputs.push_back({input.name, leafOf(leaf.tensor.detach())});
    ASSERT_EQ(inputs.size(), linked->inputs.size());
    std::string text = textOf(*linked->module);
    SCOPED_TRACE(text);
    runtime::Model one = compile(std::move(linked->module));
    std::vector<NamedValue> params;
    for (size_t i = 0; i < it.models.size(); ++i) {
      std::string name = it.labels[i] + ".w";
      if (!one.get(name))
        continue;
      ASSERT_TRUE(one.set(name, *it.models[i].get("w")).ok());
      params.push_back({name, leafOf(*one.get(name))});
    }
    std::vector<std::string> outputs = {"loss"};
    auto made = graph::call(one, inputs, params, outputs);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_LT(distance(loss.tensor, (*made)[0].tensor), kClose);
    ASSERT_TRUE(backward(std::vector<Root>{{loss.edge, {}}}).ok());
    ASSERT_TRUE(backward(std::vector<Root>{{(*made)[0].edge, {}}}).ok());
    for (size_t i = 0; i < inputs.size(); ++i)
      EXPECT_LT(distance(gradientOf(it.leaves[i]), gradientOf(inputs[i].value)),
                kClose);
    for (const NamedValue &param : params)
      for (size_t i = 0; i < it.models.size(); ++i)
        if (param.name == it.labels[i] + ".w") {
          EXPECT_LT(distance(gradientOf(it.params[i]), gradientOf(param.value)),
                    kClose);
        }
  }
}

// A factor was rounded to the type of the tensor, which made inf, NaN or 0 of
// what the run-time graph, whose products are rounded once, had as a number.
TEST(Link, FactorsThatTheTypeCannotHoldAreAsInTheRunTimeGraph) {
  struct Row {
    DType type;
    std::vector<double> factors;
  };
  const Row rows[] = {
      {DType::F16, {0.001, 131072}}, {DType::F16, {1e-9, 1e7, 1.0 / 3}},
      {DType::BF16, {0.1, 1.0 / 3}}, {DType::BF16, {1e-20, 1e39}},
      {DType::F32, {1e-20, 1e39}},   {DType::F32, {1e20, 1e-47, 1e27}},
      {DType::F32, {1e300, 1e-300}}};
  Random random(17);
  Composition it;
  it.add(pieceJson(random, "piece"), random);
  for (const Row &row : rows) {
    SCOPED_TRACE(std::string(spelling(row.type)) + " times " +
                 std::to_string(row.factors[0]));
    static_cast<Leaf &>(*it.params[0].edge.node).clear();
    Value x = leafOf(randomTensor(random)), made = it.call(0, x, x)[0];
    Value scaled = *ops::cast(made, row.type);
    for (double factor : row.factors)
      scaled = *ops::scale(scaled, factor);
    Value wide = *ops::cast(scaled, DType::F64);
    Value loss = *ops::sum(*ops::mul(wide, made));
    auto linked = it.link(loss);
    ASSERT_TRUE(linked.ok()) << linked.status().message();
    EXPECT_TRUE(linked->left.empty());
    ASSERT_EQ(linked->inputs.size(), 1u);
    std::string input = linked->inputs[0].name;
    runtime::Model one = compile(std::move(linked->module));
    ASSERT_TRUE(one.set("piece.w", *it.models[0].get("w")).ok());
    std::vector<NamedValue> inputs = {{input, leafOf(x.tensor.detach())}};
    std::vector<NamedValue> params = {{"piece.w", leafOf(*one.get("piece.w"))}};
    std::vector<std::string> outputs = {"loss"};
    auto got = graph::call(one, inputs, params, outputs);
    ASSERT_TRUE(got.ok()) << got.status().message();
    ASSERT_TRUE(backward(std::vector<Root>{{loss.edge, {}}}).ok());
    ASSERT_TRUE(backward(std::vector<Root>{{(*got)[0].edge, {}}}).ok());
    auto isAs = [](const Tensor &expected, const Tensor &given) {
      double scale = 0; // of numbers that may be small or large
      for (int64_t i = 0; i < expected.elements(); ++i)
        scale = std::max(scale, std::fabs(expected.at(i)));
      for (int64_t i = 0; i < expected.elements(); ++i) {
        double a = expected.at(i), b = given.at(i);
        if (!std::isfinite(a) || !std::isfinite(b))
          EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
              << "expected " << a << " but got " << b;
        else
          EXPECT_NEAR(a, b, scale * 2e-7); // f32's factors are rounded
      }
    };
    isAs(loss.tensor, (*got)[0].tensor);
    isAs(gradientOf(x), gradientOf(inputs[0].value));
    isAs(gradientOf(it.params[0]), gradientOf(params[0].value));
  }
}

// What cannot be taken in stays, with all that it is computed of, and says why.
TEST(Link, N12_WhatStaysIsNamedAndTheRestIsOneNode) {
  Random random(7);
  Composition it;
  it.add(pieceJson(random, "below"), random);
  it.add(pieceJson(random, "above"), random);
  Value x = leafOf(randomTensor(random));
  FunctionSpec negative;
  negative.name = "negative";
  negative.forward = [](Function &, std::vector<Value> &given,
                        std::vector<Value> &outputs) {
    outputs[0] = *ops::scale(given[0], -1);
    return Status::success();
  };
  negative.backward = [](Function &, Gradients &gradients, Gradients &results) {
    results[0] = *ops::scale(gradients[0], -1);
    return Status::success();
  };
  Value below = it.call(0, x, x)[0];
  std::vector<Value> given = {below}, stays(1);
  ASSERT_TRUE(Function::apply(negative, given, stays).ok());
  Value above = it.call(1, stays[0], below)[0];
  Value loss = *ops::sum(*ops::mul(above, above));
  auto linked = it.link(loss);
  ASSERT_TRUE(linked.ok()) << linked.status().message();
  EXPECT_EQ(linked->programs, (std::vector<std::string>{"above"}));
  EXPECT_EQ(linked->ops, 2);
  ASSERT_EQ(linked->left.size(), 2u);
  EXPECT_NE(linked->left[0].why.find("a function of the program"),
            std::string::npos);
  EXPECT_NE(linked->left[1].node.find("'below'"), std::string::npos);
  EXPECT_NE(linked->left[1].why.find("'negative'"), std::string::npos);
  EXPECT_NE(linked->left[1].why.find("which stays, is computed of it"),
            std::string::npos);
  // The linked program takes the place of what was taken in.
  runtime::Model one = compile(std::move(linked->module));
  ASSERT_TRUE(one.set("above.w", *it.models[1].get("w")).ok());
  ASSERT_TRUE(backward(std::vector<Root>{{loss.edge, {}}}).ok());
  Value x2 = leafOf(x.tensor.detach());
  Value w = leafOf(*one.get("above.w"));
  Tensor w0 = gradientOf(it.params[0]);
  static_cast<Leaf &>(*it.params[0].edge.node).clear();
  Value below2 = it.call(0, x2, x2)[0];
  std::vector<Value> given2 = {below2}, stays2(1);
  ASSERT_TRUE(Function::apply(negative, given2, stays2).ok());
  std::vector<NamedValue> inputs = {{"x", stays2[0]}, {"y", below2}};
  std::vector<NamedValue> params = {{"above.w", w}};
  std::vector<std::string> outputs = {"loss"};
  auto made = graph::call(one, inputs, params, outputs);
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_TRUE(backward(std::vector<Root>{{(*made)[0].edge, {}}}).ok());
  EXPECT_LT(distance(gradientOf(x), gradientOf(x2)), kClose);
  EXPECT_LT(distance(gradientOf(it.params[1]), gradientOf(w)), kClose);
  EXPECT_LT(distance(w0, gradientOf(it.params[0])), kClose);
}

// A call whose gradient of a param nobody wants passes none to it, also where
// another call of the model does.
TEST(Link, AParamIsTrainedWhereACallSaysSo) {
  Random random(8);
  Composition it;
  it.add(pieceJson(random, "piece"), random);
  Value x = leafOf(randomTensor(random));
  Value frozen = it.params[0];
  it.params[0].edge = {};
  Value first = it.call(0, x, x)[0];
  auto none = it.link(*ops::sum(first));
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_EQ(textOf(*none->module)
                .find("param \"piece.w\" {init = {kind = "
                      "\"constant\", value = 5.000000e-01 : "
                      "f64}, requires_grad"),
            std::string::npos);
  it.params[0] = frozen;
  Value second = it.call(0, first, x)[0];
  Value loss = *ops::sum(second);
  auto linked = it.link(loss);
  ASSERT_TRUE(linked.ok()) << linked.status().message();
  EXPECT_NE(textOf(*linked->module).find("tandem.detach"), std::string::npos);
  runtime::Model one = compile(std::move(linked->module));
  ASSERT_TRUE(one.set("piece.w", *it.models[0].get("w")).ok());
  std::vector<NamedValue> inputs = {{"x", leafOf(x.tensor.detach())}};
  inputs[0].name = linked->inputs.at(0).name;
  std::vector<NamedValue> params = {{"piece.w", leafOf(*one.get("piece.w"))}};
  std::vector<std::string> outputs = {"loss"};
  auto made = graph::call(one, inputs, params, outputs);
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_TRUE(backward(std::vector<Root>{{loss.edge, {}}}).ok());
  ASSERT_TRUE(backward(std::vector<Root>{{(*made)[0].edge, {}}}).ok());
  EXPECT_LT(distance(gradientOf(it.params[0]), gradientOf(params[0].value)),
            kClose);
  EXPECT_LT(distance(gradientOf(x), gradientOf(inputs[0].value)), kClose);
}

// Calls of one loaded model share its states: the second sees what the first
// wrote.
TEST(Link, StatesAreThoseOfTheLoadedModel) {
  std::string type = "\"type\": \"f64\", \"shape\": [3, 3]";
  std::string json =
      "{\"format\": \"tandem-graph\", \"version\": 1, \"name\": \"count\", "
      "\"inputs\": [{\"name\": \"x\", " +
      type + ", \"requires_grad\": true}, {\"name\": \"y\", " + type +
      ", \"requires_grad\": true}], \"params\": [{\"name\": \"w\", " + type +
      "}], \"states\": [{\"name\": \"s\", " + type +
      ", \"init\": {\"kind\": \"constant\", \"value\": 1.0}}], \"nodes\": ["
      "{\"op\": \"add\", \"inputs\": [\"s\", \"s\"], \"outputs\": [\"t\"], "
      "\"no_grad\": true}, {\"op\": \"write\", \"inputs\": [\"t\", \"s\"]}, "
      "{\"op\": \"mul\", \"inputs\": [\"x\", \"t\"], \"outputs\": [\"xt\"]}, "
      "{\"op\": \"mul\", \"inputs\": [\"y\", \"w\"], \"outputs\": [\"yw\"]}, "
      "{\"op\": \"add\", \"inputs\": [\"xt\", \"yw\"], \"outputs\": [\"o\"]}], "
      "\"outputs\": [{\"name\": \"o\", \"value\": \"o\"}]}";
  Random random(11);
  Composition it;
  it.add(json, random);
  Value x = leafOf(randomTensor(random));
  Value first = it.call(0, x, x)[0], second = it.call(0, first, x)[0];
  Value loss = *ops::sum(second);
  auto linked = it.link(loss);
  ASSERT_TRUE(linked.ok()) << linked.status().message();
  ASSERT_EQ(linked->inputs.size(), 1u);
  std::string input = linked->inputs[0].name;
  runtime::Model one = compile(std::move(linked->module));
  ASSERT_TRUE(one.initialize(0).ok());
  ASSERT_TRUE(one.set("count.w", *it.models[0].get("w")).ok());
  std::vector<NamedValue> inputs = {{input, leafOf(x.tensor.detach())}};
  std::vector<NamedValue> params = {{"count.w", leafOf(*one.get("count.w"))}};
  std::vector<std::string> outputs = {"loss"};
  auto made = graph::call(one, inputs, params, outputs);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_LT(distance(loss.tensor, (*made)[0].tensor), kClose);
  EXPECT_EQ(one.get("count.s")->at(0), 4) << "2, then 4";
  EXPECT_EQ(it.models[0].get("s")->at(0), 4);
  ASSERT_TRUE(backward(std::vector<Root>{{loss.edge, {}}}).ok());
  ASSERT_TRUE(backward(std::vector<Root>{{(*made)[0].edge, {}}}).ok());
  EXPECT_LT(distance(gradientOf(x), gradientOf(inputs[0].value)), kClose);
  EXPECT_LT(distance(gradientOf(it.params[0]), gradientOf(params[0].value)),
            kClose);
}

TEST(Link, ReasonsAndErrorsNameWhatTheyAreAbout) {
  Random random(9);
  Composition it;
  std::string json = pieceJson(random, "piece");
  it.add(json, random);
  Value x = leafOf(randomTensor(random)), made = it.call(0, x, x)[0];
  Value loss = *ops::sum(made);
  auto message = [&] { return it.link(loss).status().message(); };
  // Hooks would not be called.
  uint64_t key =
      addPostHook(*made.edge.node, [](Gradients &, const Gradients &) {
        return Status::success();
      });
  EXPECT_NE(message().find("it has 1 hooks"), std::string::npos) << message();
  EXPECT_TRUE(removeHook(*made.edge.node, key));
  EXPECT_EQ(message(), "");
  // Another model of the same name.
  it.pieces[0].module = read(pieceJson(random, "piece"));
  EXPECT_NE(
      message().find("'piece.json' is another model than the one that ran"),
      std::string::npos)
      << message();
  // None.
  it.pieces.clear();
  EXPECT_NE(message().find("no model 'piece' is given"), std::string::npos)
      << message();
  // One too many.
  it.add(json, random);
  it.add(pieceJson(random, "other"), random);
  EXPECT_NE(message().find("'other.json': the graph calls no model 'other'"),
            std::string::npos)
      << message();
}

// An op that cannot give the shape that the file says ended the compiler.
TEST(Link, ShapesThatOpsCannotGiveAreRefused) {
  Random random(13);
  Composition it;
  it.add(pieceJson(random, "piece"), random);
  Value x = leafOf(randomTensor(random)), made = it.call(0, x, x)[0];
  std::vector<int64_t> flat = {9}, back = {3, 3}, wide = {2, 3, 3};
  Value reshaped = *ops::reshape(*ops::reshape(made, flat), back);
  Value loss = *ops::sum(*ops::expand(reshaped, wide));
  Edge edges[] = {loss.edge};
  for (const std::string name : {"sum", "expand", "reshape"}) {
    auto file = link::readGraphFile(asJson(edges), "graph.json");
    ASSERT_TRUE(file.ok()) << file.status().message();
    for (link::GraphNode &node : file->nodes)
      if (node.name == name)
        node.inputs[0].shape = {7};
    std::string said;
    mlir::ScopedDiagnosticHandler handler(&theContext(),
                                          [&](mlir::Diagnostic &diagnostic) {
                                            said += diagnostic.str();
                                            return mlir::success();
                                          });
    auto linked = link::linkGraph(*file, it.pieces, theContext());
    EXPECT_FALSE(linked.ok()) << name;
    EXPECT_NE(said.find("'" + name + "' (node "), std::string::npos) << said;
    EXPECT_NE(said.find("cannot give"), std::string::npos) << said;
  }
}

// One of two edges of a name was passed over.
TEST(Link, TwoEdgesOfOneNameAreRefused) {
  Random random(14);
  Composition it;
  it.add(pieceJson(random, "piece"), random);
  Value x = leafOf(randomTensor(random)), made = it.call(0, x, x)[0];
  Value loss = *ops::sum(made);
  Edge edges[] = {loss.edge};
  auto file = link::readGraphFile(asJson(edges), "graph.json");
  ASSERT_TRUE(file.ok());
  for (link::GraphNode &node : file->nodes)
    if (node.kind == "program") {
      ASSERT_GE(node.edges.size(), 2u);
      node.edges[1].name = node.edges[0].name;
    }
  std::string message =
      link::linkGraph(*file, it.pieces, theContext()).status().message();
  EXPECT_NE(message.find("two of its edges are called '"), std::string::npos)
      << message;
}

TEST(Link, FilesThatAreNoGraphsSayWhere) {
  auto message = [](const std::string &text) {
    return link::readGraphFile(text, "g.json").status().message();
  };
  std::string head = "{\"format\": \"tandem-run-time-graph\", \"version\": 1, ";
  EXPECT_NE(message("{").find("g.json:"), std::string::npos);
  EXPECT_NE(message("{\"format\": \"x\", \"version\": 2, \"nodes\": [], "
                    "\"roots\": []}")
                .find("expected 'version' to be 1"),
            std::string::npos);
  std::string wrong =
      message(head + "\"nodes\": [{\"id\": 0, \"name\": \"a\", \"kind\": "
                     "\"op\", \"inputs\": [], \"edges\": [{\"node\": 3, "
                     "\"input\": 0}]}], \"roots\": [{\"node\": 0, "
                     "\"input\": 1}]}");
  EXPECT_NE(wrong.find("/nodes/0/edges/0: expected a node below 1"),
            std::string::npos)
      << wrong;
  EXPECT_NE(wrong.find("/roots/0: expected an input below 0"),
            std::string::npos)
      << wrong;
  EXPECT_NE(message(head + "\"nodes\": [{\"id\": 0, \"name\": \"a\", "
                           "\"kind\": \"op\", \"inputs\": [{\"type\": "
                           "\"f32\", \"shape\": []}], \"edges\": [{\"node\": "
                           "0, \"input\": 0}]}], \"roots\": [{\"node\": 0, "
                           "\"input\": 0}]}")
                .find("no cycle"),
            std::string::npos);
}
