//===- Calibration.cpp - what a measurement says of a machine -------------===//
#include "tools/simulate/Calibration.h"

#include "runtime/artifact/DeviceFiles.h"
#include "runtime/io/Argument.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

namespace tandem::simulate {

using nlohmann::json;

Result<Measurement> readMeasurement(const std::string &path) {
  if (Status status = artifact::expectNoDevice(path); !status)
    return status;
  std::ifstream in(path);
  if (!in)
    return Status::failed("cannot read " + io::inQuotes(path));
  std::string text((std::istreambuf_iterator<char>(in)), {});
  json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  auto wrong = [&](const std::string &what) {
    return Status::usage(io::inQuotes(path) + ": " + what);
  };
  if (!root.is_object())
    return wrong(
        "expected an object such as {\"step_ms\": 41.2, \"ranks\": 2}");
  std::string problem;
  auto number = [&](const json &of, const char *key) -> std::optional<double> {
    auto found = of.find(key);
    if (found == of.end())
      return std::nullopt;
    constexpr double least = 1e-9, most = 1e12; // far beyond what anybody has
    if (found->is_number() && found->get<double>() >= least &&
        found->get<double>() <= most)
      return found->get<double>();
    problem = std::string("expected '") + key +
              "' to be a number of at least 1e-9 and at most 1e12, but got " +
              found->dump(-1, ' ', true, json::error_handler_t::replace);
    return std::nullopt;
  };
  Measurement made;
  auto step = number(root, root.contains("step_ms") ? "step_ms" : "median_ms"),
       ranks = number(root, "ranks");
  made.processors = number(root, "processors");
  if (auto kernels = root.find("kernels");
      kernels != root.end() && kernels->is_array()) {
    double products = 0, others = 0;
    for (const json &one : *kernels) {
      auto time = one.is_object() ? number(one, "ms") : std::nullopt;
      std::string kind;
      bool isNamed = time && one.contains("class");
      if (isNamed && one["class"].is_string())
        kind = one["class"].get<std::string>();
      else if (isNamed)
        time.reset();
      if (!time)
        return wrong("expected 'kernels' as 'bench --kernels --json' prints "
                     "them, each with 'class' and 'ms'");
      (kind == "contraction" || kind == "window" ? products : others) +=
          *time / 1e3;
    }
    if (products > 0 && others > 0)
      made.products = products, made.others = others;
  }
  if (!problem.empty())
    return wrong(problem);
  if (!step || !ranks)
    return wrong(std::string("expected a field '") +
                 (step ? "ranks" : "step_ms") + "'");
  if (*ranks != std::floor(*ranks) || *ranks > double(1 << 20))
    return wrong("expected 'ranks' to be a whole number");
  made.stepSeconds = *step / 1e3;
  made.ranks = int64_t(*ranks);
  auto take = [&](const char *key, std::string &to) {
    if (auto name = root.find(key); name != root.end() && name->is_string())
      to = name->get<std::string>();
  };
  take("artifact", made.artifact);
  take("mesh", made.mesh);
  take("parallel", made.parallel);
  if (!made.artifact.empty())
    made.artifact =
        (std::filesystem::path(path).parent_path() / made.artifact).string();
  return made;
}

/// By the times of kernels.
static Slowness slownessByKernels(const Measurement &measured,
                                  const StepResult &byTables) {
  Slowness slow;
  double products = 0, others = 0;
  for (const Task &task : byTables.tasks.front())
    if (task.spent != Spent::Exchange)
      (task.isProduct ? products : others) += task.seconds;
  if (products > 0)
    slow.products = *measured.products / products;
  if (others > 0)
    slow.others = *measured.others / others;
  return slow;
}

Result<Slowness> slownessOf(const Measurement &measured,
                            const Simulate &simulate) {
  auto byTables = simulate({});
  if (!byTables)
    return std::move(byTables).status();
  Slowness slow;
  double all = measured.stepSeconds / byTables->seconds;
  if (measured.products && measured.others) {
    slow = slownessByKernels(measured, *byTables);
    byTables = simulate(slow);
    if (!byTables)
      return std::move(byTables).status();
  }
  // Exchanges that kernels hide come out as these become shorter, so that it
  // takes some rounds.
  constexpr int rounds = 100;
  double seconds = byTables->seconds,
         kernels = slowestOf(*byTables).times.kernels();
  for (int i = 0; i < rounds; ++i) {
    double away = measured.stepSeconds - seconds;
    if (std::abs(away) <= 1e-9 * measured.stepSeconds)
      return slow;
    if (kernels + away <= 0.01 * kernels)
      break;
    slow.products *= (kernels + away) / kernels;
    slow.others *= (kernels + away) / kernels;
    auto again = simulate(slow);
    if (!again)
      return std::move(again).status();
    seconds = again->seconds;
    kernels = slowestOf(*again).times.kernels();
  }
  return Slowness{all, all, all};
}

} // namespace tandem::simulate
