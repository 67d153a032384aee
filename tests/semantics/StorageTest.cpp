//===- StorageTest.cpp - views, handles, storage: rows M07 to M16 ---------===//
#include "tests/semantics/Harness.h"

using namespace tandem;
using namespace tandem::test;

namespace {
class Storages : public RowTest {};
} // namespace
TANDEM_ALL_WAYS(Storages);

//===----------------------------------------------------------------------===//
// M07
//===----------------------------------------------------------------------===//

TEST_P(Storages, M07_WriteThroughAViewOfViews) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2x6xf32> {tandem.role = #tandem.role<input "x">},
                       %v: tensor<2x2xf32> {tandem.role = #tandem.role<input "v">})
          -> (tensor<4x3xf32> {tandem.role = #tandem.role<output "p">},
              tensor<12xf32> {tandem.role = #tandem.role<output "before">},
              tensor<12xf32> {tandem.role = #tandem.role<output "after">}) {
        %f = tandem.reshape %x to [12] : !tandem.ref<2x6xf32> -> !tandem.ref<12xf32>
        %before = tandem.read %f : !tandem.ref<12xf32>
        %r = tandem.reshape %x to [3, 4] : !tandem.ref<2x6xf32> -> !tandem.ref<3x4xf32>
        %p = tandem.permute %r by [1, 0] : !tandem.ref<3x4xf32> -> !tandem.ref<4x3xf32>
        %s = tandem.slice %p from [1, 0] to [3, 2] step [1, 1] : !tandem.ref<4x3xf32> -> !tandem.ref<2x2xf32>
        tandem.write %v into %s : tensor<2x2xf32>, !tandem.ref<2x2xf32>
        %0 = tandem.read %p : !tandem.ref<4x3xf32>
        %after = tandem.read %f : !tandem.ref<12xf32>
        return %0, %before, %after : tensor<4x3xf32>, tensor<12xf32>, tensor<12xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {2, 6});
                  Tensor v = t.input("v", {2, 2});
                  Tensor f = x.view({12});
                  t.output("before", f.clone());
                  Tensor p = x.view({3, 4}).permute({1, 0});
                  p.slice(0, 1, 3).slice(1, 0, 2).copy_(v);
                  t.output("p", p.clone());
                  t.output("after", f.clone());
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  m->set("v", {10, 20, 30, 40});
  ASSERT_EQ(m->forward(), "");
  Numbers after = {0, 10, 30, 3, 4, 20, 40, 7, 8, 9, 10, 11};
  EXPECT_NUMBERS(m->contents("x"), (after));
  // An alias that was read before the write sees it, too.
  EXPECT_NUMBERS(m->output("before"), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  EXPECT_NUMBERS(m->output("after"), (after));
  EXPECT_NUMBERS(m->output("p"), {0, 4, 8, 10, 20, 9, 30, 40, 10, 3, 7, 11});
}

TEST_P(Storages, M07_WriteThroughOverlapIsAnError) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<1x4xf32> {tandem.role = #tandem.role<input "x">},
                       %v: tensor<3x4xf32> {tandem.role = #tandem.role<input "v">}) {
        %e = tandem.broadcast %x to [3, 4] along [0, 1] : !tandem.ref<1x4xf32> -> !tandem.ref<3x4xf32>
        tandem.write %v into %e : tensor<3x4xf32>, !tandem.ref<3x4xf32>
        return
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {1, 4});
                  Tensor v = t.input("v", {3, 4});
                  x.expand({3, 4}).copy_(v);
                }};
  std::string error = errorOf(source);
  EXPECT_PART(error, "phase 'functionalize'");
  EXPECT_PART(error, "'tandem.write' op");
  EXPECT_PART(error, "'tandem.broadcast'");
  EXPECT_PART(error, "input \"x\"");
  EXPECT_PART(error, isTraced() ? "StorageTest.cpp:" : "row.mlir:6:");
}

//===----------------------------------------------------------------------===//
// M08, M09, M10: metadata
//===----------------------------------------------------------------------===//

TEST_P(Storages, M08_TransposeAlone) {
  Source source{
      R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
                       %y: tensor<3xf32> {tandem.role = #tandem.role<input "y" {requires_grad}>})
          -> (tensor<3xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.transpose_ %x dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
        %o = tandem.sin %y : tensor<3xf32>
        return %o : tensor<3xf32>
      }
    })",
      [](Trace &t) {
        Tensor x = t.input("x", {2, 3}, DType::F32, {.requiresGrad = true});
        Tensor y = t.input("y", {3}, DType::F32, {.requiresGrad = true});
        x.transpose_(0, 1);
        t.output("o", sin(y));
      }};
  std::string text = printed(source, "joint");
  EXPECT_PART(text, "metadata = {of = \"x\", views = [{op = \"permute\", "
                    "permutation = array<i64: 1, 0>}]}");
  EXPECT_FALSE(contains(text, "tandem.permute")) << text;
  EXPECT_FALSE(contains(text, "update of")) << text;
  EXPECT_EQ(count(text, "role<cotangent"), 1) << text;
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {0, 1, 2, 3, 4, 5});
  m->set("y", {0, 0, 0});
  ASSERT_EQ(m->forward(), "");
  EXPECT_EQ(m->shape("x"), (Shape{3, 2}));
  EXPECT_EQ(m->strides("x"), (Shape{1, 3}));
  EXPECT_NUMBERS(m->contents("x"), {0, 3, 1, 4, 2, 5});
}

TEST_P(Storages, M09_TransposeAndAWriteOnOne) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "x">},
                       %y: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "y">},
                       %v: tensor<3x2xf32> {tandem.role = #tandem.role<input "v">}) {
        %x2 = tandem.transpose_ %x dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
        tandem.write %v into %x2 : tensor<3x2xf32>, !tandem.ref<3x2xf32>
        %0 = tandem.read %y : !tandem.ref<2x3xf32>
        %1 = tandem.add %0, %0 : tensor<2x3xf32>
        tandem.write %1 into %y : tensor<2x3xf32>, !tandem.ref<2x3xf32>
        %y2 = tandem.transpose_ %y dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
        return
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {2, 3}), y = t.input("y", {2, 3});
                  Tensor v = t.input("v", {3, 2});
                  x.transpose_(0, 1);
                  x.copy_(v);
                  y.add_(y);
                  y.transpose_(0, 1);
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {0, 1, 2, 3, 4, 5});
  m->set("y", {0, 1, 2, 3, 4, 5});
  m->set("v", {10, 11, 12, 13, 14, 15});
  ASSERT_EQ(m->forward(), "");
  EXPECT_EQ(m->shape("x"), (Shape{3, 2}));
  EXPECT_EQ(m->strides("x"), (Shape{1, 3}));
  EXPECT_NUMBERS(m->contents("x"), {10, 11, 12, 13, 14, 15});
  EXPECT_EQ(m->strides("y"), (Shape{1, 3}));
  EXPECT_NUMBERS(m->contents("y"), {0, 6, 2, 8, 4, 10});
}

