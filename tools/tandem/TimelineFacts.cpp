//===- TimelineFacts.cpp - when what of a step is expected to run ---------===//
//
// Simulated (tools/simulate) on the typical machine of the target's kind: one
// batch, ranks that are connected as that machine's are.
//
//===----------------------------------------------------------------------===//
#include "tools/tandem/TimelineFacts.h"

#include "runtime/artifact/StageFiles.h"
#include "tools/simulate/Pictures.h"
#include "tools/tandem/ReportFacts.h"
#include "tools/tandem/Simulation.h"

#include <cmath>

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;
namespace am = tandem::artifact;

/// Where several machines are needed for the ranks, they are connected by this.
static constexpr const char *kBetween = "ib400";

/// All stages of a pipeline, of which `manifest` is one.
static Result<std::vector<am::Manifest>> stagesOf(const am::Manifest &manifest,
                                                  const std::string &path) {
  std::vector<am::Manifest> stages;
  if (!manifest.pipeline) {
    stages.push_back(manifest);
    return stages;
  }
  if (path.empty() || manifest.pipeline->stage != 0)
    return Status::unsupported(
        "this is one stage of a pipeline: 'tandem simulate' of the first "
        "stage's artifact has the timeline of all");
  for (int64_t i = 0; i < manifest.pipeline->stages; ++i) {
    auto stage = am::ArtifactReader::open(am::stagePath(path, i));
    if (!stage)
      return stage.status();
    stages.push_back(stage->manifest());
  }
  return stages;
}

static Result<Simulation> simulated(const am::Manifest &manifest,
                                    const std::string &path) {
  auto stages = stagesOf(manifest, path);
  if (!stages)
    return stages.status();
  SimulationOptions options;
  options.device = typicalDevice(manifest.target).name;
  auto alone = simulateManifests(*stages, options);
  if (alone || stages->front().mesh.empty())
    return alone;
  auto machine = machineOf(options);
  if (!machine)
    return machine.status();
  options.links = machine->inside.name + "+" + kBetween;
  auto several = simulateManifests(*std::move(stages), options);
  return several ? std::move(several) : std::move(alone);
}

/// In nanoseconds, which are short as text.
static int64_t nanos(double seconds) { return std::llround(seconds * 1e9); }

namespace {
/// Each text once.
class Names {
public:
  size_t of(std::string_view name) {
    auto [found, isNew] = places.try_emplace(std::string(name), list.size());
    if (isNew)
      list.push_back(found->first);
    return found->second;
  }
  Json list = Json::array();

private:
  std::map<std::string, size_t> places;
};
} // namespace

static Json streamsJson(const simulate::RankTasks &tasks, Names &names) {
  Json streams = Json::array();
  for (const auto &[stream, name] : simulate::streamsOf(tasks)) {
    Json rows = Json::array();
    for (const simulate::Task &task : tasks) {
      if (task.stream != stream)
        continue;
      Json row = {names.of(task.name), names.of(simulate::spelling(task.spent)),
                  nanos(task.start), nanos(task.seconds),
                  std::llround(task.bytes)};
      for (int number : task.after) {
        const simulate::Task &other = tasks[size_t(number)];
        if (other.stream != stream)
          row.push_back(names.of(other.name));
      }
      rows.push_back(std::move(row));
    }
    streams.push_back({{"name", name}, {"tasks", std::move(rows)}});
  }
  return streams;
}

static Json rankJson(const simulate::StepResult &step, size_t rank,
                     Names &names) {
  const simulate::RankResult &of = step.ranks[rank];
  const simulate::RankTimes &times = of.times;
  Json exchanges = Json::array();
  for (const simulate::ExchangeSum &one : of.exchanges)
    exchanges.push_back({{"what", one.what},
                         {"algorithm", std::string(one.algorithm)},
                         {"ranks", one.group.ranks},
                         {"count", one.count},
                         {"bytes", std::llround(one.bytes)},
                         {"seconds", one.seconds}});
  return {{"name", simulate::nameOfRank(step, rank)},
          {"arithmetic", times.arithmetic},
          {"memory", times.memory},
          {"launches", times.launches},
          {"exposed", times.exposed},
          {"bubble", times.bubble},
          {"exchanges", std::move(exchanges)},
          {"streams", streamsJson(step.tasks[rank], names)}};
}

Json commands::timelineFacts(const am::ArtifactReader &reader,
                             const std::string &path) {
  Json all = Json::array();
  for (const am::Manifest &manifest : reader.manifests()) {
    auto step = simulated(manifest, path);
    if (!step) {
      all.push_back({{"problem", step.status().message()}});
      continue;
    }
    Names names;
    Json ranks = Json::array();
    for (size_t i = 0; i < step->step.ranks.size(); ++i)
      ranks.push_back(rankJson(step->step, i, names));
    all.push_back({{"device", step->machine.device.name},
                   {"all_ranks", step->ranks()},
                   {"seconds", step->step.seconds},
                   {"ranks", std::move(ranks)},
                   {"names", std::move(names.list)}});
  }
  return all;
}
