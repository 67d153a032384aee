//===- TrainEvaluation.h - the rows of `train --eval` ---------------------===//
//
// What `train` evaluates after training, and with --steps=0 instead of it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_TOOLS_COMMANDS_TRAINEVALUATION_H
#define TANDEM_TOOLS_COMMANDS_TRAINEVALUATION_H

#include "tools/commands/Training.h"

namespace tandem::commands {

/// Returns program 'evaluate' of the artifact; unsupported if it has none.
Result<const artifact::Program *>
programToEvaluate(const TrainOptions &options,
                  const artifact::Manifest &manifest);

struct EvaluationInput {
  Dataset data;
  Counters counters; ///< fresh ones
};

/// Reads --eval, --accuracy and --metric for `program`, and checks them.
/// `manifest` is of whole values; `ranks` as in DataUse.
Result<EvaluationInput> readEvaluation(const TrainOptions &options,
                                       const artifact::Manifest &manifest,
                                       const artifact::Program &program,
                                       const Casts &casts,
                                       const runtime::Model *ranks);

/// As `evaluate`, of a model that is trained further; with --average of
/// averages of its parameters, where updates have made some.
Result<Evaluation> evaluateTrained(const TrainOptions &options,
                                   runtime::Model &model,
                                   const artifact::Program &program,
                                   Dataset &data, Counters counters);

/// Fails at a mean that is NaN or infinite, or says so where `onNaN` is
/// "report". `when` follows what is said.
Status checkEvaluation(const Evaluation &evaluation, const std::string &onNaN,
                       const std::string &when);

/// Evaluates and does nothing else: no step, and no file is written.
Result<TrainResult> evaluateAlone(const TrainOptions &options);

} // namespace tandem::commands

#endif