TEST_P(Storages, M09_TransposeAndAWriteOnTwoAliases) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "x">},
                       %y: !tandem.ref<2x2xf32> {tandem.role = #tandem.role<input "y" {alias = {of = "x",
                         views = [{op = "slice", starts = array<i64: 0, 1>, limits = array<i64: 2, 3>, strides = array<i64: 1, 1>}]}}>},
                       %v: tensor<2x2xf32> {tandem.role = #tandem.role<input "v">}) {
        tandem.write %v into %y : tensor<2x2xf32>, !tandem.ref<2x2xf32>
        %x2 = tandem.transpose_ %x dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
        return
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {2, 3});
                  Tensor y = t.alias("y", "x", [](const Tensor &base) {
                    return base.slice(1, 1, 3);
                  });
                  y.copy_(t.input("v", {2, 2}));
                  x.transpose_(0, 1);
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {0, 1, 2, 3, 4, 5});
  m->setView("y", "x", {2, 2}, {3, 1}, 1);
  m->set("v", {10, 11, 12, 13});
  ASSERT_EQ(m->forward(), "");
  EXPECT_EQ(m->shape("x"), (Shape{3, 2}));
  EXPECT_NUMBERS(m->contents("x"), {0, 3, 10, 12, 11, 13});
  EXPECT_EQ(m->shape("y"), (Shape{2, 2}));
  EXPECT_EQ(m->strides("y"), (Shape{3, 1}));
  EXPECT_NUMBERS(m->contents("y"), {10, 11, 12, 13});
  EXPECT_TRUE(m->share("x", "y"));
}

