//===- PartitionTest.cpp - what the smallest cut saves, pattern by pattern ===//
//
// Each program has a product with a parameter before and after its pattern, so
// that all of it is needed, and nothing is free but inputs and parameters.
//
//===----------------------------------------------------------------------===//
#include "tests/partition/Partitioned.h"

#include <gtest/gtest.h>

using namespace tandem;
using namespace tandem::test;

namespace {

using List = std::vector<std::string>;

const InputOptions kWanted = {.requiresGrad = true};

/// x w, a pattern, and a product with another parameter.
std::function<void(Trace &)>
between(const std::function<Tensor(Trace &, Tensor)> &pattern,
        DType dtype = DType::F32) {
  return [=](Trace &t) {
    Tensor x = t.input("x", {256, 512}, dtype);
    Tensor w = t.parameter("w", {512, 512}, Init::constant(0.5), dtype);
    Tensor v = t.parameter("v", {512, 512}, Init::constant(0.5), dtype);
    t.output("loss", mean(matmul(pattern(t, matmul(x, w)), v)));
  };
}

} // namespace

// Without a choice of cuts: what the backward reads is saved as the forward
// makes it, each value once, inputs and parameters by reference.
TEST(Partition, P01_ByDefaultWhatTheBackwardReads) {
  Partitioned p = partition(
      [](Trace &t) {
        Tensor x = t.input("x", {64, 64});
        Tensor w = t.parameter("w", {64, 64}, Init::constant(0.5));
        Tensor y = sin(matmul(x, w));
        // The sine is read by two gradients, the product by one.
        t.output("loss", sum(y * y + exp(y)));
      },
      "cpu", "default");
  EXPECT_EQ(p.saved,
            (List{"matmul.0: tensor<64x64xf32>", "sin.0: tensor<64x64xf32>",
                  "exp.0: tensor<64x64xf32>"}));
  EXPECT_EQ(p.repeated, List());
  EXPECT_EQ(p.contractionsAfter, p.contractions);
}

TEST(Partition, P03_SavesByNeed) {
  // Of a product of which one gradient is wanted, the other factor.
  EXPECT_EQ(partition([](Trace &t) {
              Tensor x = t.input("x", {64, 64}), y = t.input("y", {64, 64});
              Tensor a = t.input("a", {64, 64}, DType::F32, kWanted);
              t.output("loss", sum(a * matmul(x, y)));
            }).saved,
            (List{"matmul.0: tensor<64x64xf32>"}));
  // Of a sum nothing.
  EXPECT_EQ(partition([](Trace &t) {
              Tensor x = t.input("x", {64, 64}), y = t.input("y", {64, 64});
              Tensor a = t.input("a", {64, 64}, DType::F32, kWanted);
              t.output("loss", sum(a + matmul(x, y)));
            }).saved,
            List());
  // What is of use for its shape alone is not saved.
  EXPECT_EQ(partition([](Trace &t) {
              Tensor x = t.input("x", {64, 64}), y = t.input("y", {64, 64});
              Tensor a = t.input("a", {64, 64}, DType::F32, kWanted);
              t.output("loss", mean(matmul(x, y) - a, {0, 1}));
            }).saved,
            List());
}

TEST(Partition, P03_OfSeveralResultsTheNeededOnes) {
  // The backward of attention reads its result and one number per row.
  Partitioned p = partition(
      [](Trace &t) {
        auto input = [&](const char *name) {
          return t.input(name, {2, 4, 64, 32}, DType::F32, kWanted);
        };
        t.output("loss", sum(attention(input("q"), input("k"), input("v"))));
      },
      "cuda:sm_90");
  EXPECT_EQ(p.saved, (List{"attention_forward.0: tensor<2x4x64x32xf32>",
                           "attention_forward.0.1: tensor<2x4x64xf32>"}));
}

TEST(Partition, P04_NeverMoreBytesThanByDefault) {
  const std::function<void(Trace &)> programs[] = {
      between([](Trace &, Tensor x) { return relu(x); }),
      between([](Trace &, Tensor x) { return sin(sin(x)); }),
      between([](Trace &, Tensor x) { return softmax(x, 1); }),
      between([](Trace &, Tensor x) { return x * sum(x, {1}, true); }),
      between([](Trace &, Tensor x) { return tanh(exp(x) + sin(x)) * x; }),
  };
  for (const auto &program : programs)
    EXPECT_LE(partition(program).savedBytes,
              partition(program, "cpu", "default").savedBytes);
}

TEST(Partition, P04_ReluIsSavedOnce) {
  // The result is in memory anyway, and has the mask in it.
  EXPECT_EQ(partition(between([](Trace &, Tensor x) { return relu(x); })).saved,
            (List{"relu.0: tensor<256x512xf32>"}));
}

TEST(Partition, P04_AMaskAloneIsSavedAsBooleans) {
  // Nothing needs the numbers.
  Partitioned p = partition([](Trace &t) {
    Tensor x = t.input("x", {256, 512});
    Tensor w = t.parameter("w", {512, 512}, Init::constant(0.5));
    t.output("loss", sum(relu(matmul(x, w))));
  });
  EXPECT_EQ(p.saved, (List{"compare.0: tensor<256x512xi1>"}));
}

TEST(Partition, P04_GeluIsRepeated) {
  Partitioned p =
      partition(between([](Trace &, Tensor x) { return gelu(x, true); }));
  EXPECT_EQ(p.saved, (List{"matmul.0: tensor<256x512xf32>"}));
  EXPECT_TRUE(p.repeats("tandem.sigmoid"));
}

