//===- Function.cpp - functions of the user as nodes ----------------------===//
#include "runtime/graph/Function.h"
#include "runtime/graph/CallbackLock.h"
#include "runtime/graph/Ending.h"
#include "runtime/graph/Engine.h"
#include "runtime/graph/Hooks.h"
#include "runtime/graph/Leaf.h"
#include "runtime/graph/Modes.h"

#include <algorithm>

namespace tandem::graph {

namespace {

/// Says that a gradient has none.
class NoDerivative : public Node {
public:
  explicit NoDerivative(std::string of) : of(std::move(of)) {}
  std::string name() const override { return of + ".grad"; }
  Status run(Gradients &, Gradients &, const RunMode &) override {
    return Status::usage("the gradients of '" + of +
                         "' have no gradients: it is differentiable once");
  }

private:
  std::string of;
};

bool isSame(const Tensor &x, const Tensor &y) {
  return x.defined() && y.defined() && x.storage() == y.storage() &&
         x.data() == y.data() && std::ranges::equal(x.shape(), y.shape());
}

} // namespace

/// What a lambda of the user has captured may be nodes.
Function::~Function() {
  Ending ending;
  ending.take(std::make_shared<FunctionSpec>(std::move(spec)));
}

Status Function::checkInForward() const {
  if (given)
    return Status::success();
  return Status::usage("node " + describe(*this) +
                       ": what it keeps and gives is said in its forward");
}

Status Function::save(Value value) {
  Status status = checkInForward();
  if (status)
    pending.push_back(std::move(value));
  return status;
}

Status Function::declareNotDifferentiable(size_t output) {
  if (Status status = checkInForward(); !status)
    return status;
  if (output >= outputCount)
    return Status::usage("node " + describe(*this) +
                         ": expected an output of the forward below " +
                         std::to_string(outputCount) + " but got " +
                         std::to_string(output));
  notDifferentiable.push_back(output);
  return Status::success();
}

Status Function::declareWrite(size_t input) {
  if (!given || input >= given->size())
    return Status::usage("node " + describe(*this) +
                         ": expected an input of the forward below " +
                         std::to_string(given ? given->size() : 0) +
                         " but got " + std::to_string(input));
  const Edge &edge = (*given)[input].edge;
  if (checksLeaves && edge && edge.node->isLeaf())
    return Status::usage("input " + std::to_string(input) + " of '" + name() +
                         "' is a leaf that requires grad: it cannot be "
                         "written");
  if (std::ranges::find(written, input) == written.end())
    written.push_back(input);
  return Status::success();
}

Status Function::apply(FunctionSpec spec, std::vector<Value> &inputs,
                       std::vector<Value> &outputs) {
  bool hasHistory = modes().grad && std::ranges::any_of(inputs, [](auto &one) {
                      return bool(one.edge);
                    });
  auto node = std::make_shared<Function>(std::move(spec));
  if (Status status = checkDeterministic(*node); !status)
    return status;
  std::vector<Value> seen = inputs; // a forward may take them apart
  node->given = &inputs;
  node->outputCount = outputs.size();
  node->checksLeaves = hasHistory;
  {
    GradModeScope off(false);
    Status status = node->spec.forward(*node, seen, outputs);
    node->given = nullptr;
    if (!status)
      return status;
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].defined())
      return Status::usage("the forward of '" + node->name() +
                           "' did not set its output " + std::to_string(i));
  for (size_t index : node->written)
    inputs[index].tensor.markWritten();
  for (Value &output : outputs)
    output = Value(output.tensor.detach());
  if (!hasHistory)
    return Status::success();
  for (const Value &input : inputs)
    if (Status status = node->addEdge(input.edge); !status)
      return status;
  return node->lead(inputs, outputs);
}

