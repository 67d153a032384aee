//===- ExplainFusion.h - why two ops are in one kernel or not -------------===//
#ifndef TANDEM_PASSES_PLAN_EXPLAINFUSION_H
#define TANDEM_PASSES_PLAN_EXPLAINFUSION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <memory>
#include <vector>

namespace tandem {

/// What the pass tandem-form-kernels does with a function that is what that
/// pass gets: the same units are formed once more, by the same code, with what
/// it decides written down. Changes nothing; the function outlives it.
class ExplainedFusion {
public:
  /// Fails, with a diagnostic, where the pass would.
  static mlir::FailureOr<ExplainedFusion> of(mlir::func::FuncOp func);
  ExplainedFusion(ExplainedFusion &&);
  ~ExplainedFusion();

  enum class Outcome {
    One,      ///< they are in one kernel
    Repeated, ///< one is made again in each kernel that uses it, or is a view
    Refused,  ///< they were tried: `why` has the last reason
    NotTried  ///< nothing brought them together
  };
  struct Answer {
    Outcome outcome;
    llvm::StringRef why;
  };
  Answer between(mlir::Operation *a, mlir::Operation *b) const;

  /// An op of each of two kernels that were not joined, and the last reason.
  struct Refused {
    mlir::Operation *a, *b;
    llvm::StringRef why;
  };
  /// Of each two kernels that were tried, in the order in which they first
  /// were.
  std::vector<Refused> refused() const;

private:
  struct Impl;
  explicit ExplainedFusion(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace tandem

#endif
