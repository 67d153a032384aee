//===- ManifestContexts.cpp - rules between forwards and backwards --------===//
//
// Part of `validate`: what a backward takes from its forward, and what runs
// only where cotangents are defined, or the gradients of an update.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ManifestRules.h"
#include "runtime/artifact/ProgramKinds.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace tandem::artifact {

namespace {

bool updates(const Program &program, const Slot &slot) {
  return std::any_of(
      program.results.begin(), program.results.end(), [&](const Slot &other) {
        return other.role == Role::Update && other.name == slot.name;
      });
}

/// The slot of that role and name, or null.
const Slot *find(const std::vector<Slot> &slots, Role role,
                 const std::string &name) {
  for (const Slot &slot : slots)
    if (slot.role == role && slot.name == name)
      return &slot;
  return nullptr;
}

/// A program and the one that takes what it saves.
class ContextRules {
public:
  ContextRules(const Manifest &manifest, const char *first, const char *second,
               ManifestProblems &problems)
      : manifest(manifest), firstName(first),
        first(manifest.findProgram(first)),
        second(manifest.findProgram(second)), problems(problems) {}

  void run() {
    if (!second)
      return;
    if (!first) {
      problems.add("/programs", "expected '" + firstName + "' beside '" +
                                    second->name + "'");
      return;
    }
    std::string list =
        child("/programs", second - manifest.programs.data()) + "/arguments";
    for (size_t i = 0; i < second->arguments.size(); ++i)
      checkArgument(second->arguments[i], child(list, static_cast<int64_t>(i)));
    if (firstName != "grad_forward")
      return;
    for (const Slot &slot : first->results)
      if (slot.role == Role::Saved &&
          find(first->arguments, Role::Saved, slot.name))
        problems.add(list, "expected 'grad_forward' not to save '" + slot.name +
                               "' that it takes under that name");
  }

private:
  void checkArgument(const Slot &slot, const std::string &at) {
    const Slot *found = nullptr;
    bool isTaken = slot.role == Role::Saved || slot.role == Role::Input;
    if (slot.role == Role::Saved) {
      found = find(first->results, Role::Saved, slot.name);
      // A second derivative may read what the first one was given.
      if (!found && firstName == "grad_forward")
        found = find(first->arguments, Role::Saved, slot.name);
    } else if (slot.role == Role::Input) {
      found = find(first->arguments, Role::Input, slot.name);
    } else if (slot.role == Role::Cotangent && firstName == "grad_forward" &&
               manifest.findOutput(slot.name)) {
      isTaken = true;
      found = find(first->arguments, Role::Cotangent, slot.name);
    }
    if (isTaken && !found)
      problems.add(at, "expected '" + firstName + "' to have the " +
                           std::string(spelling(slot.role)) + " '" + slot.name +
                           "'");
    else if (found &&
             (found->dtype != slot.dtype || found->shape != slot.shape))
      problems.add(at, "expected '" + slot.name + "' to have the type " +
                           typeText(found->dtype, found->shape) + " of '" +
                           firstName + "' but got " +
                           typeText(slot.dtype, slot.shape));
    if (found && found->onHost != slot.onHost)
      problems.add(at,
                   "expected '" + slot.name + "' to be " +
                       (found->onHost ? "in the host's" : "in the device's") +
                       " memory as in '" + firstName + "'");
    if (slot.role > Role::State || slot.asFound)
      return;
    // The value at the first program's call is still there only where nothing
    // changed it.
    const Slot *given = find(first->arguments, slot.role, slot.name);
    if (updates(*first, slot) || (given && (given->freed || given->resize)))
      problems.add(at, "expected '" + slot.name + "' to be saved, since '" +
                           firstName + "' updates it");
  }

  const Manifest &manifest;
  std::string firstName;
  const Program *first, *second;
  ManifestProblems &problems;
};

class ConditionRules {
public:
  ConditionRules(const Program &program, const std::string &at,
                 ManifestProblems &problems)
      : program(program), at(at), problems(problems) {}

