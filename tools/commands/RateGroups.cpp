//===- RateGroups.cpp - which learning rate each parameter has ------------===//
#include "tools/commands/RateGroups.h"

#include "tools/commands/Print.h"
#include "tools/commands/Ranks.h"
#include "tools/commands/RestoreNotes.h"
#include "tools/commands/StateKinds.h"

#include <algorithm>

namespace tandem::commands {

using artifact::Buffer;
using artifact::Manifest;
using artifact::Program;
using artifact::Role;
using artifact::Slot;
using artifact::Value;

namespace {

using Rates = std::set<std::string>;

/// Which rates the bytes of a program's buffers follow from, as its launches
/// run one behind the other.
class Followed {
public:
  Rates of(const Buffer &buffer) const {
    Rates rates;
    auto take = [&](const Rates &more) {
      rates.insert(more.begin(), more.end());
    };
    if (!isMemory(buffer)) {
      auto found = outside_.find({buffer.place, buffer.index});
      return found == outside_.end() ? rates : found->second;
    }
    for (const Piece &piece : pieces_)
      if (piece.overlaps(buffer))
        take(piece.rates);
    return rates;
  }

  void set(const Buffer &buffer, Rates rates) {
    if (!isMemory(buffer)) {
      outside_[{buffer.place, buffer.index}] = std::move(rates);
      return;
    }
    // What is written over follows from nothing of before.
    std::erase_if(pieces_, [&](const Piece &piece) {
      return piece.place == buffer.place && buffer.offset <= piece.begin &&
             piece.end <= buffer.offset + buffer.bytes;
    });
    if (!rates.empty())
      pieces_.push_back({buffer.place, buffer.offset,
                         buffer.offset + buffer.bytes, std::move(rates)});
  }

private:
  struct Piece {
    Buffer::Place place;
    int64_t begin, end;
    Rates rates;

    bool overlaps(const Buffer &buffer) const {
      return place == buffer.place && begin < buffer.offset + buffer.bytes &&
             buffer.offset < end;
    }
  };

  static bool isMemory(const Buffer &buffer) {
    return buffer.place != Buffer::Place::Argument &&
           buffer.place != Buffer::Place::Result;
  }

  std::map<std::pair<Buffer::Place, int64_t>, Rates> outside_;
  /// Those that follow from a rate: few, as they end with their update.
  std::vector<Piece> pieces_;
};

bool isRate(const Value &value, const Manifest &manifest) {
  return value.name == manifest.optimizer + ".lr" ||
         isGroupsRate(value, manifest);
}

/// Follows the rates among a program's arguments to its updates of parameters.
std::map<std::string, Rates> ratesOfUpdates(const Program &program,
                                            const Manifest &manifest) {
  Followed followed;
  std::map<std::string, int64_t> arguments;
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    const Slot &slot = program.arguments[i];
    if (slot.role != Role::Param && slot.role != Role::State)
      continue;
    arguments[slot.name] = int64_t(i);
    if (slot.role == Role::State)
      if (const Value *value = manifest.findValue(slot.name);
          value && isRate(*value, manifest))
        followed.set(Buffer::argument(int64_t(i)), {slot.name});
  }
  for (const artifact::Launch &launch : program.launches) {
    Rates rates;
    auto at = [&](int64_t position) -> const Buffer & {
      return program.buffers[size_t(launch.buffers[size_t(position)])];
    };
    for (int64_t read : launch.reads)
      rates.merge(followed.of(at(read)));
    for (int64_t written : launch.writes)
      followed.set(at(written), rates);
  }
  std::map<std::string, Rates> found;
  for (size_t i = 0; i < program.results.size(); ++i) {
    const Slot &slot = program.results[i];
    auto argument = arguments.find(slot.name);
    if (slot.role != Role::Update || argument == arguments.end() ||
        program.arguments[size_t(argument->second)].role != Role::Param)
      continue;
    found[slot.name] =
        followed.of(slot.inPlace ? Buffer::argument(argument->second)
                                 : Buffer::result(int64_t(i)));
  }
  return found;
}

/// Returns the rate of each parameter whose group has a schedule, which may be
/// computed together with those of other groups: what a group's last rate needs
/// are its parameters.
std::map<std::string, std::string> scheduledRates(const Program &program,
                                                  const Manifest &manifest) {
  std::map<std::string, std::string> found;
  std::map<std::string, size_t> fewest;
  constexpr std::string_view variable = ".rate";
  // Without needs, any.
  std::vector<std::string> all;
  for (const Slot &slot : program.results)
    if (const Value *value = manifest.findValue(slot.name);
        slot.role == Role::Update && value && value->role == Role::Param)
      all.push_back(slot.name);
  for (const Slot &slot : program.results) {
    if (slot.role != Role::Update || !slot.name.ends_with(variable))
      continue;
    std::string rate =
        slot.name.substr(0, slot.name.size() - variable.size()) + ".lr";
    const Value *value = manifest.findValue(rate);
    if (!value || !isGroupsRate(*value, manifest))
      continue;
    const auto &members = slot.needs.empty() ? all : slot.needs[0];
    // A stage has the rates of groups without a parameter here, too.
    if (manifest.pipeline && members.size() == all.size())
      continue;
    size_t count = members.size();
    for (const std::string &param : members) {
      auto [least, isNew] = fewest.emplace(param, count);
      if (isNew || count < least->second)
        found[param] = rate;
      else if (count == least->second)
        found.erase(param);
      least->second = std::min(least->second, count);
    }
  }
  return found;
}

} // namespace

