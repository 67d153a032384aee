//===- RunNode.cpp - what happens at a node -------------------------------===//
//
// The steps at one node, in the order that Engine.h gives.
//
//===----------------------------------------------------------------------===//
#include "runtime/graph/Hooks.h"
#include "runtime/graph/Leaf.h"
#include "runtime/graph/Modes.h"
#include "runtime/graph/Ops.h"
#include "runtime/graph/Task.h"

#include <algorithm>
#include <array>

namespace tandem::graph {

namespace {

/// Makes the streams of a node's devices current.
class NodeStreams {
public:
  explicit NodeStreams(const Node &node) {
    if (!node.usesDevices())
      return;
    for (const InputInfo &input : node.inputs()) {
      if (input.device.isHost() || input.isPlaceholder ||
          runtime::currentStream(input.device) == input.stream)
        continue;
      DeviceStream before{input.device, runtime::currentStream(input.device)};
      if (count < few.size())
        few[count] = before;
      else
        more.push_back(before);
      ++count;
      runtime::setCurrentStream(input.device, input.stream);
    }
  }
  ~NodeStreams() {
    while (count-- > 0) { // the last first
      const DeviceStream &before =
          count < few.size() ? few[count] : more[count - few.size()];
      runtime::setCurrentStream(before.device, before.stream);
    }
  }
  NodeStreams(const NodeStreams &) = delete;
  NodeStreams &operator=(const NodeStreams &) = delete;

private:
  std::array<DeviceStream, 4> few{};
  std::vector<DeviceStream> more;
  size_t count = 0;
};

/// Makes a node the current one of the thread.
class CurrentNode {
public:
  explicit CurrentNode(Node &node) : before(exchangeCurrentNode(&node)) {}
  ~CurrentNode() { exchangeCurrentNode(before); }
  CurrentNode(const CurrentNode &) = delete;
  CurrentNode &operator=(const CurrentNode &) = delete;

private:
  Node *before;
};

class Profiled {
public:
  Profiled(const Node &node, const Gradients &inputs)
      : profiler(modes().profiler), node(node) {
    if (profiler && profiler->begin)
      profiler->begin(node, profiler->wantsInputs ? &inputs : nullptr);
  }
  ~Profiled() {
    if (profiler && profiler->end)
      profiler->end(node);
  }
  Profiled(const Profiled &) = delete;
  Profiled &operator=(const Profiled &) = delete;

private:
  std::shared_ptr<const Profiler> profiler;
  const Node &node;
};

Status expectGradient(const Node &node, int input, const InputInfo &info,
                      const Tensor &got) {
  return Status::usage("node '" + node.name() + "', input " +
                       std::to_string(input) + ": expected a gradient " +
                       describe(info.dtype, info.shape) + " on '" +
                       runtime::toString(info.device) + "' but got " +
                       describe(got.dtype(), got.shape()) + " on '" +
                       runtime::toString(got.device()) + "'");
}

bool fits(const InputInfo &info, const Tensor &gradient) {
  return gradient.dtype() == info.dtype && gradient.device() == info.device &&
         std::ranges::equal(gradient.shape(), info.shape);
}

/// What a hook made of a gradient must be one for the same input.
Status checkReplaced(const char *hook, const Node &node, size_t input,
                     const Value &gradient) {
  const InputInfo &info = node.inputs()[input];
  if (!gradient.defined() || fits(info, gradient.tensor))
    return Status::success();
  return expectGradient(node, static_cast<int>(input), info, gradient.tensor)
      .in(std::string(hook) + " of node " + describe(node));
}

void noteBefore(std::vector<Noted> &noted, const Value &gradient) {
  if (gradient.defined())
    noted.push_back({gradient.tensor.storage(), gradient.tensor.version()});
}

/// A hook may replace the gradients that it was given, but not write them; nor
/// may the backward of a function.
Status checkUnwritten(std::vector<Noted> &noted, const char *who,
                      const Node &node) {
  bool isWritten = std::ranges::any_of(noted, [](const Noted &one) {
    return one.storage->version() != one.version;
  });
  noted.clear();
  if (!isWritten)
    return Status::success();
  return Status::usage(std::string(who) + " of node " + describe(node) +
                       " wrote the gradient that it was given: expected "
                       "another in its place");
}

} // namespace

/// Callbacks see a copy of what the caller gave: they could write it.
Status Task::keepFromCallbacks(Gradients &gradients) const {
  for (Value &gradient : gradients) {
    const Tensor &tensor = gradient.tensor;
    if (!tensor.defined() || std::ranges::none_of(roots, [&](const Root &root) {
          return root.gradient.defined() &&
                 root.gradient.tensor.storage() == tensor.storage();
        }))
      continue;
    Result<Tensor> copy =
        emptyGradient(tensor.dtype(), tensor.shape(), tensor.device());
    if (!copy)
      return std::move(copy).status();
    if (Status status = copy->copyFrom(tensor); !status)
      return status;
    gradient.tensor = std::move(*copy);
  }
  return Status::success();
}

Status conform(const Node &node, int input, Value &gradient) {
  const InputInfo &info = node.inputs()[size_t(input)];
  const Tensor &tensor = gradient.tensor;
  if (info.isPlaceholder || fits(info, tensor))
    return Status::success();
  bool isSameShape = std::ranges::equal(tensor.shape(), info.shape);
  if ((!isSameShape && !ops::isExpandable(info.shape, tensor.shape())) ||
      (tensor.device() != info.device && tensor.rank() > 0) ||
      !artifact::isFloat(tensor.dtype()))
    return expectGradient(node, input, info, tensor);
  Result<Value> made = gradient;
  if (!isSameShape)
    made = ops::sumTo(*made, info.shape);
  if (made && made->tensor.dtype() != info.dtype)
    made = ops::cast(*made, info.dtype);
  if (made && made->tensor.device() != info.device)
    made = ops::copyTo(*made, info.device);
  if (made)
    gradient = std::move(*made);
  return std::move(made).status();
}

Status Task::callHooks(Lane &lane, Node &node, NodeHooks *hooks) {
  if (!hooks->tensor.empty() || !hooks->pre.empty())
    if (Status status = keepFromCallbacks(lane.inputs); !status)
      return status;
  Status status =
      hooks->tensor.forEach([&](NodeHooks::TensorHook &hook, int input) {
        if (size_t(input) >= lane.inputs.size()) // that was cleared
          return Status::success();
        Value &gradient = lane.inputs[size_t(input)];
        noteBefore(lane.noted, gradient);
        if (Status called = hook(gradient); !called)
          return called;
        if (Status checked = checkUnwritten(lane.noted, "tensor hook", node);
            !checked)
          return checked;
        return checkReplaced("tensor hook", node, size_t(input), gradient);
      });
  size_t inputs = std::min(lane.inputs.size(), hooks->retained.size());
  for (size_t i = 0; status && i < inputs; ++i)
    if (std::shared_ptr<Retained> place = hooks->retained.at(i))
      status = place->add(lane.inputs[i]);
  return status;
}

Status Task::capture(Lane &lane, Node &node) {
  for (size_t i = 0; results && i < wanted.size(); ++i) {
    if (wanted[i].node.get() != &node)
      continue;
    Value &gradient = (*results)[i];
    gradient = lane.inputs[size_t(wanted[i].input)];
    cameToRest(lane, gradient, node);
    const auto *leaf = node.isLeaf() ? dynamic_cast<Leaf *>(&node) : nullptr;
    if (!leaf || !gradient.defined())
      continue;
    Result<Tensor> laid = leaf->laidOut(gradient.tensor);
    if (!laid)
      return std::move(laid).status().in("node '" + node.name() + "'");
    gradient.tensor = std::move(*laid);
  }
  return Status::success();
}

/// Checks what a node gave, and fits it to where it goes.
Status Task::checkOutputs(Lane &lane, Node &node) {
  Gradients &outputs = lane.outputs;
  if (outputs.size() != node.edges().size())
    return Status::usage("node '" + node.name() + "': expected " +
                         std::to_string(node.edges().size()) +
                         " gradients but got " +
                         std::to_string(outputs.size()));
  const Anomaly &anomaly = modes().anomaly;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined())
      continue;
    if (const Edge &edge = node.edges()[i])
      if (Status status = conform(*edge.node, edge.input, outputs[i]); !status)
        return std::move(status).in("output " + std::to_string(i) +
                                    " of node '" + node.name() + "'");
    if (!anomaly.isOn)
      continue;
    Result<int64_t> found = findAnomaly(outputs[i].tensor, anomaly);
    if (!found)
      return std::move(found).status();
    if (*found < 0)
      continue;
    double value = outputs[i].tensor.at(*found);
    std::string text = "node " + describe(node) + " gave " +
                       (value != value ? "NaN" : "an infinity") +
                       " in its output " + std::to_string(i) + " (element " +
                       std::to_string(*found) + ")";
    if (const Trace *trace = node.trace()) {
      text += "; its forward was at " + (trace->location.empty()
                                             ? "a place that was not named"
                                             : trace->location);
      if (!trace->parent.empty())
        text += ", while node " + trace->parent + " ran";
    } else {
      text += "; its forward ran without anomaly mode";
    }
    return Status::failed(std::move(text));
  }
  return Status::success();
}

