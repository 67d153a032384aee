//===- Slice.cpp - what some outputs of a program need --------------------===//
//
// The launches are walked from the last to the first with the set of bytes that
// are still wanted: a launch that writes some of them runs, what it writes is
// wanted no more, and what it reads is.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/Slice.h"

#include <algorithm>

namespace tandem::artifact {
namespace {

/// Bytes [begin, end) of one place: an argument, a result, the arena, the
/// host's memory.
struct Range {
  Buffer::Place place;
  int64_t index; ///< of an argument or result
  int64_t begin, end;

  bool meets(const Range &other) const {
    return place == other.place && index == other.index && begin < other.end &&
           other.begin < end;
  }
};

Range rangeOf(const Buffer &buffer) {
  if (buffer.place == Buffer::Place::Argument ||
      buffer.place == Buffer::Place::Result)
    return {buffer.place, buffer.index, 0, maxBytes};
  return {buffer.place, 0, buffer.offset, buffer.offset + buffer.bytes};
}

class Wanted {
public:
  void add(const Range &range) { ranges.push_back(range); }
  bool has(const Range &range) const {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const Range &r) { return r.meets(range); });
  }
  void remove(const Range &range) {
    std::vector<Range> left;
    for (const Range &r : ranges) {
      if (!r.meets(range)) {
        left.push_back(r);
        continue;
      }
      if (r.begin < range.begin)
        left.push_back({r.place, r.index, r.begin, range.begin});
      if (range.end < r.end)
        left.push_back({r.place, r.index, range.end, r.end});
    }
    ranges = std::move(left);
  }

private:
  std::vector<Range> ranges;
};

void addBase(const Alias &alias, const Program &program, Wanted &wanted) {
  auto named = [&](const std::vector<Slot> &slots, const std::string &name,
                   Buffer (*place)(int64_t), auto isKind) {
    for (size_t i = 0; i < slots.size(); ++i)
      if (slots[i].name == name && isKind(slots[i].role))
        wanted.add(rangeOf(place(static_cast<int64_t>(i))));
  };
  if (!alias.output.empty())
    named(program.results, alias.output, Buffer::result,
          [](Role role) { return role == Role::Output; });
  else
    named(program.arguments, alias.of, Buffer::argument,
          [](Role role) { return role <= Role::State; });
}

/// Returns, for each argument, whether one of the wanted outputs says that it
/// follows from it, or does not say from which it does.
std::vector<char> followedOf(const Program &program,
                             const std::vector<char> &wantedResults,
                             const std::vector<char> &wantedAliases) {
  bool isUnknown = false;
  std::vector<char> followed(program.arguments.size());
  auto follow = [&](const Slot &slot) {
    isUnknown |= !slot.inputs;
    for (size_t a = 0; slot.inputs && a < program.arguments.size(); ++a)
      followed[a] |= std::find(slot.inputs->begin(), slot.inputs->end(),
                               program.arguments[a].name) != slot.inputs->end();
  };
  for (size_t r = 0; r < program.results.size(); ++r)
    if (wantedResults[r])
      follow(program.results[r]);
  std::vector<Slot> outputs = outputsOf(program);
  size_t firstAlias = outputs.size() - program.aliases.size();
  for (size_t i = 0; i < program.aliases.size(); ++i)
    if (wantedAliases[i])
      follow(outputs[firstAlias + i]);
  if (isUnknown)
    std::fill(followed.begin(), followed.end(), 1);
  return followed;
}

} // namespace

Slice sliceOf(const Program &program, const std::vector<char> &wantedResults,
              const std::vector<char> &wantedAliases) {
  Slice slice;
  slice.launches.resize(program.launches.size());
  Wanted wanted;
  for (size_t r = 0; r < program.results.size(); ++r)
    if (wantedResults[r])
      wanted.add(rangeOf(Buffer::result(static_cast<int64_t>(r))));
  for (size_t i = 0; i < program.aliases.size(); ++i)
    if (wantedAliases[i])
      addBase(program.aliases[i].alias, program, wanted);
  for (size_t l = program.launches.size(); l-- > 0;) {
    const Launch &launch = program.launches[l];
    auto range = [&](int64_t position) {
      return rangeOf(program.buffers[launch.buffers[position]]);
    };
    bool runs = std::any_of(
        launch.writes.begin(), launch.writes.end(),
        [&](int64_t position) { return wanted.has(range(position)); });
    if (!runs)
      continue;
    slice.launches[l] = 1;
    for (int64_t position : launch.writes)
      wanted.remove(range(position));
    for (int64_t position : launch.reads)
      wanted.add(range(position));
  }
  slice.needs = followedOf(program, wantedResults, wantedAliases);
  slice.reads.resize(program.arguments.size());
  for (size_t a = 0; a < program.arguments.size(); ++a) {
    slice.reads[a] =
        wanted.has(rangeOf(Buffer::argument(static_cast<int64_t>(a))));
    slice.needs[a] &= slice.reads[a];
  }
  return slice;
}

Slice sliceOf(const Program &program, const std::vector<std::string> &outputs) {
  auto isWanted = [&](const std::string &name) {
    return std::find(outputs.begin(), outputs.end(), name) != outputs.end();
  };
  std::vector<char> results, aliases;
  for (const Slot &slot : program.results)
    results.push_back(slot.role == Role::Output && isWanted(slot.name));
  for (const OutputAlias &alias : program.aliases)
    aliases.push_back(isWanted(alias.name));
  return sliceOf(program, results, aliases);
}

} // namespace tandem::artifact