/// Transposed twice; set_ there and back; written with what it held.
static const Source cancelling{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "x">},
                       %y: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "y">},
                       %z: !tandem.ref<2x3xf32> {tandem.role = #tandem.role<input "z">}) {
        %0 = tandem.transpose_ %x dims 0, 1 : !tandem.ref<2x3xf32> -> !tandem.ref<3x2xf32>
        %1 = tandem.transpose_ %0 dims 0, 1 : !tandem.ref<3x2xf32> -> !tandem.ref<2x3xf32>
        %old = tandem.reshape %y to [2, 3] : !tandem.ref<2x3xf32> -> !tandem.ref<2x3xf32>
        %2 = tandem.set_ %y to %1 : !tandem.ref<2x3xf32>, !tandem.ref<2x3xf32>
        %3 = tandem.set_ %2 to %old : !tandem.ref<2x3xf32>, !tandem.ref<2x3xf32>
        %v = tandem.read %z : !tandem.ref<2x3xf32>
        tandem.write %v into %z : tensor<2x3xf32>, !tandem.ref<2x3xf32>
        return
      }
    })",
                               [](Trace &t) {
                                 Tensor x = t.input("x", {2, 3}),
                                        y = t.input("y", {2, 3}),
                                        z = t.input("z", {2, 3});
                                 x.transpose_(0, 1);
                                 x.transpose_(0, 1);
                                 Tensor old = y.view({2, 3});
                                 y.set_(x);
                                 y.set_(old);
                                 z.copy_(z);
                               }};

TEST_P(Storages, M10_WhatCancelsLeavesNothing) {
  std::string text = printed(cancelling, "functionalize");
  for (const char *part : {"update", "metadata", "storage", " = tandem."})
    EXPECT_FALSE(contains(text, part)) << part << " in\n" << text;
  auto m = start(cancelling);
  ASSERT_TRUE(m);
  m->set("x", {0, 1, 2, 3, 4, 5});
  m->set("y", {6, 7, 8, 9, 10, 11});
  m->set("z", {12, 13, 14, 15, 16, 17});
  ASSERT_EQ(m->forward(), "");
  EXPECT_EQ(m->shape("x"), (Shape{2, 3}));
  EXPECT_NUMBERS(m->contents("x"), {0, 1, 2, 3, 4, 5});
  EXPECT_NUMBERS(m->contents("y"), {6, 7, 8, 9, 10, 11});
  EXPECT_NUMBERS(m->contents("z"), {12, 13, 14, 15, 16, 17});
  EXPECT_FALSE(m->share("x", "y"));
}

//===----------------------------------------------------------------------===//
// M11, M12, M13: set_
//===----------------------------------------------------------------------===//

TEST_P(Storages, M11_SetThenWrite) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x">},
                       %y: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "y">},
                       %v: tensor<4xf32> {tandem.role = #tandem.role<input "v">}) {
        %x2 = tandem.set_ %x to %y {tandem.no_grad} : !tandem.ref<4xf32>, !tandem.ref<4xf32>
        tandem.write %v into WRITTEN : tensor<4xf32>, !tandem.ref<4xf32>
        return
      }
    })",
                {}};
  for (bool writesX : {true, false}) {
    SCOPED_TRACE(writesX ? "x is written" : "y is written");
    std::string text = source.text;
    text.replace(text.find("WRITTEN"), 7, writesX ? "%x2" : "%y");
    Source one{text.c_str(), [=](Trace &t) {
                 Tensor x = t.input("x", {4}), y = t.input("y", {4});
                 Tensor v = t.input("v", {4});
                 {
                   NoGradScope scope = t.noGrad();
                   x.set_(y);
                 }
                 (writesX ? x : y).copy_(v);
               }};
    EXPECT_PART(printed(one, "functionalize"),
                "input \"x\" {storage = {of = \"y\", views = []}}");
    auto m = start(one);
    ASSERT_TRUE(m);
    m->set("x", {0, 1, 2, 3});
    m->set("y", {4, 5, 6, 7});
    m->set("v", {8, 9, 10, 11});
    ASSERT_EQ(m->forward(), "");
    EXPECT_TRUE(m->share("x", "y"));
    EXPECT_NUMBERS(m->contents("x"), {8, 9, 10, 11});
    EXPECT_NUMBERS(m->contents("y"), {8, 9, 10, 11});
  }
}

TEST_P(Storages, M12_AViewTakenBeforeSetKeepsTheOldStorage) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x">},
                       %y: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "y">},
                       %old: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "old" {alias = {of = "x", views = []}}>},
                       %v: tensor<2xf32> {tandem.role = #tandem.role<input "v">})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %view = tandem.slice %x from [0] to [2] step [1] : !tandem.ref<4xf32> -> !tandem.ref<2xf32>
        %x2 = tandem.set_ %x to %y : !tandem.ref<4xf32>, !tandem.ref<4xf32>
        tandem.write %v into %view : tensor<2xf32>, !tandem.ref<2xf32>
        %o = tandem.read %view : !tandem.ref<2xf32>
        return %o : tensor<2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {4}), y = t.input("y", {4});
                  t.alias("old", "x", [](const Tensor &base) { return base; });
                  Tensor view = x.slice(0, 0, 2);
                  x.set_(y);
                  view.copy_(t.input("v", {2}));
                  t.output("o", view.clone());
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {0, 1, 2, 3});
  m->set("y", {4, 5, 6, 7});
  m->setView("old", "x", {4}, {1}, 0);
  m->set("v", {8, 9});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {8, 9});
  EXPECT_NUMBERS(m->contents("x"), {4, 5, 6, 7});
  EXPECT_NUMBERS(m->contents("y"), {4, 5, 6, 7});
  EXPECT_NUMBERS(m->contents("old"), {8, 9, 2, 3});
  EXPECT_TRUE(m->share("x", "y"));
  EXPECT_FALSE(m->share("x", "old"));
}

