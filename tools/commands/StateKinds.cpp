//===- StateKinds.cpp - what a state of a training is, by its name --------===//
#include "tools/commands/StateKinds.h"

#include "tools/commands/Checkpoint.h"

namespace tandem::commands {

using artifact::Manifest;
using artifact::Role;
using artifact::Value;

bool isOptimizers(const Value &value, const Manifest &manifest) {
  return value.role == Role::State && !manifest.optimizer.empty() &&
         value.name.starts_with(manifest.optimizer + ".");
}

bool isSeed(const Value &value) {
  return value.init && value.init->kind == artifact::Init::Kind::Seed;
}

std::string_view paramOf(const Value &value, const Manifest &manifest) {
  std::string_view name = value.name;
  size_t colon = name.find(':');
  std::string_view param =
      colon == std::string_view::npos ? "" : name.substr(colon + 1);
  const Value *of = value.role == Role::State && !param.empty()
                        ? manifest.findValue(param)
                        : nullptr;
  return of && of->role == Role::Param ? param : std::string_view();
}

bool isAverage(const Value &value, const Manifest &manifest) {
  std::string_view kind = value.name;
  kind = kind.substr(0, kind.find(':'));
  for (const AverageKind &average : averageKinds)
    if (kind.starts_with(average.name))
      for (std::string_view variable : {"", "_count", "_updates"})
        if (kind.substr(average.name.size()) == variable)
          return !paramOf(value, manifest).empty();
  return false;
}

bool isTrainings(const Value &value, const Manifest &manifest) {
  return isOptimizers(value, manifest) || isSeed(value) ||
         isAverage(value, manifest);
}

std::string_view variableOf(const Value &value, const Manifest &manifest) {
  std::string_view name = value.name;
  name.remove_prefix(manifest.optimizer.size() + 1);
  name = name.substr(0, name.find(':'));
  return name.substr(name.rfind('.') + 1);
}

bool isGroups(const Value &value, const Manifest &manifest) {
  std::string_view name = value.name;
  name.remove_prefix(manifest.optimizer.size() + 1);
  name = name.substr(0, name.find(':'));
  return name.find('.') != std::string_view::npos;
}

bool isGroupsRate(const Value &value, const Manifest &manifest) {
  return isOptimizers(value, manifest) && isGroups(value, manifest) &&
         variableOf(value, manifest) == "lr";
}

bool isReport(const Value &value, const Manifest &manifest) {
  if (!isOptimizers(value, manifest))
    return false;
  std::string_view variable = variableOf(value, manifest);
  return variable == "grad_norm" || variable == "skipped" || variable == "rate";
}

bool isOptional(const Value &value, const Manifest &manifest) {
  if (isAverage(value, manifest))
    return true;
  if (!isOptimizers(value, manifest))
    return false;
  std::string_view variable = variableOf(value, manifest);
  return isReport(value, manifest) || variable == "sum" ||
         variable == "summed" || variable == "scale" || variable == "good" ||
         variable == "updates" || variable == "noise" ||
         isGroups(value, manifest);
}

} // namespace tandem::commands
