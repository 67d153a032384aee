//===- Pack.cpp - places for blocks of memory that live for a while -------===//
//
// One after the other in some order, each block goes into the smallest gap that
// is free while it lives. No order is the best for all programs: the largest
// first, or those that live longest, or as they come, are tried. Then blocks at
// the top of the best packing go first, where they find places further down.
//
//===----------------------------------------------------------------------===//
#include "passes/plan/Pack.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <functional>
#include <numeric>
#include <tuple>
#include <vector>

using namespace tandem;
using llvm::ArrayRef;
using llvm::MutableArrayRef;

/// Pairs of blocks that repairs may look at: a few tenths of a second.
static constexpr int64_t kWork = 200'000'000;
static constexpr int64_t kMostRepairs = 200;

int64_t tandem::mostInUse(ArrayRef<PackedBlock> blocks) {
  int64_t steps = 0, begin = 0;
  for (const PackedBlock &block : blocks) {
    begin = std::min(begin, block.first);
    steps = std::max(steps, block.last + 2);
  }
  std::vector<int64_t> change(steps - begin + 1, 0);
  for (const PackedBlock &block : blocks) {
    change[block.first - begin] += block.bytes;
    change[block.last + 1 - begin] -= block.bytes;
  }
  int64_t now = 0, most = 0;
  for (int64_t bytes : change)
    most = std::max(most, now += bytes);
  return most;
}

namespace {
using Order = std::vector<unsigned>;

class Packer {
public:
  explicit Packer(MutableArrayRef<PackedBlock> blocks) : blocks(blocks) {}
  int64_t pack();

private:
  int64_t place(ArrayRef<unsigned> order);
  void attempt(Order order);
  void repair(int64_t least);

  MutableArrayRef<PackedBlock> blocks;
  std::vector<int64_t> offsets; ///< of the last `place`
  Order bestOrder;
  std::vector<int64_t> bestOffsets;
  int64_t best = -1;
};
} // namespace

int64_t Packer::place(ArrayRef<unsigned> order) {
  struct Placed {
    int64_t offset, end, first, last;
  };
  std::vector<Placed> placed; // by rising offset
  placed.reserve(order.size());
  int64_t total = 0;
  for (unsigned i : order) {
    const PackedBlock &block = blocks[i];
    int64_t free = 0, found = -1, foundGap = 0;
    for (const Placed &other : placed) {
      if (other.first > block.last || other.last < block.first)
        continue;
      int64_t gap = other.offset - free;
      if (gap >= block.bytes && (found < 0 || gap < foundGap)) {
        found = free;
        foundGap = gap;
      }
      free = std::max(free, other.end);
    }
    int64_t offset = found >= 0 ? found : free;
    offsets[i] = offset;
    total = std::max(total, offset + block.bytes);
    Placed one{offset, offset + block.bytes, block.first, block.last};
    placed.insert(llvm::upper_bound(placed, one,
                                    [](const Placed &x, const Placed &y) {
                                      return x.offset < y.offset;
                                    }),
                  one);
  }
  return total;
}

void Packer::attempt(Order order) {
  int64_t total = place(order);
  if (best >= 0 && total >= best)
    return;
  best = total;
  bestOrder = std::move(order);
  bestOffsets = offsets;
}

/// Blocks at the top go first.
void Packer::repair(int64_t least) {
  auto count = static_cast<int64_t>(blocks.size());
  int64_t tries = std::min(kMostRepairs, kWork / (count * count + 1));
  Order order = bestOrder;
  std::vector<int64_t> now = bestOffsets;
  int64_t total = best;
  for (int64_t i = 0; i < tries && best > least; ++i) {
    Order top, rest;
    for (unsigned block : order)
      (now[block] + blocks[block].bytes == total ? top : rest).push_back(block);
    order = std::move(top);
    order.insert(order.end(), rest.begin(), rest.end());
    total = place(order);
    now = offsets;
    if (total < best) {
      best = total;
      bestOrder = order;
      bestOffsets = now;
    }
  }
}

int64_t Packer::pack() {
  if (blocks.empty())
    return 0;
  offsets.assign(blocks.size(), 0);
  int64_t least = mostInUse(blocks);
  // Each ends with what tells blocks apart.
  using Key = std::tuple<int64_t, int64_t, unsigned>;
  auto area = [](const PackedBlock &block) {
    return block.bytes * (block.last - block.first + 1);
  };
  const std::function<Key(unsigned)> keys[] = {
      [&](unsigned i) { return Key(-blocks[i].bytes, blocks[i].first, i); },
      [&](unsigned i) {
        return Key(blocks[i].first - blocks[i].last, -blocks[i].bytes, i);
      },
      [&](unsigned i) { return Key(-area(blocks[i]), blocks[i].first, i); },
      [&](unsigned i) { return Key(blocks[i].first, -blocks[i].bytes, i); },
      [&](unsigned i) { return Key(-blocks[i].last, -blocks[i].bytes, i); }};
  for (const auto &key : keys) {
    Order order(blocks.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](unsigned x, unsigned y) { return key(x) < key(y); });
    attempt(std::move(order));
    if (best == least)
      break;
  }
  repair(least);
  for (auto [i, block] : llvm::enumerate(blocks))
    block.offset = bestOffsets[i];
  return best;
}

int64_t tandem::packBlocks(MutableArrayRef<PackedBlock> blocks) {
  return Packer(blocks).pack();
}