TEST(Partition, P04_LayerNormSavesTwoNumbersARow) {
  Partitioned p = partition(between([](Trace &t, Tensor x) {
    Tensor scale = t.parameter("s", {512}, Init::constant(1));
    Tensor bias = t.parameter("b", {512}, Init::constant(0));
    return layerNorm(x, scale, bias);
  }));
  EXPECT_EQ(p.saved,
            (List{"matmul.0: tensor<256x512xf32>", "div.0: tensor<256xf32>",
                  "rsqrt.0: tensor<256xf32>"}));
}

TEST(Partition, P04_BatchNormSavesTwoNumbersAChannel) {
  Partitioned p = partition([](Trace &t) {
    Tensor x = t.input("x", {8, 3, 32, 32});
    Tensor w = t.parameter("w", {16, 3, 3, 3}, Init::constant(0.5));
    Tensor v = t.parameter("v", {16, 16, 3, 3}, Init::constant(0.5));
    Tensor s = t.parameter("s", {16}, Init::constant(1));
    Tensor b = t.parameter("b", {16}, Init::constant(0));
    Tensor m = t.state("m", {16}, Init::constant(0));
    Tensor n = t.state("n", {16}, Init::constant(1));
    Tensor y = relu(batchNorm(conv2d(x, w), s, b, m, n));
    t.output("loss", mean(conv2d(y, v)));
  });
  EXPECT_EQ(p.saved,
            (List{"conv2d.0: tensor<8x16x30x30xf32>", "div.0: tensor<16xf32>",
                  "rsqrt.0: tensor<16xf32>"}));
}

TEST(Partition, P04_TheLossSavesNumbersOfRowsBesideTheLogits) {
  Partitioned p = partition([](Trace &t) {
    Tensor x = t.input("x", {256, 64});
    Tensor y = t.input("y", {256}, DType::I64);
    Tensor w = t.parameter("w", {512, 64}, Init::constant(0.5));
    t.output("loss", crossEntropy(linear(x, w), y));
  });
  ASSERT_FALSE(p.saved.empty());
  EXPECT_EQ(p.saved[0], "matmul.0: tensor<256x512xf32>");
  for (size_t i = 1; i < p.saved.size(); ++i)
    EXPECT_NE(p.saved[i].find("tensor<256x"), std::string::npos) << p.saved[i];
  EXPECT_LE(p.savedBytes, 256 * 512 * 4 + 2 * 256 * 4);
}

TEST(Partition, P04_AResidualStreamIsSavedOnceALayer) {
  Partitioned p = partition([](Trace &t) {
    Tensor h = t.input("x", {4096, 1024}, DType::F32, kWanted);
    for (int i = 0; i < 3; ++i) {
      std::string n = std::to_string(i);
      Tensor s = t.parameter("s" + n, {1024}, Init::constant(1));
      Tensor b = t.parameter("b" + n, {1024}, Init::constant(0));
      h = h + gelu(layerNorm(h, s, b), true);
    }
    t.output("loss", mean(h * h));
  });
  // Between three layers; at most two numbers a row of each.
  EXPECT_GT(p.savedBytes, 2 * 4096 * 1024 * 4);
  EXPECT_LE(p.savedBytes, 2 * 4096 * 1024 * 4 + 6 * 4096 * 4);
}

TEST(Partition, P04_TheNarrowSideOfACastIsSaved) {
  Partitioned p = partition(between(
      [](Trace &, Tensor x) {
        return cast(gelu(cast(x, DType::F32), true), DType::BF16);
      },
      DType::BF16));
  EXPECT_EQ(p.saved, (List{"matmul.0: tensor<256x512xbf16>"}));
}

TEST(Partition, P05_ContractionsAndConvolutionsAreNotRepeated) {
  // Though each would take less than reading its result.
  Partitioned p = partition([](Trace &t) {
    Tensor x = t.input("x", {1024, 2});
    Tensor w = t.parameter("w", {2, 1024}, Init::constant(0.5));
    Tensor i = t.input("i", {1, 1, 1024, 1024});
    Tensor f = t.parameter("f", {1, 1, 1, 1}, Init::constant(0.5));
    Tensor c = conv2d(i, f);
    t.output("loss", sum(sin(matmul(x, w))) + sum(sin(c)));
  });
  EXPECT_EQ(p.saved, (List{"conv2d.0: tensor<1x1x1024x1024xf32>",
                           "matmul.0: tensor<1024x1024xf32>"}));
  EXPECT_EQ(p.contractions, 4);
  EXPECT_EQ(p.contractionsAfter, p.contractions);
}

TEST(Partition, P13_SumsOfFloatsAreNotRepeated) {
  // Another kernel would add in another order.
  Partitioned p = partition(between([](Trace &, Tensor x) {
    Tensor pairs = x.view({256, 256, 2});
    return (pairs * exp(sum(pairs * pairs, {2}, true))).view({256, 512});
  }));
  EXPECT_FALSE(p.repeats("tandem.reduce_sum"));
}

TEST(Partition, P14_DropoutSavesNoMask) {
  Partitioned p = partition(
      between([](Trace &, Tensor x) { return dropout(relu(x), 0.25); }));
  // compare.0 is what is dropped, compare.1 relu's mask.
  EXPECT_EQ(p.saved,
            (List{"random: tensor<2xi64>", "select.0: tensor<256x512xf32>",
                  "compare.1: tensor<256x512xi1>"}));
  EXPECT_TRUE(p.repeats("tandem.philox"));
}
