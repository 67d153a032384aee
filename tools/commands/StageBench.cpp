//===- StageBench.cpp - how fast a model in stages is trained -------------===//
//
// A call is an update: batches go through all stages forward and back, and each
// stage updates its parameters. A rank computes, or it waits for others; the
// part of the time that ranks wait is the bubble.
//
//===----------------------------------------------------------------------===//
#include "tools/commands/StageBench.h"

#include "runtime/pipeline/PlannedMemory.h"
#include "runtime/pipeline/Schedule.h"
#include "tools/commands/Print.h"
#include "tools/commands/RankTimes.h"
#include "tools/commands/Stages.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace tandem::commands {
namespace {

/// What is printed.
struct StageTimes {
  const artifact::Manifest &first;
  std::string device, code;
  int threads = 0;
  int64_t batch = 1, batches = 1; ///< rows of one, and how many of them
  const Timing &timing;
  const RankTimes &ranks;
  std::optional<int64_t> planned; ///< the most memory of a rank

  /// The part of an update in which a rank computes nothing: the mean over
  /// ranks.
  double idle() const {
    double computed = 0;
    for (const RankTimes::One &one : ranks.ranks)
      computed += one.call - one.together;
    return 1 - computed / (timing.median() * double(ranks.ranks.size()));
  }
  double expectedIdle() const {
    return pipeline::bubbleOf(first.pipeline->stages, first.pipeline->ranks,
                              batches);
  }
  double rate() const { return double(batch * batches) / timing.median(); }
  std::string mesh() const {
    comm::Mesh mesh = {{"pipe", first.pipeline->ranks}};
    mesh.insert(mesh.end(), first.mesh.begin(), first.mesh.end());
    return comm::toString(mesh);
  }
};

std::string percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * part);
  return text;
}

void printJson(const StageTimes &of) {
  nlohmann::json json = {{"program", "stages"},
                         {"device", of.device},
                         {"code", of.code},
                         {"threads", of.threads},
                         {"batch", of.batch},
                         {"accumulate", of.batches},
                         {"warmup", of.timing.warmup},
                         {"steps", of.timing.sorted.size()},
                         {"median_ms", of.timing.median() * 1e3},
                         {"min_ms", of.timing.sorted.front() * 1e3},
                         {"p90_ms", of.timing.at(0.9) * 1e3},
                         {"samples_per_second", of.rate()},
                         {"actual_peak_bytes", of.ranks.peak()},
                         {"mesh", of.mesh()},
                         {"idle", of.idle()},
                         {"idle_of_equal_stages", of.expectedIdle()}};
  if (of.planned)
    json["planned_peak_bytes"] = *of.planned;
  of.ranks.addTo(json);
  std::printf("%s\n", json.dump(2).c_str());
}

void print(const StageTimes &of) {
  auto milliseconds = [](double seconds) {
    return roundedText(seconds * 1e3) + " ms";
  };
  std::vector<std::vector<std::string>> rows = {
      {"program",
       std::to_string(of.first.pipeline->stages) + " stages, an update"},
      {"device", of.device},
      {"code", of.code},
      {"threads", std::to_string(of.threads)},
      {"batch", std::to_string(of.batch)},
      {"batches an update", std::to_string(of.batches)},
      {"warm-up calls", std::to_string(of.timing.warmup)},
      {"timed calls", std::to_string(of.timing.sorted.size())},
      {"median", milliseconds(of.timing.median())},
      {"min", milliseconds(of.timing.sorted.front())},
      {"p90", milliseconds(of.timing.at(0.9))},
      {"samples/s", rateText(of.rate())},
      {"planned peak", of.planned ? bytesText(*of.planned) : "-"},
      {"actual peak", bytesText(of.ranks.peak())},
      {"mesh", of.mesh()},
      {"idle", percent(of.idle()) + ", and " + percent(of.expectedIdle()) +
                   " if all stages took equally long"}};
  for (std::vector<std::string> &row : of.ranks.rows())
    rows.push_back(std::move(row));
  printTable(rows, true);
}

/// What was planned that the rank with most memory allocates; nothing where
/// that is not stated: on a device, or where files of stages are elsewhere.
std::optional<int64_t> plannedPeak(const std::string &path,
                                   const runtime::Model &own, int64_t batches) {
  if (!own.device().isHost())
    return std::nullopt;
  auto stages = manifestsOfStages(path, own.manifest());
  if (!stages)
    return std::nullopt;
  int64_t most = 0;
  for (int64_t rank = 0; rank < own.manifest().pipeline->ranks; ++rank) {
    auto planned =
        pipeline::plannedMemory(*stages, rank, batches, own.threads());
    if (!planned)
      return std::nullopt;
    most = std::max(most, planned->bytes);
  }
  return most;
}

} // namespace

Status benchStages(const StageBenchOptions &options,
                   const artifact::ArtifactReader &first) {
  auto stages = openStages(options.model, first);
  if (!stages)
    return std::move(stages).status();
  bool updates = false;
  int madeUp = 0;
  for (runtime::Model &model : stages->models()) {
    updates |= model.hasProgram("update");
    auto count = completeVariables(model);
    if (!count)
      return std::move(count).status();
    madeUp += *count;
  }
  auto any = onAnyRank(updates);
  if (!any)
    return std::move(any).status();
  if (!*any)
    return Status::unsupported("'bench' times the training of stages, and "
                               "these have no optimizer: compile with "
                               "--optimizer");
  if (madeUp)
    warn(std::to_string(madeUp) +
         " parameters and states have no value; they are made up");
  StageInputs whole(first.manifest());
  auto inputs = completeInputs(options.inputs, whole.manifest, whole.program());
  if (!inputs)
    return std::move(inputs).status();
  std::vector<runtime::Argument> arguments;
  int64_t batch = 1;
  for (const NamedTensor &input : *inputs)
    arguments.push_back({input.name, &input.tensor});
  for (const artifact::Slot *slot : inputsOf(whole.program()))
    if (!slot->shape.empty()) {
      batch = slot->shape[0];
      break;
    }
  auto give = [&](int64_t) -> Result<std::span<const runtime::Argument>> {
    return std::span<const runtime::Argument>(arguments);
  };
  int64_t batches = options.batches.value_or(first.manifest().pipeline->stages);
  std::vector<double> losses;
  auto timing = timeCalls(options.repeats, [&]() -> Result<double> {
    if (Status status = stages->train(batches, true, give, losses); !status)
      return status;
    return stages->waited();
  });
  if (!timing)
    return std::move(timing).status();
  auto ranks = timesOfRanks(*timing, stages->peak());
  if (!ranks)
    return std::move(ranks).status();
  timing->sorted = ranks->sorted;
  if (!isFirstRank())
    return Status::success();
  const runtime::Model &own = stages->models().front();
  StageTimes times{first.manifest(),
                   toString(own.device()),
                   own.code(),
                   own.threads(),
                   batch,
                   batches,
                   *timing,
                   *ranks,
                   plannedPeak(options.model.artifact, own, batches)};
  options.json ? printJson(times) : print(times);
  return Status::success();
}

} // namespace tandem::commands
