//===- Timing.cpp - how long the calls of a program take ------------------===//
#include "tools/commands/Timing.h"

#include "runtime/device/Backend.h"
#include "runtime/device/RunTimes.h"
#include "runtime/io/Elements.h"
#include "tools/commands/Dataset.h"
#include "tools/commands/Interrupt.h"
#include "tools/commands/Ranks.h"

#include <algorithm>
#include <chrono>
#include <cmath>

using namespace tandem;
using namespace tandem::commands;
using artifact::Program;
using runtime::Model;
using runtime::Tensor;
using Clock = std::chrono::steady_clock;

static Result<Tensor> madeUp(artifact::DType dtype,
                             const std::vector<int64_t> &shape, int64_t high,
                             uint64_t stream) {
  auto tensor = Tensor::zeros(dtype, shape);
  if (!tensor || (io::isInteger(dtype) && high <= 0))
    return tensor;
  // Through f64, from which `to` rounds as the element type wants.
  auto wide = Tensor::zeros(runtime::DType::F64, shape);
  if (!wide)
    return wide;
  auto *data = wide->mutableData<double>();
  for (int64_t i = 0; i < wide->elements(); ++i) {
    uint64_t bits = mix(mix(stream) + uint64_t(i));
    data[i] = io::isInteger(dtype) ? double(bits % uint64_t(high))
                                   : double(bits >> 40) * 0x1p-23 - 1.0;
  }
  return wide->to(dtype);
}

Result<std::vector<NamedTensor>>
commands::completeInputs(const std::vector<std::string> &texts,
                         const artifact::Manifest &manifest,
                         const Program &program) {
  auto given = readTensors(texts, "--input", manifest);
  if (!given)
    return given;
  uint64_t stream = 0;
  for (const artifact::Slot *slot : inputsOf(program)) {
    ++stream;
    if (std::any_of(given->begin(), given->end(),
                    [&](const NamedTensor &t) { return t.name == slot->name; }))
      continue;
    const artifact::Value *value = manifest.findValue(slot->name);
    auto range = value ? value->commonRange() : std::nullopt;
    auto tensor =
        madeUp(slot->dtype, slot->shape, range ? range->second : 0, stream);
    if (!tensor)
      return std::move(tensor).status();
    given->push_back({slot->name, std::move(*tensor)});
  }
  return given;
}

Result<std::vector<NamedTensor>>
commands::completeInputs(const std::vector<std::string> &texts,
                         const Model &model, const Program &program) {
  auto given = completeInputs(texts, model.manifest(), program);
  // The program is timed, not the way of its inputs.
  if (given && !model.device().isHost())
    for (NamedTensor &input : *given) {
      auto there = input.tensor.copyTo(model.device());
      if (!there)
        return std::move(there).status();
      input.tensor = *std::move(there);
    }
  return given;
}

Result<int> commands::completeVariables(Model &model) {
  int count = 0;
  uint64_t stream = 0;
  for (const artifact::Value &value : model.manifest().values) {
    ++stream;
    if ((value.role != artifact::Role::Param &&
         value.role != artifact::Role::State) ||
        model.get(value.name))
      continue;
    auto tensor = madeUp(value.dtype, value.shape, 0, stream);
    if (!tensor)
      return std::move(tensor).status();
    if (Status status = model.set(value.name, *tensor); !status)
      return status;
    ++count;
  }
  return count;
}

double commands::medianOfUnsorted(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : medianOf(values);
}

namespace {

/// Calls one after the other. Those on a device are only queued: each call
/// returns when the one before it has run, so that the device is never idle and
/// the time between two returns is that of one call.
class Calls {
public:
  Calls(Model &model, const Program &program,
        std::span<const runtime::Argument> arguments, runtime::RunTimes *times,
        int64_t batches)
      : model(model), program(program), arguments(arguments), times(times),
        batches(batches), backend(**runtime::backendOf(model.device())) {}
  ~Calls() {
    for (runtime::Fence fence : fences)
      if (fence)
        backend.releaseFence(fence);
  }

