//===- EntryStreams.cpp - streams and events ------------------------------===//
#include "cuda/emulator/Capture.h"
#include "cuda/emulator/Entry.h"
#include "cuda/emulator/Graphs.h"

using namespace tandem::emulator;

namespace {
using namespace tandem::cuda::driver;

/// A wait for captured work makes no sense: it runs when its graph does.
CUresult refuseCaptured(const Stream &stream) {
  if (!stream.capture)
    return CUDA_SUCCESS;
  stream.capture->isInvalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/// The same of an event.
CUresult refuseCaptured(const Event &event) {
  if (!event.capture)
    return CUDA_SUCCESS;
  event.capture->isInvalid = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}

/// Not ready the first time, so that a caller who does not ask again is seen.
CUresult query(Machine &m, const OperationPtr &operation, Device &device) {
  ++m.report.counts.queries;
  if (operation && !operation->done) {
    (void)m.scheduler.need(*operation);
    return device.error ? device.error : CUDA_ERROR_NOT_READY;
  }
  if (operation)
    m.observe(*operation);
  return device.error;
}

template <typename Body> CUresult withEvent(CUevent handle, Body &&body) {
  return withDriver([&](Machine &m) {
    Event *event = m.events.find(handle);
    if (!event)
      return CUDA_ERROR_INVALID_HANDLE;
    return event->device->error ? event->device->error : body(m, *event);
  });
}
} // namespace

namespace tandem::cuda::driver {

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  return withDevice([&](Machine &m, Device &device) {
    if (!stream || flags > CU_STREAM_NON_BLOCKING)
      return CUDA_ERROR_INVALID_VALUE;
    *stream = reinterpret_cast<CUstream>(
        &m.createStream(device, flags, /*isLegacy=*/false));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags,
                                    int /*priority*/) {
  return cuStreamCreate(stream, flags);
}

// What is queued goes on.
CUresult cuStreamDestroy_v2(CUstream handle) {
  return withDriver([&](Machine &m) {
    auto it = std::find_if(m.streams.begin(), m.streams.end(), [&](auto &s) {
      return static_cast<void *>(s.get()) == handle && !s->isLegacy;
    });
    if (it == m.streams.end())
      return CUDA_ERROR_INVALID_HANDLE;
    Stream &stream = **it;
    if (const std::shared_ptr<Capture> capture = stream.capture) {
      capture->isInvalid = true;
      if (capture->origin == &stream) {
        for (const auto &other : m.streams)
          if (other->capture == capture)
            other->capture = nullptr;
        std::erase(m.captures, capture);
        capture->hasEnded = true;
      }
    }
    auto &orphans = stream.device->orphans;
    auto isKnown = [&](const OperationPtr &operation) {
      return operation->done &&
             m.hostClock.covers(operation->lane, operation->tick);
    };
    std::erase_if(orphans, [&](auto &entry) { return isKnown(entry.first); });
    if (stream.last && !isKnown(stream.last))
      orphans.emplace_back(stream.last, stream.isBlocking());
    m.endStream(it);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags) {
  return withStream(stream, [&](Machine &, Stream &on) {
    if (!flags)
      return CUDA_ERROR_INVALID_VALUE;
    *flags = on.flags;
    return CUDA_SUCCESS;
  });
}

// Unlike its handle, a stream's number never comes again.
CUresult cuStreamGetId(CUstream stream, unsigned long long *id) {
  return withStream(stream, [&](Machine &, Stream &on) {
    if (!id)
      return CUDA_ERROR_INVALID_VALUE;
    *id = on.lane;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
  return withStream(stream, [&](Machine &, Stream &on) {
    if (!context)
      return CUDA_ERROR_INVALID_VALUE;
    *context = contextOf(*on.device);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamQuery(CUstream stream) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    if (CUresult result = refuseCaptured(on))
      return result;
    if (CUresult result = m.captureUnsafe())
      return result;
    m.report.log("host: query " + on.name);
    return query(m, on.last, *on.device);
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    if (CUresult result = refuseCaptured(on))
      return result;
    if (CUresult result = m.captureUnsafe())
      return result;
    if (on.isLegacy)
      if (CUresult result = m.captureImplicit(on))
        return result;
    m.report.log("host: synchronize " + on.name);
    if (!on.isLegacy)
      return m.await(on.last, *on.device);
    // The default stream's work so far includes the blocking streams'.
    Command command;
    command.what = "synchronize";
    const uint64_t before = m.report.counts.defaultStreamOperations;
    const OperationPtr all = m.submit(on, std::move(command));
    m.report.counts.defaultStreamOperations = before;
    return m.await(all, *on.device);
  });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned flags) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    Event *event = m.events.find(handle);
    if (!event)
      return CUDA_ERROR_INVALID_HANDLE;
    if (flags)
      return CUDA_ERROR_INVALID_VALUE;
    ++m.report.counts.eventWaits;
    if (event->capture || (on.capture && event->operation))
      return captureWait(m, on, *event);
    if (!event->operation) // never recorded: nothing to wait for
      return CUDA_SUCCESS;
    Command command;
    command.what = "wait " + event->name() + " of " + event->recordedOn;
    return m.push(on, std::move(command), {&event->operation, 1});
  });
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
  return withDevice([&](Machine &m, Device &device) {
    if (!event || flags > (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING))
      return CUDA_ERROR_INVALID_VALUE;
    auto made = std::make_unique<Event>();
    made->number = ++m.eventCount;
    made->flags = flags;
    made->device = &device;
    *event = reinterpret_cast<CUevent>(&m.events.add(std::move(made)));
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent handle) {
  return withDriver([&](Machine &m) {
    Event *event = m.events.find(handle);
    if (!event)
      return CUDA_ERROR_INVALID_HANDLE;
    m.events.remove(*event);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventRecord(CUevent handle, CUstream stream) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    Event *event = m.events.find(handle);
    if (!event)
      return CUDA_ERROR_INVALID_HANDLE;
    if (event->device != on.device)
      return CUDA_ERROR_INVALID_HANDLE;
    ++m.report.counts.eventRecords;
    if (on.capture) {
      if (on.capture->isInvalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      m.report.log(on.name + ": record " + event->name() + " (captured)");
      event->capture = on.capture;
      event->tail = on.tail;
      event->operation = nullptr;
      event->recordedOn = on.name;
      return CUDA_SUCCESS;
    }
    Command command;
    command.what = "record " + event->name();
    if (CUresult result = m.push(on, std::move(command)))
      return result;
    event->capture = nullptr;
    event->tail.clear();
    event->operation = on.last;
    event->recordedOn = on.name;
    return CUDA_SUCCESS;
  });
}

CUresult cuEventQuery(CUevent handle) {
  return withEvent(handle, [&](Machine &m, Event &event) {
    if (CUresult result = refuseCaptured(event))
      return result;
    if (CUresult result = m.captureUnsafe())
      return result;
    m.report.log("host: query " + event.name());
    return query(m, event.operation, *event.device);
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  return withEvent(handle, [&](Machine &m, Event &event) {
    if (CUresult result = refuseCaptured(event))
      return result;
    if (CUresult result = m.captureUnsafe())
      return result;
    m.report.log("host: synchronize " + event.name());
    return m.await(event.operation, *event.device);
  });
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to) {
  return withDriver([&](Machine &m) {
    const Event *first = m.events.find(from), *last = m.events.find(to);
    if (!first || !last)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!milliseconds)
      return CUDA_ERROR_INVALID_VALUE;
    if (!first->operation || !last->operation ||
        first->device != last->device ||
        ((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING))
      return CUDA_ERROR_INVALID_HANDLE;
    if (!first->operation->done || !last->operation->done)
      return CUDA_ERROR_NOT_READY;
    const auto nanoseconds =
        static_cast<int64_t>(last->operation->end - first->operation->end);
    *milliseconds = static_cast<float>(double(nanoseconds) * 1e-6);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
        mode > CU_STREAM_CAPTURE_MODE_RELAXED)
      return CUDA_ERROR_INVALID_VALUE;
    return beginCapture(m, on, mode);
  });
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  return withDriver([&](Machine &m) {
    Stream *on = m.stream(stream);
    if (!on)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!graph)
      return CUDA_ERROR_INVALID_VALUE;
    *graph = nullptr;
    std::unique_ptr<Graph> made;
    if (CUresult result = endCapture(m, *on, made))
      return result;
    *graph = reinterpret_cast<CUgraph>(&m.graphs.add(std::move(made)));
    return on->device->error;
  });
}

static CUstreamCaptureStatus statusOf(const Stream &stream) {
  if (!stream.capture)
    return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->isInvalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                   : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    if (!status)
      return CUDA_ERROR_INVALID_VALUE;
    // To ask harms no capture.
    if (on.isLegacy && m.isCaptureImplicit(on))
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = statusOf(on);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream,
                                   CUstreamCaptureStatus *status, uint64_t *id,
                                   CUgraph *graph,
                                   const CUgraphNode **dependencies,
                                   size_t *count) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    if (!status)
      return CUDA_ERROR_INVALID_VALUE;
    // To ask harms no capture.
    if (on.isLegacy && m.isCaptureImplicit(on))
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = statusOf(on);
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
      return CUDA_SUCCESS;
    if (id)
      *id = on.capture->id;
    if (graph)
      *graph = reinterpret_cast<CUgraph>(on.capture->graph.get());
    if (dependencies)
      *dependencies = reinterpret_cast<const CUgraphNode *>(on.tail.data());
    if (count)
      *count = on.tail.size();
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream,
                                           CUgraphNode *dependencies,
                                           size_t count, unsigned flags) {
  return withStream(stream, [&](Machine &m, Stream &on) {
    if (!on.capture)
      return CUDA_ERROR_ILLEGAL_STATE;
    if ((count && !dependencies) || flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
      return CUDA_ERROR_INVALID_VALUE;
    std::vector<Node *> nodes;
    for (size_t i = 0; i < count; ++i) {
      if (!m.nodes.count(dependencies[i]))
        return CUDA_ERROR_INVALID_VALUE;
      nodes.push_back(reinterpret_cast<Node *>(dependencies[i]));
      if (nodes.back()->graph != on.capture->graph.get())
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
      on.tail.clear();
    for (Node *node : nodes)
      if (std::find(on.tail.begin(), on.tail.end(), node) == on.tail.end())
        on.tail.push_back(node);
    return CUDA_SUCCESS;
  });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  return withDriver([&](Machine &) {
    if (!mode || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
        *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
      return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, Machine::thread().captureMode);
    return CUDA_SUCCESS;
  });
}

} // namespace tandem::cuda::driver