Status Task::callNode(Lane &lane, Node &node, NodeHooks *hooks) {
  Gradients &inputs = lane.inputs, &outputs = lane.outputs;
  if (hooks) {
    size_t count = inputs.size();
    Status status = hooks->pre.forEach([&](NodeHooks::PreHook &hook, int) {
      for (const Value &input : inputs)
        noteBefore(lane.noted, input);
      if (Status called = hook(inputs); !called)
        return called;
      if (Status checked = checkUnwritten(lane.noted, "pre-hook", node);
          !checked)
        return checked;
      if (inputs.size() != count)
        return Status::usage("pre-hook of node '" + node.name() +
                             "': expected " + std::to_string(count) +
                             " gradients but got " +
                             std::to_string(inputs.size()));
      for (size_t i = 0; i < count; ++i)
        if (Status checked = checkReplaced("pre-hook", node, i, inputs[i]);
            !checked)
          return checked;
      return Status::success();
    });
    if (!status)
      return status;
  }
  if (Status status = checkDeterministic(node); !status)
    return status;
  if (std::none_of(node.edges().begin(), node.edges().end(),
                   [](const Edge &edge) { return bool(edge); }))
    for (const Value &input : inputs)
      cameToRest(lane, input, node);
  if (hooks && !hooks->post.empty())
    lane.seen = inputs;
  outputs.clear();
  outputs.resize(node.edges().size());
  if (!mode.retain)
    node.announceRelease();
  if (node.isCallers()) {
    if (Status status = keepFromCallbacks(inputs); !status)
      return status;
    for (const Value &input : inputs)
      noteBefore(lane.noted, input);
  }
  {
    Profiled profiled(node, inputs);
    if (Status status = node.run(inputs, outputs, mode); !status) {
      lane.noted.clear();
      return status;
    }
  }
  if (Status status = checkUnwritten(lane.noted, "backward", node); !status)
    return status;
  ++lane.ran;
  if (!mode.retain)
    node.release();
  if (Status status = checkOutputs(lane, node); !status)
    return status;
  hooks = node.hooks(); // the node may have got its first ones
  if (!hooks)
    return Status::success();
  if (node.isLeaf() && !mode.collected) {
    auto &leaf = static_cast<Leaf &>(node);
    if (Status status = hooks->accumulated.forEach(
            [&](NodeHooks::AccumulatedHook &hook, int) { return hook(leaf); });
        !status)
      return status;
  }
  size_t count = outputs.size();
  lane.seen.resize(node.inputs().size()); // of a first hook: undefined
  if (!hooks->post.empty())
    for (Gradients *shown : {&outputs, &lane.seen})
      if (Status status = keepFromCallbacks(*shown); !status)
        return status;
  return hooks->post.forEach([&](NodeHooks::PostHook &hook, int) {
    for (const Gradients *shown : {&outputs, &lane.seen})
      for (const Value &gradient : *shown)
        noteBefore(lane.noted, gradient);
    if (Status called = hook(outputs, lane.seen); !called)
      return called;
    if (Status checked = checkUnwritten(lane.noted, "post-hook", node);
        !checked)
      return checked;
    if (outputs.size() != count)
      return Status::usage("post-hook of node '" + node.name() +
                           "': expected " + std::to_string(count) +
                           " gradients but got " +
                           std::to_string(outputs.size()));
    return Status::success();
  });
}

