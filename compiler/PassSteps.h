//===- PassSteps.h - the passes of a compilation, one by one --------------===//
//
// A phase is a pipeline, which is text; here it is a list of passes. A list can
// be cut between any two passes: those that run on one function see nothing but
// it, so two pipelines, one after the other, do what the whole one does.
//
// A module that was written between two passes of a phase is stamped with the
// phase before, and says in `tandem.within` ({after, number, phase, rest})
// after which pass it stands and which passes are left: these run when it is
// compiled on, whatever the options say.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_PASSSTEPS_H
#define TANDEM_COMPILER_PASSSTEPS_H

#include "compiler/Compile.h"
#include "ir/KnownAttributes.h"

namespace tandem {

struct Phase;

struct PassStep {
  std::string phase;
  /// As options and files name it, without "tandem-": "fuse-composites".
  std::string name;
  /// As pipelines write it, with its options.
  std::string text;
  /// The ops that it runs on, from the module inwards; empty: the module.
  std::vector<std::string> nest;
  /// Counts the passes of the phase from 1; 0 for those that only check where
  /// it begins.
  int number = 0;
};

using PassSteps = std::vector<PassStep>;

/// Registers the passes of the compiler and of MLIR, for the process.
void registerCompilerPasses();

/// Returns the passes that `pipeline`, of the module, runs. `first` is the
/// number of the first one.
Result<PassSteps> parseSteps(llvm::StringRef phase, llvm::StringRef pipeline,
                             int first = 1);
/// Returns the passes of a phase; `kind` is the target's.
Result<PassSteps> stepsOf(const Phase &phase, const CompileOptions &options,
                          llvm::StringRef kind);
/// Returns the steps as the pipeline of a module, without "builtin.module()".
std::string pipelineText(llvm::ArrayRef<PassStep> steps);

/// Returns the passes that are left for the module, in order, to the one that
/// `options.stopAfter` names. That is a phase or a pass; of a pass that runs
/// several times the first run that is left, or the one that ":N" counts.
Result<PassSteps> stepsLeft(mlir::ModuleOp module,
                            const CompileOptions &options,
                            llvm::StringRef kind);

/// Stamps the module: the last of `done` ran, `rest` of its phase is left. If
/// that is nothing, the stamp goes.
void setWithin(mlir::ModuleOp module, const PassStep &done,
               llvm::ArrayRef<PassStep> rest);
/// Returns the phase in which the module stands; empty: between two.
std::string phaseWithin(mlir::ModuleOp module);
/// Returns the last phase that an option could still act in before the module
/// was made, for messages: "'plan'", "'joint', after the pass 'expand-grads'".
std::string placeOf(mlir::ModuleOp module);
/// Returns the number of the phase that the module has left or stands in.
int phaseReached(mlir::ModuleOp module);

/// Fails with Usage unless `options.stopAfter` names a phase or a pass.
Status checkStopAfter(const CompileOptions &options);
/// Returns the phase that `name`, a phase or a pass, is or stands in first;
/// empty if there is none.
std::string phaseOfStop(llvm::StringRef name);
/// Returns the names of all passes, each once, in their order.
std::vector<std::string> passNames();
/// Returns the passes of each phase, a paragraph each, for a page of help.
std::string passesText();

} // namespace tandem

#endif
