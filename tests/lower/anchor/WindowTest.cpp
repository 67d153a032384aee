//===- WindowTest.cpp - pooling on the cpu --------------------------------===//
#include "tests/lower/anchor/KernelCheck.h"

#include "ir/reference/Elements.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

static std::string list(std::vector<int64_t> numbers, const char *between) {
  std::string text;
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i ? between : "") + std::to_string(numbers[i]);
  return text;
}
static std::string tensor(std::vector<int64_t> shape, std::string element) {
  return "tensor<" + list(shape, "x") + "x" + element + ">";
}

namespace {
struct Pool {
  std::vector<int64_t> shape;
  int64_t kernel[2];
  int64_t stride[2] = {1, 1};
  int64_t padding[4] = {0, 0, 0, 0}; // top, bottom, left, right
  int64_t dilation[2] = {1, 1};
  std::string element = "f32";

  std::vector<int64_t> output() const {
    std::vector<int64_t> out = shape;
    for (int d = 0; d < 2; ++d)
      out[2 + d] = (shape[2 + d] + padding[2 * d] + padding[2 * d + 1] -
                    (kernel[d] - 1) * dilation[d] - 1) /
                       stride[d] +
                   1;
    return out;
  }
  std::string geometry() const {
    return " kernel [" + list({kernel[0], kernel[1]}, ", ") + "] strides [" +
           list({stride[0], stride[1]}, ", ") + "] padding [" +
           list({padding[0], padding[1], padding[2], padding[3]}, ", ") + "]";
  }
};
} // namespace

static std::string maxPool(const Pool &p) {
  std::string x = tensor(p.shape, p.element);
  std::string y = tensor(p.output(), p.element);
  std::string index = tensor(p.output(), "i32");
  return kernelModule(
      {x}, {y, index},
      "%y, %i = tandem.max_pool2d %0" + p.geometry() + " dilation [" +
          list({p.dilation[0], p.dilation[1]}, ", ") + "] : " + x + " -> " + y +
          ", " + index + "\ntandem.yield %y, %i : " + y + ", " + index);
}

static void checkAvgPool(const Pool &p) {
  std::string x = tensor(p.shape, p.element);
  std::string y = tensor(p.output(), p.element);
  double terms = p.kernel[0] * p.kernel[1];
  for (const char *attributes : {"", " {count_include_pad = false}"}) {
    checkKernel(kernelModule({x}, {y},
                             "%y = tandem.avg_pool2d %0" + p.geometry() +
                                 attributes + " : " + x + " -> " + y +
                                 "\ntandem.yield %y : " + y),
                {terms});
    checkKernel(kernelModule({y}, {x},
                             "%y = tandem.avg_pool2d_grad %0 to [" +
                                 list(p.shape, ", ") + "]" + p.geometry() +
                                 attributes + " : " + y + " -> " + x +
                                 "\ntandem.yield %y : " + x),
                {terms});
  }
}

static const Pool kPools[] = {
    {{2, 3, 8, 8}, {2, 2}, {2, 2}},
    {{1, 2, 9, 11}, {3, 2}, {2, 1}, {1, 1, 0, 1}},
    {{2, 1, 7, 40}, {3, 3}, {1, 1}, {1, 1, 1, 1}},
    {{1, 1, 1, 1}, {1, 1}},
    {{1, 3, 5, 6}, {5, 6}},
    {{1, 2, 10, 9}, {2, 2}, {3, 4}},
    {{1, 2, 7, 56}, {3, 3}, {2, 2}, {1, 1, 1, 1}},
    {{1, 2, 6, 53}, {3, 3}, {2, 2}, {0, 1, 0, 0}, {1, 1}, "bf16"},
    {{2, 1, 4, 37}, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, "f64"},
    {{1, 1, 5, 33}, {2, 2}, {1, 2}, {0, 0, 1, 1}, {1, 1}, "f16"},
    {{2, 2, 6, 6}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, "f64"},
    {{2, 2, 6, 6}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, "bf16"},
};

TEST(Window, MaxPool) {
  for (const Pool &p : kPools)
    checkKernel(maxPool(p), {});
  checkKernel(maxPool({{1, 2, 9, 8}, {2, 3}, {1, 2}, {1, 0, 1, 2}, {3, 2}}),
              {});
}

