//===- InputTest.cpp - inputs in other types, and mixed rows --------------===//
//
// `--input` and `--mixup`: what a model takes is made in its program, of what
// arrives.
//
//===----------------------------------------------------------------------===//
#include "compiler/InputTypes.h"
#include "compiler/Mixup.h"
#include "compiler/import/Losses.h"
#include "tests/semantics/Harness.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

class Inputs : public RowTest {};

/// y shows the input x as the model sees it.
Source images() {
  return {nullptr, [](Trace &t) {
            Tensor x = t.input("x", {2, 3, 2});
            Tensor w = t.parameter("w", {1}, Init::constant(1));
            t.output("y", x * 1.0);
            t.output("loss", mean(x * w));
          }};
}

CompileOptions withInput(const char *text) {
  CompileOptions options;
  options.inputs = {text};
  return options;
}

const Numbers kBytes = {0, 1, 2, 127, 128, 254, 255, 3, 77, 200, 100, 50};

/// Scores of four rows that the input decides, and their classes.
Source classifier() {
  return {nullptr, [](Trace &t) {
            Tensor x = t.input("x", {4, 3});
            Tensor labels = t.input("labels", {4}, DType::I64, {.high = 3});
            Tensor w = t.parameter("w", {3, 3}, Init::uniform(-1, 1));
            Tensor logits = linear(x, w);
            t.output("seen", x * 1.0);
            t.output("logits", logits);
            t.output("loss", crossEntropy(logits, labels));
          }};
}

CompileOptions mixed() {
  CompileOptions options;
  options.mixup = "x,labels:alpha=0.4";
  return options;
}

const Numbers kRows = {1, 0, 2, -1, 0.5, 0, 0, 1, 1, 3, -2, 0.25};
const Numbers kLabels = {0, 2, 1, 1};

double crossEntropyOf(const Numbers &logits, const Numbers &labels) {
  double sum = 0;
  for (int row = 0; row < 4; ++row) {
    const double *x = &logits[size_t(3 * row)];
    double total = std::exp(x[0]) + std::exp(x[1]) + std::exp(x[2]);
    sum += std::log(total) - x[int(labels[size_t(row)])];
  }
  return sum / 4;
}

/// The part of its own row that row 0 was: kRows[0] is 1, kRows[9] is 3.
double partOf(const Numbers &seen) { return (3 - seen[0]) / 2; }

} // namespace
TANDEM_WAYS(Inputs, Way{true, Runner::Reference}, Way{true, Runner::Cpu},
            Way{true, Runner::Cuda});

TEST_P(Inputs, BytesAreScaledAndNormalizedAsPyTorchDoes) {
  auto m = start(images(), withInput("x:u8,scale=1/255,mean=[0.5,0.25,0.1],"
                                     "std=[0.5,0.2,0.3]"));
  ASSERT_TRUE(m);
  m->set("x", kBytes);
  ASSERT_EQ(m->forward(), "");
  const float mean[] = {0.5F, 0.25F, 0.1F}, std[] = {0.5F, 0.2F, 0.3F};
  Numbers expected;
  for (size_t i = 0; i < kBytes.size(); ++i)
    expected.push_back((float(kBytes[i]) / 255.0F - mean[i / 2 % 3]) /
                       std[i / 2 % 3]);
  EXPECT_PRED_FORMAT2(areNear, m->output("y"), expected);
}

TEST_P(Inputs, OneNumberForAllAndAnotherAxis) {
  auto m = start(images(), withInput("x:i8,scale=2,mean=3,std=[1,4],axis=2"));
  ASSERT_TRUE(m);
  m->set("x", {-128, -1, 0, 1, 127, 2, 3, 4, 5, 6, 7, 8});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("y"), {-259, -1.25, -3, -0.25, 251, 0.25, 3, 1.25, 7,
                                  2.25, 11, 3.25});
}

