//===- RegisteredMemory.cpp - what copies registered host memory ----------===//
//
// One table for all devices of the process: another device than the one that
// registered the memory copies it, too. There is one event for each stream; it
// moves on with the stream's copies. Streams are told apart by their numbers:
// another one may have the handle of one that was destroyed, whose copies still
// run.
//
//===----------------------------------------------------------------------===//
#include "cuda/RegisteredMemory.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace tandem::cuda {

using namespace driver;

namespace {

struct Use {
  const Context *context;
  EventPool *events;
  uint64_t stream; ///< its number
  CUevent event;
};

struct Range {
  int64_t bytes = 0;
  std::vector<Use> uses;
};

struct Table {
  std::mutex mutex;
  /// By driver and address.
  std::map<std::pair<const Driver *, uintptr_t>, Range> ranges;
  /// Their number: mostly there are none to be looked through.
  std::atomic<size_t> count{0};
};

/// Tensors may end behind the statics.
Table &table() {
  static Table &one = *new Table;
  return one;
}

/// Needs a Scope of the use's context.
bool isDone(const Use &use) {
  Context::Relaxed relaxed(*use.context);
  return use.context->call().eventQuery(use.event) == CUDA_SUCCESS;
}

uintptr_t number(const void *data) { return reinterpret_cast<uintptr_t>(data); }

} // namespace

void addRegistered(const Driver &driver, const void *data, int64_t bytes) {
  Table &all = table();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.ranges[{&driver, number(data)}].bytes = bytes;
  all.count = all.ranges.size();
}

Status noteCopy(const Context &context, EventPool &events, const void *data,
                CUstream stream) {
  Table &all = table();
  if (!all.count || context.isCapturing(stream))
    return Status::success();
  std::lock_guard<std::mutex> lock(all.mutex);
  auto it = all.ranges.upper_bound({&context.driver(), number(data)});
  if (it == all.ranges.begin())
    return Status::success();
  --it;
  auto &[key, range] = *it;
  if (key.first != &context.driver() ||
      number(data) - key.second >= static_cast<uint64_t>(range.bytes))
    return Status::success();
  uint64_t which = context.numberOf(stream);
  for (const Use &use : range.uses)
    if (use.context == &context && use.stream == which)
      return context.check(context.call().eventRecord(use.event, stream),
                           "cuEventRecord");
  // So that streams that come and go leave nothing.
  std::erase_if(range.uses, [&](const Use &use) {
    if (use.context != &context || !isDone(use))
      return false;
    events.give(use.event);
    return true;
  });
  Result<CUevent> event = events.record(stream);
  if (!event)
    return std::move(event).status();
  range.uses.push_back({&context, &events, which, *event});
  return Status::success();
}

void finishRegistered(const Driver &driver, const void *data) {
  Table &all = table();
  std::vector<Use> uses;
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    auto it = all.ranges.find({&driver, number(data)});
    if (it == all.ranges.end())
      return;
    uses = std::move(it->second.uses);
    all.ranges.erase(it);
    all.count = all.ranges.size();
  }
  for (const Use &use : uses) {
    Context::Scope scope(*use.context);
    Context::Relaxed relaxed(*use.context);
    // What fails here is a lost device: of its copies none runs.
    (void)use.context->check(use.context->call().eventSynchronize(use.event),
                             "cuEventSynchronize");
    use.events->give(use.event);
  }
}

void forgetCopies(const Context &context) {
  Table &all = table();
  std::lock_guard<std::mutex> lock(all.mutex);
  for (auto &[key, range] : all.ranges)
    std::erase_if(range.uses,
                  [&](const Use &use) { return use.context == &context; });
}

} // namespace tandem::cuda
