//===- LaunchCall.cpp - what the device's code is told --------------------===//
//
// Buffers become addresses, and conditions become one action for each launch;
// what then runs, and how, is the device's business (DeviceCode).
//
//===----------------------------------------------------------------------===//
#include "runtime/call/Steps.h"
#include "runtime/model/ModelCore.h"

namespace tandem::runtime {

using artifact::Buffer;

namespace {

void *at(void *base, int64_t offset) {
  return base ? static_cast<char *>(base) + offset : nullptr;
}

void resolveBuffers(const Invocation &call, const PlacedCall &placed,
                    std::vector<void *> &addresses) {
  void *arena = call.core.arenaData(), *host = call.core.hostData();
  void *constants = call.core.constantsData();
  for (size_t b = 0; b < call.plan.buffers.size(); ++b) {
    const Buffer &buffer = call.plan.buffers[b];
    switch (buffer.place) {
    case Buffer::Place::Argument:
      addresses[b] = placed.argumentData[buffer.index];
      break;
    case Buffer::Place::Result:
      addresses[b] = placed.resultData[buffer.index];
      break;
    case Buffer::Place::Arena:
      addresses[b] = at(arena, buffer.offset);
      break;
    case Buffer::Place::Constant:
      addresses[b] = at(constants, buffer.offset);
      break;
    case Buffer::Place::Host:
      addresses[b] = at(host, buffer.offset);
      break;
    }
  }
}

Action actionOf(const BoundCase &one, const MatchedCall &matched) {
  if (!matched.holds(one.needs))
    return skipLaunch;
  for (const auto &[when, action] : one.choices)
    if (matched.holds(when))
      return action;
  return runKernel;
}

/// Returns what each launch does in this call; `room` may receive it.
const std::vector<Action> &chooseActions(const Invocation &call,
                                         const MatchedCall &matched,
                                         const artifact::Slice &wanted,
                                         std::vector<Action> &room) {
  const Program &program = call.program;
  if (call.mode.onlyWanted) {
    for (size_t i = 0; i < room.size(); ++i)
      room[i] = wanted.launches[i] ? program.allDefined[i] : skipLaunch;
    return room;
  }
  // A second derivative has zeros for what is undefined: see placeArgument.
  if (matched.allDefined || call.gives || program.cases.empty())
    return program.allDefined;
  for (size_t i = 0; i < room.size(); ++i)
    room[i] = actionOf(program.cases[i], matched);
  return room;
}

} // namespace

Status launch(const Invocation &call, const MatchedCall &matched,
              const PlacedCall &placed, const artifact::Slice &wanted,
              LaunchTables &tables) {
  resolveBuffers(call, placed, tables.buffers);
  ProgramRun run;
  run.communicators = call.core.communicators.get();
  run.program = call.program.index;
  run.buffers = tables.buffers;
  run.actions = chooseActions(call, matched, wanted, tables.actions);
  run.stream = call.stream;
  run.useGraph = call.core.useGraphs;
  run.times = call.mode.times;
  Status status = call.core.code->run(run);
  if (status && call.program.usesHost)
    status = call.core.hostMemory.useUntilNow(call.stream);
  if (status)
    return status;
  // Some of it may have been written.
  for (size_t r = 0; r < call.plan.results.size(); ++r) {
    int argument = call.program.results[r].argument;
    const Tensor *target = call.plan.results[r].inPlace && argument >= 0
                               ? matched.tensors[argument]
                           : placed.homes[r] == matched.wanted[r]
                               ? matched.wanted[r]
                               : nullptr;
    if (target)
      target->markWritten();
  }
  return std::move(status).in("cannot run '" + call.plan.name + "'");
}

} // namespace tandem::runtime
