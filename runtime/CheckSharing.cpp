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
// results, then all aliases of the program.
//
//===----------------------------------------------------------------------===//
#include "runtime/Call.h"

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

} // namespace

std::string Call::entryName(int entry) const {
  auto index = static_cast<size_t>(entry);
  size_t arguments = program.arguments.size();
  if (index < arguments)
    return argumentName(index);
  index -= arguments;
  if (index < program.results.size())
    return name(program.results[index], index);
  return "output '" + program.aliases[index - program.results.size()].name +
         "' (index " + std::to_string(index) + ")";
}

Tensor *Call::entryTensor(int entry) const {
  auto index = static_cast<size_t>(entry);
  size_t arguments = program.arguments.size();
  if (index < arguments)
    return const_cast<Tensor *>(tensorOf(index));
  index -= arguments;
  return index < program.results.size()
             ? bound.wanted[index]
             : bound.wantedAliases[index - program.results.size()];
}

/// The op that writes the value of that name, and where it stands; or "the
/// program", if the artifact does not say.
std::string Call::writerOf(const std::string &name) const {
  for (const Slot &slot : program.results)
    if (slot.role == artifact::Role::Update && slot.name == name &&
        !slot.where.empty())
      return slot.where;
  return "the program";
}

/// The store's tensors: an argument may be one that is only read.
void Call::checkVariables() {
  auto overlapping = [&](const Tensor &tensor, auto counts) {
    return core.findOverlapping(addressRange(tensor), [&](int v) {
      return counts(v) && shareMemory(core.variables[v].tensor, tensor);
    });
  };
  auto isUpdated = [&](int v) {
    return std::any_of(
        bound.results.begin(), bound.results.end(),
        [&](const BoundResult &result) { return result.variable == v; });
  };
  auto any = [](int) { return true; };
  for (size_t a = 0; a < program.arguments.size(); ++a) {
    const Tensor *tensor = tensorOf(a);
    if (!tensor || bound.arguments[a].variable >= 0)
      continue;
    if (!bound.arguments[a].isUpdated) {
      if (int v = overlapping(*tensor, isUpdated); v >= 0)
        problem(argumentName(a) + " shares memory with '" +
                core.variables[v].value->name + "', which " +
                writerOf(core.variables[v].value->name) + " updates");
      continue;
    }
    if (overlapsItself(*tensor))
      problem(argumentName(a) +
              ": expected elements that share no memory, since " +
              writerOf(program.arguments[a].name) +
              " updates it, but got strides " + toString(tensor->strides()));
    if (int v = overlapping(*tensor, any); v >= 0)
      problem(argumentName(a) + ", which " +
              writerOf(program.arguments[a].name) +
              " updates, shares memory with '" + core.variables[v].value->name +
              "'");
  }
  size_t begin = program.arguments.size();
  size_t end = begin + program.results.size() + program.aliases.size();
  for (size_t e = begin; e < end; ++e) {
    const Tensor *tensor = entryTensor(static_cast<int>(e));
    if (!tensor || !tensor->defined())
      continue;
    if (int v = overlapping(*tensor, any); v >= 0)
      problem(entryName(static_cast<int>(e)) + " shares memory with '" +
              core.variables[v].value->name + "'");
  }
}

