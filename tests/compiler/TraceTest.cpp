//===- TraceTest.cpp - what the tracer records, and how it complains ------===//
#include "compiler/trace/Call.h"
#include "tests/compiler/TraceText.h"

using namespace tandem;

TEST(Trace, UnwrittenTensorsAreValues) {
  Trace trace("model");
  Tensor x = trace.input("x", {4, 8});
  Tensor w = trace.parameter("w", {3, 8}, Init::uniform(-1, 1));
  trace.output("y", relu(matmul(x, w.transpose(0, 1)) * 2.0));
  std::string text = textOf(trace);
  EXPECT_FALSE(contains(text, "tandem.ref")) << text;
  EXPECT_FALSE(contains(text, "make_ref")) << text;
  EXPECT_TRUE(contains(text, "tandem.permute"));
  EXPECT_TRUE(contains(text, "#tandem.role<param \"w\""));
  EXPECT_TRUE(contains(text, "kind = \"uniform\""));
}

TEST(Trace, WritesThroughViewsKeepRefs) {
  Trace trace("model");
  Tensor x = trace.input("x", {4, 8});
  Tensor h = x * 2.0;
  h.slice(1, 0, 3).mul_(3.0);
  trace.output("y", h);
  std::string text = textOf(trace);
  EXPECT_EQ(count(text, "tandem.make_ref"), 1) << text;
  EXPECT_EQ(count(text, "tandem.write"), 1) << text;
  // x itself is not written.
  EXPECT_TRUE(contains(text, "tensor<4x8xf32> {tandem.role = #tandem.role<input"
                             " \"x\">}"))
      << text;
}

TEST(Trace, StatesThatAreWrittenAreRefs) {
  Trace trace("model");
  Tensor n = trace.state("n", {}, Init::constant(0));
  {
    NoGradScope scope = trace.noGrad();
    n.add_(trace.constant({}, 1.0));
  }
  trace.output("y", n * 2.0);
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(text, "!tandem.ref<f32> {tandem.role = "
                             "#tandem.role<state \"n\""))
      << text;
  // The add and the write, but not the product after the scope.
  EXPECT_EQ(count(text, "tandem.no_grad"), 2) << text;
}

// One state for all draws of a program, which moves on once; each draw has a
// number of its own.
TEST(Trace, DrawsShareOneState) {
  Trace trace("model");
  Tensor x = trace.input("x", {4}), y;
  {
    ModuleScope block = trace.module("block");
    NoGradScope scope = trace.noGrad();
    y = dropout(x, 0.25) + trace.uniform({4});
  }
  trace.output("y", y + trace.normal({4}, DType::F32));
  trace.output("m", trace.bernoulli({2, 2}, 0.5));
  trace.output("b", trace.randomBits({3}));
  std::string text = textOf(trace);
  EXPECT_EQ(count(text, "#tandem.role<state \"random\" {init = {kind = "
                        "\"seed\"}}>"),
            1)
      << text;
  EXPECT_EQ(count(text, "tandem.write"), 1) << text;
  for (const char *draw :
       {"draw 0 p 2.500000e-01 {tandem.no_grad, training} : tensor<4xf32>",
        "tandem.random_uniform", "draw 1 {tandem.no_grad} : tensor<4xf32>",
        "tandem.random_normal", "draw 2 : tensor<4xf32>",
        "draw 3 p 5.000000e-01 : tensor<2x2xi1>", "draw 4 : tensor<3xi32>"})
    EXPECT_TRUE(contains(text, draw)) << draw << "\n" << text;
}

TEST(Trace, MistakesOfDraws) {
  Trace trace("model");
  Tensor x = trace.input("x", {4});
  trace.state("random", {}, Init::constant(0));
  dropout(x, 1.5);
  trace.bernoulli({4}, -0.5);
  trace.uniform({4}, DType::I32);
  trace.normal({-1});
  std::string mistakes = mistakeOf(trace);
  EXPECT_TRUE(contains(mistakes, "expected 'p' in [0, 1]")) << mistakes;
  EXPECT_TRUE(contains(mistakes, "'random' is the state of random numbers"))
      << mistakes;
}

TEST(Trace, DrawsInARegionAreMistakes) {
  Trace trace("model");
  Tensor x = trace.input("x", {4});
  Tensor y = customVjp(
      "noisy", {x}, {},
      [&](const Tensors &in, const Tensors &, Saver &) -> Tensors {
        return {in[0] + trace.uniform({4})};
      },
      [](const Tensors &, const Tensors &dy, const Tensors &) -> Tensors {
        return {dy[0]};
      })[0];
  trace.output("y", y);
  std::string mistakes = mistakeOf(trace);
  EXPECT_TRUE(contains(mistakes, "unsupported: random numbers inside of"))
      << mistakes;
}

