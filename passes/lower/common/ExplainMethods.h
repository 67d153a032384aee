//===- ExplainMethods.h - what the tables of methods say of a kernel ------===//
//
// Without lowering the program: the code of a kernel is written into a module
// that is thrown away, once for each method that computes it.
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

/// Writes the code of a planned kernel into a module around it that is thrown
/// away. Fails with a diagnostic.
using TrialEmitter = mlir::FailureOr<MethodCut> (*)(KernelOp kernel,
                                                    MethodLog *log);

/// What the table of a planned kernel says of it, and how each method would cut
/// it; nothing if no table is asked.
std::optional<ExplainedKernel> explainMethods(KernelOp kernel,
                                              TrialEmitter emit);
/// The first of these alone.
MethodLog considerMethods(KernelOp kernel, TrialEmitter emit);

} // namespace tandem::lower

#endif