/// Declared aliases are what they were declared to be. What a context gives was
/// checked by its forward.
void Call::checkGroups() {
  if (takes)
    return;
  for (const BoundGroup &group : bound.groups) {
    const Tensor *base = group.base >= 0 ? tensorOf(group.base) : nullptr;
    const char *begin = nullptr; ///< of a storage that is no argument
    for (int a : group.arguments) {
      const artifact::Alias &alias = *program.arguments[a].alias;
      const Tensor *tensor = tensorOf(a);
      if (!tensor || (!base && group.base >= 0) ||
          (group.base < 0 && !alias.storage))
        continue;
      Layout layout =
          base ? layoutOf(*base)
               : Layout::of(group.storage.dtype, group.storage.shape);
      auto whole = [&] {
        return base ? argumentName(group.base)
                    : "the storage '" + alias.of + "'";
      };
      if (Status status = applyViews(alias.views, layout); !status) {
        problem(argumentName(a) + ", declared a view of " + whole() + ": " +
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
        other = " that " + argumentName(group.arguments[0]) + " shows";
      problem(argumentName(a) + ": expected the declared view of " + whole() +
              other + ", with strides " + toString(layout.strides()) +
              " at byte " + std::to_string(offset) +
              " of it, but got strides " + toString(tensor->strides()) +
              (data == expected ? "" : " elsewhere"));
    }
  }
}

void Call::addRange(const Tensor &tensor, int entry) {
  AddressRange range = addressRange(tensor);
  if (range.low != range.high)
    bound.ranges.emplace_back(range, entry);
}

void Call::checkOverlaps() {
  bound.ranges.clear();
  auto arguments = static_cast<int>(program.arguments.size());
  for (int a = 0; bound.updatesCallers && a < arguments; ++a)
    if (const Tensor *tensor = tensorOf(a);
        tensor && bound.arguments[a].variable < 0)
      addRange(*tensor, a);
  int end = arguments +
            static_cast<int>(program.results.size() + program.aliases.size());
  for (int e = arguments; e < end; ++e) {
    const Tensor *tensor = entryTensor(e);
    int alias = e - arguments - static_cast<int>(program.results.size());
    if (alias >= 0 && bound.isShown[alias])
      continue; // nothing is written there
    if (tensor && tensor->defined()) {
      addRange(*tensor, e);
    } else if (tensor) {
      // One tensor cannot receive two results: that shows as its own address.
      auto self = reinterpret_cast<uintptr_t>(tensor);
      bound.ranges.emplace_back(AddressRange{self, self + sizeof(Tensor)}, e);
    }
  }
  std::sort(bound.ranges.begin(), bound.ranges.end(),
            [](const auto &a, const auto &b) {
              return std::pair(a.first.low, a.second) <
                     std::pair(b.first.low, b.second);
            });
  for (size_t i = 0; i < bound.ranges.size(); ++i)
    for (size_t j = i + 1;
         j < bound.ranges.size() &&
         bound.ranges[j].first.low < bound.ranges[i].first.high;
         ++j)
      checkPair(bound.ranges[i].second, bound.ranges[j].second);
}

void Call::checkPair(int first, int second) {
  auto arguments = static_cast<int>(program.arguments.size());
  auto isUpdated = [&](int entry) {
    return entry < arguments && bound.arguments[entry].isUpdated;
  };
  bool firstIsArgument = first < arguments,
       secondIsArgument = second < arguments;
  if (firstIsArgument && secondIsArgument) {
    const Slot &one = program.arguments[first];
    const Slot &other = program.arguments[second];
    bool isTwin = one.role == other.role && one.name == other.name;
    if ((!isUpdated(first) && !isUpdated(second)) || isTwin)
      return;
    int group = bound.arguments[first].group;
    if (group >= 0 && group == bound.arguments[second].group)
      return;
  } else if (firstIsArgument != secondIsArgument &&
             !isUpdated(firstIsArgument ? first : second)) {
    return;
  }
  const Tensor *a = entryTensor(first), *b = entryTensor(second);
  if (a->defined() && b->defined() && !shareMemory(*a, *b))
    return;
  if (firstIsArgument && !secondIsArgument)
    std::swap(first, second);
  if (isUpdated(second) && !isUpdated(first) && second < arguments &&
      first < arguments)
    std::swap(first, second);
  auto updated = [&](int entry) {
    return ", which " + writerOf(program.arguments[entry].name) + " updates";
  };
  problem(entryName(first) + (isUpdated(first) ? updated(first) + "," : "") +
          " shares memory with " + entryName(second) +
          (isUpdated(second) && !isUpdated(first) ? updated(second) : ""));
}

/// Outputs that are views of arguments, over the strides of this call. Views of
/// outputs that get a new tensor are made when that is there: over its strides
/// every view is.
void Call::findViews() {
  for (size_t i = 0; i < program.aliases.size(); ++i) {
    bound.isShown[i] = false;
    Tensor *wanted = bound.wantedAliases[i];
    const BoundAlias &alias = bound.aliases[i];
    const Tensor *base = alias.argument >= 0 ? tensorOf(alias.argument)
                                             : bound.wanted[alias.result];
    if (!wanted || !base || !base->defined())
      continue;
    int entry =
        static_cast<int>(program.arguments.size() + program.results.size() + i);
    auto called = [&] {
      return entryName(entry) + ", a view of " +
             (alias.argument >= 0
                  ? argumentName(alias.argument)
                  : name(program.results[alias.result], alias.result));
    };
    Layout layout = layoutOf(*base);
    if (Status status = applyViews(program.aliases[i].alias.views, layout);
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
      bound.isShown[i] =
          wanted->storage() == view->storage() &&
          lies(*wanted, static_cast<const char *>(view->data()), layout);
      if (!bound.isShown[i] && shareMemory(*wanted, *view))
        problem(called() + ", shares memory with it in other places");
    }
    bound.views[i] = std::move(*view);
  }
}

/// What the handles of inputs show afterwards.
void Call::findHandles() {
  if (!bound.changesHandles)
    return;
  for (size_t a = 0; a < program.arguments.size(); ++a) {
    const Slot &slot = program.arguments[a];
    if (!slot.metadata && !slot.storage)
      continue;
    const artifact::Alias &alias =
        slot.metadata ? *slot.metadata : *slot.storage;
    size_t of = 0;
    while (program.arguments[of].role > artifact::Role::State ||
           program.arguments[of].name != alias.of)
      ++of;
    const Tensor *base = tensorOf(of);
    Tensor *handle = bound.handles[a];
    if (!base)
      continue;
    if (!handle) {
      problem(argumentName(a) +
              ": expected a tensor that may be changed, since "
              "the program changes what it shows");
      continue;
    }
    for (size_t other = 0; other < program.arguments.size(); ++other)
      if (other != a && bound.given[other] == bound.given[a])
        problem(argumentName(a) +
                ", which shows something else afterwards, is "
                "the same tensor as " +
                argumentName(other));
    Layout layout = layoutOf(*base);
    if (Status status = applyViews(alias.views, layout); !status) {
      problem(argumentName(a) + ", which shows a view of " + argumentName(of) +
              " afterwards: " + status.message());
      continue;
    }
    Result<Tensor> view = viewAt(*base, layout);
    if (!view) {
      problem(argumentName(a) + ": " + view.status().message());
      continue;
    }
    bound.newHandles[a] = std::move(*view);
    bound.newHandles[a].takeMarks(*handle);
  }
}

} // namespace tandem::runtime
