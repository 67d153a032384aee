//===- WinogradTest.cpp - convolutions by fewer multiplications -----------===//
#include "tests/lower/anchor/KernelCheck.h"

#include "ir/reference/Elements.h"

#include "passes/lower/cpu/convolution/Winograd.h"

#include "mlir/Parser/Parser.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

namespace {
struct Case {
  std::vector<int64_t> x; ///< images, planes, height, width
  int64_t filters;
  std::vector<int64_t> padding = {1, 1, 1, 1}; // top, bottom, left, right
  std::string element = "f32";
  int64_t taps = 3;
};
} // namespace

static std::string list(const std::vector<int64_t> &numbers,
                        const char *between) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i ? between : "") + std::to_string(numbers[i]);
  return text;
}

static std::string typeOf(const std::vector<int64_t> &shape,
                          const std::string &element) {
  return "tensor<" + list(shape, "x") + "x" + element + ">";
}

static std::vector<int64_t> filterOf(const Case &c) {
  return {c.filters, c.x[1], c.taps, c.taps};
}
static std::vector<int64_t> resultOf(const Case &c) {
  return {c.x[0], c.filters, c.x[2] + c.padding[0] + c.padding[1] - c.taps + 1,
          c.x[3] + c.padding[2] + c.padding[3] - c.taps + 1};
}

/// A kernel of conv2d, or of one of its gradients, with %0 and %1.
static std::string moduleOf(const Case &c, const std::string &op) {
  std::string x = typeOf(c.x, c.element), w = typeOf(filterOf(c), c.element),
              y = typeOf(resultOf(c), c.element);
  std::string a = x, b = w, made = y, to;
  if (op == "conv2d_input_grad") {
    a = y;
    made = x;
    to = " to [" + list(c.x, ", ") + "]";
  } else if (op == "conv2d_filter_grad") {
    b = y;
    made = w;
    to = " to [" + list(filterOf(c), ", ") + "]";
  }
  return kernelModule({a, b}, {made},
                      "%y = tandem." + op + " %0, %1" + to + " padding [" +
                          list(c.padding, ", ") + "] : " + a + ", " + b +
                          " -> " + made + "\ntandem.yield %y : " + made);
}

/// How the method computes the convolution of the module; nothing where it is
/// not used.
static std::optional<lower::cpu::winograd::Schedule>
chosen(const std::string &text, int64_t vectorBits = 512) {
  MLIRContext context;
  context.loadDialect<TandemDialect, func::FuncDialect>();
  auto module = parseSourceString<ModuleOp>(text, &context);
  std::optional<lower::cpu::winograd::Schedule> schedule;
  module->walk([&](CostOpInterface op) {
    if (op.getOpClass() == OpClass::Contraction)
      schedule = lower::cpu::winograd::Schedule::choose(
          op, {vectorBits, vectorBits == 512 ? 32 : 16});
  });
  return schedule;
}

// Its errors are about twice those of a direct sum.
static Tolerance toleranceOf(double terms, int vectorBits) {
  return {3 * terms, vectorBits};
}

static void check(const Case &c, int vectorBits = 0) {
  std::string forward = moduleOf(c, "conv2d");
  std::string inputGrad = moduleOf(c, "conv2d_input_grad");
  std::string filterGrad = moduleOf(c, "conv2d_filter_grad");
  EXPECT_TRUE(chosen(forward)) << forward;
  EXPECT_TRUE(chosen(inputGrad)) << inputGrad;
  EXPECT_TRUE(chosen(filterGrad)) << filterGrad;
  checkKernel(forward, toleranceOf(9.0 * c.x[1], vectorBits));
  checkKernel(inputGrad, toleranceOf(9.0 * c.filters, vectorBits));
  std::vector<int64_t> y = resultOf(c);
  double pixels = static_cast<double>(y[0] * y[2] * y[3]);
  checkKernel(filterGrad, toleranceOf(pixels, vectorBits));
}

TEST(Winograd, WholeTiles) {
  check({{33, 64, 4, 4}, 64});
  check({{9, 32, 8, 8}, 160});
  check({{2, 128, 12, 12}, 48});
}

TEST(Winograd, PartsOfTiles) {
  check({{3, 32, 13, 9}, 32});
  check({{2, 32, 7, 7}, 96});
  check({{5, 16, 6, 5}, 128});
}

// A row of more tiles than a segment has.
TEST(Winograd, LongRows) {
  check({{1, 16, 5, 70}, 64});
  check({{1, 32, 6, 129}, 32, {0, 2, 2, 0}});
}

