//===- MergedTest.cpp - what exporters merge, and what is trained ---------===//
//
// The models of make-merged-models, which PyTorch's exporter wrote, and such as
// others write.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/Import.h"
#include "compiler/import/onnx/OnnxFile.h"
#include "ir/Signature.h"
#include "tests/onnx/Models.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::onnx;
using namespace tandem::onnx::test;

namespace {

using Names = std::set<std::string>;

class Merged : public testing::Test {
protected:
  void import(const Model &model, const ImportOptions &options) {
    trained = fixed = states = {};
    made = importModel(model, "m.onnx", options, context);
    ASSERT_EQ(made.status().message(), "");
    auto func = made.module->lookupSymbol<mlir::func::FuncOp>("graph");
    for (unsigned i = 0; i < func.getNumArguments(); ++i) {
      RoleAttr role = roleOfArgument(func, i);
      std::string name = role.getName().str();
      if (role.getKind() == RoleKind::State)
        states.insert(name);
      if (role.getKind() == RoleKind::Param)
        (role.has("requires_grad") ? trained : fixed).insert(name);
    }
  }
  void import(const Model &model, const std::string &loss) {
    ImportOptions options;
    options.loss = loss;
    import(model, options);
  }
  Model fixture(const std::string &name) {
    auto model = readModelFile(TANDEM_ONNX_FIXTURES "/" + name);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return model ? *model : Model();
  }
  std::string notes() const {
    std::string text;
    for (const std::string &note : made.notes)
      text += note + "\n";
    return text;
  }
  bool says(const std::string &part) const {
    return notes().find(part) != std::string::npos;
  }

  mlir::MLIRContext context;
  Import made;
  Names trained, fixed, states;
};

const Names normTrained = {"0.weight", "0.bias", "1.weight", "1.bias",
                           "3.weight", "3.bias", "4.weight", "4.bias"};
const Names normStates = {"1.running_mean", "1.running_var", "4.running_mean",
                          "4.running_var"};

/// y = batchnorm(x) of [4, 2].
Model normalized(const std::vector<std::string> &operands) {
  Model model = empty();
  model.graph.inputs = {value("x", ElementKind::F32, {4, 2})};
  model.graph.outputs = {value("y", ElementKind::F32, {4, 2})};
  model.graph.nodes = {node("BatchNormalization", operands, {"y"})};
  return model;
}

// The weights of classes in a loss of the graph's own are no parameters.
TEST_F(Merged, ALossOfTheGraphKeepsWhatIsItsOwn) {
  Model model = empty();
  Graph &graph = model.graph;
  graph.inputs.push_back(value("labels", ElementKind::I64, {2}));
  graph.initializers = {floats("w", {3, 4}, std::vector<float>(12, 0.5f)),
                        floats("cw", {4}, {1, 2, 3, 4})};
  graph.nodes = {
      node("MatMul", {"x", "w"}, {"logits"}),
      node("SoftmaxCrossEntropyLoss", {"logits", "labels", "cw"}, {"loss"})};
  NamedType loss = value("loss", ElementKind::F32, {}),
            logits = value("logits", ElementKind::F32, {2, 4});
  for (const auto &outputs : {std::vector{loss, logits},
                              std::vector{logits, loss}, std::vector{loss}}) {
    graph.outputs = outputs;
    import(model, "loss");
    EXPECT_EQ(trained, Names{"w"});
    EXPECT_EQ(fixed, Names{"cw"});
    EXPECT_TRUE(says("they belong to the loss alone: 'cw'; --train='^(w|cw)$'"))
        << notes();
  }
  ImportOptions both;
  both.loss = "loss";
  both.train = "^(w|cw)$";
  import(model, both);
  EXPECT_EQ(trained, (Names{"w", "cw"}));

  // As other exporters write it.
  graph.nodes = {
      node("MatMul", {"x", "w"}, {"logits"}),
      node("Gather", {"cw", "labels"}, {"picked"}),
      node("ReduceMean", {"logits"}, {"mean"}, {integer("keepdims", 0)}),
      node("Mul", {"picked", "mean"}, {"shares"}),
      node("ReduceMean", {"shares"}, {"loss"}, {integer("keepdims", 0)})};
  graph.outputs = {loss, logits};
  import(model, "loss");
  EXPECT_EQ(trained, Names{"w"});
  // Nothing tells them apart.
  graph.outputs = {loss};
  import(model, "loss");
  EXPECT_EQ(trained, (Names{"w", "cw"}));
}

} // namespace

