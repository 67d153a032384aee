//===- LayoutTest.cpp - gradients lie as their leaves do ------------------===//
//
// Row N20 for what leaves a backward: the strides of a leaf that is dense in
// whatever order, else row-major ones, in gradients of the first and of the
// second order.
//
//===----------------------------------------------------------------------===//
#include "runtime/tensor/Strides.h"
#include "tests/runtime/Maker.h"

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;

namespace {

/// A leaf over the first elements of some storage, and how its gradient lies.
struct Case {
  const char *name;
  Sizes shape, strides, expected;
};

const Case kCases[] = {
    {"row-major", {2, 3}, {3, 1}, {3, 1}},
    {"transposed", {2, 3}, {1, 2}, {1, 2}},
    {"permuted", {2, 3, 4}, {3, 1, 6}, {3, 1, 6}},
    {"a slice", {2, 3}, {6, 2}, {3, 1}},
    {"a transposed slice", {2, 3}, {1, 4}, {3, 1}},
    {"an expanded row", {2, 3}, {0, 1}, {3, 1}},
    {"an expanded number", {2, 3}, {0, 0}, {3, 1}},
    {"a number", {}, {}, {}},
    {"sizes of 1 in front", {1, 2, 3}, {6, 3, 1}, {6, 3, 1}},
    {"sizes of 1 with other strides",
     {1, 2, 1, 3},
     {40, 1, 50, 2},
     {40, 1, 50, 2}},
    {"one element", {1}, {7}, {7}},
    {"no elements", {0, 3}, {1, 5}, {3, 1}},
};

/// o = 2 x, with gradients of both orders: g(x) = 2 co, and for the cotangent v
/// of g(x) 2 v for both.
Maker doubled(const Sizes &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  Maker m;
  // No launch makes what has no elements.
  auto launch = [&](int64_t from, int64_t to) {
    if (count > 0)
      m.launch("twice", {from}, to, count);
  };
  m.value(Role::Input, "x", shape).requiresGrad = true;
  m.value(Role::Output, "o", shape);
  m.program("forward");
  int64_t x = m.argument(Role::Input, "x", shape);
  int64_t o = m.result(Role::Output, "o", shape);
  launch(x, o);
  for (const char *name : {"backward", "grad_forward"}) {
    m.program(name);
    int64_t co = m.argument(Role::Cotangent, "o", shape);
    int64_t g = m.result(Role::Grad, "x", shape);
    launch(co, g);
  }
  m.program("grad_backward");
  int64_t v = m.argument(Role::Cotangent, "grad of x", shape);
  int64_t gx = m.result(Role::Grad, "x", shape);
  int64_t gc = m.result(Role::Grad, "cotangent of o", shape);
  launch(v, gx);
  launch(v, gc);
  return m;
}

Sizes stridesOf(const Tensor &tensor) {
  return {tensor.strides().begin(), tensor.strides().end()};
}

/// Element by element, in the order of the indices.
std::vector<double> elementsOf(const Tensor &tensor) {
  std::vector<double> elements;
  for (int64_t i = 0; i < tensor.elements(); ++i)
    elements.push_back(tensor.at(i));
  return elements;
}

Tensor leafOf(const Case &one) {
  return *filled({256}).view(one.shape, one.strides);
}

std::vector<double> twice(const Tensor &tensor) {
  std::vector<double> elements = elementsOf(tensor);
  for (double &element : elements)
    element *= 2;
  return elements;
}

} // namespace

// Gradients of transposed leaves were row-major.
TEST(Layout, N20_OfABackward) {
  for (const Case &one : kCases) {
    SCOPED_TRACE(one.name);
    Model model = doubled(one.shape).load();
    Tensor x = leafOf(one), co = *leafOf(one).dense(), g;
    std::vector<Argument> inputs = {{"x", &x}}, cotangents = {{"o", &co}};
    std::vector<Destination> grads = {{"x", &g}};
    for (int call = 0; call < 2; ++call) {
      Result<Context> context = model.forward(inputs, {});
      ASSERT_TRUE(context) << context.status().message();
      g = Tensor();
      Status status = model.backward(*context, cotangents, grads);
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(stridesOf(g), one.expected);
      EXPECT_EQ(elementsOf(g), twice(co));
    }
    // The caller's own tensor stays as it is.
    Result<Context> context = model.forward(inputs, {});
    Tensor own = *Tensor::zeros(DType::F32, one.shape, tensorDevice());
    Sizes before = stridesOf(own);
    g = own;
    ASSERT_TRUE(model.backward(*context, cotangents, grads).ok());
    EXPECT_EQ(g.data(), own.data());
    EXPECT_EQ(stridesOf(g), before);
    EXPECT_EQ(elementsOf(g), twice(co));
  }
}

// The layout of one call was not that of another.
TEST(Layout, N20_OfTheLeafOfEachCall) {
  Model model = doubled({2, 3}).load();
  Tensor rows = filled({2, 3}), columns = leafOf(kCases[1]);
  Tensor made = columns, co = filled({2, 3}, 1);
  made.setMade(true);
  const std::pair<Tensor *, Sizes> calls[] = {
      {&rows, {3, 1}}, {&columns, {1, 2}}, {&made, {3, 1}}};
  std::vector<Context> contexts;
  for (auto &[x, strides] : calls) {
    std::vector<Argument> inputs = {{"x", x}};
    contexts.push_back(*model.forward(inputs, {}));
  }
  for (size_t i = 3; i-- > 0;) {
    Tensor g;
    std::vector<Argument> cotangents = {{"o", &co}};
    std::vector<Destination> grads = {{"x", &g}};
    ASSERT_TRUE(model.backward(contexts[i], cotangents, grads).ok());
    EXPECT_EQ(stridesOf(g), calls[i].second) << i;
    EXPECT_EQ(elementsOf(g), twice(co));
  }
}

// Gradients under create_graph, and those of them, were row-major.
TEST(Layout, N20_UnderCreateGraph) {
  for (const Case &one : kCases) {
    SCOPED_TRACE(one.name);
    Model model = doubled(one.shape).load();
    Tensor x = leafOf(one), co = *leafOf(one).dense(), v = leafOf(one);
    // The cotangent is a leaf of its own.
    Tensor other = leafOf(one);
    Tensor g, gx, gc;
    std::vector<Argument> inputs = {{"x", &x}}, first = {{"o", &co}},
                          second = {{"grad of x", &v}};
    std::vector<Destination> grads = {{"x", &g}},
                             all = {{"x", &gx}, {"cotangent of o", &gc}};
    Context context = *model.forward(inputs, {}), graph;
    ASSERT_TRUE(model.backward(context, first, grads, {}, &graph).ok());
    EXPECT_EQ(stridesOf(g), one.expected);
    EXPECT_EQ(elementsOf(g), twice(co));
    ASSERT_TRUE(model.backward(graph, second, all).ok());
    EXPECT_EQ(stridesOf(gx), one.expected);
    EXPECT_EQ(stridesOf(gc),
              one.shape == Sizes({0, 3}) ? one.expected : stridesOf(co));
    EXPECT_EQ(elementsOf(gx), twice(v));
    first = {{"o", &other}};
    context = *model.forward(inputs, {});
    ASSERT_TRUE(model.backward(context, first, grads, {}, &graph).ok());
    gc = Tensor();
    ASSERT_TRUE(model.backward(graph, second, all).ok());
    EXPECT_EQ(stridesOf(gc), one.expected);
    EXPECT_EQ(elementsOf(gc), twice(v));
  }
}
