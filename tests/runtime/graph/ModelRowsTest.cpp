//===- ModelRowsTest.cpp - compiled programs as nodes ---------------------===//
//
// Row N32 and what of G01 belongs to programs, through graph.hpp, on artifacts
// that are made by hand.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/Maker.h"
#include "tests/runtime/graph/ApiNodes.h"

#include <atomic>
#include <cstdio>
#include <thread>
#include <unistd.h>

using namespace tdm;
using namespace tdm::testing;
using tandem::artifact::Init;
using tandem::test::Maker;
using tandem::test::Role;
namespace made_of = tandem::test;

namespace {

void param(Maker &m, const char *name, double value) {
  m.value(Role::Param, name, {4}).requiresGrad = true;
  m.manifest.values.back().init = Init::constant(value);
}

/// o = x * w.
Maker product(double w) {
  Maker m;
  m.value(Role::Input, "x", {4}).requiresGrad = true;
  param(m, "w", w);
  m.value(Role::Output, "o", {4});
  m.program("forward");
  int64_t x = m.argument(Role::Input, "x", {4});
  int64_t p = m.argument(Role::Param, "w", {4});
  m.launch("mul", {x, p}, m.result(Role::Output, "o", {4}), 4);
  m.program("backward");
  int64_t co = m.argument(Role::Cotangent, "o", {4});
  x = m.argument(Role::Input, "x", {4});
  p = m.argument(Role::Param, "w", {4});
  m.launch("mul", {co, p}, m.result(Role::Grad, "x", {4}), 4);
  m.launch("mul", {co, x}, m.result(Role::Grad, "w", {4}), 4);
  return m;
}

/// o = x * v * w: both of them, compiled together.
Maker products() {
  Maker m;
  m.value(Role::Input, "x", {4}).requiresGrad = true;
  param(m, "v", 3);
  param(m, "w", 5);
  m.value(Role::Output, "o", {4});
  m.program("forward");
  int64_t x = m.argument(Role::Input, "x", {4});
  int64_t v = m.argument(Role::Param, "v", {4});
  int64_t w = m.argument(Role::Param, "w", {4});
  int64_t t = m.result(Role::Saved, "t", {4});
  m.launch("mul", {x, v}, t, 4);
  m.launch("mul", {t, w}, m.result(Role::Output, "o", {4}), 4);
  m.program("backward");
  int64_t co = m.argument(Role::Cotangent, "o", {4});
  t = m.argument(Role::Saved, "t", {4});
  x = m.argument(Role::Input, "x", {4});
  v = m.argument(Role::Param, "v", {4});
  w = m.argument(Role::Param, "w", {4});
  int64_t ct = m.arena(16);
  m.launch("mul", {co, w}, ct, 4);
  m.launch("mul", {ct, v}, m.result(Role::Grad, "x", {4}), 4);
  m.launch("mul", {ct, x}, m.result(Role::Grad, "v", {4}), 4);
  m.launch("mul", {co, t}, m.result(Role::Grad, "w", {4}), 4);
  return m;
}

/// o = x * x * w, with the derivative of its gradient (SecondOrderTest.cpp).
Maker squares() {
  Maker m;
  m.value(Role::Input, "x", {4}).requiresGrad = true;
  param(m, "w", 3);
  m.value(Role::Output, "o", {4});
  m.program("forward");
  int64_t x = m.argument(Role::Input, "x", {4});
  int64_t w = m.argument(Role::Param, "w", {4});
  int64_t t = m.result(Role::Saved, "t", {4});
  m.launch("mul", {x, w}, t, 4);
  m.launch("mul", {t, x}, m.result(Role::Output, "o", {4}), 4);
  for (const char *name : {"backward", "grad_forward"}) {
    m.program(name);
    int64_t co = m.argument(Role::Cotangent, "o", {4});
    t = m.argument(Role::Saved, "t", {4});
    bool isSecond = name[0] == 'g';
    if (isSecond) {
      m.argument(Role::Input, "x", {4});
      m.argument(Role::Param, "w", {4});
    }
    int64_t g = m.result(Role::Grad, "x", {4});
    int64_t u = isSecond ? m.result(Role::Saved, "u", {4}) : m.arena(16);
    m.launch("twice", {co}, u, 4);
    m.launch("mul", {u, t}, g, 4);
  }
  m.program("grad_backward");
  int64_t v = m.argument(Role::Cotangent, "grad of x", {4});
  int64_t u = m.argument(Role::Saved, "u", {4});
  t = m.argument(Role::Saved, "t", {4});
  int64_t co = m.argument(Role::Cotangent, "o", {4});
  x = m.argument(Role::Input, "x", {4});
  w = m.argument(Role::Param, "w", {4});
  int64_t gx = m.result(Role::Grad, "x", {4});
  int64_t gc = m.result(Role::Grad, "cotangent of o", {4});
  int64_t gw = m.result(Role::Grad, "w", {4});
  int64_t vu = m.arena(16), vt = m.arena(16), again = m.arena(16);
  m.launch("twice", {co}, again, 4);
  m.launch("mul", {v, again}, vu, 4);
  m.launch("mul", {vu, w}, gx, 4);
  m.launch("mul", {v, t}, vt, 4);
  m.launch("twice", {vt}, gc, 4);
  m.launch("mul", {v, u}, vu, 4);
  m.launch("mul", {vu, x}, gw, 4);
  return m;
}

/// Loads what was made, through a file.
Model load(const Maker &m) {
  // Tests run side by side, each in its process.
  std::string path =
      ::testing::TempDir() + "graph-model-" + std::to_string(getpid()) + ".tdm";
  tandem::Status status = made_of::writerFor(m.manifest).write(path);
  EXPECT_TRUE(status.ok()) << status.message();
  Model model(path, 1);
  std::remove(path.c_str());
  return model;
}

Tensor paramOf(const Model &model, const char *name) {
  return model.parameter(name).setRequiresGrad(true);
}

} // namespace

