//===- GlobalMemory.cpp - checks and reports accesses to global memory ----===//
#include "cuda/emulator/kernel/GlobalMemory.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tandem::emulator::kernel {

/// Launches after which the map of an allocation that nobody accessed is freed.
static constexpr unsigned kKeep = 64;

static uintptr_t addressOf(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}
static bool holds(MemoryRange range, uintptr_t address) {
  return address >= addressOf(range.begin) && address < addressOf(range.end);
}

void AccessMap::markMany(size_t first, size_t last) {
  for (size_t i = first; i <= last;) {
    size_t word = i / 64, end = std::min(last, word * 64 + 63);
    words[word] |= (~uint64_t(0) >> (63 - (end - i))) << (i % 64);
    touched[word / 64] = 1;
    i = end + 1;
  }
}

template <typename Visit> void AccessMap::take(Visit visit) {
  size_t begin = 0, end = 0; // the range that may still grow, in units
  for (size_t page = 0; page < touched.size(); ++page) {
    if (!touched[page])
      continue;
    touched[page] = 0;
    size_t last = std::min(words.size(), page * 64 + 64);
    for (size_t w = page * 64; w < last; ++w) {
      uint64_t bits = std::exchange(words[w], 0);
      for (size_t at = 0; bits;) {
        size_t skip = std::countr_zero(bits);
        at += skip;
        bits >>= skip;
        size_t length = std::countr_one(bits);
        size_t first = w * 64 + at;
        if (first != end) {
          if (end > begin)
            visit(begin * kUnit, end * kUnit);
          begin = first;
        }
        end = first + length;
        bits = length < 64 ? bits >> length : 0;
        at += length;
      }
    }
  }
  if (end > begin)
    visit(begin * kUnit, end * kUnit);
}

AccessMap &AccessMaps::map(MemoryRange allocation, Kind kind) {
  uintptr_t low = addressOf(allocation.begin), high = addressOf(allocation.end);
  Entry &entry = entries[{low, high}];
  entry.unused = 0;
  auto &map = entry.maps[kind];
  if (!map)
    map = std::make_unique<AccessMap>(high - low);
  return *map;
}

void AccessMaps::report(MemoryObserver &observer) {
  for (auto it = entries.begin(); it != entries.end();) {
    auto &[key, entry] = *it;
    size_t bytes = key.second - key.first;
    for (int kind = 0; kind < Kinds; ++kind)
      if (entry.maps[kind])
        entry.maps[kind]->take([&, low = key.first](size_t begin, size_t end) {
          observer.access(reinterpret_cast<const void *>(low + begin),
                          std::min(end, bytes) - begin,
                          kind == Write || kind == AtomicWrite,
                          kind >= AtomicRead);
        });
    it = ++entry.unused > kKeep ? entries.erase(it) : std::next(it);
  }
}

void GlobalMemory::addConstant(const void *data, size_t bytes) {
  constants.push_back({data, static_cast<const std::byte *>(data) + bytes});
}

void GlobalMemory::flush() {
  if (observer)
    maps.report(*observer);
}

const char *GlobalMemory::start(Site &site, const void *pointer, size_t bytes,
                                bool isWrite, bool isAtomic) {
  site = {};
  uintptr_t begin = addressOf(pointer);
  MemoryRange range;
  for (const MemoryRange &one : constants)
    if (holds(one, begin))
      range = one;
  bool isConstant = range.begin != range.end;
  if (!isConstant && !observer)
    return nullptr;
  if (!isConstant)
    range = observer->allocation(pointer);
  if (!holds(range, begin))
    return "global memory: the address is in no allocation";
  if (bytes > addressOf(range.end) - begin)
    return "global memory: the access goes past the end of its allocation";
  if (isConstant && isWrite)
    return "global memory: a write to constant data";
  site.low = addressOf(range.begin);
  site.bytes = addressOf(range.end) - site.low;
  if (!isConstant) {
    int kind = (isAtomic ? AccessMaps::AtomicRead : AccessMaps::Read) + isWrite;
    site.map = &maps.map(range, static_cast<AccessMaps::Kind>(kind));
    site.map->mark(begin - site.low, bytes);
  }
  return nullptr;
}

} // namespace tandem::emulator::kernel
