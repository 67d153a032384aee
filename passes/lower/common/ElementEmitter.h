//===- ElementEmitter.h - scalar code of one element of a value -----------===//
//
// Given the loops around the code, emits the element of any tensor value of a
// kernel's region at a place: pointwise ops compute, views move the place,
// splats and iotas come from nothing, and what is bound (block arguments, an
// anchor's accumulators, saved rows) is a leaf. Equal elements are emitted once
// per loop body. Scalars have compute types: f16 and bf16 are f32, bool is i1.
//
// A place outside of a view's domain is never read: loads on the way to a pad
// are conditional. Elements are computed unconditionally; they have no effects.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_ELEMENTEMITTER_H
#define TANDEM_PASSES_LOWER_COMMON_ELEMENTEMITTER_H

#include "ir/Ops.h"
#include "passes/plan/LoopNest.h"

#include <functional>

namespace tandem::lower {

class ElementEmitter {
public:
  /// Emits a leaf's element, in its compute type, at `place` of the loops.
  using Leaf = std::function<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                         const Place &place)>;

  explicit ElementEmitter(mlir::Location loc) : loc(loc) {}

  /// `tensor` is a row-major memref of its shape (booleans i8), or of any shape
  /// with as many elements.
  void bind(mlir::Value tensor, mlir::Value memref);
  /// `tensor` is what `leaf` says. Where the place has guards, the leaf's code
  /// stands under their condition.
  void bind(mlir::Value tensor, Leaf leaf);
  /// `tensor`, which was said to be a leaf, is computed again.
  void unbind(mlir::Value tensor) { leaves.erase(tensor); }

  /// What is concatenated of many tensors is read by one load, through a
  /// pointer that the index along the concatenation chooses. For loops in which
  /// that index is not the innermost one's.
  void chooseReads() { choosesReads = true; }

  /// Code from here on stands inside loops with these indices, `ivs[i]` in
  /// [0, sizes[i]); forgets the elements emitted so far.
  void enter(mlir::ValueRange ivs, llvm::ArrayRef<int64_t> sizes);

  /// From here to the next enter(), `element` is that of `tensor` at `place`.
  void know(mlir::Value tensor, const Place &place, mlir::Value element) {
    memo[tensor].push_back({place, element});
  }

  /// The element of `tensor` at an index given in the loops' dimensions (affine
  /// dim i is ivs[i]), or at the loops' indices themselves.
  mlir::Value at(mlir::OpBuilder &b, mlir::Value tensor,
                 llvm::ArrayRef<mlir::AffineExpr> index);
  mlir::Value at(mlir::OpBuilder &b, mlir::Value tensor);

  /// The index value of an expression of the loops' dimensions.
  mlir::Value expand(mlir::OpBuilder &b, mlir::AffineExpr expr);
  /// The i1 conjunction of guards.
  mlir::Value expand(mlir::OpBuilder &b, llvm::ArrayRef<IndexGuard> guards);

  /// Converts an element from its compute type and stores it at the row-major
  /// position `offset` of `memref`; `isStreamed`: past the caches.
  void store(mlir::OpBuilder &b, mlir::Value scalar, mlir::Type element,
             mlir::Value memref, mlir::AffineExpr offset,
             bool isStreamed = false);

  /// The same at `index` of a tensor of `type`, of which `stored` is the shape
  /// in `memref`. Where its rows are longer than the tensor's, the last element
  /// of a row is stored together with zeros up to the end.
  void storeInRows(mlir::OpBuilder &b, mlir::Value scalar,
                   mlir::RankedTensorType type, llvm::ArrayRef<int64_t> stored,
                   mlir::Value memref, llvm::ArrayRef<mlir::AffineExpr> index);

private:
  mlir::Value emit(mlir::OpBuilder &b, mlir::Value tensor, const Place &place);
  mlir::Value emitUncached(mlir::OpBuilder &b, mlir::Value tensor,
                           const Place &place);
  mlir::Value emitLeaf(mlir::OpBuilder &b, const Leaf &leaf, mlir::Type compute,
                       const Place &place);
  /// Whether an index is below a number, of `iota < splat`, where the loops'
  /// sizes tell it.
  std::optional<bool> isBelow(mlir::Value condition, const Place &place) const;
  mlir::Value emitChosen(mlir::OpBuilder &b, SelectOp select,
                         const Place &place);
  /// Of several values of one type, that of number `index`, which is at least
  /// `first`.
  mlir::Value choose(mlir::OpBuilder &b, llvm::ArrayRef<mlir::Value> values,
                     mlir::Value index, int64_t first);

  mlir::Location loc;
  bool choosesReads = false;
  llvm::DenseMap<mlir::Value, Leaf> leaves;
  llvm::DenseMap<mlir::Value, mlir::Value> memrefs; ///< of bound tensors
  llvm::SmallVector<mlir::Value> ivs;
  llvm::SmallVector<int64_t> sizes;
  llvm::DenseMap<mlir::Value,
                 llvm::SmallVector<std::pair<Place, mlir::Value>, 1>>
      memo;
};

/// The number that a reduction starts from, in its compute type.
mlir::Value neutral(mlir::OpBuilder &b, mlir::Location loc,
                    const LoopNest::Reduction &reduction);

/// `memref` as a vector of all its elements.
mlir::Value flatten(mlir::OpBuilder &b, mlir::Location loc, mlir::Value memref);
/// The element of `memref` (element type `element` of the tensor) at `position`
/// in its compute type, and the store of one. `memref` has rank 1.
mlir::Value loadElement(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Type element, mlir::Value memref,
                        mlir::Value position);
void storeElement(mlir::OpBuilder &b, mlir::Location loc, mlir::Type element,
                  mlir::Value scalar, mlir::Value memref, mlir::Value position,
                  bool isStreamed = false);

} // namespace tandem::lower

#endif