// The scale and the bias of a batch normalization that was not trained yet are
// equal to its running statistics: the exporter merges them, and they were
// states, overwritten by statistics and without a gradient.
TEST_F(Merged, AScaleThatIsARunningVarianceIsTrained) {
  import(fixture("batchnorm.onnx"), "cross_entropy:y,t");
  EXPECT_EQ(trained, normTrained);
  EXPECT_EQ(states, normStates);
  EXPECT_EQ(made.weights.size(), 12u);
  EXPECT_TRUE(says("split, since an exporter merges what is equal: "))
      << notes();
  EXPECT_TRUE(says("'4.running_var' and '1.weight'")) << notes();
  EXPECT_FALSE(says("trained as one")) << notes();
  // A loss that is an output of the graph trained nothing, and running
  // statistics stayed as they were without a word.
  import(fixture("batchnorm.onnx"), "y");
  EXPECT_EQ(trained, normTrained);
  EXPECT_EQ(states, normStates);
  EXPECT_TRUE(says("running statistics follow the batches")) << notes();
  // Without a loss the names are those of checkpoints too.
  import(fixture("batchnorm.onnx"), "");
  Names all = normTrained;
  all.insert(normStates.begin(), normStates.end());
  EXPECT_EQ(fixed, all);
}

TEST_F(Merged, OptionsSeeTheNamesThatWereMerged) {
  ImportOptions options;
  options.loss = "cross_entropy:y,t";
  options.freeze = "^4\\.";
  import(fixture("batchnorm.onnx"), options);
  EXPECT_EQ(fixed, (Names{"4.weight", "4.bias"}));
  EXPECT_EQ(states, normStates);
  options.freeze = "";
  options.train = "^4\\.weight$";
  import(fixture("batchnorm.onnx"), options);
  EXPECT_EQ(trained, Names{"4.weight"});
  options.train = "";
  options.keepEval = true;
  import(fixture("batchnorm.onnx"), options);
  EXPECT_EQ(trained, normTrained);
  EXPECT_EQ(fixed, normStates);
  EXPECT_EQ(states, Names{});
}

// Two normalizations that were not trained yet were trained as one, and no
// remark said so, though the page promised it. A head's one bias stayed.
TEST_F(Merged, NormalizationsOfOneSizeAreTwo) {
  import(fixture("layernorm.onnx"), "mse:y,t");
  EXPECT_EQ(trained,
            (Names{"0.weight", "0.bias", "1.weight", "1.bias", "2.weight",
                   "2.bias", "3.weight", "3.bias", "5.weight", "5.bias"}));
  EXPECT_TRUE(says("'3.weight' and '1.weight'")) << notes();
  EXPECT_FALSE(says("trained as one")) << notes();
}

// Weights that are tied are read by several nodes, without an Identity.
TEST_F(Merged, TiedWeightsStayOne) {
  Model model = fixture("tied.onnx");
  import(model, "cross_entropy:y,t");
  EXPECT_EQ(trained, Names{"embedding.weight"});
  EXPECT_FALSE(says("split")) << notes();
  model = empty();
  model.graph.initializers = {floats("w", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})};
  model.graph.nodes = {node("MatMul", {"x", "w"}, {"a"}),
                       node("MatMul", {"a", "w"}, {"y"})};
  import(model, "mse:y,t");
  EXPECT_TRUE(says("trained as one, since several nodes of one operator read "
                   "them: 'w'"))
      << notes();
}

// Every LSTM was told to be trained as one: its gates are slices of one weight.
TEST_F(Merged, GatesOfALayerAreNotSeveralReaders) {
  import(fixture("lstm.onnx"), "mse:y,t");
  EXPECT_EQ(trained, (Names{"l.weight_ih_l0", "l.weight_hh_l0", "l.bias_ih_l0",
                            "l.bias_hh_l0"}));
  EXPECT_FALSE(says("trained as one")) << notes();
}

