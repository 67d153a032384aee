//===- AttentionTest.cpp - attention at once on the cpu -------------------===//
#include "tests/lower/anchor/AttentionKernel.h"

using namespace tandem::test;

static void check(const Heads &heads, AttentionKernel kernel) {
  checkKernel(attentionKernel(heads, kernel), toleranceOf(heads));
}

TEST(Attention, Shapes) {
  const Heads all[] = {{"", 1, 1, 1, 1},
                       {"2x", 5, 7, 3, 4},
                       {"2x2x", 9, 9, 8, 8, true},
                       {"", 9, 4, 5, 2, true},
                       {"3x", 4, 9, 2, 5, true}};
  for (const Heads &heads : all)
    for (AttentionKernel kernel : kAttentionKernels)
      check(heads, kernel);
}

TEST(Attention, Elements) {
  for (const char *element : {"f64", "f16", "bf16"})
    for (AttentionKernel kernel : kAttentionKernels)
      check({"2x", 6, 6, 4, 4, true, element}, kernel);
}

// Results of different shapes, each with a view of its own.
TEST(Attention, ViewsAround) {
  checkKernel(kernelModule({"tensor<2x5x3x8xf32>", "tensor<2x3x7x8xf32>",
                            "tensor<2x3x7x4xf32>"},
                           {"tensor<2x5x3x4xf32>", "tensor<6x5xf32>"}, R"(
    %q = tandem.permute %0 by [0, 2, 1, 3] : tensor<2x5x3x8xf32> -> tensor<2x3x5x8xf32>
    %y, %l = tandem.attention_forward %q, %1, %2 {scale = 0.5 : f64} : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x4xf32>) -> (tensor<2x3x5x4xf32>, tensor<2x3x5xf32>)
    %z = tandem.permute %y by [0, 2, 1, 3] : tensor<2x3x5x4xf32> -> tensor<2x5x3x4xf32>
    %m = tandem.reshape %l to [6, 5] : tensor<2x3x5xf32> -> tensor<6x5xf32>
    tandem.yield %z, %m : tensor<2x5x3x4xf32>, tensor<6x5xf32>)"),
              {20});
}

// Only one of the gradients is wanted.
TEST(Attention, OneGradient) {
  for (bool first : {true, false})
    checkKernel(
        kernelModule({"tensor<5x4xf32>", "tensor<6x4xf32>", "tensor<6x3xf32>",
                      "tensor<5x3xf32>", "tensor<5xf32>", "tensor<5xf32>"},
                     {first ? "tensor<6x4xf32>" : "tensor<6x3xf32>"},
                     std::string(R"(
    %k, %v = tandem.attention_key_grad %0, %1, %2, %3, %4, %5 {scale = 0.5 : f64} : (tensor<5x4xf32>, tensor<6x4xf32>, tensor<6x3xf32>, tensor<5x3xf32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<6x4xf32>, tensor<6x3xf32>)
)") + (first ? "tandem.yield %k : tensor<6x4xf32>"
             : "tandem.yield %v : tensor<6x3xf32>")),
        {20});
}
