//===- AttentionTiles.h - how attention is cut, and its products ----------===//
//
// Attention's code works on the transpose of the scores: a lane is an own row
// of the tile, a query for the forward and the queries' gradient and a key for
// the keys' gradient; what it is multiplied with, the other rows, comes by
// blocks. So a row's statistics are lanes, and no product needs a transpose but
// that of the own rows, once: scores are blocks of other rows times own
// columns; with scores as columns of the first factor and other rows as the
// second, own results are sums of whole rows, and with scores as rows of it and
// own rows as the second so are the others'.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_ATTENTION_ATTENTIONTILES_H
#define TANDEM_PASSES_LOWER_CPU_ATTENTION_ATTENTIONTILES_H

#include "passes/lower/common/AttentionIndex.h"
#include "passes/lower/cpu/products/GemmOperand.h"

namespace tandem::lower::cpu {

/// How the work is cut: into tiles of own rows, which go through blocks of
/// other rows. Products are made in tiles of registers.
struct AttentionSchedule {
  /// `vectors` of own rows in a tile are asked for, or as many as are good: 0.
  AttentionSchedule(const AttentionIndex &index, const CpuModel &target,
                    bool ownsKeys, int64_t vectors);

  int64_t own, others; ///< how many rows there are
  int64_t lanes;       ///< of a register
  int64_t vectors;     ///< of own rows in a tile
  int64_t block;       ///< other rows at one time, a multiple of `step`
  /// A tile of registers.
  int64_t rows, across;

  int64_t width() const { return vectors * lanes; }
  int64_t tiles() const;
  /// `columns`, at least one, in whole vectors.
  int64_t padded(int64_t columns) const;
  /// Tiles of fewer vectors may have twice the rows. Where rows of scores are
  /// cut in parts, these begin at multiples of that.
  int64_t step() const { return 2 * rows; }
  /// Calls `body` with the first of up to `across` vectors and their number,
  /// for all of `count` vectors; those from `end` on may be left out.
  void forEachPanel(
      Code &code, int64_t count, mlir::Value end,
      llvm::function_ref<void(mlir::Value first, int64_t vectors)> body) const;
};

/// Rows of neighbours: the element (row, column) is at
/// start + row * stride + column of a memref of rank 1.
struct Matrix {
  mlir::Value memref, start;
  int64_t stride = 0;

  mlir::Value at(Code &code, mlir::Value row, mlir::Value column) const {
    return code.add(code.add(start, code.mul(row, stride)), column);
  }
  /// The matrix whose row 0 is this one's row `row`.
  Matrix from(Code &code, mlir::Value row) const {
    return {memref, code.add(start, code.mul(row, stride)), stride};
  }
};

/// A matrix in scratch, `columns` a multiple of the lanes.
struct ScratchMatrix {
  ScratchMatrix(AnchorKernel &kernel, int64_t rows, int64_t columns,
                mlir::Type type);
  mlir::Value memref; ///< of rank 2
  Matrix matrix;
};

/// sum over k in [k, kEnd) of a(row, k) b(k, column).
struct TileProduct {
  Matrix a, b;
  bool isTurned; ///< a(row, k) is in row k of `a`, not in row `row`
  mlir::Value k, kEnd;
  mlir::Type type;

  /// The sums of `rows` rows from `row` on, of `vectors` vectors from `column`
  /// on each, row by row.
  Code::Values emit(Code &code, mlir::Value row, int64_t rows,
                    mlir::Value column, int64_t vectors, int64_t lanes) const;
};

/// An operand of which rows are read: where they are, if their elements are of
/// the type of the sums and neighbours, or copied into scratch.
class RowsOperand {
public:
  /// Its rows are along dimension `along`, its columns along `line`. At most
  /// `most` rows are read at one time; none if that is 0.
  RowsOperand(AnchorKernel &kernel, const AttentionIndex &index,
              AttentionIndex::Number number, unsigned along, unsigned line,
              const AttentionSchedule &schedule, int64_t most);

  void enter(llvm::ArrayRef<mlir::Value> batch);
  /// The rows [from, to): row 0 of the matrix is row `from`. Columns that there
  /// are not, up to whole vectors, may be anything.
  Matrix rows(Code &code, mlir::Value from, mlir::Value to);
  /// Copies their transpose into `memref`, of `to` - `from` columns at most.
  /// Columns after them may be anything finite that the operand has.
  void turn(Code &code, mlir::Value memref, mlir::Value from, mlir::Value to);

private:
  Matrix inPlace(Code &code, mlir::Value from) const;

  AnchorKernel &kernel;
  unsigned along, line;
  int64_t columns, lanes;
  Operand operand;
  bool isInPlace;
  GemmOperand packedRows, packedColumns;
  Gemm rowsOf, columnsOf;
  std::optional<ScratchMatrix> copy;
  llvm::SmallVector<mlir::Value> place;
};

} // namespace tandem::lower::cpu

#endif
