//===- SecondOrderTest.cpp - gradients that have gradients ----------------===//
//
// The programs grad_forward and grad_backward, made by hand for o = x * x * w:
// g(x) = 2 co x w, and its derivatives. Saved values and references of the
// first context are pinned by the second; whatever is written or released in
// between is found.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/Maker.h"

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;
using artifact::Slot;

namespace {

using Values = std::vector<float>;

/// o = x * x * w. forward saves t = x * w. grad_forward: g(x) = 2 co t, saves
/// u = 2 co; it takes t, x and co along for grad_backward, which for the
/// cotangent v of g(x) gives
///   x: v u w,  "cotangent of o": 2 v t,  w: v u x.
Maker squares() {
  Maker m;
  m.value(Role::Input, "x", {4}).requiresGrad = true;
  m.value(Role::Param, "w", {4}).requiresGrad = true;
  m.manifest.values.back().init = artifact::Init::constant(3);
  m.value(Role::Output, "o", {4});
  m.program("forward");
  int64_t x = m.argument(Role::Input, "x", {4});
  int64_t w = m.argument(Role::Param, "w", {4});
  int64_t o = m.result(Role::Output, "o", {4});
  int64_t t = m.result(Role::Saved, "t", {4});
  m.launch("mul", {x, w}, t, 4);
  m.launch("mul", {t, x}, o, 4);

  m.program("backward");
  int64_t co = m.argument(Role::Cotangent, "o", {4});
  t = m.argument(Role::Saved, "t", {4});
  int64_t g = m.result(Role::Grad, "x", {4});
  int64_t twice = m.arena(16);
  m.launch("twice", {co}, twice, 4);
  m.launch("mul", {twice, t}, g, 4);

  m.program("grad_forward");
  co = m.argument(Role::Cotangent, "o", {4});
  t = m.argument(Role::Saved, "t", {4});
  m.argument(Role::Input, "x", {4});
  m.argument(Role::Param, "w", {4});
  g = m.result(Role::Grad, "x", {4});
  int64_t u = m.result(Role::Saved, "u", {4});
  m.launch("twice", {co}, u, 4);
  m.launch("mul", {u, t}, g, 4);

  m.program("grad_backward");
  int64_t v = m.argument(Role::Cotangent, "grad of x", {4});
  u = m.argument(Role::Saved, "u", {4});
  t = m.argument(Role::Saved, "t", {4});
  co = m.argument(Role::Cotangent, "o", {4});
  x = m.argument(Role::Input, "x", {4});
  w = m.argument(Role::Param, "w", {4});
  int64_t gx = m.result(Role::Grad, "x", {4});
  int64_t gc = m.result(Role::Grad, "cotangent of o", {4});
  int64_t gw = m.result(Role::Grad, "w", {4});
  int64_t vu = m.arena(16), vt = m.arena(16), again = m.arena(16);
  m.launch("twice", {co}, again, 4); // u once more, from the reference
  m.launch("mul", {v, again}, vu, 4);
  m.launch("mul", {vu, w}, gx, 4);
  m.launch("mul", {v, t}, vt, 4);
  m.launch("twice", {vt}, gc, 4);
  m.launch("mul", {v, u}, vu, 4);
  m.launch("mul", {vu, x}, gw, 4);
  return m;
}

class SecondOrder : public ::testing::Test {
protected:
  Model model = squares().load();
  Tensor x = filled({4}, 1), co = filled({4}, 1, 0), v = filled({4}, 1, 0);
  Tensor o, g, gx, gc, gw;
  std::vector<Argument> inputs = {{"x", &x}};
  std::vector<Destination> outputs = {{"o", &o}};
  std::vector<Argument> first = {{"o", &co}}, second = {{"grad of x", &v}};
  std::vector<Destination> grads = {{"x", &g}};
  std::vector<Destination> all = {
      {"x", &gx}, {"cotangent of o", &gc}, {"w", &gw}};

