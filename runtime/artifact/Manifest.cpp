//===- Manifest.cpp - names and look-ups of a manifest --------------------===//
//
// How enumerations are spelled, and what is found by name.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Manifest.h"

#include <algorithm>

namespace tandem::artifact {

namespace {

constexpr std::string_view roleNames[] = {"input",  "param",     "state",
                                          "output", "cotangent", "grad",
                                          "update", "saved",     "prepared"};

} // namespace

std::string_view spelling(Role role) {
  return roleNames[static_cast<int>(role)];
}

std::optional<Role> parseRole(std::string_view name) {
  for (size_t i = 0; i < std::size(roleNames); ++i)
    if (roleNames[i] == name)
      return static_cast<Role>(i);
  return std::nullopt;
}

std::string_view spelling(Rows rows) {
  return rows == Rows::Each ? "each" : rows == Rows::Mean ? "mean" : "";
}

std::optional<Rows> parseRows(std::string_view name) {
  for (Rows rows : {Rows::Each, Rows::Mean})
    if (spelling(rows) == name)
      return rows;
  return std::nullopt;
}

std::string_view spelling(Buffer::Place place) {
  constexpr std::string_view names[] = {"argument", "result", "arena",
                                        "constant", "host"};
  return names[static_cast<int>(place)];
}

std::string_view spelling(Collective::Op op) {
  constexpr std::string_view names[] = {
      "all_reduce",     "reduce_scatter", "all_gather", "all_to_all",
      "broadcast_from", "rank_slice",     "barrier"};
  return names[static_cast<int>(op)];
}

std::string_view spelling(Collective::Reduce reduce) {
  constexpr std::string_view names[] = {"sum", "max", "min"};
  return names[static_cast<int>(reduce)];
}

int64_t groupSize(const std::vector<MeshAxis> &mesh,
                  const std::vector<std::string> &axes) {
  int64_t ranks = 1;
  for (const MeshAxis &axis : mesh)
    if (std::find(axes.begin(), axes.end(), axis.name) != axes.end())
      ranks *= axis.size;
  return ranks;
}

std::optional<int64_t> Collective::elementsOfOutput(int64_t ranks) const {
  bool isCut = op == Op::ReduceScatter || op == Op::RankSlice;
  if ((isCut || op == Op::AllToAll) && elements % ranks != 0)
    return std::nullopt;
  if (op == Op::AllGather && elements > maxBytes / ranks)
    return std::nullopt;
  return isCut                 ? elements / ranks
         : op == Op::AllGather ? elements * ranks
                               : elements;
}

const Value *Manifest::findValue(std::string_view name) const {
  for (const Value &value : values)
    if (value.role != Role::Output && value.name == name)
      return &value;
  return nullptr;
}

const Value *Manifest::findValue(std::string_view name, int64_t size) const {
  if (size > 0 && size < static_cast<int64_t>(sizes.size()))
    for (const Value &value : sizes[size].values)
      if (value.role != Role::Output && value.name == name)
        return &value;
  return findValue(name);
}

std::optional<std::pair<int64_t, int64_t>> Value::commonRange() const {
  std::pair<int64_t, int64_t> all = {low.value_or(INT64_MIN),
                                     high.value_or(INT64_MAX)};
  if (high && !low)
    all.first = 0;
  for (const SliceRange &range : ranges)
    all = {std::max(all.first, range.low), std::min(all.second, range.high)};
  if ((!high && ranges.empty()) || all.first >= all.second)
    return std::nullopt;
  return all;
}

const Value *Manifest::findOutput(std::string_view name) const {
  for (const Value &value : values)
    if (value.role == Role::Output && value.name == name)
      return &value;
  return nullptr;
}

const Program *Manifest::findProgram(std::string_view name) const {
  for (const Program &program : programs)
    if (program.name == name)
      return &program;
  return nullptr;
}

std::optional<size_t> updatedArgument(const Program &program,
                                      std::string_view name) {
  std::optional<size_t> found;
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    const Slot &slot = program.arguments[i];
    bool isIt = slot.role <= Role::State || slot.role == Role::Prepared
                    ? slot.name == name
                    : slot.role == Role::Cotangent &&
                          name.starts_with(cotangentOf) &&
                          name.substr(cotangentOf.size()) == slot.name;
    if (isIt && (!found || slot.asFound))
      found = i;
  }
  return found;
}

bool isOnHost(const Program &program, const Buffer &buffer) {
  auto isSlot = [&](const std::vector<Slot> &slots) {
    return buffer.index >= 0 &&
           buffer.index < static_cast<int64_t>(slots.size()) &&
           slots[buffer.index].onHost;
  };
  switch (buffer.place) {
  case Buffer::Place::Argument:
    return isSlot(program.arguments);
  case Buffer::Place::Result:
    return isSlot(program.results);
  case Buffer::Place::Arena:
  case Buffer::Place::Constant:
    return false;
  case Buffer::Place::Host:
    break;
  }
  return true;
}

/// True if each view has the rows of what it shows, in their order.
static bool keepRows(const std::vector<View> &views, int64_t rows) {
  return std::all_of(views.begin(), views.end(), [&](const View &view) {
    switch (view.op) {
    case View::Op::Reshape:
      return !view.shape.empty() && view.shape[0] == rows;
    case View::Op::Permute:
      return !view.dims.empty() && view.dims[0] == 0;
    case View::Op::Slice:
      return !view.starts.empty() && view.starts[0] == 0 &&
             view.limits[0] == rows && view.strides[0] == 1;
    case View::Op::Detach:
      return true;
    default:
      return false;
    }
  });
}

/// What is known of an output that an alias shows.
static void followOutput(const Alias &alias, const Slot &shown, Slot &slot) {
  slot.inputs = shown.inputs;
  bool isSame = alias.views.empty();
  if (isSame || (shown.rows == Rows::Each && !shown.shape.empty() &&
                 keepRows(alias.views, shown.shape[0])))
    slot.rows = shown.rows;
  if (isSame)
    slot.counted = shown.counted;
}

std::vector<Slot> outputsOf(const Program &program) {
  std::vector<Slot> outputs;
  for (const Slot &slot : program.results)
    if (slot.role == Role::Output)
      outputs.push_back(slot);
  for (const OutputAlias &alias : program.aliases) {
    Slot &slot = outputs.emplace_back();
    slot.role = Role::Output;
    slot.name = alias.name;
    slot.dtype = alias.dtype;
    slot.shape = alias.shape;
    for (const Slot &shown : program.results)
      if (shown.role == Role::Output && shown.name == alias.alias.output)
        followOutput(alias.alias, shown, slot);
    for (const Slot &shown : program.arguments)
      if (shown.role == Role::Input && shown.name == alias.alias.of)
        slot.inputs = {shown.name};
  }
  return outputs;
}

} // namespace tandem::artifact