// One initializer for two roles, as exporters that optimize leave it.
TEST_F(Merged, AnInitializerInTwoRolesIsTwo) {
  Model model = normalized({"x", "one", "zero", "zero", "one"});
  model.graph.initializers = {floats("one", {2}, {1, 1}),
                              floats("zero", {2}, {0, 0})};
  import(model, "mse:y,t");
  EXPECT_EQ(trained, (Names{"one", "zero"}));
  EXPECT_EQ(states, (Names{"one.running", "zero.running"}));
  model = normalized({"x", "bn.running_var", "b", "m", "bn.running_var"});
  model.graph.initializers = {floats("bn.running_var", {2}, {1, 1}),
                              floats("b", {2}, {0, 0}),
                              floats("m", {2}, {0, 0})};
  import(model, "mse:y,t");
  EXPECT_EQ(trained, (Names{"bn.running_var.trained", "b"}));
  EXPECT_EQ(states, (Names{"bn.running_var", "m"}));
  EXPECT_TRUE(says("'bn.running_var.trained' and 'bn.running_var'")) << notes();
}

// An Identity alone renames nothing.
TEST_F(Merged, AnIdentityThatSharesNothingIsNoVariable) {
  Model model = normalized({"x", "s", "b", "m2", "v"});
  for (const char *name : {"s", "b", "m", "v"})
    model.graph.initializers.push_back(floats(name, {2}, {1, 2}));
  model.graph.nodes.push_back(node("Identity", {"m"}, {"m2"}));
  ImportOptions options;
  options.loss = "mse:y,t";
  options.keepEval = true;
  import(model, options);
  EXPECT_EQ(trained, (Names{"s", "b"}));
  EXPECT_EQ(fixed, (Names{"m", "v"}));
  EXPECT_FALSE(says("split")) << notes();
}

// The advice was --train=., which trains the numbers of formulas: the root of 2
// in a GELU.
TEST_F(Merged, NumbersOfFormulasAreNotTrained) {
  Model model = empty();
  model.graph.initializers = {floats("fc.weight", {2, 3}, {1, 2, 3, 4, 5, 6}),
                              floats("fc.scale", {}, {2}),
                              floats("head.bias", {1}, {2}),
                              floats("onnx::Add_7", {1}, {2})};
  model.graph.nodes = {node("Constant", {}, {"/act/Constant_output_0"},
                            {tensorOf("value", floats("", {}, {1.4142f}))}),
                       node("Add", {"x", "fc.weight"}, {"a"}),
                       node("Div", {"a", "/act/Constant_output_0"}, {"b"}),
                       node("Mul", {"b", "fc.scale"}, {"c"}),
                       node("Add", {"c", "head.bias"}, {"d"}),
                       node("Add", {"d", "onnx::Add_7"}, {"y"})};
  ImportOptions options;
  options.loss = "mse:y,t";
  import(model, options);
  EXPECT_EQ(trained, (Names{"fc.weight", "head.bias"}));
  EXPECT_TRUE(says("not trained, since they are single numbers: 'fc.scale', "
                   "'onnx::Add_7'; --train='^(fc\\.weight|head\\.bias|"
                   "fc\\.scale)$' trains them too\n"))
      << notes();
  options.train = ".";
  import(model, options);
  EXPECT_EQ(trained,
            (Names{"fc.weight", "fc.scale", "head.bias", "onnx::Add_7"}));
}

// Buffers were trained as parameters, and only a number said so.
TEST_F(Merged, NamesOfWhatIsTrainedAreSaid) {
  Model model = empty();
  std::string last = "x";
  for (int i = 0; i < 14; ++i) {
    std::string name = "w" + std::to_string(i), out = "v" + std::to_string(i);
    model.graph.initializers.push_back(floats(name, {3}, {1, 2, 3}));
    model.graph.nodes.push_back(
        node("Add", {last, name}, {i == 13 ? "y" : out}));
    last = out;
  }
  import(model, "mse:y,t");
  EXPECT_TRUE(says("trains 14 initializers of 42 numbers: 'w0', 'w1', 'w2', "
                   "'w3', 'w4', 'w5', 'w6', 'w7', 'w8', 'w9', 'w10', 'w11' and "
                   "2 more\n"))
      << notes();
}

