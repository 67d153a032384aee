//===- Predict.cpp - `predict`: outputs for any number of rows ------------===//
//
// Only what the wanted outputs need is read and computed. Files are written
// when all rows are done.
//
//===----------------------------------------------------------------------===//
#include "runtime/model/Predict.h"
#include "runtime/io/Csv.h"
#include "runtime/io/Tensors.h"
#include "tools/commands/Commands.h"
#include "tools/commands/CountProgress.h"
#include "tools/commands/Dataset.h"
#include "tools/commands/Evaluation.h"
#include "tools/commands/Interrupt.h"
#include "tools/commands/Outputs.h"
#include "tools/commands/Print.h"
#include "tools/commands/Profile.h"
#include "tools/commands/Resume.h"
#include "tools/commands/StageEvaluation.h"
#include "tools/commands/Stages.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace tandem::commands {
namespace {

using runtime::Prediction;
using runtime::Tensor;

struct PredictOptions {
  static constexpr std::string_view
      usage = "predict X.tdm --data NAME=@FILE ... [options]",
      description =
          "Computes outputs of program 'evaluate' for any number of rows: "
          "batch "
          "by batch, and what is left as a part of one. Inputs that no wanted "
          "output follows from, as labels, need not be given, and the loss is "
          "not computed.";

  ModelOptions model;
  std::vector<std::string> data, outputs;
  Casts casts;
  std::string onNaN = "stop";
  std::string axis; ///< of argmax
  bool argmax = false, csv = false, json = false;

  void declare(OptionTable &options) {
    options
        .list("data", "NAME=@FILE", data,
              "the rows of an input that the outputs follow from")
        .keyed()
        .required();
    options
        .list("output", "NAME=@FILE", outputs,
              "writes an output to a .npy, .npz, .safetensors or .csv file, or "
              "adds it to an archive: NAME=@FILE.npz:MEMBER")
        .byDefault("all outputs that follow from the data, as a summary");
    options.optionalText(
        "argmax", "AXIS", argmax, axis,
        "of each output the index of the largest score on an axis, instead of "
        "the scores; of one with two axes that is the last");
    casts.declare(options);
    declareOnNaN(options, onNaN);
    options
        .flag("csv", csv, "print the outputs as a table, a line for each row")
        .excludes("json");
    options.flag("json", json, "print what was done as JSON");
    model.declareAverage(options).needs("params", "they are in it");
    model.declare(options);
  }
};

class Predictor {
public:
  Predictor(const PredictOptions &options, runtime::Model model)
      : options_(options), model_(std::move(model)),
        manifest_(&model_->wholeManifest()) {}
  /// Of a model in stages, which outlive it.
  Predictor(const PredictOptions &options, StageEvaluation &stages)
      : options_(options), stages_(&stages), manifest_(&stages.manifest()) {}

  Status run() {
    for (auto stage : {&Predictor::choose, &Predictor::readData,
                       &Predictor::compute, &Predictor::write})
      if (Status status = (this->*stage)(); !status)
        return status;
    return Status::success();
  }

private:
  Status choose();
  std::vector<std::string> predictable() const;
  Status readData();
  Status compute();
  Status findAxes();
  Status takeLargest();
  Status write();
  void printJson() const;

  const PredictOptions &options_;
  /// Fails where a parameter of the program has no value.
  Status checkVariables(const artifact::Program &program) const {
    return stages_ ? stages_->checkVariables()
                   : commands::checkVariables(*model_, program);
  }
  Result<std::vector<Tensor>> predictRows(const runtime::ServeRows &serve);

