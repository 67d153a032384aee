//===- Collectives.cpp - barriers, shuffles, votes, reductions of a warp --===//
#include "cuda/emulator/kernel/Functions.h"

#include <algorithm>

namespace tandem::emulator::kernel::functions {

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

using Reduction = Block::Reduction;

void barrierSyncAll(T t, u32 id) {
  threadOf(t).block->barrier(threadOf(t), id, 0, true, false);
}
void barrierSyncAlignedAll(T t, u32 id) {
  threadOf(t).block->barrier(threadOf(t), id, 0, true, true);
}
void barrierSyncCount(T t, u32 id, u32 count) {
  threadOf(t).block->barrier(threadOf(t), id, count, true, false);
}
void barrierSyncAlignedCount(T t, u32 id, u32 count) {
  threadOf(t).block->barrier(threadOf(t), id, count, true, true);
}
void barrierArriveCount(T t, u32 id, u32 count) {
  threadOf(t).block->barrier(threadOf(t), id, count, false, false);
}
u32 barrierRedPopcAll(T t, u32 id, u32 value) {
  return threadOf(t).block->barrier(threadOf(t), id, 0, true, true,
                                    Reduction::Count, value);
}
u32 barrierRedAndAll(T t, u32 id, u32 value) {
  return threadOf(t).block->barrier(threadOf(t), id, 0, true, true,
                                    Reduction::And, value);
}
u32 barrierRedOrAll(T t, u32 id, u32 value) {
  return threadOf(t).block->barrier(threadOf(t), id, 0, true, true,
                                    Reduction::Or, value);
}

void barWarpSync(T t, u32 mask) {
  Operation order = [](Lanes &lanes) {
    SharedRaces &races = lanes.block.races;
    Clock clock;
    for (u32 l = 0; l < 32; ++l)
      if (lanes.has(l))
        races.release(lanes.first[l].index, clock);
    for (u32 l = 0; l < 32; ++l)
      if (lanes.has(l))
        races.acquire(lanes.first[l].index, clock);
  };
  threadOf(t).block->collective(threadOf(t), mask, "bar.warp.sync", order,
                                nullptr, nullptr);
}

//===----------------------------------------------------------------------===//
// Shuffles
//===----------------------------------------------------------------------===//

namespace {

enum class Shuffle { Bfly, Idx, Up, Down };

struct ShuffleIn {
  u32 value, b, c;
};
struct ShuffleOut {
  u32 value, valid;
};

/// PTX ISA, "shfl.sync": bits 0-4 of `c` are the clamp, bits 8-12 the mask of
/// the segment.
template <Shuffle kind> void shuffleLanes(Lanes &lanes) {
  for (u32 l = 0; l < 32; ++l) {
    if (!lanes.has(l))
      continue;
    const auto &in = lanes.in<ShuffleIn>(l);
    u32 b = in.b & 31, clamp = in.c & 31, segment = in.c >> 8 & 31;
    u32 last = (l & segment) | (clamp & ~segment);
    u32 first = l & segment;
    u32 from = l;
    bool valid = false;
    switch (kind) {
    case Shuffle::Up:
      valid =
          static_cast<int>(l) - static_cast<int>(b) >= static_cast<int>(last);
      from = l - b;
      break;
    case Shuffle::Down:
      from = l + b;
      valid = from <= last;
      break;
    case Shuffle::Bfly:
      from = l ^ b;
      valid = from <= last;
      break;
    case Shuffle::Idx:
      from = first | (b & ~segment);
      valid = from <= last;
      break;
    }
    if (!valid)
      from = l;
    auto &out = lanes.out<ShuffleOut>(l);
    out.valid = valid;
    if (lanes.has(from)) {
      out.value = lanes.in<ShuffleIn>(from).value;
    } else {
      lanes.block.error(
          lanes.first[l], "a shuffle reads a lane outside of the member mask",
          "lane " + std::to_string(l) + " reads lane " + std::to_string(from));
      out.value = 0xffffffff;
    }
  }
}

template <Shuffle kind>
ShuffleOut shuffle(T t, u32 mask, u32 value, u32 b, u32 c) {
  static const char *const names[] = {"shfl.sync.bfly", "shfl.sync.idx",
                                      "shfl.sync.up", "shfl.sync.down"};
  ShuffleIn in{value, b, c};
  ShuffleOut out{};
  threadOf(t).block->collective(threadOf(t), mask,
                                names[static_cast<int>(kind)],
                                shuffleLanes<kind>, &in, &out);
  return out;
}

} // namespace

u32 shflBfly(T t, u32 mask, u32 value, u32 b, u32 c) {
  return shuffle<Shuffle::Bfly>(t, mask, value, b, c).value;
}
u32 shflIdx(T t, u32 mask, u32 value, u32 b, u32 c) {
  return shuffle<Shuffle::Idx>(t, mask, value, b, c).value;
}
u32 shflUp(T t, u32 mask, u32 value, u32 b, u32 c) {
  return shuffle<Shuffle::Up>(t, mask, value, b, c).value;
}
u32 shflDown(T t, u32 mask, u32 value, u32 b, u32 c) {
  return shuffle<Shuffle::Down>(t, mask, value, b, c).value;
}

static void put(u32 *out, ShuffleOut result) {
  out[0] = result.value;
  out[1] = result.valid;
}
void shflBflyP(T t, u32 *out, u32 mask, u32 value, u32 b, u32 c) {
  put(out, shuffle<Shuffle::Bfly>(t, mask, value, b, c));
}
void shflIdxP(T t, u32 *out, u32 mask, u32 value, u32 b, u32 c) {
  put(out, shuffle<Shuffle::Idx>(t, mask, value, b, c));
}
void shflUpP(T t, u32 *out, u32 mask, u32 value, u32 b, u32 c) {
  put(out, shuffle<Shuffle::Up>(t, mask, value, b, c));
}
void shflDownP(T t, u32 *out, u32 mask, u32 value, u32 b, u32 c) {
  put(out, shuffle<Shuffle::Down>(t, mask, value, b, c));
}

//===----------------------------------------------------------------------===//
// Votes, matches, reductions
//===----------------------------------------------------------------------===//

/// Runs a collective whose result is the same for all lanes:
/// `combine(accumulated, value)` over the lanes from the lowest.
template <typename Value, Value (*combine)(Value, Value)>
static Value reduce(T t, u32 mask, Value value, const char *name) {
  Operation operation = [](Lanes &lanes) {
    Value sum{};
    bool first = true;
    for (u32 l = 0; l < 32; ++l)
      if (lanes.has(l)) {
        Value in = lanes.in<Value>(l);
        sum = first ? in : combine(sum, in);
        first = false;
      }
    for (u32 l = 0; l < 32; ++l)
      if (lanes.has(l))
        lanes.out<Value>(l) = sum;
  };
  Value out{};
  threadOf(t).block->collective(threadOf(t), mask, name, operation, &value,
                                &out);
  return out;
}

static u32 addOf(u32 a, u32 b) { return a + b; }
static u32 minOf(u32 a, u32 b) { return std::min(a, b); }
static u32 maxOf(u32 a, u32 b) { return std::max(a, b); }
static int32_t minSigned(int32_t a, int32_t b) { return std::min(a, b); }
static int32_t maxSigned(int32_t a, int32_t b) { return std::max(a, b); }
static u32 andOf(u32 a, u32 b) { return a & b; }
static u32 orOf(u32 a, u32 b) { return a | b; }
static u32 xorOf(u32 a, u32 b) { return a ^ b; }

u32 reduxAdd(T t, u32 value, u32 mask) {
  return reduce<u32, addOf>(t, mask, value, "redux.sync.add");
}
u32 reduxUmin(T t, u32 value, u32 mask) {
  return reduce<u32, minOf>(t, mask, value, "redux.sync.min.u32");
}
u32 reduxUmax(T t, u32 value, u32 mask) {
  return reduce<u32, maxOf>(t, mask, value, "redux.sync.max.u32");
}
u32 reduxMin(T t, u32 value, u32 mask) {
  return reduce<int32_t, minSigned>(t, mask, value, "redux.sync.min.s32");
}
u32 reduxMax(T t, u32 value, u32 mask) {
  return reduce<int32_t, maxSigned>(t, mask, value, "redux.sync.max.s32");
}
u32 reduxAnd(T t, u32 value, u32 mask) {
  return reduce<u32, andOf>(t, mask, value, "redux.sync.and");
}
u32 reduxOr(T t, u32 value, u32 mask) {
  return reduce<u32, orOf>(t, mask, value, "redux.sync.or");
}
u32 reduxXor(T t, u32 value, u32 mask) {
  return reduce<u32, xorOf>(t, mask, value, "redux.sync.xor");
}

// The names differ, so that different votes are different operations.
u32 voteAll(T t, u32 mask, u32 value) {
  return reduce<u32, andOf>(t, mask, value != 0, "vote.sync.all");
}
u32 voteAny(T t, u32 mask, u32 value) {
  return reduce<u32, orOf>(t, mask, value != 0, "vote.sync.any");
}
u32 voteBallot(T t, u32 mask, u32 value) {
  u32 bit = value ? 1u << threadOf(t).lane : 0;
  return reduce<u32, orOf>(t, mask, bit, "vote.sync.ballot");
}
u32 voteUni(T t, u32 mask, u32 value) {
  u32 votes = reduce<u32, orOf>(t, mask, value ? 2 : 1, "vote.sync.uni");
  return votes != 3;
}

template <typename Value> static void matchLanes(Lanes &lanes) {
  for (u32 l = 0; l < 32; ++l) {
    if (!lanes.has(l))
      continue;
    u32 same = 0;
    for (u32 other = 0; other < 32; ++other)
      if (lanes.has(other) && lanes.in<Value>(other) == lanes.in<Value>(l))
        same |= 1u << other;
    lanes.out<u32>(l) = same;
  }
}
template <typename Value>
static u32 match(T t, u32 mask, Value value, const char *name) {
  u32 out = 0;
  threadOf(t).block->collective(threadOf(t), mask, name, matchLanes<Value>,
                                &value, &out);
  return out;
}

u32 matchAny32(T t, u32 mask, u32 value) {
  return match(t, mask, value, "match.sync.any");
}
u32 matchAny64(T t, u32 mask, u64 value) {
  return match(t, mask, value, "match.sync.any");
}
static void matchAll(T t, u32 *out, u32 mask, u32 same) {
  bool all = same == threadOf(t).block->existing(threadOf(t), mask);
  out[0] = all ? same : 0;
  out[1] = all;
}
void matchAll32(T t, u32 *out, u32 mask, u32 value) {
  matchAll(t, out, mask, match(t, mask, value, "match.sync.all"));
}
void matchAll64(T t, u32 *out, u32 mask, u64 value) {
  matchAll(t, out, mask, match(t, mask, value, "match.sync.all"));
}

void electSync(T t, u32 *out, u32 mask) {
  u32 lane = threadOf(t).lane;
  u32 leader = reduce<u32, minOf>(t, mask, lane, "elect.sync");
  out[0] = leader;
  out[1] = leader == lane;
}

u32 activeMask(T t) { return threadOf(t).block->running(threadOf(t)); }

void nanosleep(T t, u32) { threadOf(t).block->pause(threadOf(t)); }

u64 threadClock(T t) { return threadOf(t).block->ticks += 64; }

} // namespace tandem::emulator::kernel::functions