TEST_P(Storages, M13_SetAndAVisibleWriteIsAnError) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>},
                       %y: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "y">},
                       %v: tensor<4xf32> {tandem.role = #tandem.role<input "v">}) {
        %x2 = tandem.set_ %x to %y : !tandem.ref<4xf32>, !tandem.ref<4xf32>
        tandem.write %v into %x2 : tensor<4xf32>, !tandem.ref<4xf32>
        return
      }
    })",
                [](Trace &t) {
                  Tensor x =
                      t.input("x", {4}, DType::F32, {.requiresGrad = true});
                  Tensor y = t.input("y", {4});
                  x.set_(y);
                  x.copy_(t.input("v", {4}));
                }};
  std::string error = errorOf(source);
  EXPECT_PART(error, "phase 'functionalize'");
  EXPECT_PART(error, "'tandem.set_' op");
  EXPECT_PART(error, "input \"x\"");
  EXPECT_PART(error, "'tandem.write' at ");
  EXPECT_PART(error, isTraced() ? "StorageTest.cpp:" : "row.mlir:6:");
}

//===----------------------------------------------------------------------===//
// M14: resize_
//===----------------------------------------------------------------------===//

TEST_P(Storages, M14_ResizedAndFilled) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x" {freed}>},
                       %v: tensor<4xf32> {tandem.role = #tandem.role<input "v">})
          -> (tensor<4xf32> {tandem.role = #tandem.role<output "o">}) {
        tandem.resize_ %x to 4 : !tandem.ref<4xf32>
        tandem.write %v into %x : tensor<4xf32>, !tandem.ref<4xf32>
        %0 = tandem.read %x : !tandem.ref<4xf32>
        %o = tandem.add %0, %0 : tensor<4xf32>
        return %o : tensor<4xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {4}, DType::F32, {.freed = true});
                  x.resize_(4);
                  x.copy_(t.input("v", {4}));
                  t.output("o", x + x);
                }};
  EXPECT_PART(printed(source, "functionalize"), "resize = 4 : i64");
  auto m = start(source);
  ASSERT_TRUE(m);
  m->setFreed("x");
  m->set("v", {1, 2, 3, 4});
  EXPECT_NUMBERS(m->contents("x"), {});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {2, 4, 6, 8});
  EXPECT_NUMBERS(m->contents("x"), {1, 2, 3, 4});
}

TEST_P(Storages, M14_FreedAfterLastUse) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "x">},
                       %y: tensor<3xf32> {tandem.role = #tandem.role<input "y" {requires_grad}>})
          -> (tensor<3xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.read %x : !tandem.ref<3xf32>
        %o = tandem.mul %0, %y : tensor<3xf32>
        tandem.resize_ %x to 0 : !tandem.ref<3xf32>
        return %o : tensor<3xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {3});
                  Tensor y =
                      t.input("y", {3}, DType::F32, {.requiresGrad = true});
                  t.output("o", x * y);
                  x.resize_(0);
                }};
  std::string text = printed(source, "functionalize");
  EXPECT_PART(text, "resize = 0 : i64");
  EXPECT_FALSE(contains(text, "update of")) << text;
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {1, 2, 3});
  m->set("y", {4, 5, 6});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {4, 10, 18});
  EXPECT_NUMBERS(m->contents("x"), {});
  // What the backward reads of x was saved before its storage went.
  ASSERT_EQ(m->backward({{"o", {1, 1, 1}}}), "");
  EXPECT_NUMBERS(m->gradient("y"), {1, 2, 3});
}