  Context forward() {
    Result<Context> context = model.forward(inputs, outputs);
    EXPECT_TRUE(context) << context.status().message();
    return std::move(*context);
  }
  Context graphOf(Context &context, const BackwardOptions &options = {}) {
    Context graph;
    Status status = model.backward(context, first, grads, options, &graph);
    EXPECT_TRUE(status.ok()) << status.message();
    return graph;
  }
};

TEST_F(SecondOrder, J14_G01_DifferentiatesTheResult) {
  Context context = forward();
  Context graph = graphOf(context);
  EXPECT_EQ(valuesOf(g), Values({6, 12, 18, 24}));
  EXPECT_TRUE(g.requiresGrad() && !g.isLeaf()) << "with edges";
  EXPECT_FALSE(context.live());
  // The first context's buffers stay, although another forward runs.
  Context other = forward();
  ASSERT_TRUE(graph.live());
  Status status = model.backward(graph, second, all, {true, false});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(valuesOf(gx), Values({6, 6, 6, 6}));
  EXPECT_EQ(valuesOf(gc), Values({6, 12, 18, 24}));
  EXPECT_EQ(valuesOf(gw), Values({2, 4, 6, 8}));
  ASSERT_TRUE(model.backward(graph, second, all).ok());
  expectMessage(model.backward(graph, second, all), "already used");
  ASSERT_TRUE(model.backward(other, first, grads).ok());
  EXPECT_FALSE(g.requiresGrad()) << "without a graph: no edges";
}

TEST_F(SecondOrder, C02_RetainedContextsServeMoreGraphs) {
  Context context = forward();
  Context a = graphOf(context, {true, false});
  Context b = graphOf(context);
  EXPECT_FALSE(context.live());
  context = Context();
  ASSERT_TRUE(model.backward(b, second, all).ok());
  EXPECT_EQ(valuesOf(gx), Values({6, 6, 6, 6}));
  ASSERT_TRUE(model.backward(a, second, all).ok());
  EXPECT_EQ(valuesOf(gc), Values({6, 12, 18, 24}));
}

TEST_F(SecondOrder, C05_WritesInBetweenAreFound) {
  Context context = forward();
  Context graph = graphOf(context);
  co.markWritten();
  expectMessage(model.backward(graph, second, all),
                "cotangent of 'o' (index 3), which it reads, was written after "
                "the forward");
  co = filled({4}, 1, 0);
  Context again = forward();
  graph = graphOf(again);
  x.markWritten();
  expectMessage(model.backward(graph, second, all), "input 'x' (index 4)");
  Context third = forward();
  graph = graphOf(third);
  ASSERT_TRUE(model.set("w", filled({4})).ok());
  expectMessage(model.backward(graph, second, all), "param 'w' (index 5)");
  EXPECT_TRUE(graph.live());
}

TEST_F(SecondOrder, C04_StridedValuesAndMemory) {
  Tensor wide = filled({8});
  x = *wide.view(Sizes{4}, Sizes{2});
  Tensor many = filled({8}, 1, 0);
  co = *many.view(Sizes{4}, Sizes{2});
  int64_t steady = 0;
  for (int i = 0; i < 200; ++i) {
    Context context = forward();
    Context graph = graphOf(context);
    Context other = forward(); // would use the first one's copies again
    if (i % 3) {
      ASSERT_TRUE(model.backward(graph, second, all).ok());
    }
    if (i == 10)
      steady = model.memory().current;
    if (i > 10) {
      ASSERT_EQ(model.memory().current, steady);
    }
  }
  EXPECT_EQ(valuesOf(gw), Values({0, 4, 8, 12}));
  EXPECT_EQ(wide.storage().use_count(), 2);
  EXPECT_EQ(many.storage().use_count(), 2);
}

TEST_F(SecondOrder, UndefinedAndMisused) {
  Context context = forward(), graph;
  ASSERT_TRUE(model.backward(context, {}, grads, {true, false}, &graph).ok());
  EXPECT_FALSE(graph.live()) << "nothing was computed";
  EXPECT_FALSE(g.defined());
  expectMessage(model.backward(context, first, grads, {}, &context),
                "expected another place for the graph than the context");
  graph = graphOf(context);
  Context third;
  Status status = model.backward(graph, second, all, {}, &third);
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_TRUE(graph.live());
  expectMessage(model.backward(graph, first, all), "unknown argument 'o'");
}

TEST_F(SecondOrder, J15_ArtifactsWithoutSecondDerivatives) {
  Maker m = squares();
  m.manifest.programs.resize(2);
  model = m.load();
  Context context = forward(), graph;
  Status status = model.backward(context, first, grads, {}, &graph);
  EXPECT_EQ(status.code(), Code::Unsupported);
  EXPECT_NE(status.message().find("compile it with --order=2"),
            std::string::npos);
  EXPECT_TRUE(context.live());
  m = squares();
  m.manifest.mutatedInBackward = {0, 1};
  model = m.load();
  context = forward();
  expectMessage(model.backward(context, first, grads, {}, &graph),
                "input 'x' (index 0), param 'w' (index 1)");
  EXPECT_TRUE(context.live());
}

} // namespace
