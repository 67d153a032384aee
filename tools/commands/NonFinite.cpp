//===- NonFinite.cpp - what of a step is no number ------------------------===//
#include "tools/commands/NonFinite.h"

#include "tools/commands/Anomaly.h"
#include "tools/commands/BatchRun.h"
#include "tools/commands/Print.h"
#include "tools/commands/Ranks.h"

#include <cmath>

namespace tandem::commands {
namespace {

using artifact::Role;
using artifact::Value;
using runtime::Model;
using runtime::Tensor;

void append(std::string &text, const std::string &more) {
  text += (text.empty() || more.empty() ? "" : "; ") + more;
}

/// Adds the names of values of `role` that hold what is no number.
Status addVariables(const Model &model, Role role, std::string_view prefix,
                    Names &names) {
  for (const Value &value : model.manifest().values) {
    if (value.role != role || !value.name.starts_with(prefix))
      continue;
    auto tensor = model.get(value.name);
    if (!tensor)
      return std::move(tensor).status();
    if (!isFinite(*tensor))
      names.add(std::string_view(value.name).substr(prefix.size()));
  }
  return Status::success();
}

/// What a batch gives with the model's parameters, which are numbers. Where the
/// artifact adds up gradients, each rank's own ones, before they are summed up.
Result<std::string> runAgain(Model &model, const Dataset &data) {
  constexpr std::string_view programs[] = {"forward", "backward", "accumulate"};
  auto kept = KeptVariables::of(model, programs);
  if (!kept)
    return std::move(kept).status();
  auto found = findByPrograms(model, data.arguments(), true);
  if (!found)
    return std::move(found).status();
  Names outputs, gradients;
  for (const std::string &name : found->outputs)
    if (name != model.manifest().loss)
      outputs.add(name);
  for (const std::string &name : found->gradients)
    gradients.add(name);
  if (Status status = kept->putBack(model); !status)
    return status;
  if (model.manifest().findProgram("accumulate")) {
    const std::string sum = model.manifest().optimizer + ".sum:";
    for (const Value &value : model.manifest().values)
      if (value.name.starts_with(sum)) {
        auto nothing = Tensor::zeros(value.dtype, value.shape);
        if (!nothing)
          return std::move(nothing).status();
        if (Status status = model.set(value.name, *nothing); !status)
          return status;
      }
    if (Status status = model.run("accumulate", data.arguments(), {}); !status)
      return status;
    gradients = Names();
    if (Status status = addVariables(model, Role::State, sum, gradients);
        !status)
      return status;
    if (Status status = kept->putBack(model); !status)
      return status;
  }
  std::string text = outputs.after("outputs ");
  append(text, gradients.after("gradients of "));
  return text;
}

} // namespace

Result<std::string>
parametersNotFinite(std::span<const runtime::Model> models) {
  Names params;
  for (const Model &model : models)
    if (Status status = addVariables(model, Role::Param, "", params); !status)
      return status;
  return textOfRanks(params.after("parameters "));
}

Result<std::string> whatIsNotFinite(Model &model, const Dataset &data,
                                    std::span<const int64_t> rows) {
  std::string text = data.nonFiniteRows(rows);
  Names params;
  if (Status status = addVariables(model, Role::Param, "", params); !status)
    return status;
  append(text, params.after("parameters "));
  // Nothing is learned from a step with parameters that are no numbers.
  auto anyBad = onAnyRank(!params.after("x").empty());
  if (!anyBad)
    return std::move(anyBad).status();
  if (!*anyBad) {
    auto found = runAgain(model, data);
    if (!found)
      return found;
    append(text, *found);
  }
  return textOfRanks(text);
}

} // namespace tandem::commands
