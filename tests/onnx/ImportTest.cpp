//===- ImportTest.cpp - ONNX graphs become modules, or problems -----------===//
#include "compiler/import/onnx/Import.h"
#include "ir/Where.h"
#include "tests/onnx/Models.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::onnx;
using namespace tandem::onnx::test;

namespace {

class Importing : public testing::Test {
protected:
  Import run(const Model &model, const ImportOptions &options = {}) {
    return importModel(model, "small.onnx", options, context);
  }
  std::string text(const Model &model, const ImportOptions &options = {}) {
    Import made = run(model, options);
    EXPECT_EQ(made.status().message(), "");
    std::string text;
    if (made.module)
      llvm::raw_string_ostream(text) << *made.module;
    return text;
  }
  void expectText(const Model &model, const std::vector<std::string> &parts,
                  const ImportOptions &options = {}) {
    std::string got = text(model, options);
    for (const std::string &part : parts)
      EXPECT_NE(got.find(part), std::string::npos) << part << "\n" << got;
  }
  void expectProblem(const Model &model, Code code, const std::string &part,
                     const ImportOptions &options = {}) {
    Import made = run(model, options);
    EXPECT_FALSE(made.module);
    EXPECT_EQ(made.status().code(), code);
    EXPECT_NE(made.status().message().find(part), std::string::npos)
        << "expected: " << part << "\ngot: " << made.status().message();
  }

  mlir::MLIRContext context;
};

/// y = x + w, and a loss can be put on it.
Model linear() {
  Model model = empty();
  model.graph.initializers = {floats("w", {2, 3}, {1, 2, 3, 4, 5, 6})};
  model.graph.nodes = {node("Add", {"x", "w"}, {"y"})};
  return model;
}

} // namespace

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

TEST_F(Importing, AnInitializerIsAParameterWithItsValue) {
  Import made = run(linear());
  ASSERT_TRUE(made.module);
  EXPECT_EQ(made.weights.size(), 1u);
  EXPECT_EQ(made.weights.at("w")->elements(), 6);
  expectText(linear(),
             {"#tandem.role<input \"x\">", "#tandem.role<param \"w\">",
              "#tandem.role<output \"y\">"});
}

TEST_F(Importing, AnInitializerAmongTheInputsIsNoInput) {
  Model model = linear();
  model.irVersion = 3;
  model.graph.inputs.push_back(value("w", ElementKind::F32, {2, 3}));
  std::string got = text(model);
  EXPECT_EQ(got.find("input \"w\""), std::string::npos) << got;
}

TEST_F(Importing, WithALossFloatsWithSeveralElementsAreTrained) {
  Model model = linear();
  model.graph.initializers.push_back(floats("scalar", {}, {2}));
  model.graph.nodes.push_back(node("Mul", {"y", "scalar"}, {"z"}));
  model.graph.outputs[0].name = "z";
  ImportOptions options;
  options.loss = "mse:z,target";
  expectText(model,
             {"#tandem.role<param \"w\" {requires_grad}>",
              "#tandem.role<input \"target\">",
              "#tandem.role<output \"loss\">"},
             options);
  EXPECT_EQ(text(model, options).find("\"scalar\""), std::string::npos);
  options.freeze = "^scalar$";
  expectText(model, {"#tandem.role<param \"w\" {requires_grad}>"}, options);
  options.freeze = "";
  options.train = "scal";
  expectText(model,
             {"#tandem.role<param \"scalar\" {requires_grad}>",
              "#tandem.role<param \"w\">"},
             options);
}

TEST_F(Importing, LabelsOfClassesSayHowManyThereAre) {
  Model model = linear();
  ImportOptions options;
  options.loss = "cross_entropy:y,labels";
  expectText(model, {"tensor<2xi64>", "high = 3", "tandem.cross_entropy"},
             options);
}

TEST_F(Importing, WhatIsWrongWithALossIsSaid) {
  ImportOptions options;
  options.loss = "squares:y,t";
  expectProblem(linear(), Code::Usage, "cross_entropy", options);
  options.loss = "mse:none,t";
  expectProblem(linear(), Code::Usage, "no value 'none'", options);
  options.loss = "mse:y,w2";
  Model model = linear();
  model.graph.outputs[0].name = "y";
  model.graph.outputs.push_back(value("loss", ElementKind::F32, {2, 3}));
  model.graph.nodes.push_back(node("Identity", {"y"}, {"loss"}));
  expectProblem(model, Code::Failed, "another name", options);
}

