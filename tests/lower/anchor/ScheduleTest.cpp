//===- ScheduleTest.cpp - kernels that say how they are cut ---------------===//
//
// Every schedule of a product gives the bits of the model's; the methods of a
// convolution give the reference's numbers up to rounding.
//
//===----------------------------------------------------------------------===//
#include "tests/lower/anchor/KernelCheck.h"

#include "ir/Dialect.h"
#include "passes/lower/cpu/ScheduleSearch.h"

#include "mlir/Parser/Parser.h"

using namespace tandem;
using namespace tandem::test;

/// The kernel of `text` with the attribute `schedule`.
static std::string scheduled(std::string text, const std::string &schedule) {
  size_t at = text.find("{buffers = ");
  EXPECT_NE(at, std::string::npos);
  return text.insert(at + 1, "schedule = " + schedule + ", ");
}

/// Calls `use` with the kernel of `text` in a module for `vectorBits`.
template <typename Use>
static void withKernel(const std::string &text, Use use) {
  mlir::DialectRegistry registry;
  registry.insert<TandemDialect, mlir::func::FuncDialect>();
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  ASSERT_TRUE(module) << text;
  module->walk([&](KernelOp kernel) { use(kernel); });
}

/// The schedules that tuning tries for the kernel of `text` by `method`, as
/// text: of what the first and the last variant of each round lead to, every
/// `step`th.
static std::vector<std::string> candidatesOf(const std::string &text,
                                             const lower::VectorTarget &target,
                                             const std::string &method,
                                             int step) {
  std::vector<std::string> list;
  withKernel(text, [&](KernelOp kernel) {
    std::vector<cpu::AskedSchedule> from(1);
    from.front().method = method;
    for (cpu::ScheduleRound round : cpu::scheduleRounds(kernel)) {
      if (round(from.front(), target).back().method != method)
        continue; // methods
      llvm::SmallVector<cpu::AskedSchedule> last;
      for (const cpu::AskedSchedule &best : from) {
        last = round(best, target);
        for (size_t i = 0; i < last.size(); i += step) {
          list.emplace_back();
          llvm::raw_string_ostream(list.back())
              << last[i].attribute(kernel.getContext());
        }
      }
      from = {from.front(), last.back()};
    }
  });
  return list;
}

static std::string matmul(const std::string &lhs, const std::string &rhs,
                          const std::string &y, const std::string &attributes) {
  return kernelModule({lhs, rhs}, {y},
                      "%y = tandem.matmul %0, %1 {" + attributes +
                          "} : " + lhs + ", " + rhs + " -> " + y +
                          "\ntandem.yield %y : " + y);
}

/// Expects the bits of the kernel of `text` with every schedule to be those
/// without one, or with `method` alone, and those to be right. Some of them cut
/// it otherwise.
static void checkBits(const std::string &text, double terms, int vectorBits = 0,
                      const std::string &method = "") {
  SCOPED_TRACE(text);
  std::string start =
      method.empty() ? text : scheduled(text, "{method = \"" + method + "\"}");
  checkKernel(start, {terms, vectorBits});
  JitKernel model(start, vectorBits);
  ASSERT_TRUE(model.ok()) << model.error;
  auto inputs = randomInputs(model.inputTypes, 8);
  auto expected = model.outputs(inputs, model.work);
  lower::VectorTarget target;
  target.bits = vectorBits ? vectorBits : 512;
  target.registers = target.bits == 512 ? 32 : 16;
  bool isProduct = text.find("matmul") != std::string::npos;
  auto candidates = candidatesOf(text, target, method, isProduct ? 1 : 3);
  EXPECT_GE(candidates.size(), 10U);
  std::string begin = method.empty() ? "" : "method = \"" + method + "\", ";
  for (const char *extreme :
       {"rows = 1", "vectors = 8", "rows = 32, vectors = 8",
        "vectors = 1, block = 1, columns = 1",
        "block = 1099511627776, columns = 1099511627776, packs = true",
        "rows = 7, vectors = 3"})
    candidates.push_back("{" + begin + extreme + "}");
  int cutOtherwise = 0;
  for (const std::string &schedule : candidates) {
    SCOPED_TRACE(schedule);
    JitKernel kernel(scheduled(text, schedule), vectorBits);
    ASSERT_TRUE(kernel.ok()) << kernel.error;
    cutOtherwise += kernel.work != model.work;
    EXPECT_EQ(kernel.outputs(inputs, kernel.work), expected);
    EXPECT_EQ(kernel.outputs(inputs, 1, true), expected);
    EXPECT_EQ(kernel.error, "");
  }
  EXPECT_GT(cutOtherwise, 0);
}

