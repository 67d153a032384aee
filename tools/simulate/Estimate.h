//===- Estimate.h - what the programs of an artifact take on a GPU --------===//
//
// The sum of its kernels, one after the other as a graph runs them. Copies from
// and to the host, and what ranks exchange, are not in it (Step.h).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_SIMULATE_ESTIMATE_H
#define TANDEM_TOOLS_SIMULATE_ESTIMATE_H

#include "runtime/artifact/Status.h"
#include "tools/simulate/GpuKernels.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tandem::simulate {

/// Launches of a program whose kernels do the same kind of work.
struct KindOfLaunches {
  std::string what; ///< KernelTime::what, and ", update" of those that write a
                    ///< parameter or a state
  int64_t launches = 0;
  double flops = 0, bytes = 0, least = 0;
  TimeParts parts;
};

struct ProgramEstimate {
  std::string name;
  int64_t size = 0;      ///< which of the manifest's sizes it is for
  int64_t uncounted = 0; ///< copies and collectives
  std::vector<KindOfLaunches> kinds; ///< the longest first
  KindOfLaunches all;
  /// Of each launch of a kernel, in order: the kernel's number and seconds.
  std::vector<std::pair<int64_t, double>> launches;
};

/// How much longer than estimated each kind of work takes, by KernelTime::what:
/// what a measurement of another artifact, or of this one, has shown. Kinds
/// that it does not have take as long as estimated.
using MeasuredKinds = std::map<std::string, double>;

std::vector<ProgramEstimate> estimate(const artifact::Manifest &manifest,
                                      const Gpu &gpu,
                                      const MeasuredKinds &measured = {});

/// Reads measured kernels of `manifest` on `gpu`: {"device": "h100", "kernels":
/// [{"kernel": "matmul_0", "ms": 0.12}, ...]}, kernels by their symbols, with
/// the time of one launch. Fails where a kernel is unknown, or the device is
/// another one.
Result<MeasuredKinds> readMeasuredKinds(const std::string &path,
                                        const artifact::Manifest &manifest,
                                        const Gpu &gpu);

/// The file's "artifact", beside the file; empty where it names none.
Result<std::string> measuredArtifact(const std::string &path);

} // namespace tandem::simulate

#endif