TEST(Winograd, AnyPadding) {
  check({{2, 48, 15, 18}, 32, {0, 0, 0, 0}});
  check({{1, 32, 20, 16}, 32, {4, 3, 5, 6}});
  check({{3, 32, 9, 11}, 64, {2, 0, 0, 1}});
}

TEST(Winograd, NarrowVectors) {
  check({{3, 32, 13, 9}, 32}, 256);
  check({{3, 32, 6, 9}, 32}, 128);
}

// Widened on their way into tiles; the sums are of f32, and rounded once.
TEST(Winograd, ShortFloats) {
  for (const char *element : {"bf16", "f16"}) {
    check({{9, 32, 8, 8}, 160, {1, 1, 1, 1}, element});
    check({{3, 48, 13, 9}, 48, {2, 0, 0, 1}, element});
    check({{3, 32, 13, 9}, 32, {1, 1, 1, 1}, element}, 256);
  }
}

TEST(Winograd, Epilogue) {
  checkKernel(kernelModule({"tensor<3x32x9x10xf32>", "tensor<48x32x3x3xf32>",
                            "tensor<48xf32>", "tensor<3x48x9x10xf32>"},
                           {"tensor<3x48x9x10xf32>"}, R"(
    %y = tandem.conv2d %0, %1 padding [1, 1, 1, 1] : tensor<3x32x9x10xf32>, tensor<48x32x3x3xf32> -> tensor<3x48x9x10xf32>
    %b = tandem.broadcast %2 to [3, 48, 9, 10] along [1] : tensor<48xf32> -> tensor<3x48x9x10xf32>
    %s = tandem.add %y, %b : tensor<3x48x9x10xf32>
    %r = tandem.relu %s : tensor<3x48x9x10xf32>
    %z = tandem.add %r, %3 : tensor<3x48x9x10xf32>
    tandem.yield %z : tensor<3x48x9x10xf32>)"),
              toleranceOf(288, 0));
  checkKernel(kernelModule({"tensor<5x48x9x10xf32>", "tensor<5x32x9x10xf32>",
                            "tensor<32x48x3x3xf32>"},
                           {"tensor<32x48x3x3xf32>"}, R"(
    %y = tandem.conv2d_filter_grad %0, %1 to [32, 48, 3, 3] padding [1, 1, 1, 1] : tensor<5x48x9x10xf32>, tensor<5x32x9x10xf32> -> tensor<32x48x3x3xf32>
    %z = tandem.sub %2, %y : tensor<32x48x3x3xf32>
    tandem.yield %z : tensor<32x48x3x3xf32>)"),
              toleranceOf(450, 0));
}

// What follows a sum has its indices, or those of a reshape, over lines that
// are whole vectors, parts of them, and parts of long rows.
TEST(Winograd, EpilogueOfLines) {
  using Lines = std::pair<int64_t, int64_t>;
  for (auto [height, width] :
       {Lines{16, 16}, {14, 14}, {6, 7}, {4, 4}, {5, 70}})
    for (bool isFlat : {false, true}) {
      SCOPED_TRACE(std::to_string(height) + "x" + std::to_string(width) +
                   (isFlat ? " flat" : ""));
      std::string y = typeOf({2, 32, height, width}, "f32"),
                  dy = typeOf({2, 16, height, width}, "f32"),
                  w = typeOf({16, 32, 3, 3}, "f32"),
                  flat = typeOf({2, 32 * height * width}, "f32");
      std::string shape = list({2, 32 * height * width}, ", ");
      std::string text = "%y = tandem.conv2d_input_grad %0, %1 to [" +
                         list({2, 32, height, width}, ", ") +
                         "] padding [1, 1, 1, 1] : " + dy + ", " + w + " -> " +
                         y + "\n";
      std::string end = isFlat ? flat : y, from = isFlat ? "%f" : "%y";
      if (isFlat)
        text += "%f = tandem.reshape %y to [" + shape + "] : " + y + " -> " +
                flat + "\n";
      text += "%z = tandem.add " + from + ", %2 : " + end +
              "\n%r = tandem.relu %z : " + end + "\ntandem.yield %r : " + end;
      checkKernel(kernelModule({dy, w, end}, {end}, text),
                  toleranceOf(16 * 9, 0));
    }
}

