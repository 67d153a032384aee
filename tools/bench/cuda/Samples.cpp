//===- Samples.cpp - inputs of single kernels, and what comes of them -----===//
#include "tools/bench/cuda/Samples.h"
#include "runtime/io/Safetensors.h"
#include "runtime/io/Tensors.h"
#include "runtime/model/Initialize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace tandem;
using namespace tandem::gpu;
using runtime::Tensor;

static constexpr uint64_t seed = 1;

Result<std::vector<NamedTensor>>
gpu::makeSamples(const artifact::Manifest &manifest,
                 const artifact::Program &program, DType rounding) {
  std::vector<NamedTensor> samples;
  for (const artifact::Slot &slot : program.arguments) {
    if (slot.role != artifact::Role::Input)
      continue;
    runtime::CounterStream counter(seed, runtime::streamOf(slot.name) >> 32);
    bool isFloat = artifact::isFloat(slot.dtype);
    auto made = Tensor::empty(isFloat ? DType::F32 : DType::I64, slot.shape);
    if (!made)
      return std::move(made).status();
    int64_t high = manifest.findValue(slot.name)->high.value_or(2);
    for (int64_t i = 0, n = made->elements(); i < n; ++i)
      if (isFloat)
        made->mutableData<float>()[i] = 2 * counter.centered(i);
      else
        made->mutableData<int64_t>()[i] = int64_t(
            ((counter.bits(i) >> 32) * static_cast<uint64_t>(high)) >> 32);
    auto rounded = isFloat ? made->to(rounding) : std::move(made);
    auto tensor = rounded ? rounded->to(slot.dtype) : std::move(rounded);
    if (!tensor)
      return std::move(tensor).status();
    samples.push_back({slot.name, std::move(*tensor)});
  }
  return samples;
}

const artifact::Program *gpu::firstProgram(const artifact::Manifest &manifest) {
  bool isTrained = manifest.findProgram("backward");
  return manifest.findProgram(isTrained ? "forward" : "evaluate");
}

/// Runs the backward for the loss alone.
static Status differentiate(runtime::Model &model, runtime::Context &context,
                            std::vector<NamedTensor> &gradients) {
  const artifact::Manifest &manifest = model.manifest();
  auto one = Tensor::empty(manifest.findOutput(manifest.loss)->dtype, {});
  if (!one)
    return std::move(one).status();
  if (Status status = one->fill(1.0); !status)
    return status;
  for (const artifact::Slot &slot : manifest.findProgram("backward")->results)
    gradients.push_back({slot.name, {}});
  std::vector<runtime::Destination> destinations;
  for (NamedTensor &gradient : gradients)
    destinations.push_back({gradient.name, &gradient.tensor});
  std::vector<runtime::Argument> cotangents = {{manifest.loss, &*one}};
  return model.backward(context, cotangents, destinations);
}

Result<std::vector<NamedTensor>>
gpu::compute(runtime::Model &model, const std::vector<NamedTensor> &inputs) {
  const artifact::Manifest &manifest = model.manifest();
  const artifact::Program *program = firstProgram(manifest);
  std::vector<NamedTensor> outputs, gradients;
  for (const artifact::Slot &slot : artifact::outputsOf(*program))
    if (slot.role == artifact::Role::Output && slot.name != manifest.loss)
      outputs.push_back({slot.name, {}});
  std::vector<runtime::Argument> arguments;
  for (const NamedTensor &input : inputs)
    arguments.push_back({input.name, &input.tensor});
  std::vector<runtime::Destination> destinations;
  for (NamedTensor &output : outputs)
    destinations.push_back({output.name, &output.tensor});
  // A state counts the draws of random numbers: each run is the first.
  for (const artifact::Value &value : manifest.values)
    if (value.role == artifact::Role::State) {
      if (Status status = model.initialize(0); !status)
        return status;
      break;
    }
  if (program->name == "evaluate") {
    if (Status status = model.run("evaluate", arguments, destinations); !status)
      return status;
  } else {
    auto context = model.forward(arguments, destinations);
    Status status =
        context ? differentiate(model, *context, gradients) : context.status();
    if (!status)
      return status;
  }
  for (NamedTensor &gradient : gradients)
    outputs.push_back({"d_" + gradient.name, std::move(gradient.tensor)});
  for (NamedTensor &output : outputs) {
    auto host = output.tensor.onHost();
    auto dense = host ? host->dense() : std::move(host);
    if (!dense)
      return std::move(dense).status();
    output.tensor = std::move(*dense);
  }
  return outputs;
}

/// The largest difference of two tensors of equal shape.
static double differenceOf(const Tensor &expected, const Tensor &got) {
  double most = 0, largest = 0;
  for (int64_t i = 0, n = expected.elements(); i < n; ++i) {
    double e = expected.at(i), difference = std::abs(got.at(i) - e);
    if (std::isnan(difference) && !(std::isnan(e) && std::isnan(got.at(i))) &&
        got.at(i) != e)
      return INFINITY;
    if (std::isnan(difference))
      continue;
    most = std::max(most, difference);
    if (std::isfinite(e))
      largest = std::max(largest, std::abs(e));
  }
  if (!artifact::isFloat(got.dtype()))
    return most > 0 ? INFINITY : 0;
  return most > 0 ? most / std::max(largest, 1e-30) : 0;
}

Result<Difference> gpu::compareWith(const std::string &file,
                                    const std::vector<NamedTensor> &outputs) {
  auto expected = io::Safetensors::read(file);
  if (!expected)
    return std::move(expected).status();
  if (expected->entries().size() != outputs.size())
    return Status::failed(
        "'" + file + "' has " + std::to_string(expected->entries().size()) +
        " outputs, and the program " + std::to_string(outputs.size()));
  Difference found;
  for (const NamedTensor &output : outputs) {
    auto array = expected->find(output.name);
    if (!array || !std::ranges::equal(array->shape, output.tensor.shape()))
      return Status::failed("'" + file + "' has no output '" + output.name +
                            "' of shape " +
                            runtime::toString(output.tensor.shape()));
    auto tensor = io::toTensor(*array);
    if (!tensor)
      return std::move(tensor).status();
    double difference = differenceOf(*tensor, output.tensor);
    if (difference > found.largest || found.output.empty())
      found = {difference, output.name};
  }
  return found;
}

Status gpu::saveOutputs(const std::string &file, DType type,
                        const std::vector<NamedTensor> &outputs) {
  std::vector<Tensor> kept;
  std::map<std::string, io::ArrayView> views;
  kept.reserve(outputs.size());
  for (const NamedTensor &output : outputs) {
    auto tensor = artifact::isFloat(output.tensor.dtype())
                      ? output.tensor.to(type)
                      : output.tensor.dense();
    if (!tensor)
      return std::move(tensor).status();
    kept.push_back(std::move(*tensor));
    views.emplace(output.name, io::viewOf(kept.back()));
  }
  return io::writeSafetensors(file, views, {});
}

bool gpu::haveSameBits(const std::vector<NamedTensor> &some,
                       const std::vector<NamedTensor> &others) {
  return std::ranges::equal(
      some, others, [](const NamedTensor &one, const NamedTensor &other) {
        return one.tensor.bytes() == other.tensor.bytes() &&
               std::memcmp(one.tensor.data(), other.tensor.data(),
                           size_t(one.tensor.bytes())) == 0;
      });
}
