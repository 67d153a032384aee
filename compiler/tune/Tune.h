//===- Tune.h - schedules by measuring instead of by a model --------------===//
//
// The kernels of a planned module get the attribute `schedule`
// (passes/lower/common/ScheduleOverride.h) where another one than the model's
// was measured to be faster on this machine. Kernels that take longest come
// first; when the time is over the others keep the model's. What was found is
// kept in a file, and found there the next time.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_TUNE_TUNE_H
#define TANDEM_COMPILER_TUNE_TUNE_H

#include "compiler/Target.h"
#include "compiler/tune/KernelTimer.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <string>

namespace tandem {

/// How far tuning has come, and what it has found so far.
struct TuneReport {
  int kernels = 0; ///< distinct ones that have a choice
  int cached = 0, measured = 0;
  /// Of those that were measured: how many got another schedule, and the time
  /// of a launch of each, with the model's schedules and with those found.
  int changed = 0;
  double modelSeconds = 0, seconds = 0;
  std::string last; ///< the kernel that was measured last

  int left() const { return kernels - cached - measured; }
};

struct TuneOptions {
  double seconds = 0;    ///< to compile and measure for; 0: the cache alone
  std::string cachePath; ///< empty: nothing is kept
  KernelTimer *timer = nullptr;
  int compileThreads = 0; ///< 0: one for each processor
  bool remarks = false;   ///< says of each kernel what was found
  /// Called after each kernel that was measured.
  std::function<void(const TuneReport &)> progress;
};

/// Tunes `module`, which is at `plan`, for `target`, which has to be one that
/// this machine can run.
Result<TuneReport> tuneKernels(mlir::ModuleOp module, const CpuTarget &target,
                               const TuneOptions &options);

} // namespace tandem

#endif