/// Hands what the node gave to the nodes that its edges lead to.
Status Task::giveOutputs(Lane &lane, int index) {
  Node &node = *memory.states[size_t(index)].node;
  for (size_t i = 0; i < node.edges().size(); ++i) {
    Edge edge = node.edges()[i];
    const NodeState &state = memory.states[size_t(index)];
    int child = i < state.edges ? memory.children[state.firstChild + i] : -1;
    if (child < 0 && isSelective() && i < state.edges)
      continue;
    if ((child < 0 && edge) ||
        (child >= 0 && memory.states[size_t(child)].node != edge.node)) {
      lane.changed = "edge " + std::to_string(i) + " of node " +
                     describe(node) + " was changed while the backward ran";
      continue;
    }
    if (child < 0)
      continue;
    NodeState &to = memory.states[size_t(child)]; // of its lane
    Value gradient;
    if (to.isWanted || to.isCaptured)
      gradient = std::move(lane.outputs[i]);
    Stream producer = nullptr;
    if (gradient.defined()) {
      if (Status status = conform(*edge.node, edge.input, gradient); !status)
        return std::move(status).in("output " + std::to_string(i) +
                                    " of node '" + node.name() + "'");
      producer = runtime::currentStream(gradient.tensor.device());
    }
    if (hasLanes) {
      int slot = memory.slotOf[state.firstChild + i];
      if (Status status =
              deliver(lane, edge, child, slot, std::move(gradient), producer);
          !status)
        return status;
      continue;
    }
    if (gradient.defined())
      if (Status status = give(edge, child, std::move(gradient), producer);
          !status)
        return status;
    to.isReached = true;
    count(child);
  }
  return Status::success();
}

