//===- WeakMemory.h - global memory as the blocks of a launch see it ------===//
//
// A GPU lets a block read what another one has written only where the two
// synchronize. PTX's memory model ("Memory Consistency Model" in the PTX ISA)
// as far as kernels use it:
//
//   a fence of the device, then an atomic write, release what the thread knows:
//   its own doings and, by barriers, those of its block; an atomic read of that
//   value, then a fence, acquire it. Read-modify-writes in between pass it on.
//
// Blocks run one after the other. Each begins with memory as it was before the
// launch and sees what it wrote itself and what it has acquired, so that a
// kernel that lacks a fence computes wrong values. It is also told: every byte
// remembers who wrote it last and who has read it last, and two accesses by
// different blocks, one of them a write, that nothing orders are a race.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_KERNEL_WEAKMEMORY_H
#define TANDEM_CUDA_EMULATOR_KERNEL_WEAKMEMORY_H

#include "cuda/emulator/kernel/SharedRaces.h"

#include <array>
#include <bitset>
#include <memory>
#include <unordered_map>

namespace tandem::emulator::kernel {

class WeakMemory {
public:
  /// For blocks of `threads` threads, whose order among themselves `races`
  /// knows.
  WeakMemory(uint32_t threads, SharedRaces &races);
  WeakMemory(const WeakMemory &) = delete;
  WeakMemory &operator=(const WeakMemory &) = delete;
  /// All that the blocks wrote stands in memory then.
  ~WeakMemory();

  void beginBlock(const uint32_t ctaid[3]);
  /// Takes back what the block wrote: the next one does not see it.
  void endBlock();

  /// What an access ran into.
  struct Race {
    const char *kind = nullptr; ///< null: nothing
    std::array<uint32_t, 3> block;
    uint32_t thread;
    uintptr_t address; ///< of the first byte
  };
  // Called before the access is made.
  Race read(uint32_t thread, const void *pointer, size_t bytes);
  Race write(uint32_t thread, const void *pointer, size_t bytes);
  /// An atomic access of one word.
  Race atomic(uint32_t thread, const void *pointer, size_t bytes, bool reads,
              bool writes);
  /// A fence for other blocks of the device.
  void fence(uint32_t thread, bool acquires, bool releases);

private:
  /// Numbers of releases, in rising order.
  using Releases = std::vector<uint32_t>;
  /// An access: who made it, and when.
  struct Stamp {
    uint32_t block, thread;
    uint64_t time;
    bool isAtomic;
  };
  /// What a block did before a fence.
  struct Release {
    uint32_t block;
    SharedRaces::Knowledge knowledge;
  };
  /// A thread of the block knows the releases from a time on.
  struct Acquired {
    uint32_t thread;
    uint64_t time;
    Releases releases;
  };
  struct ThreadState {
    Releases observed; ///< by atomic reads since the last fence
    Releases released; ///< by the last fence
    uint64_t fencedAt = 0;
    uint32_t stamp = 0, atomicStamp = 0;
  };
  static constexpr uintptr_t kPage = 256;
  struct Page {
    std::array<uint32_t, kPage> writer = {}, reader = {}; ///< stamps; 0: none
    std::array<std::byte, kPage> original; ///< before the launch, of `written`
    std::bitset<kPage> written, mine;      ///< by any block, by this one
  };
  /// What a block left at consecutive addresses, in one go.
  struct Piece {
    std::byte *to;
    uint32_t stamp;
    std::vector<std::byte> data;
  };
  struct PastBlock {
    std::array<uint32_t, 3> id;
    std::vector<Piece> pieces;
  };

  /// With whom, and in what words; no words: with nobody.
  struct Found {
    const char *kind = nullptr;
    uint32_t stamp = 0;
  };

  Page &pageOf(uintptr_t address);
  uint32_t stampOf(uint32_t thread, bool isAtomic);
  bool knows(uint32_t thread, uint32_t stamp);
  Race raceWith(const Found &found, uintptr_t address) const;
  Releases knownTo(uint32_t thread) const;
  bool covers(const Releases &releases, const Stamp &stamp) const;
  void show(const Releases &news);
  template <typename Visit>
  Race forBytes(const void *pointer, size_t bytes, Visit visit);

  uint32_t threads;
  SharedRaces &races;
  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
  std::pair<uintptr_t, Page *> lastPage = {0, nullptr};
  std::vector<Stamp> stamps{1}; ///< number 0 is none
  std::vector<Release> releases;
  std::unordered_map<uintptr_t, Releases> published; ///< by atomic writes
  std::vector<PastBlock> blocks; ///< that ran; the last one runs

  // Of the block that runs.
  std::vector<ThreadState> states;
  std::vector<Acquired> acquired;
  std::vector<std::pair<uintptr_t, Page *>> written; ///< pages
  std::vector<std::pair<std::byte *, size_t>> shown; ///< of other blocks
  std::pair<uint32_t, uint32_t> lastKnown = {};      ///< thread, stamp
};

} // namespace tandem::emulator::kernel

#endif