TEST_P(Inputs, OptionsThatDoNotFitTheModelAreRefused) {
  auto message = [&](const char *text) {
    return errorOf(images(), withInput(text));
  };
  auto says = [&](const char *text, const char *part) {
    EXPECT_NE(message(text).find(part), std::string::npos) << message(text);
  };
  says("y:u8", "--input: the model has no input 'y' (did you mean "
               "'x'?); its inputs are 'x'");
  says("x:u8,mean=[1,2]", "expected mean to have 3 numbers, one for each index "
                          "along dimension 1 of [2, 3, 2], but got 2");
  says("x:u8,mean=[1,2],axis=3", "it has no dimension 3, but is [2, 3, 2]");
  EXPECT_EQ(parseInputSpec("x:u4").status().message(),
            "expected the type of 'x' to be u8, i8, u16, i16, f16, bf16, but "
            "got 'u4' (did you mean 'u8'?)");
  for (const char *text :
       {"x", "x:u8,std=0", "x:u8,std=[1,-1]", "x:u8,scale=0", "x:u8,scale=1/0",
        "x:u8,mean=nan", "x:u8,mean=[1", "x:u8,mean=", "x:u8,maen=1",
        "x:u8,mean=1,mean=2", "x:u8,axis=1", "x:u8,mean=[1,2],axis=-1",
        "x:u8,scale=0x1p3", ":u8"})
    EXPECT_FALSE(parseInputSpec(text)) << text;
}

TEST_P(Inputs, RowsAndLossesAreMixedByOneNumber) {
  auto m = start(classifier(), mixed());
  ASSERT_TRUE(m);
  m->set("random", {5, 0});
  m->set("w", {0.5, -0.25, 1, 0, 0.75, -1, 0.125, 0.5, -0.5});
  double before = -1;
  for (int step = 0; step < 4; ++step) {
    m->set("x", kRows);
    m->set("labels", kLabels);
    ASSERT_EQ(m->forward(), "");
    double part = partOf(m->output("seen"));
    EXPECT_TRUE(part >= 0 && part <= 1) << part;
    EXPECT_NE(part, before);
    before = part;
    Numbers seen;
    for (size_t row = 0; row < 4; ++row)
      for (size_t i = 0; i < 3; ++i)
        seen.push_back(part * kRows[3 * row + i] +
                       (1 - part) * kRows[3 * (3 - row) + i]);
    EXPECT_PRED_FORMAT2(areNear, m->output("seen"), seen);
    Numbers logits = m->output("logits");
    double loss = part * crossEntropyOf(logits, kLabels) +
                  (1 - part) * crossEntropyOf(logits, {1, 1, 2, 0});
    EXPECT_NEAR(m->output("loss")[0], loss, 1e-5);
    ASSERT_EQ(m->backward({{"loss", {1}}}), "");
  }
}

// The mean and the variance of Beta(a, a) are 1/2 and 1 / (4 (2 a + 1)).
TEST_P(Inputs, TheMixIsDrawnFromBeta) {
  if (GetParam().runner != Runner::Cpu)
    GTEST_SKIP() << "many steps";
  auto m = start(classifier(), mixed());
  ASSERT_TRUE(m);
  m->set("x", kRows);
  m->set("labels", kLabels);
  constexpr int count = 4000;
  double sum = 0, squares = 0;
  for (int step = 0; step < count; ++step) {
    ASSERT_EQ(m->forward(), "");
    double part = partOf(m->output("seen"));
    sum += part;
    squares += (part - 0.5) * (part - 0.5);
  }
  double variance = 1 / (4 * (2 * 0.4 + 1));
  EXPECT_NEAR(sum / count, 0.5, 4 * std::sqrt(variance / count));
  EXPECT_NEAR(squares / count, variance, 0.05 * variance);
}

