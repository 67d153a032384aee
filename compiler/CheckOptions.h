//===- CheckOptions.h - options against each other and the module ---------===//
#ifndef TANDEM_COMPILER_CHECKOPTIONS_H
#define TANDEM_COMPILER_CHECKOPTIONS_H

#include "compiler/Compile.h"
#include "compiler/Target.h"

namespace tandem {

/// True if the options cut the model into stages.
bool isPipeline(const CompileOptions &options);
/// How many there are then; else 1.
int64_t stagesOf(const CompileOptions &options);

/// Returns the targets that the options name.
Result<std::vector<Target>> targetsOf(const CompileOptions &options);

/// An option that a target carries where it is not the usual.
struct TargetOption {
  llvm::StringRef kind; ///< of the targets that it is for
  llvm::StringRef attribute, flag, value, usual;
};
llvm::SmallVector<TargetOption> targetOptions(const CompileOptions &options);

/// Fails if an option acts in a phase that the module has been through, or if
/// the loss is none of its outputs.
Status checkAgainstModule(mlir::ModuleOp module, const CompileOptions &options);

/// Returns the options but for those that acted in a phase which the module has
/// been through, for whoever compiles in several calls.
CompileOptions withoutDone(const CompileOptions &options,
                           mlir::ModuleOp module);

/// Fails if a group of params has no member in the whole graph, which is about
/// to be cut into stages.
Status checkGroups(mlir::ModuleOp whole, const CompileOptions &options);

/// Fails if an option is for another kind of target than the module's.
Status checkAgainstTarget(mlir::ModuleOp module, const CompileOptions &options);

} // namespace tandem

#endif
