//===- AttentionTest.cpp - attention at once on the cpu -------------------===//
#include "tests/lower/anchor/AttentionKernel.h"

using namespace tandem::test;

static void check(const Heads &heads, AttentionKernel kernel,
                  int vectorBits = 0) {
  Tolerance tolerance = toleranceOf(heads);
  tolerance.vectorBits = vectorBits;
  checkKernel(attentionKernel(heads, kernel), tolerance);
}

static void checkAll(const Heads &heads, int vectorBits = 0) {
  for (AttentionKernel kernel : kAttentionKernels)
    check(heads, kernel, vectorBits);
  if (kHasBothGrads)
    check(heads, AttentionKernel::BothGrads, vectorBits);
}

static constexpr bool kBoth[] = {false, true};

TEST(Attention, Shapes) {
  const Heads all[] = {{"", 1, 1, 1, 1},
                       {"2x", 5, 7, 3, 4},
                       {"2x2x", 9, 9, 8, 8, true},
                       {"", 9, 4, 5, 2, true},
                       {"3x", 4, 9, 2, 5, true}};
  for (const Heads &heads : all)
    checkAll(heads);
}

TEST(Attention, Elements) {
  for (const char *element : {"f64", "f16", "bf16"})
    for (bool causal : kBoth) {
      checkAll({"2x", 6, 6, 4, 4, causal, element});
      checkAll({"", 70, 50, 20, 24, causal, element});
    }
}

// Tiles and blocks that are whole, and several of them.
TEST(Attention, WholeTiles) {
  for (bool causal : kBoth) {
    checkAll({"16x", 64, 64, 16, 16, causal});
    checkAll({"", 128, 256, 64, 64, causal});
  }
}

// Rows and columns that fill no tile, no vector and no rounds.
TEST(Attention, Edges) {
  for (bool causal : kBoth) {
    checkAll({"", 67, 101, 13, 7, causal});
    checkAll({"17x", 83, 79, 9, 33, causal});
    checkAll({"", 1, 90, 16, 1, causal});
    checkAll({"", 90, 1, 1, 16, causal});
  }
}

// Every width of vectors that targets have.
TEST(Attention, Vectors) {
  for (int bits : {128, 256, 512})
    for (const char *element : {"f32", "f64"})
      checkAll({"3x", 75, 90, 12, 10, true, element}, bits);
}

TEST(Attention, LongSequence) {
  for (bool causal : kBoth)
    checkAll({"", 1000, 1030, 8, 8, causal});
}

TEST(Attention, WideHeads) {
  checkAll({"", 20, 40, 256, 256, true});
  checkAll({"", 5, 70, 300, 270, false});
}

TEST(Attention, Scales) {
  for (double scale : {-0.25, 0.0, 0.5})
    checkAll({"", 20, 30, 16, 16, true, "f32", scale});
  check({"", 80, 150, 16, 16, true, "f32", 50.0}, AttentionKernel::Forward);
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
