//===- VisibleWritesTest.cpp - rows M02 and M03 ---------------------------===//
#include "tests/semantics/Harness.h"

using namespace tandem;
using namespace tandem::test;

namespace {
class Visible : public RowTest {};
} // namespace
TANDEM_ALL_WAYS(Visible);

TEST_P(Visible, M02_VisibleWritesOfANonLeaf) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %two = tandem.constant dense<2.0> : tensor<2xf32>
        %0 = tandem.read %x : !tandem.ref<2xf32>
        %y = tandem.mul %0, %0 : tensor<2xf32>
        %1 = tandem.mul %0, %two : tensor<2xf32>
        tandem.write %1 into %x : tensor<2xf32>, !tandem.ref<2xf32>
        %2 = tandem.read %x : !tandem.ref<2xf32>
        %o = tandem.add %y, %2 : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x =
                      t.input("x", {2}, DType::F32, {.requiresGrad = true});
                  Tensor y = x * x;
                  x.mul_(2.0);
                  t.output("o", y + x);
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {3, -1});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {15, -1});
  EXPECT_NUMBERS(m->contents("x"), {6, -2});
  ASSERT_EQ(m->backward({{"o", {1, 1}}, {"update of x", {0, 0}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {8, 0});
  // What later programs do with x arrives as the cotangent of its update.
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", {0, 0}}, {"update of x", {1, 5}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {2, 10});
}

TEST_P(Visible, M03_VisibleWriteToAParam) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: tensor<2xf32> {tandem.role = #tandem.role<input "x">},
                       %w: !tandem.ref<2xf32> {tandem.role = #tandem.role<param "w" {requires_grad}>})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.read %w : !tandem.ref<2xf32>
        %1 = tandem.mul %0, %x : tensor<2xf32>
        tandem.write %1 into %w : tensor<2xf32>, !tandem.ref<2xf32>
        %o = tandem.sin %1 : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {2});
                  Tensor w = t.parameter("w", {2}, Init::constant(1));
                  w.mul_(x);
                  t.output("o", sin(w));
                }};
  std::string error = errorOf(source);
  EXPECT_PART(error, "phase 'joint'");
  EXPECT_PART(error, "param \"w\"");
  EXPECT_PART(error, "(argument #1)");
  EXPECT_PART(error, "'tandem.write' at ");
  EXPECT_PART(error, isTraced() ? "VisibleWritesTest.cpp:" : "row.mlir:8:");
}
