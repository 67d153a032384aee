//===- CheckSharing.cpp - what may share memory in a call -----------------===//
//
// Tensors that only are read may share what they like. Who is written must be
// apart from all others, but for declared aliases, which must then be the views
// that they were declared to be. And what the call will hand out: outputs that
// are views of this call's tensors, and handles that show something else
// afterwards; where the strides of this call do not allow a view, that is found
// here.
//
// The places that can meet are called entries: first all arguments, then all
// results, then all aliases of the program (MatchedCall).
//
//===----------------------------------------------------------------------===//
#include "runtime/call/Names.h"
#include "runtime/call/Steps.h"
#include "runtime/model/ModelCore.h"

#include <algorithm>

namespace tandem::runtime {

using artifact::Layout;
using artifact::Slot;

namespace {

/// True if the tensor begins at `data` and lies as `layout` does.
bool lies(const Tensor &tensor, const char *data, const Layout &layout) {
  if (tensor.elements() == 0)
    return true;
  if (tensor.data() != data)
    return false;
  for (int i = 0; i < tensor.rank(); ++i)
    if (tensor.shape()[i] > 1 && tensor.strides()[i] != layout.steps[i])
      return false;
  return true;
}

Layout layoutOf(const Tensor &tensor) {
  return Layout::of(tensor.dtype(), tensor.shape(), tensor.strides());
}

/// The view of `base` at `layout`, which began at its first element.
Result<Tensor> viewAt(const Tensor &base, const Layout &layout) {
  return base.viewAs(layout.dtype, layout.shape(), layout.strides(),
                     layout.offset * byteSize(layout.dtype));
}

class CheckSharing {
public:
  CheckSharing(const Invocation &call, const MatchedCall &matched,
               SharedViews &shared, Problems &problems)
      : core(call.core), program(call.program), plan(call.plan),
        matched(matched), shared(shared), problems(problems) {}

  void variables();
  void groups();
  void findViews();
  void findHandles();
  void overlaps();

private:
  void addRange(const Tensor &tensor, int entry);
  void pair(int first, int second);
  void problem(const std::string &text) { problems.add(text); }
  std::string name(size_t argument) const {
    return argumentName(plan, argument);
  }
  std::string entry(int entry) const { return entryName(plan, entry); }
  std::string writer(size_t argument) const {
    return writerOf(plan, plan.arguments[argument].name);
  }

