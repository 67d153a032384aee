//===- RunKernels.h - runs and times variants of a kernel -----------------===//
#ifndef TANDEM_TOOLS_TANDEM_RUNKERNELS_H
#define TANDEM_TOOLS_TANDEM_RUNKERNELS_H

#include "compiler/tune/KernelTimer.h"
#include "runtime/device/Processors.h"
#include "runtime/device/ThreadPool.h"

namespace tandem::commands {

/// Launches kernels as the runtime does, on all processors. Their tensors are
/// made anew for each launch's turn among several copies, so that they come
/// from the caches about as often as in a step. The time of a trial is the
/// median of its launches; the best of many are timed twice.
class RunKernels : public KernelTimer {
public:
  RunKernels() : pool(runtime::availableThreads()) {}

  int threads() const override { return pool.threads(); }
  Status canRun(const std::string &arch,
                const std::vector<std::string> &features) const override;
  Result<std::vector<double>> time(const KernelTrials &trials,
                                   double seconds) override;

private:
  runtime::ThreadPool pool;
};

} // namespace tandem::commands

#endif
