//===- Lanes.cpp - a backward with nodes of several devices ---------------===//
//
// Each lane runs its nodes on a thread of its own. So that sums do not depend
// on which lane is faster, the order in which one thread would run the nodes is
// found first: what comes to an input is added in that order, whenever it came.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/Backend.h"
#include "runtime/graph/DeviceThreads.h"
#include "runtime/graph/Task.h"
#include "runtime/model/HookMutex.h"

#include <algorithm>
#include <utility>

namespace tandem::graph {

namespace {

/// Makes a lane the current one of the thread, with its modes and streams if
/// the thread is a device's.
class LaneScope {
public:
  LaneScope(Lane &lane, const Modes *given)
      : lane(lane), isForeign(given), before(exchangeCurrentLane(&lane)) {
    if (!isForeign)
      return;
    lane.modes = *given;
    std::swap(modes(), lane.modes);
    runtime::swapCurrentStreams(lane.streams);
  }
  ~LaneScope() {
    if (isForeign) {
      runtime::swapCurrentStreams(lane.streams);
      std::swap(modes(), lane.modes);
    }
    exchangeCurrentLane(before);
  }
  LaneScope(const LaneScope &) = delete;
  LaneScope &operator=(const LaneScope &) = delete;

private:
  Lane &lane;
  bool isForeign;
  Lane *before;
};

} // namespace

Device deviceOf(const Node &node) {
  if (node.usesDevices())
    for (const InputInfo &input : node.inputs())
      if (!input.isPlaceholder && !input.device.isHost())
        return input.device;
  return {};
}

/// Chooses lanes, and the order of what comes to each state.
void Task::spread(std::span<const Root> roots) {
  if (!isWorthLanes())
    return;
  placeStates();
  if (memory.otherCount == 0)
    return;
  hasLanes = true;
  orderSlots(roots);
}

/// True if several threads have nodes to run, and may. A graph that a device
/// records is recorded by one thread. While a hook holds a model, its thread
/// must not run nodes of others: they may need the model.
bool Task::isWorthLanes() const {
  if (!modes().deviceThreads || runtime::heldHookMutexes() > 0)
    return false;
  size_t here = memory.states.size();
  size_t elsewhere = 0; // devices
  for (const TaskDevice &used : memory.devices) {
    if (used.device != threadDevice()) {
      here -= used.nodes;
      ++elsewhere;
    }
    Result<runtime::Backend *> backend = runtime::backendOf(used.device);
    if (!backend ||
        (*backend)->isCapturing(runtime::currentStream(used.device)))
      return false;
  }
  return elsewhere > 1 || (elsewhere == 1 && here > 0);
}

/// Gives each state its lane.
void Task::placeStates() {
  memory.own.mailbox = &threadMailbox();
  memory.otherCount = 0;
  for (const TaskDevice &used : memory.devices) {
    if (used.device == threadDevice())
      continue;
    Mailbox *mailbox = deviceMailbox(used.device);
    if (!mailbox)
      continue; // its nodes run here
    if (memory.otherCount == memory.others.size())
      memory.others.emplace_back();
    Lane &lane = memory.others[memory.otherCount++];
    lane.task = this;
    lane.device = used.device;
    lane.mailbox = mailbox;
    lane.streams = runtime::currentStreams();
  }
  if (memory.otherCount == 0)
    return;
  memory.modes = modes();
  memory.incoming.resize(memory.states.size());
  int slots = 0;
  for (size_t i = 0; i < memory.states.size(); ++i) {
    Incoming &in = memory.incoming[i];
    in.first = slots;
    in.waitsFor = memory.states[i].waitsFor;
    slots += in.waitsFor;
    in.lane = &memory.own;
    Device device = deviceOf(*memory.states[i].node);
    for (size_t j = 0; j < memory.otherCount; ++j)
      if (memory.others[j].device == device)
        in.lane = &memory.others[j];
  }
  memory.slots.resize(static_cast<size_t>(slots));
  // How many come at once differs; no backward allocates for that.
  auto reserve = [&](Lane &lane) {
    lane.arrived.reserve(memory.slots.size());
    lane.taken.reserve(memory.slots.size());
    lane.ready.reserve(memory.states.size());
  };
  reserve(memory.own);
  for (size_t i = 0; i < memory.otherCount; ++i)
    reserve(memory.others[i]);
}

/// Runs through the states as one thread would, and gives each edge the slot of
/// its turn.
void Task::orderSlots(std::span<const Root> roots) {
  std::vector<Ready> &ready = memory.own.ready;
  memory.slotOf.assign(memory.children.size(), -1);
  auto queue = [&](int index) {
    const NodeState &state = memory.states[size_t(index)];
    if ((!state.isWanted && !state.isCaptured) ||
        std::exchange(memory.incoming[size_t(index)].isQueued, true))
      return;
    ready.push_back({state.node->number(), index, state.node->isLeaf()});
    std::push_heap(ready.begin(), ready.end());
  };
  for (const Root &root : roots)
    if (int index = memory.map.find(root.edge.node.get());
        index >= 0 && memory.states[size_t(index)].waitsFor == 0)
      queue(index);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end());
    const NodeState &state = memory.states[size_t(ready.back().state)];
    ready.pop_back();
    for (size_t i = state.firstChild; i < state.firstChild + state.edges; ++i) {
      int child = memory.children[i];
      if (child < 0)
        continue;
      Incoming &in = memory.incoming[size_t(child)];
      int left = --in.waitsFor;
      int turn = memory.states[size_t(child)].waitsFor - left - 1;
      memory.slotOf[i] = in.first + turn;
      memory.slots[size_t(memory.slotOf[i])].state = child;
      if (left == 0)
        queue(child);
    }
  }
}

