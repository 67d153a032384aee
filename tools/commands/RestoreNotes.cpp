//===- RestoreNotes.cpp - what goes on in another way, said ---------------===//
#include "tools/commands/RestoreNotes.h"

#include "runtime/artifact/Adapters.h"
#include "runtime/io/Elements.h"
#include "tools/commands/Checkpoint.h"
#include "tools/commands/Print.h"
#include "tools/commands/StateKinds.h"

#include <algorithm>

namespace tandem::commands {

using artifact::Manifest;
using artifact::Role;
using artifact::Value;
using io::TensorFiles;

/// Whether the files have a state of the optimizer for a param.
static bool hasStates(const TensorFiles &files, const Manifest &manifest,
                      std::string_view param) {
  for (const Value &value : manifest.values)
    if (isOptimizers(value, manifest) && value.name.ends_with(param) &&
        paramOf(value, manifest) == param &&
        files.entries().contains(value.name))
      return true;
  return false;
}

std::vector<std::string_view> unfrozen(const TensorFiles &files,
                                       const Manifest &manifest) {
  std::vector<std::string_view> without;
  bool hasAny = false;
  for (const Value &value : manifest.values) {
    if (value.role != Role::Param || !value.requiresGrad)
      continue;
    bool has = hasStates(files, manifest, value.name);
    hasAny |= has;
    if (!has)
      without.emplace_back(value.name);
  }
  return hasAny ? without : std::vector<std::string_view>();
}

void noteFresh(const TensorFiles &files, const Manifest &manifest,
               std::vector<std::string> &notes) {
  std::string names;
  auto fresh = unfrozen(files, manifest);
  constexpr size_t shown = 8;
  for (size_t i = 0; i < std::min(fresh.size(), shown); ++i)
    names += (i ? ", '" : "'") + std::string(fresh[i]) + "'";
  if (fresh.size() > shown)
    names += " and " + std::to_string(fresh.size() - shown) + " more";
  if (!fresh.empty())
    notes.push_back("has no states of the optimizer for " + names +
                    ", which no update moved until now: they begin anew");
  auto lacks = [&](auto is) {
    return std::any_of(manifest.values.begin(), manifest.values.end(),
                       [&](const Value &value) {
                         return is(value) &&
                                !files.entries().contains(value.name);
                       });
  };
  if (lacks([&](const Value &value) {
        return isOptimizers(value, manifest) &&
               variableOf(value, manifest) == "updates";
      }))
    notes.emplace_back("does not say how many updates there were: the schedule "
                       "begins with the first");
  if (lacks([&](const Value &value) {
        return isOptimizers(value, manifest) &&
               variableOf(value, manifest) == "noise";
      }))
    notes.emplace_back("has no noise of gradients: what --gradient-noise draws "
                       "begins with the first update");
  for (const AverageKind &average : averageKinds)
    if (lacks([&](const Value &value) {
          return isAverage(value, manifest) &&
                 value.name.starts_with(average.name);
        }))
      notes.push_back("lacks averages '" + std::string(average.name) +
                      "', which begin anew");
}

void noteLeft(const TensorFiles &files, const Manifest &manifest,
              std::vector<std::string> &notes) {
  std::set<std::string_view> kept;
  std::set<std::string_view> trained;
  for (const Value &value : manifest.values) {
    if (value.role == Role::Param || value.role == Role::State)
      kept.insert(value.name);
    if (value.role == Role::Param && value.requiresGrad)
      trained.insert(value.name);
  }
  // A stage without parameters has nothing of a training.
  if (manifest.optimizer.empty() || !kept.contains(manifest.optimizer + ".lr"))
    return;
  std::set<std::string> averages, variables, untrained, numbers;
  for (const auto &[name, entry] : files.entries()) {
    if (kept.contains(name))
      continue;
    Value value;
    value.role = Role::State;
    value.name = name;
    std::string param(paramOf(value, manifest));
    if (isAverage(value, manifest)) {
      averages.insert(name.substr(0, name.find_first_of("_:")));
      continue;
    }
    if (!isOptimizers(value, manifest) || isReport(value, manifest))
      continue;
    // Sums that wait for an update are compared by themselves.
    std::string variable(variableOf(value, manifest));
    if (variable == "sum" || variable == "summed")
      continue;
    if (name.find(':') == name.npos)
      numbers.insert(isGroups(value, manifest) ? name : variable);
    else if (!param.empty() && trained.contains(param))
      variables.insert(name.substr(0, name.find(':')));
    else if (!param.empty())
      untrained.insert(param);
  }
  auto say = [&](const std::set<std::string> &of, const std::string &before,
                 const std::string &after) {
    Names names;
    for (const std::string &name : of)
      names.add(name);
    if (names.count())
      notes.push_back(names.after(before) + after);
  };
  auto number = [&](const char *name, const std::string &text) {
    if (numbers.erase(name))
      notes.push_back(text);
  };
  const std::string behind = ": they are left behind";
  say(averages, "has averages ",
      ", which this artifact does not keep" + behind);
  number("updates", "has a count of updates for a schedule of the learning "
                    "rate, which this artifact does not have: it is left "
                    "behind");
  number("noise", "has noise of gradients, which this artifact does not add: "
                  "it is left behind");
  number("scale", "has a scale of the loss, which this artifact does not have: "
                  "it is left behind");
  numbers.erase("good"); // belongs to the scale
  numbers.erase("step"); // of all parameters
  say(numbers, "has ", ", which this artifact does not have" + behind);
  say(variables, "has states ",
      " of parameters, which this optimizer does not keep" + behind);
  say(untrained, "has states of the optimizer for ",
      ", which this artifact does not train" + behind);
}

std::string compiledNumber(const Value &value) {
  if (!value.init || value.init->kind != artifact::Init::Kind::Constant ||
      !value.shape.empty())
    return "";
  auto compiled = runtime::Tensor::zeros(value.dtype, value.shape);
  if (!compiled || !compiled->fill(value.init->a))
    return "";
  return scalarText(*compiled);
}

/// Returns the number of a state, where it is not the one that it was compiled
/// with; else an empty text.
static std::string otherNumber(const runtime::Model &model,
                               const Value &value) {
  std::string compiled = compiledNumber(value);
  if (compiled.empty())
    return "";
  auto tensor = model.get(value.name);
  if (tensor)
    tensor = tensor->onHost();
  std::string text = tensor ? scalarText(*tensor) : compiled;
  return text == compiled ? "" : text;
}

std::vector<std::string> rateNotes(const runtime::Model &model,
                                   const RateGroups &groups, bool isSet,
                                   const std::string &path) {
  std::vector<std::string> notes;
  const Manifest &manifest = model.manifest();
  std::string own = optimizerState(manifest, "lr");
  for (const Value &value : manifest.values) {
    bool isOwn = !own.empty() && value.name == own;
    if (!(isOwn && groups.hasOthers && !isSet) &&
        !isGroupsRate(value, manifest))
      continue;
    std::string number = otherNumber(model, value);
    if (number.empty())
      continue;
    Names members;
    if (auto found = groups.members.find(value.name);
        found != groups.members.end())
      for (const std::string &param : found->second)
        members.add(param);
    notes.push_back(
        "the learning rate " +
        (isOwn ? "" : io::inQuotes(value.name) + members.after(" of ") + " ") +
        "is " + number + ", as in " + io::inQuotes(path) + ", and not " +
        compiledNumber(value) + ", which the artifact was compiled with" +
        (isOwn ? "; --lr sets another" : ""));
  }
  return notes;
}

std::vector<std::string> adapterNotes(const runtime::Model &model,
                                      const std::string &path) {
  Names scales;
  for (const Value &value : model.manifest().values) {
    if (value.role == Role::Output || !artifact::isAdapterName(value.name))
      continue;
    if (std::string number = otherNumber(model, value); !number.empty())
      scales.add(value.name,
                 " " + number + " and not " + compiledNumber(value));
  }
  if (scales.count() == 0)
    return {};
  return {"the scales of adapters (alpha / rank) are those of " +
          io::inQuotes(path) +
          ", and not those that the artifact was compiled with: " +
          scales.after("")};
}

} // namespace tandem::commands