TEST(Window, MaxPoolOfDilatedVectors) {
  checkKernel(maxPool({{1, 2, 5, 29}, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 2}}),
              {});
  checkKernel(maxPool({{1, 2, 5, 45}, {2, 3}, {1, 2}, {0, 0, 2, 2}, {2, 2}}),
              {});
}

TEST(Window, MaxPoolOfSpecialNumbers) {
  JitKernel kernel(maxPool({{1, 1, 1, 10}, {1, 2}, {1, 2}}));
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  double infinity = INFINITY, nan = NAN;
  std::vector<reference::Array> x(1, reference::Array({1, 1, 1, 10}));
  x[0].data = {1, 1, -infinity, -infinity, nan, 2, 3, nan, nan, nan};
  auto out = kernel.outputs(x, 1);
  auto y = reference::decode(out[0].data(), kernel.outputTypes[0]);
  auto index = reference::decode(out[1].data(), kernel.outputTypes[1]);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], -infinity);
  for (int i : {2, 3, 4})
    EXPECT_TRUE(std::isnan(y[i])) << i;
  EXPECT_EQ(index.data, (std::vector<double>{0, 2, 4, 7, 8}));
}

TEST(Window, MaxPoolOfSpecialNumbersInVectors) {
  // 19 outputs of 2: a vector, and one that begins within it.
  JitKernel kernel(maxPool({{1, 1, 1, 38}, {1, 2}, {1, 2}}));
  ASSERT_TRUE(kernel.ok()) << kernel.error;
  double infinity = INFINITY, nan = NAN;
  std::vector<double> pairs{1, 1,   -infinity, -infinity, nan,  2,
                            3, nan, nan,       nan,       -1.0, infinity};
  std::vector<reference::Array> x(1, reference::Array({1, 1, 1, 38}));
  x[0].data.resize(38);
  for (size_t i = 0; i < 38; ++i)
    x[0].data[i] = pairs[i % pairs.size()];
  auto out = kernel.outputs(x, 1);
  auto y = reference::decode(out[0].data(), kernel.outputTypes[0]).data;
  auto index = reference::decode(out[1].data(), kernel.outputTypes[1]).data;
  for (size_t i = 0; i < 19; ++i) {
    constexpr int kTakes[] = {0, 0, 0, 1, 0, 1};
    double want = pairs[2 * (i % 6) + kTakes[i % 6]];
    EXPECT_EQ(index[i], 2 * i + kTakes[i % 6]) << i;
    EXPECT_TRUE(y[i] == want || (std::isnan(y[i]) && std::isnan(want))) << i;
  }
}

TEST(Window, MaxPoolWithoutIndexAndWithView) {
  checkKernel(kernelModule({"tensor<2x6x6x3xf32>"}, {"tensor<2x3x3x3xf32>"}, R"(
    %x = tandem.permute %0 by [0, 3, 1, 2] : tensor<2x6x6x3xf32> -> tensor<2x3x6x6xf32>
    %y, %i = tandem.max_pool2d %x kernel [2, 2] strides [2, 2] : tensor<2x3x6x6xf32> -> tensor<2x3x3x3xf32>, tensor<2x3x3x3xi32>
    tandem.yield %y : tensor<2x3x3x3xf32>)"),
              {});
}

TEST(Window, MaxPoolGradAndTake) {
  // Indices from -2 to 40 in planes of 35 elements: some name nothing.
  for (const char *element : {"f32", "bf16", "f64"}) {
    std::string dy = tensor({2, 3, 4, 5}, element);
    std::string x = tensor({2, 3, 5, 7}, element);
    std::string index = "tensor<2x3x4x5xi32>";
    checkKernel(kernelModule({dy, index}, {x},
                             "%y = tandem.max_pool2d_grad %0, %1 to [2, 3, 5, "
                             "7] : " +
                                 dy + ", " + index + " -> " + x +
                                 "\ntandem.yield %y : " + x),
                {4}, 40);
    checkKernel(kernelModule({x, index}, {dy},
                             "%y = tandem.max_pool2d_take %0, %1 : " + x +
                                 ", " + index + " -> " + dy +
                                 "\ntandem.yield %y : " + dy),
                {}, 40);
  }
}

TEST(Window, AvgPool) {
  for (const Pool &p : kPools)
    checkAvgPool(p);
}