Status Task::runNode(Lane &lane, int index) {
  NodeState &state = memory.states[size_t(index)];
  Node &node = *state.node; // lives as long as the task
  NodeStreams streams(node);
  CurrentNode running(node);
  lane.current = index;
  lane.inputs.clear();
  lane.inputs.resize(node.inputs().size());
  lane.outputs.clear();
  if (Status status =
          lane.sums.take(state.gradients, lane.inputs, node, mode.createGraph);
      !status)
    return status;
  // As in PyTorch: what runs, too, is captured as it came.
  bool isCaptured = state.isCaptured, isWanted = state.isWanted;
  if (isCaptured && isWanted)
    if (Status status = capture(lane, node); !status)
      return status;
  NodeHooks *hooks = node.hooks();
  if (hooks)
    if (Status status = callHooks(lane, node, hooks); !status)
      return status;
  if (isCaptured && !isWanted)
    if (Status status = capture(lane, node); !status)
      return status;
  if (isWanted)
    if (Status status = callNode(lane, node, hooks); !status)
      return status;
  if (lane.outputs.size() != node.edges().size())
    lane.outputs.resize(node.edges().size());
  lane.seen.clear();
  for (Value &input : lane.inputs)
    recycle(input);
  lane.inputs.clear();
  Status status = giveOutputs(lane, index);
  lane.current = -1;
  return status;
}

} // namespace tandem::graph
