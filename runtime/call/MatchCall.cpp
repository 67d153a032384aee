//===- MatchCall.cpp - who gives what, and who wants what -----------------===//
//
// The first step of a call: names become indices. Callers mostly keep the
// program's order, so that each search begins after the last match.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ProgramKinds.h"
#include "runtime/call/Names.h"
#include "runtime/call/Steps.h"
#include "runtime/model/ModelCore.h"

#include <algorithm>

namespace tandem::runtime {

using artifact::Role;
using artifact::Slot;

namespace {

class Match {
public:
  Match(const Invocation &call, MatchedCall &matched, Problems &problems)
      : call(call), program(call.program), plan(call.plan), matched(matched),
        problems(problems) {}

  /// `needed`: for each argument, whether it may not be missing; null: none
  /// may.
  void arguments(std::span<const Argument> inputs,
                 const std::vector<char> *needed);
  void destinations(std::span<const Destination> outputs);
  void findTensors();
  void findDefined();

private:
  bool matchUndefined(const Argument &input);
  bool matchAbsent(const Destination &output);

  const Invocation &call;
  const Program &program;
  const artifact::Program &plan;
  MatchedCall &matched;
  Problems &problems;
};

void Match::arguments(std::span<const Argument> inputs,
                      const std::vector<char> *needed) {
  size_t count = plan.arguments.size(), guess = 0;
  for (const Argument &input : inputs) {
    size_t found = count;
    for (size_t i = 0; i < count && found == count; ++i) {
      size_t a = guess + i < count ? guess + i : guess + i - count;
      if (plan.arguments[a].name == input.name &&
          program.arguments[a].isCallers)
        found = a;
    }
    if (found == count) {
      if (!matchUndefined(input))
        problems.add("unknown argument '" + std::string(input.name) + "'");
      continue;
    }
    if (matched.given[found])
      problems.add(argumentName(plan, found) + " is given twice");
    static const Tensor none;
    matched.given[found] = input.tensor ? input.tensor : &none;
    matched.handles[found] = input.handle;
    guess = found + 1;
  }
  for (size_t a = 0; a < count; ++a) {
    const Slot &slot = plan.arguments[a];
    if (program.arguments[a].isCallers && !matched.given[a] &&
        slot.role != Role::Cotangent && !(needed && !(*needed)[a]))
      problems.add("missing " + slotName(slot, a) + ": expected " +
                   describe(slot.dtype, slot.shape));
  }
}

/// A cotangent that the program has no argument for may be given as undefined;
/// so may the gradient of a parameter that no output depends on.
bool Match::matchUndefined(const Argument &input) {
  const artifact::Manifest &manifest = call.core.manifest();
  bool isUndefined = !input.tensor || !input.tensor->defined();
  if (artifact::takesGradients(plan.name)) {
    const artifact::Value *value = manifest.findValue(input.name);
    return isUndefined && value && value->requiresGrad;
  }
  if (!call.takes || program.source->source || !manifest.findOutput(input.name))
    return false;
  if (!isUndefined)
    problems.add("output '" + std::string(input.name) +
                 "' is not differentiable: expected no cotangent of it but "
                 "got " +
                 describe(input.tensor->dtype(), input.tensor->shape()));
  return true;
}

void Match::destinations(std::span<const Destination> outputs) {
  size_t count = plan.results.size(), guess = 0;
  for (const Destination &output : outputs) {
    size_t found = count;
    for (size_t i = 0; i < count && found == count; ++i) {
      size_t r = guess + i < count ? guess + i : guess + i - count;
      const Slot &slot = plan.results[r];
      if (slot.name == output.name &&
          (slot.role == Role::Output || slot.role == Role::Grad))
        found = r;
    }
    // Aliases come after the results.
    Tensor **place = found < count ? &matched.wanted[found] : nullptr;
    for (size_t i = 0; i < plan.aliases.size() && !place; ++i)
      if (plan.aliases[i].name == output.name) {
        place = &matched.aliases[i];
        found = count + i;
      }
    if (!place) {
      if (!matchAbsent(output))
        problems.add("unknown result '" + std::string(output.name) + "'");
      continue;
    }
    auto called = [&] {
      return entryName(plan, static_cast<int>(plan.arguments.size() + found));
    };
    if (!output.tensor)
      problems.add(called() + ": expected a tensor to write to but got null");
    if (*place)
      problems.add(called() + " is asked for twice");
    *place = output.tensor;
    if (found < count)
      guess = found + 1;
  }
}

/// A gradient that a backward never gives, of a value that requires grad, is
/// always undefined.
bool Match::matchAbsent(const Destination &output) {
  const artifact::Value *value = call.core.manifest().findValue(output.name);
  if (!call.takes || !value || !value->requiresGrad)
    return false;
  if (output.tensor)
    matched.absent.emplace_back(output.tensor, output.name);
  else
    problems.add("grad of '" + value->name +
                 "': expected a tensor to write to but got null");
  return true;
}

/// What the context and the store give beside the caller. What a hook packed
/// comes later (unpack), and saved values have their place in the context.
void Match::findTensors() {
  for (size_t a = 0; a < plan.arguments.size(); ++a) {
    const BoundArgument &argument = program.arguments[a];
    if (int v = argument.variable; v >= 0) {
      matched.tensors[a] = &call.core.variables[v].tensor;
      continue;
    }
    bool asFound = plan.arguments[a].asFound;
    if (call.takes && argument.found >= 0) {
      const KeptValue &kept = call.takes->kept[argument.found];
      if (!kept.isPacked || asFound)
        matched.given[a] = asFound ? &kept.given : &kept.value;
    }
    const Tensor *given = matched.given[a];
    matched.tensors[a] = given && given->defined() ? given : nullptr;
  }
}

void Match::findDefined() {
  bool hasAny = false, hasCotangents = false;
  for (size_t a = 0; a < plan.arguments.size(); ++a) {
    Role role = plan.arguments[a].role;
    bool isOptional =
        program.arguments[a].isCallers &&
        (role == Role::Cotangent || (role == Role::Grad && matched.given[a]));
    matched.isDefined[a] = !isOptional || matched.tensors[a];
    if (!isOptional)
      continue;
    hasCotangents = true;
    hasAny |= matched.isDefined[a] != 0;
    matched.allDefined &= matched.isDefined[a] != 0;
  }
  matched.isIdle = (call.takes || artifact::takesGradients(plan.name)) &&
                   hasCotangents && !hasAny;
}

/// Finds what the wanted outputs need, unless the last call wanted the same.
void findSlice(const artifact::Program &plan, const MatchedCall &matched,
               WantedSlice &to) {
  auto isWanted = [](const Tensor *tensor) { return char(tensor != nullptr); };
  auto note = [&](const std::vector<Tensor *> &wanted,
                  std::vector<char> &before) {
    bool isSame = to.isFound && before.size() == wanted.size();
    before.resize(wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      isSame &= before[i] == isWanted(wanted[i]);
      before[i] = isWanted(wanted[i]);
    }
    return isSame;
  };
  bool hasResults = note(matched.wanted, to.results);
  bool hasAliases = note(matched.aliases, to.aliases);
  if (hasResults && hasAliases)
    return;
  to.isFound = false;
  to.slice = artifact::sliceOf(plan, to.results, to.aliases);
  to.isFound = true;
}

} // namespace

void match(const Invocation &call, std::span<const Argument> inputs,
           std::span<const Destination> outputs, WantedSlice &wanted,
           MatchedCall &matched, Problems &problems) {
  matched.clear();
  Match step(call, matched, problems);
  if (call.mode.onlyWanted) {
    step.destinations(outputs);
    findSlice(call.plan, matched, wanted);
    step.arguments(inputs, &wanted.slice.needs);
  } else {
    step.arguments(inputs, nullptr);
    step.destinations(outputs);
  }
  step.findTensors();
  step.findDefined();
}

} // namespace tandem::runtime
