//===- running_statistics.cpp - batch norm's state, kept by the forward ---===//
//
//   running-statistics running_statistics.tdm
//
// Trains on batches whose columns have known means and variances, and shows how
// the model's own statistics get there, how many batches it counted, and that
// `evaluate` reads them and writes nothing.
//
//===----------------------------------------------------------------------===//
#include "runtime/tandem.hpp"

#include <cmath>
#include <cstdio>
#include <random>

constexpr int kRows = 64, kColumns = 3, kSteps = 100;
constexpr float kMeans[kColumns] = {-2, 0.5f, 3};
constexpr float kDeviations[kColumns] = {0.5f, 1, 2};

static void show(const tdm::Model &model, const char *when) {
  const float *mean = model.parameter("mean").data<float>();
  const float *variance = model.parameter("variance").data<float>();
  long long count = *model.parameter("count").data<int64_t>();
  std::printf("%-14s %5lld   %6.2f %6.2f %6.2f   %6.2f %6.2f %6.2f\n", when,
              count, mean[0], mean[1], mean[2], variance[0], variance[1],
              variance[2]);
}

static int run(const char *path) {
  tdm::Model model(path, /*threads=*/1);
  tdm::Tensor x = tdm::Tensor::zeros(TDM_F32, {kRows, kColumns});
  tdm::Tensor target = tdm::Tensor::zeros(TDM_F32, {kRows, 1});
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  auto draw = [&] {
    for (int i = 0; i < kRows * kColumns; ++i)
      x.data<float>()[i] =
          kMeans[i % kColumns] + kDeviations[i % kColumns] * normal(random);
  };
  std::printf("%-14s %5s   %20s   %20s\n", "", "count", "running means",
              "running variances");
  show(model, "at the start");
  tdm::Tensor loss;
  for (int step = 1; step <= kSteps; ++step) {
    draw();
    model.step({{"x", x}, {"target", target}}, {{"loss", loss}});
    if (step == 10 || step == kSteps)
      show(model, ("step " + std::to_string(step)).c_str());
  }
  draw();
  model.run("evaluate", {{"x", x}, {"target", target}}, {{"loss", loss}});
  show(model, "evaluated");

  bool ok = *model.parameter("count").data<int64_t>() == kSteps;
  for (int c = 0; c < kColumns; ++c) {
    float variance = kDeviations[c] * kDeviations[c];
    ok &= std::abs(model.parameter("mean").data<float>()[c] - kMeans[c]) <
          0.25f * kDeviations[c];
    ok &= std::abs(model.parameter("variance").data<float>()[c] - variance) <
          0.25f * variance;
  }
  std::printf("%s\n", ok ? "the statistics are those of the data"
                         : "the statistics are not those of the data");
  return ok ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: running-statistics MODEL.tdm\n");
    return 2;
  }
  try {
    return run(argv[1]);
  } catch (const tdm::Error &error) {
    std::fprintf(stderr, "running-statistics: error: %s\n", error.what());
    return error.status;
  }
}
