//===- GlobalMemory.h - checks and reports accesses to global memory ------===//
//
// One record per place in the code that accesses memory: the allocation that it
// accessed last, so that a check is a comparison. What was accessed is a bit
// per four bytes in a map of the allocation, and becomes ranges when the launch
// has ended: the observer hears of each byte once for each kind of access.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_KERNEL_GLOBALMEMORY_H
#define TANDEM_CUDA_EMULATOR_KERNEL_GLOBALMEMORY_H

#include "cuda/emulator/KernelEmulator.h"

#include <array>
#include <map>
#include <memory>
#include <vector>

namespace tandem::emulator::kernel {

/// Which units of an allocation were accessed.
class AccessMap {
public:
  static constexpr size_t kUnit = 4; ///< bytes of a bit

  explicit AccessMap(size_t bytes)
      : words((bytes / kUnit + 64) / 64 + 1), touched(words.size() / 64 + 1) {}

  void mark(size_t offset, size_t bytes) {
    size_t first = offset / kUnit, last = (offset + bytes - 1) / kUnit;
    size_t word = first / 64;
    touched[word / 64] = 1;
    if (word == last / 64) {
      words[word] |= (~uint64_t(0) >> (63 - (last - first))) << (first % 64);
      return;
    }
    markMany(first, last);
  }

  /// Calls visit(begin, end) with the ranges, in bytes, and forgets them.
  template <typename Visit> void take(Visit visit);

private:
  void markMany(size_t first, size_t last);

  std::vector<uint64_t> words;
  std::vector<uint8_t> touched; ///< of each 64 words: whether one is not 0
};

/// The maps of a launch; a host thread keeps them for the next, all clear.
class AccessMaps {
public:
  enum Kind { Read, Write, AtomicRead, AtomicWrite, Kinds };

  AccessMap &map(MemoryRange allocation, Kind kind);
  /// Tells the observer, allocation by allocation.
  void report(MemoryObserver &observer);

private:
  using Key = std::pair<uintptr_t, uintptr_t>;
  struct Entry {
    std::array<std::unique_ptr<AccessMap>, Kinds> maps;
    unsigned unused = 0; ///< launches since the last use
  };
  std::map<Key, Entry> entries;
};

class GlobalMemory {
public:
  /// `observer` may be null: every address is good. `sites`: places in the
  /// code. The ranges of `constants` may be read without asking.
  GlobalMemory(MemoryObserver *observer, size_t sites, AccessMaps &maps)
      : observer(observer), maps(maps), sites(sites) {}

  /// What may be read beside the observer's memory, and is not reported.
  void addConstant(const void *data, size_t bytes);

  /// True if the place accessed the same allocation before: the access is
  /// allowed, and noted.
  bool again(uint32_t site, const void *pointer, size_t bytes) {
    Site &s = sites[site];
    auto offset = reinterpret_cast<uintptr_t>(pointer) - s.low;
    if (offset >= s.bytes || bytes > s.bytes - offset)
      return false;
    if (s.map)
      s.map->mark(offset, bytes);
    return true;
  }

  /// Returns null, or why the access is not allowed.
  const char *access(uint32_t site, const void *pointer, size_t bytes,
                     bool isWrite, bool isAtomic) {
    return again(site, pointer, bytes)
               ? nullptr
               : start(sites[site], pointer, bytes, isWrite, isAtomic);
  }

  /// Tells the observer of everything.
  void flush();

private:
  struct Site {
    uintptr_t low = 0, bytes = 0; ///< the allocation
    AccessMap *map = nullptr;     ///< null: not reported
  };

  const char *start(Site &site, const void *pointer, size_t bytes, bool isWrite,
                    bool isAtomic);

  MemoryObserver *observer;
  AccessMaps &maps;
  std::vector<Site> sites;
  std::vector<MemoryRange> constants;
};

} // namespace tandem::emulator::kernel

#endif
