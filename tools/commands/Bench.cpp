//===- Bench.cpp - `bench`: how fast a program is -------------------------===//
//
// Warm-up calls, then timed ones, one by one (Timing.h).
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/PlannedMemory.h"
#include "runtime/comm/Shard.h"
#include "tools/commands/Commands.h"
#include "tools/commands/KernelTimes.h"
#include "tools/commands/Print.h"
#include "tools/commands/Profile.h"
#include "tools/commands/RankTimes.h"
#include "tools/commands/StageBench.h"
#include "tools/commands/Timing.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace tandem::commands {
namespace {

using artifact::Program;
using runtime::Model;

struct BenchOptions {
  static constexpr std::string_view
      usage = "bench X.tdm [options]",
      description =
          "Times a program. Inputs and parameters that are not given are made "
          "up: floating point uniform in [-1, 1), integers zero or in the "
          "range that the "
          "model states.";

  ModelOptions model;
  std::string program;
  std::vector<std::string> inputs;
  Repeats repeats;
  std::optional<int64_t> accumulate;
  bool json = false, kernels = false;

  void declare(OptionTable &options);
};

/// What was planned to be allocated; nothing where that is not stated: on a
/// device, and for other programs than a whole step.
std::optional<int64_t> plannedPeak(const Model &model, const Program &program,
                                   int64_t batches) {
  const artifact::Manifest &manifest = model.manifest();
  if (!manifest.stepMemory || program.name != "step" ||
      !model.device().isHost())
    return std::nullopt;
  std::vector<const Program *> programs = {&program};
  if (batches > 1)
    programs.push_back(manifest.findProgram("accumulate"));
  return artifact::plannedOnHost(manifest, *manifest.stepMemory, programs,
                                 model.threads());
}

/// How many rows a call has, of all ranks.
int64_t batchOf(const Model &model, const Program &program) {
  for (const artifact::Slot *slot : inputsOf(program)) {
    const artifact::Value *value = model.manifest().findValue(slot->name);
    if (!slot->shape.empty())
      return value ? comm::shardOf(model.manifest().mesh, *value, 0).whole[0]
                   : slot->shape[0];
  }
  return 1;
}

/// `ranks`: of several, else null; `timing` is then that of all.
void print(const BenchOptions &options, const Model &model,
           const Program &program, const Timing &timing,
           const RankTimes *ranks) {
  double median = timing.median();
  int64_t batch = batchOf(model, program);
  int64_t batches = options.accumulate.value_or(1);
  double rate = double(batch * batches) / median;
  int64_t peak = ranks ? ranks->peak() : model.memory().peak;
  auto planned = plannedPeak(model, program, batches);
  if (options.json) {
    nlohmann::json json = {{"program", program.name},
                           {"device", toString(model.device())},
                           {"code", model.code()},
                           {"threads", model.threads()},
                           {"batch", batch},
                           {"warmup", timing.warmup},
                           {"steps", timing.sorted.size()},
                           {"median_ms", median * 1e3},
                           {"min_ms", timing.sorted.front() * 1e3},
                           {"p90_ms", timing.at(0.9) * 1e3},
                           {"samples_per_second", rate},
                           {"arena_bytes", program.arenaBytes},
                           {"actual_peak_bytes", peak},
                           {"peak_rss_bytes", residentPeak()}};
    if (options.accumulate)
      json["accumulate"] = batches;
    if (planned)
      json["planned_peak_bytes"] = *planned;
    if (ranks) {
      json["mesh"] = comm::toString(model.manifest().mesh);
      ranks->addTo(json);
    }
    std::printf("%s\n", json.dump(2).c_str());
    return;
  }
  auto milliseconds = [](double seconds) {
    return roundedText(seconds * 1e3) + " ms";
  };
  std::vector<std::vector<std::string>> rows = {
      {"program", program.name},
      {"device", toString(model.device())},
      {"code", model.code()},
      {"threads", std::to_string(model.threads())},
      {"batch", std::to_string(batch)},
      {"batches an update", std::to_string(batches)},
      {"warm-up calls", std::to_string(timing.warmup)},
      {"timed calls", std::to_string(timing.sorted.size())},
      {"median", milliseconds(median)},
      {"min", milliseconds(timing.sorted.front())},
      {"p90", milliseconds(timing.at(0.9))},
      {"samples/s", rateText(rate)},
      {"arena", bytesText(program.arenaBytes)}};
  if (planned)
    rows.push_back({"planned peak", bytesText(*planned)});
  rows.push_back({"actual peak", bytesText(peak)});
  if (ranks) {
    rows.push_back({"mesh", comm::toString(model.manifest().mesh)});
    for (std::vector<std::string> &row : ranks->rows())
      rows.push_back(std::move(row));
  }
  printTable(rows, true);
}

void BenchOptions::declare(OptionTable &options) {
  options
      .text("program", "NAME", program,
            "the program: step, evaluate, forward or prepare")
      .byDefault("the first of step, evaluate and forward that there is");
  options.list("input", "NAME=@FILE", inputs, "an input").keyed();
  options
      .integer("warmup", "N", repeats.warmup, 0, INT64_MAX,
               "calls before timing")
      .byDefault("3");
  options.integer("steps", "N", repeats.steps, 1, 100000000, "calls to time")
      .excludes("seconds");
  options.number("seconds", "S", repeats.seconds, "time calls for S seconds")
      .above(0)
      .atMost(1e6)
      .byDefault("3, without --steps");
  options
      .flag("kernels", kernels,
            "time each kernel, and compare it with what this machine can do, "
            "measured beside it")
      .excludes("profile", "what --kernels runs is not profiled");
  options
      .integer("accumulate", "K", accumulate, 1, 1 << 16,
               "batches for one update, of a model in stages, or one that was "
               "compiled with --accumulate")
      .excludes("kernels")
      .byDefault("as many as there are stages, or 1");
  options.flag("json", json, "print results as JSON");
  model.declare(options);
}

/// Of a model in stages.
Status benchOfStages(const BenchOptions &bench,
                     const artifact::ArtifactReader &first) {
  if (!bench.program.empty() || bench.kernels)
    return Status::unsupported(
        std::string(bench.kernels ? "--kernels" : "--program") +
        " is of one model; of stages whole updates are timed");
  return benchStages(
      {bench.model, bench.inputs, bench.repeats, bench.accumulate, bench.json},
      first);
}

Status bench(const BenchOptions &bench) {
  Files files;
  bench.model.declare(files);
  files.readsArguments("--input", bench.inputs);
  if (Status status = bench.model.check(files); !status)
    return status;
  if (auto reader = artifact::ArtifactReader::open(bench.model.artifact);
      reader && reader->manifest().pipeline)
    return benchOfStages(bench, *reader);
  auto model = bench.model.load();
  if (!model)
    return std::move(model).status();
  auto program = chooseProgram(model->manifest(), bench.program,
                               {"step", "evaluate", "forward"});
  if (!program)
    return std::move(program).status();
  if (bench.accumulate && ((*program)->name != "step" ||
                           !model->manifest().findProgram("accumulate")))
    return Status::usage(
        "--accumulate has no effect: " + io::inQuotes(bench.model.artifact) +
        " is no model in stages, and has no programs 'step' and 'accumulate', "
        "which 'compile --accumulate' makes");
  auto madeUp = completeVariables(*model);
  if (!madeUp)
    return std::move(madeUp).status();
  if (*madeUp)
    warn(std::to_string(*madeUp) +
         " parameters and states have no value; they are made up");
  auto inputs = completeInputs(bench.inputs, *model, **program);
  if (!inputs)
    return std::move(inputs).status();
  if (bench.kernels)
    return benchKernels(bench.repeats, *model, **program, *inputs, bench.json);
  Profile profile;
  if (Status status = profile.start(bench.model, *model); !status)
    return status;
  auto timing = timeCalls(bench.repeats, *model, **program, *inputs, nullptr,
                          bench.accumulate.value_or(1));
  if (!timing)
    return std::move(timing).status();
  if (Status status = profile.stop(); !status)
    return status;
  if (rankCount() == 1) {
    print(bench, *model, **program, *timing, nullptr);
    return Status::success();
  }
  auto ranks = timesOfRanks(*timing, model->memory().peak);
  if (!ranks)
    return std::move(ranks).status();
  timing->sorted = ranks->sorted;
  if (isFirstRank())
    print(bench, *model, **program, *timing, &*ranks);
  return Status::success();
}

} // namespace

Command benchCommand() {
  return commandOf<bench>("bench", "time a program of an artifact");
}

} // namespace tandem::commands
