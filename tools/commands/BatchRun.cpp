//===- BatchRun.cpp - a batch by programs 'forward' and 'backward' --------===//
#include "tools/commands/BatchRun.h"

#include <algorithm>

namespace tandem::commands {

using artifact::Program;
using artifact::Role;
using artifact::Slot;
using runtime::Destination;
using runtime::Model;
using runtime::Tensor;

Result<KeptVariables>
KeptVariables::of(const Model &model,
                  std::span<const std::string_view> programs) {
  KeptVariables kept;
  auto isWritten = [&](const artifact::Value &value) {
    return std::any_of(
        programs.begin(), programs.end(), [&](std::string_view name) {
          const Program *program = model.manifest().findProgram(name);
          return program &&
                 std::any_of(program->results.begin(), program->results.end(),
                             [&](const Slot &slot) {
                               return slot.role == Role::Update &&
                                      slot.name == value.name;
                             });
        });
  };
  for (const artifact::Value &value : model.manifest().values) {
    if ((value.role != Role::Param && value.role != Role::State) ||
        !isWritten(value))
      continue;
    auto tensor = model.get(value.name);
    if (tensor)
      tensor = tensor->copyTo(runtime::Device{});
    if (!tensor)
      return std::move(tensor).status();
    kept.values_.push_back({value.name, std::move(*tensor)});
  }
  return kept;
}

Status KeptVariables::putBack(Model &model) const {
  for (const NamedTensor &value : values_)
    if (Status status = model.set(value.name, value.tensor); !status)
      return status;
  return Status::success();
}

static std::vector<Destination> destinationsOf(const Program &program,
                                               Role role,
                                               std::vector<Tensor> &results) {
  std::vector<Destination> made;
  results.resize(program.results.size());
  for (size_t i = 0; i < results.size(); ++i)
    if (program.results[i].role == role)
      made.push_back({program.results[i].name, &results[i]});
  return made;
}

Result<BatchResults>
runBatch(Model &model, std::span<const runtime::Argument> inputs,
         bool wantsGradients,
         std::shared_ptr<const runtime::SavedHooks> hooks) {
  BatchResults made;
  const artifact::Manifest &manifest = model.manifest();
  made.forward = manifest.findProgram("forward");
  made.backward = manifest.findProgram("backward");
  if (!made.forward)
    return made;
  std::vector<runtime::Argument> given;
  for (const runtime::Argument &one : inputs)
    for (const Slot &slot : made.forward->arguments)
      if (slot.role == Role::Input && slot.name == one.name)
        given.push_back(one);
  auto context = model.forward(
      given, destinationsOf(*made.forward, Role::Output, made.outputs),
      std::move(hooks));
  if (!context)
    return std::move(context).status();
  if (!wantsGradients || !made.backward)
    return made;
  auto one = Tensor::zeros(artifact::DType::F32, {});
  for (const Slot &slot : made.backward->arguments)
    if (slot.role == Role::Cotangent && slot.name == manifest.loss)
      one = Tensor::zeros(slot.dtype, slot.shape);
  if (!one)
    return std::move(one).status();
  if (Status status = one->fill(1); !status)
    return status;
  runtime::Argument cotangent(manifest.loss, &*one);
  if (Status status = model.backward(
          *context, std::span(&cotangent, 1),
          destinationsOf(*made.backward, Role::Grad, made.gradients));
      !status)
    return status;
  return made;
}

} // namespace tandem::commands
