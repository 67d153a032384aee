//===- ProfileFacts.cpp - what a profile found, as JSON -------------------===//
#include "tools/tandem/ProfileFacts.h"

#include "tools/tandem/ReportFacts.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace tandem;
using namespace tandem::commands;
using Json = nlohmann::ordered_json;

/// What launches are for; empty of copies, collectives and what has no pass.
static constexpr const char *kPasses[] = {"forward", "recompute", "backward",
                                          "update", ""};

static Json json(const Samples &samples) {
  return {{"median", samples.median()},
          {"low", samples.low()},
          {"high", samples.high()}};
}

/// Of each call the sum over launches.
static Samples sumOf(const Measured &measured,
                     const std::vector<size_t> &launches) {
  std::vector<double> sums(measured.timed.values().size());
  for (size_t launch : launches) {
    const auto &values = measured.launches[launch].seconds.values();
    for (size_t call = 0; call < std::min(sums.size(), values.size()); ++call)
      sums[call] += values[call];
  }
  Samples samples;
  for (double sum : sums)
    samples.add(sum);
  return samples;
}

namespace {
class ProfileWriter {
public:
  ProfileWriter(const Profiled &profiled, const Measured &measured)
      : profiled(profiled), measured(measured),
        manifest(profiled.model.manifest()), program(profiled.program) {}

  /// `summary` is the manifest's (docs/INSPECT_JSON.md).
  Json make(const Json &summary) {
    Json json = {{"kind", "profile"},
                 {"version", 2},
                 {"source", profiled.source},
                 {"program", program.name},
                 {"device", toString(profiled.model.device())},
                 {"code", profiled.model.code()},
                 {"threads", profiled.model.threads()},
                 {"calls", measured.timed.values().size()},
                 {"seconds", ::json(measured.timed)},
                 {"unwatched_seconds", ::json(measured.unwatched)},
                 {"overhead", overhead()},
                 {"machine", summary["machine"]["name"]}};
    // Of an emulated device these are the emulator's.
    if (profiled.model.device().kind == runtime::DeviceKind::CudaEmu)
      json["emulated"] = true;
    std::vector<size_t> all(measured.launches.size());
    std::iota(all.begin(), all.end(), size_t(0));
    json["launches_seconds"] = ::json(sumOf(measured, all));
    addRoofs(json);
    addCounters(json);
    addKernels(json, summary["kernels"]);
    addLaunches(json);
    addPlaces(json);
    return json;
  }

private:
  double overhead() const {
    double without = measured.unwatched.median();
    return without > 0 ? measured.timed.median() / without - 1 : 0;
  }

  void addRoofs(Json &json) const {
    if (!measured.roofs) {
      json["roofs"] = nullptr;
      return;
    }
    Json roofs = {{"bytes", measured.roofs->bandwidth()}};
    for (artifact::DType type : measured.roofs->dtypes())
      roofs["flops_" + std::string(spelling(type))] =
          measured.roofs->flops(type);
    json["roofs"] = std::move(roofs);
  }

  bool counts(size_t kind) const {
    return measured.counters && measured.counters->missing(kind).empty();
  }

  void addCounters(Json &json) const {
    Json counted = Json::array(), missing = Json::object();
    for (size_t kind = 0; kind < PerfCounters::kKinds; ++kind) {
      std::string name(PerfCounters::name(kind));
      if (counts(kind))
        counted.push_back(name);
      else
        missing[name] = measured.counters
                            ? measured.counters->missing(kind)
                            : "a device has none that Tandem reads";
    }
    json["counters"] = {{"counted", std::move(counted)},
                        {"missing", std::move(missing)}};
  }

  Json countsOf(const std::vector<size_t> &launches) const {
    Json json = Json::object();
    for (size_t kind = 0; kind < PerfCounters::kKinds; ++kind) {
      if (!counts(kind))
        continue;
      double sum = 0;
      for (size_t launch : launches)
        if (!measured.launches[launch].counts.empty())
          sum += measured.launches[launch].counts[kind].median();
      json[std::string(PerfCounters::name(kind))] = sum;
    }
    return json;
  }

  /// Seconds in which threads waited while the launches ran, of all together.
  double waitedOf(const std::vector<size_t> &launches) const {
    double waited = 0;
    for (size_t launch : launches) {
      const LaunchSamples &samples = measured.launches[launch];
      for (const Samples &thread : samples.threads)
        waited += std::max(0.0, samples.seconds.median() - thread.median());
    }
    return waited;
  }

  std::vector<double> medians() const {
    std::vector<double> list;
    for (const LaunchSamples &launch : measured.launches)
      list.push_back(launch.seconds.median());
    return list;
  }