  void run() {
    for (size_t i = 0; i < program.results.size(); ++i)
      checkNames(program.results[i].needs,
                 child(at + "/results", static_cast<int64_t>(i)) + "/needs");
    for (size_t i = 0; i < program.launches.size(); ++i)
      checkLaunch(program.launches[i],
                  child(at + "/launches", static_cast<int64_t>(i)));
    checkWritten();
  }

private:
  void checkNames(const Condition &condition, const std::string &at) {
    for (size_t i = 0; i < condition.size(); ++i) {
      std::string group = child(at, static_cast<int64_t>(i));
      // An update waits for gradients as a backward does for cotangents.
      Role role = takesGradients(program.name) ? Role::Grad : Role::Cotangent;
      std::string what = role == Role::Grad ? "gradient" : "cotangent";
      if (condition[i].empty())
        problems.add(group, "expected at least one " + what);
      for (const std::string &name : condition[i])
        if (!find(program.arguments, role, name))
          problems.add(group, "there is no " + what + " of '" + name +
                                  "' among the arguments");
    }
  }

  void checkLaunch(const Launch &launch, const std::string &at) {
    checkNames(launch.needs, at + "/needs");
    for (size_t i = 0; i < launch.choices.size(); ++i) {
      const Choice &choice = launch.choices[i];
      std::string item = child(at + "/choices", static_cast<int64_t>(i));
      checkNames(choice.when, item + "/when");
      if (!choice.copy)
        continue;
      if (launch.writes.size() != 1) {
        problems.add(item, "expected one written buffer but got " +
                               std::to_string(launch.writes.size()));
        continue;
      }
      if (*choice.copy == -1)
        continue;
      if (std::find(launch.reads.begin(), launch.reads.end(), *choice.copy) ==
          launch.reads.end()) {
        problems.add(item + "/copy",
                     "expected -1 or a position that is read but got " +
                         std::to_string(*choice.copy));
        continue;
      }
      std::optional<int64_t> from = bytes(launch, *choice.copy),
                             to = bytes(launch, launch.writes[0]);
      if (from && to && *from != *to)
        problems.add(item + "/copy",
                     "expected a buffer of " + std::to_string(*to) +
                         " bytes but got " + std::to_string(*from));
    }
  }

  /// The buffer that is position `position` of a launch, if there is one.
  const Buffer *buffer(const Launch &launch, int64_t position) const {
    if (position < 0 || position >= static_cast<int64_t>(launch.buffers.size()))
      return nullptr;
    int64_t index = launch.buffers[position];
    if (index < 0 || index >= static_cast<int64_t>(program.buffers.size()))
      return nullptr;
    return &program.buffers[index];
  }

  std::optional<int64_t> bytes(const Launch &launch, int64_t position) const {
    const Buffer *found = buffer(launch, position);
    if (!found)
      return std::nullopt;
    if (found->place != Buffer::Place::Argument &&
        found->place != Buffer::Place::Result)
      return found->bytes;
    const std::vector<Slot> &slots = found->place == Buffer::Place::Argument
                                         ? program.arguments
                                         : program.results;
    if (found->index < 0 || found->index >= static_cast<int64_t>(slots.size()))
      return std::nullopt;
    const Slot &slot = slots[found->index];
    return tensorBytes(slot.dtype, slot.shape);
  }

  /// True if `weaker` holds wherever `stronger` does: each of its groups
  /// contains one of the stronger's.
  static bool follows(const Condition &weaker, const Condition &stronger) {
    auto contains = [](const std::vector<std::string> &large,
                       const std::vector<std::string> &small) {
      return std::all_of(small.begin(), small.end(), [&](const auto &name) {
        return std::find(large.begin(), large.end(), name) != large.end();
      });
    };
    return std::all_of(weaker.begin(), weaker.end(), [&](const auto &large) {
      return std::any_of(
          stronger.begin(), stronger.end(),
          [&](const auto &small) { return contains(large, small); });
    });
  }

