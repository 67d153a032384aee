//===- MutationTest.cpp - writes of the forward: rows M01 and M04 ---------===//
#include "tests/semantics/Harness.h"

using namespace tandem;
using namespace tandem::test;

namespace {
class Mutation : public RowTest {};
} // namespace
TANDEM_ALL_WAYS(Mutation);

TEST_P(Mutation, M01_WriteWithoutGradients) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<3xf32> {tandem.role = #tandem.role<input "x">})
          -> (tensor<3xf32> {tandem.role = #tandem.role<output "o">}) {
        %0 = tandem.read %x : !tandem.ref<3xf32>
        %1 = tandem.sin %0 : tensor<3xf32>
        %2 = tandem.add %0, %0 : tensor<3xf32>
        tandem.write %2 into %x : tensor<3xf32>, !tandem.ref<3xf32>
        return %1 : tensor<3xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x = t.input("x", {3});
                  Tensor o = sin(x);
                  x.add_(x);
                  t.output("o", o);
                }};
  std::string text = printed(source, "functionalize");
  EXPECT_PART(text, "#tandem.role<update of \"x\"");
  EXPECT_FALSE(contains(text, "tandem.ref")) << text;
  for (const char *op : {"tandem.read %", "tandem.write %", "tandem.make_ref"})
    EXPECT_FALSE(contains(text, op)) << text;
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {0, 1, -2});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {0, 0.841471, -0.909297});
  EXPECT_NUMBERS(m->contents("x"), {0, 2, -4});
}

TEST_P(Mutation, M04_LeafWrittenInNoGrad) {
  Source source{R"(
    module attributes {tandem.phase = "capture"} {
      func.func @graph(%x: !tandem.ref<2xf32> {tandem.role = #tandem.role<input "x" {requires_grad}>})
          -> (tensor<2xf32> {tandem.role = #tandem.role<output "o">}) {
        %two = tandem.constant dense<2.0> : tensor<2xf32>
        %0 = tandem.read %x {tandem.no_grad} : !tandem.ref<2xf32>
        %1 = tandem.mul %0, %two {tandem.no_grad} : tensor<2xf32>
        tandem.write %1 into %x {tandem.no_grad} : tensor<2xf32>, !tandem.ref<2xf32>
        %2 = tandem.read %x : !tandem.ref<2xf32>
        %o = tandem.sin %2 : tensor<2xf32>
        return %o : tensor<2xf32>
      }
    })",
                [](Trace &t) {
                  Tensor x =
                      t.input("x", {2}, DType::F32, {.requiresGrad = true});
                  {
                    NoGradScope scope = t.noGrad();
                    x.mul_(2.0);
                  }
                  t.output("o", sin(x));
                }};
  auto m = start(source);
  ASSERT_TRUE(m);
  m->set("x", {0.5, -1});
  ASSERT_EQ(m->forward(), "");
  EXPECT_NUMBERS(m->output("o"), {0.841471, -0.909297});
  EXPECT_NUMBERS(m->contents("x"), {1, -2});
  ASSERT_EQ(m->backward({{"o", {1, 1}}}), "");
  EXPECT_NUMBERS(m->gradient("x"), {0.540302, -0.416147});
}