  const ModelCore &core;
  const Program &program;
  const artifact::Program &plan;
  const MatchedCall &matched;
  SharedViews &shared;
  Problems &problems;
};

/// The store's tensors: an argument may be one that is only read.
void CheckSharing::variables() {
  auto overlapping = [&](const Tensor &tensor, auto counts) {
    return core.findOverlapping(addressRange(tensor), [&](int v) {
      return counts(v) && shareMemory(core.variables[v].tensor, tensor);
    });
  };
  auto isUpdated = [&](int v) {
    return std::any_of(
        program.results.begin(), program.results.end(),
        [&](const BoundResult &result) { return result.variable == v; });
  };
  auto any = [](int) { return true; };
  for (size_t a = 0; a < plan.arguments.size(); ++a) {
    const Tensor *tensor = matched.tensors[a];
    if (!tensor || program.arguments[a].variable >= 0)
      continue;
    if (!program.arguments[a].isUpdated) {
      if (int v = overlapping(*tensor, isUpdated); v >= 0)
        problem(name(a) + " shares memory with '" +
                core.variables[v].value->name + "', which " +
                writerOf(plan, core.variables[v].value->name) + " updates");
      continue;
    }
    if (overlapsItself(*tensor))
      problem(name(a) + ": expected elements that share no memory, since " +
              writer(a) + " updates it, but got strides " +
              toString(tensor->strides()));
    if (int v = overlapping(*tensor, any); v >= 0)
      problem(name(a) + ", which " + writer(a) +
              " updates, shares memory with '" + core.variables[v].value->name +
              "'");
  }
  size_t begin = plan.arguments.size();
  size_t end = begin + plan.results.size() + plan.aliases.size();
  for (size_t e = begin; e < end; ++e) {
    const Tensor *tensor = matched.entry(static_cast<int>(e));
    if (!tensor || !tensor->defined())
      continue;
    if (int v = overlapping(*tensor, any); v >= 0)
      problem(entry(static_cast<int>(e)) + " shares memory with '" +
              core.variables[v].value->name + "'");
  }
}

/// Declared aliases are what they were declared to be.
void CheckSharing::groups() {
  for (const BoundGroup &group : program.groups) {
    const Tensor *base =
        group.base >= 0 ? matched.tensors[group.base] : nullptr;
    const char *begin = nullptr; ///< of a storage that is no argument
    for (int a : group.arguments) {
      const artifact::Alias &alias = *plan.arguments[a].alias;
      const Tensor *tensor = matched.tensors[a];
      if (!tensor || (!base && group.base >= 0) ||
          (group.base < 0 && !alias.storage))
        continue;
      Layout layout =
          base ? layoutOf(*base)
               : Layout::of(group.storage.dtype, group.storage.shape);
      auto whole = [&] {
        return base ? name(group.base) : "the storage '" + alias.of + "'";
      };
      if (Status status = applyViews(alias.views, layout); !status) {
        problem(name(a) + ", declared a view of " + whole() + ": " +
                status.message());
        continue;
      }
      int64_t offset = layout.offset * byteSize(layout.dtype);
      const char *data = static_cast<const char *>(tensor->data());
      bool isFirst = !base && !begin;
      if (isFirst && tensor->elements())
        begin = data - offset;
      const char *expected =
          (base ? static_cast<const char *>(base->data()) : begin) + offset;
      if (lies(*tensor, isFirst ? data : expected, layout))
        continue;
      std::string other;
      if (!base && group.arguments[0] != a)
        other = " that " + name(group.arguments[0]) + " shows";
      problem(name(a) + ": expected the declared view of " + whole() + other +
              ", with strides " + toString(layout.strides()) + " at byte " +
              std::to_string(offset) + " of it, but got strides " +
              toString(tensor->strides()) +
              (data == expected ? "" : " elsewhere"));
    }
  }
}

void CheckSharing::addRange(const Tensor &tensor, int entry) {
  AddressRange range = addressRange(tensor);
  if (range.low != range.high)
    shared.ranges.emplace_back(range, entry);
}

void CheckSharing::overlaps() {
  shared.ranges.clear();
  auto arguments = static_cast<int>(plan.arguments.size());
  for (int a = 0; program.updatesCallers && a < arguments; ++a)
    if (const Tensor *tensor = matched.tensors[a];
        tensor && program.arguments[a].variable < 0)
      addRange(*tensor, a);
  int end =
      arguments + static_cast<int>(plan.results.size() + plan.aliases.size());
  for (int e = arguments; e < end; ++e) {
    const Tensor *tensor = matched.entry(e);
    int alias = e - arguments - static_cast<int>(plan.results.size());
    if (alias >= 0 && shared.isShown[alias])
      continue; // nothing is written there
    if (tensor && tensor->defined()) {
      addRange(*tensor, e);
    } else if (tensor) {
      // One tensor cannot receive two results: that shows as its own address.
      auto self = reinterpret_cast<uintptr_t>(tensor);
      shared.ranges.emplace_back(AddressRange{self, self + sizeof(Tensor)}, e);
    }
  }
  std::sort(shared.ranges.begin(), shared.ranges.end(),
            [](const auto &a, const auto &b) {
              return std::pair(a.first.low, a.second) <
                     std::pair(b.first.low, b.second);
            });
  for (size_t i = 0; i < shared.ranges.size(); ++i)
    for (size_t j = i + 1;
         j < shared.ranges.size() &&
         shared.ranges[j].first.low < shared.ranges[i].first.high;
         ++j)
      pair(shared.ranges[i].second, shared.ranges[j].second);
}

void CheckSharing::pair(int first, int second) {
  auto arguments = static_cast<int>(plan.arguments.size());
  auto isUpdated = [&](int entry) {
    return entry < arguments && program.arguments[entry].isUpdated;
  };
  bool firstIsArgument = first < arguments,
       secondIsArgument = second < arguments;
  if (firstIsArgument && secondIsArgument) {
    const Slot &one = plan.arguments[first];
    const Slot &other = plan.arguments[second];
    bool isTwin = one.role == other.role && one.name == other.name;
    if ((!isUpdated(first) && !isUpdated(second)) || isTwin)
      return;
    int group = program.arguments[first].group;
    if (group >= 0 && group == program.arguments[second].group)
      return;
  } else if (firstIsArgument != secondIsArgument &&
             !isUpdated(firstIsArgument ? first : second)) {
    return;
  }
  const Tensor *a = matched.entry(first), *b = matched.entry(second);
  if (a->defined() && b->defined() && !shareMemory(*a, *b))
    return;
  if (firstIsArgument && !secondIsArgument)
    std::swap(first, second);
  if (isUpdated(second) && !isUpdated(first) && second < arguments &&
      first < arguments)
    std::swap(first, second);
  auto updated = [&](int entry) {
    return ", which " + writer(entry) + " updates";
  };
  problem(entry(first) + (isUpdated(first) ? updated(first) + "," : "") +
          " shares memory with " + entry(second) +
          (isUpdated(second) && !isUpdated(first) ? updated(second) : ""));
}

/// Outputs that are views of arguments, over the strides of this call. Views of
/// outputs that get a new tensor are made when that is there: over its strides
/// every view is.
void CheckSharing::findViews() {
  for (size_t i = 0; i < plan.aliases.size(); ++i) {
    shared.isShown[i] = false;
    Tensor *wanted = matched.aliases[i];
    const BoundAlias &alias = program.aliases[i];
    const Tensor *base = alias.argument >= 0 ? matched.tensors[alias.argument]
                                             : matched.wanted[alias.result];
    if (!wanted || !base || !base->defined())
      continue;
    int entry =
        static_cast<int>(plan.arguments.size() + plan.results.size() + i);
    auto called = [&] {
      return entryName(plan, entry) + ", a view of " +
             (alias.argument >= 0
                  ? name(alias.argument)
                  : slotName(plan.results[alias.result], alias.result));
    };
    Layout layout = layoutOf(*base);
    if (Status status = applyViews(plan.aliases[i].alias.views, layout);
        !status) {
      problem(called() + ": " + status.message());
      continue;
    }
    Result<Tensor> view = viewAt(*base, layout);
    if (!view) {
      problem(called() + ": " + view.status().message());
      continue;
    }
    // A destination may be the view itself; else the copy must not run over
    // what it reads.
    if (wanted->defined() && wanted->isBacked()) {
      shared.isShown[i] =
          wanted->storage() == view->storage() &&
          lies(*wanted, static_cast<const char *>(view->data()), layout);
      if (!shared.isShown[i] && shareMemory(*wanted, *view))
        problem(called() + ", shares memory with it in other places");
    }
    shared.views[i] = std::move(*view);
  }
}

/// What the handles of inputs show afterwards.
void CheckSharing::findHandles() {
  if (!program.changesHandles)
    return;
  for (size_t a = 0; a < plan.arguments.size(); ++a) {
    const Slot &slot = plan.arguments[a];
    if (!slot.metadata && !slot.storage)
      continue;
    const artifact::Alias &alias =
        slot.metadata ? *slot.metadata : *slot.storage;
    size_t of = 0;
    while (plan.arguments[of].role > artifact::Role::State ||
           plan.arguments[of].name != alias.of)
      ++of;
    const Tensor *base = matched.tensors[of];
    Tensor *handle = matched.handles[a];
    if (!base)
      continue;
    if (!handle) {
      problem(name(a) + ": expected a tensor that may be changed, since "
                        "the program changes what it shows");
      continue;
    }
    for (size_t other = 0; other < plan.arguments.size(); ++other)
      if (other != a && matched.given[other] == matched.given[a])
        problem(name(a) +
                ", which shows something else afterwards, is "
                "the same tensor as " +
                name(other));
    Layout layout = layoutOf(*base);
    if (Status status = applyViews(alias.views, layout); !status) {
      problem(name(a) + ", which shows a view of " + name(of) +
              " afterwards: " + status.message());
      continue;
    }
    Result<Tensor> view = viewAt(*base, layout);
    if (!view) {
      problem(name(a) + ": " + view.status().message());
      continue;
    }
    shared.newHandles[a] = std::move(*view);
    shared.newHandles[a].takeMarks(*handle);
  }
}

} // namespace

void checkSharing(const Invocation &call, const MatchedCall &matched,
                  SharedViews &shared, Problems &problems) {
  CheckSharing step(call, matched, shared, problems);
  step.variables();
  // What a context gives was checked by its forward.
  if (!call.takes)
    step.groups();
  step.findViews();
  step.findHandles();
  step.overlaps();
}

} // namespace tandem::runtime
