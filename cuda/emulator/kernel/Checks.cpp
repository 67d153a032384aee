//===- Checks.cpp - accesses to memory are looked at before they are made -===//
#include "cuda/emulator/kernel/Functions.h"

#include <utility>

namespace tandem::emulator::kernel {

static std::string text(const void *pointer, size_t bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string hex;
  for (auto value = reinterpret_cast<uintptr_t>(pointer); value; value >>= 4)
    hex.insert(hex.begin(), digits[value & 15]);
  return std::to_string(bytes) + " bytes at 0x" + hex;
}

void Block::conflict(const Thread &thread, const Conflict &found) {
  if (found.kind == Conflict::None)
    return;
  static const char *const names[] = {
      "",
      "shared memory race: read after write without synchronization",
      "shared memory race: write after write without synchronization",
      "shared memory race: write after read without synchronization",
      "shared memory: an asynchronous copy into these bytes was not waited for",
      "shared memory: a write without fence.proxy.async before TMA or wgmma",
      "shared memory: an asynchronous operation still reads these bytes"};
  std::string detail = "byte " + std::to_string(found.offset);
  if (found.thread == Conflict::kSeveral)
    detail += ", other threads";
  else if (found.thread == races.proxy())
    detail += ", the asynchronous proxy";
  else if (found.thread == races.products())
    detail += ", the products of warpgroups";
  else
    detail += ", other thread " + std::to_string(found.thread);
  error(thread, names[found.kind], detail);
}

void Block::conflict(const Thread &thread, const WeakMemory::Race &race) {
  if (!race.kind)
    return;
  const auto &[x, y, z] = race.block;
  error(thread, std::string("race between blocks: ") + race.kind,
        text(reinterpret_cast<const void *>(race.address), 1) + ", block (" +
            std::to_string(x) + ", " + std::to_string(y) + ", " +
            std::to_string(z) + "), its thread " + std::to_string(race.thread) +
            ": no fence, atomic and fence hand it over");
}

void Block::checkShared(const Thread &thread, const void *pointer, size_t bytes,
                        uint32_t flags) {
  size_t offset = offsetOf(pointer);
  if (offset >= sharedBytes || bytes > sharedBytes - offset)
    fail(thread, "shared memory out of bounds",
         std::to_string(bytes) + " bytes at offset " +
             std::to_string(static_cast<int64_t>(offset)) + " of " +
             std::to_string(sharedBytes));
  Conflict found = flags & artifact::kAccessAtomic
                       ? races.atomic(thread.index, offset, bytes)
                   : flags & artifact::kAccessWrite
                       ? races.write(thread.index, offset, bytes)
                       : races.read(thread.index, offset, bytes);
  if (found.kind != Conflict::None)
    conflict(thread, found);
}

void Block::checkGlobal(const Thread &thread, uint32_t site,
                        const void *pointer, size_t bytes, uint32_t flags) {
  const char *why =
      global.access(site, pointer, bytes, flags & artifact::kAccessWrite,
                    flags & artifact::kAccessAtomic);
  if (!why && !weak)
    return;
  bool local =
      isLocal(thread, pointer) &&
      isLocal(thread, static_cast<const std::byte *>(pointer) + bytes - 1);
  if (local)
    return;
  if (why)
    fail(thread, why, text(pointer, bytes));
  if (flags & artifact::kAccessAtomic)
    conflict(thread, weak->atomic(thread.index, pointer, bytes,
                                  !(flags & artifact::kAccessWrite) ||
                                      flags & artifact::kAccessModifies,
                                  flags & artifact::kAccessWrite));
  else
    conflict(thread, flags & artifact::kAccessWrite
                         ? weak->write(thread.index, pointer, bytes)
                         : weak->read(thread.index, pointer, bytes));
}

namespace functions {

void checkAccess(T base, const void *pointer, u32 bytes, u32 flags, u32 site) {
  Thread &thread = threadOf(base);
  Block &block = *thread.block;
  uintptr_t low = (uintptr_t(1) << (flags >> artifact::kAccessAlignShift)) - 1;
  bool isAligned = !(reinterpret_cast<uintptr_t>(pointer) & low);
  if (isAligned && !(flags & artifact::kAccessShared) && !block.weak &&
      block.global.again(site, pointer, bytes)) {
    if (flags & artifact::kAccessAtomic)
      block.polled(thread);
    return;
  }
  u32 before = std::exchange(thread.site, site);
  if (!isAligned)
    block.fail(thread, "misaligned access",
               text(pointer, bytes) + ", expected a multiple of " +
                   std::to_string(low + 1));
  if ((flags & artifact::kAccessShared) || block.isShared(pointer))
    block.checkShared(thread, pointer, bytes, flags);
  else
    block.checkGlobal(thread, site, pointer, bytes, flags);
  thread.site = before;
  if (flags & artifact::kAccessAtomic)
    block.polled(thread);
}

void checkRange(T base, const void *pointer, u64 bytes, u32 flags, u32 site) {
  if (bytes == 0)
    return;
  Thread &thread = threadOf(base);
  u32 before = std::exchange(thread.site, site);
  if ((flags & artifact::kAccessShared) || thread.block->isShared(pointer))
    thread.block->checkShared(thread, pointer, bytes, flags);
  else
    thread.block->checkGlobal(thread, site, pointer, bytes, flags);
  thread.site = before;
}

void checkLocal(T base, const void *pointer, u32 bytes, const void *variable,
                u64 variableBytes, u32 site) {
  auto offset = static_cast<u64>(static_cast<const std::byte *>(pointer) -
                                 static_cast<const std::byte *>(variable));
  if (offset < variableBytes && bytes <= variableBytes - offset)
    return;
  Thread &thread = threadOf(base);
  thread.site = site;
  thread.block->fail(thread, "local memory out of bounds",
                     std::to_string(bytes) + " bytes at offset " +
                         std::to_string(static_cast<int64_t>(offset)) + " of " +
                         std::to_string(variableBytes));
}

template <bool acquires, bool releases> static void fence(T base) {
  Thread &thread = threadOf(base);
  if (thread.block->weak)
    thread.block->weak->fence(thread.index, acquires, releases);
}
void fenceBoth(T base) { fence<true, true>(base); }
void fenceAcquire(T base) { fence<true, false>(base); }
void fenceRelease(T base) { fence<false, true>(base); }

void fenceProxy(T base) {
  Thread &thread = threadOf(base);
  thread.block->races.passToProxies(thread.index);
  fenceMbarriers(base);
}

void fenceMbarriers(T base) {
  Thread &thread = threadOf(base);
  for (size_t offset : thread.newMbarriers)
    if (auto it = thread.block->mbarriers.find(offset);
        it != thread.block->mbarriers.end())
      it->second.isFenced = true;
  thread.newMbarriers.clear();
}

void trap(T base) {
  Thread &thread = threadOf(base);
  thread.block->fail(thread, "trap");
}

} // namespace functions
} // namespace tandem::emulator::kernel
