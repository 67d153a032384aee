//===- Plan.cpp - a program, queued on streams ----------------------------===//
//
// PlanGraph.cpp has the graph.
//
//===----------------------------------------------------------------------===//
#include "cuda/Plan.h"

#include "cuda/Profile.h"
#include "cuda/TensorMaps.h"

#include <algorithm>

namespace tandem::cuda {

using namespace driver;
using artifact::Launch;

namespace {

/// Where scratch memory of a stream stands in `bufferOf`.
int scratchOf(int stream) { return -1 - stream; }

} // namespace

Plan::Plan(const Context &context, const artifact::Manifest &manifest,
           const artifact::Program &program, CommandList commands,
           std::span<const LoadedKernel> kernels,
           std::span<const std::unique_ptr<PreparedCall>> calls,
           CUstream recorder)
    : context(context), manifest(manifest), program(program),
      list(std::move(commands)), recorder(recorder) {
  for (const Command &command : list.commands()) {
    const Launch &launch = program.launches[command.launch];
    Bound one;
    one.first = bufferOf.size();
    if (command.kind == Command::Kind::Kernel) {
      one.kernel = &kernels[launch.kernel];
      for (size_t d = 0; d < launch.grid.size() && d < 3; ++d)
        one.grid[d] = static_cast<unsigned>(launch.grid[d]);
      for (int64_t buffer : launch.buffers)
        bufferOf.push_back(static_cast<int>(buffer));
      for (const artifact::TensorMap &map :
           manifest.kernels[launch.kernel].tensorMaps) {
        maps.push_back({bufferOf.size(), &map});
        bufferOf.push_back(static_cast<int>(launch.buffers[map.buffer]));
      }
      if (command.usesScratch)
        bufferOf.push_back(scratchOf(command.stream));
    } else if (command.kind == Command::Kind::Library) {
      one.call = calls[command.launch].get();
      for (int64_t buffer : launch.buffers)
        bufferOf.push_back(static_cast<int>(buffer));
      one.hasWorkspace = launch.library->workspace.has_value();
      if (one.hasWorkspace)
        bufferOf.push_back(static_cast<int>(*launch.library->workspace));
    } else if (command.kind == Command::Kind::Collective ||
               command.kind == Command::Kind::Slice) {
      if (command.kind == Command::Kind::Slice)
        one.slice = &*launch.collective;
      one.firstExchanged = exchanged.size();
      for (size_t i = 0; i < command.launches; ++i) {
        const Launch &each = program.launches[command.launch + i];
        for (int64_t buffer : each.buffers)
          bufferOf.push_back(static_cast<int>(buffer));
        if (!one.slice)
          exchanged.push_back({&*each.collective, nullptr, nullptr});
      }
      one.exchangedCount = exchanged.size() - one.firstExchanged;
    } else {
      bufferOf.push_back(command.writes.front());
      if (command.kind == Command::Kind::Copy)
        bufferOf.push_back(command.reads.front());
      one.bytes = bytesOf(program, program.buffers[command.writes.front()]);
      one.isToHost = command.isToHost;
      one.isFromHost = command.isFromHost;
    }
    one.count = bufferOf.size() - one.first;
    bound.push_back(one);
  }
  values.resize(bufferOf.size());
  for (void *&value : values)
    parameters.push_back(&value);
  for (Mapped &one : maps)
    parameters[one.value] = &one.encoded;
  done.resize(bound.size());
}

Plan::~Plan() { dropGraph(); }

std::string Plan::nameOf(const Command &command) const {
  const Launch &launch = program.launches[command.launch];
  if (launch.isCollective())
    return std::string(spelling(launch.collective->op)) +
           (command.launches > 1
                ? " of " + std::to_string(command.launches) + " together"
                : "");
  if (!launch.isCopy())
    return manifest.kernels[launch.kernel].symbol;
  return command.isToHost ? "copy to host" : "copy from host";
}

Status Plan::failed(Status status, size_t index) const {
  const Command &command = list.commands()[index];
  return std::move(status).in("launch " + std::to_string(command.launch) +
                              " ('" + nameOf(command) + "') of program '" +
                              program.name + "'");
}

Status Plan::place(std::span<void *const> buffers,
                   const std::function<Result<void *>(int)> &scratch) {
  for (size_t v = 0; v < values.size(); ++v) {
    if (bufferOf[v] >= 0) {
      values[v] = buffers[bufferOf[v]];
      const artifact::Buffer &buffer = program.buffers[bufferOf[v]];
      if (!values[v] && bytesOf(program, buffer) > 0)
        return Status::usage("program '" + program.name +
                             "': expected an address of buffer " +
                             std::to_string(bufferOf[v]) + " but got null");
    } else {
      Result<void *> memory = scratch(-1 - bufferOf[v]);
      if (!memory)
        return std::move(memory).status();
      values[v] = *memory;
    }
  }
  return encodeMaps();
}

Status Plan::encodeMaps() {
  for (Mapped &one : maps) {
    void *address = values[one.value];
    if (address == one.address)
      continue;
    one.address = nullptr;
    Status status = encodeTensorMap(context, *one.map, address, one.encoded);
    if (!status)
      return std::move(status).in("program '" + program.name + "'");
    one.address = address;
  }
  return Status::success();
}

Status Plan::queueCall(const Bound &one, CUstream stream) {
  // A library may load its code now, which disturbs nobody's capture.
  Context::Relaxed relaxed(context);
  std::span<void *const> all(values.data() + one.first, one.count);
  return one.call->queue(stream, all, one.hasWorkspace ? all.back() : nullptr);
}

Status Plan::queueOverRanks(const Bound &one, CUstream stream) {
  if (!one.slice) {
    std::span<RankGroups::Part> parts(exchanged.data() + one.firstExchanged,
                                      one.exchangedCount);
    for (size_t i = 0; one.count && i < parts.size(); ++i) {
      parts[i].from = values[one.first + 2 * i];
      parts[i].to = values[one.first + 2 * i + 1];
    }
    return ranks->queue(parts, stream);
  }
  const artifact::Collective &what = *one.slice;
  int64_t size = artifact::groupSize(manifest.mesh, what.axes);
  int64_t bytes = what.elements / size * byteSize(what.dtype);
  return context.check(
      context.call().memcpyDtoDAsync(
          at(one.first + 1),
          at(one.first) + static_cast<CUdeviceptr>(
                              bytes * ranks->ranks().placeIn(what.axes)),
          static_cast<size_t>(bytes), stream),
      "cuMemcpyDtoDAsync");
}

Status Plan::queueOne(size_t command, CUstream stream) {
  const Bound &one = bound[command];
  const Functions &call = context.call();
  if (one.kernel)
    return context.check(
        call.launchKernel(one.kernel->function, one.grid[0], one.grid[1],
                          one.grid[2], one.kernel->block[0],
                          one.kernel->block[1], one.kernel->block[2],
                          one.kernel->sharedBytes, stream,
                          parameters.data() + one.first, nullptr),
        "cuLaunchKernel");
  if (one.call)
    return queueCall(one, stream);
  if (one.slice || one.exchangedCount)
    return queueOverRanks(one, stream);
  if (one.isToHost || one.isFromHost) // pinned: the driver knows the address
    return context.check(call.memcpyAsync(at(one.first), at(one.first + 1),
                                          static_cast<size_t>(one.bytes),
                                          stream),
                         "cuMemcpyAsync");
  if (one.count == 2)
    return context.check(call.memcpyDtoDAsync(at(one.first), at(one.first + 1),
                                              static_cast<size_t>(one.bytes),
                                              stream),
                         "cuMemcpyDtoDAsync");
  return context.check(call.memsetD8Async(at(one.first), 0,
                                          static_cast<size_t>(one.bytes),
                                          stream),
                       "cuMemsetD8Async");
}

Status Plan::queueTimed(size_t index, CUstream stream, Profile &profile) {
  const Command &command = list.commands()[index];
  Result<CUevent> from = profile.begin(stream);
  if (!from)
    return std::move(from).status();
  Status status = queueOne(index, stream);
  bool isPlain = !command.isToHost && !command.isFromHost;
  std::string name = command.kind == Command::Kind::Copy && isPlain ? "copy"
                     : command.kind == Command::Kind::Zero          ? "zero"
                                                           : nameOf(command);
  if (bound[index].call)
    name += std::string(" (") + bound[index].call->name() + ")";
  Status ended = profile.end(*from, stream, command.stream, std::move(name));
  return status.ok() ? ended : status;
}

Status Plan::queue(std::span<const CUstream> streams, EventPool &events,
                   Profile *profile, RankGroups *its) {
  ranks = its;
  context.noteQueued(program.name);
  const bool waitsForEach =
      context.waitsForEach() && !context.isCapturing(streams[0]);
  const std::vector<Command> &commands = list.commands();
  const Functions &call = context.call();
  auto waitFor = [&](int stream, CUevent event) {
    return context.check(call.streamWaitEvent(streams[stream], event, 0),
                         "cuStreamWaitEvent");
  };
  Status status;
  CUevent entry = nullptr;
  if (list.streams().size() > 1) {
    Result<CUevent> recorded = events.record(streams[0]);
    if (!recorded)
      return std::move(recorded).status();
    entry = *recorded;
  }
  size_t count = 0;
  for (; status.ok() && count < commands.size(); ++count) {
    const Command &command = commands[count];
    CUstream stream = streams[command.stream];
    if (command.waitsForEntry)
      status = waitFor(command.stream, entry);
    for (size_t w = 0; status.ok() && w < command.waits.size(); ++w)
      status = waitFor(command.stream, done[command.waits[w]]);
    if (status.ok())
      status = profile ? queueTimed(count, stream, *profile)
                       : queueOne(count, stream);
    if (status.ok() && waitsForEach)
      status =
          context.check(call.streamSynchronize(stream), "cuStreamSynchronize");
    if (status.ok() && command.isAwaited) {
      Result<CUevent> event = events.record(stream);
      if (event)
        done[count] = *event;
      else
        status = std::move(event).status();
    }
    if (!status)
      status = failed(std::move(status), count);
  }
  if (status.ok()) {
    for (size_t e = 0; status.ok() && e < list.exits().size(); ++e)
      status = waitFor(0, done[list.exits()[e]]);
  } else {
    // Whatever was queued: the caller's stream is behind it.
    for (int stream : list.streams())
      (void)events.wait(streams[0], streams[stream]).ok();
  }
  for (CUevent &event : done)
    if (event)
      events.give(std::exchange(event, nullptr));
  if (entry)
    events.give(entry);
  return status;
}

} // namespace tandem::cuda
