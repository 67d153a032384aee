//===- CallNode.cpp - a call of a compiled program as a node --------------===//
#include "runtime/graph/CallNode.h"
#include "runtime/graph/Hooks.h"
#include "runtime/graph/Modes.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace tandem::graph {

using artifact::Program;
using artifact::Role;
using runtime::Argument;
using runtime::Context;
using runtime::Destination;
using runtime::Model;

namespace {

bool hasSlot(const std::vector<artifact::Slot> &slots, Role role,
             const std::string &name) {
  return std::ranges::any_of(slots, [&](const artifact::Slot &slot) {
    return slot.role == role && slot.name == name;
  });
}

/// A list whose memory the thread's next one uses, so that a repeated backward
/// allocates nothing. A call inside of a call has its own.
template <typename T> class Reused {
public:
  Reused() : list(std::move(kept())) {}
  ~Reused() {
    list.clear();
    kept() = std::move(list);
  }
  Reused(const Reused &) = delete;
  Reused &operator=(const Reused &) = delete;

  std::vector<T> list;

private:
  static std::vector<T> &kept() {
    static thread_local std::vector<T> kept;
    return kept;
  }
};

class CallNode : public Node {
public:
  CallNode(const Model &model, Context context, bool isSecond)
      : model(model), isSecond(isSecond),
        context(std::make_shared<Context>(std::move(context))) {}

  std::string name() const override {
    return model.manifest().model + (isSecond ? ".grad" : "");
  }
  Status run(Gradients &inputs, Gradients &outputs,
             const RunMode &mode) override;
  void release() override { (void)takeContext(); }
  /// Made of launches that `tandem link` finds in the model.
  Traits traits() const override { return {!isSecond, false}; }
  Described described() const override {
    const artifact::Manifest &manifest = model.manifest();
    Described made(isSecond ? "gradient" : "program");
    made.model = manifest.model;
    made.graph = manifest.graph;
    made.instance = &manifest;
    made.inputs = cotangents;
    made.edges = grads;
    return made;
  }

  Model model;                         ///< shares what the caller's has
  bool isSecond;                       ///< the derivative of a backward
  std::vector<std::string> cotangents; ///< for each input
  std::vector<std::string> grads;      ///< for each edge
  /// For each edge: the program gives that gradient. Else only its derivative
  /// does.
  std::vector<bool> given;

private:
  std::shared_ptr<Context> takeContext() {
    std::lock_guard lock(mutex);
    return std::exchange(context, nullptr);
  }
  std::shared_ptr<Context> currentContext() {
    std::lock_guard lock(mutex);
    return context;
  }
  Status makeSecond(Gradients &inputs, Gradients &outputs, Context graph);

  std::mutex mutex; ///< guards the pointer, and is not held during a call
  std::shared_ptr<Context> context; ///< null: released
};

Status CallNode::run(Gradients &inputs, Gradients &outputs,
                     const RunMode &mode) {
  // Another thread that runs the node keeps its context until it is done; of
  // two that do not retain it, the model refuses the second.
  std::shared_ptr<Context> used = currentContext();
  if (!used)
    return Status::usage("the backward of '" + name() +
                         "' was already run and its context is used; the first "
                         "backward must ask for retain_graph if there is a "
                         "second");
  if (std::ranges::none_of(inputs, &Value::defined))
    return Status::success();
  Reused<Argument> arguments;
  std::vector<Argument> &taken = arguments.list;
  for (size_t i = 0; i < inputs.size(); ++i)
    taken.emplace_back(cotangents[i], &inputs[i].tensor);
  Reused<Destination> destinations;
  std::vector<Destination> &wanted = destinations.list;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (given[i] && *shouldCompute(i, true))
      wanted.push_back({grads[i], &outputs[i].tensor});
  runtime::BackwardOptions options;
  options.retainGraph = mode.retain;
  options.createGraph = mode.createGraph;
  if (!mode.createGraph || isSecond) {
    if (mode.createGraph)
      return Status::unsupported("the backward of '" + name() +
                                 "' has no derivative of third order");
    return model.backward(*used, taken, wanted, options);
  }
  Context graph;
  if (Status status = model.backward(*used, taken, wanted, options, &graph);
      !status)
    return status;
  return makeSecond(inputs, outputs, std::move(graph));
}

/// Gives the gradients a node of their own: its inputs are the gradients, its
/// edges lead where this node's do, and to what made the cotangents.
Status CallNode::makeSecond(Gradients &inputs, Gradients &outputs,
                            Context graph) {
  const Program *backward = model.manifest().findProgram("grad_backward");
  if (!backward || !graph.live())
    return Status::success();
  auto node = std::make_shared<CallNode>(model, std::move(graph), true);
  auto addEdge = [&](const Edge &edge, const std::string &grad) {
    if (!edge || !hasSlot(backward->results, Role::Grad, grad))
      return Status::success();
    node->grads.push_back(grad);
    node->given.push_back(true);
    return node->addEdge(edge);
  };
  for (size_t i = 0; i < edges().size(); ++i)
    if (Status status = addEdge(edges()[i], grads[i]); !status)
      return status;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (Status status =
            addEdge(inputs[i].edge, "cotangent of " + cotangents[i]);
        !status)
      return status;
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string cotangent = "grad of " + grads[i];
    if (!outputs[i].defined() ||
        !hasSlot(backward->arguments, Role::Cotangent, cotangent))
      continue;
    if (Status status = makeEdge(outputs[i], node); !status)
      return status;
    node->cotangents.push_back(std::move(cotangent));
  }
  return Status::success();
}

