//===- AttentionTime.cpp - what attention by warpgroups takes -------------===//
#include "passes/target/AttentionTime.h"

#include <algorithm>
#include <cmath>

using namespace tandem;

// Attention's tiles by mma.sync, of what FlashAttention-2 does at its best:
// heads of 64, causal, with softmax between the products (assumed).
static constexpr double ofAttention = 0.6;

// A multiprocessor of sm_90 has 128 lanes for f32 and 16 for exponentials, so
// that a score's exponential takes as long as 8 of a lane's instructions; the
// data sheet counts two flops of each. Beside it a score takes about five: the
// largest, factor and shift, sum, half a conversion; or, of gradients, factor
// and shift, delta, product, a whole conversion of two factors.
static constexpr double flopsOfLane = 2, instructionsOfScore = 5,
                        instructionsOfExponential = 8;

// Of the shorter one of products and softmax, the part that the other does not
// hide. FlashAttention-3's forward of heads of 128 and of 64 (arXiv:2407.08608)
// comes to about 0.4 by this model, with warpgroups that take turns by named
// barriers and the next scores' products begun before softmax. Ours has the
// latter alone: 0.5. Gradients have neither: 0.6, which is what its forward
// comes to without the next products begun (as we remember its table 2).
static constexpr double exposedForward = 0.5, exposedGradients = 0.6;

// What a multiprocessor reads of shared memory in a clock, and what it
// multiplies and adds there, on sm_90.
static constexpr double sharedBytesOfClock = 128, productsOfClock = 2048;

// From a tile's last product to the next one's first: its own rows are asked
// for when the last scores have been made, and come from memory. Assumed.
static constexpr double betweenTiles = 1e-6;

int64_t AttentionWork::stepsOf(int64_t tile) const {
  int64_t all = (otherRows() + step - 1) / step;
  if (!causal)
    return all;
  if (kernel == KeyGrad)
    return all - std::min(tile * rows / step, all);
  return std::min((tile * rows + rows + step - 1) / step, all);
}

double AttentionWork::scores() const {
  auto all = static_cast<double>(batches), rows = static_cast<double>(queries),
       columns = static_cast<double>(keys), square = std::min(rows, columns);
  if (!causal)
    return all * rows * columns;
  return all * (square * (square + 1) / 2 + (rows - square) * columns);
}

double AttentionWork::flopsOfScores() const {
  return 2 *
         static_cast<double>(kernel == Forward ? width : width + valueWidth);
}

double AttentionWork::flopsOfSums() const {
  return 2 * static_cast<double>(kernel == Forward     ? valueWidth
                                 : kernel == QueryGrad ? width
                                                       : width + valueWidth);
}

/// How much longer products of 64 rows take that read `columns` columns, and
/// their own rows if these are in shared memory, too.
static double waitsForMemory(double columns, bool readsOwn) {
  double k = 16, bytes = 2;
  double read = (columns + (readsOwn ? 64 : 0)) * k * bytes;
  return std::max(1.0, read / sharedBytesOfClock /
                           (64 * columns * k / productsOfClock));
}

AttentionTime tandem::timeByWarpgroups(const AttentionWork &work,
                                       const DeviceRow &row,
                                       int64_t processors) {
  int64_t tiles = work.tiles();
  double steps = 0, longest = 0;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    auto own = static_cast<double>(work.stepsOf(tile));
    steps += own;
    longest = std::max(longest, own);
  }
  auto rows = static_cast<double>(work.rows),
       step = static_cast<double>(work.step),
       d = static_cast<double>(work.width),
       e = static_cast<double>(work.valueWidth);
  double scores = rows * step; // of a step
  double waiting =
      work.flopsOfScores() * waitsForMemory(step, /*readsOwn=*/true) +
      work.flopsOfSums() * waitsForMemory(std::min(d, e), /*readsOwn=*/false);

  double rate = row.narrow * row.achievedProducts * wgmmaWithoutClusters /
                static_cast<double>(processors);
  double lanes = row.f32 / flopsOfLane / static_cast<double>(processors);
  double products = scores * waiting / rate;
  double softmax =
      scores * (instructionsOfExponential + instructionsOfScore) / lanes;
  double exposed =
      work.kernel == AttentionWork::Forward ? exposedForward : exposedGradients;
  double ofStep =
      std::max(products, softmax) + exposed * std::min(products, softmax);
  // A tile's first softmax has none of its own products beside it.
  double first = work.kernel == AttentionWork::Forward
                     ? (1 - exposed) * std::min(products, softmax)
                     : 0;
  double results = rows * 2 *
                   (work.kernel == AttentionWork::KeyGrad     ? d + e
                    : work.kernel == AttentionWork::QueryGrad ? d
                                                              : e);
  // Blocks come as processors are free. Those of one tile begin with the
  // longest, and until the last ends, half of the processors have none, for
  // half of the mean block; those of several have equal work.
  auto batches = static_cast<double>(work.batches),
       ofBatch = static_cast<double>(work.blocksOfBatch()),
       inBlock = static_cast<double>(tiles) / ofBatch;
  double aroundBlock = firstBulkTiles + (inBlock - 1) * betweenTiles +
                       inBlock * (first + results / besideProducts);
  double turns = batches * ofBatch / static_cast<double>(processors);
  double ofBlock = steps / ofBatch * ofStep + aroundBlock;
  double whole = work.causal && work.chain == 1 ? std::max(turns + 0.5, 1.0)
                                                : std::ceil(turns);
  whole = std::max(whole * ofBlock, longest * ofStep + aroundBlock);

  AttentionTime time;
  double all = turns * steps / ofBatch;
  time.products = work.flops() / (rate * static_cast<double>(processors));
  time.narrow = all * products - time.products;
  time.elements = all * (ofStep - products);
  time.around = turns * aroundBlock;
  time.waves = whole - turns * ofBlock;
  return time;
}

double tandem::secondsByWarps(double flops, const DeviceRow &row) {
  return flops / (row.narrow * row.achievedAttention * ofAttention);
}
