//===- TileFactor.h - tensors as the factors of a product of tiles --------===//
//
// Turns an operand of an anchor, of bf16, into tiles of a left or of a right
// factor. A square of 16 lines and 32 k is in registers as 16 vectors of 16
// pairs of k: where neighbours in memory are neighbours along k, a vector is a
// line, as in a left tile; where they are neighbours along the line, two rows
// are interleaved, and a vector is a pair of k, as in a right tile. The
// transpose of one is the other.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_PRODUCTS_TILEFACTOR_H
#define TANDEM_PASSES_LOWER_CPU_PRODUCTS_TILEFACTOR_H

#include "passes/lower/common/Anchor.h"
#include "passes/lower/cpu/products/TileCode.h"

namespace tandem::lower::cpu {

/// Tiles in memory.
struct TileMemory {
  mlir::Value memref; ///< of bf16, one dimension
  /// Which tile is that of these 16 lines and this step of 32 k, both counted
  /// from where packing begins.
  llvm::function_ref<mlir::Value(mlir::Value lines, mlir::Value step)> number;
};

class TileFactor {
public:
  enum Side { Left, Right };

  /// Operand `number` of the anchor at `index`, in dimensions of `sizes`; of
  /// these, `line` is m or n, and `k` what is summed over.
  TileFactor(AnchorKernel &kernel, unsigned number, Side side,
             llvm::ArrayRef<mlir::AffineExpr> index,
             llvm::ArrayRef<int64_t> sizes, unsigned line, unsigned k);

  /// An item begins, in which the dimensions that are neither line nor k have
  /// these values.
  void enter(llvm::ArrayRef<mlir::Value> dims);

  /// Whether the tensor itself can be read as left tiles: rows that begin where
  /// cache lines do, and nothing missing at the edges of blocks of `lines`
  /// lines.
  bool isInPlace(int64_t lines) const;
  /// The tile of lines `line` and k from `k` on in the tensor.
  TileAddress inPlace(mlir::Value line, mlir::Value k) const;

  /// Writes the tiles of the lines [line, lineEnd) and of the k of steps [step,
  /// stepEnd) of 32, in the tensor's order. Lines behind the last may be
  /// anything, k behind the last are zeros.
  void pack(const TileMemory &to, mlir::Value line, mlir::Value lineEnd,
            mlir::Value step, mlir::Value stepEnd);

private:
  int64_t stride(unsigned dim) const { return operand.stride(dim); }
  bool alongTerms() const { return operand.isAffine() && stride(k) == 1; }
  bool alongLine() const { return operand.isAffine() && stride(line) == 1; }
  mlir::Value position(mlir::Value atLine, mlir::Value atTerm) const;
  /// A vector of the tile `tile` of those that are read: its pair `pair`.
  using EachPair =
      llvm::function_ref<void(int64_t tile, int64_t pair, mlir::Value row)>;

  void packTiles(mlir::Value memref, llvm::ArrayRef<mlir::Value> at,
                 mlir::Value atLine, mlir::Value atTerm, int64_t terms);
  Code::Values readLines(mlir::Value atLine, mlir::Value atTerm, int64_t terms);
  void readPairs(mlir::Value atLine, mlir::Value atTerm, int64_t terms,
                 int64_t lines, EachPair each);
  void storeRow(mlir::Value memref, mlir::Value at, int64_t i, mlir::Value row);
  void packElements(mlir::Value memref, mlir::Value at, mlir::Value atLine,
                    mlir::Value atTerm, int64_t terms);

  AnchorKernel &kernel;
  Code &code;
  unsigned number;
  Side side;
  llvm::SmallVector<mlir::AffineExpr> index;
  llvm::SmallVector<int64_t> sizes;
  unsigned line, k;
  Operand operand;
  llvm::SmallVector<mlir::Value> dims; ///< the item's values
  mlir::Value base;                    ///< the position of line 0, k 0
};

} // namespace tandem::lower::cpu

#endif