// Beta(1, 1) is uniform; the quantiles of Beta(2, 2) solve 3 x^2 - 2 x^3 = u,
// those of Beta(1/2, 1/2) are sin^2(pi u / 2).
TEST(Mixup, QuantilesAreThoseOfBeta) {
  auto one = betaQuantiles(1, 256), two = betaQuantiles(2, 256),
       half = betaQuantiles(0.5, 256), small = betaQuantiles(0.01, 256);
  for (int i = 0; i <= 256; ++i) {
    double u = i / 256.0, x = two[size_t(i)];
    EXPECT_NEAR(one[size_t(i)], u, 1e-13);
    EXPECT_NEAR(3 * x * x - 2 * x * x * x, u, 1e-13);
    double sine = std::sin(std::acos(-1.0) * u / 2);
    EXPECT_NEAR(half[size_t(i)], sine * sine, 1e-13);
    EXPECT_TRUE(i == 0 || small[size_t(i)] >= small[size_t(i - 1)]);
  }
}

TEST_P(Inputs, WhatEvaluatesIsNotMixed) {
  if (GetParam().runner == Runner::Reference)
    GTEST_SKIP() << "it has no program that evaluates";
  CompileOptions options = mixed();
  options.optimizer = "sgd:lr=0.1";
  auto m = compiled(classifier(), options);
  ASSERT_TRUE(m);
  m->set("x", kRows);
  m->set("labels", kLabels);
  runtime::Argument inputs[] = {{"x", &m->tensors["x"]},
                                {"labels", &m->tensors["labels"]}};
  runtime::Tensor seen;
  runtime::Destination outputs[] = {{"seen", &seen}};
  Status status = m->model.run("evaluate", inputs, outputs);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(numbersOf(seen), kRows);
}

TEST_P(Inputs, MixesThatDoNotFitTheModelAreRefused) {
  auto says = [&](const char *text, const char *part) {
    CompileOptions options;
    options.mixup = text;
    std::string message = errorOf(classifier(), options);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  says("x,label:alpha=1", "--mixup: the model has no input 'label' (did you "
                          "mean 'labels'?); its inputs are 'x', 'labels'");
  says("labels,x:alpha=1", "expected 'labels' to have floating-point elements");
  for (const char *text : {"x:alpha=1", "x,l", "x,l:alpha=0", "x,l:alpha=nan",
                           "x,l:a=1", ",l:alpha=1", "x,l,m:alpha=1"})
    EXPECT_FALSE(parseMixupSpec(text)) << text;
}

//===----------------------------------------------------------------------===//
// --loss=cross_entropy:OUTPUT,LABELS,smoothing=N
//===----------------------------------------------------------------------===//

namespace {

class Losses : public RowTest {};

/// The loss of x and labels, as `--loss` makes it of a model.
std::string withLoss(const std::string &spec, std::string x = "5x3xf32",
                     std::string labels = "5xi64") {
  mlir::DialectRegistry registry;
  registerCompiler(registry);
  mlir::MLIRContext context(registry);
  context.loadDialect<TandemDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      R"(module attributes {tandem.phase = "capture"} {
    func.func @graph(
        %x: tensor<)" +
          x +
          R"(> {tandem.role = #tandem.role<input "x" {requires_grad}>},
        %labels: tensor<)" +
          labels +
          R"(> {tandem.role = #tandem.role<input "labels">})
        -> (tensor<f32> {tandem.role = #tandem.role<output "loss">}) {
      %0 = tandem.constant dense<0.0> : tensor<f32>
      return %0 : tensor<f32>
    }})",
      &context);
  auto parsed = parseLoss(spec);
  EXPECT_TRUE(module && parsed) << parsed.status().message();
  auto graph = module->lookupSymbol<mlir::func::FuncOp>("graph");
  mlir::Operation *end = graph.getBody().front().getTerminator();
  mlir::OpBuilder builder(end);
  auto loss = buildLoss(builder, end->getLoc(), *parsed,
                        Expr(builder, end->getLoc(), graph.getArgument(0)),
                        graph.getArgument(1));
  EXPECT_TRUE(succeeded(loss));
  end->setOperand(0, *loss);
  std::string text;
  llvm::raw_string_ostream out(text);
  module->print(out);
  return text;
}

} // namespace
TANDEM_WAYS(Losses, Way{false, Runner::Reference}, Way{false, Runner::Cpu},
            Way{false, Runner::Cuda});

