//===- ExplainMethods.h - what the tables of methods say of a kernel ------===//
//
// Without lowering the program: the tables are asked about a kernel alone. How
// many items a method makes of it is what its code says, which is written into
// a module that is thrown away.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_EXPLAINMETHODS_H
#define TANDEM_PASSES_LOWER_COMMON_EXPLAINMETHODS_H

#include "passes/lower/common/Method.h"

namespace tandem::lower {

/// How a kernel is cut by a method.
struct MethodCut {
  int64_t items = 0;        ///< items of work, or blocks of threads
  int64_t scratchBytes = 0; ///< of a thread, or of a launch for cuda
  int64_t sharedBytes = 0;  ///< of a block for cuda
};

/// A row of the kernel's table.
struct ExplainedMethod {
  std::string name, summary;
  bool isChosen = false, isPossible = false;
  std::string against; ///< why it is not chosen; empty if it is
  std::optional<double> seconds;
  std::optional<MethodCut> cut; ///< if it is possible
};

struct ExplainedKernel {
  std::string of; ///< "a convolution for cpu"
  llvm::SmallVector<ExplainedMethod> methods;
  /// The error of a kernel whose `schedule` asks for what there is not.
  std::string problem;
};

/// The row of a trial's kernel (Trial.h). Fails with a diagnostic.
using TrialChooser = mlir::FailureOr<ChosenMethod> (*)(KernelOp kernel,
                                                       MethodLog *log);
/// Writes the code of a trial's kernel into its module. Fails with a
/// diagnostic.
using TrialEmitter = mlir::FailureOr<MethodCut> (*)(KernelOp kernel);

/// What the table of a planned kernel says of it, and how each method would cut
/// it; nothing if no table is asked.
std::optional<ExplainedKernel>
explainMethods(KernelOp kernel, TrialChooser choose, TrialEmitter emit);
/// What the table says of it, whatever its `schedule` says.
MethodLog considerMethods(KernelOp kernel, TrialChooser choose);

} // namespace tandem::lower

#endif
