//===- Mbarriers.cpp - barriers in shared memory --------------------------===//
//
// A barrier's state is kept beside the memory; its eight bytes hold a mark, so
// that a barrier that was overwritten is noticed. A phase ends when all have
// arrived and the bytes that were announced have come. Copies that a barrier
// waits for are made when somebody looks at it, not before.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/kernel/Functions.h"

#include <cstring>

namespace tandem::emulator::kernel {

static constexpr uint64_t kMark = 0x7265697272616221;

/// The barrier at `pointer`, which must have been initialized.
static Mbarrier &find(Thread &thread, const void *pointer) {
  Block &block = *thread.block;
  if (!block.isShared(pointer) || reinterpret_cast<uintptr_t>(pointer) & 7)
    block.fail(thread, "mbarrier",
               "the address is not in shared memory, or "
               "not at a multiple of 8");
  uint64_t mark = 0;
  std::memcpy(&mark, pointer, 8);
  auto it = block.mbarriers.find(block.offsetOf(pointer));
  if (it == block.mbarriers.end() || mark != kMark)
    block.fail(thread, "mbarrier", "it is not initialized");
  return it->second;
}

static void completeIfDone(Block &block, Mbarrier &barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0)
    return;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  barrier.completed = std::move(barrier.arriving);
  barrier.arriving.clear();
  block.progressed();
}

static uint64_t arrive(Thread &thread, void *pointer, uint32_t count,
                       int64_t bytes) {
  Block &block = *thread.block;
  Mbarrier &barrier = find(thread, pointer);
  if (count > barrier.pending)
    block.fail(thread, "mbarrier",
               "more arrivals than the " + std::to_string(barrier.expected) +
                   " that it was initialized for");
  uint64_t state = barrier.phase;
  block.races.release(thread.index, barrier.arriving);
  barrier.bytes += bytes;
  barrier.pending -= count;
  completeIfDone(block, barrier);
  return state;
}

/// Makes the copies that the barrier waits for.
static void landCopies(Block &block, Mbarrier &barrier) {
  auto copies = std::move(barrier.copies);
  barrier.copies.clear();
  for (BulkCopy &copy : copies) {
    std::memcpy(copy.to, copy.data.data(), copy.data.size());
    block.races.endCopy(block.races.proxy(), block.offsetOf(copy.to),
                        copy.data.size());
    block.races.release(block.races.proxy(), barrier.arriving);
    barrier.bytes -= static_cast<int64_t>(copy.data.size());
    if (copy.isLast)
      completeIfDone(block, barrier);
  }
}

void Block::copyLater(Thread &thread, void *pointer,
                      std::vector<BulkCopy> copies) {
  Mbarrier &barrier = find(thread, pointer);
  if (!barrier.isFenced)
    error(thread, "mbarrier",
          "a copy uses it without fence.mbarrier_init or fence.proxy.async "
          "behind its initialization");
  for (BulkCopy &copy : copies) {
    races.beginCopy(races.proxy(), offsetOf(copy.to), copy.data.size());
    barrier.copies.push_back(std::move(copy));
  }
  if (!barrier.copies.empty())
    barrier.copies.back().isLast = true;
}

namespace functions {

void mbarrierInit(T t, void *pointer, u32 count) {
  Thread &thread = threadOf(t);
  Block &block = *thread.block;
  if (reinterpret_cast<uintptr_t>(pointer) & 7)
    block.fail(thread, "misaligned access", "mbarrier.init");
  block.checkShared(thread, pointer, 8, artifact::kAccessWrite);
  if (count == 0 || count >= 1u << 20)
    block.fail(thread, "mbarrier", "a count of " + std::to_string(count));
  std::memcpy(pointer, &kMark, 8);
  Mbarrier barrier;
  barrier.expected = barrier.pending = count;
  block.mbarriers[block.offsetOf(pointer)] = std::move(barrier);
  thread.newMbarriers.push_back(block.offsetOf(pointer));
}
void mbarrierInval(T t, void *pointer) {
  find(threadOf(t), pointer);
  threadOf(t).block->mbarriers.erase(threadOf(t).block->offsetOf(pointer));
}
u64 mbarrierArrive(T t, void *pointer) {
  return arrive(threadOf(t), pointer, 1, 0);
}
u64 mbarrierArriveCount(T t, void *pointer, u32 count) {
  return arrive(threadOf(t), pointer, count, 0);
}
u64 mbarrierArriveExpect(T t, void *pointer, u32 bytes) {
  return arrive(threadOf(t), pointer, 1, bytes);
}
void mbarrierExpect(T t, void *pointer, u32 bytes) {
  find(threadOf(t), pointer).bytes += bytes;
}

/// Whether the phase that `done` asks for has ended; then the thread knows what
/// those who arrived did.
template <typename Done>
static bool test(Thread &thread, void *pointer, Done done) {
  Mbarrier &barrier = find(thread, pointer);
  landCopies(*thread.block, barrier);
  if (!done(barrier.phase))
    return false;
  thread.block->races.acquire(thread.index, barrier.completed);
  return true;
}

u32 mbarrierTest(T t, void *pointer, u64 state) {
  bool done =
      test(threadOf(t), pointer, [&](uint64_t phase) { return phase > state; });
  if (!done)
    threadOf(t).block->polled(threadOf(t));
  return done;
}
u32 mbarrierTestParity(T t, void *pointer, u32 parity) {
  bool done = test(threadOf(t), pointer,
                   [&](uint64_t phase) { return (phase & 1) != (parity & 1); });
  if (!done)
    threadOf(t).block->polled(threadOf(t));
  return done;
}

namespace {
struct Wait {
  Thread &thread;
  void *pointer;
  u64 value;
  bool isParity;
};
bool isOver(void *data) {
  auto &wait = *static_cast<Wait *>(data);
  return test(wait.thread, wait.pointer, [&](uint64_t phase) {
    return wait.isParity ? (phase & 1) != (wait.value & 1) : phase > wait.value;
  });
}
} // namespace

u32 mbarrierWait(T t, void *pointer, u64 state) {
  Wait wait{threadOf(t), pointer, state, false};
  threadOf(t).block->waitUntil(threadOf(t), "wait at an mbarrier", isOver,
                               &wait);
  return 1;
}
u32 mbarrierWaitParity(T t, void *pointer, u32 parity) {
  Wait wait{threadOf(t), pointer, parity, true};
  threadOf(t).block->waitUntil(threadOf(t), "wait at an mbarrier", isOver,
                               &wait);
  return 1;
}
u32 mbarrierWaitParityFor(T t, void *pointer, u32 parity, u32) {
  return mbarrierWaitParity(t, pointer, parity);
}
void mbarrierLoopParity(T t, void *pointer, u32 parity, u32) {
  mbarrierWaitParity(t, pointer, parity);
}

} // namespace functions
} // namespace tandem::emulator::kernel
