//===- Anomaly.cpp - where a NaN of a training step was made --------------===//
#include "tools/commands/Anomaly.h"

#include "runtime/io/Array.h"
#include "tools/commands/BatchRun.h"
#include "tools/commands/Checkpoint.h"

#include <cmath>

namespace tandem::commands {

using artifact::Role;
using runtime::Model;
using runtime::Tensor;

namespace {

/// "NaN" or "an infinity"; "" if there is none that is looked for.
std::string anomalyIn(const Tensor &given, bool findsInfinity) {
  if (!given.isBacked() || !artifact::isFloat(given.dtype()))
    return "";
  Result<Tensor> tensor = given.onHost();
  for (int64_t i = 0; tensor && i < tensor->elements(); ++i) {
    double value = tensor->at(i);
    if (std::isnan(value))
      return "NaN";
    if (findsInfinity && std::isinf(value))
      return "an infinity";
  }
  return "";
}

/// The results of a program in which there is one.
std::vector<std::string> namesIn(const artifact::Program &program, Role role,
                                 std::span<const Tensor> results,
                                 bool findsInfinity) {
  std::vector<std::string> names;
  for (size_t i = 0; i < results.size(); ++i)
    if (program.results[i].role == role &&
        !anomalyIn(results[i], findsInfinity).empty())
      names.push_back(program.results[i].name);
  return names;
}

/// "'loss', 'scores'".
std::string listOf(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + io::inQuotes(name);
  return text;
}

/// Says in which results of the programs the first anomaly is.
Result<std::string> locateByPrograms(Model &model,
                                     std::span<const runtime::Argument> inputs,
                                     bool findsInfinity) {
  auto found = findByPrograms(model, inputs, findsInfinity);
  if (!found)
    return std::move(found).status();
  if (!found->hasPrograms)
    return std::string("the artifact has no forward and backward to run again");
  if (!found->outputs.empty())
    return "it was made in the forward, whose outputs " +
           listOf(found->outputs) + " have it";
  if (!found->gradients.empty())
    return "it was made in the backward, whose gradients of " +
           listOf(found->gradients) + " have it; the outputs have none";
  return std::string("outputs and gradients have none: the optimizer made it");
}

} // namespace

bool isFinite(const Tensor &tensor) { return anomalyIn(tensor, true).empty(); }

Result<NamesFound> findByPrograms(Model &model,
                                  std::span<const runtime::Argument> inputs,
                                  bool findsInfinity) {
  NamesFound found;
  const artifact::Manifest &manifest = model.manifest();
  if (!manifest.findProgram("forward") || !manifest.findProgram("backward"))
    return found;
  found.hasPrograms = true;
  auto run = runBatch(model, inputs, /*wantsGradients=*/true);
  if (!run)
    return std::move(run).status();
  found.outputs =
      namesIn(*run->forward, Role::Output, run->outputs, findsInfinity);
  found.gradients =
      namesIn(*run->backward, Role::Grad, run->gradients, findsInfinity);
  return found;
}

Option &AnomalyOptions::declare(OptionTable &options) {
  return options
      .optionalText("detect-anomaly", "nan|infinity", isOn, kind,
                    "stop at the first NaN (or infinity), and say which op of "
                    "the model made it; each step costs a copy of the "
                    "parameters")
      .oneOf({"nan", "infinity"})
      .byDefault("nan");
}

Status AnomalyWatch::keep(const Model &model) {
  if (!options.isOn)
    return Status::success();
  kept.clear();
  for (const artifact::Value &value : model.manifest().values) {
    if (value.role != Role::Param && value.role != Role::State)
      continue;
    Result<Tensor> tensor = model.get(value.name);
    if (tensor)
      tensor = tensor->copyTo(runtime::Device{});
    if (!tensor)
      return std::move(tensor).status();
    kept.push_back({value.name, std::move(*tensor)});
  }
  return Status::success();
}

std::string AnomalyWatch::whatIsWrong(const Model &model,
                                      const Tensor &loss) const {
  std::string text = anomalyIn(loss, options.findsInfinity());
  if (!text.empty())
    return text + " in the loss";
  // A dynamic scale is found by gradients that are not finite, whose updates
  // are left out; but what is below 1 made none of them so.
  const artifact::Manifest &manifest = model.manifest();
  std::string norm, scaleName = optimizerState(manifest, "scale");
  if (Result<Tensor> scale = model.get(scaleName); scale && !scaleName.empty())
    if (scale = scale->onHost(); scale && scale->at(0) >= 1)
      norm = optimizerState(manifest, "grad_norm");
  for (const artifact::Value &value : manifest.values) {
    bool isParam = value.role == Role::Param;
    if ((!isParam && value.role != Role::State) || value.name == norm)
      continue;
    // Infinity can be meant in a state, as of a mask.
    Result<Tensor> tensor = model.get(value.name);
    if (tensor)
      text = anomalyIn(*tensor, isParam && options.findsInfinity());
    if (!text.empty())
      return text + " in the new value of " + io::inQuotes(value.name);
  }
  return "";
}

std::string AnomalyWatch::locate(Model &model,
                                 std::span<const runtime::Argument> inputs) {
  std::string reason;
  if (locator) {
    AnomalyStep step{artifact, kept, options.findsInfinity()};
    for (const runtime::Argument &input : inputs)
      if (Result<Tensor> tensor = input.tensor->onHost())
        step.values.push_back({std::string(input.name), std::move(*tensor)});
    Result<AnomalyPlace> found = locator(step);
    if (found && !found->op.empty())
      return std::move(found->op);
    reason = "; " + (found ? found->why : found.status().message());
  }
  Result<std::string> found =
      locateByPrograms(model, inputs, options.findsInfinity());
  return (found ? *found : found.status().message()) + reason;
}

Status AnomalyWatch::check(Model &model,
                           std::span<const runtime::Argument> inputs,
                           const Tensor &loss) {
  if (!options.isOn)
    return Status::success();
  std::string wrong = whatIsWrong(model, loss);
  if (wrong.empty())
    return Status::success();
  for (const NamedTensor &one : kept)
    if (Status status = model.set(one.name, one.tensor); !status)
      return status;
  return Status::failed(wrong + ": " + locate(model, inputs));
}

} // namespace tandem::commands
