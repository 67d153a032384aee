//===- AliasTest.cpp - what shares storage, as the tracer records it ------===//
#include "tests/compiler/TraceText.h"

using namespace tandem;

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

TEST(TraceAlias, A01_AViewOfAnInputIsReturnedAsStorage) {
  Trace trace("m");
  Tensor x = trace.input("x", {2, 3});
  trace.output("o", x.transpose(0, 1));
  trace.output("p", x * 2.0);
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(linesWith(text, "return"),
                       "!tandem.ref<3x2xf32>, tensor<2x3xf32>"))
      << text;
}

TEST(TraceAlias, A02_IntermediatesAreSharedWhereTwoOutputsShowThem) {
  Trace trace("m");
  Tensor b = sin(trace.input("x", {2, 3})), c = cos(b);
  trace.output("b", b);
  trace.output("flat", b.view({6}));
  trace.output("again", b);
  trace.output("c", c.view({6})); // alone: a value
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(linesWith(text, "return"),
                       "!tandem.ref<2x3xf32>, !tandem.ref<6xf32>, "
                       "!tandem.ref<2x3xf32>, tensor<6xf32>"))
      << text;
  EXPECT_EQ(count(text, "make_ref"), 1) << text;
}

TEST(TraceAlias, A04_ATransposedIntermediateIsReturned) {
  Trace trace("m");
  Tensor b = sin(trace.input("x", {2, 3}));
  trace.output("b", b); // what the handle shows at the end
  b.transpose_(0, 1);
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(linesWith(text, "return"), "tensor<3x2xf32>")) << text;
}

TEST(TraceAlias, M15_AWrittenInputIsReturnedAsItself) {
  Trace trace("m");
  Tensor x = trace.input("x", {4});
  x *= 2.0;
  trace.output("o", x);
  trace.output("p", x);
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(linesWith(text, "return"), "return %arg0, %arg0 : "))
      << text;
}

TEST(TraceAlias, A05_PiecesOfASplitSayIt) {
  Trace trace("m");
  Tensor x = trace.input("x", {5, 4});
  auto halves = x.split({2, 3});
  auto chunks = x.chunk(3, 1);
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[1].shape(), (Shape{5, 2}));
  trace.output("a", halves[0]);
  trace.output("b", chunks[1]);
  trace.output("c", x.slice(0, 0, 2));
  std::string text = textOf(trace);
  EXPECT_EQ(
      count(linesWith(text, "tandem.slice"), "tandem.part_of = \"split\""), 4)
      << text;
  EXPECT_EQ(count(text, "tandem.slice"), 5) << text;
}

TEST(TraceAlias, A05_SplitSizesAddUp) {
  Trace trace("m");
  Tensor x = trace.input("x", {5, 4});
  EXPECT_EQ(x.split({2, 2}).size(), 2u);
  EXPECT_FALSE(x.split({2, 2})[1].valid());
  EXPECT_FALSE(x.split({6, -1})[0].valid());
  EXPECT_FALSE(x.chunk(0)[0].valid());
  EXPECT_FALSE(x.chunk(2, 7)[0].valid());
  trace.output("o", x);
  EXPECT_EQ(count(mistakeOf(trace), "error:"), 5);
}

TEST(TraceAlias, A12_BitcastIsAViewOfTheBytes) {
  Trace trace("m");
  Tensor x = trace.input("x", {4});
  x.bitcast(DType::I32).zero_();
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(text, "tandem.bitcast %arg0 : !tandem.ref<4xf32> -> "
                             "!tandem.ref<4xi32>"))
      << text;
}

TEST(TraceAlias, A16_StridesMayOverlap) {
  Trace trace("m");
  Tensor x = trace.input("x", {6});
  Tensor windows = x.asStrided({4, 3}, {1, 1});
  EXPECT_EQ(windows.shape(), (Shape{4, 3}));
  trace.output("o", sum(windows));
  EXPECT_FALSE(x.asStrided({4, 4}, {1, 1}, 1).valid()); // beyond the end
  EXPECT_EQ(count(mistakeOf(trace), "error:"), 1);
}

//===----------------------------------------------------------------------===//
// Declared aliases of inputs
//===----------------------------------------------------------------------===//

TEST(TraceAlias, A07_AnInputIsDeclaredAsAViewOfAnother) {
  Trace trace("m");
  Tensor x = trace.input("x", {4, 6});
  Tensor y = trace.alias("y", "x", [](const Tensor &base) {
    return base.slice(1, 0, 3).transpose(0, 1);
  });
  EXPECT_EQ(y.shape(), (Shape{3, 4}));
  y += 1.0;
  trace.output("o", sum(x));
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(
      text, "#tandem.role<input \"y\" {alias = {of = \"x\", views = "
            "[{limits = array<i64: 4, 3>, op = \"slice\", starts = array<i64: "
            "0, 0>, strides = array<i64: 1, 1>}, {op = \"permute\", "
            "permutation = array<i64: 1, 0>}]}}>"))
      << text;
  // The write reaches x: both stay refs.
  EXPECT_EQ(count(linesWith(text, "func.func"), "!tandem.ref<"), 2) << text;
}

