//===- TileCode.h - products of matrix tiles as formulas ------------------===//
//
// The processor's tiles for products of bf16 (AMX): 16 rows of 64 bytes each.
// One instruction adds the product of 16 lines and 16 lines along 32 k to 16
// x 16 sums in f32. The left factor has a row a line, its 32 k; the right one a
// row a pair of k, with the pair of each of the 16 lines.
//
// All tiles of a function have all of their rows: LLVM makes registers of them,
// and configures these where the function begins; with a second shape it would
// do so again and again. What is missing at the edges is zeros.
//
// Where there are none, but an instruction that adds the products of 16 pairs
// to 16 sums, sums are vectors, of some rows of several tiles: a row of each
// right tile is multiplied by the pair of each row of the left one.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_PRODUCTS_TILECODE_H
#define TANDEM_PASSES_LOWER_CPU_PRODUCTS_TILECODE_H

#include "passes/lower/common/AnchorCode.h"

namespace tandem::lower::cpu {

using namespace lower;

/// Whether the target of the module around `op` has tiles for bf16.
bool hasTiles(mlir::Operation *op);

/// Where tiles are read: row r at `pointer` + r * `stride`.
struct TileAddress {
  mlir::Value pointer; ///< !llvm.ptr
  mlir::Value stride;  ///< of rows, i64, bytes
};

class TileCode {
public:
  using Value = mlir::Value;

  static constexpr int64_t lines = 16;    ///< of a factor, and rows of a tile
  static constexpr int64_t terms = 32;    ///< k in a row
  static constexpr int64_t rowBytes = 64; ///< of a tile
  static constexpr int64_t elements = lines * terms; ///< of a tile of bf16
  static constexpr int64_t registers = 8;
  static constexpr int64_t pairBytes = 4;

  /// Values of a tile of sums: itself, or its rows.
  using Tile = llvm::SmallVector<Value>;

  /// Of the processor's own tiles, or else of vectors, `height` rows of a tile
  /// at one time.
  TileCode(Code &code, bool isOwn, int64_t height = lines)
      : code(code), b(code.b), loc(code.loc), isOwn(isOwn), height(height) {}

  int64_t values() const { return isOwn ? 1 : height; }

  /// Element `position` of a memref of one dimension, without an offset.
  Value pointer(Value memref, Value position) const;
  /// `bytes` (an index) after a pointer.
  Value after(Value pointer, Value bytes) const;
  /// The place of a tile's rows from `row` on.
  TileAddress from(const TileAddress &place, int64_t row) const;
  /// An index as an i64.
  Value number(Value index) const;

  Tile zeros() const;
  /// A tile of sums.
  Tile load(const TileAddress &place) const;
  void store(mlir::ValueRange tile, const TileAddress &place) const;
  /// A factor of the processor's own tiles; of `isStreamed` the caches near the
  /// core keep nothing.
  Value loadFactor(const TileAddress &place, bool isStreamed = false) const;
  /// The sums with the products of a left and a right factor added to them.
  Value multiplyAdd(Value left, Value right, Value sums) const;
  /// The same of vectors, the rows of one right tile after those of another,
  /// along `count` pairs of k from the first on of the factors at these places.
  Tile multiplyAdd(const TileAddress &left, llvm::ArrayRef<TileAddress> rights,
                   int64_t count, mlir::ValueRange sums) const;

private:
  Value call(mlir::Type type, llvm::StringRef intrinsic,
             mlir::ValueRange operands) const;
  Value half(int64_t value) const; ///< i16
  /// Where a row begins, and `bytes` behind that.
  Value row(const TileAddress &place, int64_t number, int64_t bytes = 0) const;
  mlir::VectorType sumsType() const;

  Code &code;
  mlir::OpBuilder &b;
  mlir::Location loc;
  bool isOwn;
  int64_t height; ///< of what is loaded, stored and summed, of vectors
};

} // namespace tandem::lower::cpu

#endif
