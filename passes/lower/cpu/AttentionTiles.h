//===- AttentionTiles.h - the memory of a tile of attention ---------------===//
//
// Attention's code works on the transpose of the scores: a lane is an own row
// of the tile, a query for the forward and the queries' gradient and a key for
// the keys' gradient; what it is multiplied with, the other rows, comes by
// blocks. So a row's statistics are lanes, and no product needs a transpose but
// that of the own rows, once: scores are blocks of other rows times own
// columns, and with scores as columns of the first factor, and other rows as
// the second, results are sums of whole rows.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_ATTENTIONTILES_H
#define TANDEM_PASSES_LOWER_CPU_ATTENTIONTILES_H

#include "passes/lower/common/AttentionIndex.h"
#include "passes/lower/cpu/GemmOperand.h"

namespace tandem::cpu {

/// How the work is cut. An item is a tile of own rows of one batch.
struct AttentionSchedule {
  AttentionSchedule(const AttentionIndex &index, const VectorTarget &target,
                    bool ownsKeys);

  int64_t own, others; ///< how many rows there are
  int64_t lanes;       ///< of a register
  int64_t vectors;     ///< of own rows in a tile
  int64_t block;       ///< other rows at one time, a multiple of the lanes
                       ///< and of the rows of a tile of scores
  int64_t registers;   ///< for rows of a tile of registers
  int64_t width() const { return vectors * lanes; }
  int64_t tiles() const;
  /// `columns`, at least one, in whole vectors.
  int64_t padded(int64_t columns) const;
  /// Of the products that make scores, and of those of scores with `columns`
  /// columns of other rows.
  GemmSchedule scoreProduct() const;
  GemmSchedule rowProduct(int64_t columns) const;
};

/// Matrices of one shape in scratch, found by number.
class Matrices {
public:
  Matrices(AnchorKernel &kernel, int64_t count, int64_t rows, int64_t columns,
           mlir::Type type);
  mlir::Value at(mlir::Value number) const;

private:
  Code &code;
  mlir::MemRefType type;
  int64_t bytes;
  mlir::Value memory;
};

/// An operand of which parts are copied into scratch, in the type of the sums.
class PackedOperand {
public:
  /// Its rows are along dimension `along`, its columns along `line`.
  PackedOperand(AnchorKernel &kernel, const AttentionIndex &index,
                AttentionIndex::Number number, unsigned along, unsigned line);

  void enter(llvm::ArrayRef<mlir::Value> batch) { operand.enter(batch); }
  /// Copies `columns` columns from `line` on of the rows [from, to) into
  /// `memref`, with columns of a multiple of `lanes`. Other columns, and
  /// `lanes` rows after the last, may become anything.
  void pack(Code &code, mlir::Value memref, int64_t lanes, mlir::Value from,
            mlir::Value to, mlir::Value line, mlir::Value columns);

private:
  GemmOperand operand;
  Gemm gemm;
};

} // namespace tandem::cpu

#endif
