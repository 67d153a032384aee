//===- StageEvaluation.h - `evaluate` of a model in stages ----------------===//
#ifndef TANDEM_TOOLS_COMMANDS_STAGEEVALUATION_H
#define TANDEM_TOOLS_COMMANDS_STAGEEVALUATION_H

#include "runtime/pipeline/Forward.h"
#include "tools/commands/Averaged.h"
#include "tools/commands/Evaluation.h"

#include <memory>

namespace tandem::commands {

class StageEvaluation {
public:
  /// Reads what all stages of the artifact, whose file of stage 0 is at `path`,
  /// compute. The stages outlive it.
  static Result<StageEvaluation> of(pipeline::Pipeline &stages,
                                    const std::string &path);

  /// Of the whole model: its inputs, its outputs, and `evaluate`.
  const artifact::Manifest &manifest() const { return *whole_; }
  const artifact::Program &program() const { return whole_->programs[0]; }

  /// Fails with Usage where parameters or states of this rank have no value.
  Status checkVariables() const;
  /// Returns what computes these outputs.
  Result<pipeline::Forward> forward(const std::vector<std::string> &outputs);

  /// As `evaluate` of one model; with `average`, of averages of its parameters
  /// where updates have made some. All ranks call it.
  Result<Evaluation> evaluate(Dataset &data, Counters counters,
                              const std::string &average);
  /// Fails with Usage on all ranks where no stage has averages `average`.
  Status checkAverage(const std::string &average) const;

private:
  pipeline::Pipeline *stages_ = nullptr;
  std::vector<artifact::Manifest> all_;
  std::unique_ptr<artifact::Manifest> whole_; ///< where it lies is remembered
  std::optional<pipeline::Forward> forward_;
};

} // namespace tandem::commands

#endif
