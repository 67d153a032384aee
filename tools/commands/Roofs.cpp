//===- Roofs.cpp - what this machine can do at most -----------------------===//
#include "tools/commands/Roofs.h"

#include "tools/commands/FmaLoops.h"
#include "tools/commands/RoundTrip.h"

#include <algorithm>
#include <chrono>

using namespace tandem;
using namespace tandem::commands;
using artifact::DType;
using runtime::Tensor;
using Clock = std::chrono::steady_clock;

static constexpr int64_t kArrayElements = int64_t(32) << 20;
static constexpr int kSamples = 7;
/// Of one sample of a rate: long beside the start of threads, and short enough
/// for some samples to be free of others on the machine.
static constexpr double kSampleSeconds = 0.01;

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

static double median(std::vector<double> values) {
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return values.empty() ? 0 : *middle;
}

Result<Roofs> Roofs::prepare(int threads, std::vector<DType> dtypes) {
  Roofs roofs;
  roofs.pool = std::make_unique<runtime::ThreadPool>(threads);
  roofs.types = std::move(dtypes);
  roofs.flopRates.resize(roofs.types.size());
  for (int i = 0; i < 3; ++i) {
    auto array = Tensor::empty(DType::F32, {{kArrayElements}});
    if (!array)
      return std::move(array).status().in("the roof of the bandwidth");
    // Memory that nobody wrote is one page of zeros, which is in the cache.
    std::fill_n(array->mutableData<float>(), kArrayElements, float(i));
    roofs.arrays.push_back(std::move(*array));
  }
  return roofs;
}

void Roofs::measure() {
  for (int sample = 0; sample < kSamples; ++sample) {
    for (size_t i = 0; i < types.size(); ++i)
      flopRates[i].push_back(sampleFlops(types[i]));
    byteRates.push_back(sampleBandwidth());
  }
  if (pool->threads() > 1)
    if (auto seconds = commands::roundTrip())
      roundTrips.push_back(*seconds);
}

double Roofs::sampleFlops(DType dtype) {
  struct Work {
    FmaLoop loop;
    int64_t iterations;
  } work{widestFmaLoop(dtype), 1 << 12};
  auto run = [&] {
    auto begin = Clock::now();
    pool->run(
        pool->threads(), 1,
        [](void *context, int64_t first, int64_t last, int) {
          const Work &work = *static_cast<Work *>(context);
          for (; first < last; ++first)
            work.loop.run(work.iterations);
        },
        &work);
    return secondsSince(begin);
  };
  run(); // wakes the threads, and the wide registers
  double seconds = run();
  work.iterations = int64_t(double(work.iterations) * kSampleSeconds /
                            std::max(seconds, 1e-9)) +
                    1;
  seconds = run();
  return work.loop.flops * double(work.iterations) * pool->threads() / seconds;
}

double Roofs::sampleBandwidth() {
  struct Work {
    float *to;
    const float *x, *y;
  } work{arrays[0].mutableData<float>(), arrays[1].data<float>(),
         arrays[2].data<float>()};
  auto begin = Clock::now();
  pool->run(
      kArrayElements, kArrayElements / pool->threads() + 1,
      [](void *context, int64_t first, int64_t last, int) {
        const Work &work = *static_cast<Work *>(context);
        for (; first < last; ++first)
          work.to[first] = work.x[first] + 3.0f * work.y[first];
      },
      &work);
  return 3.0 * sizeof(float) * kArrayElements / secondsSince(begin);
}

double Roofs::flops(DType dtype) const {
  auto found = std::find(types.begin(), types.end(), dtype);
  return found == types.end() ? 0 : median(flopRates[found - types.begin()]);
}

double Roofs::bandwidth() const { return median(byteRates); }

double Roofs::roundTrip() const { return median(roundTrips); }

double Roofs::seconds(double flops, double bytes, DType dtype) const {
  return std::max(flops / this->flops(dtype), bytes / bandwidth());
}