  Status next() {
    double together = 0;
    for (int64_t i = 1; i <= batches; ++i) {
      const std::string name = i < batches ? "accumulate" : program.name;
      Status status = times ? model.runTimed(name, arguments, {}, *times)
                            : model.run(name, arguments, {});
      if (!status)
        return status;
      if (times)
        times->together = together += times->together;
    }
    std::swap(fences[0], fences[1]);
    Status status = backend.record(fences[0], currentStream(model.device()));
    return status ? backend.await(fences[1]) : status;
  }

private:
  Model &model;
  const Program &program;
  std::span<const runtime::Argument> arguments;
  runtime::RunTimes *times;      ///< gets those of each call, or null
  int64_t batches;               ///< of a call
  runtime::Backend &backend;     ///< the model's, so it is open
  runtime::Fence fences[2] = {}; ///< after the last call, and the one before
};

} // namespace

void LaunchTimes::add(const std::vector<double> &call) {
  launches.resize(call.size());
  for (size_t i = 0; i < call.size(); ++i)
    launches[i].push_back(call[i]);
}

std::vector<double> LaunchTimes::medians() const {
  std::vector<double> medians;
  for (std::vector<double> times : launches) {
    std::sort(times.begin(), times.end());
    medians.push_back(medianOf(times));
  }
  return medians;
}

/// `isExact`: what lies between two calls is not of the second one.
static Result<Timing> timeEach(const Repeats &repeats, bool isExact,
                               const std::function<Status()> &call,
                               const std::function<void(Timing &)> &timed) {
  Timing timing;
  timing.warmup = repeats.warmup.value_or(3);
  for (int64_t i = 0; i < timing.warmup; ++i)
    if (Status status = call(); !status)
      return status;
  // Either limit may be absent: --steps alone knows no time, and the default
  // is three seconds.
  double seconds = repeats.seconds.value_or(repeats.steps ? INFINITY : 3.0);
  int64_t steps = repeats.steps.value_or(INT64_MAX);
  Interrupt interrupt;
  Stop why = Stop::No;
  if (Result<Stop> first = whyStop(false); !first) // all begin together
    return std::move(first).status();
  auto begin = Clock::now(), last = begin;
  do {
    if (Status status = call(); !status)
      return status;
    auto now = Clock::now();
    timing.calls.push_back(std::chrono::duration<double>(now - last).count());
    last = now;
    timed(timing);
    auto asked =
        whyStop(int64_t(timing.calls.size()) >= steps ||
                std::chrono::duration<double>(now - begin).count() >= seconds);
    if (!asked)
      return std::move(asked).status();
    why = *asked;
    if (isExact)
      last = Clock::now();
  } while (why == Stop::No);
  if (why == Stop::Signal)
    return Status::failed("interrupted after " +
                          std::to_string(timing.calls.size()) + " timed calls");
  timing.sorted = timing.calls;
  std::sort(timing.sorted.begin(), timing.sorted.end());
  return timing;
}

Result<Timing> commands::timeCalls(const Repeats &repeats, Model &model,
                                   const Program &program,
                                   std::vector<NamedTensor> &inputs,
                                   LaunchTimes *launches, int64_t batches) {
  std::vector<runtime::Argument> arguments;
  for (NamedTensor &input : inputs)
    arguments.push_back({input.name, &input.tensor});
  bool isOfSeveral = rankCount() > 1;
  runtime::RunTimes times;
  Calls calls(model, program, arguments,
              launches || isOfSeveral ? &times : nullptr, batches);
  return timeEach(
      repeats, launches || isOfSeveral, [&] { return calls.next(); },
      [&](Timing &timing) {
        if (launches)
          launches->add(times.launches);
        if (isOfSeveral)
          timing.together.push_back(times.together);
      });
}

Result<Timing>
commands::timeCalls(const Repeats &repeats,
                    const std::function<Result<double>()> &call) {
  double together = 0;
  return timeEach(
      repeats, /*isExact=*/true,
      [&]() -> Status {
        auto made = call();
        if (made)
          together = *made;
        return made.status();
      },
      [&](Timing &timing) { timing.together.push_back(together); });
}
