//===- Roofs.h - what this machine can do at most -------------------------===//
//
// The rate of multiply-adds and the bandwidth of memory, of all threads at
// once. Samples are taken before and after what they are compared with, in the
// same process: on a shared machine yesterday's roofs say little.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_ROOFS_H
#define TANDEM_TOOLS_COMMANDS_ROOFS_H

#include "runtime/device/ThreadPool.h"
#include "runtime/tensor/Tensor.h"

#include <vector>

namespace tandem::commands {

class Roofs {
public:
  /// With rates for factors of these types. Fails without the memory for three
  /// arrays of 128 MiB, in which a bandwidth is one of memory.
  static Result<Roofs> prepare(int threads,
                               std::vector<artifact::DType> dtypes);

  /// Takes some samples of each, in about a second.
  void measure();

  /// The medians so far: flops a second with factors of type `dtype`, bytes a
  /// second of a triad (reads and writes, as STREAM counts).
  double flops(artifact::DType dtype) const;
  double bandwidth() const;
  /// What a line of the caches takes to another thread and back; 0: unknown.
  double roundTrip() const;
  /// The least time for that much, and what limits it.
  double seconds(double flops, double bytes, artifact::DType dtype) const;

  const std::vector<artifact::DType> &dtypes() const { return types; }

private:
  Roofs() = default;
  double sampleFlops(artifact::DType dtype);
  double sampleBandwidth();

  std::unique_ptr<runtime::ThreadPool> pool;
  std::vector<artifact::DType> types;
  std::vector<std::vector<double>> flopRates; ///< of each type
  std::vector<double> byteRates;
  std::vector<double> roundTrips;
  std::vector<runtime::Tensor> arrays;
};

} // namespace tandem::commands

#endif
