//===- DeviceCall.cpp - what a call on a device does beside ---------------===//
//
// Streams: the program runs on the caller's current stream, a backward on that
// of its forward, and the caller's stream waits for it. The program's launches
// go to the device's code as a list. Results that go to the host are copied to
// pinned memory together, and read after one wait. Storages learn which streams
// used them.
//
//===----------------------------------------------------------------------===//
#include "runtime/Call.h"

namespace tandem::runtime {

namespace {

/// A phase of a profile.
class Phase {
public:
  Phase(Backend &backend, const char *name) : backend(backend) {
    backend.beginPhase(name);
  }
  ~Phase() { backend.endPhase(); }

private:
  Backend &backend;
};

} // namespace

Status Call::performOnDevice() {
  StreamScope scope(place.device(), stream);
  Phase phase(*place.backend(), program.name.c_str());
  if (gives)
    gives->stream = stream;
  Status status = perform();
  if (hasEntered) {
    noteUsers();
    Status left = core.leave(stream, caller);
    if (status)
      status = std::move(left);
  }
  // What was to be fetched and is not there.
  for (Download &download : bound.downloads)
    download.finish(false);
  return status;
}

/// While the stream is captured, nothing runs: the host has nothing to give and
/// nothing to wait for. The capture ends, because it would lack this call.
void Call::checkCapture() {
  if (place.isHost())
    return;
  caller = currentStream(place.device());
  stream = takes ? takes->stream : caller;
  if (!place.isCapturing(stream))
    return;
  if (bound.prepares && !core.isCurrent(*bound.prepares)) {
    place.backend()->breakCapture(stream);
    problem("what 'prepare' computes of parameters and states is not there or "
            "not of their present values: run '" +
            program.name + "' once before its stream is captured");
  }
  auto check = [&](const Tensor *tensor, int entry) {
    if (tensor && tensor->defined() && tensor->device() != place.device()) {
      place.backend()->breakCapture(stream);
      problem(entryName(entry) + ": expected device '" +
              toString(place.device()) +
              "' while its stream is captured but got '" +
              toString(tensor->device()) + "'");
    }
  };
  int entry = 0;
  for (const Tensor *given : bound.given)
    check(given, entry++);
  for (const Tensor *wanted : bound.wanted)
    check(wanted, entry++);
  for (const Tensor *wanted : bound.wantedAliases)
    check(wanted, entry++);
}

/// Orders the call after what it uses. Before that nothing was queued.
Status Call::startStreams() {
  hasEntered = true;
  return core.follow(stream, caller);
}

Status Call::launchOnDevice(const Action *actions) {
  ProgramRun run;
  run.program = bound.index;
  run.buffers = bound.bufferData;
  run.actions = {actions, bound.launches.size()};
  run.stream = stream;
  run.useGraph = core.useGraphs;
  Status status = core.deviceCode->run(run);
  if (status && bound.usesHost)
    status = core.hostMemory.useUntilNow(stream);
  if (status)
    return status;
  // Some of it may have been written.
  for (size_t r = 0; r < program.results.size(); ++r) {
    int argument = bound.results[r].argument;
    const Tensor *target = program.results[r].inPlace && argument >= 0
                               ? tensorOf(argument)
                           : bound.homes[r] == bound.wanted[r] ? bound.wanted[r]
                                                               : nullptr;
    if (target)
      target->markWritten();
  }
  return std::move(status).in("cannot run '" + program.name + "'");
}

/// Queues the copy of a result to a tensor, wherever that is. `source` is dense
/// and where the model lives.
void Call::write(size_t result, Tensor &target, const Tensor &source) {
  if (target.device() == place.device())
    note(target.copyFrom(source));
  else
    note(bound.downloads[result].start(source, target));
}

/// Waits for what goes to the host, if anything does.
Status Call::fetch() {
  bool hasAny = false;
  for (const Download &download : bound.downloads)
    hasAny |= download.isStarted();
  if (!hasAny)
    return Status::success();
  Status status = place.backend()->record(core.fetched, stream);
  if (status)
    status = place.backend()->await(core.fetched);
  for (Download &download : bound.downloads)
    download.finish(status.ok());
  return status;
}

/// Tells the storages of a call which streams use them: the program's, and for
/// what it made, the caller's, who goes on with it there.
void Call::noteUsers() {
  auto use = [&](const Tensor *tensor) {
    if (tensor && tensor->device() == place.device())
      tensor->useOn(stream);
  };
  auto giveOut = [&](const Tensor *tensor) {
    use(tensor);
    if (tensor && tensor->device() == place.device())
      tensor->useOn(caller);
  };
  for (const Tensor *given : bound.given)
    use(given);
  for (const Tensor *home : bound.homes)
    use(home);
  for (const Tensor *wanted : bound.wanted)
    giveOut(wanted);
  for (const Tensor *wanted : bound.wantedAliases)
    giveOut(wanted);
  if (!takes)
    return;
  for (const SavedResult &saved : takes->results)
    use(&saved.value());
}

} // namespace tandem::runtime
