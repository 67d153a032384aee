//===- KernelTimes.h - how fast each kernel of a program is ---------------===//
//
// Times every launch inside of whole calls, so that each finds the caches as it
// does in use, and compares it with what the machine could do (Roofs.h).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_KERNELTIMES_H
#define TANDEM_TOOLS_COMMANDS_KERNELTIMES_H

#include "tools/commands/Roofs.h"
#include "tools/commands/Timing.h"

namespace tandem::commands {

/// A kernel of a program, over all its launches in a call.
struct KernelRow {
  const artifact::Kernel *kernel = nullptr;
  std::vector<size_t> places;   ///< of its launches among the program's
  std::vector<double> launches; ///< seconds of each, medians
  double seconds = 0;           ///< their sum
  double roof = 0;              ///< the least for as many flops and bytes

  double count() const { return double(launches.size()); }
  double flops() const { return double(kernel->flops) * count(); }
  double bytes() const { return double(kernel->bytes) * count(); }
  double lost() const { return seconds - roof; }
  /// What a second would do; nothing for kernels that no clock sees.
  double rate(double amount) const {
    return seconds > 0 ? amount / seconds : 0;
  }
};

/// Returns the program's kernels, those first that lose most time against the
/// roof; `seconds` are those of each launch. Without roofs, those first that
/// take longest.
std::vector<KernelRow> kernelRows(const artifact::Manifest &manifest,
                                  const artifact::Program &program,
                                  const std::vector<double> &seconds,
                                  const Roofs *roofs);

/// The roofs that its kernels are compared with.
Result<Roofs> prepareRoofs(const runtime::Model &model,
                           const artifact::Program &program);

/// What the kernel computes: the op that does most, and what else there is,
/// "matmul 64x64 64x64 -> 64x64 + 2 add, gelu".
std::string describe(const artifact::Kernel &kernel);

/// "12.3" of 12.34 with one digit.
std::string fixed(double value, int digits);
/// "12.3%" of 0.123 of 1; of nothing none.
std::string percent(double part, double whole);
/// "roofs of 2 threads: 90.0 GFLOP/s in f32 (AVX-512), 20.0 GB/s".
std::string describe(const Roofs &roofs, int threads);

/// Calls the program with `inputs`, and prints a table of its kernels, those
/// first that lose most time against the roof; or a JSON object. Unsupported on
/// a device.
Status benchKernels(const Repeats &repeats, runtime::Model &model,
                    const artifact::Program &program,
                    std::vector<NamedTensor> &inputs, bool asJson);

} // namespace tandem::commands

#endif
