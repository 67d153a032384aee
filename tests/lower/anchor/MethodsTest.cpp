//===- MethodsTest.cpp - the tables of methods for a CPU ------------------===//
//
// Which row each shape comes to and the reasons against the others; every row
// that computes a kernel, asked for by its name, gives the reference's numbers;
// and one that does not is refused with the reason.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/anchor/AttentionKernel.h"
#include "tests/lower/anchor/ConvolutionKernel.h"
#include "tests/lower/anchor/KernelCheck.h"
#include "tests/lower/anchor/MatmulKernel.h"
#include "tests/lower/anchor/MethodRows.h"

#include "ir/ScheduleMethods.h"
#include "passes/lower/cpu/Methods.h"
#include "passes/lower/cpu/loops/LoopEmitter.h"
#include "passes/lower/cuda/Methods.h"

using namespace tandem;
using namespace tandem::test;
using Pass = ConvolutionPass;

static Convolution images(int64_t channels, int64_t size, int64_t filters,
                          int64_t taps) {
  Convolution c{2, channels, size, size, filters, taps, taps};
  std::fill_n(c.padding, 4, taps / 2);
  return c;
}

static Convolution depthwise(int64_t channels, int64_t size, int64_t taps) {
  Convolution c = images(channels, size, channels, taps);
  c.groups = channels;
  return c;
}

static std::string reductionOf(const std::string &over,
                               const std::string &result) {
  const std::string x = "tensor<61x130xf32>";
  return kernelModule({x}, {result},
                      "%y = tandem.reduce_sum %0 over [" + over + "] : " + x +
                          " -> " + result + "\ntandem.yield %y : " + result);
}

static std::string sumOfTwo() {
  const std::string x = "tensor<61x130xf32>";
  return kernelModule({x, x}, {x},
                      "%y = tandem.add %0, %1 : " + x +
                          "\ntandem.yield %y : " + x);
}

//===----------------------------------------------------------------------===//
// Which row
//===----------------------------------------------------------------------===//

/// Each row of the convolutions has a shape that comes to it.
TEST(Methods, RowsOfConvolutions) {
  struct Case {
    const char *row;
    Convolution shape;
    Pass pass;
  };
  Convolution strided = images(64, 16, 64, 1);
  std::fill_n(strided.stride, 2, 2);
  const Case cases[] = {{"winograd", images(64, 16, 64, 3), Pass::Forward},
                        {"winograd", images(64, 16, 64, 3), Pass::InputGrad},
                        {"winograd", images(64, 16, 64, 3), Pass::FilterGrad},
                        {"depthwise", depthwise(8, 20, 3), Pass::FilterGrad},
                        {"pixels", depthwise(8, 20, 3), Pass::Forward},
                        {"pixels", depthwise(8, 7, 3), Pass::InputGrad},
                        {"pixels", images(40, 32, 4, 3), Pass::Forward},
                        {"pixels", images(3, 32, 64, 5), Pass::InputGrad},
                        {"pointwise", images(64, 16, 64, 1), Pass::Forward},
                        {"pointwise", strided, Pass::Forward},
                        {"direct", images(20, 12, 24, 5), Pass::Forward},
                        {"direct", images(20, 12, 24, 5), Pass::InputGrad},
                        {"direct", images(20, 12, 24, 3), Pass::FilterGrad},
                        {"pixels", images(3, 16, 24, 3), Pass::Forward},
                        {"windows", strided, Pass::FilterGrad}};
  for (const Case &c : cases) {
    std::string text = convolutionKernel(c.shape, c.pass);
    EXPECT_EQ(chosen(explained(text)), c.row) << text;
  }
}

