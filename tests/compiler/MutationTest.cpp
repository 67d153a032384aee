//===- MutationTest.cpp - storage as the tracer records it ----------------===//
//
// What is checked is the captured module: which refs there are, what is written
// and returned. That it then means what it should is functionalize's.
//
//===----------------------------------------------------------------------===//
#include "tests/compiler/TraceText.h"

#include <stdexcept>

using namespace tandem;

//===----------------------------------------------------------------------===//
// Writes, detach, grad modes
//===----------------------------------------------------------------------===//

TEST(TraceMutation, M01_InputsCanBeWritten) {
  Trace trace("m");
  Tensor x = trace.input("x", {4});
  x += 1.0;
  x.sub_(2.0).mul_(x).div_(3.0).neg_().relu_();
  std::string text = textOf(trace); // M16: no output
  EXPECT_TRUE(contains(text, "!tandem.ref<4xf32> {tandem.role = "
                             "#tandem.role<input \"x\">}"))
      << text;
  EXPECT_EQ(count(text, "tandem.write"), 6) << text;
  EXPECT_TRUE(contains(text, "return")) << text;
}

TEST(TraceMutation, M16_AProgramMustGiveOrChangeSomething) {
  Trace trace("m");
  Tensor x = trace.input("x", {4});
  x.clone().zero_(); // changes nothing outside
  EXPECT_TRUE(contains(mistakeOf(trace), "to have an output, or to change"));
}

TEST(TraceMutation, M05_WritesThroughDetachAreOfTheSameStorage) {
  Trace trace("m");
  Tensor x = trace.input("x", {4}, DType::F32, {.requiresGrad = true});
  x.detach().mul_(2.0);
  detach(x) += 1.0;
  trace.output("o", sin(x));
  std::string text = textOf(trace);
  EXPECT_EQ(count(text, "= tandem.detach %arg0 : !tandem.ref<4xf32>"), 2)
      << text;
  EXPECT_EQ(count(text, "tandem.write"), 2) << text;
  EXPECT_FALSE(contains(text, "make_ref")) << text;
}

TEST(TraceMutation, J07_DetachOfUnwrittenIsAnOpOfValues) {
  Trace trace("m");
  Tensor x = trace.input("x", {4});
  trace.output("o", x.detach() * x);
  EXPECT_TRUE(contains(textOf(trace), "tandem.detach %arg0 : tensor<4xf32>"));
}

TEST(TraceMutation, J07_OnlyTheEnabledRegionIsDifferentiated) {
  Trace trace("m");
  Tensor x = trace.input("x", {4}), a, b, c;
  {
    NoGradScope off = trace.noGrad();
    a = sin(x);
    {
      EnableGradScope on = trace.enableGrad();
      b = cos(x);
    }
    c = exp(x);
  }
  trace.output("o", a + b + c);
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(linesWith(text, "tandem.sin"), "tandem.no_grad"));
  EXPECT_FALSE(contains(linesWith(text, "tandem.cos"), "tandem.no_grad"));
  EXPECT_TRUE(contains(linesWith(text, "tandem.exp"), "tandem.no_grad"));
  EXPECT_EQ(count(text, "tandem.no_grad"), 2) << text;
}

TEST(TraceMutation, A03_ViewsMadeInNoGradSayIt) {
  Trace trace("m");
  Tensor y = sin(trace.input("x", {2, 3})), v;
  {
    NoGradScope off = trace.noGrad();
    v = y.view({3, 2});
  }
  trace.output("y", y);
  trace.output("v", v);
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(linesWith(text, "tandem.reshape"), "tandem.no_grad"));
  // One storage, returned twice.
  EXPECT_EQ(count(text, "make_ref"), 1) << text;
  EXPECT_TRUE(contains(linesWith(text, "return"),
                       "!tandem.ref<2x3xf32>, !tandem.ref<3x2xf32>"))
      << text;
}