// Linear layers of [N, time, classes] trained over the wrong axis in silence.
TEST_F(Importing, ClassesOfMoreDimensionsAreSaid) {
  Model model = empty();
  model.graph.inputs = {value("x", ElementKind::F32, {4, 32, 128})};
  model.graph.outputs = {value("y", ElementKind::F32, {4, 32, 128})};
  model.graph.initializers = {floats("w", {2}, {1, 2})};
  model.graph.nodes = {node("Identity", {"x"}, {"y"})};
  ImportOptions options;
  options.loss = "cross_entropy:y,labels";
  Import made = run(model, options);
  ASSERT_FALSE(made.notes.empty());
  EXPECT_EQ(made.notes[0],
            "--loss=cross_entropy:y,labels: 'y' [4, 32, 128] has 32 classes, "
            "along dimension 1, and a label for each of [4, 128]; where the "
            "classes are the last dimension (128), as in language models, the "
            "model has to transpose it before it gives it");
  options.loss = "mse:y,labels";
  EXPECT_EQ(run(model, options).notes.size(), 1u);
}

// What is trained was not said, and a temperature of one number is not.
TEST_F(Importing, NotesSayWhatIsTrained) {
  Model model = linear();
  model.graph.initializers.push_back(floats("temperature", {}, {2}));
  model.graph.nodes.push_back(node("Mul", {"y", "temperature"}, {"z"}));
  model.graph.outputs[0].name = "z";
  ImportOptions options;
  options.loss = "mse:z,target";
  Import made = run(model, options);
  ASSERT_EQ(made.notes.size(), 2u);
  EXPECT_EQ(made.notes[0], "trains 1 initializer of 6 numbers: 'w'");
  EXPECT_EQ(made.notes[1],
            "not trained, since they are single numbers: 'temperature'; "
            "--train='^(w|temperature)$' trains them too");
  options.train = "^(w|temperature)$";
  made = run(model, options);
  ASSERT_EQ(made.notes.size(), 1u);
  EXPECT_EQ(made.notes[0],
            "trains 2 initializers of 7 numbers: 'w', 'temperature'");
  EXPECT_TRUE(run(model).notes.empty());
}

// PyTorch's newer exporter makes an initializer of a causal mask, and a
// transposed copy of a weight: both were trained in silence.
TEST_F(Importing, WhatAnExporterMadeIsNamed) {
  Model model = empty();
  model.graph.initializers = {
      floats("w", {3, 2}, {1, 2, 3, 4, 5, 6}),
      floats("val_8", {2, 3}, {1, 3, 5, 2, 4, 6}),
      floats("val_49", {2, 3}, {0, -3.4e38f, -3.4e38f, 0, 0, -3.4e38f}),
      floats("ones", {3, 2}, {1, 1, 1, 1, 1, 1}),
      floats("more_ones", {2, 3}, {1, 1, 1, 1, 1, 1}),
      tensor<uint16_t>("half", ElementKind::F16, {2, 3},
                       {0, 0xfc00, 0x7bff, 0, 0, 0}),
      floats("val_8b", {3}, {1, 2, 1e29f})};
  model.graph.nodes = {
      node("MatMul", {"x", "w"}, {"a"}),
      node("MatMul", {"a", "val_8"}, {"b"}),
      node("Add", {"b", "val_49"}, {"c"}),
      node("MatMul", {"c", "ones"}, {"d"}),
      node("MatMul", {"d", "more_ones"}, {"e"}),
      node("Cast", {"half"}, {"f"}, {integer("to", 1)}),
      node("Add", {"e", "f"}, {"g"}),
      node("Add", {"g", "val_8b"}, {"y"}),
  };
  ImportOptions options;
  options.loss = "mse:y,t";
  Import made = run(model, options);
  EXPECT_EQ(made.status().message(), "");
  EXPECT_EQ(made.weights.count("val_49") + made.weights.count("half"), 0u);
  std::vector<std::string> expected = {
      "trains 5 initializers of 27 numbers: 'w', 'val_8', 'ones', "
      "'more_ones', 'val_8b'",
      "not trained, since they are masks by their values (infinite, or of 1e30 "
      "and beyond): 'half', 'val_49'; --train=REGEX trains all that it "
      "matches, and no others",
      "equal when one is transposed: 'w' and 'val_8'; they are trained apart; "
      "export with optimize=False to keep them one",
      "trained under names that the exporter made: 'val_8'; they will not fit "
      "state_dict(); export with optimize=False to keep the names"};
  EXPECT_EQ(made.notes, expected);
  // Where it is asked for, a mask is trained.
  options.train = "val_49|^w$";
  made = run(model, options);
  EXPECT_EQ(made.weights.count("val_49"), 1u);
  ASSERT_GE(made.notes.size(), 2u);
  EXPECT_EQ(made.notes[1],
            "trained, since --train matches them, though they are masks by "
            "their values (infinite, or of 1e30 and beyond): 'val_49'");
}

