//===- CommandList.cpp - what a program does, and in what order -----------===//
//
// The order: for every byte the last command that wrote it and those that have
// read it since. Bytes with the same history are one segment of their space;
// segments are split where an access begins or ends. Edges that follow from
// others are left out by a bit set of predecessors for each command.
//
//===----------------------------------------------------------------------===//
#include "cuda/CommandList.h"

#include "runtime/artifact/Exchanges.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace tandem::cuda {

using artifact::Buffer;
using artifact::Launch;
using artifact::Program;

namespace {

/// At most this many streams beside the caller's for tags; further tags share
/// them.
constexpr int maxSideStreams = 31;

/// Who used the bytes of one space.
class History {
public:
  void read(const ByteRange &place, int command, std::set<int> &after) {
    for (auto it = cut(place); it != segments.end() && it->first < place.end;
         ++it) {
      if (it->second.writer >= 0)
        after.insert(it->second.writer);
      it->second.readers.push_back(command);
    }
  }

  void write(const ByteRange &place, int command, std::set<int> &after) {
    for (auto it = cut(place); it != segments.end() && it->first < place.end;
         ++it) {
      Segment &segment = it->second;
      if (segment.writer >= 0)
        after.insert(segment.writer);
      after.insert(segment.readers.begin(), segment.readers.end());
      segment = {command, {}};
    }
  }

private:
  struct Segment {
    int writer = -1;
    std::vector<int> readers; ///< since
  };
  using Segments = std::map<int64_t, Segment>;

  /// Makes segments begin at the place's begin and end; returns the first.
  Segments::iterator cut(const ByteRange &place) {
    cutAt(place.end);
    return cutAt(place.begin);
  }

  Segments::iterator cutAt(int64_t at) {
    auto next = segments.lower_bound(at);
    if (next != segments.end() && next->first == at)
      return next;
    Segment copy =
        next == segments.begin() ? Segment() : std::prev(next)->second;
    return segments.emplace_hint(next, at, std::move(copy));
  }

  Segments segments; ///< by where they begin; each ends where the next begins
};

} // namespace

int64_t bytesOf(const Program &program, const Buffer &buffer) {
  switch (buffer.place) {
  case Buffer::Place::Argument: {
    const artifact::Slot &slot = program.arguments[buffer.index];
    return tensorBytes(slot.dtype, slot.shape).value_or(0);
  }
  case Buffer::Place::Result: {
    const artifact::Slot &slot = program.results[buffer.index];
    return tensorBytes(slot.dtype, slot.shape).value_or(0);
  }
  case Buffer::Place::Arena:
  case Buffer::Place::Constant:
  case Buffer::Place::Host:
    break;
  }
  return buffer.bytes;
}

std::vector<ByteRange> rangesOf(const Program &program,
                                std::span<void *const> addresses) {
  std::vector<ByteRange> places(program.buffers.size());
  std::vector<int> order;
  for (size_t b = 0; b < places.size(); ++b) {
    // Constants are only read: nothing has to be ordered for them.
    if (!addresses[b] || program.buffers[b].place == Buffer::Place::Constant)
      continue;
    auto begin =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(addresses[b]));
    places[b] = {0, begin, begin + bytesOf(program, program.buffers[b])};
    order.push_back(static_cast<int>(b));
  }
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::tie(places[a].begin, a) < std::tie(places[b].begin, b);
  });
  // A space is a run of places without a gap; it has the number of its first
  // buffer, and its bytes count from its lowest address.
  for (size_t i = 0; i < order.size();) {
    int64_t base = places[order[i]].begin, end = base;
    int number = order[i];
    size_t next = i;
    for (;
         next < order.size() && (next == i || places[order[next]].begin < end);
         ++next) {
      end = std::max(end, places[order[next]].end);
      number = std::min(number, order[next]);
    }
    for (; i < next; ++i) {
      ByteRange &place = places[order[i]];
      place = {number, place.begin - base, place.end - base};
    }
  }
  return places;
}

StreamTags::StreamTags(const artifact::Manifest &manifest) {
  std::set<int64_t> all = {0};
  for (const Program &program : manifest.programs)
    for (const Launch &launch : program.launches)
      all.insert(launch.stream);
  tags.assign(all.begin(), all.end());
}

int StreamTags::streams() const {
  return std::min(static_cast<int>(tags.size()), 1 + maxSideStreams);
}

