//===- CompiledMachine.cpp - a program in the runtime ---------------------===//
#include "tests/semantics/Harness.h"

using namespace tandem;
using namespace tandem::test;
using artifact::Role;
using runtime::Argument;
using runtime::Destination;

Numbers test::numbersOf(const runtime::Tensor &tensor) {
  Numbers numbers;
  if (!tensor.isBacked())
    return numbers;
  auto host = tensor.onHost();
  if (!host) {
    ADD_FAILURE() << host.status().message();
    return numbers;
  }
  for (int64_t i = 0; i < host->elements(); ++i)
    numbers.push_back(host->at(i));
  return numbers;
}

runtime::Tensor test::tensorOf(DType dtype, const Shape &shape,
                               const Numbers &numbers) {
  auto count = runtime::elementCount(DType::F64, shape);
  if (!count || *count != static_cast<int64_t>(numbers.size())) {
    ADD_FAILURE() << numbers.size() << " numbers for "
                  << runtime::describe(dtype, shape);
    return {};
  }
  auto made = runtime::Tensor::copyOf(numbers.data(), DType::F64, shape);
  auto tensor = made ? made->to(dtype) : std::move(made);
  if (!tensor) {
    ADD_FAILURE() << tensor.status().message();
    return {};
  }
  return *tensor;
}

std::unique_ptr<CompiledMachine>
CompiledMachine::load(const std::string &artifact, runtime::Device device) {
  auto model = runtime::Model::load(artifact, {.threads = 1, .device = device});
  if (!model) {
    ADD_FAILURE() << model.status().message();
    return nullptr;
  }
  std::unique_ptr<CompiledMachine> machine(
      new CompiledMachine(std::move(*model)));
  for (const artifact::Value &value : machine->model.manifest().values)
    if (value.role == Role::Param || value.role == Role::State)
      if (auto tensor = machine->model.get(value.name))
        machine->tensors[value.name] = *tensor;
  return machine;
}

runtime::Tensor CompiledMachine::placed(DType dtype, const Shape &shape,
                                        const Numbers &numbers) {
  runtime::Tensor tensor = tensorOf(dtype, shape, numbers);
  auto there = tensor.copyTo(model.device());
  if (tensor.defined() && !there) {
    ADD_FAILURE() << there.status().message();
    return {};
  }
  return tensor.defined() ? *there : tensor;
}

void CompiledMachine::mark(const std::string &name) {
  const artifact::Value *value = model.manifest().findValue(name);
  if (!value || !value->requiresGrad)
    return;
  bool isWritten = false;
  if (const artifact::Program *program =
          model.manifest().findProgram("forward"))
    for (const artifact::Slot &slot : program->results)
      isWritten |=
          slot.role == Role::Update && slot.name == name && slot.visible;
  if (isWritten)
    tensors[name].setMade(true);
  else
    setLeaf(name);
}

void CompiledMachine::setLeaf(const std::string &name) {
  tensors[name].setMade(false);
  Status status = tensors[name].setRequiresGrad(true);
  EXPECT_TRUE(status.ok()) << status.message();
}

void CompiledMachine::set(const std::string &name, const Numbers &numbers) {
  const artifact::Value *value = model.manifest().findValue(name);
  if (!value) {
    ADD_FAILURE() << "there is no value '" << name << "'";
    return;
  }
  runtime::Tensor tensor = placed(value->dtype, value->shape, numbers);
  if (value->role == Role::Input) {
    tensors[name] = tensor;
    mark(name);
    return;
  }
  Status status = model.set(name, tensor);
  EXPECT_TRUE(status.ok()) << status.message();
  if (auto stored = model.get(name))
    tensors[name] = *stored;
}

void CompiledMachine::setStorage(const std::string &name,
                                 const Numbers &numbers, DType dtype) {
  tensors[name] =
      placed(dtype, {static_cast<int64_t>(numbers.size())}, numbers);
}

void CompiledMachine::setView(const std::string &name, const std::string &of,
                              const Shape &shape, const Shape &strides,
                              int64_t offset) {
  const artifact::Value *value = model.manifest().findValue(name);
  DType dtype = value ? value->dtype : tensors[of].dtype();
  auto view = tensors[of].viewAs(dtype, shape, strides,
                                 offset * artifact::byteSize(dtype));
  if (!view) {
    ADD_FAILURE() << view.status().message();
    return;
  }
  tensors[name] = *view;
  mark(name);
}

