//===- GradientReport.cpp - what a step says of its gradients -------------===//
#include "tools/commands/GradientReport.h"

#include "tools/commands/Checkpoint.h"
#include "tools/commands/Print.h"

#include <cmath>

namespace tandem::commands {
namespace {

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

GradientReport::GradientReport(const runtime::Model &model)
    : normName_(optimizerState(model.manifest(), "grad_norm")),
      skippedName_(optimizerState(model.manifest(), "skipped")) {
  // One that cannot be read is said after the first step.
  std::ignore = readNumber(model, skippedName_, counted_);
}

Status GradientReport::read(const runtime::Model &model) {
  double norm = 0, counted = counted_;
  if (Status status = readNumber(model, normName_, norm); !status)
    return status;
  if (Status status = readNumber(model, skippedName_, counted); !status)
    return status;
  if (!normName_.empty())
    norm_ = norm;
  wasSkipped_ = counted != counted_;
  skipped_ += wasSkipped_;
  counted_ = counted;
  return Status::success();
}

std::string GradientReport::firstSkipped(int64_t step) const {
  return "the norm of the gradients is " + numberText(norm_.value_or(0)) +
         " at step " + std::to_string(step) +
         ": its update is left out, as those of other such steps will be; "
         "parameters and the optimizer's states are as they were";
}

std::string GradientReport::logFields() const {
  std::string text;
  if (norm_)
    text += ", \"grad_norm\": " +
            (std::isfinite(*norm_) ? roundedText(*norm_) : "null");
  if (wasSkipped_)
    text += ", \"skipped\": true";
  return text;
}

} // namespace tandem::commands
