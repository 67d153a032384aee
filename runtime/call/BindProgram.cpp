//===- BindProgram.cpp - resolves the links of a program ------------------===//
//
// The manifest was validated by its reader: no index is checked again.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ProgramKinds.h"
#include "runtime/call/Program.h"

#include <algorithm>
#include <mutex>
#include <set>

namespace tandem::runtime {

using artifact::Buffer;
using artifact::Condition;
using artifact::Role;
using artifact::Slot;

namespace {

/// Returns a copy of `name` that lives as long as the process, or null if it is
/// empty: handles outlive models.
const char *interned(const std::string &name) {
  static std::mutex mutex;
  static std::set<std::string> names;
  if (name.empty())
    return nullptr;
  std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

int find(const std::vector<Slot> &slots, Role role, std::string_view name) {
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].role == role && slots[i].name == name)
      return static_cast<int>(i);
  return -1;
}

class Binder {
public:
  Binder(Program &bound, const artifact::Manifest &manifest)
      : bound(bound), manifest(manifest), program(*bound.plan) {}

  void bindArguments(const std::function<int(std::string_view)> &variableOf) {
    for (const Slot &slot : program.arguments) {
      BoundArgument &argument = bound.arguments.emplace_back();
      if (slot.role <= Role::State)
        argument.value = manifest.findValue(slot.name, program.size);
      if (slot.role == Role::Param || slot.role == Role::State)
        argument.variable = variableOf(slot.name);
      argument.isUpdated = slot.resize.has_value();
      bound.changesHandles |= slot.metadata || slot.storage || slot.resize;
    }
    for (size_t a = 0; a < program.arguments.size(); ++a)
      if (const auto &alias = program.arguments[a].alias)
        bindGroup(static_cast<int>(a), *alias);
  }

  void bindResults(const std::function<int(std::string_view)> &variableOf) {
    for (const Slot &slot : program.results) {
      BoundResult &result = bound.results.emplace_back();
      result.needs = bindCondition(slot.needs);
      result.partOf = interned(slot.partOf);
      if (slot.role == Role::Output)
        result.isDifferentiable = hasCotangent(slot.name);
      if (slot.role == Role::Grad && program.name == "grad_forward")
        result.isDifferentiable = isDifferentiated(slot.name);
      if (slot.role == Role::Saved && slot.alias)
        result.home = find(program.results, Role::Output, slot.alias->output);
      if (slot.role != Role::Update)
        continue;
      result.isDifferentiable =
          hasCotangent(std::string(artifact::updateOf) + slot.name);
      result.variable = variableOf(slot.name);
      if (auto a = artifact::updatedArgument(program, slot.name)) {
        result.argument = static_cast<int>(*a);
        BoundArgument &argument = bound.arguments[*a];
        argument.isUpdated = true;
        argument.isCopied =
            slot.inPlace && (argument.group >= 0 || hasTwin(*a));
      }
    }
    for (const BoundResult &result : bound.results)
      if (result.home >= 0)
        bound.results[result.home].isShared = true;
    for (const artifact::OutputAlias &output : program.aliases) {
      BoundAlias &alias = bound.aliases.emplace_back();
      alias.isDifferentiable = hasCotangent(output.name);
      alias.partOf = interned(output.partOf);
      if (!output.alias.output.empty())
        alias.result = find(program.results, Role::Output, output.alias.output);
      else
        alias.argument = argumentNamed(output.alias.of);
    }
  }

  void bindLaunches() {
    bool hasCases = artifact::takesGradients(program.name);
    for (const artifact::Launch &launch : program.launches) {
      bindCase(launch);
      hasCases |= !launch.needs.empty();
      bound.hasCollectives |= launch.isCollective();
      if (launch.isCopy()) {
        bound.usesHost = true;
        continue;
      }
      hasCases |= !launch.choices.empty();
      for (int64_t position : launch.writes)
        if (const Buffer &to = program.buffers[launch.buffers[position]];
            to.place == Buffer::Place::Argument &&
            program.arguments[to.index].role == Role::Saved)
          bound.arguments[to.index].isDonated = bound.hasDonated = true;
    }
    if (artifact::takesGradients(program.name))
      bindGradients();
    else
      markAlwaysRead();
    for (const BoundCase &one : bound.cases)
      bound.allDefined.push_back(one.choices.empty() ? runKernel
                                                     : one.choices[0].second);
    if (!hasCases)
      bound.cases.clear();
  }

private:
  int argumentNamed(const std::string &name) const {
    for (size_t a = 0; a < program.arguments.size(); ++a)
      if (program.arguments[a].role <= Role::State &&
          program.arguments[a].name == name)
        return static_cast<int>(a);
    return -1;
  }

  /// True if a backward has a value both as the forward and as it found it.
  bool hasTwin(size_t index) const {
    const Slot &slot = program.arguments[index];
    return std::count_if(program.arguments.begin(), program.arguments.end(),
                         [&](const Slot &other) {
                           return other.role == slot.role &&
                                  other.name == slot.name;
                         }) > 1;
  }

