//===- Train.cpp - `train`: options in, results out -----------------------===//
#include "runtime/io/Array.h"
#include "tools/commands/Commands.h"
#include "tools/commands/Config.h"
#include "tools/commands/Dashboard.h"
#include "tools/commands/HistogramWatch.h"
#include "tools/commands/Print.h"
#include "tools/commands/TrainEvaluation.h"

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace tandem::commands {
namespace {

double fraction(int64_t part, int64_t whole) {
  return double(part) / double(whole);
}

void printText(const TrainOptions &options, const TrainResult &result) {
  if (result.steps)
    std::printf("loss = %s\n", roundedText(result.loss).c_str());
  if (const auto &evaluation = result.evaluation) {
    for (const Mean &mean : evaluation->means)
      std::printf("eval.%s = %s%s\n", mean.name.c_str(),
                  roundedText(mean.value).c_str(),
                  mean.remark(evaluation->rows).c_str());
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
    for (const MetricValue &metric : evaluation->metrics)
      std::printf("eval.%s = %s\n", metric.name.c_str(),
                  roundedText(metric.value).c_str());
  }
  if (!result.best.empty())
    std::printf("best = %s\n", result.best.c_str());
  if (!options.save.empty())
    std::printf("saved to %s\n", io::inQuotes(options.save).c_str());
}

void printJson(const TrainOptions &options, const TrainResult &result) {
  nlohmann::json json = nlohmann::json::object();
  if (result.steps)
    json = {{"epochs", result.position.epoch},
            {"steps", result.position.totalSteps},
            {"batch", result.position.batch},
            {"loss", result.loss},
            {"last_loss", result.lastLoss},
            {"seconds", result.seconds},
            {"waited_seconds", result.waited},
            {"samples_per_second", result.stepping > 0
                                       ? double(result.rows) / result.stepping
                                       : 0.0}};
  if (const auto &evaluation = result.evaluation) {
    nlohmann::json &eval =
        json["eval"] = {{"rows", evaluation->rows},
                        {"outputs", nlohmann::json::object()},
                        {"rows_of_outputs", nlohmann::json::object()}};
    for (const Mean &mean : evaluation->means) {
      eval["outputs"][mean.name] = mean.value;
      // Null: of a batch that was filled up with repeated rows.
      auto &rows = eval["rows_of_outputs"][mean.name];
      if (!mean.isFilled)
        rows = mean.rows;
    }
    for (const MetricValue &metric : evaluation->metrics)
      eval["metrics"][metric.name] = metric.value;
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
  if (!result.best.empty())
    json["best"] = result.best;
  if (!options.save.empty())
    json["saved"] = options.save;
  // NaN and infinity become null; a path that is not UTF-8 is replaced.
  std::printf("%s\n",
              json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                  .c_str());
}

} // namespace

/// A checkpoint is not what these names say. Of files that are there Files says
/// more.
static Status checkSaved(std::string_view path) {
  if (::access(std::string(path).c_str(), F_OK) == 0 || io::isIndexName(path))
    return Status::success();
  for (std::string_view other :
       {".npy", ".npz", ".csv", ".json", ".jsonl", ".tdm", ".mlir", ".onnx",
        ".pt2", ".pt", ".pth"})
    if (path.ends_with(other))
      return Status::usage("option '--save' writes safetensors: expected a "
                           "name as 'F.safetensors', but got " +
                           io::inQuotes(path));
  return Status::success();
}

/// A rate is kept in f32; 0 is for experiments.
static Status checkRate(std::string_view text) {
  double rate = std::strtod(std::string(text).c_str(), nullptr);
  if (rate == 0 || rate >= std::numeric_limits<float>::min())
    return Status::success();
  return Status::usage("option '--lr' expected 0 or what is not 0 in f32, at "
                       "least 1.18e-38, but got " +
                       io::inQuotes(text));
}

/// Seconds, or a time whose units become smaller: 1d12h, 1h30m, 90s.
std::optional<double> secondsOf(std::string_view text) {
  constexpr std::string_view units = "dhms";
  double seconds = 0;
  size_t next = 0; // the largest unit that may follow
  while (!text.empty()) {
    size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
    double number = 0;
    auto [stop, error] =
        std::from_chars(text.data(), text.data() + end, number);
    char unit = end < text.size() ? text[end] : 's';
    size_t at = units.find(unit, next);
    if (error != std::errc() || stop != text.data() + end || at == units.npos)
      return std::nullopt;
    next = at + 1;
    seconds += number * (unit == 'm'   ? 60
                         : unit == 'h' ? 3600
                         : unit == 'd' ? 86400
                                       : 1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return seconds > 0 && seconds < 1e9 ? std::optional(seconds) : std::nullopt;
}

static Status checkTime(std::string_view text) {
  return secondsOf(text) ? Status::success()
                         : Status::usage("option '--max-time' expected "
                                         "seconds, or a time as 90m or "
                                         "1h30m, from larger to smaller units, "
                                         "but got " +
                                         io::inQuotes(text));
}

void TrainOptions::declare(OptionTable &options) {
  options
      .text("config", "F.toml", config,
            "a file with options by their names (epochs = 3); those of the "
            "command line win")
      .example("/dev/null");
  options
      .list("data", "NAME=@FILE", data,
            "the rows of an input; one for each input of 'step'")
      .keyed()
      .required("steps=0")
      .excludes("steps=0", "nothing is trained");
  options.integer("epochs", "N", epochs, 0, 1000000000,
                  "passes over the data to do (resuming: a pass that was begun "
                  "is finished and counts as one; 0 with --resume makes the "
                  "evaluation in which a training was interrupted)");
  options.integer("steps", "N", steps, 0, mostSteps,
                  "steps to do, instead of --epochs; 0 evaluates the rows of "
                  "--eval and changes nothing");
  options.exactlyOneOf({"epochs", "steps"});
  options.number("lr", "RATE", lr, "learning rate: sets the state OPTIMIZER.lr")
      .atLeast(0)
      .atMost(1e6)
      .check(checkRate)
      .excludes("steps=0", "nothing is trained")
      .byDefault("what is compiled in");
  options
      .integer("accumulate", "K", accumulate, 1, 1000000,
               "update once for K batches, by the mean of their gradients "
               "(compile --accumulate), and at the end of a pass by the mean "
               "of what is left; --steps counts batches")
      .excludes("steps=0", "nothing is trained")
      .byDefault("1");
  casts.declare(options);
  options
      .text("on-nan", "stop|skip|report", onNaN,
            "what to do where data or a loss is NaN or infinite: stop, and "
            "write nothing, or say so and go on; with skip, of an artifact "
            "that leaves out updates whose gradients are not finite "
            "(--clip=norm)")
      .oneOf({"stop", "skip", "report"})
      .byDefault("stop");
  anomaly.declare(options)
      .excludes("on-nan=report", "it stops at the first")
      .excludes("on-nan=skip", "it stops at the first")
      .excludes("steps=0", "nothing is trained");
  options
      .flag("no-shuffle", noShuffle,
            "take the rows in their order, not in a new one each epoch, "
            "which depends on the seed alone")
      .excludes("steps=0", "nothing is trained");
  options
      .integer("shuffle-buffer", "N", shuffleBuffer, 2, mostSteps,
               "shuffle by a buffer of N rows, of which each step takes one at "
               "random and fills its place with the next row, so that rows are "
               "read nearly in their order")
      .byDefault("all rows")
      .example("8")
      .excludes("no-shuffle", "nothing is shuffled")
      .excludes("weights", "rows are drawn")
      .excludes("steps=0", "nothing is trained");
  options
      .text("weights", "@FILE", weights,
            "draw the rows of each pass with replacement, each as often as its "
            "weight says, in place of taking each once")
      .check([](std::string_view text) {
        return text.starts_with('@') && text.size() > 1
                   ? Status::success()
                   : Status::usage(
                         "option '--weights' expected @FILE but got " +
                         io::inQuotes(text));
      })
      .example("@w.npy")
      .excludes("no-shuffle", "their order is drawn")
      .excludes("steps=0", "nothing is trained");
  options
      .text("shard", "INDEX/OF", shard,
            "take one of OF equally large shares of each pass alone, those of "
            "other processes having the rest of it; INDEX from 0 on")
      .check([](std::string_view text) {
        return RowShare::parse(text).status().in("option '--shard'");
      })
      .example("0/2")
      .excludes("steps=0", "nothing is trained");
  options
      .list("augment", "NAME:flip,crop=N", augment,
            "change the images of an input in each pass: a random half of them "
            "is mirrored left to right, and each is moved by up to N pixels, "
            "with zeros behind it; what happens follows from seed, pass and "
            "row")
      .check([](std::string_view text) {
        return Augmentation::parse(text).status();
      })
      .example("x:flip,crop=1")
      .excludes("steps=0", "nothing is trained");
  options
      .text("save", "F.safetensors", save,
            "where parameters and training state go at the end; a name as "
            "F.safetensors.index.json: in a file for each rank, which the "
            "index lists")
      .check(checkSaved)
      .excludes("steps=0", "nothing is trained");
  options
      .integer("save-every", "STEPS", saveEvery, 1, INT64_MAX,
               "save after each STEPS steps as well")
      .needs("save");
  options
      .integer("keep", "N", keep, 1, 1000000,
               "keep the last N checkpoints of --save-every as "
               "F-STEP.safetensors as well")
      .needs("save-every");
  options
      .text("max-time", "TIME", maxTime,
            "stop after the step in which TIME is over, save and evaluate: "
            "seconds, or a time as 90m or 1h30m")
      .check(checkTime)
      .example("1h30m")
      .excludes("steps=0", "nothing is trained");
  options
      .text(
          "resume", "F.safetensors", resume,
          "go on from what --save wrote, as if it had not stopped: a file, an "
          "index, or the folder of one")
      .excludes("params")
      .excludes("steps=0", "--params reads parameters alone");
  options
      .text("init-from", "F.safetensors", initFrom,
            "begin with the parameters and states of a file that have the "
            "name and the shape of the model's, and say which do not")
      .excludes("params")
      .excludes("resume")
      .excludes("steps=0", "--params reads parameters");
  options.group("evaluation");
  options
      .list("eval", "NAME=@FILE", eval,
            "the rows of an input of 'evaluate', run after training")
      .keyed();
  options
      .text("accuracy", "LOGITS,LABELS[,AXIS]", accuracy,
            "count how often the largest score of output LOGITS is at the "
            "integer LABELS (negative: ignored); scores are on the last axis "
            "or on axis 1, as the labels' shape says")
      .needs("eval");
  options
      .list(
          "metric", "[NAME=]KIND:OUTPUT[,ARRAY[,AXIS]]", metrics,
          "another number of an evaluation: topK (as top5), f1, auc or iou of "
          "scores and labels, mae or r2 of numbers, perplexity of a loss")
      .check([](std::string_view text) { return Metric::parse(text).status(); })
      .example("perplexity:loss")
      .needs("eval");
  options
      .integer("eval-every", "EPOCHS", evalEvery, 1, INT64_MAX,
               "evaluate after each EPOCHS epochs as well")
      .needs("eval")
      .excludes("steps=0", "nothing is trained");
  options
      .text("best", "[min:|max:]METRIC", best,
            "the number of an evaluation by which --save-best and --patience "
            "compare: an output, accuracy, exact_match or a --metric; "
            "accuracies and most metrics are "
            "better the larger they are, others the smaller")
      .needs("eval")
      .excludes("steps=0", "nothing is trained")
      .byDefault("the accuracy if it is counted, else the loss");
  options
      .text("save-best", "F.safetensors", saveBest,
            "where parameters and training state go after each evaluation "
            "that is the best one yet")
      .check([](std::string_view path) { return checkSaved(path); })
      .needs("eval")
      .excludes("steps=0", "nothing is trained");
  options
      .integer("patience", "N", patience, 1, 1000000000,
               "stop after N evaluations that were not better than the best")
      .needs("eval-every");
  model.declareAverage(options).needs("eval", "training reads no average");
  options.group("what is said");
  options
      .text("log", "F.jsonl", log,
            "write epoch, step, loss, learning rate and seconds of every "
            "step, and every evaluation, as a line of JSON; to a name as "
            "F.csv, as a line of a table")
      .excludes("steps=0", "nothing is trained");
  options
      .text("tensorboard", "DIR", tensorboard,
            "write the same as events of TensorBoard, in a new file of this "
            "folder")
      .excludes("steps=0", "nothing is trained");
  options
      .optionalText("dashboard", "127.0.0.1:PORT", dashboard, dashboardAddress,
                    "show loss, numbers of evaluations, learning rate, "
                    "throughput and memory in a browser on this machine, at an "
                    "address that is said at the beginning; without a port, at "
                    "one that is free")
      .check(checkDashboardAddress)
      .example("127.0.0.1:0")
      .excludes("sandbox", "it leaves no network")
      .excludes("steps=0", "nothing is trained");
  options
      .text("histograms", "REGEX", histograms,
            "histograms of the parameters (param/NAME), gradients (grad/NAME) "
            "and activations (activation/NAME: outputs, and what the forward "
            "saves) of whose names the expression matches a part, in --log, "
            "--tensorboard and --dashboard; a step with them also runs forward "
            "and backward by themselves")
      .check(checkHistograms)
      .example("^grad/")
      .needs("log", "they are written there, or shown in a browser")
      .orNeeds("tensorboard")
      .orNeeds("dashboard")
      .excludes("steps=0", "nothing is trained");
  options
      .integer("histograms-every", "STEPS", histogramsEvery, 1, INT64_MAX,
               "of the first step, and of each that STEPS divides")
      .needs("histograms")
      .byDefault("100");
  options
      .text("plot", "F.svg", plot,
            "draw the log at the end: losses, numbers of evaluations, and the "
            "learning rate over the steps")
      .check([](std::string_view path) {
        return path.ends_with(".svg")
                   ? Status::success()
                   : Status::usage("option '--plot' draws SVG: expected a name "
                                   "as 'F.svg' but got " +
                                   io::inQuotes(path));
      })
      .example("curve.svg")
      .needs("log", "the picture is that of all of its steps");
  options
      .integer("report-interval", "STEPS", reportInterval, 1, INT64_MAX,
               "steps for each line of progress")
      .excludes("steps=0", "nothing is trained")
      .byDefault("a twentieth of all; on a terminal one line that is "
                 "rewritten");
  options
      .flag("tui", tui,
            "draw loss, numbers of evaluations, learning rate, throughput, "
            "memory and the time that is left on the terminal, in place of the "
            "line of progress")
      .excludes("report-interval", "it shows every step")
      .excludes("steps=0", "nothing is trained");
  options.flag("json", json, "print results as JSON");
  model.declare(options);
  options.finally([this, &options] {
    resolved = configOf(options);
    if (!resolved.empty())
      resolved = std::string(io::resolvedOptions) + "train\n" + resolved;
    else if (!resolvedPath().empty())
      note("the options are not kept beside the checkpoint: they are not in "
           "UTF-8, or take 1 MiB");
    return Status::success();
  });
}

std::string TrainOptions::resolvedPath() const {
  const std::string &path = save.empty() ? saveBest : save;
  if (path.empty() || io::fileKind(path) == io::FileKind::Special)
    return "";
  return path + ".toml";
}

void TrainOptions::declare(Files &files) const {
  using io::FileKind;
  model.declare(files);
  files.reads("--config", config);
  files.reads("--resume", resume);
  files.reads("--init-from", initFrom);
  files.readsArguments("--data", data);
  files.readsArguments("--eval", eval);
  if (!weights.empty())
    files.readsArguments("--weights", {"weights=" + weights});
  files.writes({"--save",
                save,
                {io::isIndexName(save) ? FileKind::CheckpointIndex
                                       : FileKind::Checkpoint},
                "--resume"});
  if (keep)
    files.keeps("--keep", save, "--resume");
  files.writes({"--save-best",
                saveBest,
                {io::isIndexName(saveBest) ? FileKind::CheckpointIndex
                                           : FileKind::Checkpoint},
                "--resume"});
  if (!resolved.empty())
    files.writes({"--save", resolvedPath(), {FileKind::Options}, "--config"});
  files.writes({"--plot", plot, {FileKind::Svg}});
  files.writesNewFiles(tensorboard);
  files.writes({"--log",
                log,
                {log.ends_with(".csv") ? FileKind::Csv : FileKind::Log},
                "",
                true});
}

namespace {

Status trainAndPrint(const TrainOptions &options, const Tool &tool) {
  // Who watches may leave; what is trained is kept all the same.
  std::signal(SIGPIPE, SIG_IGN);
  bool trains = options.steps.value_or(1) != 0;
  if (!trains && options.eval.empty())
    return Status::usage("--steps=0 trains nothing: expected --eval with rows "
                         "to evaluate, or steps");
  if (options.epochs == 0 && (options.resume.empty() || options.eval.empty()))
    return Status::usage("--epochs=0 trains nothing: expected --resume of a "
                         "training and --eval with rows to evaluate, or "
                         "passes");
  if (!options.plot.empty() &&
      io::fileKind(options.log) == io::FileKind::Special)
    return Status::usage("--plot needs a --log that can be read again, but " +
                         io::inQuotes(options.log) + " is no file");
  if (options.keep && io::isIndexName(options.save))
    return Status::usage("--keep needs a checkpoint in one file: an index has "
                         "files of its own");
  auto result =
      trains ? train(options, tool.locateAnomaly) : evaluateAlone(options);
  if (!result)
    return std::move(result).status();
  if (!isFirstRank())
    return Status::success();
  if (options.json)
    printJson(options, *result);
  else
    printText(options, *result);
  return Status::success();
}

} // namespace

Command trainCommand() {
  return commandOf<trainAndPrint>("train",
                                  "train the model of an artifact on data");
}

} // namespace tandem::commands
