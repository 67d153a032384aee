//===- CompileFlags.h - the options that say how to compile ---------------===//
#ifndef TANDEM_TOOLS_TANDEM_COMPILEFLAGS_H
#define TANDEM_TOOLS_TANDEM_COMPILEFLAGS_H

#include "compiler/Compile.h"
#include "tools/commands/Files.h"
#include "tools/commands/Options.h"

namespace tandem::commands {

/// The options of `compile` that `check` and `inspect` have, too.
struct CompileFlags {
  /// Declares them in `table`, whose first argument is the model; for commands
  /// that need gradients without those of inference.
  void declare(OptionTable &table, bool withInference = true);
  /// Fills `options`; fails if they do not make sense.
  Status finish(CompileOptions &options) const;
  /// The same of a command that needs one program for all: fails where the
  /// model is cut into stages.
  Status finishWhole(CompileOptions &options) const;
  /// True for --parallel=auto of a command that chooses (`mayChoose`): then
  /// `finish` says nothing of mesh, plan and shardings.
  bool choosesPlan() const { return mayChoose && options.parallel == "auto"; }
  /// Says which files these options and `model` read and write.
  void declare(Files &files, const std::string &model) const;

  CompileOptions options;
  std::optional<int64_t> threads;
  std::optional<int64_t> order;
  std::optional<int64_t> effort;
  std::optional<double> tune;
  std::vector<std::string> dims, shapes; ///< of a model in ONNX
  bool force = false;                    ///< outputs may replace anything
  bool mayChoose = false;                ///< --parallel may be `auto`
};

} // namespace tandem::commands

#endif