/// Hands what a node gave over an edge, perhaps nothing, to the lane that the
/// edge leads to.
Status Task::deliver(Lane &lane, const Edge &edge, int child, int slot,
                     Value &&gradient, Stream producer) {
  if (slot < 0) // nothing runs there
    return Status::success();
  const InputInfo &info = edge.node->inputs()[size_t(edge.input)];
  if (gradient.defined() && !info.isPlaceholder) {
    Sums::Given &given = memory.slots[size_t(slot)].given;
    given.gradient = std::move(gradient);
    if (Status status = note(edge, given, producer); !status)
      return status;
  }
  Lane &to = laneOf(child);
  if (&to == &lane)
    return takeSlot(lane, slot);
  to.mailbox->post(to, slot);
  return Status::success();
}

/// Adds what came to a state of the lane if it is its turn, and what came too
/// early before.
Status Task::takeSlot(Lane &lane, int slot) {
  memory.slots[size_t(slot)].isFilled = true;
  int index = memory.slots[size_t(slot)].state;
  NodeState &state = memory.states[size_t(index)];
  Incoming &in = memory.incoming[size_t(index)];
  while (state.waitsFor > 0) {
    Slot &first = memory.slots[size_t(in.first + in.next)];
    if (!first.isFilled)
      return Status::success();
    ++in.next;
    if (first.given.gradient.defined()) {
      const InputInfo &info = state.node->inputs()[size_t(first.given.input)];
      runtime::StreamScope scope(info.device, info.stream);
      if (Status status = add(lane, index, std::move(first.given)); !status)
        return status;
    }
    if (--state.waitsFor == 0)
      makeReady(lane, index);
  }
  return Status::success();
}

void Task::step(Lane &lane) {
  LaneScope scope(lane, &lane == &memory.own ? nullptr : &memory.modes);
  Status status;
  try {
    for (size_t i = 0; status && i < lane.taken.size() && !isStopped(); ++i)
      status = takeSlot(lane, lane.taken[i]);
    if (status && !lane.ready.empty() && !isStopped()) {
      std::pop_heap(lane.ready.begin(), lane.ready.end());
      int index = lane.ready.back().state;
      lane.ready.pop_back();
      status = runNode(lane, index);
    }
  } catch (const std::exception &thrown) { // of the user, or out of memory
    status = Status::failed(thrown.what());
  } catch (...) {
    status = Status::failed("an exception of an unknown type");
  }
  lane.taken.clear();
  if (!status)
    fail(std::move(status));
  if (isStopped())
    lane.ready.clear();
}

Status Task::runLanes() {
  enter(); // so that nobody ends the task meanwhile
  for (size_t i = 0; i < memory.otherCount; ++i)
    memory.others[i].mailbox->activate(memory.others[i]);
  memory.own.mailbox->activate(memory.own);
  leave();
  memory.own.mailbox->serve(this);
  if (hasFailed)
    return std::move(error);
  return isStopped() ? stopped() : Status::success();
}

void Task::leave() {
  if (--active == 0)
    memory.own.mailbox->finish(*this);
}

void Task::fail(Status status) {
  std::lock_guard lock(mutex);
  if (!hasFailed)
    error = std::move(status);
  hasFailed = true;
}

/// True if the task, or one around it, failed on some thread.
bool Task::isStopped() const {
  for (const Task *task = this; task; task = task->outer)
    if (task->hasFailed)
      return true;
  return false;
}

/// Why a task inside of one that failed ends.
Status Task::stopped() const {
  for (const Task *task = this; task; task = task->outer)
    if (task->hasFailed) {
      std::lock_guard lock(task->mutex);
      return Status(task->error.code(), "a backward around this one failed: " +
                                            task->error.message());
    }
  return Status::success();
}

} // namespace tandem::graph
