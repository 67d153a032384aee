//===- TrainEvaluation.cpp - the rows of `train --eval` -------------------===//
#include "tools/commands/TrainEvaluation.h"

#include "runtime/artifact/NearestName.h"
#include "tools/commands/Averaged.h"
#include "tools/commands/Interrupt.h"
#include "tools/commands/Print.h"
#include "tools/commands/Profile.h"
#include "tools/commands/Resume.h"
#include "tools/commands/StageEvaluation.h"
#include "tools/commands/Stages.h"

#include <algorithm>

namespace tandem::commands {

using artifact::Program;
using artifact::Role;
using artifact::Slot;

Result<const Program *> programToEvaluate(const TrainOptions &options,
                                          const artifact::Manifest &manifest) {
  const Program *program = manifest.findProgram("evaluate");
  if (!program)
    return Status::unsupported("'" + options.model.artifact +
                               "' has no program 'evaluate'");
  return program;
}

/// Takes --metric apart; each has a name of its own, and an output.
static Result<std::vector<Metric>>
parseMetrics(const std::vector<std::string> &texts, const Program &program) {
  std::vector<Metric> metrics;
  std::vector<std::string> taken = {"rows",        "outputs",
                                    "metrics",     "accuracy",
                                    "exact_match", "rows_of_outputs"};
  std::vector<std::string_view> outputs;
  const std::vector<Slot> slots = artifact::outputsOf(program);
  for (const Slot &slot : slots) {
    outputs.push_back(slot.name);
    taken.push_back(slot.name);
  }
  for (const std::string &text : texts) {
    auto metric = Metric::parse(text);
    if (!metric)
      return std::move(metric).status();
    if (std::ranges::count(taken, metric->name()) > 0)
      return Status::usage("--metric: an evaluation has a number '" +
                           metric->name() +
                           "' already; expected another name, as in 'NAME=" +
                           text.substr(text.find('=') + 1) + "'");
    if (std::ranges::count(outputs, metric->output()) == 0)
      return Status::usage("--metric: program 'evaluate' has no output '" +
                           metric->output() + "'" +
                           didYouMean(metric->output(), outputs));
    taken.push_back(metric->name());
    metrics.push_back(std::move(*metric));
  }
  return metrics;
}

static std::optional<Slot> outputOf(const Program &program,
                                    const std::string &name) {
  for (Slot &slot : artifact::outputsOf(program))
    if (slot.name == name)
      return std::move(slot);
  return std::nullopt;
}

static Status bind(Metric &metric, const Dataset &data) {
  const Program &program = data.program();
  std::optional<Slot> output = outputOf(program, metric.output());
  const Slot *input = nullptr;
  for (const Slot *slot : inputsOf(program))
    if (slot->name == metric.array())
      input = slot;
  if (!output)
    return Status::usage("--metric: program 'evaluate' of this size has no "
                         "output '" +
                         metric.output() + "'");
  return metric.bind(*output, data.rows(), data.batch(),
                     data.named(metric.array()), input);
}

/// What is counted by is looked up row by row, in memory.
static Status checkCounted(const Dataset &data,
                           const std::optional<Accuracy> &accuracy,
                           const std::vector<Metric> &metrics) {
  std::vector<std::string> names;
  if (accuracy)
    names.push_back(accuracy->labels());
  for (const Metric &metric : metrics)
    names.push_back(metric.array());
  for (const Slot &slot : data.program().results)
    names.push_back(slot.counted);
  for (const std::string &name : names)
    if (const NamedArray *array = data.named(name); array && array->rows)
      return Status::unsupported(
          "--eval '" + name +
          "': rows are counted by it, and it is larger "
          "than 64 MiB: expected an .npy with the same numbers");
  return Status::success();
}

Result<EvaluationInput> readEvaluation(const TrainOptions &options,
                                       const artifact::Manifest &manifest,
                                       const Program &program,
                                       const Casts &casts,
                                       const runtime::Model *ranks) {
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
  auto metrics = parseMetrics(options.metrics, program);
  if (!metrics)
    return std::move(metrics).status();
  DataUse use;
  use.option = "--eval";
  use.ranks = ranks;
  if (accuracy)
    use.also.push_back(accuracy->labels());
  for (const Metric &metric : *metrics)
    use.also.push_back(metric.array());
  auto data = Dataset::match(manifest, program, *std::move(arrays), use);
  if (!data)
    return std::move(data).status();
  if (Status status = checkCounted(*data, accuracy, *metrics); !status)
    return status;
  if (accuracy) {
    std::optional<Slot> logits = outputOf(data->program(), accuracy->logits());
    if (!logits)
      return Status::usage("--accuracy: program 'evaluate' has no output '" +
                           accuracy->logits() + "'");
    if (Status status = accuracy->check(*logits, data->rows(), data->batch(),
                                        data->array(accuracy->labels()));
        !status)
      return status;
  }
  for (Metric &metric : *metrics)
    if (Status status = bind(metric, *data); !status)
      return status;
  return EvaluationInput{std::move(*data),
                         {std::move(accuracy), std::move(*metrics)}};
}

Result<Evaluation> evaluateTrained(const TrainOptions &options,
                                   runtime::Model &model,
                                   const Program &program, Dataset &data,
                                   Counters counters) {
  const std::string &average = options.model.average;
  if (average.empty())
    return evaluate(model, program, data, std::move(counters));
  auto averaged = Averaged::of(model, average);
  if (!averaged)
    return std::move(averaged).status();
  if (averaged->none())
    note("no update has made an average '" + average +
         "' until now: parameters are evaluated");
  auto evaluation = evaluate(model, program, data, std::move(counters));
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

/// Reads the rows, and evaluates them by `compute`. `manifest` is of whole
/// values.
Result<TrainResult> evaluateRows(
    const TrainOptions &options, const artifact::Manifest &manifest,
    const artifact::Program &program, const runtime::Model *ranks,
    const std::function<Result<Evaluation>(EvaluationInput &)> &compute) {
  Casts casts = options.casts;
  if (Status status = casts.parse(manifest); !status)
    return status;
  auto input = readEvaluation(options, manifest, program, casts, ranks);
  if (!input)
    return std::move(input).status();
  for (const std::string &text : input->data.notes())
    note(text);
  if (Status status = checkFinite(input->data, options.onNaN); !status)
    return status;
  Facts facts = factsOfRows("--eval", input->data);
  facts.emplace_back("--accuracy", options.accuracy);
  facts.emplace_back("--metric", withCommas(options.metrics));
  if (Status status = agree(facts); !status)
    return status;
  Interrupt interrupt;
  auto evaluation = compute(*input);
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

Result<TrainResult> evaluateModel(const TrainOptions &options,
                                  runtime::Model &model) {
  auto program = programToEvaluate(options, model.wholeManifest());
  if (!program)
    return std::move(program).status();
  if (Status status = checkVariables(model, **program); !status)
    return status;
  options.model.noteInitialValues(model);
  return evaluateRows(options, model.wholeManifest(), **program, &model,
                      [&](EvaluationInput &input) {
                        return evaluate(model, input.data.program(), input.data,
                                        std::move(input.counters));
                      });
}

Result<TrainResult> evaluateStages(const TrainOptions &options,
                                   const artifact::ArtifactReader &first) {
  auto stages = openStages(options.model, first);
  if (!stages)
    return std::move(stages).status();
  auto evaluation = StageEvaluation::of(*stages, options.model.artifact);
  if (!evaluation)
    return std::move(evaluation).status();
  if (Status status = evaluation->checkVariables(); !status)
    return status;
  options.model.noteInitialValues(stages->models().front());
  return evaluateRows(options, evaluation->manifest(), evaluation->program(),
                      nullptr, [&](EvaluationInput &input) {
                        return evaluation->evaluate(
                            input.data, std::move(input.counters), "");
                      });
}

} // namespace

Result<TrainResult> evaluateAlone(const TrainOptions &options) {
  Files files;
  options.declare(files);
  if (Status status = options.model.check(files); !status)
    return status;
  if (!options.model.average.empty() && options.model.params.empty())
    return Status::usage("--average needs --params where nothing is trained: "
                         "averages are in it");
  if (auto reader = artifact::ArtifactReader::open(options.model.artifact);
      reader && reader->manifest().pipeline)
    return evaluateStages(options, *reader);
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