TEST(GraphModels, N32_TwoArtifactsAreAsOneCompiledTogether) {
  Model first = load(product(3)), second = load(product(5));
  Model both = load(products());
  Tensor one = numbers({1, 10, 100, 1000});
  Tensor x = leaf({1, 2, 3, 4}), v = paramOf(first, "w");
  Tensor w = paramOf(second, "w"), middle, o;
  graphForward(first, {{"x", x}}, {{"w", v}}, {{"o", middle}});
  graphForward(second, {{"x", middle}}, {{"w", w}}, {{"o", o}});
  backward({o}, {one});
  Tensor x2 = leaf({1, 2, 3, 4}), v2 = paramOf(both, "v");
  Tensor w2 = paramOf(both, "w"), o2;
  graphForward(both, {{"x", x2}}, {{"v", v2}, {"w", w2}}, {{"o", o2}});
  backward({o2}, {one});
  EXPECT_EQ(valuesOf(o), valuesOf(o2));
  EXPECT_EQ(gradient(x), gradient(x2));
  EXPECT_EQ(gradient(v), gradient(v2));
  EXPECT_EQ(gradient(w), gradient(w2));
  EXPECT_EQ(gradient(x), (Floats{15, 150, 1500, 15000}));
}

TEST(GraphModels, N32_OneArtifactTwiceWithSharedParamsAndOpsBetween) {
  Model model = load(product(3));
  Tensor x = leaf({1, 1, 1, 1}), w = paramOf(model, "w"), a, b;
  graphForward(model, {{"x", x}}, {{"w", w}}, {{"o", a}});
  graphForward(model, {{"x", scale(a, 2)}}, {{"w", w}}, {{"o", b}});
  EXPECT_EQ(Node::of(b).topologicalNumber(), 3u);
  backward({sum(add(a, b))});
  // a = x w, b = 2 x w w: 1 w + 2 w w, and x + 4 x w.
  EXPECT_EQ(gradient(x), (Floats{21, 21, 21, 21}));
  EXPECT_EQ(gradient(w), (Floats{13, 13, 13, 13}));
}

TEST(GraphModels, C01_C05_ContextsOfNodesAreChecked) {
  Model model = load(product(3));
  Tensor x = leaf({1, 2, 3, 4}), w = paramOf(model, "w"), o;
  Tensor one = numbers({1, 1, 1, 1});
  graphForward(model, {{"x", x}}, {{"w", w}}, {{"o", o}});
  backward({o}, {one}, TDM_RETAIN_GRAPH);
  backward({o}, {one});
  expectMessage(messageOf([&] { backward({o}, {one}); }), "retain_graph");
  graphForward(model, {{"x", x}}, {{"w", w}}, {{"o", o}});
  w.markWritten();
  expectMessage(messageOf([&] { backward({o}, {one}); }), "was written");
}