  void addKernels(Json &json, const Json &predictions) const {
    auto rows = kernelRows(manifest, program, medians(),
                           measured.roofs ? &*measured.roofs : nullptr);
    // A profile asks where the time goes, not first what is lost of it.
    std::sort(rows.begin(), rows.end(),
              [](const KernelRow &a, const KernelRow &b) {
                return std::pair(b.seconds, a.kernel) <
                       std::pair(a.seconds, b.kernel);
              });
    Json kernels = Json::array();
    double seconds = 0, roof = 0, predicted = 0;
    for (const KernelRow &row : rows) {
      const Json &tables =
          predictions[size_t(row.kernel - manifest.kernels.data())];
      double expected = double(tables["seconds"]) * row.count();
      Json one = {{"kernel", row.kernel->symbol},
                  {"class", row.kernel->kind},
                  {"computes", describe(*row.kernel)},
                  {"dtype", spelling(row.kernel->dtype)},
                  {"launches", row.places},
                  {"seconds", ::json(sumOf(measured, row.places))},
                  {"flops", row.flops()},
                  {"bytes", row.bytes()},
                  {"predicted_seconds", expected},
                  {"bound", tables["bound"]}};
      if (double taken = one["seconds"]["median"]; taken > 0)
        one["bytes_per_second"] = double(row.bytes()) / taken;
      if (measured.roofs) {
        one["roof_seconds"] = row.roof;
        one["waited_seconds"] = waitedOf(row.places);
      }
      if (Json counts = countsOf(row.places); !counts.empty())
        one["counts"] = std::move(counts);
      kernels.push_back(std::move(one));
      seconds += row.seconds;
      roof += row.roof;
      predicted += expected;
    }
    json["kernels_seconds"] = seconds;
    if (measured.roofs)
      json["roof_seconds"] = roof;
    json["predicted_seconds"] = predicted;
    json["kernels"] = std::move(kernels);
  }

  std::string kindOf(const artifact::Launch &launch) const {
    return launch.hasKernel() ? manifest.kernels[size_t(launch.kernel)].symbol
           : launch.isCopy()  ? "copy"
                              : "collective";
  }

  void addLaunches(Json &json) {
    Json list = Json::array();
    for (size_t i = 0; i < program.launches.size(); ++i) {
      const LaunchSamples &samples = measured.launches[i];
      Json one = {{"kernel", kindOf(program.launches[i])},
                  {"seconds", ::json(samples.seconds)}};
      if (!samples.threads.empty()) {
        Json threads = Json::array();
        for (const Samples &thread : samples.threads)
          threads.push_back(thread.median());
        one["threads"] = std::move(threads);
      }
      if (i < profiled.planned.size())
        for (const char *key : {"pass", "path", "where", "gradient_of"})
          if (profiled.planned[i].contains(key))
            one[key] = profiled.planned[i][key];
      list.push_back(std::move(one));
    }
    json["launches"] = std::move(list);
  }

  /// Sums by the passes that launches are of.
  static Json sumsByPass(const Json &launches) {
    std::map<std::string, std::pair<size_t, double>> sums;
    double whole = 0;
    for (const Json &launch : launches) {
      auto &[count, seconds] = sums[launch.value("pass", std::string())];
      ++count;
      seconds += double(launch["seconds"]["median"]);
      whole += double(launch["seconds"]["median"]);
    }
    Json json = Json::array();
    for (const char *pass : kPasses)
      if (auto found = sums.find(pass); found != sums.end())
        json.push_back(
            {{"pass", pass},
             {"launches", found->second.first},
             {"seconds", found->second.second},
             {"share", whole > 0 ? found->second.second / whole : 0}});
    return json;
  }

  /// Sums by where in the model kernels are from.
  static Json sumsBy(const char *key, const Json &launches) {
    struct Sums {
      double forward = 0, recompute = 0, backward = 0, update = 0;
      double all() const { return forward + recompute + backward + update; }
    };
    std::map<std::string, Sums> sums;
    for (const Json &launch : launches) {
      Sums &sum = sums[launch.value(key, std::string())];
      std::string pass = launch.value("pass", std::string());
      (pass == "recompute"  ? sum.recompute
       : pass == "backward" ? sum.backward
       : pass == "update"   ? sum.update
                          : sum.forward) += double(launch["seconds"]["median"]);
    }
    std::vector<std::pair<std::string, Sums>> list(sums.begin(), sums.end());
    auto before = [](const auto &a, const auto &b) {
      return std::pair(b.second.all(), a.first) <
             std::pair(a.second.all(), b.first);
    };
    std::sort(list.begin(), list.end(), before);
    Json json = Json::array();
    for (const auto &[name, sum] : list)
      json.push_back({{key, name},
                      {"forward_seconds", sum.forward},
                      {"recompute_seconds", sum.recompute},
                      {"gradient_seconds", sum.backward},
                      {"update_seconds", sum.update}});
    return json;
  }

  void addPlaces(Json &json) const {
    if (profiled.planned.is_null()) {
      json["places"] = "artifacts, and dumps past the phase 'plan', do not say "
                       "where in the model kernels are from: profile the "
                       "model, with the options that compiled it";
      return;
    }
    Json passes = sumsByPass(json["launches"]),
         modules = sumsBy("path", json["launches"]),
         lines = sumsBy("where", json["launches"]);
    json["passes"] = std::move(passes);
    json["modules"] = std::move(modules);
    json["lines"] = std::move(lines);
  }

  const Profiled &profiled;
  const Measured &measured;
  const artifact::Manifest &manifest;
  const artifact::Program &program;
};
} // namespace

Result<Json> commands::profileFacts(const Profiled &profiled,
                                    const Measured &measured) {
  const artifact::ArtifactReader &reader = profiled.model.reader();
  auto facts = reportFacts(reader, Json());
  if (!facts)
    return facts;
  const auto &manifests = reader.manifests();
  size_t chosen = 0;
  while (chosen + 1 < manifests.size() &&
         manifests[chosen].target != profiled.model.manifest().target)
    ++chosen;
  return ProfileWriter(profiled, measured).make((*facts)["summaries"][chosen]);
}
