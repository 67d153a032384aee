//===- Anomaly.h - where a NaN of a training step was made ----------------===//
//
// With --detect-anomaly the values of each step are kept before it, and looked
// at after it. Where a NaN came out (or an infinity, if that is asked for), the
// step is gone through again: by the model's ops, where a tool has the compiler
// and the model lies beside the artifact, else by the artifact's programs.
// Without the option nothing is kept or looked at.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_ANOMALY_H
#define TANDEM_TOOLS_COMMANDS_ANOMALY_H

#include "runtime/model/Model.h"
#include "tools/commands/Inputs.h"
#include "tools/commands/Options.h"

#include <span>
#include <string>
#include <vector>

namespace tandem::commands {

struct AnomalyOptions {
  bool isOn = false;
  std::string kind = "nan";

  Option &declare(OptionTable &options);
  bool findsInfinity() const { return kind == "infinity"; }
};

/// A step that made a NaN: what it began with.
struct AnomalyStep {
  std::string artifact;
  std::vector<NamedTensor> values; ///< inputs, params and states, on the host
  bool findsInfinity = false;
};

/// Which op made it, by its place in the model.
struct AnomalyPlace {
  std::string op;  ///< empty: it is not known
  std::string why; ///< it is not
};
using AnomalyLocator = Result<AnomalyPlace> (*)(const AnomalyStep &step);

/// True if there is neither NaN nor infinity in a tensor.
bool isFinite(const runtime::Tensor &tensor);

/// Names of results in which there is what is looked for.
struct NamesFound {
  bool hasPrograms = false; ///< else there was nothing to run
  std::vector<std::string> outputs, gradients;
};
/// Runs forward and backward by themselves, and looks at what they give.
Result<NamesFound> findByPrograms(runtime::Model &model,
                                  std::span<const runtime::Argument> inputs,
                                  bool findsInfinity);

/// Looks after the steps of a training.
class AnomalyWatch {
public:
  AnomalyWatch(const AnomalyOptions &options, std::string artifact,
               AnomalyLocator locator)
      : options(options), artifact(std::move(artifact)), locator(locator) {}

  /// Before a step: keeps params and states.
  Status keep(const runtime::Model &model);
  /// After it: fails, with the place, if the loss or a value is no number.
  /// Params and states are then what they were before the step.
  Status check(runtime::Model &model, std::span<const runtime::Argument> inputs,
               const runtime::Tensor &loss);

private:
  std::string whatIsWrong(const runtime::Model &model,
                          const runtime::Tensor &loss) const;
  std::string locate(runtime::Model &model,
                     std::span<const runtime::Argument> inputs);

  const AnomalyOptions &options;
  std::string artifact;
  AnomalyLocator locator;
  std::vector<NamedTensor> kept;
};

} // namespace tandem::commands

#endif
