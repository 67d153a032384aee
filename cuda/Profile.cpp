//===- Profile.cpp - what ran when ----------------------------------------===//
//
// See Profile.h.
//
//===----------------------------------------------------------------------===//
#include "cuda/Profile.h"

#include <algorithm>
#include <cmath>
#include <dlfcn.h>
#include <nlohmann/json.hpp>

namespace tandem::cuda {

using namespace driver;
using Clock = std::chrono::steady_clock;

namespace {

/// Entries whose events are kept: then the times are asked for.
constexpr size_t mostOpen = 16384;

struct Nvtx {
  int (*push)(const char *) = nullptr;
  int (*pop)() = nullptr;

  Nvtx() {
    for (const char *library : {"libnvToolsExt.so.1", "libnvtx3interop.so.1"}) {
      void *handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
      if (!handle)
        continue;
      push = reinterpret_cast<int (*)(const char *)>(
          ::dlsym(handle, "nvtxRangePushA"));
      pop = reinterpret_cast<int (*)()>(::dlsym(handle, "nvtxRangePop"));
      if (push && pop)
        return;
      push = nullptr;
    }
  }
};

/// Microseconds as whole nanoseconds: what the format means, and short.
double wholeNanoseconds(double microseconds) {
  return std::round(microseconds * 1000) / 1000;
}

const Nvtx &nvtx() {
  static const Nvtx library;
  return library;
}

} // namespace

void pushRange(const char *name) {
  if (nvtx().push)
    nvtx().push(name);
}

void popRange() {
  if (nvtx().push)
    nvtx().pop();
}

Profile::~Profile() {
  Context::Scope scope(context);
  for (Entry &entry : open) {
    free.push_back(entry.from);
    free.push_back(entry.to);
  }
  free.push_back(zero);
  for (CUevent event : free)
    if (event)
      context.call().eventDestroy(event);
}

Result<CUevent> Profile::record(CUstream stream) {
  CUevent event = nullptr;
  const Functions &call = context.call();
  if (!free.empty()) {
    event = free.back();
    free.pop_back();
  } else if (Status status = context.check(
                 call.eventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
             !status) {
    return status;
  }
  if (Status status =
          context.check(call.eventRecord(event, stream), "cuEventRecord");
      !status) {
    free.push_back(event);
    return status;
  }
  return event;
}

Status Profile::start(CUstream stream) {
  std::lock_guard<std::mutex> lock(mutex);
  Result<CUevent> event = record(stream);
  if (!event)
    return std::move(event).status();
  zero = *event;
  Status status = context.check(context.call().eventSynchronize(zero),
                                "cuEventSynchronize");
  zeroTime = Clock::now();
  return status;
}

Result<CUevent> Profile::begin(CUstream stream) {
  std::lock_guard<std::mutex> lock(mutex);
  if (open.size() >= mostOpen)
    if (Status status = resolve(); !status)
      return status;
  return record(stream);
}

Status Profile::end(CUevent from, CUstream stream, int number,
                    std::string name) {
  std::lock_guard<std::mutex> lock(mutex);
  Result<CUevent> event = record(stream);
  if (!event) {
    free.push_back(from);
    return std::move(event).status();
  }
  open.push_back({std::move(name), number, from, *event, 0, 0});
  return Status::success();
}

Status Profile::resolve() {
  const Functions &call = context.call();
  for (Entry &entry : open) {
    float start = 0, duration = 0;
    Status status =
        context.check(call.eventSynchronize(entry.to), "cuEventSynchronize");
    if (status.ok())
      status = context.check(call.eventElapsedTime(&start, zero, entry.from),
                             "cuEventElapsedTime");
    if (status.ok())
      status =
          context.check(call.eventElapsedTime(&duration, entry.from, entry.to),
                        "cuEventElapsedTime");
    if (!status)
      return status;
    entry.start = double(start) * 1000;
    entry.duration = double(duration) * 1000;
    free.push_back(std::exchange(entry.from, nullptr));
    free.push_back(std::exchange(entry.to, nullptr));
    entries.push_back(std::move(entry));
  }
  open.clear();
  return Status::success();
}

double Profile::sinceStart(Clock::time_point time) const {
  return std::chrono::duration<double, std::micro>(time - zeroTime).count();
}

void Profile::addPhase(std::string name, Clock::time_point since) {
  Clock::time_point now = Clock::now();
  std::lock_guard<std::mutex> lock(mutex);
  auto self = std::this_thread::get_id();
  auto it = std::find(threads.begin(), threads.end(), self);
  auto thread = static_cast<size_t>(it - threads.begin());
  if (it == threads.end())
    threads.push_back(self);
  phases.push_back({std::move(name), thread, sinceStart(since),
                    sinceStart(now) - sinceStart(since)});
}

Result<std::string> Profile::stop() {
  std::lock_guard<std::mutex> lock(mutex);
  if (Status status = resolve(); !status)
    return status;
  using Json = nlohmann::ordered_json;
  Json events = Json::array();
  auto label = [&](const char *what, int process, size_t row,
                   const std::string &name) {
    Json event = {{"name", what}, {"ph", "M"}, {"pid", process}};
    if (std::string(what) == "thread_name")
      event["tid"] = row;
    event["args"] = {{"name", name}};
    events.push_back(std::move(event));
  };
  constexpr int host = 0, device = 1;
  label("process_name", host, 0, "host");
  label("process_name", device, 0,
        toString(context.device()) + " (" + context.name() + ")");
  for (size_t t = 0; t < threads.size(); ++t)
    label("thread_name", host, t, "thread " + std::to_string(t));
  std::vector<int> streams;
  for (const Entry &entry : entries)
    streams.push_back(entry.stream);
  std::sort(streams.begin(), streams.end());
  streams.erase(std::unique(streams.begin(), streams.end()), streams.end());
  for (int stream : streams)
    label("thread_name", device, static_cast<size_t>(stream),
          stream ? "stream " + std::to_string(stream) : "the caller's stream");
  for (const Phase &phase : phases)
    events.push_back({{"name", phase.name},
                      {"ph", "X"},
                      {"pid", host},
                      {"tid", phase.thread},
                      {"ts", wholeNanoseconds(phase.start)},
                      {"dur", wholeNanoseconds(phase.duration)}});
  for (const Entry &entry : entries)
    events.push_back({{"name", entry.name},
                      {"ph", "X"},
                      {"pid", device},
                      {"tid", entry.stream},
                      {"ts", wholeNanoseconds(entry.start)},
                      {"dur", wholeNanoseconds(entry.duration)}});
  return Json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}}
             .dump() +
         "\n";
}

} // namespace tandem::cuda
