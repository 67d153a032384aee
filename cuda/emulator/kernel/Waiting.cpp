//===- Waiting.cpp - barriers and collectives of a block ------------------===//
#include "cuda/emulator/kernel/Block.h"

#include <algorithm>

namespace tandem::emulator::kernel {

uint32_t Block::existing(const Thread &thread, uint32_t mask) const {
  return mask & warps[thread.warp].existing;
}

uint32_t Block::running(const Thread &thread) const {
  const Warp &warp = warps[thread.warp];
  return warp.existing & ~warp.ended;
}

void Block::collective(Thread &thread, uint32_t mask, const char *name,
                       Operation operation, const void *in, void *out,
                       bool aligned) {
  Warp &warp = warps[thread.warp];
  uint32_t bit = 1u << thread.lane;
  mask &= warp.existing;
  if (!(mask & bit))
    fail(thread, "a lane outside of its own member mask",
         std::string(name) + " of lane " + std::to_string(thread.lane));
  thread.in = in;
  thread.out = out;
  auto it = std::find_if(warp.pending.begin(), warp.pending.end(),
                         [&](Pending &p) { return p.mask & mask; });
  if (it == warp.pending.end()) {
    warp.pending.push_back({mask, 0, operation, name, thread.site});
    it = warp.pending.end() - 1;
  } else if (it->mask != mask || it->operation != operation ||
             it->name != name || (aligned && it->site != thread.site)) {
    fail(thread, "divergent warp",
         std::string(name) + " while lanes of it wait in " + it->name + " at " +
             nameOfSite(it->site));
  }
  it->arrived |= bit;
  if (it->arrived != mask) {
    wait(thread, name);
    return;
  }
  warp.pending.erase(it);
  Lanes lanes{&threads[warp.first], mask, *this};
  operation(lanes);
  warp.ready |= mask;
  progress = true;
}

void Block::warpgroup(Thread &thread, const char *name, Operation operation,
                      const void *in, void *out) {
  uint32_t number = thread.warp / 4, first = number * 128;
  if (first + 128 > threads.size())
    fail(thread, "an incomplete warpgroup",
         std::string(name) + " needs 128 threads");
  Warpgroup &group = warpgroups[number];
  if (group.arrived == 0) {
    group.operation = operation;
    group.site = thread.site;
  } else if (group.operation != operation || group.site != thread.site) {
    fail(thread, "divergent warpgroup",
         std::string(name) + " while threads of it wait at " +
             nameOfSite(group.site));
  }
  thread.in = in;
  thread.out = out;
  progress = true;
  if (++group.arrived < 128) {
    wait(thread, name);
    return;
  }
  group.arrived = 0;
  Lanes lanes{&threads[first], ~0u, *this};
  operation(lanes);
  for (uint32_t i = 0; i < 128; ++i)
    wake(threads[first + i]);
}

/// Everyone has come to barrier `id`.
void Block::complete(uint32_t id) {
  Barrier &b = barriers[id];
  bool everyone = b.waiting == threads.size();
  if (everyone)
    races.barrier();
  for (Warp &warp : warps) {
    uint32_t woken = 0;
    for (uint32_t left = warp.atBarrier; left; left &= left - 1) {
      uint32_t lane = __builtin_ctz(left);
      Thread &waiter = threads[warp.first + lane];
      if (waiter.barrier != id)
        continue;
      woken |= 1u << lane;
      if (!everyone)
        races.acquire(waiter.index, b.clock);
    }
    warp.atBarrier &= ~woken;
    warp.ready |= woken;
  }
  b.result = b.sum;
  b.arrived = b.waiting = b.sum = 0;
  b.clock.clear();
  progress = true;
}

uint32_t Block::barrier(Thread &thread, uint32_t id, uint32_t count, bool waits,
                        bool aligned, Reduction reduction, uint32_t value) {
  auto all = static_cast<uint32_t>(threads.size());
  if (id >= barriers.size())
    fail(thread, "no such barrier", "barrier " + std::to_string(id) + " of 16");
  if (count % 32 != 0 || count > (all + 31) / 32 * 32)
    fail(thread, "wrong number of threads for a barrier",
         std::to_string(count) + ": expected a multiple of the warp size, at "
                                 "most the block's threads");
  uint32_t expected = count ? std::min(count, all) : all;
  Barrier &b = barriers[id];
  if (b.arrived == 0)
    b.expected = expected;
  else if (b.expected != expected)
    fail(thread, "threads disagree about a barrier",
         "barrier " + std::to_string(id) + " for " + std::to_string(expected) +
             " threads, but others came to it for " +
             std::to_string(b.expected));
  Warp &warp = warps[thread.warp];
  if (aligned && warp.atBarrier && warp.barrierSite != thread.site)
    error(thread, "divergent barrier",
          std::string("other threads of the warp wait at ") +
              nameOfSite(warp.barrierSite));
  bool nonzero = value != 0;
  if (reduction == Reduction::And)
    b.sum = b.arrived == 0 ? nonzero : b.sum & nonzero;
  else if (reduction == Reduction::Or)
    b.sum |= nonzero;
  else if (reduction == Reduction::Count)
    b.sum += nonzero;
  ++b.arrived;
  progress = true;
  if (waits) {
    ++b.waiting;
    thread.barrier = id;
    warp.atBarrier |= 1u << thread.lane;
    warp.barrierSite = thread.site;
  }
  if (expected != all || !waits)
    races.release(thread.index, b.clock);
  if (b.arrived == expected)
    complete(id);
  else if (waits)
    wait(thread, "wait at a barrier");
  return b.result;
}

} // namespace tandem::emulator::kernel
