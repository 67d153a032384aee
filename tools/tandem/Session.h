//===- Session.h - one use of the compiler by a command -------------------===//
//
// Owns the MLIR context, prints its diagnostics to stderr as they come
// ("FILE:LINE:COLUMN: error: ..."), and turns what was printed into the status
// of the command.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_TANDEM_SESSION_H
#define TANDEM_TOOLS_TANDEM_SESSION_H

#include "compiler/PassLog.h"
#include "runtime/artifact/ArtifactReader.h"
#include "tools/commands/Options.h"
#include "tools/tandem/CompileThreads.h"
#include "tools/tandem/CrashReport.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <functional>
#include <memory>
#include <optional>

namespace tandem::commands {

class Tuning;

class Session {
public:
  explicit Session(const CompileOptions &options);
  ~Session();

  mlir::MLIRContext &context() { return context_; }
  std::vector<PhaseTime> &times() { return times_; }
  const CompileOptions &options() const { return options_; }

  /// From now on remarks are not printed: another session has said the same.
  void silenceRemarks() { isSilent_ = true; }

  /// Reads a model and runs its phases: a module for each target, or one if
  /// they stop at `capture`; none if that failed (then `status()`).
  Modules phases(const std::string &path);
  /// The same of a model that was read; `path` is for messages.
  Modules phases(mlir::OwningOpRef<mlir::ModuleOp> module,
                 const std::string &path);
  /// The same, then the artifact.
  Result<artifact::ArtifactWriter> artifact(const std::string &path);
  /// The same of a model that was read; `path` is for messages.
  Result<artifact::ArtifactWriter>
  artifact(mlir::OwningOpRef<mlir::ModuleOp> module, const std::string &path);
  /// The same of a model in stages: an artifact a stage; one of other models.
  Result<std::vector<artifact::ArtifactWriter>>
  artifacts(const std::string &path);
  /// Reads a model; null if that failed (then `status()`).
  mlir::OwningOpRef<mlir::ModuleOp> read(const std::string &path);
  /// What is in the ONNX model `path`, as text; everything that is wrong with
  /// it or not supported comes first, and makes `status()` a failure.
  std::string summary(const std::string &path);
  /// The same of an archive of torch.export whose inputs have sizes that
  /// options say nothing of; empty if there is none, or it is no such archive.
  std::string sizesSummary(const std::string &path);
  /// Called with the modules after `plan`, of each size, before they are
  /// lowered: with what an artifact does not say. Not of a module past that.
  std::function<void(const Modules &)> whenPlanned;
  /// Called with the modules after `lower`, of a model in one size, before code
  /// is made of them.
  std::function<Status(const Modules &)> whenLowered;
  /// From here on `passes()` gets what each pass does.
  void recordPasses() { options_.passes = &passes_; }
  const PassLog &passes() const { return passes_; }
  /// What a model in ONNX brought of parameters and states.
  const Weights &weights() const { return weights_; }

  /// The machine code that is kept; null if none is.
  const KernelCache *kernels() const { return kernels_.get(); }

  /// The same, in memory and ready to load.
  Result<artifact::ArtifactReader> loaded(const std::string &path);

  /// The first failure. Code Unsupported if every error that was printed begins
  /// with "unsupported".
  Status status() const;

private:
  /// Runs the phases up to `plan`, calls `whenPlanned`, and runs the others.
  Result<Modules> planned(mlir::OwningOpRef<mlir::ModuleOp> module);
  /// For options that lead to code.
  void openKernels();
  /// One artifact of the sizes that the options say.
  Result<artifact::ArtifactWriter> ofSizes(const std::string &path);
  void print(mlir::Diagnostic &diagnostic);
  /// What the options say of the ONNX model `path`.
  ImportOptions importOptions(const std::string &path);

  Reproducer reproducer_;
  CrashReport crash_{reproducer_};
  CompileOptions options_;
  std::unique_ptr<Tuning> tuning_; ///< if kernels are tuned
  std::unique_ptr<KernelCache> kernels_;
  std::string loss_; ///< `KIND:OUTPUT,LABELS` of a model in ONNX
  Weights weights_;
  std::unique_ptr<CompileThreads> threads_; ///< if passes run on several
  mlir::MLIRContext context_;
  std::vector<PhaseTime> times_;
  PassLog passes_;
  Status status_;
  int errors_ = 0, unsupported_ = 0, misused_ = 0;
  bool isSilent_ = false;
};

} // namespace tandem::commands

#endif
