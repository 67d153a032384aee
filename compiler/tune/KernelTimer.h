//===- KernelTimer.h - how long the variants of a kernel take -------------===//
//
// The compiler makes variants of a kernel (Trials.h); who compiles brings what
// runs and times them, since the compiler itself runs no code.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_TUNE_KERNELTIMER_H
#define TANDEM_COMPILER_TUNE_KERNELTIMER_H

#include "runtime/artifact/DType.h"
#include "runtime/artifact/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

/// One way to compute a kernel: a function of the kernel ABI
/// (docs/ARCHITECTURE.md, section 3), and how it is launched.
struct KernelTrial {
  std::string symbol;
  int64_t work = 0, grain = 1;
  int64_t scratchBytes = 0; ///< of a thread
};

/// Several ways to compute one kernel.
struct KernelTrials {
  struct Tensor {
    artifact::DType type;
    int64_t bytes;
  };
  std::string object; ///< ELF shared object with all functions
  std::vector<Tensor> inputs, outputs;
  std::vector<int64_t> overwrites; ///< the input of each output; -1: none
  std::vector<KernelTrial> trials;
};

class KernelTimer {
public:
  virtual ~KernelTimer() = default;
  /// The threads that kernels are timed with.
  virtual int threads() const = 0;
  /// Whether code for the processor `arch` with `features` can run here.
  virtual Status canRun(const std::string &arch,
                        const std::vector<std::string> &features) const = 0;
  /// Returns the seconds that a launch of each trial takes, measured by turns
  /// for about `seconds` in all.
  virtual Result<std::vector<double>> time(const KernelTrials &trials,
                                           double seconds) = 0;
};

} // namespace tandem

#endif
