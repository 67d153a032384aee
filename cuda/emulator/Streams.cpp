//===- Streams.cpp - queues of operations ---------------------------------===//
//
// An operation waits for the one before it on its stream, for what it is told
// to, and for the default stream's rule: an operation of a default stream waits
// for all blocking streams of its device, and theirs for it.
//
// Virtual time: an operation starts when it has been submitted and all that it
// waits for has ended; any number run at the same time.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/Execution.h"
#include "cuda/emulator/Graphs.h"
#include "cuda/emulator/Machine.h"

#include <chrono>
#include <thread>

using namespace tandem::emulator;
using namespace tandem::cuda::driver;

Stream &Machine::createStream(Device &device, unsigned flags, bool isLegacy) {
  std::unique_ptr<Stream> owned;
  if (!isLegacy && !ended.empty()) {
    owned = std::move(ended.back());
    ended.pop_back();
  } else {
    owned = std::make_unique<Stream>();
  }
  Stream &stream = *owned;
  stream.number = isLegacy ? 0 : ++streamCount;
  stream.name = isLegacy ? "default" : "s" + std::to_string(stream.number);
  if (device.ordinal)
    stream.name += "@" + std::to_string(device.ordinal);
  stream.device = &device;
  stream.isLegacy = isLegacy;
  stream.flags = flags;
  stream.lane = newLane();
  streams.push_back(std::move(owned));
  return stream;
}

void Machine::endStream(std::vector<std::unique_ptr<Stream>>::iterator at) {
  **at = Stream();
  ended.push_back(std::move(*at));
  streams.erase(at);
}

Stream *Machine::stream(CUstream handle) {
  if (!handle || handle == CU_STREAM_LEGACY) {
    Device *device = current();
    return device ? device->legacy : nullptr;
  }
  for (const auto &stream : streams)
    if (static_cast<void *>(stream.get()) == handle)
      return stream.get();
  return nullptr;
}

Lane Machine::newLane() {
  lanes.push_back(0);
  return static_cast<Lane>(lanes.size() - 1);
}

CUresult Machine::push(Stream &stream, Command command,
                       std::span<const OperationPtr> also) {
  if (stream.isLegacy)
    if (CUresult result = captureImplicit(stream))
      return result;
  if (report.isLogging())
    report.log(stream.name + ": " + command.what +
               (stream.capture ? " (captured)" : ""));
  if (stream.capture) {
    if (stream.capture->isInvalid)
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    command.duration += std::exchange(stream.delay, 0);
    command.device = stream.device;
    Node &node = stream.capture->graph->add(*this, std::move(command),
                                            std::move(stream.tail));
    stream.tail = {&node};
    return CUDA_SUCCESS;
  }
  submit(stream, std::move(command), also);
  // What goes wrong in an operation is seen by later calls; a device that is
  // gone by this one.
  return stream.device->error == CUDA_ERROR_ECC_UNCORRECTABLE
             ? stream.device->error
             : CUDA_SUCCESS;
}

OperationPtr Machine::submit(Stream &stream, Command command,
                             std::span<const OperationPtr> also) {
  std::vector<OperationPtr> waitsFor(also.begin(), also.end());
  auto add = [&](const OperationPtr &operation) {
    if (operation)
      waitsFor.push_back(operation);
  };
  add(stream.last);
  Device &device = *stream.device;
  if (stream.isLegacy) {
    ++report.counts.defaultStreamOperations;
    for (const auto &other : streams)
      if (other->device == &device && other->isBlocking())
        add(other->last);
    for (const auto &[operation, wasBlocking] : device.orphans)
      if (wasBlocking)
        add(operation);
  } else if (stream.isBlocking()) {
    add(device.legacy->last);
  }
  command.duration += std::exchange(stream.delay, 0);
  OperationPtr operation =
      submitOn(stream, stream.lane, std::move(command), std::move(waitsFor));
  stream.last = operation;
  return operation;
}

OperationPtr Machine::submitOn(Stream &stream, Lane lane, Command command,
                               std::vector<OperationPtr> waitsFor) {
  Device &device = command.device ? *command.device : *stream.device;
  auto operation = std::make_shared<Operation>();
  operation->order = ++orders;
  const char *writes = "writes";
  switch (command.kind) {
  case Command::Kind::Kernel:
    ++report.counts.launches;
    if (failures.strikes(Failures::Launch))
      operation->failure = CUDA_ERROR_LAUNCH_FAILED;
    if (failures.strikes(Failures::Lost) && !device.error)
      device.error = CUDA_ERROR_ECC_UNCORRECTABLE;
    break;
  case Command::Kind::Copy:
    ++report.counts.copies;
    break;
  case Command::Kind::Memset:
    ++report.counts.memsets;
    break;
  case Command::Kind::Host:
    ++report.counts.hostFunctions;
    break;
  case Command::Kind::Allocate:
    writes = "allocates";
    break;
  case Command::Kind::Free:
    writes = "frees";
    break;
  case Command::Kind::Delay:
  case Command::Kind::Empty:
    break;
  }
  operation->origin = std::make_shared<Origin>(
      Origin{std::move(command.what), stream.name, writes, operation->order});
  operation->stream = stream.number;
  operation->device = &device;
  operation->kind = command.kind;
  operation->lane = lane;
  operation->tick = ++lanes[lane];
  operation->run = std::move(command.run);
  operation->isHeld = std::move(command.isHeld);
  operation->clock = hostClock;
  operation->start = hostTime;
  for (const OperationPtr &other : waitsFor) {
    operation->clock.join(other->clock);
    operation->start = std::max(operation->start, other->end);
  }
  operation->clock.advance(lane, operation->tick);
  operation->end = operation->start + command.duration;
  endTime = std::max(endTime, operation->end);
  operation->waitsFor = std::move(waitsFor);
  scheduler.submit(operation);
  return operation;
}

void Machine::run(Operation &operation) {
  Device &device = *operation.device;
  // A broken context runs nothing more, but memory must not be lost.
  if (device.error && operation.kind != Command::Kind::Free)
    return;
  if (operation.failure) {
    device.error = operation.failure;
    return;
  }
  if (!operation.run)
    return;
  Execution execution(*this, operation);
  operation.run(execution);
  execution.finish();
}

void Machine::observe(const Operation &operation) {
  if (thread().isLookingOn)
    return;
  hostClock.join(operation.clock);
  hostTime = std::max(hostTime, operation.end);
}

void Machine::need(const OperationPtr &operation) {
  // Every function of the driver has the lock once.
  while (!scheduler.need(*operation)) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    lock.lock();
  }
}

CUresult Machine::await(const OperationPtr &operation, Device &device) {
  ++report.counts.syncs;
  if (operation) {
    need(operation);
    observe(*operation);
  }
  return device.error;
}

CUresult Machine::awaitDevice(Device &device) {
  ++report.counts.syncs;
  std::vector<OperationPtr> last;
  for (const auto &stream : streams)
    if (stream->device == &device && stream->last)
      last.push_back(stream->last);
  for (const auto &[operation, wasBlocking] : device.orphans)
    last.push_back(operation);
  device.orphans.clear();
  for (const OperationPtr &operation : last) {
    need(operation);
    observe(*operation);
  }
  return device.error;
}