  void bindGroup(int index, const artifact::Alias &alias) {
    int base = argumentNamed(alias.of);
    auto isIt = [&](const BoundGroup &group) {
      const artifact::Alias &other =
          *program.arguments[group.arguments[0]].alias;
      return other.of == alias.of;
    };
    auto found = std::find_if(bound.groups.begin(), bound.groups.end(), isIt);
    if (found == bound.groups.end()) {
      found = bound.groups.insert(bound.groups.end(), BoundGroup());
      found->base = base;
      if (alias.storage)
        found->storage = *alias.storage;
      if (base >= 0)
        bound.arguments[base].group = static_cast<int>(bound.groups.size()) - 1;
    }
    found->arguments.push_back(index);
    bound.arguments[index].group =
        static_cast<int>(found - bound.groups.begin());
  }

  /// True if a backward of the model takes a cotangent of that name.
  bool hasCotangent(const std::string &name) const {
    for (const char *backward : {"backward", "grad_forward"})
      if (const artifact::Program *other = manifest.findProgram(backward))
        if (find(other->arguments, Role::Cotangent, name) >= 0)
          return true;
    return false;
  }

  /// True if grad_backward takes a cotangent of that gradient.
  bool isDifferentiated(const std::string &name) const {
    const artifact::Program *second = manifest.findProgram("grad_backward");
    return second && find(second->arguments, Role::Cotangent,
                          std::string(artifact::gradOf) + name) >= 0;
  }

  BoundCondition bindCondition(const Condition &condition) const {
    Role role =
        artifact::takesGradients(program.name) ? Role::Grad : Role::Cotangent;
    BoundCondition made;
    for (const std::vector<std::string> &group : condition) {
      std::vector<int> &arguments = made.emplace_back();
      for (const std::string &name : group)
        arguments.push_back(find(program.arguments, role, name));
    }
    return made;
  }

  void bindCase(const artifact::Launch &launch) {
    BoundCase &made = bound.cases.emplace_back();
    made.needs = bindCondition(launch.needs);
    for (const artifact::Choice &choice : launch.choices)
      made.choices.emplace_back(bindCondition(choice.when),
                                choice.copy ? static_cast<Action>(*choice.copy)
                                            : runKernel);
    if (launch.isCopy())
      made.choices.emplace_back(BoundCondition(),
                                static_cast<Action>(launch.reads[0]));
  }

  /// An update without some gradients leaves alone what comes of them: a launch
  /// needs each gradient that what it reads was computed from, whether or not
  /// the artifact says so. One that has a choice for what is undefined (a sum
  /// of norms) says itself what it needs.
  void bindGradients() {
    std::set<int> gradients;
    for (size_t a = 0; a < program.arguments.size(); ++a)
      if (program.arguments[a].role == Role::Grad)
        gradients.insert(static_cast<int>(a));
    if (gradients.empty())
      return;
    // What was written, in order, and the gradients that it was made from.
    std::vector<std::pair<int64_t, std::set<int>>> written;
    auto madeFrom = [&](int64_t number) -> std::set<int> {
      const Buffer &buffer = program.buffers[number];
      for (size_t w = written.size(); w-- > 0;)
        if (written[w].first == number ||
            meet(program.buffers[written[w].first], buffer))
          return written[w].second;
      int index = static_cast<int>(buffer.index);
      if (buffer.place == Buffer::Place::Argument && gradients.count(index))
        return {index};
      return {};
    };
    for (size_t l = 0; l < program.launches.size(); ++l) {
      const artifact::Launch &launch = program.launches[l];
      std::set<int> from;
      for (int64_t position : launch.reads) {
        if (!launch.choices.empty())
          break;
        from.merge(madeFrom(launch.buffers[position]));
      }
      for (int gradient : from)
        if (!asksFor(bound.cases[l].needs, gradient))
          bound.cases[l].needs.push_back({gradient});
      for (int64_t position : launch.writes) {
        int64_t buffer = launch.buffers[position];
        written.push_back({buffer, from});
        for (size_t r = 0; r < program.results.size(); ++r)
          if (isBufferOf(program.buffers[buffer], static_cast<int>(r)))
            bound.results[r].needs = bound.cases[l].needs;
      }
    }
  }

  /// True of a value in the arena and a part of it.
  static bool meet(const Buffer &a, const Buffer &b) {
    return a.place == Buffer::Place::Arena && a.place == b.place &&
           a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  }

  bool isBufferOf(const Buffer &buffer, int result) const {
    if (program.results[result].inPlace)
      return buffer.place == Buffer::Place::Argument &&
             buffer.index == bound.results[result].argument;
    return buffer.place == Buffer::Place::Result && buffer.index == result;
  }

  /// A cotangent that a launch reads although its needs do not ask for it must
  /// have a buffer: zeros.
  void markAlwaysRead() {
    for (size_t l = 0; l < program.launches.size(); ++l) {
      const artifact::Launch &launch = program.launches[l];
      for (int64_t position : launch.reads) {
        const Buffer &buffer = program.buffers[launch.buffers[position]];
        if (buffer.place != Buffer::Place::Argument ||
            program.arguments[buffer.index].role != Role::Cotangent)
          continue;
        auto index = static_cast<int>(buffer.index);
        if (!isGuarded(bound.cases[l], static_cast<Action>(position), index))
          bound.arguments[index].isAlwaysRead = true;
      }
    }
  }

