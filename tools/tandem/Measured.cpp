//===- Measured.cpp - what the launches of a program were seen to take ----===//
#include "tools/tandem/Measured.h"

#include "runtime/device/Backend.h"
#include "runtime/device/RunTimes.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

using namespace tandem;
using namespace tandem::commands;
using Clock = std::chrono::steady_clock;

double Samples::at(double quantile) const {
  if (values_.empty())
    return 0;
  std::vector<double> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  if (quantile == 0.5)
    return medianOf(sorted);
  return sorted[size_t(quantile * double(sorted.size() - 1) + 0.5)];
}

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

namespace {
/// Calls by turns.
class Turns {
public:
  Turns(runtime::Model &model, const artifact::Program &program,
        std::vector<NamedTensor> &inputs, Measured &to)
      : model(model), program(program), to(to) {
    for (NamedTensor &input : inputs)
      arguments.push_back({input.name, &input.tensor});
  }

  Status unwatched() {
    auto begin = Clock::now();
    Status status = model.run(program.name, arguments, {});
    if (status.ok() && !model.device().isHost())
      status = (*runtime::backendOf(model.device()))
                   ->synchronize(currentStream(model.device()));
    to.unwatched.add(secondsSince(begin));
    return status;
  }
  Status timed() {
    runtime::RunTimes &times = clock;
    times.wantsThreads = true;
    auto begin = Clock::now();
    Status status = model.runTimed(program.name, arguments, {}, times);
    to.timed.add(secondsSince(begin));
    to.launches.resize(times.launches.size());
    for (size_t i = 0; i < times.launches.size(); ++i) {
      LaunchSamples &launch = to.launches[i];
      launch.seconds.add(times.launches[i]);
      launch.threads.resize(size_t(times.threads));
      for (size_t t = 0; t < launch.threads.size(); ++t)
        launch.threads[t].add(times.inKernels[i * launch.threads.size() + t]);
    }
    return status;
  }
  Status counted() {
    runtime::RunTimes times;
    times.observer = to.counters.get();
    Status status = model.runTimed(program.name, arguments, {}, times);
    const auto &counts = to.counters->launches();
    to.launches.resize(counts.size());
    for (size_t i = 0; i < counts.size(); ++i) {
      to.launches[i].counts.resize(PerfCounters::kKinds);
      for (size_t kind = 0; kind < PerfCounters::kKinds; ++kind)
        to.launches[i].counts[kind].add(counts[i][kind]);
    }
    return status;
  }

private:
  runtime::Model &model;
  const artifact::Program &program;
  Measured &to;
  std::vector<runtime::Argument> arguments;
  runtime::RunTimes clock; ///< kept: what is timed allocates nothing
};
} // namespace

static Result<Measured> measureHost(const Repeats &repeats,
                                    runtime::Model &model,
                                    const artifact::Program &program,
                                    std::vector<NamedTensor> &inputs) {
  Measured made;
  auto roofs = prepareRoofs(model, program);
  if (!roofs)
    return std::move(roofs).status();
  roofs->measure();
  made.counters = std::make_unique<PerfCounters>();
  Turns turns(model, program, inputs, made);
  int64_t round = 0, warmup = repeats.warmup.value_or(3);
  auto timing = timeCalls(repeats, [&]() -> Result<double> {
    if (round++ == warmup) { // what came before does not count
      made.unwatched = made.timed = {};
      made.launches.clear();
    }
    // Each kind is the first of a round equally often: what a call finds in
    // the caches is what the one before it left.
    Status status = round % 2 ? turns.unwatched() : turns.timed();
    if (status.ok())
      status = round % 2 ? turns.timed() : turns.unwatched();
    if (status.ok())
      status = turns.counted();
    return status ? Result<double>(0.0) : Result<double>(std::move(status));
  });
  if (!timing)
    return std::move(timing).status();
  roofs->measure();
  made.roofs = std::move(*roofs);
  return made;
}

/// Adds what a trace of `calls` calls says of each launch. Kernels are told
/// apart by their names; launches of one kernel follow each other in the
/// program's order.
static void addTrace(const std::string &text, size_t calls,
                     const artifact::Manifest &manifest,
                     const artifact::Program &program, Measured &to) {
  auto trace = nlohmann::json::parse(text);
  std::map<std::string, std::vector<std::pair<double, double>>> seen;
  for (const auto &event : trace["traceEvents"])
    if (event["ph"] == "X" && event["pid"] == 1) {
      std::string name = event["name"];
      seen[name.substr(0, name.find(' '))].emplace_back(
          event["ts"], double(event["dur"]) * 1e-6);
    }
  for (auto &[name, list] : seen)
    std::sort(list.begin(), list.end());
  std::map<std::string, size_t> perCall, next;
  auto nameOf = [&](const artifact::Launch &launch) {
    return launch.hasKernel() ? manifest.kernels[size_t(launch.kernel)].symbol
                              : std::string("copy");
  };
  for (const artifact::Launch &launch : program.launches)
    ++perCall[nameOf(launch)];
  to.launches.resize(program.launches.size());
  for (size_t i = 0; i < program.launches.size(); ++i) {
    std::string name = nameOf(program.launches[i]);
    const auto &list = seen[name];
    size_t place = next[name]++;
    if (list.size() != calls * perCall[name])
      continue; // its clock saw something else under that name
    for (size_t call = 0; call < calls; ++call)
      to.launches[i].seconds.add(list[call * perCall[name] + place].second);
  }
}

static Result<Measured> measureDevice(const Repeats &repeats,
                                      runtime::Model &model,
                                      const artifact::Program &program,
                                      std::vector<NamedTensor> &inputs) {
  Measured made;
  auto backend = runtime::backendOf(model.device());
  if (!backend)
    return std::move(backend).status();
  Turns turns(model, program, inputs, made);
  int64_t round = 0, warmup = repeats.warmup.value_or(3);
  auto timing = timeCalls(repeats, [&]() -> Result<double> {
    if (round++ == warmup)
      made.unwatched = {};
    Status status = turns.unwatched();
    return status ? Result<double>(0.0) : Result<double>(std::move(status));
  });
  if (!timing)
    return std::move(timing).status();
  if (Status s = (*backend)->startProfile(); !s)
    return s;
  Measured watched;
  Turns again(model, program, inputs, watched);
  Status status;
  for (size_t i = 0; status.ok() && i < timing->calls.size(); ++i)
    status = again.unwatched();
  auto trace = (*backend)->stopProfile();
  if (!status)
    return status;
  if (!trace)
    return std::move(trace).status();
  made.timed = watched.unwatched;
  addTrace(*trace, timing->calls.size(), model.manifest(), program, made);
  return made;
}

Result<Measured> commands::measureProgram(const Repeats &repeats,
                                          runtime::Model &model,
                                          const artifact::Program &program,
                                          std::vector<NamedTensor> &inputs) {
  return model.device().isHost()
             ? measureHost(repeats, model, program, inputs)
             : measureDevice(repeats, model, program, inputs);
}
