//===- ExplainMethods.h - what the tables of methods say of a kernel ------===//
//
// The rows are asked about a kernel alone, as the pass tandem-choose-methods
// asks them: no code of the kernel is written.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_EXPLAINMETHODS_H
#define TANDEM_PASSES_LOWER_COMMON_EXPLAINMETHODS_H

#include "passes/lower/common/Method.h"

namespace tandem::lower {

/// A row of the kernel's table.
struct ExplainedMethod {
  std::string name, summary;
  bool isChosen = false, isPossible = false;
  std::string against; ///< why it is not chosen; empty if it is
  // If it is possible:
  std::optional<double> seconds; ///< and a model says them
  int64_t scratchBytes = 0;      ///< of a thread, or of a launch for cuda
  std::string schedule;          ///< its numbers: "rows = 6, packs = true"
};

struct ExplainedKernel {
  std::string of; ///< "a convolution for cpu"
  llvm::SmallVector<ExplainedMethod> methods;
  /// The error of a kernel whose `schedule` asks for what there is not.
  std::string problem;
};

/// Answers for a trial's kernel (Trial.h). Fails with a diagnostic.
using TrialChooser = mlir::FailureOr<ChosenMethod> (*)(KernelOp kernel,
                                                       const MethodQuestion &);

/// What the table of a planned kernel says of it; nothing if no table is asked.
std::optional<ExplainedKernel> explainMethods(KernelOp kernel,
                                              TrialChooser choose);
/// What the rows say of it, whatever its `schedule` says.
MethodLog considerMethods(KernelOp kernel, TrialChooser choose);
/// The schedule that comes of a wish; null, without a diagnostic, if its method
/// does not compute the kernel.
ScheduleAttr scheduleFor(KernelOp kernel, const ScheduleOverride &wish,
                         TrialChooser choose);

} // namespace tandem::lower

#endif