TEST_P(Storages, M14_BeforeOrAfterSet) {
  for (bool before : {true, false}) {
    SCOPED_TRACE(before ? "resize_ before set_" : "resize_ after set_");
    std::string text = R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "x">},
                       %y: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "y">},
                       %old: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "old" {alias = {of = "x", views = []}}>})
          -> (tensor<3xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.read %x : !tandem.ref<3xf32>
)";
    const char *set = "%x2 = tandem.set_ %x to %y : !tandem.ref<3xf32>, "
                      "!tandem.ref<3xf32>\n";
    text += before ? std::string("tandem.resize_ %x to 0 : "
                                 "!tandem.ref<3xf32>\n") +
                         set
                   : std::string(set) + "tandem.resize_ %x2 to 0 : "
                                        "!tandem.ref<3xf32>\n";
    text += "%o = tandem.add %0, %0 : tensor<3xf32>\n"
            "return %o : tensor<3xf32>\n}\n}";
    Source source{text.c_str(), [=](Trace &t) {
                    Tensor x = t.input("x", {3}), y = t.input("y", {3});
                    t.alias("old", "x",
                            [](const Tensor &base) { return base; });
                    t.output("o", x + x);
                    if (before)
                      x.resize_(0);
                    x.set_(y);
                    if (!before)
                      x.resize_(0);
                  }};
    auto m = start(source);
    ASSERT_TRUE(m);
    m->set("x", {1, 2, 3});
    m->set("y", {4, 5, 6});
    m->setView("old", "x", {3}, {1}, 0);
    ASSERT_EQ(m->forward(), "");
    EXPECT_NUMBERS(m->output("o"), {2, 4, 6});
    EXPECT_TRUE(m->share("x", "y"));
    EXPECT_FALSE(m->share("x", "old"));
    Numbers none, olds = {1, 2, 3}, ys = {4, 5, 6};
    EXPECT_NUMBERS(m->contents("x"), (before ? ys : none));
    EXPECT_NUMBERS(m->contents("y"), (before ? ys : none));
    EXPECT_NUMBERS(m->contents("old"), (before ? none : olds));
  }
}

TEST_P(Storages, M14_OtherSizesAreErrors) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<4xf32> {tandem.role = #tandem.role<input "x">}) {
        tandem.resize_ %x to 2 : !tandem.ref<4xf32>
        return
      }
    })",
                [](Trace &t) { t.input("x", {4}).resize_(2); }};
  std::string error = errorOf(source);
  EXPECT_PART(error, "phase 'functionalize'");
  EXPECT_PART(error, "'tandem.resize_' op expected the storage of");
  EXPECT_PART(error, "input \"x\"");
  EXPECT_PART(error, "to have 0 or 4 elements, but got 2");
  EXPECT_PART(error, isTraced() ? "StorageTest.cpp:" : "row.mlir:4:");
}

//===----------------------------------------------------------------------===//
// M15, M16: what a program returns
//===----------------------------------------------------------------------===//

TEST_P(Storages, M15_WrittenAndReturned) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "x">})
          -> (!tandem.ref<3xf32> {tandem.role = #tandem.role<output "a">},
              !tandem.ref<3xf32> {tandem.role = #tandem.role<output "b">}) {
        %0 = tandem.read %x : !tandem.ref<3xf32>
        %1 = tandem.add %0, %0 : tensor<3xf32>
        tandem.write %1 into %x : tensor<3xf32>, !tandem.ref<3xf32>
        return %x, %x : !tandem.ref<3xf32>, !tandem.ref<3xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {3});
                  x.add_(x);
                  t.output("a", x);
                  t.output("b", x);
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {1, 2, 3});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("a"), {2, 4, 6});
  EXPECT_NUMBERS(m->output("b"), {2, 4, 6});
  EXPECT_NUMBERS(m->contents("x"), {2, 4, 6});
  EXPECT_TRUE(m->share("a", "x"));
  EXPECT_TRUE(m->share("b", "x"));
}

TEST_P(Storages, M16_OnlyWrites) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "x">},
                       %y: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "y">}) {
        %0 = tandem.read %y : !tandem.ref<3xf32>
        tandem.write %0 into %x : tensor<3xf32>, !tandem.ref<3xf32>
        return
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {3});
                  x.copy_(t.input("y", {3}));
                }};
  std::string text = printed(source, "functionalize");
  EXPECT_EQ(count(text, "update of"), 1) << text;
  EXPECT_FALSE(contains(text, "role<output")) << text;
  std::string programs = printed(source, "partition");
  EXPECT_PART(programs, "@forward");
  EXPECT_FALSE(contains(programs, "@backward")) << programs;
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {1, 2, 3});
  m->set("y", {4, 5, 6});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->contents("x"), {4, 5, 6});
  EXPECT_NUMBERS(m->contents("y"), {4, 5, 6});
  EXPECT_FALSE(m->share("x", "y"));
  EXPECT_TRUE(m->outputs.empty());
}
