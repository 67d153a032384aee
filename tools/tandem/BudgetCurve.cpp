//===- BudgetCurve.cpp - memory against time over all budgets -------------===//
#include "tools/tandem/BudgetCurve.h"
#include "tools/tandem/ReportFacts.h"
#include "tools/tandem/Session.h"

#include "passes/partition/BudgetSpec.h"
#include "runtime/model/Model.h"
#include "tools/commands/Checkpoint.h"
#include "tools/commands/Print.h"
#include "tools/commands/Timing.h"

#include "nlohmann/json.hpp"

#include <algorithm>
#include <map>

using namespace tandem;
using namespace tandem::commands;
namespace am = tandem::artifact;

static constexpr int kSteps = 10, kRounds = 3;

static CurvePoint describe(double budget, const am::Manifest &manifest) {
  CurvePoint point;
  point.budget = budget;
  if (manifest.stepMemory)
    point.peak = manifest.stepMemory->peak();
  if (const am::Program *forward = manifest.findProgram("forward"))
    for (const am::Slot &slot : forward->results)
      if (slot.role == am::Role::Saved && !slot.alias)
        point.saved += am::tensorBytes(slot.dtype, slot.shape).value_or(0);
  if (manifest.partition)
    point.repeated = static_cast<int64_t>(manifest.partition->repeated.size());
  point.predicted = predictedStep(manifest);
  return point;
}

namespace {
/// The artifacts of all budgets: several of them are often the same bytes.
struct Plans {
  std::vector<std::vector<char>> artifacts;
  std::vector<size_t> ofPoint;

  void add(std::vector<char> bytes) {
    auto known = std::find(artifacts.begin(), artifacts.end(), bytes);
    ofPoint.push_back(static_cast<size_t>(known - artifacts.begin()));
    if (known == artifacts.end())
      artifacts.push_back(std::move(bytes));
  }
};
} // namespace

static Status measure(const std::vector<char> &bytes, double seconds,
                      const std::string &params, std::vector<double> &times) {
  auto reader = am::ArtifactReader::fromMemory(std::as_bytes(std::span(bytes)));
  if (!reader)
    return reader.status();
  auto model = runtime::Model::load(std::move(*reader));
  if (!model)
    return std::move(model).status();
  const am::Program *step = model->manifest().findProgram("step");
  if (!step)
    return Status::usage("a step to measure needs an optimizer");
  if (!params.empty())
    if (Status s = loadParameters(*model, params); !s)
      return s;
  if (auto madeUp = completeVariables(*model); !madeUp)
    return madeUp.status();
  auto inputs = completeInputs({}, *model, *step);
  if (!inputs)
    return inputs.status();
  Repeats repeats;
  repeats.warmup = 2;
  repeats.seconds = seconds;
  auto timing = timeCalls(repeats, *model, *step, *inputs);
  if (!timing)
    return timing.status();
  times.insert(times.end(), timing->sorted.begin(), timing->sorted.end());
  return Status::success();
}

/// By turns, so that what else the machine does falls on all plans alike.
static Status measureAll(const Plans &plans, double seconds,
                         const std::string &params, BudgetCurve &curve) {
  std::vector<Timing> timings(plans.artifacts.size());
  for (int round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < plans.artifacts.size(); ++i)
      if (Status s = measure(plans.artifacts[i], seconds / kRounds, params,
                             timings[i].sorted);
          !s)
        return s;
  for (Timing &timing : timings)
    std::sort(timing.sorted.begin(), timing.sorted.end());
  for (size_t i = 0; i < curve.points.size(); ++i)
    curve.points[i].measured = timings[plans.ofPoint[i]].median();
  return Status::success();
}

/// Which plan the budget chooses.
static size_t chosen(const std::vector<int64_t> &peaks, const char *budget) {
  std::string error;
  int64_t limit =
      parseBudgetSpec(budget, error)->limit(peaks.front(), peaks.back());
  auto above = std::upper_bound(peaks.begin(), peaks.end(), limit);
  return static_cast<size_t>(above - peaks.begin());
}

Result<BudgetCurve> tandem::budgetCurve(const std::string &path,
                                        const CompileOptions &options,
                                        std::optional<double> seconds,
                                        const std::string &params) {
  if (seconds && options.optimizer.empty())
    return Status::usage("a step to measure needs --optimizer");
  BudgetCurve curve;
  Plans plans;
  std::vector<int64_t> peaks;
  size_t last = 0;
  for (int i = 0; i <= kSteps; ++i) {
    CompileOptions own = options;
    char budget[16];
    std::snprintf(budget, sizeof budget, "%.1f", i / double(kSteps));
    own.memoryBudget = budget;
    // What there is to choose from does not depend on the budget, and most of a
    // compilation under one is to find it.
    size_t now = peaks.empty() ? 0 : chosen(peaks, budget);
    if (now && now == last) {
      curve.points.push_back(curve.points.back());
      curve.points.back().budget = i / double(kSteps);
      plans.ofPoint.push_back(plans.ofPoint.back());
      continue;
    }
    Session session(own);
    if (i > 0)
      session.silenceRemarks();
    auto writer = session.artifact(path);
    if (!writer)
      return writer.status();
    auto bytes = writer->bytes();
    if (!bytes)
      return bytes.status();
    auto reader =
        am::ArtifactReader::fromMemory(std::as_bytes(std::span(*bytes)));
    if (!reader)
      return reader.status();
    const am::Manifest &manifest = reader->manifest();
    curve.model = manifest.model;
    curve.target = manifest.target.kind + " " + manifest.target.arch;
    curve.points.push_back(describe(i / double(kSteps), manifest));
    plans.add(std::vector<char>(bytes->begin(), bytes->end()));
    if (i == 0 && manifest.partition)
      for (const am::PartitionPoint &point : manifest.partition->chain)
        peaks.push_back(point.peak);
    last = peaks.empty() ? 0 : chosen(peaks, budget);
  }
  if (seconds)
    if (Status s = measureAll(plans, *seconds, params, curve); !s)
      return s;
  return curve;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string tandem::toJson(const BudgetCurve &curve) {
  nlohmann::ordered_json json = {{"model", curve.model},
                                 {"target", curve.target}};
  for (const CurvePoint &point : curve.points) {
    nlohmann::ordered_json one = {{"budget", point.budget},
                                  {"peak_bytes", point.peak},
                                  {"saved_bytes", point.saved},
                                  {"repeated_ops", point.repeated}};
    if (point.predicted)
      one["predicted_ms"] = *point.predicted * 1e3;
    if (point.measured)
      one["measured_ms"] = *point.measured * 1e3;
    json["points"].push_back(std::move(one));
  }
  return json.dump(1) + "\n";
}

static std::string fixedText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

static std::string milliseconds(std::optional<double> seconds) {
  return seconds ? fixedText(*seconds * 1e3) : "-";
}

std::string tandem::toTable(const BudgetCurve &curve) {
  std::string text = "budget    planned peak    saved         again    "
                     "predicted ms   measured ms\n";
  char line[128];
  for (const CurvePoint &point : curve.points) {
    std::snprintf(line, sizeof line,
                  "%-8.1f  %-14s  %-12s  %-7lld  %-13s  %s\n", point.budget,
                  bytesText(point.peak).c_str(), bytesText(point.saved).c_str(),
                  static_cast<long long>(point.repeated),
                  milliseconds(point.predicted).c_str(),
                  milliseconds(point.measured).c_str());
    text += line;
  }
  return text;
}
