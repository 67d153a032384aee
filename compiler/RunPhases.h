//===- RunPhases.h - the passes of phases, run and looked at --------------===//
#ifndef TANDEM_COMPILER_RUNPHASES_H
#define TANDEM_COMPILER_RUNPHASES_H

#include "compiler/PassSteps.h"

namespace tandem {

/// Writes the modules that `--dump-phases` and `--dump-passes` ask for. `label`
/// is that of a target, where there are several.
class Dumps {
public:
  Dumps(const CompileOptions &options, llvm::StringRef label)
      : options(options), label(label.str()) {}

  /// DIR/<model>.<nn>.<phase>[.<label>].mlir
  Status phase(mlir::ModuleOp module) const;
  /// DIR/<model>.<nn>.<phase>.<mm>.<pass>[.<label>].mlir, if the pass changed
  /// the module since `begin`, or the last call. `rest` are the passes of the
  /// phase that are left.
  void begin(mlir::ModuleOp module);
  Status pass(mlir::ModuleOp module, const PassStep &done,
              llvm::ArrayRef<PassStep> rest);

private:
  Status write(mlir::ModuleOp module, const std::string &folder,
               const std::string &name) const;

  const CompileOptions &options;
  std::string label, last;
};

/// Runs the first `count` of `steps`, which are of one phase, and stamps the
/// module with what is left of it.
Status runSteps(mlir::ModuleOp module, llvm::ArrayRef<PassStep> steps,
                size_t count, const CompileOptions &options, Dumps &dumps,
                llvm::StringRef label);

} // namespace tandem

#endif
