//===- Histogram.cpp - how the numbers of a tensor are distributed --------===//
#include "tools/commands/Histogram.h"

#include "tools/commands/Log.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>

namespace tandem::commands {
namespace {

constexpr int kLowestExponent = -40;

/// Counts for all buckets: index kBuckets + number.
struct Counter {
  std::vector<int64_t> counts =
      std::vector<int64_t>(2 * Histogram::kBuckets + 1);
  Histogram &to;

  explicit Counter(Histogram &to) : to(to) {}
  void add(double value) {
    if (!std::isfinite(value)) {
      ++to.nonFinite;
      return;
    }
    to.least = to.count ? std::min(to.least, value) : value;
    to.most = to.count ? std::max(to.most, value) : value;
    ++to.count;
    to.sum += value;
    to.squares += value * value;
    ++counts[size_t(Histogram::kBuckets + Histogram::bucketOf(value))];
  }
};

} // namespace

int Histogram::bucketOf(double value) {
  // The exponent and the first two bits behind the point are a number that
  // grows by one from each quarter of an octave to the next.
  auto bits = std::bit_cast<uint64_t>(value);
  int quarter = int(bits >> 50 & 0x1fff) - ((1023 + kLowestExponent) << 2) + 1;
  int number = std::clamp(quarter, 0, kBuckets);
  return bits >> 63 ? -number : number;
}

double Histogram::edge(int number) {
  if (number > kBuckets)
    return INFINITY;
  int quarter = number - 1;
  return std::ldexp(1 + quarter % 4 / 4.0, kLowestExponent + quarter / 4);
}

std::pair<double, double> Histogram::boundsOf(int number) {
  if (number == 0)
    return {-edge(1), edge(1)};
  int size = std::abs(number);
  // JSON and TensorBoard have no infinity.
  double near = edge(size), far = std::min(edge(size + 1), DBL_MAX);
  return number > 0 ? std::pair(near, far) : std::pair(-far, -near);
}

Histogram Histogram::of(const runtime::Tensor &tensor) {
  Histogram made;
  Counter counter(made);
  if (tensor.dtype() == artifact::DType::F32 && tensor.isDense()) {
    const auto *values = tensor.data<float>();
    for (int64_t i = 0; i < tensor.elements(); ++i)
      counter.add(values[i]);
  } else {
    for (int64_t i = 0; i < tensor.elements(); ++i)
      counter.add(tensor.at(i));
  }
  for (int number = -kBuckets; number <= kBuckets; ++number)
    if (int64_t count = counter.counts[size_t(kBuckets + number)])
      made.counts[number] = count;
  return made;
}

std::string jsonOf(const Histogram &histogram) {
  std::string buckets;
  for (auto [number, count] : histogram.counts) {
    auto [low, high] = Histogram::boundsOf(number);
    buckets += (buckets.empty() ? "[" : ", [") + jsonNumber(low) + ", " +
               jsonNumber(high) + ", " + std::to_string(count) + "]";
  }
  return "{\"count\": " + std::to_string(histogram.count) +
         ", \"nonfinite\": " + std::to_string(histogram.nonFinite) +
         ", \"min\": " + jsonNumber(histogram.least) +
         ", \"max\": " + jsonNumber(histogram.most) +
         ", \"sum\": " + jsonNumber(histogram.sum) +
         ", \"squares\": " + jsonNumber(histogram.squares) +
         ", \"buckets\": [" + buckets + "]}";
}

} // namespace tandem::commands