TEST(Trace, ModulePathsNameParametersAndOps) {
  Trace trace("model");
  Tensor x = trace.input("x", {2, 2}), y;
  {
    ModuleScope outer = trace.module("block0");
    ModuleScope inner = trace.module("fc");
    y = relu(x + trace.parameter("w", {2, 2}, Init::constant(1)));
  }
  trace.output("y", y);
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(text, "param \"block0.fc.w\"")) << text;
  EXPECT_TRUE(contains(text, "\"block0.fc.relu\"")) << text;
  EXPECT_TRUE(contains(text, "TraceTest.cpp\":")) << text;
}

TEST(Trace, BroadcastsAsNumPy) {
  Trace trace("model");
  Tensor a = trace.input("a", {5, 1, 3});
  Tensor b = trace.input("b", {4, 1});
  Tensor y = a + b;
  EXPECT_EQ(y.shape(), (Shape{5, 4, 3}));
  EXPECT_EQ((1.0 - y).shape(), (Shape{5, 4, 3}));
  trace.output("y", y);
  EXPECT_EQ(count(textOf(trace), "tandem.broadcast"), 2);
}

TEST(Trace, EveryComparison) {
  Trace trace("model");
  Tensor x = trace.input("x", {4}), y = trace.input("y", {4});
  int made = 0;
  for (const Tensor &one : {equal(x, y), notEqual(x, y), less(x, y),
                            lessEqual(x, y), greater(x, y), greaterEqual(x, y)})
    trace.output("o" + std::to_string(made++), one);
  std::string text = textOf(trace);
  for (const char *part :
       {" eq %arg0, %arg1", " ne %arg0, %arg1", " lt %arg0, %arg1",
        " le %arg0, %arg1", " gt %arg0, %arg1", " ge %arg0, %arg1"})
    EXPECT_EQ(count(text, part), 1) << part << "\n" << text;
}

TEST(Trace, ShapeErrorsAreAtTheUsersLine) {
  Trace trace("model");
  Tensor x = trace.input("x", {4, 8});
  Tensor w = trace.input("w", {3, 9});
  int line = __LINE__ + 1;
  Tensor y = matmul(x, w.transpose(0, 1));
  EXPECT_FALSE(y.valid());
  int second = __LINE__ + 1;
  Tensor z = x + w;
  trace.output("y", relu(y));
  trace.output("z", z * 2.0);
  std::string mistakes = mistakeOf(trace);
  EXPECT_TRUE(contains(mistakes, "TraceTest.cpp:" + std::to_string(line) + ":"))
      << mistakes;
  EXPECT_TRUE(contains(mistakes, "expected lhs columns (8) to equal rhs rows "
                                 "(9)"))
      << mistakes;
  EXPECT_TRUE(
      contains(mistakes, "TraceTest.cpp:" + std::to_string(second) + ":"))
      << mistakes;
  EXPECT_TRUE(contains(mistakes, "do not broadcast")) << mistakes;
  // What follows from a mistake is silent.
  EXPECT_EQ(count(mistakes, "error:"), 2) << mistakes;
}

TEST(Trace, MistakesOfUseAreReported) {
  Trace one("one"), two("two");
  Tensor x = one.input("x", {2}), y = two.input("y", {2});
  one.input("x", {3});
  one.output("o", x + y);
  std::string mistakes = mistakeOf(one);
  EXPECT_TRUE(contains(mistakes, "'x' twice")) << mistakes;
  EXPECT_TRUE(contains(mistakes, "tensors of one trace")) << mistakes;
  EXPECT_TRUE(contains(mistakeOf(two), "expected the program to have an "
                                       "output"));
}

TEST(Trace, ArgumentsAndOutputsHaveNames) {
  Trace trace("model");
  int line = __LINE__ + 1;
  EXPECT_FALSE(trace.input("", {2}).valid());
  Tensor w = trace.parameter("w", {2}, Init::constant(0));
  EXPECT_FALSE(trace.parameter("", {2}, Init::constant(0)).valid());
  trace.output("", w * 2.0);
  std::string mistakes = mistakeOf(trace);
  EXPECT_EQ(count(mistakes, "expected a name, but got an empty one"), 3)
      << mistakes;
  EXPECT_TRUE(contains(mistakes, "TraceTest.cpp:" + std::to_string(line) + ":"))
      << mistakes;
}