/// The edges of a call's node, and the names of what flows there.
Status addEdges(CallNode &node, const Program &backward,
                std::span<NamedValue> inputs,
                std::span<const NamedValue> params) {
  const Program *second = node.model.manifest().findProgram("grad_backward");
  auto add = [&](const NamedValue &one) {
    bool isGiven = hasSlot(backward.results, Role::Grad, one.name);
    bool isSecond = second && hasSlot(second->results, Role::Grad, one.name);
    if (!one.value.edge || (!isGiven && !isSecond))
      return Status::success();
    node.given.push_back(isGiven);
    node.grads.push_back(one.name);
    return node.addEdge(one.value.edge);
  };
  Status status;
  for (const NamedValue &one : inputs)
    if (status)
      status = add(one);
  for (const NamedValue &one : params)
    if (status)
      status = add(one);
  return status;
}

/// Gives results their history, and what the program wrote a new one.
Status lead(const std::shared_ptr<CallNode> &node, const Program &backward,
            std::span<NamedValue> inputs, std::span<const std::string> names,
            std::vector<Value> &values) {
  auto add = [&](Value &value, const std::string &name) {
    if (!hasSlot(backward.arguments, Role::Cotangent, name))
      return Status::success();
    node->cotangents.push_back(name);
    Edge before = value.edge;
    Status status = makeEdge(value, node);
    if (before)
      moveRetained(before, value.edge);
    return status;
  };
  Status status;
  for (size_t i = 0; status && i < names.size(); ++i)
    status = add(values[i], names[i]);
  for (NamedValue &input : inputs)
    if (status)
      status = add(input.value, "update of " + input.name);
  return status;
}

} // namespace

Result<std::vector<Value>> call(Model &model, std::span<NamedValue> inputs,
                                std::span<const NamedValue> params,
                                std::span<const std::string> outputs,
                                std::vector<Value> places) {
  std::vector<Argument> arguments;
  for (NamedValue &input : inputs)
    arguments.emplace_back(input.name, &input.value.tensor);
  std::vector<Value> values = std::move(places);
  values.resize(outputs.size());
  std::vector<Destination> destinations;
  for (size_t i = 0; i < outputs.size(); ++i)
    destinations.push_back({outputs[i], &values[i].tensor});
  if (!modes().grad) {
    if (Status status = model.run("forward", arguments, destinations); !status)
      return status;
    for (Value &value : values)
      value = value.tensor.detach();
    return values;
  }
  Result<Context> context =
      model.forward(arguments, destinations, modes().savedHooks);
  if (!context)
    return std::move(context).status();
  const Program *backward = model.manifest().findProgram("backward");
  auto node = std::make_shared<CallNode>(model, std::move(*context), false);
  if (backward)
    if (Status status = addEdges(*node, *backward, inputs, params); !status)
      return status;
  if (node->edges().empty()) { // nothing wants a gradient
    for (Value &value : values)
      value = value.tensor.detach();
    return values;
  }
  for (Value &value : values)
    value.edge = {};
  if (Status status = lead(node, *backward, inputs, outputs, values); !status)
    return status;
  return values;
}

} // namespace tandem::graph
