//===- Bench.cpp - `bench`: how fast a program is -------------------------===//
//
// Warm-up calls, then timed ones, one by one; inputs that are not given are
// made, the same ones each time: floating point uniform in [-1, 1), integers
// zero, or uniform in [0, high) where the manifest states a range.
//
//===----------------------------------------------------------------------===//
#include "runtime/Backend.h"
#include "runtime/cli/Commands.h"
#include "runtime/cli/Dataset.h"
#include "runtime/cli/Interrupt.h"
#include "runtime/cli/Print.h"
#include "runtime/cli/Profile.h"
#include "runtime/io/Elements.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tandem::commands {
namespace {

using artifact::Program;
using runtime::Model;
using runtime::Tensor;
using Clock = std::chrono::steady_clock;

constexpr std::string_view description =
    "Times a program. Inputs that are not given are made up: floating point "
    "uniform in\n[-1, 1), integers zero or in the range that the model states.";

struct BenchOptions {
  ModelOptions model;
  std::string program;
  std::vector<std::string> inputs;
  std::optional<int64_t> warmup, steps;
  std::optional<double> seconds;
  bool json = false;
};

struct Timing {
  int64_t warmup = 0;
  std::vector<double> sorted; ///< seconds of each timed call

  double at(double quantile) const {
    return sorted[size_t(quantile * double(sorted.size() - 1) + 0.5)];
  }
  double median() const {
    size_t middle = sorted.size() / 2;
    return sorted.size() % 2 ? sorted[middle]
                             : (sorted[middle - 1] + sorted[middle]) / 2;
  }
};

Result<Tensor> madeUp(const artifact::Slot &slot, int64_t high,
                      uint64_t stream) {
  auto tensor = Tensor::zeros(slot.dtype, slot.shape);
  if (!tensor || (io::isInteger(slot.dtype) && high <= 0))
    return tensor;
  // Through f64, from which `to` rounds as the element type wants.
  auto wide = Tensor::zeros(runtime::DType::F64, slot.shape);
  if (!wide)
    return wide;
  auto *data = wide->mutableData<double>();
  for (int64_t i = 0; i < wide->elements(); ++i) {
    uint64_t bits = mix(mix(stream) + uint64_t(i));
    data[i] = io::isInteger(slot.dtype) ? double(bits % uint64_t(high))
                                        : double(bits >> 40) * 0x1p-23 - 1.0;
  }
  return wide->to(slot.dtype);
}

/// Returns a tensor for each input: the given one, or one that is made up.
Result<std::vector<NamedTensor>> completeInputs(const BenchOptions &options,
                                                const Model &model,
                                                const Program &program) {
  auto given = readTensors(options.inputs, "--input", model.manifest());
  if (!given)
    return given;
  uint64_t stream = 0;
  for (const artifact::Slot *slot : inputsOf(program)) {
    ++stream;
    if (std::any_of(given->begin(), given->end(),
                    [&](const NamedTensor &t) { return t.name == slot->name; }))
      continue;
    const artifact::Value *value = model.manifest().findValue(slot->name);
    auto tensor = madeUp(*slot, value ? value->high.value_or(0) : 0, stream);
    if (!tensor)
      return std::move(tensor).status();
    given->push_back({slot->name, std::move(*tensor)});
  }
  return given;
}

/// Calls one after the other. Those on a device are only queued: each call
/// returns when the one before it has run, so that the device is never idle and
/// the time between two returns is that of one call.
class Calls {
public:
  Calls(Model &model, const Program &program,
        std::span<const runtime::Argument> arguments)
      : model(model), program(program), arguments(arguments) {
    if (auto found = runtime::backendOf(model.device()))
      backend = *found;
  }
  ~Calls() {
    for (runtime::Fence fence : fences)
      if (fence)
        backend->releaseFence(fence);
  }

