//===- GlobalMemory.cpp - checks and reports accesses to global memory ----===//
#include "cuda/emulator/kernel/GlobalMemory.h"

namespace tandem::emulator::kernel {

void GlobalMemory::addConstant(const void *data, size_t bytes) {
  constants.push_back({data, static_cast<const std::byte *>(data) + bytes});
}

void GlobalMemory::report(Site &site) {
  if (site.runBegin != site.runEnd && observer && !site.isConstant)
    observer->access(reinterpret_cast<const void *>(site.runBegin),
                     site.runEnd - site.runBegin, site.isWrite, site.isAtomic);
  site.runBegin = site.runEnd = 0;
}

void GlobalMemory::flush() {
  for (Site &site : sites)
    report(site);
}

const char *GlobalMemory::start(Site &site, uintptr_t begin, size_t bytes,
                                bool isWrite, bool isAtomic) {
  report(site);
  site.isWrite = isWrite;
  site.isAtomic = isAtomic;
  if (begin < site.low || begin + bytes > site.high || site.isConstant) {
    auto find = [&]() -> MemoryRange {
      for (const MemoryRange &range : constants)
        if (begin - reinterpret_cast<uintptr_t>(range.begin) <
            reinterpret_cast<uintptr_t>(range.end) -
                reinterpret_cast<uintptr_t>(range.begin)) {
          site.isConstant = true;
          return range;
        }
      site.isConstant = false;
      if (!observer)
        return {nullptr, reinterpret_cast<const void *>(~uintptr_t(0))};
      return observer->allocation(reinterpret_cast<const void *>(begin));
    };
    MemoryRange range = find();
    site.low = reinterpret_cast<uintptr_t>(range.begin);
    site.high = reinterpret_cast<uintptr_t>(range.end);
    if (begin < site.low || begin >= site.high) {
      site.low = 1;
      site.high = 0;
      return "global memory: the address is in no allocation";
    }
    if (bytes > site.high - begin)
      return "global memory: the access goes past the end of its allocation";
    if (site.isConstant && isWrite)
      return "global memory: a write to constant data";
  }
  site.runBegin = begin;
  site.runEnd = begin + bytes;
  return nullptr;
}

} // namespace tandem::emulator::kernel
