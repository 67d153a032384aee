//===- Tma.cpp - bulk copies, of tensors and plain ------------------------===//
//
// A load reads global memory when it is issued and writes shared memory when
// its barrier is looked at (Mbarriers.cpp); it rounds floats to tf32 where the
// map is of tf32. A store reads shared memory when it
// is issued, as the asynchronous proxy; writing over it before the group was
// waited for is a race.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/TensorMap.h"
#include "cuda/emulator/kernel/Functions.h"
#include "cuda/emulator/kernel/SmallFloats.h"

#include <cstring>

namespace tandem::emulator::kernel {

/// The bytes of shared memory that the box's byte `offset` is at: chunks of 16
/// are permuted within rows of 128.
static size_t swizzled(size_t address, unsigned mode) {
  const size_t masks[] = {0, 1, 3, 7};
  return address ^ ((address >> 7 & masks[mode]) << 4);
}

static const TensorMap &mapOf(Thread &thread, const void *pointer) {
  const auto &map = *static_cast<const TensorMap *>(pointer);
  if (reinterpret_cast<uintptr_t>(pointer) & 63 ||
      map.magic != TensorMap::kMagic || map.rank < 1 || map.rank > 5 ||
      map.interleave != 0 || map.swizzle > 3)
    thread.block->fail(thread, "TMA", "the tensor map is not one");
  for (unsigned i = 0; i < map.rank; ++i)
    if (map.elementStrides[i] > 1)
      thread.block->fail(thread, "TMA", "element strides are not emulated");
  return map;
}

static size_t boxBytes(const TensorMap &map) {
  size_t bytes = map.elementBytes;
  for (unsigned i = 0; i < map.rank; ++i)
    bytes *= map.boxes[i];
  return bytes;
}

/// Calls visit(offset in the box, address, bytes, inside) for each row of the
/// box, in pieces that are all inside or all outside of the tensor.
template <typename Visit>
static void forEachPiece(const TensorMap &map, const uint32_t *coordinates,
                         Visit visit) {
  size_t rows = 1;
  for (unsigned i = 1; i < map.rank; ++i)
    rows *= map.boxes[i];
  size_t rowBytes = size_t(map.boxes[0]) * map.elementBytes;
  for (size_t row = 0; row < rows; ++row) {
    bool inside = true;
    uint64_t address = map.address;
    size_t rest = row;
    for (unsigned i = 1; i < map.rank; ++i) {
      int64_t at = static_cast<int32_t>(coordinates[i]) +
                   static_cast<int64_t>(rest % map.boxes[i]);
      rest /= map.boxes[i];
      inside &= at >= 0 && at < map.sizes[i];
      address += static_cast<uint64_t>(at) * map.strides[i - 1];
    }
    int64_t first = static_cast<int32_t>(coordinates[0]);
    auto clamp = [&](int64_t at) {
      int64_t low = at < first ? first : at;
      return low > first + map.boxes[0] ? first + map.boxes[0] : low;
    };
    int64_t begin = inside ? clamp(0) : first + map.boxes[0];
    int64_t end = inside ? clamp(map.sizes[0]) : begin;
    if (end < begin)
      end = begin;
    auto offsetOf = [&](int64_t at) {
      return row * rowBytes +
             static_cast<size_t>(at - first) * map.elementBytes;
    };
    auto piece = [&](int64_t from, int64_t to, bool valid) {
      if (to > from)
        visit(offsetOf(from),
              reinterpret_cast<std::byte *>(
                  address + static_cast<uint64_t>(from) * map.elementBytes),
              static_cast<size_t>(to - from) * map.elementBytes, valid);
    };
    piece(first, begin, false);
    piece(begin, end, true);
    piece(end, first + map.boxes[0], false);
  }
}

static void requireShared(Thread &thread, const void *pointer, size_t bytes,
                          size_t alignment) {
  Block &block = *thread.block;
  size_t offset = block.offsetOf(pointer);
  if (offset >= block.sharedBytes || bytes > block.sharedBytes - offset)
    block.fail(thread, "shared memory out of bounds",
               "a bulk copy of " + std::to_string(bytes) + " bytes");
  if (reinterpret_cast<uintptr_t>(pointer) & (alignment - 1))
    block.fail(thread, "misaligned access",
               "a bulk copy at a place that is no multiple of " +
                   std::to_string(alignment));
}

/// Whoever issues a bulk copy passes what it knows to the proxy.
static void tellProxy(Thread &thread) {
  SharedRaces &races = thread.block->races;
  Clock clock;
  races.release(thread.index, clock);
  races.acquire(races.proxy(), clock);
}

namespace functions {

void tmaLoad(T t, std::byte *to, void *barrier, const void *tensorMap,
             const u32 *coordinates, u32 rank) {
  Thread &thread = threadOf(t);
  Block &block = *thread.block;
  const TensorMap &map = mapOf(thread, tensorMap);
  if (map.rank != rank)
    block.fail(thread, "TMA", "the tensor map is of another rank");
  size_t bytes = boxBytes(map);
  requireShared(thread, to, bytes, 128);
  tellProxy(thread);
  block.conflict(thread, block.races.write(block.races.proxy(),
                                           block.offsetOf(to), bytes));
  // A thread that fails never comes back: nothing may be allocated yet.
  forEachPiece(map, coordinates,
               [&](size_t, std::byte *from, size_t size, bool inside) {
                 if (inside)
                   block.checkGlobal(thread, thread.site, from, size, 0);
               });
  BulkCopy copy{to, std::vector<std::byte>(bytes)};
  auto base = reinterpret_cast<size_t>(to);
  forEachPiece(map, coordinates,
               [&](size_t offset, std::byte *from, size_t size, bool inside) {
                 for (size_t i = 0; i < size; ++i) {
                   size_t at = swizzled(base + offset + i, map.swizzle) - base;
                   copy.data[at] = inside        ? from[i]
                                   : map.nanFill ? std::byte(0xff)
                                                 : std::byte(0);
                 }
               });
  if (map.elementType == TensorMap::kTf32)
    for (size_t i = 0; i < bytes; i += 4) {
      float value;
      std::memcpy(&value, copy.data.data() + i, 4);
      uint32_t rounded = toTf32Away(value);
      std::memcpy(copy.data.data() + i, &rounded, 4);
    }
  std::vector<BulkCopy> copies;
  copies.push_back(std::move(copy));
  block.copyLater(thread, barrier, std::move(copies));
}

void tmaStore(T t, const std::byte *from, const void *tensorMap,
              const u32 *coordinates, u32 rank) {
  Thread &thread = threadOf(t);
  Block &block = *thread.block;
  const TensorMap &map = mapOf(thread, tensorMap);
  if (map.rank != rank)
    block.fail(thread, "TMA", "the tensor map is of another rank");
  size_t bytes = boxBytes(map);
  requireShared(thread, from, bytes, 128);
  tellProxy(thread);
  block.conflict(thread, block.races.read(block.races.proxy(),
                                          block.offsetOf(from), bytes));
  auto base = reinterpret_cast<size_t>(from);
  forEachPiece(map, coordinates,
               [&](size_t offset, std::byte *to, size_t size, bool inside) {
                 if (!inside)
                   return;
                 block.checkGlobal(thread, thread.site, to, size,
                                   artifact::kAccessWrite);
                 for (size_t i = 0; i < size; ++i)
                   to[i] =
                       from[swizzled(base + offset + i, map.swizzle) - base];
               });
  block.races.release(block.races.proxy(), thread.openBulk);
}

void bulkLoad(T t, std::byte *to, void *barrier, const std::byte *from,
              u32 bytes, u32, u64, u32, u32) {
  Thread &thread = threadOf(t);
  Block &block = *thread.block;
  requireShared(thread, to, bytes, 16);
  if (bytes % 16 || reinterpret_cast<uintptr_t>(from) & 15)
    block.fail(thread, "misaligned access", "a bulk copy");
  tellProxy(thread);
  block.conflict(thread, block.races.write(block.races.proxy(),
                                           block.offsetOf(to), bytes));
  block.checkGlobal(thread, thread.site, from, bytes, 0);
  std::vector<BulkCopy> copies;
  copies.push_back({to, std::vector<std::byte>(from, from + bytes)});
  block.copyLater(thread, barrier, std::move(copies));
}

void bulkStore(T t, std::byte *to, const std::byte *from, u32 bytes, u64, u32) {
  Thread &thread = threadOf(t);
  Block &block = *thread.block;
  requireShared(thread, from, bytes, 16);
  if (bytes % 16 || reinterpret_cast<uintptr_t>(to) & 15)
    block.fail(thread, "misaligned access", "a bulk copy");
  tellProxy(thread);
  block.conflict(thread, block.races.read(block.races.proxy(),
                                          block.offsetOf(from), bytes));
  block.checkGlobal(thread, thread.site, to, bytes, artifact::kAccessWrite);
  std::memcpy(to, from, bytes);
  block.races.release(block.races.proxy(), thread.openBulk);
}

void bulkCommit(T t) {
  threadOf(t).bulkGroups.push_back(std::move(threadOf(t).openBulk));
  threadOf(t).openBulk.clear();
}
void bulkWait(T t, u32 most) {
  Thread &thread = threadOf(t);
  while (thread.bulkGroups.size() > most) {
    thread.block->races.acquire(thread.index, thread.bulkGroups.front());
    thread.bulkGroups.erase(thread.bulkGroups.begin());
  }
}

} // namespace functions
} // namespace tandem::emulator::kernel
