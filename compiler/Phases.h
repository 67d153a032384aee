//===- Phases.h - the phases of a compilation -----------------------------===//
//
// The one list of phases. A phase takes a module stamped with the phase before
// it and leaves it stamped with its own (`tandem.phase`); the driver resumes
// from the stamp. Pipelines are text, so that the table reads as what runs.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_PHASES_H
#define TANDEM_COMPILER_PHASES_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace tandem {

struct CompileOptions;

struct Phase {
  llvm::StringLiteral name;
  /// What the phase is for, one line.
  llvm::StringLiteral summary;
  /// Returns the passes as a pipeline of the module; `kind` is its target's
  /// ("cpu", "cuda").
  std::string (*pipeline)(const CompileOptions &options, llvm::StringRef kind);
  /// Checks a module that was read at this phase, and may have been edited:
  /// what its passes leave, and what those of later phases believe. Emits every
  /// problem.
  mlir::LogicalResult (*verify)(mlir::ModuleOp module);
};

/// Returns the phases after capture, in order.
llvm::ArrayRef<Phase> phases();

/// Returns the position of the phase `name` in the whole chain (capture is 1),
/// or nothing.
std::optional<int> phaseNumber(llvm::StringRef name);

/// Checks a module that was read, at the phase that it is stamped with.
mlir::LogicalResult verifyPhase(mlir::ModuleOp module);

/// Returns the phase that is stamped on the module; "capture" if none is.
llvm::StringRef phaseOf(mlir::ModuleOp module);

} // namespace tandem

#endif