// Expressions and names that matched nothing passed, so that a typo in --freeze
// trained everything.
TEST_F(Importing, OptionsThatMatchNothingAreMistakesOfUsage) {
  Model model = linear();
  model.graph.inputs[0].type.shape[0] = {-1, "batch"};
  ImportOptions options;
  options.dims["batch"] = 2;
  options.loss = "mse:y,t";
  auto expect = [&](const std::string &part) {
    expectProblem(model, Code::Usage, part, options);
  };
  options.freeze = "nothing";
  expect("--freeze=nothing: 'nothing' matches no initializer; the floats are "
         "'w'");
  model.graph.initializers.push_back(floats("conv1.weight", {2}, {1, 2}));
  options.freeze = "^w$|conv1.weigth";
  expect("--freeze=^w$|conv1.weigth: 'conv1.weigth' matches no initializer "
         "(did you mean 'conv1.weight'?)");
  // Not an alternative of the whole.
  options.freeze = "(a|w)$|[|]|c\\|d";
  expect("'[|]' matches no initializer");
  expect("'c\\|d' matches no initializer");
  options.freeze = "";
  options.train = "nothing";
  expect("--train=nothing: 'nothing' matches no initializer");
  options.train = options.freeze = "^w$";
  expect("--freeze=^w$ and --train=^w$: nothing is left to train");
  options.train = "";
  expect("--freeze=^w$: nothing is left to train");
  options.freeze = "";
  options.dims["bacth"] = 3;
  expect("--dim=bacth: the model has no dimension of this name (did you mean "
         "'batch'?); there are 'batch'");
  options.dims.erase("bacth");
  options.values["z"] = ints("z", {1});
  expect("--value=z: the model has no input of this name; there are 'x'");
  options.values.clear();
  options.shapes["x"] = {4, 3};
  expect("--shape=x: gives 'batch' the size 4, but --dim=batch says 2");
}

TEST_F(Importing, ExpressionsHaveToBeSome) {
  ImportOptions options;
  EXPECT_TRUE(checkOptions(options).ok());
  options.freeze = "*";
  options.train = "(";
  Status status = checkOptions(options);
  EXPECT_EQ(status.code(), Code::Usage);
  for (const char *part : {"--freeze to be a regular expression, but got '*'",
                           "--train to be a regular expression, but got '('"})
    EXPECT_NE(status.message().find(part), std::string::npos)
        << status.message();
}

// Every op of a model stood at small.onnx:0:0.
TEST_F(Importing, PlacesAreNodes) {
  Model model = linear();
  model.graph.nodes.push_back(node("Relu", {"y"}, {"z"}));
  Import made = run(model);
  ASSERT_TRUE(made.module);
  std::string places;
  made.module->walk([&](mlir::Operation *op) {
    if (op->getNumResults() == 1)
      places += whereIs(op) + "\n";
  });
  EXPECT_NE(places.find("'tandem.add' at small.onnx, node 1 'make_y' (Add)"),
            std::string::npos)
      << places;
  EXPECT_NE(places.find("at small.onnx, node 2 'make_z' (Relu)"),
            std::string::npos)
      << places;
}

