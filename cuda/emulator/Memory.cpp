//===- Memory.cpp - the memory of the emulated devices --------------------===//
#include "cuda/emulator/Memory.h"

#include <cstdio>
#include <cstring>
#include <sys/mman.h>

using namespace tandem::emulator;

namespace {
/// Allocations begin at multiples of this, and are at least this far apart.
constexpr size_t kAlignment = 512;
/// Where the space is asked for, so that addresses are the same in every run
/// where nothing else is there.
constexpr uintptr_t kWanted = 0x200000000000;
constexpr size_t kSpace = size_t(1) << 40;
constexpr size_t kPage = 4096;
/// Freed bytes that stay resident, so that a late use of them reads NaNs.
constexpr size_t kKeptPoison = size_t(64) << 20;
constexpr size_t kKeptDead = 4096;

size_t roundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}
} // namespace

bool Memory::reserve() {
  // Only what is touched takes memory; a process may have a limit on its
  // address space, so less will do.
  for (size_t bytes = kSpace; bytes >= (size_t(1) << 28); bytes /= 2) {
    void *at =
        mmap(reinterpret_cast<void *>(kWanted), bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
      continue;
    base = cursor = reinterpret_cast<uintptr_t>(at);
    limit = base + bytes;
    return true;
  }
  return false;
}

/// Returns room for `bytes` at or after the cursor, going round once, or 0.
uintptr_t Memory::place(size_t bytes) {
  if (!base && !reserve())
    return 0;
  for (int round = 0; round < 2; ++round) {
    uintptr_t at = cursor;
    for (auto it = live.lower_bound(at);; ++it) {
      // Memory that is not ours has addresses outside of the space.
      uintptr_t next = it == live.end() || it->first >= limit
                           ? limit
                           : std::max(it->first, base);
      if (next >= at && next - at >= bytes)
        return at;
      if (next == limit)
        break;
      at = roundUp(it->second.end() + kAlignment, kAlignment);
    }
    cursor = base;
  }
  return 0;
}

Allocation *Memory::allocate(size_t bytes, MemoryKind where, Device *device) {
  if (bytes > kSpace)
    return nullptr;
  const size_t room = roundUp(bytes + kAlignment, kAlignment);
  const uintptr_t at = place(room);
  if (!at)
    return nullptr;
  cursor = at + room;
  for (auto it = dead.lower_bound(at); it != dead.end() && it->first < cursor;)
    it = dead.erase(it);
  Allocation &allocation = live[at];
  allocation.number = ++count;
  allocation.begin = at;
  allocation.bytes = bytes;
  allocation.kind = where;
  allocation.device = device;
  return &allocation;
}

Allocation *Memory::enroll(uintptr_t begin, size_t bytes, Device *device) {
  Allocation &allocation = live[begin];
  allocation.number = ++count;
  allocation.begin = begin;
  allocation.bytes = bytes;
  allocation.kind = MemoryKind::Registered;
  allocation.device = device;
  return &allocation;
}

void Memory::poison(const Allocation &allocation) {
  std::memset(reinterpret_cast<void *>(allocation.begin), 0xFF,
              allocation.bytes);
}

void Memory::release(Allocation &allocation) {
  const uintptr_t begin = allocation.begin;
  if (allocation.kind != MemoryKind::Registered) {
    poison(allocation);
    poisoned.emplace_back(begin, allocation.bytes);
    poisonedBytes += allocation.bytes;
    dead[begin] = allocation;
    if (dead.size() > kKeptDead)
      dead.erase(dead.begin());
  }
  live.erase(begin);
  while (poisonedBytes > kKeptPoison) {
    // The kernel takes whole pages back; those at the ends are shared.
    auto [at, bytes] = poisoned.front();
    poisoned.pop_front();
    poisonedBytes -= bytes;
    uintptr_t from = roundUp(at, kPage), to = (at + bytes) / kPage * kPage;
    bool reused = false;
    auto it = live.lower_bound(at);
    if (it != live.end() && it->first < at + bytes)
      reused = true;
    if (to > from && !reused)
      madvise(reinterpret_cast<void *>(from), to - from, MADV_DONTNEED);
  }
}

void Memory::restart() {
  dead.clear();
  count = 0;
}

void Memory::leave(const Pool &pool) {
  for (auto &[begin, allocation] : live)
    if (allocation.pool == &pool)
      allocation.pool = nullptr;
}

Allocation *Memory::find(uintptr_t at) {
  auto it = live.upper_bound(at);
  if (it == live.begin())
    return nullptr;
  Allocation &allocation = std::prev(it)->second;
  return allocation.contains(at, 1) ? &allocation : nullptr;
}

const Allocation *Memory::findDead(uintptr_t at) const {
  auto it = dead.upper_bound(at);
  if (it == dead.begin())
    return nullptr;
  const Allocation &allocation = std::prev(it)->second;
  return allocation.contains(at, 1) ? &allocation : nullptr;
}

std::string Memory::describe(uintptr_t at) {
  auto text = [&](const Allocation &in) {
    const char *kind =
        in.kind == MemoryKind::Device ? "memory " : "host memory ";
    return kind + std::to_string(in.number) + " at byte " +
           std::to_string(at - in.begin);
  };
  if (const Allocation *in = find(at))
    return text(*in);
  if (const Allocation *in = findDead(at))
    return "freed " + text(*in);
  char address[32];
  std::snprintf(address, sizeof(address), "%#llx",
                static_cast<unsigned long long>(at));
  return std::string("no memory of the device (") + address + ")";
}
