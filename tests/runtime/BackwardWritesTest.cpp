//===- BackwardWritesTest.cpp - what a backward writes --------------------===//
//
// Rows of group B that the runtime answers for: a backward that updates inputs,
// states and cotangents.
//
//===----------------------------------------------------------------------===//
#include "runtime/call/CreateGraph.h"
#include "tests/runtime/Maker.h"

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;
using artifact::Slot;

namespace {

using Values = std::vector<float>;

/// o = x * s. The backward gives g(x) = co * s, adds co to `s` (as found) and
/// to the input x itself, doubles the cotangent, and reads x as the forward had
/// it for g(y) = co * x0.
Maker writesBackward() {
  Maker m;
  m.value(Role::Input, "x", {4}).requiresGrad = true;
  m.value(Role::Input, "y", {4}).requiresGrad = true;
  m.value(Role::State, "s", {4}).init = artifact::Init::constant(3);
  m.value(Role::Output, "o", {4});
  m.program("forward");
  Slot *slot = nullptr;
  int64_t x = m.argument(Role::Input, "x", {4});
  m.argument(Role::Input, "y", {4});
  int64_t s = m.argument(Role::State, "s", {4});
  int64_t o = m.result(Role::Output, "o", {4});
  int64_t saved = m.result(Role::Saved, "s.0", {4});
  m.launch("mul", {x, s}, o, 4);
  m.launch("copy", {s}, saved, 4);
  m.program("backward");
  int64_t co = m.argument(Role::Cotangent, "o", {4});
  int64_t was = m.argument(Role::Saved, "s.0", {4});
  int64_t x0 = m.argument(Role::Input, "x", {4});
  int64_t found = m.argument(Role::Input, "x", {4}, &slot);
  slot->asFound = true;
  s = m.argument(Role::State, "s", {4}, &slot);
  slot->asFound = true;
  int64_t gx = m.result(Role::Grad, "x", {4});
  int64_t gy = m.result(Role::Grad, "y", {4});
  int64_t newX = m.result(Role::Update, "x", {4});
  m.update("s", {4});
  m.update("cotangent of o", {4});
  m.launch("mul", {co, was}, gx, 4);
  m.launch("mul", {co, x0}, gy, 4);
  m.launch("add", {found, co}, newX, 4);
  m.launch("add", {s, co}, s, 4);
  m.launch("twice", {co}, co, 4);
  m.manifest.mutatedInBackward = {0};
  return m;
}

class WritesBackward : public ::testing::Test {
protected:
  Model model = writesBackward().load();
  Tensor x = filled({4}), y = filled({4}), co = filled({4}, 1, 0), gx, gy;
  std::vector<Argument> inputs = {{"x", &x}, {"y", &y}};
  std::vector<Argument> cotangents = {{"o", &co}};
  std::vector<Destination> grads = {{"x", &gx}, {"y", &gy}};

  Context forward() {
    Result<Context> context = model.forward(inputs, {});
    EXPECT_TRUE(context) << context.status().message();
    return std::move(*context);
  }
};

TEST_F(WritesBackward, B01_B02_B05_B10_B15_DataIsWritten) {
  Context context = forward();
  EXPECT_EQ(valuesOf(*model.get("s")), Values({3, 3, 3, 3}));
  Status status = model.backward(context, cotangents, grads);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(valuesOf(gx), Values({3, 3, 3, 3}));
  EXPECT_EQ(valuesOf(gy), Values({0, 1, 2, 3})) << "x as the forward had it";
  EXPECT_EQ(valuesOf(x), Values({1, 2, 3, 4}));
  EXPECT_EQ(valuesOf(*model.get("s")), Values({4, 4, 4, 4}));
  EXPECT_EQ(valuesOf(co), Values({2, 2, 2, 2})) << "the caller's cotangent";
}

TEST_F(WritesBackward, B03_CreateGraphNamesThemAndKeepsTheContext) {
  Context context = forward();
  expectMessage(
      model.backward(context, cotangents, grads, {false, true}),
      "cannot run 'backward': create_graph was asked for, but the backward "
      "writes values that require grad: input 'x' (index 0)");
  EXPECT_EQ(valuesOf(*model.get("s")), Values({3, 3, 3, 3}));
  EXPECT_EQ(valuesOf(x), Values({0, 1, 2, 3}));
  EXPECT_TRUE(model.backward(context, cotangents, grads).ok());
}

TEST_F(WritesBackward, B10_ACotangentThatRequiresGrad) {
  Maker m = writesBackward();
  m.manifest.mutatedInBackward.clear();
  model = m.load();
  Context context = forward();
  co.setMade(true);
  expectMessage(model.backward(context, cotangents, grads, {false, true}),
                "create_graph was asked for, but the program writes cotangent "
                "of 'o' (index 0), which requires grad");
  EXPECT_TRUE(context.live());
  EXPECT_TRUE(model.backward(context, cotangents, grads, {true, false}).ok());
  expectMessage(model.backward(context, cotangents, grads, {true, false}),
                "input 'x' (index 2), which it reads, was written after");
}

TEST_F(WritesBackward, B04_AStateMayBeWrittenUnderCreateGraph) {
  Maker m = writesBackward();
  m.manifest.mutatedInBackward.clear();
  model = m.load();
  Context context = forward();
  EXPECT_TRUE(model.backward(context, cotangents, grads, {false, true}).ok());
  EXPECT_EQ(valuesOf(*model.get("s")), Values({4, 4, 4, 4}));
}

TEST_F(WritesBackward, B13_ThroughAStridedInput) {
  Tensor base = filled({8});
  x = *base.view(Sizes{4}, Sizes{2});
  Context context = forward();
  ASSERT_TRUE(model.backward(context, cotangents, grads).ok());
  EXPECT_EQ(valuesOf(base), Values({1, 1, 3, 3, 5, 5, 7, 7}));
  EXPECT_EQ(valuesOf(gy), Values({0, 2, 4, 6}));
}

TEST_F(WritesBackward, B18_AnotherLiveContextSavedIt) {
  Context a = forward(), b = forward();
  ASSERT_TRUE(model.backward(a, cotangents, grads).ok());
  expectMessage(model.backward(b, cotangents, grads),
                "input 'x' (index 2), which it reads, was written after the "
                "forward");
  EXPECT_TRUE(b.live());
}

TEST(CreateGraph, B04_AnEmptyListLooksAtNoInput) {
  std::vector<artifact::Value> values(1000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i].name = "x" + std::to_string(i);
  int looked = 0;
  auto valueAt = [&](int64_t index) -> const artifact::Value & {
    ++looked;
    return values[index];
  };
  auto writerOf = [](const artifact::Value &value) -> std::string {
    return value.name == "x3" ? "'op' at m.mlir:1:2" : "";
  };
  EXPECT_TRUE(checkCreateGraph({}, valueAt, writerOf).ok());
  EXPECT_EQ(looked, 0);
  std::vector<int64_t> list = {3, 999};
  // The message did not say which op writes.
  expectMessage(checkCreateGraph(list, valueAt, writerOf),
                "input 'x3' (index 3) by 'op' at m.mlir:1:2, input 'x999' "
                "(index 999)");
  EXPECT_EQ(looked, 2);
}

} // namespace
