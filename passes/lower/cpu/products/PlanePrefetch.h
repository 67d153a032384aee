//===- PlanePrefetch.h - the planes that are needed next ------------------===//
//
// Copies of images run at the speed of memory, and processors do not foresee
// what is beyond a page: often the next plane. Products leave memory idle. So
// while tiles of one block are multiplied, the planes of the next one are
// prefetched, some lines with each round of a tile: many at once would keep
// what the tile reads waiting.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_PRODUCTS_PLANEPREFETCH_H
#define TANDEM_PASSES_LOWER_CPU_PRODUCTS_PLANEPREFETCH_H

#include "passes/lower/common/Anchor.h"

namespace tandem::lower::cpu {

using namespace lower;

/// A block of planes of some images, [images, planes, height, width].
class PlanePrefetch {
public:
  using Value = mlir::Value;

  /// Nothing is prefetched where planes of `sizes` do not follow each other
  /// without gaps, or where all images are one.
  PlanePrefetch(Code &code, const Operand &operand,
                llvm::ArrayRef<int64_t> sizes, int64_t images, int64_t planes);

  /// The lines of a part: of so many rounds each prefetches one.
  int64_t linesOfPart(int64_t parts) const;
  /// The block that begins there is next; images that do not exist are the last
  /// one again.
  void enter(Value image, Value plane);
  /// Part `number` of about `parts` is prefetched in `rounds`.
  void beginPart(Value number, int64_t parts, int64_t rounds);
  void emitRound(Value round) const;

private:
  Code &code;
  Operand operand;
  int64_t all, images; ///< images of the tensor, of a block
  int64_t lines;       ///< of the cache, that an image's planes are in
  int64_t perLine;     ///< elements
  Value image, plane;
  Value part; ///< its position
  int64_t linesOfRound = 0;
};

} // namespace tandem::lower::cpu

#endif
