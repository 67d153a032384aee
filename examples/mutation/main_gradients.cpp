//===- main_gradients.cpp - gradients that the backward adds up itself ----===//
//
//   main-gradients main_gradients.tdm
//
// A linear layer with weights in bf16 whose backward adds the weights' gradient
// into a buffer in f32, the main gradient, and gives none of its own. Two
// micro-batches are in flight at once: both forwards run before the first
// backward.
//
//===----------------------------------------------------------------------===//
#include "runtime/tandem.hpp"

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

constexpr int kBatch = 8, kIn = 6, kOut = 3, kMicroBatches = 2;

static int run(const char *path) {
  tdm::Model model(path, /*threads=*/1);
  tdm::Tensor main = model.parameter("main_grad");
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  auto drawn = [&](const std::vector<int64_t> &shape) {
    tdm::Tensor t = tdm::Tensor::zeros(TDM_F32, shape);
    for (int64_t i = 0; i < t.elements(); ++i)
      t.data<float>()[i] = normal(random);
    return t;
  };
  tdm::Tensor x[kMicroBatches], dy[kMicroBatches];
  tdm::Context contexts[kMicroBatches];
  std::vector<double> expected(kIn * kOut);
  for (int m = 0; m < kMicroBatches; ++m) {
    x[m] = drawn({kBatch, kIn});
    dy[m] = drawn({kBatch, kOut});
    tdm::Tensor y;
    model.forward(contexts[m], {{"x", x[m]}}, {{"y", y}});
    for (int o = 0; o < kOut; ++o)
      for (int i = 0; i < kIn; ++i)
        for (int b = 0; b < kBatch; ++b)
          expected[o * kIn + i] +=
              static_cast<double>(dy[m].data<float>()[b * kOut + o]) *
              x[m].data<float>()[b * kIn + i];
  }
  auto norm = [&] {
    double sum = 0;
    for (int64_t i = 0; i < main.elements(); ++i)
      sum += static_cast<double>(main.data<float>()[i]) * main.data<float>()[i];
    return std::sqrt(sum);
  };
  std::printf("main gradient after the forwards     %8.4f\n", norm());
  bool ok = norm() == 0;
  for (int m = 0; m < kMicroBatches; ++m) {
    tdm::Tensor dx, dw;
    model.backward(contexts[m], {{"y", dy[m]}}, {{"x", dx}, {"w", dw}});
    std::printf(
        "after the backward of micro-batch %d  %8.4f, gradient of w %s\n", m,
        norm(), dw.defined() ? "defined" : "undefined");
    ok &= dx.defined() && !dw.defined();
  }
  double worst = 0;
  for (int i = 0; i < kIn * kOut; ++i)
    worst = std::max(worst, std::abs(main.data<float>()[i] - expected[i]));
  std::printf("largest difference from the sum over both %.1e\n", worst);
  ok &= worst < 1e-4;
  std::printf("%s\n", ok ? "the main gradient is complete"
                         : "the main gradient is wrong");
  return ok ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: main-gradients MODEL.tdm\n");
    return 2;
  }
  try {
    return run(argv[1]);
  } catch (const tdm::Error &error) {
    std::fprintf(stderr, "main-gradients: error: %s\n", error.what());
    return error.status;
  }
}
