//===- Train.cpp - `train`: options in, results out -----------------------===//
#include "runtime/cli/Commands.h"
#include "runtime/cli/Print.h"
#include "runtime/cli/Training.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace tandem::commands {
namespace {

constexpr std::string_view description =
    "Trains the model of an artifact: program 'step' over batches of the "
    "data.\n"
    "Arrays have N rows in their first dimension; the batch is the first "
    "dimension of\n"
    "the program's inputs. Rows that do not fill a batch are left out of an "
    "epoch.\n"
    "Ctrl-C finishes the step, saves to --save, says where, and exits with 1.";

double fraction(int64_t part, int64_t whole) {
  return double(part) / double(whole);
}

void printText(const TrainOptions &options, const TrainResult &result) {
  std::printf("loss = %s\n", roundedText(result.loss).c_str());
  if (const auto &evaluation = result.evaluation) {
    for (const auto &[name, mean] : evaluation->means)
      std::printf("eval.%s = %s\n", name.c_str(), roundedText(mean).c_str());
    auto print = [](const char *name, int64_t part, int64_t whole) {
      std::printf("eval.%s = %s (%lld of %lld)\n", name,
                  whole ? roundedText(fraction(part, whole)).c_str() : "nan",
                  static_cast<long long>(part), static_cast<long long>(whole));
    };
    if (const auto &accuracy = evaluation->accuracy) {
      print("accuracy", accuracy->right(), accuracy->counted());
      if (accuracy->manyPerRow())
        print("exact_match", accuracy->rightRows(), accuracy->countedRows());
    }
  }
  if (!options.save.empty())
    std::printf("saved to '%s'\n", options.save.c_str());
}

void printJson(const TrainOptions &options, const TrainResult &result) {
  nlohmann::json json = {
      {"epochs", result.position.epoch},
      {"steps", result.position.totalSteps},
      {"batch", result.position.batch},
      {"loss", result.loss},
      {"last_loss", result.lastLoss},
      {"seconds", result.seconds},
      {"samples_per_second",
       result.seconds > 0
           ? double(result.steps * result.position.batch) / result.seconds
           : 0.0}};
  if (const auto &evaluation = result.evaluation) {
    nlohmann::json &eval = json["eval"] = {
        {"rows", evaluation->rows}, {"outputs", nlohmann::json::object()}};
    for (const auto &[name, mean] : evaluation->means)
      eval["outputs"][name] = mean;
    if (const auto &accuracy = evaluation->accuracy) {
      eval["right"] = accuracy->right();
      eval["counted"] = accuracy->counted();
      eval["accuracy"] = fraction(accuracy->right(), accuracy->counted());
      if (accuracy->manyPerRow()) {
        eval["right_rows"] = accuracy->rightRows();
        eval["counted_rows"] = accuracy->countedRows();
        eval["exact_match"] =
            fraction(accuracy->rightRows(), accuracy->countedRows());
      }
    }
  }
  if (!options.save.empty())
    json["saved"] = options.save;
  // NaN and infinity become null; a path that is not UTF-8 is replaced.
  std::printf("%s\n",
              json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                  .c_str());
}

} // namespace

void TrainOptions::declare(OptionTable &options) {
  model.declare(options);
  options.list("data", "NAME=@FILE", data,
               "the rows of an input; one for each input of 'step'");
  options.integer("epochs", "N", epochs, 1, 1000000000,
                  "passes over the data to do (resuming: a pass that was\n"
                  "begun is finished and counts as one)");
  options.integer("steps", "N", steps, 1, INT64_MAX / 2,
                  "steps to do, instead of --epochs");
  options.number("lr", "RATE", lr,
                 "learning rate: sets the state OPTIMIZER.lr");
  options.flag("no-shuffle", noShuffle,
               "take the rows in their order (default: a new order each\n"
               "epoch, which depends on the seed alone)");
  options.list("eval", "NAME=@FILE", eval,
               "the rows of an input of 'evaluate', run after training");
  options.text("accuracy", "LOGITS,LABELS", accuracy,
               "evaluation counts how often the largest score of output\n"
               "LOGITS is at the integer LABELS (negative: ignored)");
  options.integer("eval-every", "EPOCHS", evalEvery, 1, INT64_MAX,
                  "evaluate after each EPOCHS epochs as well");
  options.text("save", "F.safetensors", save,
               "where parameters and training state go at the end");
  options.integer("save-every", "STEPS", saveEvery, 1, INT64_MAX,
                  "save after each STEPS steps as well");
  options.text("resume", "F.safetensors", resume,
               "go on from what --save wrote, as if it had not stopped");
  options.text("log", "F.jsonl", log,
               "write the loss of every step as a line of JSON");
  options.integer("report-interval", "STEPS", reportInterval, 1, INT64_MAX,
                  "steps for each line of progress (default: a twentieth\n"
                  "of all; on a terminal one line that is rewritten)");
  options.flag("json", json, "print results as JSON");
}

Status TrainOptions::check() const {
  Problems problems;
  if (data.empty())
    problems.add("expected --data");
  if (epochs.has_value() == steps.has_value())
    problems.add("expected either --epochs or --steps");
  if (!accuracy.empty() && eval.empty())
    problems.add("--accuracy needs --eval");
  if (evalEvery && eval.empty())
    problems.add("--eval-every needs --eval");
  if (saveEvery && save.empty())
    problems.add("--save-every needs --save");
  if (!resume.empty() && !model.params.empty())
    problems.add("expected --resume or --params but got both");
  return problems.none() ? Status::success() : problems.status();
}

Status train(std::string_view tool, Words words) {
  TrainOptions trainOptions;
  OptionTable options("train X.tdm --data NAME=@FILE ... --epochs=N [options]",
                      description);
  trainOptions.declare(options);
  if (Status status = options.parse(words); !status)
    return status;
  if (options.helpAsked()) {
    std::fputs(options.help(tool).c_str(), stdout);
    return Status::success();
  }
  if (Status status = trainOptions.check(); !status)
    return status;
  auto result = train(trainOptions);
  if (!result)
    return std::move(result).status();
  if (trainOptions.json)
    printJson(trainOptions, *result);
  else
    printText(trainOptions, *result);
  return Status::success();
}

} // namespace tandem::commands