TEST(TraceAlias, A08_ViewsOfStorageThatIsNoArgument) {
  Trace trace("m");
  StorageOf buffer{"buffer", {8}, DType::F32};
  Tensor a = trace.alias("a", buffer,
                         [](const Tensor &b) { return b.slice(0, 0, 6); });
  Tensor b = trace.alias("b", buffer,
                         [](const Tensor &b) { return b.slice(0, 2, 8); });
  a.fill_(1.0);
  trace.output("o", sum(b));
  std::string text = textOf(trace);
  EXPECT_EQ(count(text, "type = tensor<8xf32>"), 2) << text;
  EXPECT_EQ(count(linesWith(text, "func.func"), "!tandem.ref<6xf32>"), 2)
      << text;
}

TEST(TraceAlias, A08_TheBaseMayComeLater) {
  Trace trace("m");
  Tensor y = trace.alias("y", StorageOf{"x", {8}, DType::F32},
                         [](const Tensor &x) { return x.slice(0, 0, 4); });
  Tensor z = trace.alias("z", "y", [](const Tensor &y) {
    return y.view({2, 2});
  });
  Tensor x = trace.input("x", {8});
  x.zero_();
  trace.output("o", sum(y) + sum(z));
  std::string text = textOf(trace);
  EXPECT_FALSE(contains(text, "type = tensor")) << text;
  EXPECT_EQ(count(text, "alias = {of = \"x\""), 2) << text;
  EXPECT_TRUE(contains(linesWith(text, "input \"z\""),
                       "op = \"slice\", starts = array<i64: 0>, strides = "
                       "array<i64: 1>}, {op = \"reshape\", shape = array<i64: "
                       "2, 2>}]"))
      << text;
}

TEST(TraceAlias, A12_AnAliasOfAnotherType) {
  Trace trace("m");
  trace.input("x", {8});
  Tensor y = trace.alias("y", "x",
                         [](const Tensor &x) { return x.bitcast(DType::I32); });
  EXPECT_EQ(y.dtype(), DType::I32);
  trace.output("o", y + y);
  EXPECT_TRUE(contains(textOf(trace), "{op = \"bitcast\", type = i32}"));
}

TEST(TraceAlias, A07_UnwrittenAliasesAreValues) {
  Trace trace("m");
  Tensor x = trace.input("x", {8});
  Tensor y = trace.alias("y", "x", [](const Tensor &x) { return x; });
  trace.output("o", x + y);
  EXPECT_FALSE(contains(textOf(trace), "tandem.ref"));
}

TEST(TraceAlias, A07_WrongDeclarationsAreMistakes) {
  Trace trace("m");
  Tensor x = trace.input("x", {8});
  trace.alias("a", "nobody", [](const Tensor &b) { return b; });
  trace.alias("b", "x", [](const Tensor &b) { return sin(b); });
  trace.alias("c", "x", [&](const Tensor &) { return x; });
  trace.output("o", sum(x));
  std::string mistakes = mistakeOf(trace);
  EXPECT_TRUE(contains(mistakes, "there is no 'nobody'")) << mistakes;
  EXPECT_TRUE(contains(mistakes, "to be a view of 'x', but it is computed"))
      << mistakes;
  EXPECT_TRUE(contains(mistakes, "expected tensors of the alias 'c', but got "
                                 "one of the program"))
      << mistakes;
  EXPECT_EQ(count(mistakes, "error:"), 3) << mistakes;
}

TEST(TraceAlias, A07_DeclarationsFitTogether) {
  {
    Trace trace("m");
    auto same = [](const Tensor &b) { return b; };
    Tensor y = trace.alias("y", StorageOf{"x", {8}}, same);
    trace.input("x", {9});
    trace.alias("a", StorageOf{"s", {8}}, same);
    trace.alias("b", StorageOf{"s", {9}}, same);
    trace.output("o", sum(y));
    std::string mistakes = mistakeOf(trace);
    EXPECT_TRUE(contains(mistakes, "expected 'x', which 'y' aliases, to have "
                                   "type"))
        << mistakes;
    EXPECT_TRUE(contains(mistakes, "expected the storage 's' to have one type"))
        << mistakes;
  }
  Trace trace("m");
  auto same = [](const Tensor &b) { return b; };
  Tensor y = trace.alias("y", StorageOf{"z", {8}}, same);
  trace.alias("z", StorageOf{"y", {8}}, same);
  trace.output("o", sum(y));
  EXPECT_TRUE(contains(mistakeOf(trace), "it aliases itself"));
}

TEST(TraceAlias, J22_GradientsMayHaveATypeOfTheirOwn) {
  Trace trace("m");
  InputOptions options;
  options.requiresGrad = true;
  options.gradType = DType::F32;
  Tensor x = trace.input("x", {4}, DType::BF16, options);
  trace.output("o", sin(x));
  EXPECT_TRUE(contains(textOf(trace), "{grad_type = f32, requires_grad}"));
  Trace wrong("m");
  options.gradType = DType::I32;
  wrong.output("o", sin(wrong.input("x", {4}, DType::F32, options)));
  EXPECT_TRUE(contains(mistakeOf(wrong),
                       "expected a floating-point type of the "
                       "gradient, but got 'i32'"));
}