TEST(Trace, BadSizesAndDimensionsAreReported) {
  Trace trace("model");
  Tensor x = trace.input("x", {4, 6});
  EXPECT_FALSE(x.view({5, -1}).valid());
  EXPECT_FALSE(x.transpose(0, 2).valid());
  EXPECT_FALSE(x.slice(1, 4, 9).valid());
  EXPECT_FALSE(x.permute({0, 0}).valid());
  EXPECT_FALSE(trace.input("huge", {int64_t(1) << 40, 1 << 20}).valid());
  EXPECT_EQ(x.view({-1, 3}).shape(), (Shape{8, 3}));
  EXPECT_EQ(x.select(0, -1).shape(), (Shape{6}));
  trace.output("y", x);
  EXPECT_EQ(count(mistakeOf(trace), "error:"), 5);
}

TEST(Trace, SameProgramSameText) {
  auto text = [] {
    Trace trace("model");
    Tensor x = trace.input("x", {4, 8});
    trace.output("y", softmax(x, -1));
    return textOf(trace);
  };
  EXPECT_EQ(text(), text());
}

// A function's ops are recorded; its tags and its mistakes are the caller's.
TEST(Trace, CallsFunctionsByName) {
  Trace trace("model");
  Tensor x = trace.input("x", {4, 8});
  {
    NoGradScope scope = trace.noGrad();
    trace.output("y", call("leaky_relu", {x}, {{"negative_slope", 0.2}})[0]);
  }
  std::string text = textOf(trace);
  EXPECT_EQ(count(text, "tandem.select"), 1) << text;
  EXPECT_TRUE(contains(text, "loc(\"leaky_relu\"")) << text;
  // The constants have the tag as well.
  EXPECT_EQ(count(text, "tandem.no_grad"), 5) << text;
}

// Each gives a tensor of the shape that PyTorch's has.
TEST(Trace, CommonFunctions) {
  Trace trace("model");
  Tensor x = trace.input("x", {2, 3, 4});
  Tensor images = trace.input("images", {1, 2, 3, 4});
  Tensor index = trace.input("index", {2, 2, 4}, DType::I64);
  Tensor rows = trace.input("rows", {5}, DType::I64);
  EXPECT_EQ(clamp(x, -1.0).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(clamp(x, {}, 1.0).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(var(x, {0, -1}).shape(), (Shape{3}));
  EXPECT_EQ(norm(x, 1, {1}, true).shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(logSumExp(x).shape(), Shape{});
  EXPECT_EQ(sort(x, 1, true).second.shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(topk(x, 2).first.shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(flip(x, {0, -1}).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(stack({x, x}, -1).shape(), (Shape{2, 3, 4, 2}));
  EXPECT_EQ(einsum("bij,bkj->bik", {x, x}).shape(), (Shape{2, 3, 3}));
  EXPECT_EQ(gather(x, 1, index).shape(), (Shape{2, 2, 4}));
  EXPECT_EQ(indexSelect(x, 1, rows).shape(), (Shape{2, 5, 4}));
  EXPECT_EQ(scatter(x, 1, index, x).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(scatterAdd(x, 1, index, x).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(oneHot(rows, 7).shape(), (Shape{5, 7}));
  EXPECT_EQ(interpolate(images, {6, 8}, "bilinear").shape(),
            (Shape{1, 2, 6, 8}));
  trace.output("y", sum(sort(x).first));
  EXPECT_TRUE(contains(textOf(trace), "tandem.sort"));
}

TEST(Trace, MistakenCallsAreReported) {
  Trace trace("model");
  Tensor x = trace.input("x", {4, 8});
  EXPECT_FALSE(call("leaky_reul", {x})[0].valid());
  EXPECT_FALSE(call("leaky_relu", {x, x})[3].valid());
  EXPECT_FALSE(call("leaky_relu", {x}, {{"slope", 1}})[0].valid());
  EXPECT_FALSE(call("leaky_relu", {})[0].valid());
  trace.output("y", x);
  std::string message = mistakeOf(trace);
  EXPECT_TRUE(contains(message, "unknown function 'leaky_reul'")) << message;
  EXPECT_TRUE(contains(message, "expected 1 operands, but got 2")) << message;
  EXPECT_TRUE(contains(message, "has no attribute 'slope'")) << message;
}
