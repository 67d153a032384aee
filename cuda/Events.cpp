//===- Events.cpp - events and streams that are used again ----------------===//
//
// See Events.h.
//
//===----------------------------------------------------------------------===//
#include "cuda/Events.h"

namespace tandem::cuda {

using namespace driver;

EventPool::~EventPool() {
  Context::Scope scope(context);
  for (CUevent event : free)
    context.call().eventDestroy(event);
}

Result<CUevent> EventPool::make() {
  CUevent event = nullptr;
  Context::Relaxed relaxed(context);
  if (Status status = context.check(
          context.call().eventCreate(&event, CU_EVENT_DISABLE_TIMING),
          "cuEventCreate");
      !status)
    return status;
  return event;
}

Result<CUevent> EventPool::take() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!free.empty()) {
      CUevent event = free.back();
      free.pop_back();
      return event;
    }
  }
  return make();
}

void EventPool::give(CUevent event) {
  std::lock_guard<std::mutex> lock(mutex);
  free.push_back(event);
}

Status EventPool::reserve(size_t count) {
  std::lock_guard<std::mutex> lock(mutex);
  while (free.size() < count) {
    Result<CUevent> event = make();
    if (!event)
      return std::move(event).status();
    free.push_back(*event);
  }
  return Status::success();
}

Result<CUevent> EventPool::record(CUstream stream) {
  Result<CUevent> event = take();
  if (!event)
    return event;
  Status status = context.check(context.call().eventRecord(*event, stream),
                                "cuEventRecord");
  if (!status) {
    give(*event);
    return status;
  }
  return event;
}

Status EventPool::wait(CUstream waiter, CUstream producer) {
  if (waiter == producer)
    return Status::success();
  Result<CUevent> event = record(producer);
  if (!event)
    return std::move(event).status();
  CUresult result = context.call().streamWaitEvent(waiter, *event, 0);
  give(*event);
  return context.check(result, "cuStreamWaitEvent");
}

Status EventPool::await(CUstream stream) {
  Result<CUevent> event = record(stream);
  if (!event)
    return std::move(event).status();
  Context::Relaxed relaxed(context);
  CUresult result = context.call().eventSynchronize(*event);
  give(*event);
  return context.check(result, "cuEventSynchronize");
}

SideStreams::~SideStreams() {
  Context::Scope scope(context);
  for (CUstream stream : streams)
    context.call().streamDestroy(stream);
}

Result<CUstream> SideStreams::at(int number) {
  std::lock_guard<std::mutex> lock(mutex);
  while (streams.size() <= static_cast<size_t>(number)) {
    CUstream stream = nullptr;
    Context::Relaxed relaxed(context);
    if (Status status = context.check(
            context.call().streamCreate(&stream, CU_STREAM_NON_BLOCKING),
            "cuStreamCreate");
        !status)
      return status;
    streams.push_back(stream);
  }
  return streams[number];
}

} // namespace tandem::cuda
