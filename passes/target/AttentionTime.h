//===- AttentionTime.h - what attention by warpgroups takes ---------------===//
//
// A model of one multiprocessor that both the choice of a method and the
// estimate of a step ask. The products of a block's steps go to the tensor
// cores, which wait for shared memory where tiles are narrow; exponentials and
// the rest of softmax go to other units of the same multiprocessor. While a
// warpgroup computes these the products of the other one, or its own next
// ones, are made: of the shorter of both a part is not hidden.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_TARGET_ATTENTIONTIME_H
#define TANDEM_PASSES_TARGET_ATTENTIONTIME_H

#include "passes/target/Machines.h"

#include <cstdint>

namespace tandem {

/// A kernel of attention and its tiles.
struct AttentionWork {
  enum Kernel { Forward, QueryGrad, KeyGrad };
  Kernel kernel = Forward;
  int64_t batches = 1, queries = 1, keys = 1;
  int64_t width = 1, valueWidth = 1; ///< columns of queries and of values
  bool causal = false;
  int64_t rows = 128, step = 128; ///< of a tile, and of what it goes over
  int64_t chain = 1;              ///< tiles of a block, one after the other

  int64_t ownRows() const { return kernel == KeyGrad ? keys : queries; }
  int64_t otherRows() const { return kernel == KeyGrad ? queries : keys; }
  int64_t tiles() const { return (ownRows() + rows - 1) / rows; }
  /// Scores that the mask leaves, and the flops of their products.
  double scores() const;
  double flops() const { return scores() * (flopsOfScores() + flopsOfSums()); }
  /// Of one score: the products that it is made of, and those it is a factor
  /// of.
  double flopsOfScores() const;
  double flopsOfSums() const;
  int64_t blocksOfBatch() const { return (tiles() + chain - 1) / chain; }
  /// The steps of a tile.
  int64_t stepsOf(int64_t tile) const;
};

/// Seconds, by what they pass with.
struct AttentionTime {
  double products = 0; ///< of scores that a mask leaves, at wgmma's full rate
  double narrow = 0;   ///< more of them: masked scores, waits for shared memory
  double elements = 0; ///< softmax that is not hidden by products
  double waves = 0;    ///< multiprocessors without a block
  double around = 0;   ///< before a block's first products, and behind its last

  double seconds() const {
    return products + narrow + elements + waves + around;
  }
};

/// By wgmma, on a device of sm_90 with so many multiprocessors.
AttentionTime timeByWarpgroups(const AttentionWork &work, const DeviceRow &row,
                               int64_t processors);
/// By mma.sync: what FlashAttention-2 does there, and a part of that.
double secondsByWarps(double flops, const DeviceRow &row);

/// wgmma from bulk copies without clusters reached 777 of 799 TFLOP/s on H100
/// (github.com/pranjalssh/fast.cu, kernels 6 and 7, products of 8192).
inline constexpr double wgmmaWithoutClusters = 0.97;
/// Until a block's first tiles have come by bulk copies: some round trips to
/// memory, the barriers and the tensor maps. Assumed.
inline constexpr double firstBulkTiles = 1.5e-6;
/// What a multiprocessor stores, and loads for what is fused behind a product,
/// in a second: about its part of L2's rate on H100. Assumed.
inline constexpr double besideProducts = 30e9;

} // namespace tandem

#endif