TEST(Methods, ReasonsAgainstConvolutions) {
  auto of = [](const Convolution &c, Pass pass = Pass::Forward) {
    return explained(convolutionKernel(c, pass));
  };
  auto fives = of(images(16, 16, 32, 5));
  EXPECT_EQ(against(fives, "winograd"), "expected taps of 3x3 but got 5x5");
  EXPECT_EQ(against(fives, "pointwise"), "expected taps of 1x1 but got 5x5");
  EXPECT_EQ(against(fives, "depthwise"),
            "expected a gradient of filters but got 'tandem.conv2d'");
  EXPECT_EQ(against(fives, "pixels"),
            "expected at most 8 planes of the result in a group, half of a "
            "vector, but got 32");
  EXPECT_EQ(against(fives, "direct"), "");
  EXPECT_EQ(against(fives, "windows"), "'direct' is asked first");
  EXPECT_EQ(against(of(images(16, 16, 20, 3)), "winograd"),
            "expected multiples of 16 planes but got 16 that are summed and 20 "
            "of the result");
  Convolution strided = images(16, 16, 16, 3);
  std::fill_n(strided.stride, 2, 2);
  EXPECT_EQ(against(of(strided), "winograd"),
            "expected strides of 1x1 but got 2x2");
  Convolution twice = images(16, 16, 16, 3);
  twice.element = "f64";
  EXPECT_EQ(against(of(twice), "winograd"),
            "expected elements of f32, bf16 or f16 but got f64");
  // Few planes do not pay for the transforms.
  Convolution few = images(16, 5, 16, 3);
  few.batch = 1;
  EXPECT_TRUE(llvm::StringRef(against(of(few), "winograd"))
                  .starts_with("expected fewer multiply-adds than the 57600 of "
                               "a direct sum but got "));
  EXPECT_EQ(against(of(images(64, 16, 8, 1)), "pointwise"),
            "expected at least 13 planes of the result in a group but got 8");
  EXPECT_EQ(against(of(images(3, 16, 24, 3)), "direct"),
            "expected sums of at least 96 terms but got 27");
  EXPECT_EQ(against(of(images(8, 20, 8, 3), Pass::FilterGrad), "depthwise"),
            "expected groups of one plane of x and one of dy but got 8 and 8");
}

TEST(Methods, RowsOfProducts) {
  auto few = explained(productKernel({{}, 4, 96, 1024, false, true}));
  EXPECT_EQ(chosen(few), "dots");
  EXPECT_EQ(against(few, "tiles"), "expected factors of bf16 but got f32");
  EXPECT_EQ(against(few, "gemm"), "'dots' is asked first");
  auto many = explained(productKernel({{}, 64, 96, 1024, false, true}));
  EXPECT_EQ(chosen(many), "gemm");
  EXPECT_EQ(against(many, "dots"),
            "expected at most 32 rows, whose code is written out, but got 64");
  EXPECT_EQ(
      against(explained(productKernel({{}, 9, 9, 1024, false, true})), "dots"),
      "expected at most 8 rows but got 9");
  EXPECT_EQ(
      against(explained(productKernel({{}, 4, 96, 64, false, true})), "dots"),
      "expected sums of at least 128 terms but got 64");
  EXPECT_EQ(against(explained(productKernel({{}, 4, 96, 1024})), "dots"),
            "expected both factors to lie along k in memory but got others");
  Product narrow{{}, 40, 96, 64};
  narrow.element = "bf16";
  EXPECT_EQ(against(explained(productKernel(narrow)), "tiles"),
            "expected a processor with tiles of bf16 ('amx-bf16'), or with "
            "products of its pairs ('avx512bf16'), but got one without");
  constexpr const char *ofPairs =
      R"(#tandem.target<cpu {vector_bits = 512 : i64,
      features = ["avx512bf16", "avx512bw", "avx512f"]}>)";
  EXPECT_EQ(chosen(explained(productKernel(narrow), ofPairs)), "tiles");
  narrow.M = 7;
  EXPECT_EQ(against(explained(productKernel(narrow), ofPairs), "tiles"),
            "expected at least 8 rows and columns but got 7 and 96");
  EXPECT_EQ(chosen(explained(productKernel(narrow),
                             R"(#tandem.target<cpu {vector_bits = 512 : i64,
                                 features = ["amx-bf16", "amx-tile",
                                 "avx512bf16", "avx512bw", "avx512f"]}>)")),
            "tiles");
}

