//===- LoopNest.h - which loops a group of ops can run in -----------------===//
//
// A group of pointwise, view, reduction and constant ops can be one loop kernel
// if one space of indices, some of them reduced, serves all of them: every
// reduction combines the space's reduced indices, every result has an element
// per index or per kept index, and a reduction's result is used only at its own
// kept index. plan asks whether a group is such; lower asks for the loops.
//
// Where the reduced indices are the inner ones (rows), results may also be
// *partial*: reductions of rows with each other, of which there is one for each
// part of the rows (what is left of a sum over all rows, which another kernel
// adds up). So one pass over the rows makes both kinds of sums.
//
// Index expressions are of the nest's dimensions (affine dim d is in
// [0, sizes[d])).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_LOOPNEST_H
#define TANDEM_PASSES_PLAN_LOOPNEST_H

#include "ir/Ops.h"
#include "passes/plan/IndexMath.h"

#include <vector>

namespace tandem {

struct LoopNest {
  struct Reduction {
    ReductionOpInterface op;
    /// The number of reductions that must be complete before this one, at the
    /// longest: reductions of one level run in the same loops.
    unsigned level;
    /// Where the operand's element is.
    llvm::SmallVector<mlir::AffineExpr> index;
  };
  struct Root {
    mlir::Value value;
    /// One element per index, not only per kept index.
    bool isFull;
    /// The level after whose reductions it can be computed; 0 needs none.
    unsigned level;
    /// Empty of a partial result.
    llvm::SmallVector<mlir::AffineExpr> index;
    bool isPartial = false;
    /// The shape of what is stored: the value's, or with longer rows, which end
    /// with zeros (ir/RowPadding.h).
    llvm::SmallVector<int64_t> stored;
  };
  struct Access {
    mlir::Value value;
    Place place;
  };

  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<bool> reduced;
  /// By rising level.
  llvm::SmallVector<Reduction> reductions;
  /// The reductions of rows with each other: each is a root, in their order,
  /// with an element for each part and reduced index. All have as many parts,
  /// of as many kept indices that follow each other.
  llvm::SmallVector<Reduction> partials;
  int64_t parts = 1;
  /// One per result of the group, in order.
  llvm::SmallVector<Root> roots;
  unsigned levels = 0;
  /// Everything that is read from outside of the group, once per place.
  llvm::SmallVector<Access> reads;

  int64_t keptSize() const;
  int64_t reducedSize() const;
  /// The dimensions that are reduced, or those that are kept, and the number of
  /// indices of some dimensions.
  llvm::SmallVector<unsigned> dims(bool isReduced) const;
  int64_t sizeOf(llvm::ArrayRef<unsigned> dims) const;
  llvm::SmallVector<const Reduction *> reductionsAt(unsigned level) const;
  bool hasFullRootAt(unsigned level) const;
  bool hasPartialAt(unsigned level) const;

  /// `index` of a nest that is restrict()ed from `low` on.
  void shift(llvm::MutableArrayRef<mlir::AffineExpr> index, unsigned dim,
             int64_t low) const;
  /// Makes this the part of the nest where the index of a dimension is in [low,
  /// high): its index is low less then, and what was a condition may be known.
  void restrict(unsigned dim, int64_t low, int64_t high);
};

/// The nest of the ops for which `isInside` holds, whose results that are used
/// elsewhere are `results`. Adjacent dimensions are one where that changes
/// nothing. Nothing if the group cannot be one loop kernel. Partial results
/// are where the target has loops for them.
std::optional<LoopNest>
findLoopNest(llvm::ArrayRef<mlir::Value> results,
             llvm::function_ref<bool(mlir::Operation *)> isInside,
             mlir::MLIRContext *context);
std::optional<LoopNest> findLoopNest(KernelOp kernel);

/// What a kernel for CUDA computes where it yields `yielded`: that, or what is
/// stored in longer rows.
mlir::Value withoutRowPadding(mlir::Value yielded);

/// The rows that a product for CUDA adds up of its tile, for the gradient of a
/// bias, or of which it finds the largest elements, for the scale of f8 values.
constexpr int64_t kRowsOfTileSum = 64;
/// True if the anchor is a product that is cut into whole tiles, whatever they
/// are, and adds up rows of them.
bool makesTileSums(mlir::Operation *anchor);
/// What such an anchor adds up for `sum`, a sum or a maximum: [parts,
/// kRowsOfTileSum, columns], with its own columns. Null if it is another, or
/// `sum` another value.
mlir::Value summedInTiles(mlir::Value sum, mlir::Operation *anchor);

/// The results of each part of a kernel; all in one where it has no parts.
llvm::SmallVector<llvm::SmallVector<mlir::Value>> partsOf(KernelOp kernel);
/// The nests of a kernel's parts. Nothing if a part cannot be loops.
std::optional<std::vector<LoopNest>> findLoopNests(KernelOp kernel);

} // namespace tandem

#endif
