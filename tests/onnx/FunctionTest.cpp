//===- FunctionTest.cpp - functions of a model, and newer operator sets ---===//
#include "compiler/import/onnx/Import.h"
#include "tests/onnx/Models.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::onnx;
using namespace tandem::onnx::test;

namespace {

class OnnxFunctions : public testing::Test {
protected:
  /// The module as text, or what is wrong with the model.
  std::string run(const Model &model) {
    Import made = importModel(model, "small.onnx", {}, context);
    if (!made.module)
      return made.status().message();
    std::string text;
    llvm::raw_string_ostream(text) << *made.module;
    return text;
  }
  void expectIn(const std::string &part, const Model &model) {
    std::string got = run(model);
    EXPECT_NE(got.find(part), std::string::npos)
        << "expected: " << part << "\ngot: " << got;
  }

  mlir::MLIRContext context;
};

/// The attribute `name` of a body's node, which stands for one of the call.
Attribute standsFor(const std::string &name, const std::string &of) {
  Attribute made;
  made.name = name;
  made.reference = of;
  return made;
}

FunctionData function(const std::string &name, std::vector<NodeData> nodes) {
  FunctionData made;
  made.domain = "local";
  made.name = name;
  made.inputs = {"a"};
  made.outputs = {"b"};
  made.nodes = std::move(nodes);
  made.opsets = {{"", 17}, {"local", 1}};
  return made;
}

NodeData call(const std::string &name, const std::string &from,
              const std::string &to, std::vector<Attribute> attributes = {}) {
  NodeData made = node(name, {from}, {to}, std::move(attributes));
  made.domain = "local";
  return made;
}

Model calling(NodeData node, std::vector<FunctionData> functions) {
  Model model = empty();
  model.opsets["local"] = 1;
  model.graph.nodes = {std::move(node)};
  model.functions = std::move(functions);
  return model;
}

/// A graph of one node for the attribute of an If.
Attribute branch(const std::string &name, NodeData inside) {
  auto graph = std::make_shared<Graph>();
  graph->outputs = {value(inside.outputs[0], ElementKind::F32, {2, 3})};
  graph->nodes = {std::move(inside)};
  Attribute made;
  made.name = name;
  made.form = Attribute::Form::Graph;
  made.graphs = {graph};
  return made;
}

} // namespace

// Defaults of a function's attributes were not read, and the attribute was left
// out of the node that refers to it.
TEST_F(OnnxFunctions, AttributesHaveDefaults) {
  FunctionData leaky = function("Leaky", {node("LeakyRelu", {"a"}, {"b"},
                                               {standsFor("alpha", "slope")})});
  leaky.defaults = {number("slope", 0.25F)};
  expectIn("2.500000e-01", calling(call("Leaky", "x", "y"), {leaky}));
  expectIn(
      "1.250000e-01",
      calling(call("Leaky", "x", "y", {number("slope", 0.125F)}), {leaky}));
}

// References in graphs of a body's nodes were taken for attributes without a
// value.
TEST_F(OnnxFunctions, AttributesReachIntoGraphs) {
  Model model = calling(
      call("Choose", "x", "y", {number("slope", 0.125F)}),
      {function(
          "Choose",
          {node("ReduceMax", {"a"}, {"m"}, {integer("keepdims", 0)}),
           node("Greater", {"m", "m"}, {"c"}),
           node("If", {"c"}, {"b"},
                {branch("then_branch", node("LeakyRelu", {"a"}, {"t"},
                                            {standsFor("alpha", "slope")})),
                 branch("else_branch", node("Identity", {"a"}, {"e"}))})})});
  expectIn("1.250000e-01", model);
}

TEST_F(OnnxFunctions, CallOthersAndPassAttributesOn) {
  FunctionData inner = function("Inner", {node("LeakyRelu", {"a"}, {"b"},
                                               {standsFor("alpha", "slope")})});
  FunctionData outer =
      function("Outer", {call("Inner", "a", "h", {standsFor("slope", "steep")}),
                         call("Inner", "h", "b", {number("slope", 0.75F)})});
  Model model = calling(call("Outer", "x", "y", {number("steep", 0.125F)}),
                        {outer, inner});
  expectIn("1.250000e-01", model);
  expectIn("7.500000e-01", model);
}

// All functions of a name were one.
TEST_F(OnnxFunctions, OfOneNameAreToldApartByOverload) {
  FunctionData up = function("F", {node("Exp", {"a"}, {"b"})});
  FunctionData down = function("F", {node("Neg", {"a"}, {"b"})});
  up.overload = "up";
  down.overload = "down";
  NodeData f = call("F", "x", "y");
  f.overload = "down";
  expectIn("tandem.neg", calling(f, {up, down}));
  f.overload = "up";
  expectIn("tandem.exp", calling(f, {up, down}));
  f.overload = "";
  expectIn("unsupported: the operator 'F' of local", calling(f, {up, down}));
}

TEST_F(OnnxFunctions, DoNotCallThemselves) {
  FunctionData a = function("A", {call("B", "a", "h"), call("B", "h", "b")});
  FunctionData b = function("B", {call("A", "a", "h"), call("A", "h", "b")});
  expectIn("expected functions that do not call themselves",
           calling(call("A", "x", "y"), {a, b}));
}

TEST_F(OnnxFunctions, TakePrecedenceOverOperators) {
  Model model = empty();
  FunctionData relu = function("Relu", {node("Neg", {"a"}, {"b"})});
  relu.domain = "";
  model.functions = {relu};
  model.graph.nodes = {node("Relu", {"x"}, {"y"})};
  expectIn("tandem.neg", model);
}