std::string RateGroups::text() const {
  std::string lines;
  for (const auto &[rate, params] : members)
    for (const std::string &param : params)
      lines += rate + ' ' + param + '\n';
  return lines;
}

void RateGroups::add(const std::string &text) {
  for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos;
       at = end + 1) {
    size_t space = text.find(' ', at);
    if (space < end)
      members[text.substr(at, space - at)].insert(
          text.substr(space + 1, end - space - 1));
  }
}

RateGroups rateGroupsOf(const Manifest &manifest) {
  RateGroups groups;
  const auto &values = manifest.values;
  if (std::none_of(values.begin(), values.end(), [&](const Value &value) {
        return isGroupsRate(value, manifest);
      })) {
    groups.hasOthers = true;
    return groups;
  }
  // Parameters share no kernel in `update`, as they may in `step`.
  const Program *program = manifest.findProgram("update");
  if (!program)
    program = manifest.findProgram("step");
  // What is not known to be a group's is the optimizer's.
  groups.hasOthers = !program;
  if (!program)
    return groups;
  auto scheduled = scheduledRates(*program, manifest);
  for (auto [param, rates] : ratesOfUpdates(*program, manifest)) {
    if (auto rate = scheduled.find(param); rate != scheduled.end())
      rates = {rate->second};
    groups.hasOthers |=
        rates.empty() || rates.contains(manifest.optimizer + ".lr");
    if (rates.size() == 1 && *rates.begin() != manifest.optimizer + ".lr")
      groups.members[*rates.begin()].insert(param);
  }
  return groups;
}

Result<RateGroups> rateGroupsOf(std::span<const runtime::Model> models) {
  constexpr const char *others = "others \n";
  RateGroups here, all;
  for (const runtime::Model &model : models) {
    RateGroups one = rateGroupsOf(model.manifest());
    here.hasOthers |= one.hasOthers;
    here.add(one.text());
  }
  auto texts = textsOfRanks(here.text() + (here.hasOthers ? others : ""));
  if (!texts)
    return std::move(texts).status();
  for (const std::string &text : *texts)
    all.add(text);
  all.hasOthers = all.members.erase("others") > 0;
  return all;
}

std::map<std::string, std::string>
sourcesOfRates(const Manifest &manifest, const RateGroups &here,
               const std::string &there, std::vector<std::string> &notes) {
  std::map<std::string, std::string> rateThere; // of each parameter
  RateGroups groups;
  groups.add(there);
  for (const auto &[rate, params] : groups.members)
    for (const std::string &param : params)
      rateThere[param] = rate;
  std::map<std::string, std::string> sources;
  for (const Value &value : manifest.values) {
    auto own = here.members.find(value.name);
    if (!isGroupsRate(value, manifest) || own == here.members.end())
      continue;
    Names names, rates;
    std::set<std::string> found;
    for (const std::string &param : own->second) {
      names.add(param);
      if (auto rate = rateThere.find(param);
          rate != rateThere.end() && found.insert(rate->second).second)
        rates.add(rate->second);
    }
    sources[value.name] = found.size() == 1 ? *found.begin() : "";
    if (found.size() == 1)
      continue;
    std::string begins = ": it is " + compiledNumber(value) +
                         ", which the artifact was compiled with";
    notes.push_back(
        found.empty()
            ? "has no rate for a group of " + names.after("") + begins
            : "has " + rates.after("") + " for what is one group here, of " +
                  names.after("") + begins);
  }
  return sources;
}

} // namespace tandem::commands
