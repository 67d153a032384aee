//===- HandleTest.cpp - what a call does to the handles of its inputs -----===//
//
// Rows of group M, and J18 and G01: metadata and storage of inputs change after
// success and only then; leaves that require grad are not written visibly; what
// requires grad afterwards.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/Maker.h"

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;
using artifact::Slot;

namespace {

using Values = std::vector<float>;

Status evaluate(Model &model, std::vector<Argument> inputs,
                std::vector<Destination> outputs = {}) {
  return model.run("evaluate", inputs, outputs);
}

/// x [2, 3] is transposed, and doubled if `writes`.
Maker transposes(bool writes) {
  Maker m;
  m.value(Role::Input, "x", {2, 3});
  m.value(Role::Output, "o", {2, 3});
  m.program("evaluate");
  Slot *slot = nullptr;
  int64_t x = m.argument(Role::Input, "x", {2, 3}, &slot);
  slot->metadata = aliasOf("x", {View::permute({1, 0})});
  int64_t o = m.result(Role::Output, "o", {2, 3});
  if (writes) {
    m.update("x", {2, 3});
    m.launch("twice", {x}, x, 6);
  }
  m.launch("copy", {x}, o, 6);
  return m;
}

TEST(Handles, M08_TransposeAlone) {
  Model model = transposes(false).load();
  Tensor x = filled({2, 3});
  Tensor other = x;
  uint64_t version = x.version();
  ASSERT_TRUE(evaluate(model, {{"x", &x}}).ok());
  EXPECT_EQ(toString(x.shape()), "[3, 2]");
  EXPECT_EQ(toString(x.strides()), "[1, 3]");
  EXPECT_EQ(x.storage(), other.storage());
  EXPECT_EQ(x.version(), version) << "no element was written";
  EXPECT_EQ(toString(other.shape()), "[2, 3]") << "another handle";
  expectMessage(evaluate(model, {{"x", &x}}),
                "input 'x' (index 0): expected f32 [2, 3] but got f32 [3, 2]");
}

TEST(Handles, M09_TransposeAndAWriteAndAFailedCheck) {
  Model model = transposes(true).load();
  Tensor columns = filled({3, 2});
  Tensor x = *columns.view(Sizes{2, 3}, Sizes{1, 2}), wrong = filled({5});
  ASSERT_TRUE(x.setRequiresGrad(true).ok());
  expectMessage(evaluate(model, {{"x", &x}}, {{"o", &wrong}}), "f32 [5]");
  EXPECT_EQ(toString(x.shape()), "[2, 3]") << "only after success";
  const Tensor constant = x;
  expectMessage(evaluate(model, {{"x", &constant}}),
                "input 'x' (index 0): expected a tensor that may be changed, "
                "since the program changes what it shows");
  EXPECT_EQ(valuesOf(columns), Values({0, 1, 2, 3, 4, 5}));
  ASSERT_TRUE(evaluate(model, {{"x", &x}}).ok());
  EXPECT_EQ(toString(x.strides()), "[2, 1]");
  EXPECT_EQ(valuesOf(columns), Values({0, 2, 4, 6, 8, 10}));
  EXPECT_TRUE(x.requiresGrad() && x.isLeaf()) << "the handle's marks stay";
}

/// set_(x, y[2:6]); the old storage of x is doubled (a view taken before), y is
/// incremented.
Maker sets() {
  Maker m;
  m.value(Role::Input, "x", {4});
  m.value(Role::Input, "y", {8});
  m.program("evaluate");
  Slot *slot = nullptr;
  int64_t x = m.argument(Role::Input, "x", {4}, &slot);
  slot->storage = aliasOf("y", {View::slice({2}, {6}, {1})});
  int64_t y = m.argument(Role::Input, "y", {8});
  int64_t update = m.result(Role::Update, "x", {4});
  m.update("y", {8});
  m.launch("twice", {x}, update, 4);
  m.launch("increment", {y}, y, 8);
  return m;
}

TEST(Handles, M11_M12_SetShowsTheOtherStorage) {
  Model model = sets().load();
  Tensor x = filled({4}, 1, 0), y = filled({8});
  Tensor before = x;
  ASSERT_TRUE(evaluate(model, {{"x", &x}, {"y", &y}}).ok());
  EXPECT_EQ(x.storage(), y.storage());
  EXPECT_EQ(valuesOf(x), Values({3, 4, 5, 6}));
  EXPECT_EQ(valuesOf(before), Values({2, 2, 2, 2})) << "the old storage";
  EXPECT_EQ(valuesOf(y), Values({1, 2, 3, 4, 5, 6, 7, 8}));
  setAt(x, 0, 30);
  EXPECT_EQ(y.at(2), 30);
  // Called again, x and y overlap.
  expectMessage(evaluate(model, {{"x", &x}, {"y", &y}}), "shares memory with");
}

TEST(Handles, M11_OneHandleCannotBeTwoInputs) {
  Maker m = sets();
  m.manifest.programs[0].results.clear();
  m.manifest.programs[0].launches.clear();
  m.manifest.programs[0].buffers.clear();
  m.manifest.values[1].shape = {4};
  m.manifest.programs[0].arguments[1].shape = {4};
  m.manifest.programs[0].arguments[0].storage =
      aliasOf("y", {View::reshape({2, 2})});
  Model model = m.load();
  Tensor x = filled({4});
  expectMessage(evaluate(model, {{"x", &x}, {"y", &x}}),
                "input 'x' (index 0), which shows something else afterwards, "
                "is the same tensor as input 'y' (index 1)");
}

/// f is freed at the call; if `fills`, it is filled with 2 * x. g is freed
/// afterwards; o = g + x.
Maker resizes(bool inPlace) {
  Maker m;
  m.value(Role::Input, "x", {4});
  m.value(Role::Input, "f", {4});
  m.value(Role::Input, "g", {4});
  m.value(Role::Output, "o", {4});
  m.program("evaluate");
  Slot *slot = nullptr;
  int64_t x = m.argument(Role::Input, "x", {4});
  int64_t f = m.argument(Role::Input, "f", {4}, &slot);
  slot->freed = true;
  slot->resize = 4;
  int64_t g = m.argument(Role::Input, "g", {4}, &slot);
  slot->resize = 0;
  int64_t o = m.result(Role::Output, "o", {4});
  if (inPlace) {
    m.update("f", {4});
    m.launch("twice", {x}, f, 4);
  } else {
    int64_t update = m.result(Role::Update, "f", {4});
    m.launch("twice", {x}, update, 4);
  }
  m.launch("add", {g, x}, o, 4);
  return m;
}

TEST(Handles, M14_StorageIsFilledAndFreed) {
  for (bool inPlace : {false, true}) {
    Model model = resizes(inPlace).load();
    Tensor x = filled({4}), f = filled({4}), g = filled({4}, 10), o;
    Tensor otherF = f;
    expectMessage(evaluate(model, {{"x", &x}, {"f", &f}, {"g", &g}}),
                  "input 'f' (index 1): expected freed storage but got 16 "
                  "bytes");
    ASSERT_TRUE(f.resizeStorage(0).ok());
    ASSERT_TRUE(
        evaluate(model, {{"x", &x}, {"f", &f}, {"g", &g}}, {{"o", &o}}).ok());
    EXPECT_EQ(valuesOf(otherF), Values({0, 2, 4, 6}));
    EXPECT_EQ(valuesOf(o), Values({10, 12, 14, 16}));
    EXPECT_FALSE(g.isBacked());
    EXPECT_EQ(g.data(), nullptr);
    EXPECT_EQ(g.storage()->bytes(), 0);
    ASSERT_TRUE(f.resizeStorage(0).ok());
    expectMessage(
        evaluate(model, {{"x", &x}, {"f", &f}, {"g", &g}}),
        "input 'g' (index 2): expected a tensor with elements but its "
        "storage has 0 bytes");
    EXPECT_FALSE(f.isBacked()) << "nothing changed";
  }
}

TEST(Handles, M14_StorageThatCannotBeResized) {
  Model model = resizes(false).load();
  float memory[4] = {1, 2, 3, 4};
  Tensor x = filled({4}), f = filled({4});
  ASSERT_TRUE(f.resizeStorage(0).ok());
  Tensor foreign = *Tensor::wrap(memory, DType::F32, Sizes{4});
  expectMessage(evaluate(model, {{"x", &x}, {"f", &f}, {"g", &foreign}}),
                "input 'g' (index 2), whose storage the program resizes: "
                "expected storage that the runtime allocated but got memory of "
                "somebody else");
  expectMessage(evaluate(model, {{"x", &x}, {"f", &f}, {"g", &x}}),
                "input 'g' (index 2), which the program updates, shares memory "
                "with input 'x' (index 0)");
  Tensor large = filled({8}), tail = *large.slice(4, 8), g = filled({4});
  ASSERT_TRUE(large.resizeStorage(0).ok());
  expectMessage(evaluate(model, {{"x", &x}, {"f", &tail}, {"g", &g}}),
                "input 'f' (index 1): expected a view of the 4 elements of the "
                "resized storage but got one that needs 8");
}

/// forward: o = x * y; x += y, visibly and differentiably; s is x's old value,
/// saved. Gradients only of y.
Maker accumulates(bool xRequiresGrad) {
  Maker m;
  m.value(Role::Input, "x", {4}).requiresGrad = xRequiresGrad;
  m.value(Role::Input, "y", {4}).requiresGrad = true;
  m.value(Role::Output, "o", {4});
  m.value(Role::Output, "sum", {4});
  m.value(Role::Output, "count", {4});
  m.program("forward");
  int64_t x = m.argument(Role::Input, "x", {4});
  int64_t y = m.argument(Role::Input, "y", {4});
  int64_t o = m.result(Role::Output, "o", {4});
  int64_t count = m.result(Role::Output, "count", {4});
  int64_t saved = m.result(Role::Saved, "x.0", {4});
  m.launch("copy", {x}, saved, 4);
  m.launch("mul", {x, y}, o, 4);
  m.launch("copy", {x}, count, 4);
  Slot &update = m.update("x", {4});
  update.visible = true;
  update.where = "'tandem.add_' at m.mlir:7:3";
  m.launch("add", {x, y}, x, 4);
  m.alias("sum", {4}, aliasOf("x"));
  m.program("backward");
  int64_t co = m.argument(Role::Cotangent, "o", {4});
  int64_t cu = m.argument(Role::Cotangent, "update of x", {4});
  int64_t cs = m.argument(Role::Cotangent, "sum", {4});
  int64_t was = m.argument(Role::Saved, "x.0", {4});
  Slot *slot = nullptr;
  int64_t g = m.result(Role::Grad, "y", {4}, &slot);
  slot->needs = {{"o", "update of x", "sum"}};
  int64_t part = m.arena(16), both = m.arena(16);
  m.launch("mul", {co, was}, part, 4);
  m.launch("add", {part, cu}, both, 4);
  m.launch("add", {both, cs}, g, 4);
  return m;
}

TEST(GradMode, M17_M02_WhatIsWrittenRequiresGradAfterwards) {
  Model model = accumulates(false).load();
  Tensor x = filled({4}), y = filled({4}, 1, 0), o, sum, count;
  ASSERT_TRUE(y.setRequiresGrad(true).ok());
  std::vector<Argument> in = {{"x", &x}, {"y", &y}};
  std::vector<Destination> out = {{"o", &o}, {"sum", &sum}, {"count", &count}};
  Result<Context> context = model.forward(in, out);
  ASSERT_TRUE(context) << context.status().message();
  EXPECT_TRUE(x.requiresGrad() && !x.isLeaf());
  EXPECT_TRUE(o.requiresGrad() && !o.isLeaf());
  EXPECT_TRUE(sum.requiresGrad());
  EXPECT_FALSE(count.requiresGrad()) << "it gets no cotangent";
  EXPECT_TRUE(y.isLeaf());
  EXPECT_EQ(sum.storage(), x.storage());
  // C08: what the program saved before it wrote it is the old value.
  Tensor co = filled({4}, 1, 0), cu = filled({4}, 10, 0), gy;
  std::vector<Argument> cts = {{"o", &co}, {"update of x", &cu}};
  std::vector<Destination> grads = {{"y", &gy}};
  Status status = model.backward(*context, cts, grads);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(valuesOf(gy), Values({10, 11, 12, 13}));
  EXPECT_FALSE(gy.requiresGrad());
}

TEST(GradMode, M03_AVisibleWriteToALeaf) {
  Model model = accumulates(true).load();
  Tensor x = filled({4}), y = filled({4}, 1, 0), o;
  ASSERT_TRUE(x.setRequiresGrad(true).ok());
  std::vector<Argument> in = {{"x", &x}, {"y", &y}};
  std::vector<Destination> out = {{"o", &o}};
  uint64_t version = x.version();
  expectMessage(model.forward(in, out).status(),
                "cannot run 'forward': input 'x' (index 0) is a leaf that "
                "requires grad, and 'tandem.add_' at m.mlir:7:3 writes it "
                "visibly");
  EXPECT_EQ(x.version(), version);
  EXPECT_FALSE(o.defined());
  // Not a leaf: fine. Grad mode off: fine.
  Tensor made = filled({4});
  made.setMade(true);
  std::vector<Argument> in2 = {{"x", &made}, {"y", &y}};
  EXPECT_TRUE(model.forward(in2, out));
  EXPECT_TRUE(model.run("forward", in, out).ok());
  EXPECT_TRUE(x.isLeaf() && x.requiresGrad());
  EXPECT_FALSE(o.requiresGrad());
}

TEST(GradMode, J18_CompiledWithoutGrad) {
  Model model = accumulates(false).load();
  Tensor x = filled({4}), y = filled({4}, 1, 0);
  x.setMade(true);
  std::vector<Argument> in = {{"x", &x}, {"y", &y}};
  expectMessage(model.forward(in, {}).status(),
                "input 'x' (index 0) requires grad, but the artifact was "
                "compiled without a gradient of it");
  EXPECT_TRUE(model.run("forward", in, {}).ok());
  Model reverse = accumulates(true).load();
  Tensor plain = filled({4});
  std::vector<Argument> in2 = {{"x", &plain}, {"y", &y}};
  EXPECT_TRUE(reverse.forward(in2, {}));
}

TEST(GradMode, G01_WithoutAContextNothingIsKept) {
  Model model = accumulates(false).load();
  Tensor x = filled({4}), y = filled({4}, 1, 0), o, kept;
  ASSERT_TRUE(y.setRequiresGrad(true).ok());
  std::vector<Argument> in = {{"x", &x}, {"y", &y}};
  std::vector<Destination> out = {{"o", &o}};
  ASSERT_TRUE(model.run("forward", in, out).ok());
  EXPECT_FALSE(o.requiresGrad() || x.requiresGrad());
  EXPECT_EQ(x.storage().use_count(), 1) << "nobody refers to the inputs";
  EXPECT_EQ(y.storage().use_count(), 1);
  Tensor x2 = filled({4});
  std::vector<Argument> in2 = {{"x", &x2}, {"y", &y}};
  std::vector<Destination> out2 = {{"o", &kept}};
  Result<Context> context = model.forward(in2, out2);
  ASSERT_TRUE(context);
  EXPECT_EQ(valuesOf(kept), valuesOf(o)) << "the same outputs";
  // A leaf that requires grad receives no output in grad mode.
  Tensor leaf = filled({4});
  ASSERT_TRUE(leaf.setRequiresGrad(true).ok());
  std::vector<Destination> toLeaf = {{"o", &leaf}};
  Tensor x3 = filled({4});
  std::vector<Argument> in3 = {{"x", &x3}, {"y", &y}};
  expectMessage(model.forward(in3, toLeaf).status(),
                "output 'o' (index 0): expected a tensor to write to that is "
                "no leaf that requires grad");
}

TEST(Handles, M16_AGraphThatOnlyWrites) {
  Maker m;
  m.value(Role::Input, "x", {4});
  m.value(Role::Input, "y", {4});
  m.program("forward");
  int64_t x = m.argument(Role::Input, "x", {4});
  int64_t y = m.argument(Role::Input, "y", {4});
  m.update("x", {4});
  m.launch("add", {x, y}, x, 4);
  Model model = m.load();
  Tensor a = filled({4}), b = filled({4});
  std::vector<Argument> in = {{"x", &a}, {"y", &b}};
  uint64_t version = b.version();
  ASSERT_TRUE(model.run("forward", in, {}).ok());
  EXPECT_EQ(valuesOf(a), Values({0, 2, 4, 6}));
  EXPECT_EQ(b.version(), version);
  Result<Context> context = model.forward(in, {});
  EXPECT_TRUE(context) << "a context of nothing";
}

} // namespace
