//===- RankMemory.h - what the ranks of an emulated NCCL share ------------===//
//
// A communicator is a file of shared memory, so that ranks may be threads of
// one process or several processes of one machine. Each rank has two places for
// what it puts into a collective, used in turn; each pair of ranks has one for
// messages. Counters that only grow say how far everybody is; nothing waits
// here.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_RANKMEMORY_H
#define TANDEM_CUDA_EMULATOR_RANKMEMORY_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tandem::emulator {

/// What a rank asks for; all must ask for the same.
struct RankCall {
  int op = 0, type = 0, reduce = 0, root = 0;
  int together = 1; ///< collectives of its group
  uint64_t count = 0;
  bool operator==(const RankCall &) const = default;
  std::string text() const;
};

class RankMemory {
public:
  static constexpr int mostRanks = 16;
  /// Of one rank's part of a collective, and of a message.
  static constexpr size_t mostBytes = size_t(256) << 20;

  /// Opens that of the name, for so many ranks, and joins it; null where that
  /// cannot be.
  static std::shared_ptr<RankMemory> open(const std::string &name, int ranks,
                                          int rank);
  ~RankMemory();
  RankMemory(const RankMemory &) = delete;
  RankMemory &operator=(const RankMemory &) = delete;

  int rank() const { return own; }
  int ranks() const { return count; }
  bool isComplete() const;
  /// A rank has given up, or its process has ended without leaving.
  bool hasLost() const;
  void giveUp();

  // Collectives, counted from 1.
  bool canPut(uint64_t number) const;
  /// The place for this rank's part.
  std::byte *put(uint64_t number);
  void hasPut(uint64_t number, const RankCall &call);
  bool canTake(uint64_t number) const;
  const std::byte *part(uint64_t number, int rank) const;
  const RankCall &call(uint64_t number, int rank) const;
  void hasTaken(uint64_t number);

  // Messages between two ranks, counted from 1.
  bool canSend(uint64_t number, int to) const;
  std::byte *message(int from, int to) const;
  void hasSent(uint64_t number, int to, uint64_t bytes);
  bool canReceive(uint64_t number, int from) const;
  uint64_t bytesOf(int from) const;
  void hasReceived(uint64_t number, int from);

private:
  struct Header;
  RankMemory() = default;
  bool isEverybody(std::atomic<uint64_t> (&counters)[mostRanks],
                   uint64_t number) const;

  Header *header = nullptr;
  std::byte *places = nullptr;
  size_t bytes = 0;
  int own = 0, count = 0;
  std::string name;
};

} // namespace tandem::emulator

#endif
