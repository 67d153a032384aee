//===- Names.h - what a model and its values may be called ----------------===//
//
// A model's name is part of the names of files (dumps of its phases), and all
// names stand in messages and manifests: none has control characters, and the
// model's has no separators of a path.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_CAPTURE_NAMES_H
#define TANDEM_COMPILER_CAPTURE_NAMES_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace tandem {

/// Returns what a model cannot be called so for, or "".
std::string modelNameProblem(llvm::StringRef name);

/// Returns the name with '_' for what a model's name cannot have.
std::string modelNameOf(llvm::StringRef name);

/// Checks the names of a module that was read from text: its own and those of
/// roles. Emits every problem.
mlir::LogicalResult checkNames(mlir::ModuleOp module);

} // namespace tandem

#endif