/// Gives results and inputs that were written their history.
Status Function::lead(std::vector<Value> &inputs, std::vector<Value> &outputs) {
  auto self = std::static_pointer_cast<Function>(shared_from_this());
  std::vector<Value> results = outputs;
  for (size_t index : written)
    results.push_back(inputs[index]);
  if (Status status = keep(results); !status)
    return status;
  for (size_t i = 0; i < outputs.size(); ++i) {
    bool isLed =
        artifact::isFloat(outputs[i].tensor.dtype()) &&
        std::ranges::find(notDifferentiable, i) == notDifferentiable.end();
    if (!isLed) {
      addPlaceholder();
      continue;
    }
    if (Status status = makeEdge(outputs[i], self); !status)
      return status;
    outputs[i].tensor.setMade(true);
  }
  for (size_t index : written) {
    Edge before = inputs[index].edge;
    if (Status status = makeEdge(inputs[index], self); !status)
      return status;
    inputs[index].tensor.setMade(true);
    moveRetained(before, inputs[index].edge);
  }
  return Status::success();
}

Status Function::keep(std::span<const Value> results) {
  for (size_t i = 0; i < pending.size(); ++i) {
    int result = -1;
    for (size_t j = 0; j < results.size() && result < 0; ++j)
      if (isSame(pending[i].tensor, results[j].tensor) &&
          (!pending[i].edge || pending[i].edge == results[j].edge))
        result = static_cast<int>(j);
    Result<SavedValue> made =
        SavedValue::make("saved value " + std::to_string(i) + " of " + name(),
                         pending[i], result);
    if (!made)
      return std::move(made).status();
    kept.add(std::move(*made));
  }
  pending.clear();
  return Status::success();
}

Result<Value> Function::saved(size_t index) {
  if (pending.empty() && !given)
    return kept.use(*this, index);
  if (index < pending.size())
    return pending[index];
  return Status::usage(
      "node " + describe(*this) + ": expected a saved value below " +
      std::to_string(pending.size()) + " but got " + std::to_string(index));
}

Status Function::materialize(Gradients &gradients) const {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const InputInfo &info = inputs()[i];
    if (gradients[i].defined() || info.isPlaceholder)
      continue;
    Result<Tensor> zeros = Tensor::zeros(info.dtype, info.shape, info.device);
    if (!zeros)
      return std::move(zeros).status();
    gradients[i] = std::move(*zeros);
  }
  return Status::success();
}

Status Function::run(Gradients &inputs, Gradients &outputs,
                     const RunMode &mode) {
  CallbackLock lock(calls);
  if (Status status = lock.status(); !status)
    return status;
  return kept.lend(*this, mode.retain,
                   [&] { return runBackward(inputs, outputs, mode); });
}

Status Function::runBackward(Gradients &inputs, Gradients &outputs,
                             const RunMode &mode) {
  if (spec.materializes)
    if (Status status = materialize(inputs); !status)
      return status;
  if (!mode.createGraph || !spec.isOnceDifferentiable)
    return spec.backward(*this, inputs, outputs);
  {
    GradModeScope off(false);
    if (Status status = spec.backward(*this, inputs, outputs); !status)
      return status;
  }
  auto none = std::make_shared<NoDerivative>(spec.name);
  for (const Edge &edge : edges()) // a search from there finds it
    if (Status status = none->addEdge(edge); !status)
      return status;
  for (Value &output : outputs)
    if (output.defined())
      if (Status status = makeEdge(output, none); !status)
        return status;
  return Status::success();
}

void Function::announceRelease() {
  if (spec.announce)
    spec.announce(*this);
}

void Function::release() { kept.release(); }

int64_t Function::savedBytes() const { return kept.bytes(); }

Result<std::vector<Value>> Function::savedValues() {
  if (!spec.traits.isStateTransparent)
    return Node::savedValues();
  return kept.useAll(*this);
}

Status Function::swapSaved(std::vector<Value> &values) {
  if (!spec.traits.isStateTransparent)
    return Node::swapSaved(values);
  return kept.swap(*this, values);
}

namespace {

/// What an output of a checkpoint's first run was.
struct FirstOutput {
  artifact::DType dtype = artifact::DType::F32;
  std::vector<int64_t> shape;
  Device device;
  /// It showed an input without history: no gradient comes of it.
  bool isConstant = false;