// The running variance was the batch's, so that weights that went back to
// PyTorch were off by (n - 1) / n.
TEST_F(Importing, RunningVariancesAreAsPyTorchEstimatesThem) {
  Model model = empty();
  model.graph.inputs = {value("x", ElementKind::F32, {4, 2})};
  model.graph.outputs = {value("y", ElementKind::F32, {4, 2})};
  for (const char *name : {"scale", "bias", "mean", "variance"})
    model.graph.initializers.push_back(floats(name, {2}, {1, 2}));
  model.graph.nodes = {node("BatchNormalization",
                            {"x", "scale", "bias", "mean", "variance"}, {"y"})};
  ImportOptions options;
  options.loss = "mse:y,t";
  // 4 values a channel: 4 / 3.
  expectText(model, {"dense<1.33333337> : tensor<2xf32>"}, options);
  Import made = run(model, options);
  ASSERT_EQ(made.notes.size(), 1u);
  EXPECT_EQ(made.notes[0], "trains 2 initializers of 4 numbers: 'scale', "
                           "'bias'; 2 running statistics follow the batches");
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

TEST_F(Importing, SymbolicSizesAreGiven) {
  Model model = empty();
  model.graph.inputs[0].type.shape[0] = {-1, "batch"};
  model.graph.nodes = {node("Identity", {"x"}, {"y"})};
  // Was exit code 1, though an option is missing.
  expectProblem(model, Code::Usage, "--dim=batch=N");
  ImportOptions options;
  options.dims["batch"] = 8;
  expectText(model, {"tensor<8x3xf32>"}, options);
  options = {};
  options.shapes["x"] = {5, 3};
  expectText(model, {"tensor<5x3xf32>"}, options);
  options.shapes["x"] = {5, 4};
  expectProblem(model, Code::Usage, "not what the model declares", options);
  options = {};
  options.shapes["nothing"] = {5};
  options.dims["batch"] = 8;
  expectProblem(model, Code::Usage, "no input of this name", options);
  model.graph.inputs[0].type.hasShape = false;
  expectProblem(model, Code::Usage, "--shape=x=2x3");
}

TEST_F(Importing, AValueThatDecidesAShapeIsGiven) {
  Model model = empty();
  model.graph.inputs.push_back(value("shape", ElementKind::I64, {2}));
  model.graph.nodes = {node("ConstantOfShape", {"shape"}, {"z"}),
                       node("Add", {"x", "z"}, {"y"})};
  Import made = run(model);
  EXPECT_EQ(made.neededValues, std::set<std::string>{"shape"});
  expectProblem(model, Code::Unsupported, "--value=shape=");
  ImportOptions options;
  options.values["shape"] = ints("shape", {2, 3});
  std::string got = text(model, options);
  EXPECT_EQ(got.find("\"shape\""), std::string::npos) << got;
  options.values["shape"] = floats("shape", {2}, {2, 3});
  expectProblem(model, Code::Usage, "expected a value of int64", options);
}

TEST_F(Importing, ShapesThatFollowFromShapesAreKnown) {
  Model model = empty();
  model.graph.nodes = {node("Shape", {"x"}, {"s"}),
                       node("Cast", {"s"}, {"f"}, {integer("to", 1)}),
                       node("Cast", {"f"}, {"i"}, {integer("to", 7)}),
                       node("ConstantOfShape", {"i"}, {"z"},
                            {tensorOf("value", floats("", {1}, {3}))}),
                       node("Add", {"x", "z"}, {"y"})};
  expectText(model, {"dense<3.000000e+00> : tensor<2x3xf32>"});
}

TEST_F(Importing, AnInitializerThatDecidesAShapeIsNoParameter) {
  // Found out after it was used as a tensor, too.
  Model model = empty();
  model.graph.initializers = {floats("w", {2}, {2, 3})};
  model.graph.nodes = {node("Add", {"x", "x"}, {"d"}),
                       node("Identity", {"w"}, {"out"}),
                       node("Mul", {"w", "w"}, {"w2"}),
                       node("Cast", {"w"}, {"i"}, {integer("to", 7)}),
                       node("ConstantOfShape", {"i"}, {"y"})};
  model.graph.outputs.push_back(value("w2", ElementKind::F32, {2}));
  Import made = run(model);
  EXPECT_EQ(made.status().message(), "");
  EXPECT_TRUE(made.weights.empty());
}

//===----------------------------------------------------------------------===//
// Graphs and nodes
//===----------------------------------------------------------------------===//

TEST_F(Importing, NodesMayComeInAnyOrderAndWithoutNames) {
  Model model = linear();
  model.graph.nodes = {node("Identity", {"t"}, {"y"}),
                       node("Add", {"x", "w"}, {"t"})};
  model.graph.nodes[0].name = model.graph.nodes[1].name = "";
  expectText(model, {"tandem.add"});
}

TEST_F(Importing, CyclesAndDanglingNamesAreProblems) {
  Model model = empty();
  model.graph.nodes = {node("Add", {"x", "b"}, {"a"}),
                       node("Identity", {"a"}, {"b"}),
                       node("Identity", {"b"}, {"y"})};
  expectProblem(model, Code::Failed, "without cycles");
  model.graph.nodes = {node("Add", {"x", "nobody"}, {"y"})};
  expectProblem(model, Code::Failed,
                "node 'make_y' (Add): expected 'nobody' to be made");
  model.graph.nodes = {node("Identity", {"x"}, {"z"})};
  expectProblem(model, Code::Failed, "output 'y': expected a node");
  model.graph.nodes = {node("Identity", {"x"}, {"y"}),
                       node("Identity", {"x"}, {"y"})};
  expectProblem(model, Code::Failed, "made twice");
}

TEST_F(Importing, EveryProblemIsListed) {
  Model model = empty();
  model.graph.nodes = {node("Nonsense", {"x"}, {"a"}),
                       node("Cast", {"x"}, {"b"}, {integer("to", 8)}),
                       node("Cast", {"x"}, {"c"}, {integer("to", 99)}),
                       node("Identity", {"x"}, {"d"}, {integer("what", 1)}),
                       node("Add", {"a", "x"}, {"y"}), // a is declared nowhere
                       node("More", {"y"}, {"z"})};
  Import made = run(model);
  std::string all = made.status().message();
  EXPECT_EQ(made.status().code(), Code::Unsupported);
  for (const char *part :
       {"node 'make_a' (Nonsense): unsupported: the operator 'Nonsense'",
        "'make_b' (Cast): unsupported: elements of type string",
        "'make_c' (Cast): unsupported: elements of type number 99",
        "'make_d' (Identity): unsupported: the attribute 'what'",
        "'make_z' (More): unsupported: the operator 'More'"})
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
  EXPECT_EQ(made.problems.size(), 5u) << all;
}

TEST_F(Importing, WhatFollowsAProblemIsStillChecked) {
  Model model = empty();
  model.graph.values = {value("a", ElementKind::F32, {2, 3})};
  model.graph.nodes = {node("Nonsense", {"x"}, {"a"}),
                       node("Cast", {"a"}, {"y"}, {integer("to", 99)})};
  expectProblem(model, Code::Unsupported, "number 99");
}

TEST_F(Importing, VersionsOfOperatorsAreChecked) {
  Model model = linear();
  model.opsets[""] = 99;
  expectProblem(model, Code::Unsupported, "version 99");
  model.opsets.clear();
  expectProblem(model, Code::Failed, "import the operators of 'ai.onnx'");
  model = linear();
  model.graph.nodes[0].domain = "com.example";
  expectProblem(model, Code::Failed, "import the operators of 'com.example'");
}

TEST_F(Importing, FunctionsOfTheModelAreInlined) {
  Model model = empty();
  FunctionData function;
  function.domain = "com.example";
  function.name = "Twice";
  function.inputs = {"a"};
  function.outputs = {"b"};
  function.attributes = {"to"};
  function.opsets[""] = 17;
  function.nodes = {node("Add", {"a", "a"}, {"s"}),
                    node("Cast", {"s"}, {"b"}, {integer("to", 0)})};
  function.nodes[1].attributes[0].reference = "to";
  model.functions = {function};
  model.opsets["com.example"] = 1;
  model.graph.nodes = {node("Twice", {"x"}, {"y"}, {integer("to", 11)})};
  model.graph.nodes[0].domain = "com.example";
  expectText(model, {"tandem.add", "tandem.cast", "f64"});
  // One that calls itself.
  model.functions[0].nodes = {node("Twice", {"a"}, {"b"})};
  model.functions[0].nodes[0].domain = "com.example";
  model.functions[0].opsets["com.example"] = 1;
  expectProblem(model, Code::Failed, "do not call themselves");
}

TEST_F(Importing, ShapesThatConflictAreProblemsOfTheNode) {
  Model model = linear();
  model.graph.initializers = {floats("w", {2}, {1, 2})};
  expectProblem(model, Code::Failed, "node 'make_y' (Add)");
}

TEST_F(Importing, HugeTensorsAreProblems) {
  int64_t huge = int64_t(1) << 40;
  Model model = empty();
  model.graph.nodes = {node("Identity", {"x"}, {"y"})};
  model.graph.inputs[0] = value("x", ElementKind::F32, {huge, huge});
  expectProblem(model, Code::Failed, "too large");
  model = empty();
  model.graph.initializers = {ints("s", {huge, huge})};
  model.graph.nodes = {node("ConstantOfShape", {"s"}, {"y"})};
  expectProblem(model, Code::Failed, "too large");
  model.graph.initializers = {ints("s", {-1, 4})};
  expectProblem(model, Code::Failed, "at least 0");
}

// PyTorch's gradients were far from those here, and nothing said why.
TEST_F(Importing, AlignedCornersOfALengthThatIsNotWholeAreSaid) {
  std::string said;
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
    said += diagnostic.str() + "\n";
    return mlir::success();
  });
  Attribute corners;
  corners.name = "coordinate_transformation_mode";
  corners.form = Attribute::Form::String;
  corners.text = "align_corners";
  for (float scale : {1.5f, 2.0f}) {
    Model model = empty();
    model.graph.initializers = {floats("s", {2}, {1, scale})};
    model.graph.outputs = {
        value("y", ElementKind::F32, {2, scale == 2 ? 6 : 4})};
    model.graph.nodes = {node("Resize", {"x", "", "s"}, {"y"}, {corners})};
    EXPECT_TRUE(run(model).module);
  }
  EXPECT_EQ(said,
            "dimension 1 of 3 times its scale is 4.5, by which align_corners "
            "divides as the ONNX reference does; PyTorch and ONNX Runtime take "
            "4; 'sizes' in place of scales are the same to all of them\n");
}

