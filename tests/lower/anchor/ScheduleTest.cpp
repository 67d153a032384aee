//===- ScheduleTest.cpp - kernels that say how they are cut ---------------===//
//
// Every schedule gives the bits of the model's; the methods of a convolution
// give the reference's numbers up to rounding.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/anchor/AttentionKernel.h"
#include "tests/lower/anchor/ScheduleCheck.h"

using namespace tandem;
using namespace tandem::test;

static std::string matmul(const std::string &lhs, const std::string &rhs,
                          const std::string &y, const std::string &attributes) {
  return kernelModule({lhs, rhs}, {y},
                      "%y = tandem.matmul %0, %1 {" + attributes +
                          "} : " + lhs + ", " + rhs + " -> " + y +
                          "\ntandem.yield %y : " + y);
}

TEST(Schedule, ProductsHaveTheSameBits) {
  checkBits(matmul("tensor<67x131xf32>", "tensor<131x83xf32>",
                   "tensor<67x83xf32>", ""),
            {131});
  checkBits(matmul("tensor<301x70xf32>", "tensor<301x97xf32>",
                   "tensor<70x97xf32>", "transpose_lhs"),
            {301});
  // Rows of A that are packed.
  checkBits(matmul("tensor<300x600xf32>", "tensor<300x150xf32>",
                   "tensor<600x150xf32>", "transpose_lhs"),
            {300});
  // And sums that wait in the result.
  checkBits(matmul("tensor<531x650xf32>", "tensor<531x150xf32>",
                   "tensor<650x150xf32>", "transpose_lhs"),
            {531});
  checkBits(matmul("tensor<3x50x40xf32>", "tensor<3x65x40xf32>",
                   "tensor<3x50x65xf32>", "transpose_rhs"),
            {40});
  checkBits(
      matmul("tensor<5x600xf32>", "tensor<600x40xf32>", "tensor<5x40xf32>", ""),
      {600});
}

TEST(Schedule, NarrowRegisters) {
  checkBits(matmul("tensor<67x131xf32>", "tensor<131x83xf32>",
                   "tensor<67x83xf32>", ""),
            {131, 256});
  checkBits(matmul("tensor<31x300xf64>", "tensor<300x19xf64>",
                   "tensor<31x19xf64>", ""),
            {300, 128});
}

/// Items are cut for the processors that there are; sums are not.
TEST(Schedule, ProcessorsChangeItemsButNoBits) {
  // Packed rows of A with a long k; panels of a k so long that it is in parts.
  const std::string products[] = {
      matmul("tensor<1100x800xf32>", "tensor<1100x350xf32>",
             "tensor<800x350xf32>", "transpose_lhs"),
      matmul("tensor<50x20000xf32>", "tensor<20000x300xf32>",
             "tensor<50x300xf32>", "")};
  for (const std::string &product : products) {
    SCOPED_TRACE(product);
    auto with = [&](int64_t processors) {
      return "module attributes {tandem.target = #tandem.target<cpu "
             "{processors "
             "= " +
             std::to_string(processors) + "}>} {\n" + product + "}\n";
    };
    JitKernel one(with(1));
    ASSERT_TRUE(one.ok()) << one.error;
    auto inputs = randomInputs(one.inputTypes, 8);
    auto expected = one.outputs(inputs, one.work);
    for (int64_t processors : {2, 8, 64}) {
      JitKernel more(with(processors));
      ASSERT_TRUE(more.ok()) << more.error;
      EXPECT_EQ(more.outputs(inputs, more.work), expected) << processors;
      EXPECT_GE(more.work, one.work);
      if (processors == 8)
        EXPECT_GT(more.work, one.work);
    }
  }
}

static std::string convolution(const std::string &op, const std::string &lhs,
                               const std::string &rhs, const std::string &y) {
  return kernelModule({lhs, rhs}, {y},
                      "%y = tandem." + op + " : " + lhs + ", " + rhs + " -> " +
                          y + "\ntandem.yield %y : " + y);
}

// Odd sizes, strides, groups, and pixels that do not fill vectors.

TEST(Schedule, DirectConvolutionsHaveTheSameBits) {
  checkBits(convolution("conv2d %0, %1 padding [1, 1, 1, 1]",
                        "tensor<3x35x9x11xf32>", "tensor<37x35x3x3xf32>",
                        "tensor<3x37x9x11xf32>"),
            {35 * 9});
  checkBits(convolution("conv2d_input_grad %0, %1 to [2, 24, 13, 9] strides "
                        "[2, 2] padding [1, 1, 1, 1]",
                        "tensor<2x70x7x5xf32>", "tensor<70x24x3x3xf32>",
                        "tensor<2x24x13x9xf32>"),
            {70 * 9});
  checkBits(convolution("conv2d_filter_grad %0, %1 to [37, 10, 3, 3] padding "
                        "[1, 1, 1, 1]",
                        "tensor<5x10x17x11xf32>", "tensor<5x37x17x11xf32>",
                        "tensor<37x10x3x3xf32>"),
            {5 * 17 * 11});
  checkBits(convolution("conv2d_filter_grad %0, %1 to [40, 9, 5, 2] strides "
                        "[2, 1] groups 2",
                        "tensor<2x18x15x12xf32>", "tensor<2x40x6x11xf32>",
                        "tensor<40x9x5x2xf32>"),
            {2 * 6 * 11, 256});
}