int StreamTags::streamOf(int64_t tag) const {
  auto number = static_cast<int>(
      std::lower_bound(tags.begin(), tags.end(), tag) - tags.begin());
  return number <= maxSideStreams ? number : 1 + (number - 1) % maxSideStreams;
}

CommandList::CommandList(const artifact::Manifest &manifest,
                         const Program &program,
                         std::span<const runtime::Action> actions,
                         std::span<const ByteRange> places,
                         const StreamTags &tags, const Concurrency &concurrency,
                         std::span<const bool> ofLibrary)
    : manifest(manifest), program(program) {
  collect(actions, places, tags, ofLibrary);
  putCopiesAside(tags.streams() + concurrency.extraStreams);
  order(places);
  reduce();
  spread(concurrency, tags.streams());
  addWaits();
}

const artifact::Kernel &CommandList::kernelOf(const Command &command) const {
  return manifest.kernels[program.launches[command.launch].kernel];
}

void CommandList::collect(std::span<const runtime::Action> actions,
                          std::span<const ByteRange> places,
                          const StreamTags &tags,
                          std::span<const bool> ofLibrary) {
  std::vector<bool> joins = artifact::joinsTheOneBefore(manifest, program);
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Launch &launch = program.launches[i];
    Command command;
    command.launch = i;
    command.stream = tags.streamOf(launch.stream);
    auto buffer = [&](int64_t position) {
      return static_cast<int>(launch.buffers[position]);
    };
    if (actions[i] == runtime::skipLaunch)
      continue;
    if (actions[i] == runtime::runKernel && launch.isCollective()) {
      if (!collectOverRanks(launch, places, command))
        continue;
      hasRanks |= command.kind != Command::Kind::Copy;
      if (joinsTheLast(i, joins, command))
        continue;
    } else if (actions[i] == runtime::runKernel) {
      if (launch.work == 0)
        continue;
      for (int64_t position : launch.reads)
        command.reads.push_back(buffer(position));
      for (int64_t position : launch.writes)
        command.writes.push_back(buffer(position));
      command.usesScratch = manifest.kernels[launch.kernel].scratchBytes > 0;
      if (!ofLibrary.empty() && ofLibrary[i]) {
        command.kind = Command::Kind::Library;
        command.usesScratch = false;
        if (launch.library->workspace)
          command.writes.push_back(
              static_cast<int>(*launch.library->workspace));
      }
    } else {
      int written = buffer(launch.writes.front());
      if (bytesOf(program, program.buffers[written]) == 0)
        continue;
      command.writes = {written};
      command.kind = Command::Kind::Zero;
      if (actions[i] != runtime::writeZeros) {
        command.kind = Command::Kind::Copy;
        command.reads = {buffer(actions[i])};
        command.isToHost = isOnHost(program, program.buffers[written]);
        command.isFromHost =
            isOnHost(program, program.buffers[command.reads[0]]);
        // Onto itself.
        if (places[command.reads[0]] == places[written])
          continue;
      }
    }
    list.push_back(std::move(command));
  }
}

/// Adds a collective to the exchange that the list ends with, if it is of it.
bool CommandList::joinsTheLast(size_t launch, const std::vector<bool> &joins,
                               const Command &command) {
  if (!joins[launch] || list.empty())
    return false;
  Command &last = list.back();
  if (last.kind != Command::Kind::Collective ||
      last.launch + last.launches != launch)
    return false;
  ++last.launches;
  last.reads.push_back(command.reads[0]);
  last.writes.push_back(command.writes[0]);
  return true;
}

/// False where nothing is to be done: a rank alone, and what has no elements,
/// waits for nobody.
bool CommandList::collectOverRanks(const Launch &launch,
                                   std::span<const ByteRange> places,
                                   Command &command) const {
  const artifact::Collective &what = *launch.collective;
  bool isAlone = artifact::groupSize(manifest.mesh, what.axes) == 1;
  command.kind = isAlone               ? Command::Kind::Copy
                 : what.communicates() ? Command::Kind::Collective
                                       : Command::Kind::Slice;
  if (launch.buffers.empty()) // a barrier
    return !isAlone;
  int from = static_cast<int>(launch.buffers[0]);
  int to = static_cast<int>(launch.buffers[1]);
  command.reads = {from};
  command.writes = {to};
  return what.elements > 0 && !(isAlone && places[from] == places[to]);
}

