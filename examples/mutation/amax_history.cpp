//===- amax_history.cpp - scaling factors learnt by forward and backward --===//
//
//   amax-history amax_history.tdm
//
// A linear layer whose operands are rounded to 4 significant bits, as FP8's
// e4m3 has them, after scaling by what was seen in earlier steps. The largest
// magnitudes of x and w are noted by the forward, those of the gradient by the
// backward. Shows the history after each step, and how far the gradients are
// from exact ones.
//
//===----------------------------------------------------------------------===//
#include "runtime/tandem.hpp"

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

constexpr int kBatch = 16, kIn = 8, kOut = 4, kHistory = 3, kSteps = 5;

static float largest(const tdm::Tensor &t) {
  float most = 0;
  for (int64_t i = 0; i < t.elements(); ++i)
    most = std::max(most, std::abs(t.data<float>()[i]));
  return most;
}

static int run(const char *path) {
  tdm::Model model(path, /*threads=*/1);
  tdm::Tensor x = tdm::Tensor::zeros(TDM_F32, {kBatch, kIn});
  tdm::Tensor dy = tdm::Tensor::zeros(TDM_F32, {kBatch, kOut});
  tdm::Tensor y, dw;
  tdm::Tensor history = model.parameter("history");
  tdm::Context context;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  bool ok = true;
  std::vector<float> seen[3]; // of x, w and dy; newest first
  std::printf("step   %-22s %-22s %-22s %s\n", "x", "w", "gradient of y",
              "error of dw");
  for (int step = 1; step <= kSteps; ++step) {
    for (int i = 0; i < kBatch * kIn; ++i)
      x.data<float>()[i] = normal(random);
    // Gradients that grow, so that the history has something to follow.
    for (int i = 0; i < kBatch * kOut; ++i)
      dy.data<float>()[i] =
          (0.1f + 0.02f * static_cast<float>(step)) * normal(random);
    model.forward(context, {{"x", x}}, {{"y", y}});
    float before = history.data<float>()[2 * kHistory];
    model.backward(context, {{"y", dy}}, {{"w", dw}});
    // The forward noted x and w; only the backward notes the gradient.
    ok &= step == 1 || before == seen[2][0];
    seen[0].insert(seen[0].begin(), largest(x));
    seen[1].insert(seen[1].begin(), largest(model.parameter("w")));
    seen[2].insert(seen[2].begin(), largest(dy));
    double difference = 0, size = 0;
    for (int o = 0; o < kOut; ++o)
      for (int i = 0; i < kIn; ++i) {
        double exact = 0;
        for (int b = 0; b < kBatch; ++b)
          exact += static_cast<double>(dy.data<float>()[b * kOut + o]) *
                   x.data<float>()[b * kIn + i];
        double error = dw.data<float>()[o * kIn + i] - exact;
        difference += error * error;
        size += exact * exact;
      }
    std::printf("%4d  ", step);
    for (int row = 0; row < 3; ++row) {
      for (int h = 0; h < kHistory; ++h) {
        float got = history.data<float>()[row * kHistory + h];
        std::printf(" %6.3f", got);
        ok &= h >= step || got == seen[row][h];
      }
      std::printf("  ");
    }
    double relative = std::sqrt(difference / size);
    std::printf("%8.4f\n", relative);
    // The first step scales by a guess; 4 bits are worth about 3 %.
    ok &= step == 1 || relative < 0.1;
  }
  std::printf("%s\n", ok ? "the history is what was seen"
                         : "the history is not what was seen");
  return ok ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: amax-history MODEL.tdm\n");
    return 2;
  }
  try {
    return run(argv[1]);
  } catch (const tdm::Error &error) {
    std::fprintf(stderr, "amax-history: error: %s\n", error.what());
    return error.status;
  }
}