// --freeze of running statistics, or of what --train does not name, passed and
// did nothing.
TEST_F(Merged, ExpressionsWithoutAnEffectAreMistakes) {
  auto refused = [&](const std::string &freeze, const std::string &train) {
    ImportOptions options;
    options.loss = "cross_entropy:y,t";
    options.freeze = freeze;
    options.train = train;
    Status status =
        importModel(fixture("batchnorm.onnx"), "m.onnx", options, context)
            .status();
    EXPECT_EQ(status.code(), Code::Usage);
    return status.message();
  };
  EXPECT_EQ(refused("running", ""),
            "--freeze=running: 'running' matches running statistics alone "
            "('1.running_mean', '1.running_var', '4.running_mean', "
            "'4.running_var'), which no gradient trains; --keep-eval leaves "
            "them as they are");
  EXPECT_EQ(
      refused("^0", "^3"),
      "--freeze=^0: '^0' has no effect: --train=^3 trains what it matches "
      "and nothing else; --keep-eval leaves running statistics and "
      "dropout as in inference");
}

// Losses of what computes half of the loss itself were silently wrong.
TEST_F(Merged, ALossOfProbabilitiesIsSaid) {
  auto said = [&](const std::string &op, const std::string &kind) {
    Model model = empty();
    model.graph.initializers = {floats("w", {2, 3}, {1, 2, 3, 4, 5, 6})};
    model.graph.nodes = {node("Add", {"x", "w"}, {"a"}), node(op, {"a"}, {"b"}),
                         node("Identity", {"b"}, {"y"})};
    import(model, kind + ":y,t");
    return says("comes out of a " + op);
  };
  EXPECT_TRUE(said("Softmax", "cross_entropy"));
  EXPECT_TRUE(says("--loss=cross_entropy:y,t: 'y' comes out of a Softmax, but "
                   "cross_entropy takes logits: use the input of the Softmax"))
      << notes();
  EXPECT_TRUE(said("Softmax", "nll"));
  EXPECT_TRUE(said("Softmax", "kl"));
  EXPECT_TRUE(said("Sigmoid", "bce_with_logits"));
  EXPECT_FALSE(said("LogSoftmax", "nll"));
  EXPECT_FALSE(said("Sigmoid", "bce"));
  EXPECT_FALSE(said("Sigmoid", "mse"));
  EXPECT_FALSE(said("Relu", "cross_entropy"));
}

// So were losses of probabilities of what is none.
TEST_F(Merged, ALossOfLogitsIsSaid) {
  auto said = [&](const std::string &kind, const std::string &use) {
    Model model = empty();
    model.graph.initializers = {floats("w", {2, 3}, {1, 2, 3, 4, 5, 6})};
    model.graph.nodes = {node("Add", {"x", "w"}, {"a"}),
                         node("Identity", {"a"}, {"y"})};
    import(model, kind + ":y,t");
    return says("comes out of an Add, but " + kind) && says("use " + use);
  };
  EXPECT_TRUE(said("bce", "bce_with_logits")) << notes();
  EXPECT_TRUE(said("nll", "cross_entropy")) << notes();
  EXPECT_TRUE(said("kl", "a LogSoftmax of it")) << notes();
}

// nll left labels of -100 out, and cross_entropy refused them.
TEST_F(Merged, BothLossesOfClassesIgnoreTheLabelOfPyTorch) {
  Model model = empty();
  model.graph.initializers = {floats("w", {2, 3}, {1, 2, 3, 4, 5, 6})};
  model.graph.nodes = {node("Add", {"x", "w"}, {"y"})};
  import(model, "cross_entropy:y,t");
  std::string text;
  llvm::raw_string_ostream(text) << *made.module;
  EXPECT_NE(text.find("ignore_index = -100"), std::string::npos) << text;
}