//===----------------------------------------------------------------------===//
// What newer sets brought
//===----------------------------------------------------------------------===//

TEST_F(OnnxFunctions, OperatorSetsUpToTheNewest) {
  for (int64_t opset : {22, 23, 24, 25, 26, 27, 28}) {
    Model model = empty(opset);
    model.graph.nodes = {node("Relu", {"x"}, {"y"})};
    expectIn("tandem.relu", model);
  }
  Model model = empty(29);
  model.graph.nodes = {node("Relu", {"x"}, {"y"})};
  expectIn("unsupported: version 29 of the operators; this one is known from 1 "
           "to 28",
           model);
}

TEST_F(OnnxFunctions, OperatorsStartWithTheirSet) {
  Model model = empty(22);
  model.graph.nodes = {node("Swish", {"x"}, {"y"})};
  model.opsets[""] = 23;
  expectIn("this one is known from 24", model);
}

// Numbers of few bits are those of a wider type, in what converts them.
TEST_F(OnnxFunctions, NarrowTypesAreCarriedByWiderOnes) {
  for (auto [kind, carrier] : {std::pair(ElementKind::I4, "2x3xi8"),
                               {ElementKind::U2, "2x3xui8"},
                               {ElementKind::F4E2M1, "2x3xf32"},
                               {ElementKind::F8E4M3FNUZ, "2x3xf32"}}) {
    Model model = empty(25);
    model.graph.inputs = {value("x", kind, {2, 3})};
    model.graph.nodes = {node("Cast", {"x"}, {"y"}, {integer("to", 10)})};
    expectIn(carrier, model);
    // What calculates does not know them.
    model.graph.nodes = {node("Add", {"x", "x"}, {"y"})};
    expectIn("unsupported: elements of type " + spelling(kind), model);
    model.graph.nodes = {node("Transpose", {"x"}, {"t"}),
                         node("Add", {"t", "t"}, {"y"})};
    expectIn("unsupported: elements of type " + spelling(kind), model);
  }
  // int4: 1, -1, -8; the first element has the low bits.
  auto w = std::make_shared<TensorData>();
  w->name = "w";
  w->kind = ElementKind::I4;
  w->shape = {3};
  w->bytes = "\xf1\x08";
  Model model = empty(25);
  model.graph.initializers = {w};
  model.graph.nodes = {node("Cast", {"w"}, {"y"}, {integer("to", 6)})};
  expectIn("[1, -1, -8]", model);
}

TEST_F(OnnxFunctions, OtherTypesAreRefusedByName) {
  for (auto [kind, name] : {std::pair(ElementKind::F8E8M0, "float8e8m0"),
                            {ElementKind::Complex64, "complex64"},
                            {static_cast<ElementKind>(99), "number 99"}}) {
    Model model = empty(25);
    model.graph.inputs = {value("x", kind, {2, 3})};
    model.graph.nodes = {node("Cast", {"x"}, {"y"}, {integer("to", 1)})};
    expectIn("input 'x': unsupported: elements of type " + std::string(name),
             model);
    // Of an initializer it is said where it is used.
    auto w = std::make_shared<TensorData>();
    w->name = "w";
    w->kind = kind;
    w->shape = {2};
    w->bytes = "\x12\x34";
    model = empty(25);
    model.graph.initializers = {w};
    model.graph.nodes = {node("Cast", {"w"}, {"y"}, {integer("to", 1)})};
    expectIn(name, model);
  }
}

TEST_F(OnnxFunctions, QuantizedWeightsAreRefusedInWords) {
  Model model = empty();
  model.opsets["com.microsoft"] = 1;
  NodeData product = node("MatMulNBits", {"x", "x", "x"}, {"y"},
                          {integer("bits", 4), integer("K", 3)});
  product.domain = "com.microsoft";
  model.graph.nodes = {product};
  expectIn(
      "unsupported: weights of 4 bits, which cannot be trained: export the "
      "model before it is quantized",
      model);
}

TEST_F(OnnxFunctions, ACacheOfKeysIsRefusedByGroupQueryAttention) {
  Model model = empty();
  model.opsets["com.microsoft"] = 1;
  model.graph.inputs = {value("q", ElementKind::F32, {1, 2, 8}),
                        value("k", ElementKind::F32, {1, 2, 8}),
                        value("past", ElementKind::F32, {1, 1, 4, 8})};
  NodeData attention =
      node("GroupQueryAttention", {"q", "k", "k", "past", "past"}, {"y"},
           {integer("num_heads", 1), integer("kv_num_heads", 1)});
  attention.domain = "com.microsoft";
  model.graph.nodes = {attention};
  expectIn("unsupported: a cache of past keys and values", model);
}

TEST_F(OnnxFunctions, MoreKeysThanQueriesAreRefusedByCausalAttention) {
  for (int64_t keys : {2, 3}) {
    Model model = empty();
    model.opsets["com.microsoft"] = 1;
    model.graph.inputs = {value("q", ElementKind::F32, {1, 2, 8}),
                          value("k", ElementKind::F32, {1, keys, 8})};
    model.graph.outputs = {value("y", ElementKind::F32, {1, 2, 8})};
    NodeData attention =
        node("MultiHeadAttention", {"q", "k", "k"}, {"y"},
             {integer("num_heads", 1), integer("unidirectional", 1)});
    attention.domain = "com.microsoft";
    model.graph.nodes = {attention};
    expectIn(keys > 2
                 ? "unsupported: 'unidirectional' with more keys than queries"
                 : "#tandem.role<output \"y\">",
             model);
  }
}
