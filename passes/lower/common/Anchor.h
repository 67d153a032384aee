//===- Anchor.h - a kernel around one anchor op, taken apart --------------===//
//
// An anchor kernel is one contraction, window or indexed op with views of its
// operands before it and pointwise ops and views after it. Its emitter walks
// over the indices of the anchor's result; Operand says where the elements of
// an operand are, Epilogue what becomes of an element of the result.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_ANCHOR_H
#define TANDEM_PASSES_LOWER_COMMON_ANCHOR_H

#include "passes/lower/common/AnchorCode.h"
#include "passes/lower/common/ElementEmitter.h"
#include "passes/lower/common/KernelBody.h"

namespace tandem::lower {

/// A tensor whose elements are at an affine position of some dimensions.
struct Operand {
  mlir::Value tensor; ///< of the kernel's region
  mlir::Type element;
  mlir::Value memref; ///< rank 1; null if the position is not affine
  mlir::AffineExpr position;

  bool isAffine() const { return memref != nullptr; }
  /// The distance of neighbours along `dim`.
  int64_t stride(unsigned dim) const { return *coefficientOf(position, dim); }
  /// The position with the dimensions' values; a null value stands for 0.
  mlir::Value at(Code &code, llvm::ArrayRef<mlir::Value> dims) const;
};

/// What an emitter gets: the anchor, and the memory around it.
class AnchorKernel {
public:
  AnchorKernel(KernelOp kernel, mlir::Operation *anchor, KernelBody &body,
               Code &code);

  KernelOp kernel;
  mlir::Operation *anchor;
  /// The op that the anchor shares its kernel with (see companionOf), or null.
  mlir::Operation *companion;
  KernelBody &body;
  Code &code;
  CpuModel target;
  Scratch scratch;

  /// Where the elements of operand `number` at `index` are, an index in
  /// dimensions of `sizes`; the position is affine in all of them or unknown.
  /// With `ofCast` it is a cast, and where the elements are that this reads.
  Operand operand(unsigned number, llvm::ArrayRef<mlir::AffineExpr> index,
                  llvm::ArrayRef<int64_t> sizes, bool ofCast = false);
  /// The element of operand `number`, of any kind, in its compute type, at
  /// `index` of dimensions with the values `dims`.
  mlir::Value element(unsigned number, llvm::ArrayRef<mlir::AffineExpr> index,
                      mlir::ValueRange dims, llvm::ArrayRef<int64_t> sizes);

  /// Where the anchor's result `result` at `index` (in dimensions of `sizes`)
  /// is in the only output that follows from it, if that is the result itself,
  /// of element type `type`, at an affine position with neighbours along `line`
  /// one apart.
  std::optional<Operand> directOutput(mlir::Type type,
                                      llvm::ArrayRef<mlir::AffineExpr> index,
                                      llvm::ArrayRef<int64_t> sizes,
                                      unsigned line, unsigned result = 0);
  /// Stores what follows from the elements `values` (one per result of the
  /// anchor, of compute types) of the anchor's results at `index`, where these
  /// have one shape.
  void finish(mlir::ValueRange index, mlir::ValueRange values);
  /// The same at an `index` in dimensions of `sizes` with the values `dims`.
  /// Where it is one of them that runs along the outputs, a loop over that
  /// becomes one over vectors.
  void finish(llvm::ArrayRef<mlir::AffineExpr> index, mlir::ValueRange dims,
              llvm::ArrayRef<int64_t> sizes, mlir::ValueRange values);
  /// An element of the anchor's one result at `index`.
  struct Element {
    llvm::SmallVector<mlir::Value> index;
    mlir::Value value;
  };
  /// `finish` of several elements: whatever is read for one of them is read
  /// before anything is stored. Outputs that are sums over rows of a tile are
  /// not stored: of each element, what it adds to each of them is returned.
  llvm::SmallVector<mlir::Value>
  finishTogether(llvm::ArrayRef<Element> together);
  /// The outputs that are such sums (summedInTiles).
  llvm::SmallVector<unsigned> tileSums() const;
  /// Whether all that follows from the anchor's elements has their indices.
  bool keepsIndices() const;
  /// The inputs of which what follows from an element of the anchor's one
  /// result reads the element with the same place in row-major order.
  llvm::SmallVector<unsigned> inputsInOrder();
  /// `finish` of one result alone, where nothing follows from several.
  void finishResult(unsigned result, mlir::ValueRange index, mlir::Value value);
  /// True if an output follows from the result.
  bool isWanted(unsigned result) const;

  /// The bytes of scratch that `layOut` takes, none of which are taken then.
  int64_t countScratch(llvm::function_ref<void()> layOut);
  /// Calls `body` for each item that the kernel is asked to run.
  void forEachItem(llvm::function_ref<void(mlir::Value item)> body);
  /// Whether everything so far could be emitted; says why not.
  mlir::LogicalResult check();

private:
  void bindArguments();
  void traceOutputs();
  void traceForward(mlir::Operation &op);
  bool traceByPosition(mlir::Value yielded);
  /// What the outputs with these numbers are where the anchor's elements are
  /// `current`; and stores that.
  llvm::SmallVector<mlir::Value> compute(llvm::ArrayRef<unsigned> outputs);
  void put(unsigned output, mlir::Value scalar);
  void store(llvm::ArrayRef<unsigned> outputs);

  ElementEmitter elements;
  /// The results of the anchor, then those of its companion.
  llvm::SmallVector<mlir::OpResult> results;
  /// What follows from the anchor: from which of its results, the last if
  /// several, and at which index of that result's dimensions.
  struct Source {
    unsigned result;
    llvm::SmallVector<mlir::AffineExpr> index;
  };
  llvm::DenseMap<mlir::Value, Source> sources;
  /// The index of `source` where the anchor's elements are the current ones.
  llvm::SmallVector<mlir::AffineExpr> currentIndex(const Source &source) const;
  /// The anchor's elements while `finish` runs, and their index; empty if it is
  /// the dimensions.
  llvm::SmallVector<mlir::Value> current;
  llvm::SmallVector<mlir::AffineExpr> currentAt;
  llvm::SmallVector<int64_t> currentSizes;
  std::string problem;
};

/// What kinds of anchors there are: each target has an emitter for each.
enum class AnchorFamily {
  None,
  Matmul,
  Convolution,
  Window,
  Indexed,
  Lines,
  Attention
};
AnchorFamily familyOf(mlir::OperationName op);

/// The op that is the companion of `anchor` in its block: the gradient of
/// attention for queries, if it and the anchor, that for keys, have equal
/// operands. Null if there is none.
mlir::Operation *companionOf(mlir::Operation *anchor);

/// The kernel's one contraction, window or indexed op, companions aside. Null,
/// with an error, if it has none or several.
mlir::Operation *findAnchor(KernelOp kernel);

} // namespace tandem::lower

#endif
