//===- CheckRun.cpp - what compiled code gives, for 'check' ---------------===//
#include "tools/tandem/CheckRun.h"
#include "tools/tandem/EmulatedOrders.h"

#include <cstring>

using namespace tandem;
using runtime::Argument;
using runtime::Destination;
using runtime::Model;
using runtime::Tensor;

namespace {

using NamedTensors = std::map<std::string, Tensor>;
using Inputs = std::vector<std::pair<std::string, Tensor>>;

/// The results of a program that have a role, and where they go.
struct Results {
  Results(const artifact::Program &program, artifact::Role role)
      : tensors(program.results.size()) {
    for (size_t i = 0; i < tensors.size(); ++i)
      if (program.results[i].role == role)
        destinations.push_back({program.results[i].name, &tensors[i]});
  }
  Results(const Results &) = delete;

  Status take(NamedTensors &into) const {
    for (const Destination &destination : destinations) {
      auto host = destination.tensor->onHost();
      if (!host)
        return host.status();
      into.emplace(destination.name, std::move(*host));
    }
    return Status::success();
  }

  std::vector<Tensor> tensors;
  std::vector<Destination> destinations;
};

std::vector<Argument> argumentsOf(Inputs &inputs) {
  std::vector<Argument> given;
  for (auto &[name, tensor] : inputs)
    given.push_back({name, &tensor});
  return given;
}

/// With memory of their own: programs may write to their inputs.
Result<Inputs> copyOf(const Inputs &inputs) {
  Inputs copies;
  for (const auto &[name, tensor] : inputs) {
    auto copy = Tensor::empty(tensor.dtype(), tensor.shape());
    if (!copy)
      return copy.status();
    std::memcpy(copy->mutableData<std::byte>(), tensor.data(),
                static_cast<size_t>(tensor.bytes()));
    copies.emplace_back(name, std::move(*copy));
  }
  return copies;
}

/// A tensor of these numbers, rounded to the type.
Result<Tensor> toTensor(const reference::Array &array, artifact::DType type) {
  auto draft = Tensor::empty(artifact::DType::F64, array.shape);
  if (!draft)
    return draft;
  std::copy(array.data.begin(), array.data.end(), draft->mutableData<double>());
  return draft->to(type);
}

/// One that `cotangents` has, or ones.
Result<Tensor> cotangentOf(const artifact::Slot &slot,
                           const NamedArrays &cotangents) {
  if (auto given = cotangents.find(slot.name); given != cotangents.end())
    return toTensor(given->second, slot.dtype);
  auto one = Tensor::empty(slot.dtype, slot.shape);
  if (one)
    if (Status s = one->fill(1.0); !s)
      return s;
  return one;
}

/// Forward, and backward. With cotangents of ones the sum of all outputs is
/// differentiated.
Status runGradients(Model &model, Inputs &inputs, const NamedArrays &cotangents,
                    CompiledValues &values) {
  const artifact::Program *forward = model.manifest().findProgram("forward"),
                          *backward = model.manifest().findProgram("backward");
  if (!forward || !backward)
    return Status::unsupported("the model has no gradients (in a model in "
                               "ONNX, --loss=KIND:OUTPUT,LABELS makes them)");
  Results outputs(*forward, artifact::Role::Output);
  auto context = model.forward(argumentsOf(inputs), outputs.destinations);
  if (!context)
    return context.status();
  Inputs given;
  for (const artifact::Slot &slot : backward->arguments) {
    if (slot.role != artifact::Role::Cotangent)
      continue;
    auto one = cotangentOf(slot, cotangents);
    if (!one)
      return one.status();
    given.emplace_back(slot.name, std::move(*one));
  }
  Results grads(*backward, artifact::Role::Grad);
  if (Status s =
          model.backward(*context, argumentsOf(given), grads.destinations);
      !s)
    return s;
  if (Status s = outputs.take(values.outputs); !s)
    return s;
  return grads.take(values.gradients);
}

Status runStep(Model &model, Inputs &inputs, CompiledValues &values) {
  const artifact::Program *step = model.manifest().findProgram("step");
  Results outputs(*step, artifact::Role::Output);
  if (Status s = model.step(argumentsOf(inputs), outputs.destinations); !s)
    return s;
  if (Status s = outputs.take(values.stepOutputs); !s)
    return s;
  for (const artifact::Slot &slot : step->results) {
    if (slot.role != artifact::Role::Update ||
        !model.manifest().findValue(slot.name))
      continue;
    auto value = model.get(slot.name);
    auto host = value ? value->onHost() : std::move(value);
    if (!host)
      return host.status();
    values.stepValues.emplace(slot.name, std::move(*host));
  }
  return Status::success();
}

/// The first that has other bits; empty: none.
std::string firstOther(const NamedTensors &expected, const NamedTensors &got) {
  for (const auto &[name, tensor] : expected) {
    const Tensor &other = got.at(name);
    if (std::memcmp(tensor.data(), other.data(),
                    static_cast<size_t>(tensor.bytes())) != 0)
      return name;
  }
  return {};
}

Status runGradientsOf(const std::function<Result<Model>()> &load,
                      const Inputs &inputs, const NamedArrays &cotangents,
                      CompiledValues &values) {
  auto model = load();
  if (!model)
    return model.status();
  auto given = copyOf(inputs);
  if (!given)
    return given.status();
  return runGradients(*model, *given, cotangents, values);
}

} // namespace

