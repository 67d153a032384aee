//===- AliasTest.cpp - outputs and inputs that share storage --------------===//
//
// Rows of group A, on hand-made artifacts: outputs that are views of this
// call's input, of an updated input, of each other; declared and undeclared
// overlaps of inputs; pieces of a split.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/Maker.h"

using namespace tandem;
using namespace tandem::runtime;
using namespace tandem::test;
using artifact::Slot;

namespace {

using Values = std::vector<float>;

/// Outputs of x [2, 3]: "t" its transpose, "flat" x as [6]; b = 2 * x, "rows"
/// b as [6]. If `writes`, x is doubled in place before.
Maker views(bool writes = false) {
  Maker m;
  m.value(Role::Input, "x", {2, 3});
  m.value(Role::Output, "b", {2, 3});
  m.value(Role::Output, "t", {3, 2});
  m.value(Role::Output, "flat", {6});
  m.value(Role::Output, "rows", {6});
  m.program("evaluate");
  int64_t x = m.argument(Role::Input, "x", {2, 3});
  int64_t b = m.result(Role::Output, "b", {2, 3});
  if (writes) {
    m.update("x", {2, 3});
    m.launch("twice", {x}, x, 6);
  }
  m.launch("twice", {x}, b, 6);
  m.alias("t", {3, 2}, aliasOf("x", {View::permute({1, 0})}), "split");
  m.alias("flat", {6}, aliasOf("x", {View::reshape({6})}));
  m.alias("rows", {6}, aliasOfOutput("b", {View::reshape({6})}));
  return m;
}

Status run(Model &model, Tensor &x, std::vector<Destination> outputs) {
  std::vector<Argument> in = {{"x", &x}};
  return model.run("evaluate", in, outputs);
}

TEST(Alias, A01_OutputIsAViewOfThisCallsInput) {
  Model model = views().load();
  Tensor x = filled({2, 3}), t, flat;
  ASSERT_TRUE(run(model, x, {{"t", &t}, {"flat", &flat}}).ok());
  EXPECT_EQ(t.storage(), x.storage());
  EXPECT_EQ(flat.storage(), x.storage());
  EXPECT_EQ(valuesOf(t), Values({0, 3, 1, 4, 2, 5}));
  setAt(x, 3, 30);
  EXPECT_EQ(t.at(1), 30);
  setAt(flat, 0, 9);
  EXPECT_EQ(x.at(0), 9);
  EXPECT_STREQ(t.partOf(), "split");
  // Over the strides of another call.
  Tensor columns = filled({3, 2}), t2;
  Tensor strided = *columns.view(Sizes{2, 3}, Sizes{1, 2});
  ASSERT_TRUE(run(model, strided, {{"t", &t2}}).ok());
  EXPECT_EQ(t2.data(), columns.data());
  EXPECT_EQ(valuesOf(t2), Values({0, 1, 2, 3, 4, 5}));
}

TEST(Alias, A01_StridesThatDoNotAllowTheView) {
  Model model = views(true).load();
  Tensor columns = filled({3, 2}), flat;
  Tensor x = *columns.view(Sizes{2, 3}, Sizes{1, 2});
  uint64_t version = x.version();
  expectMessage(run(model, x, {{"flat", &flat}}),
                "output 'flat' (index 3), a view of input 'x' (index 0): "
                "'reshape': expected strides that let shape [2, 3] be seen as "
                "[6] without a copy, but got strides [1, 2]");
  EXPECT_FALSE(flat.defined());
  EXPECT_EQ(x.version(), version) << "found before anything ran";
  EXPECT_TRUE(run(model, x, {}).ok()) << "nobody asks for it";
}

TEST(Alias, A01_DefinedDestinationIsACopy) {
  Model model = views().load();
  Tensor x = filled({2, 3}), t = filled({3, 2});
  const void *before = t.data();
  ASSERT_TRUE(run(model, x, {{"t", &t}}).ok());
  EXPECT_EQ(t.data(), before);
  EXPECT_EQ(valuesOf(t), Values({0, 3, 1, 4, 2, 5}));
  // The view itself: nothing to do; another place over it: refused.
  Tensor self = *x.view(Sizes{3, 2}, Sizes{1, 3});
  ASSERT_TRUE(run(model, x, {{"t", &self}}).ok());
  EXPECT_EQ(valuesOf(x), Values({0, 1, 2, 3, 4, 5}));
  Tensor other = *x.view(Sizes{3, 2}, Sizes{2, 1});
  expectMessage(run(model, x, {{"t", &other}}),
                "output 't' (index 1), a view of input 'x' (index 0), shares "
                "memory with it in other places");
}

TEST(Alias, A02_OneBufferForAnOutputAndItsView) {
  Model model = views().load();
  Tensor x = filled({2, 3}), b, rows, onlyRows;
  ASSERT_TRUE(run(model, x, {{"b", &b}, {"rows", &rows}}).ok());
  EXPECT_EQ(b.storage(), rows.storage());
  EXPECT_EQ(valuesOf(rows), Values({0, 2, 4, 6, 8, 10}));
  ASSERT_TRUE(run(model, x, {{"rows", &onlyRows}}).ok());
  EXPECT_EQ(valuesOf(onlyRows), valuesOf(rows));
  EXPECT_NE(onlyRows.storage(), rows.storage());
  // Over a strided destination of b, and where that allows no view.
  Tensor wide = filled({2, 6}), rows2;
  Tensor to = *wide.view(Sizes{2, 3}, Sizes{3, 1});
  ASSERT_TRUE(run(model, x, {{"b", &to}, {"rows", &rows2}}).ok());
  EXPECT_EQ(rows2.data(), wide.data());
  Tensor gaps = *wide.view(Sizes{2, 3}, Sizes{6, 1}), rows3;
  expectMessage(run(model, x, {{"b", &gaps}, {"rows", &rows3}}),
                "output 'rows' (index 3), a view of output 'b' (index 0): "
                "'reshape': expected strides");
}

TEST(Alias, A13_M15_ViewsOfAnUpdatedInput) {
  Model model = views(true).load();
  Tensor x = filled({2, 3}), t, flat;
  ASSERT_TRUE(run(model, x, {{"t", &t}, {"flat", &flat}}).ok());
  EXPECT_EQ(t.storage(), x.storage());
  EXPECT_EQ(flat.data(), x.data());
  EXPECT_EQ(valuesOf(x), Values({0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(valuesOf(t), Values({0, 6, 2, 8, 4, 10}));
  // A strided x goes through a copy; the view shows the caller's storage.
  Tensor columns = filled({3, 2}), t2;
  Tensor strided = *columns.view(Sizes{2, 3}, Sizes{1, 2});
  ASSERT_TRUE(run(model, strided, {{"t", &t2}}).ok());
  EXPECT_EQ(valuesOf(t2), Values({0, 2, 4, 6, 8, 10}));
}

/// Inputs x [4] and y [4]; x += y in place if `writes`; o = x + y before.
Maker pair(bool writes) {
  Maker m;
  m.value(Role::Input, "x", {4});
  m.value(Role::Input, "y", {4});
  m.value(Role::Output, "o", {4});
  m.program("evaluate");
  int64_t x = m.argument(Role::Input, "x", {4});
  int64_t y = m.argument(Role::Input, "y", {4});
  int64_t o = m.result(Role::Output, "o", {4});
  m.launch("add", {x, y}, o, 4);
  if (writes) {
    m.update("x", {4});
    m.launch("add", {x, y}, x, 4);
  }
  return m;
}

Status runPair(Model &model, Tensor &x, Tensor &y, Tensor &o) {
  std::vector<Argument> in = {{"x", &x}, {"y", &y}};
  std::vector<Destination> out = {{"o", &o}};
  return model.run("evaluate", in, out);
}

TEST(Alias, A06_A10_OverlapsThatNobodyWrites) {
  Model model = pair(false).load();
  Tensor x = filled({4}), o, base = filled({6}), o2;
  ASSERT_TRUE(runPair(model, x, x, o).ok());
  EXPECT_EQ(valuesOf(o), Values({0, 2, 4, 6}));
  Tensor low = *base.slice(0, 4), high = *base.slice(2, 6);
  ASSERT_TRUE(runPair(model, low, high, o2).ok());
  EXPECT_EQ(valuesOf(o2), Values({2, 4, 6, 8}));
}

TEST(Alias, A07_A10_UndeclaredOverlapWithAWrittenOne) {
  Model model = pair(true).load();
  Tensor x = filled({4}), o, base = filled({6});
  expectMessage(runPair(model, x, x, o),
                "input 'x' (index 0), which the program updates, shares memory "
                "with input 'y' (index 1)");
  EXPECT_EQ(valuesOf(x), Values({0, 1, 2, 3}));
  Tensor low = *base.slice(0, 4), high = *base.slice(2, 6);
  for (auto [first, second] : {std::pair(low, high), std::pair(high, low)})
    expectMessage(runPair(model, first, second, o),
                  "input 'x' (index 0), which the program updates, shares "
                  "memory with input 'y' (index 1)");
}

TEST(Alias, A09_DisjointViewsOfOneStorage) {
  Model model = pair(true).load();
  Tensor base = filled({8}), o;
  Tensor low = *base.slice(0, 4), high = *base.slice(4, 8);
  ASSERT_TRUE(runPair(model, low, high, o).ok());
  EXPECT_EQ(valuesOf(base), Values({4, 6, 8, 10, 4, 5, 6, 7}));
  Tensor other = filled({8});
  Tensor even = *other.view(Sizes{4}, Sizes{2}, 0);
  Tensor odd = *other.view(Sizes{4}, Sizes{2}, 1);
  ASSERT_TRUE(runPair(model, odd, even, o).ok());
  EXPECT_EQ(valuesOf(other), Values({0, 1, 2, 5, 4, 9, 6, 13}));
}

/// x [4] is the whole, y its reverse half [2] by declaration; x is doubled, and
/// then y is added to the whole's second half. The program sees them apart, as
/// functionalize leaves them: two updates that agree.
Maker declared(bool baseIsArgument) {
  Maker m;
  m.value(Role::Input, "y", {2});
  m.value(Role::Input, "x", {4});
  m.value(Role::Output, "o", {4});
  m.program("evaluate");
  Slot *ySlot = nullptr, *xSlot = nullptr;
  int64_t y = m.argument(Role::Input, "y", {2}, &ySlot);
  (void)y;
  Alias ofY =
      aliasOf(baseIsArgument ? "x" : "all", {View::slice({2}, {4}, {1})});
  if (!baseIsArgument)
    ofY.storage = artifact::TensorType{artifact::DType::F32, {6}};
  ySlot->alias = ofY;
  int64_t x = m.argument(Role::Input, "x", {4}, &xSlot);
  if (!baseIsArgument) {
    xSlot->alias = aliasOf("all", {View::slice({1}, {5}, {1})});
    xSlot->alias->storage = ofY.storage;
  }
  int64_t o = m.result(Role::Output, "o", {4});
  m.update("x", {4});
  m.launch("twice", {x}, x, 4);
  m.launch("copy", {x}, o, 4);
  return m;
}

Status runDeclared(Model &model, Tensor &x, Tensor &y) {
  std::vector<Argument> in = {{"x", &x}, {"y", &y}};
  return model.run("evaluate", in, {});
}

TEST(Alias, A07_A08_DeclaredViewsOneWritten) {
  Model model = declared(true).load();
  Tensor x = filled({4}), y = *x.slice(2, 4);
  ASSERT_TRUE(runDeclared(model, x, y).ok());
  EXPECT_EQ(valuesOf(x), Values({0, 2, 4, 6}));
  EXPECT_EQ(valuesOf(y), Values({4, 6})) << "both see it";
  // A base with strides: the view is over those.
  Tensor wide = filled({8});
  Tensor strided = *wide.view(Sizes{4}, Sizes{2});
  Tensor half = *wide.view(Sizes{2}, Sizes{2}, 4);
  ASSERT_TRUE(runDeclared(model, strided, half).ok());
  EXPECT_EQ(valuesOf(wide), Values({0, 1, 4, 3, 8, 5, 12, 7}));
}

TEST(Alias, A08_TheirBaseMayBeNoArgument) {
  Model model = declared(false).load();
  Tensor all = filled({6}), x = *all.slice(1, 5), y = *all.slice(2, 4);
  ASSERT_TRUE(runDeclared(model, x, y).ok());
  EXPECT_EQ(valuesOf(all), Values({0, 2, 4, 6, 8, 5}));
  Tensor elsewhere = *all.slice(3, 5);
  expectMessage(runDeclared(model, x, elsewhere),
                "input 'x' (index 1): expected the declared view of the "
                "storage 'all' that input 'y' (index 0) shows, with strides "
                "[1] at byte 4 of it, but got strides [1] elsewhere");
}

TEST(Alias, A07_DeclaredButTwoTensors) {
  Model model = declared(true).load();
  Tensor x = filled({4}), other = filled({2});
  expectMessage(runDeclared(model, x, other),
                "input 'y' (index 0): expected the declared view of input 'x' "
                "(index 1), with strides [1] at byte 8 of it, but got strides "
                "[1] elsewhere");
  Tensor wrong = *x.view(Sizes{2}, Sizes{-1}, 3);
  EXPECT_FALSE(runDeclared(model, x, wrong).ok());
  EXPECT_EQ(valuesOf(x), Values({0, 1, 2, 3}));
}

TEST(Alias, A09_ForwardWritesAHalfAndSavesTheOther) {
  // x is updated; y, the other half of the storage, is read by the backward.
  Maker m = pair(true);
  m.manifest.programs[0].name = "forward";
  m.manifest.values[1].requiresGrad = true;
  m.program("backward");
  int64_t ct = m.argument(Role::Cotangent, "o", {4});
  int64_t y = m.argument(Role::Input, "y", {4});
  int64_t g = m.result(Role::Grad, "y", {4});
  m.launch("mul", {ct, y}, g, 4);
  Model model = m.load();
  Tensor base = filled({8}), low = *base.slice(0, 4), high = *base.slice(4, 8);
  std::vector<Argument> in = {{"x", &low}, {"y", &high}};
  Result<Context> context = model.forward(in, {});
  ASSERT_TRUE(context) << context.status().message();
  Tensor one = filled({4}, 1, 0), gy;
  std::vector<Argument> cts = {{"o", &one}};
  std::vector<Destination> grads = {{"y", &gy}};
  BackwardOptions retain{true, false};
  Status status = model.backward(*context, cts, grads, retain);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(valuesOf(gy), Values({4, 5, 6, 7}));
  // But an output over what was saved is a write to it.
  Result<Context> again =
      model.forward(in, std::vector<Destination>{{"o", &high}});
  ASSERT_TRUE(again) << again.status().message();
  expectMessage(model.backward(*again, cts, grads), "was written after");
}

/// forward: o = 2 * x; x is doubled visibly and requires grad afterwards.
Maker visibleWrite() {
  Maker m;
  m.value(Role::Input, "x", {4}).requiresGrad = true;
  m.value(Role::Output, "o", {4});
  m.program("forward");
  int64_t x = m.argument(Role::Input, "x", {4});
  int64_t o = m.result(Role::Output, "o", {4});
  m.launch("twice", {x}, o, 4);
  artifact::Slot &update = m.update("x", {4});
  update.visible = true;
  update.where = "'tandem.mul_' at m.mlir:7:3";
  m.launch("twice", {x}, x, 4);
  m.program("backward");
  int64_t co = m.argument(Role::Cotangent, "o", {4});
  int64_t cx = m.argument(Role::Cotangent, "update of x", {4});
  int64_t g = m.result(Role::Grad, "x", {4});
  m.launch("add", {co, cx}, g, 4);
  return m;
}

TEST(Alias, A05_APieceOfASplitIsNotWrittenVisibly) {
  Model writer = visibleWrite().load();
  Model model = views().load();
  Tensor x = filled({2, 3}), t;
  ASSERT_TRUE(run(model, x, {{"t", &t}}).ok());
  Tensor piece = t;
  Maker flat = views();
  flat.manifest.programs[0].aliases[1].partOf = "split";
  flat.manifest.values[0].shape = {2, 3};
  Model pieces = flat.load();
  Tensor six;
  ASSERT_TRUE(run(pieces, x, {{"flat", &six}}).ok());
  // The writer wants [4]: a handle of the same piece with that type.
  Tensor four = *six.slice(0, 4);
  four.takeMarks(six);
  std::vector<Argument> in = {{"x", &four}};
  expectMessage(writer.forward(in, {}).status(),
                "input 'x' (index 0) is a piece that 'split' made together "
                "with others, and 'tandem.mul_' at m.mlir:7:3 writes it "
                "visibly; detach it first");
  EXPECT_EQ(x.at(1), 1);
  Tensor detached = four.detach();
  std::vector<Argument> ok = {{"x", &detached}};
  ASSERT_TRUE(writer.forward(ok, {}));
  EXPECT_EQ(valuesOf(x), Values({0, 2, 4, 6, 4, 5}));
  EXPECT_TRUE(writer.run("forward", in, {}).ok()) << "grad mode is off";
}

} // namespace
