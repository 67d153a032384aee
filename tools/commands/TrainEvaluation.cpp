//===- TrainEvaluation.cpp - the rows of `train --eval` -------------------===//
#include "tools/commands/TrainEvaluation.h"

#include "tools/commands/Averaged.h"
#include "tools/commands/Interrupt.h"
#include "tools/commands/Print.h"
#include "tools/commands/Profile.h"

namespace tandem::commands {

using artifact::Role;
using artifact::Slot;

Result<const artifact::Program *>
programToEvaluate(const TrainOptions &options,
                  const artifact::Manifest &manifest) {
  const artifact::Program *program = manifest.findProgram("evaluate");
  if (!program)
    return Status::unsupported("'" + options.model.artifact +
                               "' has no program 'evaluate'");
  return program;
}

Result<EvaluationInput> readEvaluation(const TrainOptions &options,
                                       const runtime::Model &model,
                                       const artifact::Program &program,
                                       const Casts &casts) {
  bool trains = options.steps.value_or(1) != 0;
  if (const std::string &average = options.model.average;
      trains && !average.empty())
    if (Status status = Averaged::check(model, average); !status)
      return status;
  const artifact::Manifest &manifest = model.wholeManifest();
  auto arrays = readArrays(options.eval, "--eval", manifest, casts);
  if (!arrays)
    return std::move(arrays).status();
  std::optional<Accuracy> accuracy;
  if (!options.accuracy.empty()) {
    auto parsed = Accuracy::parse(options.accuracy);
    if (!parsed)
      return std::move(parsed).status();
    accuracy = std::move(*parsed);
  }
  DataUse use;
  use.option = "--eval";
  use.ranks = &model;
  use.also = accuracy ? accuracy->labels() : std::string_view();
  auto data = Dataset::match(manifest, program, *std::move(arrays), use);
  if (!data)
    return std::move(data).status();
  if (accuracy) {
    const Slot *logits = nullptr;
    for (const Slot &slot : data->program().results)
      if (slot.role == Role::Output && slot.name == accuracy->logits())
        logits = &slot;
    if (!logits)
      return Status::usage("--accuracy: program 'evaluate' has no output '" +
                           accuracy->logits() + "'");
    if (Status status = accuracy->check(*logits, data->rows(), data->batch(),
                                        data->array(accuracy->labels()));
        !status)
      return status;
  }
  return EvaluationInput{std::move(*data), std::move(accuracy)};
}

Result<Evaluation> evaluateTrained(const TrainOptions &options,
                                   runtime::Model &model,
                                   const artifact::Program &program,
                                   Dataset &data,
                                   std::optional<Accuracy> accuracy) {
  const std::string &average = options.model.average;
  if (average.empty())
    return evaluate(model, program, data, std::move(accuracy));
  auto averaged = Averaged::of(model, average);
  if (!averaged)
    return std::move(averaged).status();
  if (averaged->none())
    note("no update has made an average '" + average +
         "' until now: parameters are evaluated");
  auto evaluation = evaluate(model, program, data, std::move(accuracy));
  if (Status status = averaged->restore(); !status)
    return status;
  return evaluation;
}

Status checkEvaluation(const Evaluation &evaluation, const std::string &onNaN,
                       const std::string &when) {
  const Mean *mean = evaluation.nonFinite();
  if (!mean)
    return Status::success();
  std::string text = "evaluation: the mean of '" + mean->name + "' is " +
                     numberText(mean->value) + when;
  if (!goesOn(onNaN))
    return Status::failed(text + "; '--on-nan=report' goes on");
  warn(text);
  return Status::success();
}

namespace {

Result<TrainResult> evaluateModel(const TrainOptions &options,
                                  runtime::Model &model) {
  auto program = programToEvaluate(options, model.wholeManifest());
  if (!program)
    return std::move(program).status();
  if (Status status = checkVariables(model, **program); !status)
    return status;
  Casts casts = options.casts;
  if (Status status = casts.parse(model.manifest()); !status)
    return status;
  auto input = readEvaluation(options, model, **program, casts);
  if (!input)
    return std::move(input).status();
  for (const std::string &text : input->data.notes())
    note(text);
  if (Status status = checkFinite(input->data, options.onNaN); !status)
    return status;
  if (Status status =
          agree({{"the rows of --eval", std::to_string(input->data.rows())},
                 {"--accuracy", options.accuracy}});
      !status)
    return status;
  options.model.noteInitialValues(model);
  Interrupt interrupt;
  auto evaluation = evaluate(model, input->data.program(), input->data,
                             std::move(input->accuracy));
  if (!evaluation)
    return std::move(evaluation).status();
  if (evaluation->stopped)
    return Status::failed("interrupted; nothing was written");
  if (Status status = checkEvaluation(*evaluation, options.onNaN, ""); !status)
    return status;
  TrainResult result;
  result.evaluation = std::move(*evaluation);
  return result;
}

} // namespace

Result<TrainResult> evaluateAlone(const TrainOptions &options) {
  Files files;
  options.declare(files);
  if (Status status = files.check(options.model.force); !status)
    return status;
  if (!options.model.average.empty() && options.model.params.empty())
    return Status::usage("--average needs --params where nothing is trained: "
                         "averages are in it");
  auto model = options.model.load();
  if (!model)
    return std::move(model).status();
  Profile profile;
  if (Status status = profile.start(options.model, *model); !status)
    return status;
  auto result = evaluateModel(options, *model);
  if (result)
    if (Status status = profile.stop(); !status)
      return status;
  return result;
}

} // namespace tandem::commands