Result<Inputs> tandem::withArrays(const Inputs &inputs,
                                  const NamedArrays &arrays) {
  Inputs others;
  for (const auto &[name, tensor] : inputs) {
    auto found = arrays.find(name);
    auto other = found == arrays.end()
                     ? Result<Tensor>(tensor)
                     : toTensor(found->second, tensor.dtype());
    if (!other)
      return other.status();
    others.emplace_back(name, std::move(*other));
  }
  return others;
}

Result<NamedTensors>
tandem::runBackward(const std::function<Result<Model>()> &load,
                    const Inputs &inputs, const NamedArrays &cotangents) {
  CompiledValues values;
  if (Status s = runGradientsOf(load, inputs, cotangents, values); !s)
    return s;
  return std::move(values.gradients);
}

Result<CompiledValues>
tandem::runCompiled(const std::function<Result<Model>()> &load,
                    const std::vector<std::pair<std::string, Tensor>> &inputs) {
  CompiledValues values;
  if (Status s = runGradientsOf(load, inputs, {}, values); !s)
    return s;
  auto model = load();
  if (!model)
    return model.status();
  if (!model->manifest().findProgram("step"))
    return values;
  auto given = copyOf(inputs);
  if (!given)
    return given.status();
  if (Status s = runStep(*model, *given, values); !s)
    return s;
  return values;
}

Result<CompiledValues>
tandem::runInOrders(const std::function<Result<Model>()> &load,
                    const std::vector<std::pair<std::string, Tensor>> &inputs) {
  std::optional<CompiledValues> first;
  for (const char *order : kEmulatedOrders) {
    if (Status s = setEmulatedOrder(order); !s)
      return s;
    auto values = runCompiled(load, inputs);
    if (!values)
      return Status(values.status().code(), values.status().message() +
                                                " (in the order " + order +
                                                ")");
    if (!first) {
      first = std::move(*values);
      continue;
    }
    const std::tuple<const char *, const NamedTensors *, const NamedTensors *>
        kinds[] = {
            {"output", &first->outputs, &values->outputs},
            {"gradient of", &first->gradients, &values->gradients},
            {"the step's output", &first->stepOutputs, &values->stepOutputs},
            {"the step's update of", &first->stepValues, &values->stepValues}};
    for (auto [kind, expected, got] : kinds)
      if (std::string name = firstOther(*expected, *got); !name.empty())
        return Status(Code::Differs, std::string(kind) + " '" + name +
                                         "' has other bits in the order '" +
                                         order + "' than in '" +
                                         kEmulatedOrders[0] + "'");
  }
  return std::move(*first);
}