  static bool asksFor(const BoundCondition &condition, int argument) {
    return std::any_of(condition.begin(), condition.end(),
                       [&](const std::vector<int> &group) {
                         return group.size() == 1 && group[0] == argument;
                       });
  }

  static bool isGuarded(const BoundCase &one, Action position, int argument) {
    if (asksFor(one.needs, argument))
      return true;
    bool fallsThrough = true; // to the kernel
    for (const auto &[when, action] : one.choices) {
      if ((action == runKernel || action == position) &&
          !asksFor(when, argument))
        return false;
      fallsThrough &= !when.empty();
    }
    return !one.choices.empty() && !fallsThrough;
  }

  Program &bound;
  const artifact::Manifest &manifest;
  const artifact::Program &program;
};

} // namespace

Program bindProgram(const artifact::Manifest &manifest, size_t index,
                    const std::function<int(std::string_view)> &variableOf) {
  Program bound;
  bound.plan = &manifest.programs[index];
  bound.index = index;
  Binder binder(bound, manifest);
  binder.bindArguments(variableOf);
  binder.bindResults(variableOf);
  binder.bindLaunches();
  for (size_t a = 0; a < bound.arguments.size(); ++a) {
    Role role = bound.plan->arguments[a].role;
    BoundArgument &argument = bound.arguments[a];
    // What a context gives is marked by bindContext.
    argument.isCallers =
        role == Role::Cotangent || role == Role::Grad || role == Role::Input;
    bound.updatesCallers |= argument.isCallers && argument.isUpdated;
  }
  return bound;
}

/// Finds what the gradients of `second` are gradients of.
static void bindLeaves(const Program &first, Program &second) {
  for (size_t r = 0; r < second.results.size(); ++r) {
    const Slot &slot = second.plan->results[r];
    BoundResult &result = second.results[r];
    if (slot.role != Role::Grad)
      continue;
    std::string_view name = slot.name;
    const Program *given = &first;
    Role role = Role::Input;
    if (first.source && name.starts_with(artifact::cotangentOf)) {
      name.remove_prefix(artifact::cotangentOf.size());
      role = Role::Cotangent;
    } else if (first.source) {
      given = first.source;
      result.isLeafOfBase = true;
    }
    result.leaf = find(given->plan->arguments, role, name);
  }
}

void bindContext(Program &first, Program &second) {
  second.source = &first;
  auto keptFor = [&](int argument, int variable) {
    for (size_t k = 0; k < first.kept.size(); ++k)
      if (first.kept[k].argument == argument &&
          first.kept[k].variable == variable)
        return static_cast<int>(k);
    first.kept.push_back({argument, variable, false, false, nullptr});
    if (argument >= 0)
      first.arguments[argument].kept = static_cast<int>(first.kept.size()) - 1;
    return static_cast<int>(first.kept.size()) - 1;
  };
  for (size_t a = 0; a < second.arguments.size(); ++a) {
    const Slot &slot = second.plan->arguments[a];
    BoundArgument &argument = second.arguments[a];
    if (slot.role == Role::Saved)
      argument.saved = find(first.plan->results, Role::Saved, slot.name);
    if (argument.saved >= 0)
      continue;
    bool isTaken = slot.role == Role::Input || slot.role == Role::Saved;
    if (slot.role == Role::Cotangent)
      isTaken = first.source &&
                find(first.plan->arguments, Role::Cotangent, slot.name) >= 0;
    if (!isTaken && argument.variable < 0)
      continue;
    argument.isCallers = false;
    int given = -1;
    if (argument.variable < 0)
      given = find(first.plan->arguments, slot.role, slot.name);
    argument.found = keptFor(given, argument.variable);
    BoundKept &kept = first.kept[argument.found];
    if (!slot.asFound || !kept.reader)
      kept.reader = &slot;
    kept.isRead |= !slot.asFound;
    kept.isFound |= slot.asFound;
  }
  bindLeaves(first, second);
}

void bindPrepared(const Program &first, Program &second) {
  second.prepares = &first;
  for (size_t a = 0; a < second.arguments.size(); ++a)
    if (const Slot &slot = second.plan->arguments[a];
        slot.role == Role::Prepared)
      second.arguments[a].prepared =
          find(first.plan->results, Role::Prepared, slot.name);
  if (second.plan->name == "evaluate")
    return;
  auto updates = [&](auto what) {
    return std::any_of(second.results.begin(), second.results.end(), what);
  };
  bool gives = updates([&](const BoundResult &result) {
    return result.argument >= 0 &&
           second.arguments[result.argument].prepared >= 0;
  });
  for (const BoundArgument &source : first.arguments)
    second.renews.push_back(gives && updates([&](const BoundResult &result) {
                              return result.variable >= 0 &&
                                     result.variable == source.variable;
                            }));
}

} // namespace tandem::runtime
