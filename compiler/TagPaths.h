//===- TagPaths.h - tags for the ops of some paths ------------------------===//
//
// The path of an op: ir/Where.h.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_TAGPATHS_H
#define TANDEM_COMPILER_TAGPATHS_H

#include "compiler/Compile.h"

namespace tandem {

/// Checks the expressions of `options.save`, `offload` and `recompute`.
Status checkTagPaths(const CompileOptions &options);

/// Tags the ops of a module before `partition` whose paths the expressions
/// match a part of. Ops that make no values, or cannot be computed again, stay
/// as they are. An expression that matches nothing is an error.
Status tagPaths(mlir::ModuleOp module, const CompileOptions &options);

/// The error of an option whose expression matches none of the `paths`.
Status matchesNone(const std::string &option,
                   llvm::ArrayRef<llvm::StringRef> paths);

} // namespace tandem

#endif