// Numbers of torch.nn.functional.cross_entropy(x, labels, label_smoothing=N).
TEST_P(Losses, SmoothedLabelsAreThoseOfPyTorch) {
  struct Row {
    const char *spec;
    double loss;
    Numbers gradient;
  };
  const Row rows[] = {
      {"cross_entropy:y,t,smoothing=0",
       1.94786110734,
       {-0.1888178822, 0.02250764329, 0.1663102389, 0.03048791308, 0.1366373468,
        -0.1671252599, 0, 0, 0, 0.2334995646, -0.2484266923, 0.01492712775,
        0.03103246032, 0.01661047904, -0.04764293937}},
      {"cross_entropy:y,t,smoothing=0.1",
       1.92806944068,
       {-0.1721512156, 0.01417430996, 0.1579769056, 0.02215457974, 0.1283040135,
        -0.1504585932, 0, 0, 0, 0.2251662312, -0.2317600256, 0.006593794421,
        0.02269912699, 0.00827714571, -0.0309762727}},
      {"cross_entropy:y,t,smoothing=1",
       1.74994444068,
       {-0.02215121557, -0.06082569004, 0.08297690561, -0.05284542026,
        0.05330401348, -0.0004585932273, 0, 0, 0, 0.1501662312, -0.08176002564,
        -0.06840620558, -0.05230087301, -0.06672285429, 0.1190237273}}};
  for (const Row &row : rows) {
    SCOPED_TRACE(row.spec);
    std::string text = withLoss(row.spec);
    auto m = start({text.c_str(), nullptr});
    ASSERT_TRUE(m);
    m->set("x", {1, 0, 2, -1, 0.5, 0, 0, 1, 1, 3, -2, 0.25, 0.125, -0.5, 2});
    m->set("labels", {0, 2, -100, 1, 2});
    ASSERT_EQ(m->forward(), "");
    EXPECT_NEAR(m->output("loss")[0], row.loss, 1e-6);
    ASSERT_EQ(m->backward({{"loss", {1}}}), "");
    EXPECT_PRED_FORMAT2(areNear, m->gradient("x"), row.gradient);
  }
}

// Numbers of MONAI 1.6: DiceLoss(softmax=True, to_onehot_y=True, batch=True).
TEST_P(Losses, DiceIsThatOfMonai) {
  std::string text = withLoss("dice:y,t");
  auto m = start({text.c_str(), nullptr});
  ASSERT_TRUE(m);
  m->set("x", {1, 0, 2, -1, 0.5, 0, 0, 1, 1, 3, -2, 0.25, 0.125, -0.5, 2});
  m->set("labels", {0, 2, 0, 1, 2});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NEAR(m->output("loss")[0], 0.746153013757, 1e-6);
  ASSERT_EQ(m->backward({{"loss", {1}}}), "");
  EXPECT_PRED_FORMAT2(
      areNear, m->gradient("x"),
      (Numbers{
          -0.03732657307934653, 0.001242641617309877, 0.03608393146203665,
          0.0067794565386074595, 0.019515004840777336, -0.0262944613793848,
          -0.024479297066218802, 0.0037004771506847505, 0.020778819915534052,
          0.0008089280322669595, -0.0020878868303999846, 0.0012789587981330247,
          0.013719102750813943, 0.006022075375816456, -0.0197411781266304}));
}

