//===- TagsTest.cpp - what a traced program says about saving -------------===//
#include "tests/compiler/TraceText.h"

using namespace tandem;

TEST(TraceTags, ValuesAreTaggedWhereTheyAreComputed) {
  Trace trace("model");
  Tensor x = trace.input("x", {4, 8});
  Tensor h = trace.save(exp(x));
  // Through a view, and after a write, the op that computed it.
  (void)trace.recompute(sin(x).transpose(0, 1));
  Tensor w = h.clone();
  w.add_(cos(x));
  trace.save(w);
  trace.output("y", w + sin(h));
  std::string text = textOf(trace);
  EXPECT_EQ(count(text, "tandem.save"), 2) << text;
  EXPECT_TRUE(contains(linesWith(text, "tandem.exp"), "tandem.save")) << text;
  EXPECT_TRUE(contains(linesWith(text, "tandem.add"), "tandem.save")) << text;
  EXPECT_EQ(count(text, "tandem.recompute"), 1) << text;
}

TEST(TraceTags, WhatIsOffloaded) {
  Trace trace("model");
  Tensor x = trace.input("x", {4, 8});
  Tensor h = trace.offload(exp(x));
  Tensor w = trace.save(trace.offload(sin(x)));
  trace.output("y", w + h);
  std::string text = textOf(trace);
  EXPECT_EQ(count(text, "tandem.offload"), 2) << text;
  EXPECT_TRUE(contains(linesWith(text, "tandem.exp"), "tandem.offload"))
      << text;
  EXPECT_TRUE(contains(linesWith(text, "tandem.sin"), "tandem.offload"))
      << text;
  EXPECT_EQ(count(text, "tandem.save"), 1) << text;

  Trace wrong("model");
  Tensor z = exp(wrong.input("z", {4}));
  wrong.offload(z);
  wrong.recompute(z);
  wrong.offload(wrong.input("a", {4}));
  wrong.output("y", z);
  std::string mistake = mistakeOf(wrong);
  for (const char *part :
       {"expected one of 'tandem.offload' and 'tandem.recompute', but got both",
        "expected 'tandem.offload' to be about a value that the program "
        "computes, but got an argument"})
    EXPECT_TRUE(contains(mistake, part)) << part << "\n" << mistake;
}

TEST(TraceTags, P06_WhatIsWrittenIsNotComputedAgain) {
  Trace trace("model");
  Tensor x = trace.input("x", {4});
  Tensor h = exp(x);
  h.mul_(2.0);
  trace.recompute(h);
  trace.output("y", h);
  std::string mistake = mistakeOf(trace);
  EXPECT_TRUE(contains(mistake, "TagsTest.cpp:")) << mistake;
  EXPECT_TRUE(contains(mistake, "'tandem.write' writes the value, and cannot "
                                "be computed again as 'tandem.recompute' says"))
      << mistake;
}

TEST(TraceTags, MistakesAreAtTheUsersLine) {
  Trace trace("model");
  Tensor x = trace.input("x", {4});
  trace.save(x);
  Tensor h = exp(x);
  trace.save(h);
  trace.recompute(h);
  (void)trace.checkpoint("");
  trace.save(Tensor());
  trace.output("y", h);
  std::string mistake = mistakeOf(trace);
  for (const char *part :
       {"expected 'tandem.save' to be about a value that the program computes, "
        "but got an argument",
        "expected one of 'tandem.save' and 'tandem.recompute', but got both",
        "expected a checkpoint to have a name"})
    EXPECT_TRUE(contains(mistake, part)) << part << "\n" << mistake;
}

TEST(TraceTags, P08_EachCheckpointIsARegion) {
  Trace trace("model");
  Tensor x = trace.input("x", {4}), h = x;
  for (int i = 0; i < 2; ++i) {
    ModuleScope module = trace.module("net");
    h = trace.checkpoint("block", [&] { return exp(sin(h)); });
  }
  {
    CheckpointScope outer = trace.checkpoint("outer");
    h = cos(h);
    CheckpointScope inner = trace.checkpoint("inner");
    h = tanh(h);
  }
  trace.output("y", relu(h));
  std::string text = textOf(trace);
  EXPECT_EQ(count(text, "tandem.checkpoint = \"net.block\""), 2) << text;
  EXPECT_EQ(count(text, "tandem.checkpoint = \"net.block#2\""), 2) << text;
  EXPECT_TRUE(contains(linesWith(text, "tandem.cos"), "\"outer\"")) << text;
  EXPECT_TRUE(contains(linesWith(text, "tandem.tanh"), "\"inner\"")) << text;
  EXPECT_FALSE(contains(linesWith(text, "tandem.relu"), "checkpoint")) << text;
}

TEST(TraceTags, P15_ReadsAndWritesAreOfTheRegion) {
  Trace trace("model");
  Tensor s = trace.state("s", {4}, Init::constant(1));
  Tensor x = trace.input("x", {4}), y;
  {
    CheckpointScope scope = trace.checkpoint("block");
    s.mul_(x);
    y = s.slice(0, 0, 2) * 2.0;
  }
  trace.output("y", y);
  std::string text = textOf(trace);
  for (const char *op : {"tandem.read", "tandem.write", "tandem.mul"})
    EXPECT_EQ(count(linesWith(text, op), "checkpoint = \"block\""),
              count(linesWith(text, op), "\n"))
        << text;
}

TEST(TraceTags, ACustomVjpIsTaggedAsAWhole) {
  Trace trace("model");
  Tensor x = trace.input("x", {4});
  CheckpointScope scope = trace.checkpoint("block");
  Tensor y = customVjp(
      "twice", {x}, {},
      [](const Tensors &in, const Tensors &, Saver &) -> Tensors {
        return {in[0] * 2.0};
      },
      [](const Tensors &, const Tensors &dy, const Tensors &) -> Tensors {
        return {dy[0] * 2.0};
      })[0];
  trace.output("y", y);
  std::string text = textOf(trace);
  EXPECT_EQ(count(text, "tandem.checkpoint"), 1) << text;
  EXPECT_FALSE(contains(linesWith(text, "tandem.mul"), "checkpoint")) << text;
}
