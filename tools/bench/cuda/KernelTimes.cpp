//===- KernelTimes.cpp - how long launches take on a device ---------------===//
//
// The device's profile has the time of every launch by a pair of events.
//
//===----------------------------------------------------------------------===//
#include "tools/bench/cuda/KernelTimes.h"
#include "runtime/device/Backend.h"
#include "tools/commands/KernelTimes.h"

#include <algorithm>
#include <map>

using namespace tandem;
using namespace tandem::gpu;
using artifact::Kernel;
using Json = nlohmann::ordered_json;

namespace {

/// Milliseconds of each launch in the profile, by its name.
using Times = std::map<std::string, std::vector<double>>;

Result<Times> profiled(runtime::Model &model, const artifact::Program &program,
                       std::vector<commands::NamedTensor> &inputs,
                       int64_t calls) {
  auto backend = runtime::backendOf(model.device());
  if (!backend)
    return std::move(backend).status();
  if (Status status = (*backend)->startProfile(); !status)
    return status;
  auto timing =
      commands::timeCalls({0, calls, std::nullopt}, model, program, inputs);
  auto trace = (*backend)->stopProfile();
  if (!timing)
    return std::move(timing).status();
  if (!trace)
    return std::move(trace).status();
  constexpr int device = 1; // the process of the trace that is the device
  Times times;
  Json json = Json::parse(*trace);
  for (const Json &event : json["traceEvents"])
    if (event["ph"] == "X" && event["pid"] == device)
      times[event["name"]].push_back(event["dur"].get<double>() * 1e-3);
  return times;
}

/// A kernel's launch is named as it, and behind that the call that it is.
const Kernel *kernelOf(const artifact::Manifest &manifest,
                       const std::string &name) {
  std::string symbol = name.substr(0, name.find(' '));
  for (const Kernel &kernel : manifest.kernels)
    if (kernel.symbol == symbol)
      return &kernel;
  return nullptr;
}

} // namespace

Result<Json> gpu::timeKernels(runtime::Model &model, const std::string &named,
                              double seconds, int64_t calls) {
  auto program = commands::chooseProgram(model.manifest(), named,
                                         {"step", "evaluate", "forward"});
  if (!program)
    return std::move(program).status();
  if (auto made = commands::completeVariables(model); !made)
    return std::move(made).status();
  auto inputs = commands::completeInputs({}, model, **program);
  if (!inputs)
    return std::move(inputs).status();
  auto timing = commands::timeCalls({5, std::nullopt, seconds}, model,
                                    **program, *inputs);
  if (!timing)
    return std::move(timing).status();
  auto times = profiled(model, **program, *inputs, calls);
  if (!times)
    return std::move(times).status();
  Json rows = Json::array();
  double sum = 0;
  for (auto &[name, launches] : *times) {
    double count = double(launches.size()) / double(calls);
    double ms = commands::medianOfUnsorted(launches);
    sum += ms * count;
    Json row = {{"kernel", name},
                {"launches", count},
                {"ms", ms},
                {"min_ms", *std::ranges::min_element(launches)}};
    if (const Kernel *kernel = kernelOf(model.manifest(), name)) {
      row["class"] = kernel->kind;
      row["computes"] = commands::describe(*kernel);
      row["dtype"] = artifact::spelling(kernel->dtype);
      row["flops"] = kernel->flops;
      row["bytes"] = kernel->bytes;
    }
    rows.push_back(std::move(row));
  }
  return Json{{"check", "times"},
              {"code", model.code()},
              {"program", (*program)->name},
              {"calls", timing->sorted.size()},
              {"median_ms", timing->median() * 1e3},
              {"min_ms", timing->sorted.front() * 1e3},
              {"p90_ms", timing->at(0.9) * 1e3},
              {"launches_ms", sum},
              {"peak_bytes", model.memory().peak},
              {"kernels", std::move(rows)}};
}