// A row that is not to count changes nothing, and one of no class all.
TEST_P(Losses, DiceLeavesIgnoredRowsOut) {
  std::string four = withLoss("dice:y,t", "4x3xf32", "4xi64"),
              five = withLoss("dice:y,t");
  auto m = start({four.c_str(), nullptr}), n = start({five.c_str(), nullptr});
  ASSERT_TRUE(m && n);
  m->set("x", {1, 0, 2, -1, 0.5, 0, 3, -2, 0.25, 0.125, -0.5, 2});
  m->set("labels", {0, 2, 1, 2});
  ASSERT_EQ(m->forward(), "");
  n->set("x", {1, 0, 2, -1, 0.5, 0, 5, 6, 7, 3, -2, 0.25, 0.125, -0.5, 2});
  n->set("labels", {0, 2, -100, 1, 2});
  ASSERT_EQ(n->forward(), "");
  EXPECT_NEAR(n->output("loss")[0], m->output("loss")[0], 1e-6);
  n->set("labels", {0, 2, 3, 1, 2});
  ASSERT_EQ(n->forward(), "");
  EXPECT_TRUE(std::isnan(n->output("loss")[0]));
}

// Masks of one class, of any shape: MONAI's with sigmoid=True, batch=True.
TEST_P(Losses, DiceOfMasksIsThatOfMonai) {
  std::string text = withLoss("dice_with_logits:y,t", "2x1x3xf32", "2x1x3xf32");
  auto m = start({text.c_str(), nullptr});
  ASSERT_TRUE(m);
  m->set("x", {1, 0, 2, -1, 0.5, 0});
  m->set("labels", {1, 0, 1, 0, 1, 0});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NEAR(m->output("loss")[0], 0.31286223038445116, 1e-6);
}

// Logits given to it had a loss, whose logarithms were bounded.
TEST_P(Losses, WhatIsNoProbabilityHasNoCrossEntropy) {
  std::string text = withLoss("bce:y,t", "2x2xf32", "2x2xf32");
  auto m = start({text.c_str(), nullptr});
  ASSERT_TRUE(m);
  m->set("labels", {1, 0, 1, 0});
  m->set("x", {0.5, 0.25, 1, 0});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NEAR(m->output("loss")[0], -(std::log(0.5) + std::log(0.75)) / 4,
              1e-6);
  for (double wrong : {1.5, -0.25}) {
    m->set("x", {0.5, wrong, 1, 0});
    ASSERT_EQ(m->forward(), "");
    EXPECT_TRUE(std::isnan(m->output("loss")[0]));
  }
}

// Classes of more than two dimensions are the last one here, and were taken to
// be dimension 1 by nll: a wrong number where there are as many of both.
TEST_P(Losses, ClassesOfALossOfFunctionsAreTheLastDimension) {
  std::string text = withLoss("nll:y,t", "1x2x2xf32", "1x2xi64");
  auto m = start({text.c_str(), nullptr});
  ASSERT_TRUE(m);
  m->set("x", {1, 2, 3, 4});
  m->set("labels", {1, 1});
  ASSERT_EQ(m->forward(), "");
  EXPECT_EQ(m->output("loss")[0], -3);
}

TEST(LossSpecs, WhatIsWrongWithASmoothingIsSaid) {
  auto message = [](const char *text) {
    return parseLoss(text).status().message();
  };
  EXPECT_EQ(message("mse:y,t,smoothing=0.1"),
            "--loss: smoothing is cross_entropy's, but the loss is mse");
  EXPECT_EQ(message("cross_entropy:y,t,smoothing=2"),
            "--loss: expected smoothing to be from 0 to 1, but got '2'");
  EXPECT_EQ(message("cross_entropy:y,t,smooth=0.1"),
            "expected --loss=KIND:OUTPUT,LABELS[,smoothing=N], but got "
            "'cross_entropy:y,t,smooth=0.1'");
  for (const char *text :
       {"cross_entropy:y,t,smoothing=", "nll:y,t,",
        "cross_entropy:y,t,smoothing=nan", "cross_entropy:y,t,smoothing=0.1,x"})
    EXPECT_FALSE(parseLoss(text)) << text;
}
