//===- Trials.h - variants of a kernel, compiled --------------------------===//
#ifndef TANDEM_COMPILER_TUNE_TRIALS_H
#define TANDEM_COMPILER_TUNE_TRIALS_H

#include "compiler/Target.h"
#include "compiler/tune/KernelTimer.h"
#include "ir/Ops.h"

#include "mlir/IR/BuiltinOps.h"

namespace tandem {

/// Variants, and of which schedules they are.
struct CompiledTrials {
  KernelTrials trials;
  std::vector<ScheduleAttr> schedules; ///< one a trial
};

/// Compiles the planned kernel once for each of `schedules` (null: the one that
/// it has without any). Of those that come to the same code only the first is
/// kept. On so many threads (0: one for each processor).
Result<CompiledTrials> compileTrials(KernelOp kernel,
                                     llvm::ArrayRef<ScheduleAttr> schedules,
                                     const CpuTarget &target, int threads);

} // namespace tandem

#endif