void CommandList::order(std::span<const ByteRange> places) {
  std::map<int, History> histories;
  for (size_t c = 0; c < list.size(); ++c) {
    Command &command = list[c];
    auto self = static_cast<int>(c);
    std::set<int> after;
    auto isEmpty = [](const ByteRange &place) {
      return place.begin >= place.end;
    };
    for (int buffer : command.reads)
      if (const ByteRange &place = places[buffer]; !isEmpty(place))
        histories[place.space].read(place, self, after);
    for (int buffer : command.writes)
      if (const ByteRange &place = places[buffer]; !isEmpty(place))
        histories[place.space].write(place, self, after);
    // The launches of a stream share its scratch memory, each in its turn; no
    // buffer's space has a number below -1.
    if (command.usesScratch)
      histories[-2 - command.stream].write({0, 0, 1}, self, after);
    after.erase(self); // what it reads and writes itself
    command.after.assign(after.begin(), after.end());
  }
}

bool CommandList::comesAfter(int command, int other) const {
  return before[command * words + other / 64] >> (other % 64) & 1;
}

void CommandList::reduce() {
  words = (list.size() + 63) / 64;
  before.assign(list.size() * words, 0);
  for (size_t c = 0; c < list.size(); ++c) {
    std::vector<int> kept;
    uint64_t *mine = &before[c * words];
    // From the last on: an edge follows from later ones, never from earlier.
    for (auto it = list[c].after.rbegin(); it != list[c].after.rend(); ++it) {
      int other = *it;
      if (comesAfter(static_cast<int>(c), other))
        continue;
      kept.push_back(other);
      for (size_t w = 0; w < words; ++w)
        mine[w] |= before[other * words + w];
      mine[other / 64] |= uint64_t(1) << (other % 64);
    }
    list[c].after.assign(kept.rbegin(), kept.rend());
  }
}

/// Moves commands to streams of their own where they could run beside the last
/// one of their stream: where both leave room for the other, and both take long
/// enough that it pays.
void CommandList::spread(const Concurrency &concurrency, int firstExtra) {
  if (concurrency.extraStreams == 0)
    return;
  auto isWorthwhile = [&](const Command &command) {
    if (command.kind != Command::Kind::Kernel || command.usesScratch)
      return false;
    const artifact::Kernel &kernel = kernelOf(command);
    auto blocks = static_cast<double>(program.launches[command.launch].work);
    double seconds =
        std::max(static_cast<double>(kernel.bytes) / concurrency.bytesPerBlock,
                 static_cast<double>(kernel.flops) / concurrency.flopsPerBlock);
    return 2 * blocks <= static_cast<double>(concurrency.blocks) &&
           seconds / blocks >= concurrency.worthwhile;
  };
  std::map<int, int> lastOf;              ///< stream: its last command
  std::map<int, std::vector<int>> family; ///< a tag's stream: the extra ones
  int extra = 0;
  for (size_t c = 0; c < list.size(); ++c) {
    Command &command = list[c];
    auto self = static_cast<int>(c);
    int home = command.stream;
    auto isFree = [&](int stream) {
      auto it = lastOf.find(stream);
      return it == lastOf.end() || comesAfter(self, it->second);
    };
    if (auto it = lastOf.find(home);
        it != lastOf.end() && !comesAfter(self, it->second) &&
        isWorthwhile(command) && isWorthwhile(list[it->second])) {
      std::vector<int> &others = family[home];
      auto found = std::find_if(others.begin(), others.end(), isFree);
      if (found != others.end()) {
        command.stream = *found;
      } else if (extra < concurrency.extraStreams) {
        command.stream = firstExtra + extra++;
        others.push_back(command.stream);
      }
    }
    lastOf[command.stream] = self;
  }
}

/// A device copies to the host, from it, talks to others, and computes all at
/// once: each has a stream, on which it waits for what it reads and overwrites
/// alone.
void CommandList::putCopiesAside(int firstFree) {
  for (Command &command : list)
    if (command.isToHost || command.isFromHost)
      command.stream = firstFree + (command.isFromHost ? 1 : 0);
    else if (command.kind == Command::Kind::Collective)
      command.stream = firstFree + copyStreams;
}