TEST(Schedule, ProductsHaveTheSameBits) {
  checkBits(matmul("tensor<67x131xf32>", "tensor<131x83xf32>",
                   "tensor<67x83xf32>", ""),
            131);
  checkBits(matmul("tensor<301x70xf32>", "tensor<301x97xf32>",
                   "tensor<70x97xf32>", "transpose_lhs"),
            301);
  // Rows of A that are packed.
  checkBits(matmul("tensor<300x600xf32>", "tensor<300x150xf32>",
                   "tensor<600x150xf32>", "transpose_lhs"),
            300);
  // And sums that wait in the result.
  checkBits(matmul("tensor<531x650xf32>", "tensor<531x150xf32>",
                   "tensor<650x150xf32>", "transpose_lhs"),
            531);
  checkBits(matmul("tensor<3x50x40xf32>", "tensor<3x65x40xf32>",
                   "tensor<3x50x65xf32>", "transpose_rhs"),
            40);
  checkBits(
      matmul("tensor<5x600xf32>", "tensor<600x40xf32>", "tensor<5x40xf32>", ""),
      600);
}

TEST(Schedule, NarrowRegisters) {
  checkBits(matmul("tensor<67x131xf32>", "tensor<131x83xf32>",
                   "tensor<67x83xf32>", ""),
            131, 256);
  checkBits(matmul("tensor<31x300xf64>", "tensor<300x19xf64>",
                   "tensor<31x19xf64>", ""),
            300, 128);
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
      return "module attributes {tandem.target = {kind = \"cpu\", processors "
             "= " +
             std::to_string(processors) + "}} {\n" + product + "}\n";
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
            35 * 9);
  checkBits(convolution("conv2d_input_grad %0, %1 to [2, 24, 13, 9] strides "
                        "[2, 2] padding [1, 1, 1, 1]",
                        "tensor<2x70x7x5xf32>", "tensor<70x24x3x3xf32>",
                        "tensor<2x24x13x9xf32>"),
            70 * 9);
  checkBits(convolution("conv2d_filter_grad %0, %1 to [37, 10, 3, 3] padding "
                        "[1, 1, 1, 1]",
                        "tensor<5x10x17x11xf32>", "tensor<5x37x17x11xf32>",
                        "tensor<37x10x3x3xf32>"),
            5 * 17 * 11);
  checkBits(convolution("conv2d_filter_grad %0, %1 to [40, 9, 5, 2] strides "
                        "[2, 1] groups 2",
                        "tensor<2x18x15x12xf32>", "tensor<2x40x6x11xf32>",
                        "tensor<40x9x5x2xf32>"),
            2 * 6 * 11, 256);
}

TEST(Schedule, PointwiseConvolutionsHaveTheSameBits) {
  checkBits(convolution("conv2d %0, %1", "tensor<6x300x7x7xf32>",
                        "tensor<50x300x1x1xf32>", "tensor<6x50x7x7xf32>"),
            300);
  checkBits(convolution("conv2d %0, %1 strides [2, 2]",
                        "tensor<4x40x16x16xf32>", "tensor<70x40x1x1xf32>",
                        "tensor<4x70x8x8xf32>"),
            40);
  checkBits(convolution("conv2d_input_grad %0, %1 to [4, 100, 16, 16] strides "
                        "[2, 2]",
                        "tensor<4x36x8x8xf32>", "tensor<36x100x1x1xf32>",
                        "tensor<4x100x16x16xf32>"),
            36, 256);
}

TEST(Schedule, WinogradsMethodHasTheSameBits) {
  const std::string x = "tensor<3x48x17x13xf32>", w = "tensor<64x48x3x3xf32>",
                    y = "tensor<3x64x17x13xf32>", pad = " padding [1, 1, 1, 1]";
  checkBits(convolution("conv2d %0, %1" + pad, x, w, y), 8 * 48 * 9, 0,
            "winograd");
  checkBits(
      convolution("conv2d_input_grad %0, %1 to [3, 48, 17, 13]" + pad, y, w, x),
      8 * 64 * 9, 0, "winograd");
  checkBits(
      convolution("conv2d_filter_grad %0, %1 to [64, 48, 3, 3]" + pad, x, y, w),
      8 * 3 * 17 * 13, 256, "winograd");
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
    for (const char *method : {"winograd", "direct", "windows"}) {
      SCOPED_TRACE(method);
      // Winograd's transforms lose a few bits more.
      checkKernel(
          scheduled(c.text, std::string("{method = \"") + method + "\"}"),
          {8 * c.terms});
    }
}