TEST(TraceMutation, G02_ScopesEndWithExceptions) {
  Trace trace("m");
  Tensor x = trace.input("x", {4});
  try {
    NoGradScope off = trace.noGrad();
    StreamScope stream = trace.stream(3);
    throw std::runtime_error("out");
  } catch (const std::runtime_error &) {
  }
  trace.output("o", sin(x));
  std::string text = textOf(trace);
  EXPECT_FALSE(contains(text, "no_grad") || contains(text, "stream")) << text;
}

TEST(TraceMutation, G02_AGradModeLeftChangedIsAMistake) {
  Trace trace("m");
  Tensor x = trace.input("x", {4});
  int line = __LINE__ + 1;
  NoGradScope off = trace.noGrad();
  trace.output("o", sin(x));
  std::string mistakes = mistakeOf(trace);
  EXPECT_TRUE(contains(mistakes, "MutationTest.cpp:" + std::to_string(line)))
      << mistakes;
  EXPECT_TRUE(contains(mistakes, "the grad mode is still changed at the end of "
                                 "the program"))
      << mistakes;
}

TEST(TraceMutation, M20_OpsArePlacedOnTheUsersStream) {
  Trace trace("m");
  Tensor x = trace.input("x", {4});
  {
    StreamScope side = trace.stream(2);
    x.mul_(2.0);
  }
  trace.output("o", cos(x));
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(linesWith(text, "tandem.mul"), "tandem.stream = 2"));
  EXPECT_TRUE(contains(linesWith(text, "tandem.write"), "tandem.stream = 2"));
  EXPECT_FALSE(contains(linesWith(text, "tandem.cos"), "tandem.stream"));
}

//===----------------------------------------------------------------------===//
// Handles, and functions that hand back their argument
//===----------------------------------------------------------------------===//

TEST(TraceMutation, M08_TransposeChangesTheHandle) {
  Trace trace("m");
  Tensor x = trace.input("x", {2, 3}), copy = x;
  x.transpose_(0, -1);
  EXPECT_EQ(copy.shape(), (Shape{3, 2})); // one handle
  trace.output("o", x * 2.0);
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(text, "tandem.transpose_ %arg0 dims 0, 1 : "
                             "!tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>"))
      << text;
}

TEST(TraceMutation, M09_ViewsTakenBeforeKeepTheirShape) {
  Trace trace("m");
  Tensor x = trace.input("x", {2, 3});
  Tensor before = x.expand({2, 3}), same = x.view({2, 3});
  x.transpose_(0, 1).fill_(1.0);
  EXPECT_EQ(before.shape(), (Shape{2, 3}));
  EXPECT_EQ(same.shape(), (Shape{2, 3}));
  trace.output("o", before);
  std::string text = textOf(trace);
  // The write goes through the handle's new metadata.
  EXPECT_TRUE(contains(linesWith(text, "tandem.write"), "!tandem.ref<3x2xf32>"))
      << text;
  EXPECT_TRUE(contains(linesWith(text, "return"), "!tandem.ref<2x3xf32>"))
      << text;
}

TEST(TraceMutation, M09_HandlesThatAreViewsBecomeOtherViews) {
  Trace trace("m");
  Tensor x = trace.input("x", {2, 3}), y = trace.input("y", {4});
  Tensor v = x.detach(), w = x.view({6});
  {
    NoGradScope off = trace.noGrad();
    v.transpose_(0, 1);
    w.set_(y);
  }
  EXPECT_EQ(v.shape(), (Shape{3, 2}));
  w.transpose_(0, 0); // of w alone, not of y
  w.fill_(1.0);
  v.fill_(2.0);
  std::string text = textOf(trace);
  EXPECT_FALSE(contains(text, "tandem.transpose_")) << text;
  EXPECT_FALSE(contains(text, "tandem.set_")) << text;
  EXPECT_TRUE(contains(linesWith(text, "tandem.reshape %arg1"),
                       "{tandem.no_grad} : !tandem.ref<4xf32>"))
      << text;
  EXPECT_TRUE(contains(linesWith(text, "tandem.permute"),
                       "!tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>"))
      << text;
}