TEST(Methods, RowsOfLoops) {
  auto pointwise = explained(sumOfTwo());
  EXPECT_EQ(chosen(pointwise), "pointwise");
  EXPECT_EQ(against(pointwise, "rows"), "expected reductions but got none");
  auto rows = explained(reductionOf("1", "tensor<61xf32>"));
  EXPECT_EQ(chosen(rows), "rows");
  EXPECT_EQ(against(rows, "columns"),
            "expected the innermost index of 61x130 to be kept but got one "
            "that is reduced");
  EXPECT_EQ(against(rows, "pointwise"), "expected no reductions but got 1");
  auto columns = explained(reductionOf("0", "tensor<130xf32>"));
  EXPECT_EQ(chosen(columns), "columns");
  EXPECT_EQ(against(columns, "rows"),
            "expected the innermost index of 61x130 to be reduced but got one "
            "that is kept");
}

/// What is possible says how it would cut the kernel, the scratch that it would
/// take, and where a model of its time exists, the time.
TEST(Methods, SchedulesScratchAndSeconds) {
  auto kernel =
      explained(convolutionKernel(images(96, 16, 96, 3), Pass::Forward));
  int possible = 0;
  for (const lower::ExplainedMethod &method : kernel.methods) {
    EXPECT_EQ(method.isPossible, !method.schedule.empty()) << method.name;
    EXPECT_EQ(method.isPossible, method.seconds.has_value()) << method.name;
    EXPECT_EQ(method.isChosen, method.against.empty()) << method.name;
    if (!method.isPossible)
      continue;
    ++possible;
    EXPECT_NE(method.schedule.find("rows = "), std::string::npos)
        << method.name;
    EXPECT_GT(method.scratchBytes, 0) << method.name;
    EXPECT_GT(*method.seconds, 0) << method.name;
  }
  EXPECT_EQ(possible, 3) << "winograd, direct, windows";
  auto seconds = [&](size_t i) { return *kernel.methods[i].seconds; };
  EXPECT_LT(seconds(0), seconds(4)) << "winograd makes fewer products";
}

/// A name that no row has is a spelling that nothing can mean, and the other
/// way round.
TEST(Methods, EveryNameHasARow) {
  std::vector<llvm::StringRef> rows;
  auto add = [&](const auto &table) {
    for (const auto &row : table.rows) {
      EXPECT_TRUE(symbolizeScheduleMethod(row.name)) << row.name.str();
      EXPECT_FALSE(row.summary.empty()) << row.name.str();
      rows.push_back(row.name);
    }
  };
  mlir::MLIRContext context;
  context.loadDialect<TandemDialect>();
  for (const char *op :
       {"tandem.matmul", "tandem.conv2d", "tandem.attention_forward",
        "tandem.max_pool2d", "tandem.take", "tandem.cumsum"})
    add(*lower::cpu::methodsOf(mlir::OperationName(op, &context)));
  add(lower::cpu::loopMethods());
  add(lower::cuda::productMethods());
  for (lower::AnchorFamily family :
       {lower::AnchorFamily::Attention, lower::AnchorFamily::Window,
        lower::AnchorFamily::Indexed, lower::AnchorFamily::Lines})
    add(*lower::cuda::methodsOf(family));
  add(lower::cuda::loopMethods());
  for (llvm::StringRef name : methodNames())
    EXPECT_TRUE(llvm::is_contained(rows, name)) << name.str();
}

//===----------------------------------------------------------------------===//
// By name
//===----------------------------------------------------------------------===//

/// Checks the kernel by each method that computes it; returns how many.
static int checkEach(const std::string &text, Tolerance tolerance) {
  int count = 0;
  auto kernel = explained(text, cpuTarget(tolerance.vectorBits));
  for (const std::string &method : possible(kernel)) {
    SCOPED_TRACE(method);
    checkKernel(byMethod(text, method), tolerance);
    ++count;
  }
  return count;
}