  FirstOutput(const Tensor &tensor, std::span<const Value> inputs)
      : dtype(tensor.dtype()),
        shape(tensor.shape().begin(), tensor.shape().end()),
        device(tensor.device()),
        isConstant(std::ranges::any_of(inputs, [&](const Value &input) {
          return !input.edge && isSame(input.tensor, tensor);
        })) {}

  /// Compares with what the run in the backward made.
  Status check(const Value &again, bool hasGradient) const {
    const Tensor &tensor = again.tensor;
    if (!tensor.defined() || tensor.dtype() != dtype ||
        tensor.device() != device || !std::ranges::equal(tensor.shape(), shape))
      return Status::usage(
          "expected " + describe(dtype, shape) + " on '" +
          runtime::toString(device) + "', as the first run gave, but got " +
          (tensor.defined()
               ? describe(tensor.dtype(), tensor.shape()) + " on '" +
                     runtime::toString(tensor.device()) + "'"
               : "an empty handle"));
    if (!hasGradient || again.edge || isConstant)
      return Status::success();
    return Status::usage(
        "expected history, since a gradient came, but got none: if it is a "
        "constant, detach it (tdm_tensor_detach) after the call");
  }
};

} // namespace

Status checkpoint(std::string name,
                  std::function<Status(std::vector<Value> &inputs,
                                       std::vector<Value> &outputs)>
                      forward,
                  std::vector<Value> &inputs, std::vector<Value> &outputs) {
  size_t outputCount = outputs.size();
  FunctionSpec spec;
  spec.name = std::move(name);
  spec.isOnceDifferentiable = true;
  auto first = std::make_shared<std::vector<FirstOutput>>();
  spec.forward = [forward, first](Function &node, std::vector<Value> &given,
                                  std::vector<Value> &made) {
    for (const Value &one : given)
      if (Status status = node.save(one); !status)
        return status;
    std::vector<Value> inputs = given; // `forward` may replace them
    if (Status status = forward(given, made); !status)
      return status;
    for (const Value &one : made)
      if (one.defined()) // else an error: there is no backward
        first->emplace_back(one.tensor, inputs);
    return Status::success();
  };
  spec.backward = [forward, first, outputCount](Function &node,
                                                Gradients &gradients,
                                                Gradients &results) -> Status {
    if (isCapturing())
      return Status::usage("node " + describe(node) +
                           " is a checkpoint: leaves in it collect their "
                           "gradients, and cannot be differentiated for");
    GradModeScope on(true);
    std::vector<Value> again, made(outputCount);
    for (size_t i = 0; i < results.size(); ++i) {
      Result<Value> value = node.saved(i);
      if (!value)
        return std::move(value).status();
      Tensor tensor = value->tensor.detach();
      if (!node.edges()[i]) {
        again.push_back(tensor);
        continue;
      }
      if (Status status = tensor.setRequiresGrad(true); !status)
        return status;
      Result<Value> leaf = Leaf::make("input of a checkpoint", tensor);
      if (!leaf)
        return std::move(leaf).status();
      again.push_back(std::move(*leaf));
    }
    std::vector<Edge> leaves = edgesOf(again);
    if (Status status = forward(again, made); !status)
      return status;
    std::vector<Root> roots;
    for (size_t i = 0; i < made.size(); ++i)
      if (Status status = (*first)[i].check(made[i], gradients[i].defined());
          !status)
        return std::move(status).in("output " + std::to_string(i) + " of '" +
                                    node.name() + "', run again");
    for (size_t i = 0; i < made.size(); ++i)
      if (gradients[i].defined() && made[i].edge)
        roots.push_back({made[i].edge, gradients[i]});
    if (!roots.empty())
      if (Status status = backward(roots); !status)
        return status;
    for (size_t i = 0; i < results.size(); ++i)
      if (leaves[i])
        results[i] = static_cast<Leaf &>(*leaves[i].node).value();
    return Status::success();
  };
  return Function::apply(std::move(spec), inputs, outputs);
}

} // namespace tandem::graph
