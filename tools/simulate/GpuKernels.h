//===- GpuKernels.h - what a kernel takes on a GPU ------------------------===//
//
// From what an artifact says of a kernel and of its launch: flops, bytes,
// blocks, threads, shared memory. The time is divided into parts, of which the
// largest says what would have to be mended.
//
// Rates are those of the table of devices (passes/target/Machines.json). What
// else is assumed stands in GpuKernels.cpp, with its source;
// docs/ESTIMATE.md compares it with what others have measured.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_SIMULATE_GPUKERNELS_H
#define TANDEM_TOOLS_SIMULATE_GPUKERNELS_H

#include "passes/target/Machines.h"
#include "runtime/artifact/Manifest.h"

#include <string>

namespace tandem::simulate {

/// Seconds of a kernel, by what they pass with.
struct TimeParts {
  double products = 0; ///< multiplying, all multiprocessors busy
  double elements = 0; ///< other arithmetic, beyond what memory takes
  double memory = 0;   ///< moving bytes, beyond what products take
  /// Multiprocessors without a block, or with too few threads to keep memory
  /// busy.
  double waves = 0;
  /// Before a block's first product, and storing its results behind the last.
  double around = 0;
  double launches = 0; ///< from one kernel to the next

  double seconds() const {
    return products + elements + memory + waves + around + launches;
  }
  TimeParts &operator+=(const TimeParts &other);
  TimeParts &operator*=(double factor);
};

struct KernelTime {
  /// Kernels whose times follow from the same things: "products by wgmma",
  /// "attention", "reduction".
  std::string what;
  TimeParts parts;
  /// By the data sheet: the longer of computing and moving.
  double least = 0;
};

/// A GPU by a row of the table of devices.
class Gpu {
public:
  explicit Gpu(const DeviceRow &row);

  const DeviceRow &row() const { return row_; }
  int64_t multiprocessors() const { return processors; }
  /// A launch of a kernel, which has blocks, or is a library's call.
  KernelTime timeOf(const artifact::Kernel &kernel,
                    const artifact::Launch &launch) const;

private:
  struct Blocks;
  double peak(const artifact::Kernel &kernel) const;
  int64_t blocksTogether(const artifact::Kernel &kernel, double sums) const;
  void addProduct(const artifact::Kernel &kernel, const Blocks &blocks,
                  KernelTime &time) const;
  void addAttention(const artifact::Kernel &kernel, const Blocks &blocks,
                    KernelTime &time) const;
  void addLoop(const artifact::Kernel &kernel, const Blocks &blocks,
               KernelTime &time) const;
  double moving(const artifact::Kernel &kernel) const;

  DeviceRow row_;
  int64_t processors, sharedBytes;
};

} // namespace tandem::simulate

#endif
