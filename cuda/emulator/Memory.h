//===- Memory.h - the memory of the emulated devices ----------------------===//
//
// Device and pinned memory are host memory in one reserved piece of address
// space. An address is not given out again before the space is used up, and
// there is room between allocations, so that a use after free and an access
// past the end are seen as such. Fresh and freed bytes are 0xFF: a NaN in every
// floating-point type.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_MEMORY_H
#define TANDEM_CUDA_EMULATOR_MEMORY_H

#include "cuda/emulator/Operation.h"

#include <deque>
#include <map>
#include <string>

namespace tandem::emulator {

/// What a CUmemoryPool points to.
struct Pool {
  Device *device = nullptr;
  bool isDefault = false;
  size_t maxBytes = 0; ///< 0: the device's
  uint64_t threshold = 0;
  size_t used = 0, usedHigh = 0;
  int flags[4] = {0, 1, 1, 1};       ///< the reuse attributes, by their numbers
  std::vector<const Device *> users; ///< other devices that have access
};

enum class MemoryKind {
  Device,
  Pinned,
  Registered, ///< the caller's own memory, pinned
};

struct Allocation {
  uint64_t number = 0; ///< in the order of allocation, from 1
  uintptr_t begin = 0;
  size_t bytes = 0;
  MemoryKind kind = MemoryKind::Device;
  Device *device = nullptr;
  Pool *pool = nullptr;
  /// The call that frees it, once it was made; the memory dies when it runs.
  OriginPtr freedBy;

  uintptr_t end() const { return begin + bytes; }
  bool contains(uintptr_t from, size_t count) const {
    return from >= begin && from - begin <= bytes &&
           count <= bytes - (from - begin);
  }
};

class Memory {
public:
  /// Returns a new allocation, or null if there is no address space left. Its
  /// bytes are zero; `poison` makes them as they should be.
  Allocation *allocate(size_t bytes, MemoryKind kind, Device *device);
  /// Adds memory that is not ours.
  Allocation *enroll(uintptr_t begin, size_t bytes, Device *device);
  /// Ends the life of an allocation: its bytes are poisoned, it is kept among
  /// the dead for messages.
  void release(Allocation &allocation);

  /// Forgets the dead, and numbers anew; nothing is live.
  void restart();

  /// The pool goes away; its memory stays.
  void leave(const Pool &pool);

  static void poison(const Allocation &allocation);

  /// Returns the live allocation that holds the byte at `at`, or null.
  Allocation *find(uintptr_t at);
  /// Returns the dead allocation that held it last, or null.
  const Allocation *findDead(uintptr_t at) const;
  /// Returns "memory 3 at byte 128", "freed memory 3 at byte 0", "no memory of
  /// the device (0x...)".
  std::string describe(uintptr_t at);

  const std::map<uintptr_t, Allocation> &allocations() const { return live; }

private:
  bool reserve();
  uintptr_t place(size_t bytes);

  uintptr_t base = 0, limit = 0; ///< the reserved address space
  uintptr_t cursor = 0;          ///< where the search for room begins
  uint64_t count = 0;
  std::map<uintptr_t, Allocation> live, dead;
  std::deque<std::pair<uintptr_t, size_t>> poisoned; ///< dead, still resident
  size_t poisonedBytes = 0;
};

} // namespace tandem::emulator

#endif
