//===- ManifestArena.cpp - rules of what lies in the arena at once --------===//
//
// Part of `validate`: a launch reads from the arena (or the host's memory) what
// an earlier one wrote there and nobody has overwritten since: a value, or a
// part of one that is still whole. Each value has a buffer of its own in the
// manifest's list, or shares one with values that come after it, and parts have
// buffers that nobody writes to; so bytes that change hands tell that two live
// values overlap.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/ManifestRules.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tandem::artifact {

namespace {

class ArenaRules {
public:
  ArenaRules(const Program &program, const std::string &at,
             ManifestProblems &problems)
      : program(program), at(at), problems(problems) {}

  void run() {
    isWritten.resize(program.buffers.size());
    for (const Launch &launch : program.launches)
      for (int64_t position : launch.writes)
        if (int64_t buffer = placed(launch, position); buffer >= 0)
          isWritten[buffer] = true;
    for (size_t l = 0; l < program.launches.size(); ++l)
      checkLaunch(static_cast<int64_t>(l), program.launches[l]);
  }

private:
  /// Bytes up to `end` that a launch wrote to a buffer.
  struct Piece {
    int64_t end, buffer, launch;
  };
  using Space = std::map<int64_t, Piece>; ///< by where it begins

  Space &spaceOf(const Buffer &buffer) {
    return spaces[buffer.place == Buffer::Place::Host];
  }

  /// The number of the buffer at a position of a launch, if it is one in the
  /// arena or in the host's memory; else -1. What is wrong with it otherwise is
  /// said elsewhere.
  int64_t placed(const Launch &launch, int64_t position) const {
    if (position < 0 || position >= static_cast<int64_t>(launch.buffers.size()))
      return -1;
    return placed(launch.buffers[position]);
  }
  int64_t placed(int64_t number) const {
    if (number < 0 || number >= static_cast<int64_t>(program.buffers.size()))
      return -1;
    const Buffer &buffer = program.buffers[number];
    bool isThere = buffer.place == Buffer::Place::Arena ||
                   buffer.place == Buffer::Place::Host;
    bool isRange = buffer.offset >= 0 && buffer.bytes > 0 &&
                   buffer.offset <= limit && buffer.bytes <= limit;
    return isThere && isRange ? number : -1;
  }

  /// True if nobody has overwritten a part of the piece.
  bool isWhole(const Space::value_type &piece) const {
    const Buffer &buffer = program.buffers[piece.second.buffer];
    return piece.first == buffer.offset &&
           piece.second.end == buffer.offset + buffer.bytes;
  }

  void checkRead(int64_t number, const std::string &at) {
    const Buffer &buffer = program.buffers[number];
    Space &space = spaceOf(buffer);
    auto piece = space.upper_bound(buffer.offset);
    if (piece != space.begin())
      --piece;
    bool isThere = piece != space.end() && piece->first == buffer.offset &&
                   piece->second.end == buffer.offset + buffer.bytes &&
                   piece->second.buffer == number;
    bool isPart = !isWritten[number] && piece != space.end() &&
                  isWhole(*piece) && piece->first <= buffer.offset &&
                  piece->second.end - buffer.bytes >= buffer.offset;
    if (isThere || isPart)
      return;
    // Who has bytes of it, if anybody.
    if (piece != space.end() && piece->second.end <= buffer.offset)
      ++piece;
    while (piece != space.end() && piece->second.buffer == number &&
           piece->first < buffer.offset + buffer.bytes)
      ++piece;
    bool isTaken =
        piece != space.end() && piece->first < buffer.offset + buffer.bytes;
    problems.add(
        at, "expected buffer " + std::to_string(number) +
                " to hold what was written to it, but " +
                (isTaken ? "launch " + std::to_string(piece->second.launch) +
                               " has written to buffer " +
                               std::to_string(piece->second.buffer) + " there"
                         : "no launch has"));
  }

  void write(int64_t number, int64_t launch) {
    const Buffer &buffer = program.buffers[number];
    Space &space = spaceOf(buffer);
    int64_t begin = buffer.offset, end = begin + buffer.bytes;
    auto piece = space.lower_bound(begin);
    if (piece != space.begin() && std::prev(piece)->second.end > begin) {
      auto before = std::prev(piece);
      if (before->second.end > end)
        space.emplace(end, before->second);
      before->second.end = begin;
    }
    while (piece != space.end() && piece->first < end) {
      if (piece->second.end > end)
        space.emplace(end, piece->second);
      piece = space.erase(piece);
    }
    space.insert_or_assign(begin, Piece{end, number, launch});
  }

  /// A buffer of a launch, from where it begins.
  struct Use {
    Buffer::Place place;
    int64_t begin, end, buffer;
    bool isWrite;
    auto key() const { return std::tuple(place, begin, buffer, isWrite); }
  };

  /// What a launch writes has bytes of its own, but for what it overwrites in
  /// place, which is one buffer.
  void checkApart(std::vector<Use> &uses, const std::string &at) {
    std::sort(uses.begin(), uses.end(),
              [](const Use &a, const Use &b) { return a.key() < b.key(); });
    // The reads and writes so far that reach furthest.
    const Use *furthest[2] = {};
    for (const Use &use : uses) {
      for (bool isWrite : {false, true}) {
        const Use *other = furthest[isWrite];
        bool matters =
            (use.isWrite || isWrite) &&
            !(use.isWrite != isWrite && other && use.buffer == other->buffer);
        if (matters && other && other->place == use.place &&
            use.begin < other->end)
          problems.add(at, "expected buffers " + std::to_string(other->buffer) +
                               " and " + std::to_string(use.buffer) +
                               " apart, of which the launch writes to one");
      }
      const Use *&own = furthest[use.isWrite];
      if (!own || own->place != use.place || own->end < use.end)
        own = &use;
    }
  }

  void checkLaunch(int64_t number, const Launch &launch) {
    std::string here = child(at + "/launches", number);
    std::vector<Use> uses;
    std::vector<int64_t> writes;
    auto use = [&](int64_t number, bool isWrite) {
      const Buffer &buffer = program.buffers[number];
      uses.push_back({buffer.place, buffer.offset, buffer.offset + buffer.bytes,
                      number, isWrite});
    };
    for (size_t i = 0; i < launch.reads.size(); ++i)
      if (int64_t buffer = placed(launch, launch.reads[i]); buffer >= 0) {
        checkRead(buffer, child(here + "/reads", static_cast<int64_t>(i)));
        use(buffer, /*isWrite=*/false);
      }
    for (int64_t position : launch.writes)
      if (int64_t buffer = placed(launch, position); buffer >= 0) {
        writes.push_back(buffer);
        use(buffer, /*isWrite=*/true);
      }
    checkApart(uses, here);
    // A library may use its own part of the arena, and may not.
    if (launch.library)
      if (int64_t buffer = placed(launch.library->workspace.value_or(-1));
          buffer >= 0)
        write(buffer, number);
    for (int64_t buffer : writes)
      write(buffer, number);
  }

  static constexpr int64_t limit = int64_t(1) << 48;

  const Program &program;
  const std::string &at;
  ManifestProblems &problems;
  Space spaces[2];             ///< the arena, the host's memory
  std::vector<bool> isWritten; ///< of each buffer; those of parts never are
};

} // namespace

void checkArena(const Program &program, const std::string &at,
                ManifestProblems &problems) {
  ArenaRules(program, at, problems).run();
}

} // namespace tandem::artifact