/// What a stream has waited for, as the last command of each stream that it
/// knows to have run: what is known need not be waited for again.
void CommandList::addWaits() {
  std::set<int> all = {0};
  for (const Command &command : list)
    all.insert(command.stream);
  used.assign(all.begin(), all.end());
  auto indexOf = [&](int stream) {
    return std::lower_bound(used.begin(), used.end(), stream) - used.begin();
  };
  size_t count = used.size();
  constexpr int nothing = -2, entry = -1; // entry: of stream 0, before the run
  std::vector<int> known(count * count, nothing); // [who][of whom]
  known[0] = entry;
  std::vector<int> then(list.size() * count); // `known` right after a command
  auto learn = [&](size_t stream, int command) {
    for (size_t s = 0; s < count; ++s)
      known[stream * count + s] =
          std::max(known[stream * count + s], then[command * count + s]);
  };
  std::vector<int> lastOf(count, nothing);
  for (size_t c = 0; c < list.size(); ++c) {
    Command &command = list[c];
    auto mine = static_cast<size_t>(indexOf(command.stream));
    // The latest first: it may know of the others.
    for (auto it = command.after.rbegin(); it != command.after.rend(); ++it) {
      auto theirs = static_cast<size_t>(indexOf(list[*it].stream));
      if (known[mine * count + theirs] >= *it)
        continue;
      command.waits.insert(command.waits.begin(), *it);
      list[*it].isAwaited = true;
      learn(mine, *it);
    }
    if (known[mine * count] == nothing) {
      command.waitsForEntry = true;
      known[mine * count] = entry;
    }
    known[mine * count + mine] = static_cast<int>(c);
    std::copy_n(&known[mine * count], count, &then[c * count]);
    lastOf[mine] = static_cast<int>(c);
  }
  for (size_t s = count; s-- > 1;)
    last.push_back(lastOf[s]);
  std::sort(last.rbegin(), last.rend());
  std::vector<int> needed;
  for (int command : last) {
    auto theirs = static_cast<size_t>(indexOf(list[command].stream));
    if (known[theirs] >= command)
      continue;
    needed.insert(needed.begin(), command);
    list[command].isAwaited = true;
    learn(0, command);
  }
  last = std::move(needed);
}

std::string CommandList::dump() const {
  std::string text;
  auto numbers = [](const char *what, const std::vector<int> &values) {
    std::string part;
    for (int value : values)
      part += (part.empty() ? " " : ", ") + std::to_string(value);
    return part.empty() ? part : std::string(" ") + what + part;
  };
  auto buffers = [&](const char *what, const std::vector<int> &values) {
    std::string part;
    for (int value : values) {
      const Buffer &buffer = program.buffers[value];
      part += part.empty() ? " " : ", ";
      switch (buffer.place) {
      case Buffer::Place::Argument:
        part += "argument " + std::to_string(buffer.index);
        break;
      case Buffer::Place::Result:
        part += "result " + std::to_string(buffer.index);
        break;
      case Buffer::Place::Arena:
        part += "arena [" + std::to_string(buffer.offset) + ", " +
                std::to_string(buffer.offset + buffer.bytes) + ")";
        break;
      case Buffer::Place::Constant:
        part += "constant " + std::to_string(buffer.offset);
        break;
      case Buffer::Place::Host:
        part += "host [" + std::to_string(buffer.offset) + ", " +
                std::to_string(buffer.offset + buffer.bytes) + ")";
        break;
      }
    }
    return part.empty() ? part : std::string(" ") + what + part;
  };
  for (size_t c = 0; c < list.size(); ++c) {
    const Command &command = list[c];
    text += std::to_string(c) + ": ";
    switch (command.kind) {
    case Command::Kind::Kernel:
      text += "'" + kernelOf(command).symbol + "'";
      break;
    case Command::Kind::Copy:
      text += command.isToHost     ? "copy to host"
              : command.isFromHost ? "copy from host"
                                   : "copy";
      break;
    case Command::Kind::Zero:
      text += "zero";
      break;
    case Command::Kind::Collective:
    case Command::Kind::Slice:
      text += spelling(program.launches[list[c].launch].collective->op);
      if (command.launches > 1)
        text += " (" + std::to_string(command.launches) + " in one exchange)";
      break;
    case Command::Kind::Library:
      text += "library '" + kernelOf(command).symbol + "'";
      break;
    }
    text += " on " + std::to_string(command.stream);
    text += buffers("reads", command.reads);
    text += buffers("writes", command.writes);
    text += numbers("after", command.after);
    if (command.waitsForEntry)
      text += " waits for the entry";
    text += numbers("waits for", command.waits);
    text += "\n";
  }
  return text +
         (last.empty() ? "" : "end:" + numbers("waits for", last) + "\n");
}

} // namespace tandem::cuda
