//===- AsyncCopies.cpp - cp.async -----------------------------------------===//
//
// A copy is made at the wait that covers its group, not before: who reads
// without waiting reads what was there, and is told so.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/kernel/Functions.h"

#include <cstring>

namespace tandem::emulator::kernel::functions {

static void start(T base, std::byte *to, const std::byte *from, u32 bytes,
                  u32 read) {
  Thread &thread = threadOf(base);
  Block &block = *thread.block;
  if (read > bytes)
    block.fail(thread, "cp.async",
               "reads " + std::to_string(read) + " of " +
                   std::to_string(bytes) + " bytes");
  if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) &
      (bytes - 1))
    block.fail(thread, "misaligned access",
               "cp.async of " + std::to_string(bytes) + " bytes");
  block.checkShared(thread, to, bytes, artifact::kAccessWrite);
  if (block.isShared(from))
    block.fail(thread, "cp.async", "the source is in shared memory");
  if (read)
    block.checkGlobal(thread, thread.site, from, read, 0);
  block.races.beginCopy(thread.index, block.offsetOf(to), bytes);
  thread.copies.push_back({to, from, bytes, read});
  ++thread.openCopies;
}

static void land(Thread &thread, size_t count) {
  Block &block = *thread.block;
  for (size_t i = 0; i < count; ++i) {
    const AsyncCopy &copy = thread.copies[i];
    std::memcpy(copy.to, copy.from, copy.read);
    std::memset(copy.to + copy.read, 0, copy.bytes - copy.read);
    block.races.endCopy(thread.index, block.offsetOf(copy.to), copy.bytes);
  }
  thread.copies.erase(thread.copies.begin(),
                      thread.copies.begin() + static_cast<ptrdiff_t>(count));
}

void cpAsync4(T t, std::byte *to, const std::byte *from) {
  start(t, to, from, 4, 4);
}
void cpAsync8(T t, std::byte *to, const std::byte *from) {
  start(t, to, from, 8, 8);
}
void cpAsync16(T t, std::byte *to, const std::byte *from) {
  start(t, to, from, 16, 16);
}
void cpAsync4Some(T t, std::byte *to, const std::byte *from, u32 read) {
  start(t, to, from, 4, read);
}
void cpAsync8Some(T t, std::byte *to, const std::byte *from, u32 read) {
  start(t, to, from, 8, read);
}
void cpAsync16Some(T t, std::byte *to, const std::byte *from, u32 read) {
  start(t, to, from, 16, read);
}

void cpAsyncCommit(T base) {
  Thread &thread = threadOf(base);
  thread.copyGroups.push_back(thread.openCopies);
  thread.openCopies = 0;
}

void cpAsyncWait(T base, u32 most) {
  Thread &thread = threadOf(base);
  if (thread.copyGroups.size() <= most)
    return;
  size_t groups = thread.copyGroups.size() - most, count = 0;
  for (size_t i = 0; i < groups; ++i)
    count += thread.copyGroups[i];
  land(thread, count);
  thread.copyGroups.erase(thread.copyGroups.begin(),
                          thread.copyGroups.begin() +
                              static_cast<ptrdiff_t>(groups));
}

void cpAsyncWaitAll(T base) {
  Thread &thread = threadOf(base);
  land(thread, thread.copies.size());
  thread.copyGroups.clear();
  thread.openCopies = 0;
}

} // namespace tandem::emulator::kernel::functions