TEST(TraceMutation, M11_SetMakesAHandleShowOtherStorage) {
  Trace trace("m");
  Tensor x = trace.input("x", {4}), y = trace.input("y", {2, 2});
  Tensor old = x.slice(0, 0, 2);
  {
    NoGradScope off = trace.noGrad();
    x.set_(y);
  }
  EXPECT_EQ(x.shape(), (Shape{2, 2}));
  x.fill_(3.0);
  old.zero_(); // M12: the old storage
  trace.output("o", y * 2.0);
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(text, "= tandem.set_ %arg0 to %arg1 {tandem.no_grad} : "
                             "!tandem.ref<4xf32>, !tandem.ref<2x2xf32>"))
      << text;
  EXPECT_TRUE(contains(text, "tandem.slice %arg0")) << text;
  EXPECT_EQ(count(text, "tandem.write"), 2) << text;
}

TEST(TraceMutation, M11_SetKeepsElementTypes) {
  Trace trace("m");
  Tensor x = trace.input("x", {4}), y = trace.input("y", {4}, DType::I64);
  x.set_(y);
  EXPECT_TRUE(contains(mistakeOf(trace), "expected a tensor of type 'f32', but "
                                         "got 'i64'"));
}

TEST(TraceMutation, M14_StorageIsResized) {
  Trace trace("m");
  InputOptions options;
  options.freed = true;
  Tensor w = trace.parameter("w", {4}, Init::constant(0), DType::F32, options);
  Tensor shard = trace.input("shard", {4});
  {
    NoGradScope off = trace.noGrad();
    w.resize_(4).copy_(shard);
  }
  trace.output("o", sin(w));
  {
    NoGradScope off = trace.noGrad();
    w.resize_(0);
  }
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(text, "param \"w\" {freed, init")) << text;
  EXPECT_TRUE(contains(text, "tandem.resize_ %arg0 to 4")) << text;
  EXPECT_TRUE(contains(text, "tandem.resize_ %arg0 to 0")) << text;
}

TEST(TraceMutation, M19_OpsThatHandBackTheirArgument) {
  Trace trace("m");
  Tensor x = trace.input("x", {4});
  dropout(x, 0.0) *= 2.0;
  dropout(x, 0.5, /*training=*/false) *= 2.0;
  cast(x, DType::F32) *= 2.0;
  std::string text = textOf(trace);
  EXPECT_EQ(count(linesWith(text, "tandem.write"), "into %arg0"), 3) << text;
}

TEST(TraceMutation, M19_DropoutThatDropsIsNew) {
  Trace trace("m");
  Tensor x = trace.input("x", {4});
  dropout(x, 0.5) *= 2.0;
  trace.output("x", x);
  std::string text = textOf(trace);
  EXPECT_FALSE(contains(linesWith(text, "tandem.write"), "into %arg0")) << text;
}

TEST(TraceMutation, M07_WritesThroughChainsOfViews) {
  Trace trace("m");
  Tensor x = trace.input("x", {2, 6});
  x.view({3, 4}).permute({1, 0}).slice(0, 0, 4, 2).fill_(1.0);
  std::string text = textOf(trace);
  EXPECT_TRUE(contains(linesWith(text, "tandem.write"), "!tandem.ref<2x3xf32>"))
      << text;
}

TEST(TraceMutation, CloneHasStorageOfItsOwn) {
  Trace trace("m");
  Tensor x = trace.input("x", {4}), y = x.clone();
  y.zero_();
  trace.output("y", y);
  std::string text = textOf(trace);
  EXPECT_TRUE(
      contains(text, "tensor<4xf32> {tandem.role = #tandem.role<input"));
  EXPECT_EQ(count(text, "make_ref"), 1) << text;
}
