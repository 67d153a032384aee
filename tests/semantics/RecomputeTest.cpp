//===- RecomputeTest.cpp - what is computed again is the same: row P13 ----===//
//
// o = v y with v = 1 gives y as the forward has it; the gradient of v, with a
// cotangent of 1, is y as the backward has it, which computes it again.
//
//===----------------------------------------------------------------------===//
#include "tests/semantics/Harness.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

class Recomputed : public RowTest {};

constexpr int64_t kRows = 48, kColumns = 40;

/// A normalization with its largest elements, functions, sums and quotients.
/// With a second function the partition of a processor with short vectors would
/// save the result.
Source repeating() {
  return {
      R"(module attributes {tandem.phase = "capture"} {
    func.func @graph(
        %x: tensor<48x40xf32> {tandem.role = #tandem.role<input "x">},
        %v: tensor<48x40xf32> {tandem.role = #tandem.role<input "v" {requires_grad}>})
        -> (tensor<48x40xf32> {tandem.role = #tandem.role<output "o">}) {
      %m = tandem.mul %x, %x : tensor<48x40xf32>
      %a = tandem.add %m, %x : tensor<48x40xf32>
      %y = tandem.softmax %a dim 1 : tensor<48x40xf32>
      %o = tandem.mul %v, %y : tensor<48x40xf32>
      return %o : tensor<48x40xf32>
    }})",
      [](Trace &t) {
        Tensor x = t.input("x", {kRows, kColumns});
        Tensor v =
            t.input("v", {kRows, kColumns}, DType::F32, {.requiresGrad = true});
        t.output("o", v * softmax(x * x + x, 1));
      }};
}

} // namespace
TANDEM_ALL_WAYS(Recomputed);

TEST_P(Recomputed, P13_HasTheBitsOfTheForward) {
  Source source = repeating();
  std::string text = printed(source, "partition");
  std::string backward = text.substr(text.find("@backward"));
  backward = backward.substr(0, backward.find("func.func"));
  EXPECT_TRUE(contains(backward, "tandem.exp")) << text;
  EXPECT_FALSE(contains(backward, "tandem.reduce_sum")) << text;
  auto m = start(source);
  ASSERT_TRUE(m);
  Numbers x, ones(kRows * kColumns, 1.0);
  for (int64_t i = 0; i < kRows * kColumns; ++i)
    x.push_back(static_cast<float>(std::sin(i * 0.37) * 3));
  m->set("x", x);
  m->set("v", ones);
  ASSERT_EQ(m->forward(), "");
  ASSERT_EQ(m->backward({{"o", ones}}), "");
  ASSERT_TRUE(m->gradient("v"));
  // Every bit.
  EXPECT_EQ(*m->gradient("v"), m->output("o"));
}
