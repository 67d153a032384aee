//===- Histogram.h - how the numbers of a tensor are distributed ----------===//
//
// Buckets are the same for all tensors and steps, so that pictures and sums
// over steps need no second look at the numbers: a quarter of each octave from
// 2^-40 to 2^40, for both signs, one bucket around zero, and one at each end.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_HISTOGRAM_H
#define TANDEM_TOOLS_COMMANDS_HISTOGRAM_H

#include "runtime/tensor/Tensor.h"

#include <map>
#include <string>
#include <vector>

namespace tandem::commands {

struct Histogram {
  /// Buckets of one sign, without that of zero: number i > 0 holds what is at
  /// least `edge(i)` and less than `edge(i + 1)`, number -i the same with the
  /// other sign, and number 0 what is nearer to zero than edge(1).
  static constexpr int kBuckets = 4 * 80 + 1;
  /// Returns the bucket of a finite number.
  static int bucketOf(double value);
  /// Of 1 to kBuckets; of more: infinity.
  static double edge(int number);
  /// The bounds of a bucket, the lower one first.
  static std::pair<double, double> boundsOf(int number);

  /// Of a tensor of floats on the host.
  static Histogram of(const runtime::Tensor &tensor);

  std::map<int, int64_t> counts; ///< of the buckets that are not empty
  int64_t count = 0;             ///< of finite numbers
  int64_t nonFinite = 0;         ///< which are in no bucket and no sum
  double least = 0, most = 0, sum = 0, squares = 0; ///< of the finite ones
};

/// Histograms of one step, each with the name that people see: "grad/fc0.w".
using NamedHistograms = std::vector<std::pair<std::string, Histogram>>;

/// Returns it as JSON: `count`, `nonfinite`, `min`, `max`, `sum`, `squares`,
/// and `buckets`, a list of [low, high, count].
std::string jsonOf(const Histogram &histogram);

} // namespace tandem::commands

#endif
