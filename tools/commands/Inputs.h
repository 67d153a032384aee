//===- Inputs.h - what a command line gives to a model --------------------===//
//
// The options that every command on an artifact shares, and NAME=@FILE
// arguments read into tensors of the element types that the model wants.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_INPUTS_H
#define TANDEM_TOOLS_COMMANDS_INPUTS_H

#include "runtime/model/Model.h"
#include "tools/commands/Files.h"
#include "tools/commands/Options.h"
#include "tools/commands/Ranks.h"

namespace tandem::commands {

/// The artifact and how it is loaded.
struct ModelOptions {
  std::string artifact, params;
  std::string average; ///< "ema" or "swa": these are read for parameters
  std::optional<int64_t> threads, seed;

  std::string device, cpuVariant, profile, requireSignature, libraries = "auto";
  std::string memoryLimit;
  bool noGraphs = false, force = false, sandbox = false;
  RankOptions ranks;

  void declare(OptionTable &options);
  /// Declares the option --average of commands that compute outputs.
  Option &declareAverage(OptionTable &options);
  /// Says which files these options read and write.
  void declare(Files &files) const;
  /// Looks at the files of the command (see Files::check), and then, with
  /// --sandbox, gives up the rights to all others. What the command does before
  /// it is done with all rights.
  Status check(const Files &files, bool isForced = false) const;
  /// Loads the artifact, connects the ranks that it is for, and, if asked,
  /// loads its parameters. Fails with Usage if
  /// --seed has no effect: nothing that the model begins with is drawn, and
  /// `usesSeed` says that the command has no other use for it.
  Result<runtime::Model> load(bool usesSeed = false) const;
  /// What ranks must have alike of these options.
  Facts facts() const;
  /// How a model is loaded.
  Result<runtime::Options> runtimeOptions() const;
  /// Says on stderr if `model` has parameters with initial values, since no
  /// file gave others.
  void noteInitialValues(const runtime::Model &model) const;
};

struct NamedTensor {
  std::string name;
  runtime::Tensor tensor;
};

/// Returns the inputs among a program's arguments.
std::vector<const artifact::Slot *> inputsOf(const artifact::Program &program);

/// Returns `wanted` if it is a program that inputs, params and states suffice
/// for; or, if `wanted` is empty, the first of `otherwise` that exists. Fails
/// with Usage for an unknown name and Unsupported if there is none.
Result<const artifact::Program *>
chooseProgram(const artifact::Manifest &manifest, const std::string &wanted,
              std::initializer_list<std::string_view> otherwise);

/// Returns the inputs among a program's arguments that `needs`, one entry for
/// each argument, says.
std::vector<const artifact::Slot *> inputsOf(const artifact::Program &program,
                                             const std::vector<char> &needs);

/// Fails, with what to do, unless every param and state of the program has a
/// value: an initial one, or one that was set.
Status checkVariables(const runtime::Model &model,
                      const artifact::Program &program);

/// Collects problems into one message.
class Problems {
public:
  void add(const std::string &problem) {
    text_ += (text_.empty() ? "" : "; ") + problem;
  }
  bool none() const { return text_.empty(); }
  Status status() const { return Status::usage(text_); }

private:
  std::string text_;
};

} // namespace tandem::commands

#endif