static void checkEachPass(const Convolution &c, int vectorBits = 0) {
  for (ConvolutionPass pass : kConvolutionPasses)
    EXPECT_GT(checkEach(convolutionKernel(c, pass, /*hasEnd=*/true),
                        {8 * termsOf(c, pass), vectorBits}),
              1);
}

TEST(Methods, UnevenConvolutionsByEachMethod) {
  Convolution uneven{2, 16, 6, 9, 32, 3, 3};
  std::fill_n(uneven.padding, 4, 1);
  checkEachPass(uneven);
}

TEST(Methods, StridedConvolutionsByEachMethod) {
  Convolution strided{1, 8, 8, 16, 6, 3, 3};
  std::fill_n(strided.padding, 4, 1);
  std::fill_n(strided.stride, 2, 2);
  checkEachPass(strided);
  Convolution single = images(24, 16, 20, 1);
  std::fill_n(single.stride, 2, 2);
  checkEachPass(single, 256);
}

TEST(Methods, ConvolutionsOfFewPlanesByEachMethod) {
  checkEachPass(images(5, 9, 3, 1));
  checkEachPass(images(1, 20, 1, 5), 256);
  checkEachPass(depthwise(4, 5, 3));
  Convolution groups = images(6, 6, 8, 3);
  groups.groups = 2;
  groups.element = "bf16";
  checkEachPass(groups);
}

TEST(Methods, ProductsByEachMethod) {
  for (const Product &p : {Product{{}, 3, 70, 1030, false, true},
                           {{}, 20, 33, 64, false, true},
                           {{2}, 32, 9, 7, false, true},
                           {{}, 1, 1, 5, false, true}})
    EXPECT_EQ(checkEach(productKernel(p, ProductEnd::Bias),
                        {static_cast<double>(p.K)}),
              2);
  EXPECT_EQ(checkEach(productKernel({{}, 5, 7, 9}), {9}), 1);
}

TEST(Methods, OthersByEachMethod) {
  Heads heads{.leading = "2x", .T = 20, .S = 30, .D = 8, .E = 12};
  for (AttentionKernel kernel : kAttentionKernels)
    EXPECT_EQ(checkEach(attentionKernel(heads, kernel), toleranceOf(heads)), 1);
  EXPECT_EQ(checkEach(reductionOf("1", "tensor<61xf32>"), {130}), 1);
  EXPECT_EQ(checkEach(reductionOf("0", "tensor<130xf32>"), {61}), 1);
  EXPECT_EQ(checkEach(sumOfTwo(), {1}), 1);
}

/// A method in quotes is the same; one that does not compute the kernel, and
/// one of another kind of kernels, are refused.
TEST(Methods, WhatDoesNotComputeAKernelIsRefused) {
  std::string text = convolutionKernel(images(16, 12, 16, 5), Pass::Forward);
  JitKernel quoted(byMethod(text, "\"windows\""));
  EXPECT_TRUE(quoted.ok()) << quoted.error;
  JitKernel impossible(byMethod(text, "winograd"));
  EXPECT_FALSE(impossible.ok());
  EXPECT_NE(impossible.error.find("method 'winograd' does not compute this "
                                  "kernel: expected taps of 3x3 but got 5x5"),
            std::string::npos)
      << impossible.error;
  JitKernel other(byMethod(text, "dots"));
  EXPECT_FALSE(other.ok());
  EXPECT_NE(
      other.error.find(
          "expected 'method' in the schedule of a convolution for cpu to "
          "be 'winograd', 'depthwise', 'pixels', 'pointwise', 'direct' or "
          "'windows', but got 'dots'"),
      std::string::npos)
      << other.error;
  JitKernel loops(byMethod(sumOfTwo(), "rows"));
  EXPECT_FALSE(loops.ok());
  EXPECT_NE(loops.error.find("method 'rows' does not compute this kernel: "
                             "expected reductions but got none"),
            std::string::npos)
      << loops.error;
  // What is refused is explained, too.
  auto kernel = explained(byMethod(text, "winograd"));
  EXPECT_EQ(chosen(kernel), "");
  EXPECT_NE(kernel.problem, "");
}