TEST_F(Importing, IsTheSameEachTime) {
  ImportOptions options;
  options.loss = "mse:y,t";
  EXPECT_EQ(text(linear(), options), text(linear(), options));
}

TEST_F(Importing, OutputsOfOtherShapesThanDeclaredAreWarnings) {
  std::vector<std::string> said;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) {
    said.push_back(d.str());
    return mlir::success();
  });
  Model model = linear();
  text(model);
  EXPECT_TRUE(said.empty());
  model.graph.outputs[0].type.shape[1].size = 4;
  model.graph.outputs[0].type.shape[0].size = -1;
  text(model);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0], "output 'y' has the shape [2, 3], but the model declares "
                     "[?, 4]");
}

/// As in every pool, a window that begins behind the input is none.
TEST_F(Importing, LpPoolsWindowsBeginInTheInput) {
  auto shapeOf = [&](std::vector<int64_t> sizes, std::vector<int64_t> kernel,
                     std::vector<int64_t> strides, std::vector<int64_t> pads) {
    auto list = [](const char *name, std::vector<int64_t> values) {
      Attribute made;
      made.name = name;
      made.form = Attribute::Form::Ints;
      made.integers = std::move(values);
      return made;
    };
    Model model = empty(18);
    model.graph.inputs = {value("x", ElementKind::F32, std::move(sizes))};
    model.graph.outputs = {NamedType{"y", {}}};
    model.graph.nodes = {node("LpPool", {"x"}, {"y"},
                              {list("kernel_shape", std::move(kernel)),
                               list("strides", std::move(strides)),
                               list("pads", std::move(pads)),
                               integer("ceil_mode", 1), integer("p", 1)})};
    std::string got = text(model);
    size_t at = got.find("#tandem.role<output \"y\">");
    return at == std::string::npos ? got : got.substr(0, at);
  };
  auto ends = [](const std::string &got, const std::string &type) {
    EXPECT_NE(got.rfind("tensor<" + type + "xf32>"), std::string::npos) << got;
  };
  ends(shapeOf({1, 1, 5}, {1}, {3}, {0, 0}), "1x1x2");
  ends(shapeOf({1, 2, 9, 9}, {3, 3}, {3, 1}, {0, 0, 2, 0}), "1x2x3x7");
  ends(shapeOf({1, 1, 6}, {3}, {2}, {0, 0}), "1x1x3");
}