void CompiledMachine::setFreed(const std::string &name) {
  const artifact::Value *value = model.manifest().findValue(name);
  auto tensor =
      runtime::Tensor::zeros(value->dtype, value->shape, model.device());
  Status status = tensor ? tensor->resizeStorage(0) : tensor.status();
  EXPECT_TRUE(status.ok()) << status.message();
  tensors[name] = *tensor;
}

/// The inputs of a program, as the caller holds them.
static std::vector<Argument>
inputsOf(const artifact::Program &program,
         std::map<std::string, runtime::Tensor> &tensors) {
  std::vector<Argument> inputs;
  for (const artifact::Slot &slot : program.arguments)
    if (slot.role == Role::Input)
      inputs.push_back({slot.name, &tensors[slot.name]});
  return inputs;
}

Result<runtime::Context> CompiledMachine::forwardContext() {
  const artifact::Program *program = model.manifest().findProgram("forward");
  if (!program)
    return Status::failed("there is no program 'forward'");
  return model.forward(inputsOf(*program, tensors), {});
}

std::string CompiledMachine::forward() {
  const artifact::Program *program = model.manifest().findProgram("forward");
  if (!program)
    return "there is no program 'forward'";
  std::map<std::string, runtime::Tensor> results;
  std::vector<Destination> destinations;
  for (const artifact::Slot &slot : program->results)
    if (slot.role == Role::Output)
      destinations.push_back({slot.name, &results[slot.name]});
  for (const artifact::OutputAlias &alias : program->aliases)
    destinations.push_back({alias.name, &results[alias.name]});
  auto made = model.forward(inputsOf(*program, tensors), destinations);
  if (!made)
    return made.status().message();
  context = std::move(*made);
  outputTensors = std::move(results);
  outputs.clear();
  for (auto &[name, tensor] : outputTensors)
    outputs[name] = numbersOf(tensor);
  return "";
}

std::string CompiledMachine::backward(const NamedNumbers &cotangents,
                                      const runtime::BackwardOptions &options) {
  const artifact::Program *program = model.manifest().findProgram("backward");
  if (!program)
    return "there is no program 'backward'";
  cotangentTensors.clear();
  gradTensors.clear();
  std::vector<Argument> given;
  for (const artifact::Slot &slot : program->arguments)
    if (auto found = cotangents.find(slot.name);
        slot.role == Role::Cotangent && found != cotangents.end()) {
      runtime::Tensor &tensor = cotangentTensors[slot.name];
      tensor = placed(slot.dtype, slot.shape, found->second);
      given.push_back({slot.name, &tensor});
    }
  EXPECT_EQ(given.size(), cotangents.size()) << "unknown cotangents";
  std::vector<Destination> destinations;
  for (const artifact::Slot &slot : program->results)
    if (slot.role == Role::Grad)
      destinations.push_back({slot.name, &gradTensors[slot.name]});
  Status status = model.backward(context, given, destinations, options);
  if (!status)
    return status.message();
  gradients.clear();
  for (auto &[name, tensor] : gradTensors)
    if (tensor.defined())
      gradients[name] = numbersOf(tensor);
  return "";
}

const runtime::Tensor &CompiledMachine::handle(const std::string &name) {
  for (auto *handles : {&tensors, &outputTensors, &cotangentTensors})
    if (auto found = handles->find(name); found != handles->end())
      return found->second;
  ADD_FAILURE() << "there is no tensor '" << name << "'";
  static const runtime::Tensor none;
  return none;
}

static Shape toShape(std::span<const int64_t> extents) {
  return {extents.begin(), extents.end()};
}

Numbers CompiledMachine::contents(const std::string &name) {
  // A cotangent has the name of its output.
  auto cotangent = cotangentTensors.find(name);
  return numbersOf(cotangent != cotangentTensors.end() ? cotangent->second
                                                       : handle(name));
}
Shape CompiledMachine::shape(const std::string &name) {
  return toShape(handle(name).shape());
}
Shape CompiledMachine::strides(const std::string &name) {
  return toShape(handle(name).strides());
}
bool CompiledMachine::share(const std::string &a, const std::string &b) {
  return handle(a).storage() == handle(b).storage();
}
