//===- Updates.cpp - which batches make an update, and what it says -------===//
#include "tools/commands/Updates.h"

#include "tools/commands/Checkpoint.h"
#include "tools/commands/Print.h"

#include <algorithm>
#include <cmath>

namespace tandem::commands {
namespace {

/// Does nothing where there is no such state.
Status readNumber(const runtime::Model &model, const std::string &name,
                  double &number) {
  if (name.empty())
    return Status::success();
  auto tensor = model.get(name);
  if (!tensor)
    return std::move(tensor).status();
  number = tensor->at(0);
  return Status::success();
}

} // namespace

Status Updates::begin(const runtime::Model &model, int64_t batches,
                      bool canSkip) {
  const artifact::Manifest &manifest = model.manifest();
  batches_ = batches;
  // A model may bring a whole step of its own (Trainer::findPrograms).
  program_ = manifest.findProgram("step") ? "step" : "forward";
  if (batches > 1 && !manifest.findProgram("accumulate"))
    return Status::usage("--accumulate needs an artifact with the program "
                         "'accumulate': compile with --accumulate");
  if (canSkip && optimizerState(manifest, "skipped").empty())
    return skipNeeds();
  // Each parameter counts for itself; those that no step moves never do.
  for (const artifact::Value &value : manifest.values) {
    if (!value.name.starts_with(manifest.optimizer + ".summed:"))
      continue;
    double number = 0;
    if (Status status = readNumber(model, value.name, number); !status)
      return status;
    pending_ = std::max(pending_, static_cast<int64_t>(number));
  }
  return findStates(model);
}

Status Updates::skipNeeds() const {
  return Status::usage("--on-nan=skip needs an artifact whose steps can leave "
                       "out their update: compile with --clip=norm:N or "
                       "--loss-scale");
}

Status Updates::beginStages(std::span<const runtime::Model> stages,
                            bool hasNorm, bool canSkip) {
  if (canSkip && !hasNorm)
    return skipNeeds();
  for (const runtime::Model &model : stages)
    if (model.hasProgram("update"))
      return findStates(model);
  return Status::success();
}

Status Updates::take(std::span<const runtime::Model> stages, bool updated,
                     std::optional<double> norm) {
  norm_.reset();
  wasSkipped_ = false;
  if (!updated)
    return Status::success();
  int64_t before = skipped_;
  for (const runtime::Model &model : stages)
    if (model.hasProgram("update")) {
      if (Status status = read(model); !status)
        return status;
      break;
    }
  // A rank may have no stage with a parameter, and knows the norm.
  norm_ = norm;
  wasSkipped_ = norm && !std::isfinite(*norm);
  skipped_ = before + wasSkipped_;
  return Status::success();
}

/// Finds the optimizer's states that say how updates go.
Status Updates::findStates(const runtime::Model &model) {
  const artifact::Manifest &manifest = model.manifest();
  normName_ = optimizerState(manifest, "grad_norm");
  skippedName_ = optimizerState(manifest, "skipped");
  scaleName_ = optimizerState(manifest, "scale");
  rateName_ = optimizerState(manifest, "rate");
  // Until the next update the rate is that of the last one, if there was one.
  double updates = 0, rate = 0;
  if (Status status =
          readNumber(model, optimizerState(manifest, "updates"), updates);
      !status)
    return status;
  if (Status status = readNumber(model, rateName_, rate); !status)
    return status;
  if (!rateName_.empty() && updates > 0)
    rate_ = rate;
  return readNumber(model, skippedName_, counted_);
}

Status Updates::run(runtime::Model &model,
                    std::span<const runtime::Argument> inputs,
                    const runtime::Destination &loss, bool endsPass) {
  bool updates = pending_ + 1 >= batches_ || endsPass;
  if (Status status = model.run(updates ? program_ : "accumulate", inputs,
                                std::span(&loss, 1));
      !status)
    return status;
  pending_ = updates ? 0 : pending_ + 1;
  norm_.reset();
  wasSkipped_ = false;
  return updates ? read(model) : Status::success();
}

Status Updates::read(const runtime::Model &model) {
  double norm = 0, counted = counted_;
  if (Status status = readNumber(model, normName_, norm); !status)
    return status;
  if (Status status = readNumber(model, skippedName_, counted); !status)
    return status;
  if (Status status = readNumber(model, scaleName_, scale_); !status)
    return status;
  if (!normName_.empty())
    norm_ = norm;
  double rate = 0;
  if (Status status = readNumber(model, rateName_, rate); !status)
    return status;
  if (!rateName_.empty())
    rate_ = rate;
  wasSkipped_ = counted != counted_;
  skipped_ += wasSkipped_;
  counted_ = counted;
  return Status::success();
}

std::string Updates::firstSkipped(int64_t step) const {
  return "the norm of the gradients is " + numberText(norm_.value_or(0)) +
         " at step " + std::to_string(step) +
         (scaleName_.empty()
              ? ""
              : ", and the scale " + roundedText(scale_) + " from here on") +
         ": its update is left out, as those of other such steps will be; "
         "parameters and the optimizer's states are as they were";
}

std::string Updates::logFields() const {
  std::string text;
  if (norm_)
    text += ", \"grad_norm\": " +
            (std::isfinite(*norm_) ? roundedText(*norm_) : "null");
  if (norm_ && !scaleName_.empty())
    text += ", \"loss_scale\": " + roundedText(scale_);
  if (wasSkipped_)
    text += ", \"skipped\": true";
  return text;
}

} // namespace tandem::commands