  Status next() {
    Status status = model.run(program.name, arguments, {});
    if (!status || !backend)
      return status;
    std::swap(fences[0], fences[1]);
    status = backend->record(fences[0], currentStream(model.device()));
    return status ? backend->await(fences[1]) : status;
  }

private:
  Model &model;
  const Program &program;
  std::span<const runtime::Argument> arguments;
  runtime::Backend *backend = nullptr;
  runtime::Fence fences[2] = {}; ///< after the last call, and the one before
};

Result<Timing> measure(const BenchOptions &options, Model &model,
                       const Program &program,
                       std::span<const runtime::Argument> arguments) {
  Timing timing;
  Calls calls(model, program, arguments);
  timing.warmup = options.warmup.value_or(3);
  for (int64_t i = 0; i < timing.warmup; ++i)
    if (Status status = calls.next(); !status)
      return status;
  // Either limit may be absent: --steps alone knows no time, and the default
  // is three seconds.
  double seconds = options.seconds.value_or(options.steps ? INFINITY : 3.0);
  int64_t steps = options.steps.value_or(INT64_MAX);
  Interrupt interrupt;
  auto begin = Clock::now(), last = begin;
  do {
    if (Status status = calls.next(); !status)
      return status;
    auto now = Clock::now();
    timing.sorted.push_back(std::chrono::duration<double>(now - last).count());
    last = now;
  } while (int64_t(timing.sorted.size()) < steps && !Interrupt::asked() &&
           std::chrono::duration<double>(last - begin).count() < seconds);
  if (Interrupt::asked())
    return Status::failed("interrupted after " +
                          std::to_string(timing.sorted.size()) +
                          " timed calls");
  std::sort(timing.sorted.begin(), timing.sorted.end());
  return timing;
}

void print(const BenchOptions &options, const Model &model,
           const Program &program, int64_t batch, const Timing &timing) {
  double median = timing.median();
  double rate = double(batch) / median;
  int64_t peak = model.memory().peak;
  if (options.json) {
    nlohmann::json json = {{"program", program.name},
                           {"device", toString(model.device())},
                           {"threads", model.threads()},
                           {"batch", batch},
                           {"warmup", timing.warmup},
                           {"steps", timing.sorted.size()},
                           {"median_ms", median * 1e3},
                           {"min_ms", timing.sorted.front() * 1e3},
                           {"p90_ms", timing.at(0.9) * 1e3},
                           {"samples_per_second", rate},
                           {"planned_peak_bytes", program.peakBytes},
                           {"actual_peak_bytes", peak}};
    std::printf("%s\n", json.dump(2).c_str());
    return;
  }
  auto milliseconds = [](double seconds) {
    return roundedText(seconds * 1e3) + " ms";
  };
  printTable({{"program", program.name},
              {"device", toString(model.device())},
              {"threads", std::to_string(model.threads())},
              {"batch", std::to_string(batch)},
              {"warm-up calls", std::to_string(timing.warmup)},
              {"timed calls", std::to_string(timing.sorted.size())},
              {"median", milliseconds(median)},
              {"min", milliseconds(timing.sorted.front())},
              {"p90", milliseconds(timing.at(0.9))},
              {"samples/s", rateText(rate)},
              {"planned peak", bytesText(program.peakBytes)},
              {"actual peak", bytesText(peak)}},
             true);
}

} // namespace

Status bench(std::string_view tool, Words words) {
  BenchOptions bench;
  OptionTable options("bench X.tdm [options]", description);
  bench.model.declare(options);
  options.text("program", "NAME", bench.program,
               "step, evaluate or forward (default: the first of them that\n"
               "the artifact has)");
  options.list("input", "NAME=@FILE", bench.inputs, "an input");
  options.integer("warmup", "N", bench.warmup, 0, INT64_MAX,
                  "calls before timing (default: 3)");
  options.integer("steps", "N", bench.steps, 1, 100000000, "calls to time");
  options.number("seconds", "S", bench.seconds,
                 "time calls for S seconds (default: 3, without --steps)");
  options.flag("json", bench.json, "print results as JSON");
  if (Status status = options.parse(words); !status)
    return status;
  if (options.helpAsked()) {
    std::fputs(options.help(tool).c_str(), stdout);
    return Status::success();
  }
  auto model = bench.model.load();
  if (!model)
    return std::move(model).status();
  auto program = chooseProgram(model->manifest(), bench.program,
                               {"step", "evaluate", "forward"});
  if (!program)
    return std::move(program).status();
  auto inputs = completeInputs(bench, *model, **program);
  if (!inputs)
    return std::move(inputs).status();
  // The program is timed, not the way of its inputs.
  std::vector<runtime::Argument> arguments;
  for (NamedTensor &input : *inputs) {
    auto there = model->device().isHost()
                     ? std::move(input.tensor)
                     : input.tensor.copyTo(model->device());
    if (!there)
      return std::move(there).status();
    input.tensor = *std::move(there);
    arguments.push_back({input.name, &input.tensor});
  }
  Profile profile;
  if (Status status = profile.start(bench.model, *model); !status)
    return status;
  auto timing = measure(bench, *model, **program, arguments);
  if (!timing)
    return std::move(timing).status();
  if (Status status = profile.stop(); !status)
    return status;
  int64_t batch = 1;
  for (const artifact::Slot *slot : inputsOf(**program))
    if (!slot->shape.empty()) {
      batch = slot->shape[0];
      break;
    }
  print(bench, *model, **program, batch, *timing);
  return Status::success();
}

} // namespace tandem::commands
