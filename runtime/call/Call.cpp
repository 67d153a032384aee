//===- Call.cpp - one run of a program ------------------------------------===//
//
// The steps of a call, in order (Steps.h), and its streams: the program runs on
// the caller's current stream, a backward on that of its forward, and the
// caller's stream waits for it. Storages learn which streams used them. Where
// work is done when it returns, all of that comes to nothing.
//
//===----------------------------------------------------------------------===//
#include "runtime/call/Call.h"
#include "runtime/call/Steps.h"
#include "runtime/model/ModelCore.h"

#include <algorithm>

namespace tandem::runtime {

Invocation::Invocation(const ModelCore &core, const Program &program,
                       const CallMode &mode)
    : core(core), program(program), plan(*program.plan), mode(mode),
      place(core.place), gives(mode.gives),
      takes(mode.takes ? mode.takes->get() : nullptr),
      caller(currentStream(place.device())),
      stream(takes ? takes->stream : caller) {}

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

bool updatesVariables(const Program &program) {
  return std::any_of(
      program.results.begin(), program.results.end(),
      [](const BoundResult &result) { return result.variable >= 0; });
}

class Call {
public:
  Call(ModelCore &core, const Program &program, const CallMode &mode)
      : core(core), call(core, program, mode), frame(core.frame(program)),
        workspace(core.workspace(program)) {}
  ~Call();

  Status run(std::span<const Argument> inputs,
             std::span<const Destination> outputs);
  bool hasStarted() const { return isStarted; }
  bool isNothing() const { return frame.matched.isIdle; }

private:
  void checkAll();
  void clearDestinations();
  Status perform();
  Status performOnStream();
  void noteUsers();

  ModelCore &core;
  Invocation call;
  CallFrame &frame;
  Workspace &workspace;
  bool hasEntered = false; ///< the caller's stream has to wait at the end
  bool isStarted = false;
};

Call::~Call() {
  // The program's tables must not hold on to tensors of the caller. Most hold
  // none, and a handle is large.
  auto forget = [](std::vector<Tensor> &tensors) {
    for (Tensor &tensor : tensors)
      if (tensor.defined())
        tensor = Tensor();
  };
  forget(frame.shared.views);
  forget(frame.placed.fresh);
  if (call.program.changesHandles)
    forget(frame.shared.newHandles);
  if (call.takes && call.takes->hooks)
    forget(frame.placed.unpacked);
}

void Call::checkAll() {
  check(call, frame.matched, frame.problems);
  // What follows looks at strides and addresses of what fits so far.
  if (!frame.problems.empty())
    return;
  checkValues(call, frame.matched, frame.problems);
  if (call.place.isCapturing(call.stream)) {
    const Program *prepares = call.program.prepares;
    core.wasCaptured |= updatesVariables(call.program);
    // A step's capture has what prepares for it.
    bool isPrepared =
        !prepares || !call.program.renews.empty() || core.isCurrent(*prepares);
    checkCapture(call, frame.matched, isPrepared, frame.problems);
  }
  checkSharing(call, frame.matched, frame.shared, frame.problems);
}

Status Call::run(std::span<const Argument> inputs,
                 std::span<const Destination> outputs) {
  frame.problems.clear();
  match(call, inputs, outputs, workspace.wanted, frame.matched, frame.problems);
  checkAll();
  if (!frame.problems.empty())
    return Status::usage("cannot run '" + call.plan.name +
                         "': " + frame.problems.text());
  if (Status status = agree(call, frame.matched); !status)
    return std::move(status).in("cannot run '" + call.plan.name + "'");
  if (frame.matched.isIdle) {
    clearDestinations();
    return Status::success();
  }
  if (call.program.prepares)
    if (Status status = core.prepare(call.program); !status)
      return status;
  return performOnStream();
}

void Call::clearDestinations() {
  for (Tensor *wanted : frame.matched.wanted)
    if (wanted)
      *wanted = Tensor();
  for (auto [tensor, name] : frame.matched.absent)
    *tensor = Tensor();
}

/// What comes after the checks, on the program's stream.
Status Call::performOnStream() {
  StreamScope scope(call.place.device(), call.stream);
  Phase phase(call.place.backend(), call.plan.name.c_str());
  if (call.gives)
    call.gives->stream = call.stream;
  Status status = perform();
  if (hasEntered) {
    noteUsers();
    Status left = core.leave(call.stream, call.caller);
    if (status)
      status = std::move(left);
  }
  // What was to be fetched and is not there.
  for (Download &download : workspace.downloads)
    download.finish(false);
  return status;
}

Status Call::perform() {
  MatchedCall &matched = frame.matched;
  PlacedCall &placed = frame.placed;
  bool unpacks = call.takes && call.takes->hooks;
  if (Status status = core.reserve(call.program); !status)
    return status;
  std::span<const Tensor> prepared;
  if (call.program.prepares)
    prepared = core.workspace(*call.program.prepares).internal;
  if (Status status = place(call, matched, prepared, workspace, placed);
      !status)
    return status;
  // Before this nothing was queued.
  hasEntered = true;
  Status status = core.follow(call.stream, call.caller);
  if (status)
    status = copyArguments(call, placed, workspace.uploads);
  if (!status) {
    freeResized(call, matched);
    return status;
  }
  // A launch that fails may leave a context that can be used.
  isStarted = call.program.hasDonated || unpacks;
  if (unpacks)
    status = unpack(call, workspace.staged, placed);
  core.beginRenewal(call.program);
  if (status)
    status =
        launch(call, matched, placed, workspace.wanted.slice, frame.launched);
  if (!status)
    return status;
  isStarted = true;
  status = finish(
      call, matched, placed, frame.shared,
      {core.variables, workspace.staged, workspace.downloads, core.fetched});
  if (!status)
    return status;
  core.endRenewal(call.program);
  return call.gives && call.gives->hooks ? pack(call, placed, workspace)
                                         : Status::success();
}

/// Tells the storages of a call which streams use them: the program's, and for
/// what it made, the caller's, who goes on with it there.
void Call::noteUsers() {
  if (!call.place.backend().isQueued())
    return;
  auto use = [&](const Tensor *tensor) {
    if (tensor && tensor->device() == call.place.device())
      tensor->useOn(call.stream);
  };
  auto giveOut = [&](const Tensor *tensor) {
    use(tensor);
    if (tensor && tensor->device() == call.place.device())
      tensor->useOn(call.caller);
  };
  for (const Tensor *given : frame.matched.given)
    use(given);
  for (const Tensor *home : frame.placed.homes)
    use(home);
  for (const Tensor *wanted : frame.matched.wanted)
    giveOut(wanted);
  for (const Tensor *wanted : frame.matched.aliases)
    giveOut(wanted);
  if (!call.takes)
    return;
  for (const SavedResult &saved : call.takes->results)
    use(&saved.value());
}

} // namespace

CallOutcome runCall(ModelCore &core, const Program &program,
                    std::span<const Argument> inputs,
                    std::span<const Destination> outputs,
                    const CallMode &mode) {
  Call call(core, program, mode);
  CallOutcome outcome;
  outcome.status = call.run(inputs, outputs);
  outcome.hasStarted = call.hasStarted();
  outcome.isNothing = call.isNothing();
  return outcome;
}

} // namespace tandem::runtime
