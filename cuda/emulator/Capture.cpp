//===- Capture.cpp - recording what streams are given ---------------------===//
//
// While a stream captures, its commands become nodes of a graph. Waiting for an
// event that was recorded in the capture joins the stream to it. A call that a
// capture forbids makes all captures that forbid it invalid; ending an invalid
// capture gives an error and no graph.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/Capture.h"

#include "cuda/emulator/Graphs.h"
#include "cuda/emulator/Machine.h"

#include <algorithm>

using namespace tandem::emulator;
using namespace tandem::cuda::driver;

Capture::Capture() = default;
Capture::~Capture() = default;

/// A call that could wait for, or be waited for by, captured work. The modes
/// say which captures forbid it: those of this thread that are not relaxed and,
/// unless this thread has another mode, the global ones of all threads.
CUresult Machine::captureUnsafe() {
  const CUstreamCaptureMode mode = thread().captureMode;
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (const auto &capture : captures) {
    const bool isOwn = capture->thread == std::this_thread::get_id();
    const bool forbids =
        isOwn ? capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED
              : mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                    capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!forbids)
      continue;
    capture->isInvalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

/// Work on a default stream would wait for the blocking streams, and captured
/// work cannot be waited for.
CUresult Machine::captureImplicit(const Stream &legacy) {
  CUresult result = CUDA_SUCCESS;
  for (const auto &stream : streams)
    if (stream->capture && stream->device == legacy.device &&
        stream->isBlocking()) {
      stream->capture->isInvalid = true;
      result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  return result;
}

bool Machine::isCaptureImplicit(const Stream &legacy) const {
  return std::ranges::any_of(streams, [&](const auto &stream) {
    return stream->capture && stream->device == legacy.device &&
           stream->isBlocking();
  });
}

CUresult tandem::emulator::beginCapture(Machine &machine, Stream &stream,
                                        CUstreamCaptureMode mode) {
  static uint64_t ids = 0;
  if (stream.isLegacy)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream.capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  ++machine.report.counts.captures;
  auto capture = std::make_shared<Capture>();
  capture->id = ++ids;
  capture->graph = std::make_unique<Graph>(machine);
  capture->origin = &stream;
  capture->thread = std::this_thread::get_id();
  capture->mode = mode;
  stream.capture = capture;
  stream.tail.clear();
  machine.captures.push_back(std::move(capture));
  machine.report.log(stream.name + ": begin capture");
  return CUDA_SUCCESS;
}

/// True if every node is one that the origin's next work would come after.
static bool isJoined(const Capture &capture) {
  std::vector<bool> seen(capture.graph->nodes.size());
  std::vector<const Node *> open(capture.origin->tail.begin(),
                                 capture.origin->tail.end());
  while (!open.empty()) {
    const Node *node = open.back();
    open.pop_back();
    if (seen[node->index])
      continue;
    seen[node->index] = true;
    open.insert(open.end(), node->dependencies.begin(),
                node->dependencies.end());
  }
  return std::find(seen.begin(), seen.end(), false) == seen.end();
}

CUresult tandem::emulator::endCapture(Machine &machine, Stream &stream,
                                      std::unique_ptr<Graph> &graph) {
  const std::shared_ptr<Capture> capture = stream.capture;
  if (!capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (capture->origin != &stream) {
    capture->isInvalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  CUresult result = CUDA_SUCCESS;
  if (capture->isInvalid)
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  else if (!isJoined(*capture))
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  for (const auto &other : machine.streams)
    if (other->capture == capture) {
      other->capture = nullptr;
      other->tail.clear();
    }
  std::erase(machine.captures, capture);
  capture->hasEnded = true;
  machine.report.log(stream.name + ": end capture, " +
                     std::to_string(capture->graph->nodes.size()) + " nodes");
  if (!result)
    graph = std::move(capture->graph);
  return result;
}

/// A wait for an event where the stream, the event, or both are captured.
CUresult tandem::emulator::captureWait(Machine &machine, Stream &stream,
                                       const Event &event) {
  auto invalidate = [](const std::shared_ptr<Capture> &capture) {
    if (capture)
      capture->isInvalid = true;
  };
  if (!event.capture) {
    // Work outside of the capture cannot be waited for when it is replayed.
    invalidate(stream.capture);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (event.capture->hasEnded)
    return CUDA_ERROR_CAPTURED_EVENT;
  if (stream.isLegacy) {
    invalidate(event.capture);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (stream.capture && stream.capture != event.capture) {
    invalidate(stream.capture);
    invalidate(event.capture);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (event.capture->isInvalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!stream.capture) {
    stream.capture = event.capture;
    stream.tail.clear();
  }
  for (Node *node : event.tail)
    if (std::find(stream.tail.begin(), stream.tail.end(), node) ==
        stream.tail.end())
      stream.tail.push_back(node);
  machine.report.log(stream.name + ": wait " + event.name() + " of " +
                     event.recordedOn + " (captured)");
  return CUDA_SUCCESS;
}
