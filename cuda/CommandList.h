//===- CommandList.h - what a program does, and in what order -------------===//
//
// A program's launches as commands, each with the bytes that it reads and
// writes. These sets are the only source of order: from them come the edges of
// graphs, the waits between streams, and what a checker of races expects. Pure
// data: nothing here knows the driver.
//
// Words: a *place* is where a buffer's bytes lie, so that two buffers share
// bytes exactly if their places overlap; a *stream* is a number, 0 the
// caller's.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_COMMANDLIST_H
#define TANDEM_CUDA_COMMANDLIST_H

#include "runtime/artifact/Manifest.h"
#include "runtime/device/Action.h"

#include <span>
#include <string>
#include <vector>

namespace tandem::cuda {

/// Bytes [begin, end) of a space; different spaces share nothing.
struct ByteRange {
  int space = -1;
  int64_t begin = 0, end = 0;
  bool operator==(const ByteRange &) const = default;
  bool overlaps(const ByteRange &other) const {
    return space == other.space && begin < other.end && other.begin < end;
  }
};

/// Returns the bytes of one of the program's buffers.
int64_t bytesOf(const artifact::Program &program,
                const artifact::Buffer &buffer);

/// Returns the places of a program's buffers at these addresses (null: unused).
/// They depend on who shares bytes with whom, not on the addresses themselves:
/// tensors at other addresses have the same places unless they overlap
/// differently.
std::vector<ByteRange> rangesOf(const artifact::Program &program,
                                std::span<void *const> addresses);

/// Which stream a launch's tag stands for: the tags of all programs of the
/// artifact, numbered from 0 on, so that an op's backward finds its forward's.
class StreamTags {
public:
  explicit StreamTags(const artifact::Manifest &manifest);
  int streamOf(int64_t tag) const;
  /// Returns how many streams the tags stand for.
  int streams() const;

private:
  std::vector<int64_t> tags; ///< ascending; the first is 0
};

struct Command {
  enum class Kind : uint8_t {
    Kernel,
    Copy,
    Zero,
    Library,
    Collective, ///< ranks wait for each other
    Slice       ///< copies the rank's own piece
  };
  Kind kind = Kind::Kernel;
  size_t launch = 0; ///< of the program
  /// From `launch` on: collectives that go in one exchange
  /// (artifact/Exchanges.h), which none begins before all can; else 1.
  size_t launches = 1;
  /// Buffers of the program. A copy has one of each, zeros one written, an
  /// exchange those of all its launches.
  std::vector<int> reads, writes;
  bool usesScratch = false;
  bool isToHost = false, isFromHost = false; ///< a copy
  int stream = 0;
  /// The commands that must have run before, ascending; none that follows from
  /// others.
  std::vector<int> after;
  /// Of those that must have run, the ones on other streams that this command's
  /// stream waits for right before it.
  std::vector<int> waits;
  bool waitsForEntry = false; ///< and for stream 0, as it was before the run
  bool isAwaited = false;     ///< some stream waits for it
};

/// What decides whether independent commands of one tag go to streams of their
/// own. The default never does.
struct Concurrency {
  /// Blocks that run at once: kernels that fill the device gain nothing.
  int64_t blocks = 0;
  /// Estimated bytes and operations of a block in a second.
  double bytesPerBlock = 1, flopsPerBlock = 1;
  /// Seconds that a kernel must take at least: an event costs some itself.
  double worthwhile = 0;
  int extraStreams = 0; ///< at most, numbered after the tags'
};

class CommandList {
public:
  /// The manifest, and its program, must live as long as the list. Orders what
  /// `actions` (one for each launch; runtime/device/Action.h) say. Where
  /// `ofLibrary` (one for each launch, or none) is true, a library's call is in
  /// the kernel's place.
  CommandList(const artifact::Manifest &manifest,
              const artifact::Program &program,
              std::span<const runtime::Action> actions,
              std::span<const ByteRange> places, const StreamTags &tags,
              const Concurrency &concurrency = {},
              std::span<const bool> ofLibrary = {});

  const std::vector<Command> &commands() const { return list; }
  /// Returns the streams that have commands, ascending.
  const std::vector<int> &streams() const { return used; }
  /// Returns the commands that stream 0 waits for at the end.
  const std::vector<int> &exits() const { return last; }

  /// Copies to the host and from it have streams of their own, after all
  /// others.
  static constexpr int copyStreams = 2;
  /// After those, collectives have one stream together, on which they run in
  /// the order of the launches: all ranks have the same.
  static constexpr int rankStreams = 1;

  /// True if it has commands for which a rank must know the others.
  bool needsRanks() const { return hasRanks; }

  /// Returns the list as text, a line for each command.
  std::string dump() const;

private:
  void collect(std::span<const runtime::Action> actions,
               std::span<const ByteRange> places, const StreamTags &tags,
               std::span<const bool> ofLibrary);
  void order(std::span<const ByteRange> places);
  void reduce();
  void spread(const Concurrency &concurrency, int firstExtra);
  bool collectOverRanks(const artifact::Launch &launch,
                        std::span<const ByteRange> places,
                        Command &command) const;
  bool joinsTheLast(size_t launch, const std::vector<bool> &joins,
                    const Command &command);
  void putCopiesAside(int firstFree);
  void addWaits();
  const artifact::Kernel &kernelOf(const Command &command) const;
  bool comesAfter(int command, int other) const;

  const artifact::Manifest &manifest;
  const artifact::Program &program;
  std::vector<Command> list;
  std::vector<int> used, last;
  bool hasRanks = false;
  /// For each command, a bit for each that must have run before it.
  std::vector<uint64_t> before;
  size_t words = 0; ///< of `before`, for one command
};

} // namespace tandem::cuda

#endif