// Groups, which parts of a sum over images are: each has planes of its own.
TEST(Winograd, GroupsOfFilterGrad) {
  auto text = [](int64_t images, int64_t groups, int64_t planes,
                 int64_t filters, int64_t height, int64_t width) {
    std::string x = typeOf({images, groups * planes, height, width}, "f32"),
                dy = typeOf({images, groups * filters, height, width}, "f32"),
                w = typeOf({groups * filters, planes, 3, 3}, "f32");
    return kernelModule({x, dy}, {w},
                        "%y = tandem.conv2d_filter_grad %0, %1 to [" +
                            list({groups * filters, planes, 3, 3}, ", ") +
                            "] padding [1, 1, 1, 1] groups " +
                            std::to_string(groups) + " : " + x + ", " + dy +
                            " -> " + w + "\ntandem.yield %y : " + w);
  };
  std::string few = text(3, 4, 16, 16, 9, 11), many = text(2, 3, 32, 64, 8, 8);
  EXPECT_TRUE(chosen(few));
  EXPECT_TRUE(chosen(many));
  checkKernel(few, toleranceOf(3 * 9 * 11, 0));
  checkKernel(many, toleranceOf(2 * 8 * 8, 0));
}

// Images that are not where vectors of neighbours could be read are summed
// directly.
TEST(Winograd, ViewsBefore) {
  checkKernel(kernelModule({"tensor<2x8x9x32xf32>", "tensor<32x32x3x3xf32>"},
                           {"tensor<2x32x8x9xf32>"}, R"(
    %x = tandem.permute %0 by [0, 3, 1, 2] : tensor<2x8x9x32xf32> -> tensor<2x32x8x9xf32>
    %y = tandem.conv2d %x, %1 padding [1, 1, 1, 1] : tensor<2x32x8x9xf32>, tensor<32x32x3x3xf32> -> tensor<2x32x8x9xf32>
    tandem.yield %y : tensor<2x32x8x9xf32>)"),
              {288});
}

/// The root of the mean square of the errors, relative to that of the numbers.
static double errorOf(const std::string &text) {
  JitKernel kernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.error;
  auto inputs = randomInputs(kernel.inputTypes, 8);
  auto expected = kernel.expected(inputs);
  auto bytes = kernel.outputs(inputs, kernel.work);
  auto actual = reference::decode(bytes[0].data(), kernel.outputTypes[0]);
  double errors = 0, numbers = 0;
  for (int64_t i = 0; i < expected[0].size(); ++i) {
    errors += std::pow(actual[i] - expected[0][i], 2);
    numbers += std::pow(expected[0][i], 2);
  }
  return std::sqrt(errors / numbers);
}

static std::string withoutWinograd(const std::string &text) {
  return "module attributes {tandem.target = #tandem.target<cpu {winograd = "
         "\"no\"}>} {\n" +
         text + "}\n";
}

// What docs/rationale/winograd.md says of the errors.
TEST(Winograd, IsAlmostAsExact) {
  for (const char *op : {"conv2d", "conv2d_input_grad", "conv2d_filter_grad"}) {
    std::string text = moduleOf({{4, 128, 8, 8}, 64}, op);
    double direct = errorOf(withoutWinograd(text)), own = errorOf(text);
    EXPECT_LT(own, 1.5e-6) << op;
    EXPECT_LT(own, 4 * direct) << op;
    EXPECT_GT(own, direct) << op;
  }
}

TEST(Winograd, Choice) {
  auto isChosen = [](const Case &c, const char *op = "conv2d") {
    return chosen(moduleOf(c, op)).has_value();
  };
  EXPECT_TRUE(isChosen({{32, 64, 32, 32}, 64}));
  EXPECT_TRUE(isChosen({{32, 512, 4, 4}, 512}, "conv2d_input_grad"));
  // Taps and strides that it is not for.
  EXPECT_FALSE(isChosen({{32, 64, 32, 32}, 64, {2, 2, 2, 2}, "f32", 5}));
  EXPECT_FALSE(isChosen({{32, 64, 32, 32}, 64, {1, 1, 1, 1}, "f64"}));
  EXPECT_TRUE(isChosen({{32, 64, 32, 32}, 64, {1, 1, 1, 1}, "bf16"}));
  // Planes that are no whole vectors; too few tiles for what the taps cost.
  EXPECT_FALSE(isChosen({{32, 3, 32, 32}, 64}));
  EXPECT_FALSE(isChosen({{1, 512, 4, 4}, 512}));
  std::string text = moduleOf({{32, 64, 32, 32}, 64}, "conv2d");
  EXPECT_TRUE(chosen(text));
  EXPECT_FALSE(chosen(withoutWinograd(text)));
}