  std::optional<runtime::Model> model_; ///< or stages
  StageEvaluation *stages_ = nullptr;
  const artifact::Manifest *manifest_; ///< of the size that the data fits
  std::vector<io::Argument> files_;
  Prediction prediction_;
  std::vector<NamedArray> arrays_;
  std::optional<Dataset> data_;
  std::deque<NamedTensor> outputs_;
  std::vector<int64_t> axes_; ///< of argmax, one an output
  double seconds_ = 0;
};

/// The outputs with rows for which all that they follow from is given.
std::vector<std::string> Predictor::predictable() const {
  std::vector<std::string> names;
  auto all = Prediction::of(*manifest_, {});
  if (!all)
    return names;
  for (const artifact::Slot &slot : all->outputs) {
    auto one = Prediction::of(*manifest_, {slot.name});
    std::vector<const artifact::Slot *> inputs =
        inputsOf(*one->program, one->needs);
    bool isGiven = std::all_of(
        inputs.begin(), inputs.end(), [&](const artifact::Slot *input) {
          return std::any_of(
              arrays_.begin(), arrays_.end(),
              [&](const NamedArray &a) { return a.name == input->name; });
        });
    if (isGiven)
      names.push_back(slot.name);
  }
  return names;
}

Status Predictor::choose() {
  const artifact::Manifest &first = *manifest_;
  const artifact::Program *evaluate = first.findProgram("evaluate");
  if (evaluate) {
    if (Status status = checkVariables(*evaluate); !status)
      return status;
    auto files = parseOutputs(options_.outputs, evaluate->name,
                              artifact::outputsOf(*evaluate));
    if (!files)
      return std::move(files).status();
    files_ = *std::move(files);
    if (!options_.model.force && isFirstRank())
      if (Status status = checkReplaced(files_, artifact::outputsOf(*evaluate),
                                        options_.argmax);
          !status)
        return status;
  }
  std::vector<std::string> names;
  for (const io::Argument &file : files_)
    if (std::find(names.begin(), names.end(), file.name) == names.end())
      names.push_back(file.name);
  Casts casts = options_.casts;
  if (Status status = casts.parse(first); !status)
    return status;
  auto arrays = readArrays(options_.data, "--data", first, casts);
  if (!arrays)
    return std::move(arrays).status();
  arrays_ = *std::move(arrays);
  if (evaluate && model_ && !model_->manifest().sizes.empty())
    manifest_ = &model_->manifestOfSize(
        size_t(programForRows(model_->manifest(), *evaluate, arrays_).size));
  auto prediction =
      Prediction::of(*manifest_, names.empty() ? predictable() : names);
  if (!prediction)
    return std::move(prediction).status();
  prediction_ = *std::move(prediction);
  if (Status status = checkVariables(*prediction_.program); !status)
    return status;
  return options_.argmax ? findAxes() : Status::success();
}

/// Finds the axis of each output's scores.
Status Predictor::findAxes() {
  const std::string &asked = options_.axis;
  for (const artifact::Slot &slot : prediction_.outputs) {
    int64_t rank = std::ssize(slot.shape);
    std::string got = " but got " + runtime::describe(slot.dtype, slot.shape);
    auto axis = axisOfScores(asked.empty() ? "-1" : asked, rank);
    if (!axis || slot.shape[*axis] == 0)
      return Status::usage("--argmax: expected '" + slot.name +
                           "' to have scores on " +
                           (asked.empty() ? "a last axis" : "axis " + asked) +
                           ", beside rows on axis 0," + got);
    if (rank > 2 && asked.empty())
      return Status::usage("--argmax: expected --argmax=AXIS (as --argmax=1 or "
                           "--argmax=-1) for '" +
                           slot.name + "' with more than two axes," + got);
    if (slot.shape[*axis] == 1)
      note("--argmax: '" + slot.name +
           "' has one score a row, of which the largest is always number 0; "
           "without --argmax its values are given");
    axes_.push_back(*axis);
  }
  return Status::success();
}

Status Predictor::readData() {
  DataUse use;
  use.option = "--data";
  use.ranks = model_ ? &*model_ : nullptr;
  use.needs = prediction_.needs;
  use.mayBeEmpty = true;
  auto data =
      Dataset::match(*manifest_, *prediction_.program, std::move(arrays_), use);
  if (!data)
    return std::move(data).status();
  data_ = std::move(*data);
  for (const std::string &text : data_->notes())
    note(text);
  const auto &arguments = prediction_.program->arguments;
  for (size_t a = 0; a < arguments.size(); ++a)
    if (!prediction_.needs[a] && data_->array(arguments[a].name))
      note("--data '" + arguments[a].name +
           "' is not read: no wanted output follows from it");
  if (Status status = agree(factsOfRows("--data", *data_)); !status)
    return status;
  if (Status status = checkFinite(*data_, options_.onNaN); !status)
    return status;
  if (data_->rows() % prediction_.batch != 0)
    for (const artifact::Slot &slot : prediction_.outputs)
      if (slot.rows != artifact::Rows::Each)
        note("a row of '" + slot.name +
             "' may follow from other rows of its batch too: the last batch is "
             "filled up with rows that are repeated");
  return Status::success();
}

Status Predictor::compute() {
  Interrupt interrupt;
  CountProgress progress("row", data_->rows());
  int64_t done = 0;
  auto serve = [&](std::span<const int64_t> rows) {
    auto stops = isInterrupted();
    if (!stops)
      return std::move(stops).status();
    if (*stops)
      return Status::failed("interrupted at row " + std::to_string(done) +
                            " of " + std::to_string(data_->rows()) +
                            "; nothing was written");
    progress.show(done);
    if (Status status = data_->gather(rows); !status)
      return status;
    done += prediction_.batch;
    return Status::success();
  };
  auto results = predictRows(serve);
  if (!results)
    return std::move(results).status();
  seconds_ = progress.seconds();
  for (size_t i = 0; i < results->size(); ++i)
    outputs_.push_back({prediction_.outputs[i].name, std::move((*results)[i])});
  return options_.argmax ? takeLargest() : Status::success();
}

Result<std::vector<Tensor>>
Predictor::predictRows(const runtime::ServeRows &serve) {
  if (model_)
    return runtime::predict(*model_, prediction_, data_->rows(),
                            data_->arguments(), serve);
  std::vector<std::string> names;
  for (const artifact::Slot &slot : prediction_.outputs)
    names.push_back(slot.name);
  auto forward = stages_->forward(names);
  if (!forward)
    return std::move(forward).status();
  return runtime::predict(prediction_, data_->rows(), serve,
                          [&] { return forward->run(data_->arguments()); });
}

/// Replaces scores by the index of the largest.
Status Predictor::takeLargest() {
  for (size_t o = 0; o < outputs_.size(); ++o) {
    NamedTensor &output = outputs_[o];
    auto given = output.tensor.shape();
    std::vector<int64_t> shape(given.begin(), given.end());
    shape.erase(shape.begin() + axes_[o]);
    int64_t noNumbers = 0;
    auto indices = Tensor::zeros(runtime::DType::I64, shape);
    if (!indices)
      return std::move(indices).status();
    auto *to = indices->mutableData<int64_t>();
    for (int64_t i = 0; i < indices->elements(); ++i) {
      to[i] = argmax(output.tensor, axes_[o], i);
      noNumbers += to[i] < 0;
    }
    if (noNumbers)
      warn("--argmax: " + std::to_string(noNumbers) + " of " +
           std::to_string(indices->elements()) + " of '" + output.name +
           "' have a score that is nan, and are -1");
    output.tensor = *std::move(indices);
  }
  return Status::success();
}

Status Predictor::write() {
  if (!isFirstRank())
    return Status::success();
  std::vector<io::OutputFile> writes;
  for (const io::Argument &file : files_)
    for (const NamedTensor &output : outputs_)
      if (output.name == file.name)
        writes.push_back({file, io::viewOf(output.tensor)});
  if (Status status = io::writeArguments(writes); !status)
    return status;
  if (options_.csv) {
    std::vector<io::CsvColumns> columns;
    for (const NamedTensor &output : outputs_)
      columns.push_back({output.name, io::viewOf(output.tensor)});
    std::fputs(io::csvText(columns).c_str(), stdout);
  } else if (options_.json) {
    printJson();
  } else {
    printOutputs(outputs_);
  }
  return Status::success();
}

void Predictor::printJson() const {
  nlohmann::json json = {
      {"rows", data_->rows()},
      {"batch", prediction_.batch},
      {"seconds", seconds_},
      {"rows_per_second",
       seconds_ > 0 ? double(data_->rows()) / seconds_ : 0.0},
      {"outputs", nlohmann::json::object()}};
  for (const NamedTensor &output : outputs_) {
    auto &entry = json["outputs"][output.name] = {
        {"type", spelling(output.tensor.dtype())},
        {"shape", std::vector<int64_t>(output.tensor.shape().begin(),
                                       output.tensor.shape().end())}};
    for (const io::Argument &file : files_)
      if (file.name == output.name)
        entry["files"].push_back(file.text);
  }
  std::printf("%s\n",
              json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                  .c_str());
}

Status predictStages(const PredictOptions &options,
                     const artifact::ArtifactReader &first) {
  auto stages = openStages(options.model, first);
  if (!stages)
    return std::move(stages).status();
  options.model.noteInitialValues(stages->models().front());
  auto evaluation = StageEvaluation::of(*stages, options.model.artifact);
  if (!evaluation)
    return std::move(evaluation).status();
  return Predictor(options, *evaluation).run();
}

Status predict(const PredictOptions &options) {
  // A pipe that nobody reads is a failed write at the end, and no signal.
  std::signal(SIGPIPE, SIG_IGN);
  Files files;
  options.model.declare(files);
  files.readsArguments("--data", options.data);
  files.writesArguments("--output", options.outputs);
  if (Status status = options.model.check(files); !status)
    return status;
  if (auto reader = artifact::ArtifactReader::open(options.model.artifact);
      reader && reader->manifest().pipeline)
    return predictStages(options, *reader);
  auto model = options.model.load();
  if (!model)
    return std::move(model).status();
  options.model.noteInitialValues(*model);
  Profile profile;
  if (Status status = profile.start(options.model, *model); !status)
    return status;
  if (Status status = Predictor(options, *std::move(model)).run(); !status)
    return status;
  return profile.stop();
}

} // namespace

Command predictCommand() {
  return commandOf<predict>("predict",
                            "compute outputs for any number of rows");
}

} // namespace tandem::commands
