//===- Reproducer.h - what was being compiled when it went wrong ----------===//
//
// While passes run, a reproducer holds a copy of the module from before them
// and their pipeline. Where the compiler itself is at fault (a pass that
// crashes, a module that a verifier refuses), both are written to a file, in
// MLIR's form: `tandem-opt --run-reproducer FILE` runs the passes again. A
// model's error is none of the compiler's: its message stands at a place in the
// model, and no file is written.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_REPRODUCER_H
#define TANDEM_COMPILER_REPRODUCER_H

#include "runtime/artifact/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

#include <string>

namespace tandem {

class Reproducer {
public:
  /// `path` is where the file goes; empty: a new one in the folder for
  /// temporary files.
  explicit Reproducer(std::string path = "") : path_(std::move(path)) {}

  /// From now on `passes`, which outlive the call of `end`, run on `module`.
  void begin(mlir::ModuleOp module, mlir::PassManager &passes,
             llvm::StringRef phase);
  /// From now on code is emitted of `module`, which nobody changes.
  void beginEmit(mlir::ModuleOp module);
  void end();

  /// True between `begin` and `end`.
  bool isActive() const { return emitted_ || module_; }
  /// Writes the file. Returns what to do with it: "a reproducer is in 'F':
  /// ...".
  Result<std::string> write();
  /// Runs the passes on a copy again, with MLIR's verifier behind each, without
  /// a word. Returns the name of the first that fails or leaves a module that
  /// is not valid; empty if none does.
  std::string firstToBreak();
  /// Returns what runs on the calling thread: "the pass 'form-kernels'".
  static std::string whatRuns();

private:
  std::string path_, phase_, broke_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  mlir::ModuleOp emitted_;
  mlir::PassManager *passes_ = nullptr;
};

/// Runs the passes, which are of `phase`. Fails with a message that says
/// whether the model or the compiler is at fault; in the latter case
/// `reproducer`, if there is one, which has begun, is written, and named.
Status runPasses(mlir::ModuleOp module, mlir::PassManager &passes,
                 llvm::StringRef phase, Reproducer *reproducer);

} // namespace tandem

#endif