TEST(Schedule, PointwiseConvolutionsHaveTheSameBits) {
  checkBits(convolution("conv2d %0, %1", "tensor<6x300x7x7xf32>",
                        "tensor<50x300x1x1xf32>", "tensor<6x50x7x7xf32>"),
            {300});
  checkBits(convolution("conv2d %0, %1 strides [2, 2]",
                        "tensor<4x40x16x16xf32>", "tensor<70x40x1x1xf32>",
                        "tensor<4x70x8x8xf32>"),
            {40});
  checkBits(convolution("conv2d_input_grad %0, %1 to [4, 100, 16, 16] strides "
                        "[2, 2]",
                        "tensor<4x36x8x8xf32>", "tensor<36x100x1x1xf32>",
                        "tensor<4x100x16x16xf32>"),
            {36, 256});
}

TEST(Schedule, WinogradsMethodHasTheSameBits) {
  const std::string x = "tensor<3x48x17x13xf32>", w = "tensor<64x48x3x3xf32>",
                    y = "tensor<3x64x17x13xf32>", pad = " padding [1, 1, 1, 1]";
  checkBits(convolution("conv2d %0, %1" + pad, x, w, y), {8 * 48 * 9},
            "winograd");
  checkBits(
      convolution("conv2d_input_grad %0, %1 to [3, 48, 17, 13]" + pad, y, w, x),
      {8 * 64 * 9}, "winograd");
  checkBits(
      convolution("conv2d_filter_grad %0, %1 to [64, 48, 3, 3]" + pad, x, y, w),
      {8 * 3 * 17 * 13, 256}, "winograd");
}

TEST(Schedule, ConvolutionsOfFewPlanesHaveTheSameBits) {
  checkBits(convolution("conv2d %0, %1 strides [2, 2] padding [1, 1, 1, 1]",
                        "tensor<2x40x35x37xf32>", "tensor<7x40x3x3xf32>",
                        "tensor<2x7x18x19xf32>"),
            {40 * 9});
}

TEST(Schedule, AttentionHasTheSameBits) {
  Heads heads{.leading = "3x", .T = 150, .S = 70, .D = 20, .E = 24};
  for (AttentionKernel kernel :
       {AttentionKernel::Forward, AttentionKernel::QueryGrad,
        AttentionKernel::KeyGrad}) {
    for (bool causal : {false, true}) {
      heads.causal = causal;
      checkBits(attentionKernel(heads, kernel), toleranceOf(heads));
    }
  }
}

/// Tiles of own keys are what the queries' gradients are summed over.
TEST(Schedule, JoinedGradientsOfAttentionAreNotCut) {
  Heads heads{.leading = "3x", .T = 40, .S = 150, .D = 20, .E = 24};
  JitKernel other(scheduled(attentionKernel(heads, AttentionKernel::BothGrads),
                            "#tandem.schedule<vectors = 1>"));
  EXPECT_FALSE(other.ok());
  EXPECT_NE(other.error.find("expected the schedule of method 'tiles' to have, "
                             "for this kernel, no numbers, but got 'vectors'"),
            std::string::npos)
      << other.error;
}

static std::string loops(const std::vector<std::string> &types,
                         const std::string &result, const std::string &body) {
  return kernelModule(types, {result}, body + "\ntandem.yield %y : " + result);
}

TEST(Schedule, LoopsHaveTheSameBits) {
  const std::string x = "tensor<61x1030xf32>", row = "tensor<1030xf32>";
  checkBits(loops({x, row}, x,
                  "%b = tandem.broadcast %1 to [61, 1030] along [1] : " + row +
                      " -> " + x + "\n%s = tandem.add %0, %b : " + x +
                      "\n%t = tandem.tanh %s : " + x +
                      "\n%e = tandem.exp %t : " + x +
                      "\n%y = tandem.mul %e, %0 : " + x),
            {20});
  checkBits(loops({x}, row,
                  "%y = tandem.reduce_sum %0 over [0] : " + x + " -> " + row),
            {61});
  checkBits(loops({x}, row,
                  "%s = tandem.mul %0, %0 : " + x +
                      "\n%y = tandem.reduce_max %s over [0] : " + x + " -> " +
                      row),
            {61, 256});
  // Inputs that are asked for ahead.
  const std::string large = "tensor<1100x1001xf32>", rows = "tensor<1100xf32>";
  checkBits(loops({large}, large, "%y = tandem.exp %0 : " + large), {8});
  std::string text =
      loops({large}, rows,
            "%y = tandem.reduce_sum %0 over [1] : " + large + " -> " + rows);
  JitKernel model(text),
      other(scheduled(text, "#tandem.schedule<ahead = false>"));
  ASSERT_TRUE(model.ok() && other.ok()) << model.error << other.error;
  auto inputs = randomInputs(model.inputTypes, 8);
  EXPECT_EQ(other.outputs(inputs, other.work),
            model.outputs(inputs, model.work));
}

TEST(Schedule, MethodsOfConvolutions) {
  const std::string pad = " padding [1, 1, 1, 1]";
  struct Case {
    std::string text;
    double terms;
  };
  const std::string x = "tensor<2x16x9x7xf32>", w = "tensor<32x16x3x3xf32>",
                    y = "tensor<2x32x9x7xf32>";
  const Case cases[] = {
      {convolution("conv2d %0, %1" + pad, x, w, y), 16 * 9},
      {convolution("conv2d_input_grad %0, %1 to [2, 16, 9, 7]" + pad, y, w, x),
       32 * 9},
      {convolution("conv2d_filter_grad %0, %1 to [32, 16, 3, 3]" + pad, x, y,
                   w),
       2 * 9 * 7},
      {convolution("conv2d %0, %1 padding [0, 0, 0, 0]", "tensor<1x3x8x8xf32>",
                   "tensor<8x3x5x5xf32>", "tensor<1x8x4x4xf32>"),
       75}};
  for (const Case &c : cases)
    for (const std::string &method :
         possible(explained(c.text, cpuTarget(0)))) {
      SCOPED_TRACE(method);
      // Winograd's transforms lose a few bits more.
      checkKernel(byMethod(c.text, method), {8 * c.terms});
    }
}