TEST(GraphModels, G01_GradientsOfProgramsHaveGradients) {
  Model model = load(squares());
  Tensor x = leaf({1, 2, 3, 4}), co = leaf({1, 1, 1, 1});
  Tensor w = paramOf(model, "w"), o, v = numbers({1, 1, 1, 1});
  graphForward(model, {{"x", x}}, {{"w", w}}, {{"o", o}});
  Tensor g = grad({o}, {x}, {co}, TDM_CREATE_GRAPH)[0];
  EXPECT_EQ(valuesOf(g), (Floats{6, 12, 18, 24}));
  EXPECT_TRUE(g.requiresGrad() && !g.isLeaf());
  TensorList second = grad({g}, {x, co, w}, {v});
  EXPECT_EQ(valuesOf(second[0]), (Floats{6, 6, 6, 6}));
  EXPECT_EQ(valuesOf(second[1]), (Floats{6, 12, 18, 24}));
  EXPECT_EQ(valuesOf(second[2]), (Floats{2, 4, 6, 8}));
  Model without = load(product(3));
  graphForward(without, {{"x", x}}, {}, {{"o", o}});
  expectMessage(messageOf([&] { grad({o}, {x}, {v}, TDM_CREATE_GRAPH); }),
                "compile it with --order=2");
}

TEST(GraphModels, G01_WithGradModeOffNothingIsKept) {
  Model model = load(product(3));
  Tensor x = leaf({1, 2, 3, 4}), w = paramOf(model, "w"), on, off;
  graphForward(model, {{"x", x}}, {{"w", w}}, {{"o", on}});
  {
    GradMode scope(false);
    graphForward(model, {{"x", x}}, {{"w", w}}, {{"o", off}});
  }
  EXPECT_EQ(valuesOf(on), valuesOf(off));
  EXPECT_FALSE(off.requiresGrad());
  // Nor where nobody wants a gradient.
  Tensor plain = numbers({1, 2, 3, 4});
  graphForward(model, {{"x", plain}}, {}, {{"o", off}});
  EXPECT_FALSE(off.requiresGrad());
}

namespace {

/// Hooks under which the use of a saved value meets another thread once, and
/// then calls a model.
struct Calling {
  std::atomic<int> *arrived;
  Model *model; ///< null: it was called
};

tdm_saved_hooks callingHooks(Calling &calling) {
  tdm_saved_hooks hooks = TDM_SAVED_HOOKS_INIT;
  hooks.user = &calling;
  hooks.pack = [](void *, const char *, const tdm_tensor *value,
                  void **packed) {
    auto *kept = new Tensor;
    tdm_tensor_assign(kept->get(), value);
    *packed = kept;
    return TDM_OK;
  };
  hooks.unpack = [](void *user, const char *, void *packed, tdm_tensor *value) {
    auto &to = *static_cast<Calling *>(user);
    return tdm::detail::guarded([&] {
      if (Model *model = std::exchange(to.model, nullptr)) {
        ++*to.arrived;
        while (*to.arrived < 2)
          std::this_thread::yield();
        GradMode off(false);
        Tensor x = numbers({1, 1, 1, 1}), o;
        graphForward(*model, {{"x", x}}, {}, {{"o", o}});
      }
      check(tdm_tensor_assign(value, static_cast<Tensor *>(packed)->get()));
    });
  };
  hooks.release = [](void *, void *packed) {
    delete static_cast<Tensor *>(packed);
  };
  return hooks;
}

} // namespace

// Each of two threads held its model and waited for the other's, for ever.
TEST(GraphModels, C12_N30_HooksOfTwoModelsThatCallEachOther) {
  Model models[] = {load(product(3)), load(product(5))};
  std::atomic<int> arrived{0};
  Calling calling[] = {{&arrived, &models[1]}, {&arrived, &models[0]}};
  Tensor x[2], o[2];
  for (int t = 0; t < 2; ++t) {
    x[t] = leaf({1, 2, 3, 4});
    tdm_saved_hooks hooks = callingHooks(calling[t]);
    check(tdm_set_saved_hooks(&hooks));
    graphForward(models[t], {{"x", x[t]}}, {}, {{"o", o[t]}});
    check(tdm_set_saved_hooks(nullptr));
  }
  std::string messages[2];
  std::thread threads[2];
  for (int t = 0; t < 2; ++t)
    threads[t] = std::thread([&, t] {
      messages[t] = messageOf([&] {
        backward({o[t]}, {numbers({1, 1, 1, 1})});
      });
    });
  for (std::thread &thread : threads)
    thread.join();
  int refused = messages[0].empty() ? 1 : 0;
  EXPECT_EQ(messages[1 - refused], "");
  expectMessage(messages[refused], "on another thread waits for the model");
  float w = refused == 0 ? 5 : 3;
  EXPECT_EQ(gradient(x[1 - refused]), (Floats{w, w, w, w}));
}