  /// That a result which is written is written whenever it is there: one pass
  /// over the launches for all results.
  void checkWritten() {
    size_t count = program.results.size();
    std::vector<bool> isWritten(count), isSure(count);
    std::unordered_map<int64_t, size_t> ofArgument;
    for (size_t r = 0; r < count; ++r)
      if (const Slot &result = program.results[r]; result.inPlace)
        if (auto argument = updatedArgument(program, result.name))
          ofArgument.emplace(static_cast<int64_t>(*argument), r);
    for (const Launch &launch : program.launches)
      for (int64_t position : launch.writes) {
        const Buffer *written = buffer(launch, position);
        std::optional<size_t> r;
        if (written && written->place == Buffer::Place::Result) {
          if (written->index >= 0 &&
              written->index < static_cast<int64_t>(count) &&
              !program.results[written->index].inPlace)
            r = static_cast<size_t>(written->index);
        } else if (written && written->place == Buffer::Place::Argument) {
          if (auto found = ofArgument.find(written->index);
              found != ofArgument.end())
            r = found->second;
        }
        if (!r)
          continue;
        isWritten[*r] = true;
        isSure[*r] =
            isSure[*r] || follows(launch.needs, program.results[*r].needs);
      }
    for (size_t r = 0; r < count; ++r)
      if (isWritten[r] && !isSure[r])
        problems.add(child(at + "/results", static_cast<int64_t>(r)),
                     "expected a launch that writes '" +
                         program.results[r].name + "' whenever its needs hold");
  }

  const Program &program;
  const std::string &at;
  ManifestProblems &problems;
};

} // namespace

bool isBackward(const Program &program) {
  return program.name == "backward" || program.name == "grad_forward" ||
         program.name == "grad_backward";
}

void checkConditions(const Program &program, const std::string &at,
                     ManifestProblems &problems) {
  ConditionRules(program, at, problems).run();
}

void checkContexts(const Manifest &manifest, ManifestProblems &problems) {
  ContextRules(manifest, "forward", "backward", problems).run();
  ContextRules(manifest, "forward", "grad_forward", problems).run();
  ContextRules(manifest, "grad_forward", "grad_backward", problems).run();
}

void checkPrepared(const Manifest &manifest, ManifestProblems &problems) {
  const Program *first = manifest.findProgram("prepare");
  auto at = [&](const Program &program, const char *list, size_t index) {
    return child(child("/programs", &program - manifest.programs.data()) + list,
                 static_cast<int64_t>(index));
  };
  std::set<std::string_view> taken;
  for (const Program &second : manifest.programs)
    for (size_t i = 0; i < second.arguments.size(); ++i) {
      const Slot &slot = second.arguments[i];
      if (slot.role != Role::Prepared)
        continue;
      taken.insert(slot.name);
      if (updates(second, slot) && manifest.findValue(slot.name))
        problems.add(at(second, "/arguments", i),
                     "'" + slot.name +
                         "' is the name of a value, too, and is updated");
      const Slot *found =
          first ? find(first->results, Role::Prepared, slot.name) : nullptr;
      if (!found)
        problems.add(at(second, "/arguments", i),
                     "expected 'prepare' to have the prepared '" + slot.name +
                         "'");
      else if (found->dtype != slot.dtype || found->shape != slot.shape)
        problems.add(at(second, "/arguments", i),
                     "expected '" + slot.name + "' to have the type " +
                         typeText(found->dtype, found->shape) +
                         " of 'prepare' but got " +
                         typeText(slot.dtype, slot.shape));
    }
  for (size_t i = 0; first && i < first->results.size(); ++i)
    if (const Slot &slot = first->results[i]; !taken.contains(slot.name))
      problems.add(at(*first, "/results", i),
                   "expected a program to take the prepared '" + slot.name +
                       "'");
}

} // namespace tandem::artifact
