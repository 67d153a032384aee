//===- GlobalMemory.h - checks and reports accesses to global memory ------===//
//
// One record per place in the code that accesses memory: the allocation that
// it accessed last, so that a check is two comparisons, and the bytes accessed
// since the observer last heard of it, so that a thousand threads that read
// adjacent bytes are one report.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_KERNEL_GLOBALMEMORY_H
#define TANDEM_CUDA_EMULATOR_KERNEL_GLOBALMEMORY_H

#include "cuda/emulator/KernelEmulator.h"

#include <vector>

namespace tandem::emulator::kernel {

class GlobalMemory {
public:
  /// `observer` may be null: every address is good. `sites`: places in the
  /// code. The ranges of `constants` may be read without asking.
  GlobalMemory(MemoryObserver *observer, size_t sites)
      : observer(observer), sites(sites) {}

  /// What may be read beside the observer's memory, and is not reported.
  void addConstant(const void *data, size_t bytes);

  /// Returns null, or why the access is not allowed.
  const char *access(uint32_t site, const void *pointer, size_t bytes,
                     bool isWrite, bool isAtomic) {
    Site &s = sites[site];
    auto begin = reinterpret_cast<uintptr_t>(pointer);
    // Touching what came last: one run that grows.
    if (begin >= s.low && begin <= s.runEnd && begin + bytes <= s.high &&
        begin + bytes >= s.runBegin && s.isWrite == isWrite &&
        s.isAtomic == isAtomic) {
      if (begin < s.runBegin)
        s.runBegin = begin;
      if (begin + bytes > s.runEnd)
        s.runEnd = begin + bytes;
      return nullptr;
    }
    return start(s, begin, bytes, isWrite, isAtomic);
  }

  /// Tells the observer of everything that it has not heard of.
  void flush();

private:
  struct Site {
    uintptr_t low = 1, high = 0;        ///< of the allocation
    uintptr_t runBegin = 0, runEnd = 0; ///< accessed, not yet reported
    bool isWrite = false, isAtomic = false;
    bool isConstant = false;
  };

  const char *start(Site &site, uintptr_t begin, size_t bytes, bool isWrite,
                    bool isAtomic);
  void report(Site &site);

  MemoryObserver *observer;
  std::vector<Site> sites;
  std::vector<MemoryRange> constants;
};

} // namespace tandem::emulator::kernel

#endif
