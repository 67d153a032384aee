//===- LoopEmitter.h - CUDA code of loop kernels --------------------------===//
//
// One kernel of loop ops, in one of four forms:
// - pointwise: no reductions; a thread computes neighbouring elements, as many
//   as 16 bytes hold, so that loads and stores are whole vectors;
// - transposed: pointwise, but neighbours of the result are far from each other
//   in an operand; a block has a tile, which it reads as the operand has it and
//   turns in shared memory, of bytes alone as pieces of 16;
// - rows: the innermost index is reduced; a warp or a block has one kept index,
//   and its threads share the reduced ones. Where a thread's share is small it
//   stays in registers from level to level: memory is read once. Where rows are
//   added to each other too, a block has those of a part, one after the other;
// - columns: the innermost index is kept; a thread has neighbouring columns, as
//   many as 16 bytes hold, and others share them, each with its own part of the
//   reduced indices.
//
// The order of all arithmetic depends on the kernel alone.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_LOOPS_LOOPEMITTER_H
#define TANDEM_PASSES_LOWER_CUDA_LOOPS_LOOPEMITTER_H

#include "passes/lower/common/ElementEmitter.h"
#include "passes/lower/common/Method.h"
#include "passes/lower/cuda/KernelEmitter.h"
#include "passes/plan/LoopNest.h"

#include <deque>

namespace tandem::lower::cuda {

/// Threads of a block in a kernel of several parts.
inline constexpr int64_t kPartThreads = 256;

/// Numbers that are computed before the loops.
using SharedNumbers = llvm::SmallVector<std::pair<mlir::Value, mlir::Value>>;

/// Computes what is one number, takes long (the bias corrections of adam) and
/// has a part in `results`, which the kernel yields, once for each block of at
/// least 64 threads.
SharedNumbers shareNumbers(KernelOp kernel, llvm::ArrayRef<mlir::Value> results,
                           ThreadCode &code, const KernelBody &body);

class LoopEmitter {
public:
  /// Of the kernel's results from `firstResult` on, which `nest` computes.
  LoopEmitter(KernelOp kernel, LoopNest nest, unsigned firstResult,
              ThreadCode &code, const KernelBody &body);

  /// What is computed before the loops, if anything is.
  void use(const SharedNumbers &numbers) { totals = numbers; }

  /// `block` is the number of the block among those of the nest, of which
  /// there are pointwiseBlocks() and columnBlocks(), of kPartThreads threads.
  void emitPointwise(mlir::Value block);
  int64_t pointwiseBlocks();
  void emitColumns(mlir::Value block);
  int64_t columnBlocks();
  /// Whether an operand is worth turning.
  Fit fitTransposed();
  LaunchShape emitTransposed();
  LaunchShape emitRows();

private:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<mlir::Value>;
  using Which = llvm::function_ref<bool(const LoopNest::Root &)>;

  /// Where one element's code stands: its indices, and what was computed of it.
  /// Code of several elements can be beside each other.
  struct Slot {
    lower::ElementEmitter elements;
    Values index;
  };
  Slot &addSlot();
  /// Binds a reduction's result for all slots, those to come too.
  void bindTotal(const LoopNest::Reduction &reduction, Value total);
  void setIndices(Slot &slot, llvm::ArrayRef<unsigned> dims, Value position);

  /// Elements that 16 bytes of the largest type that is read or written hold.
  int64_t vectorLength();
  /// Neighbours that a thread of a pointwise kernel computes.
  int64_t pointwiseVector();

  /// Before results per kept index are stored: where one overwrites an input,
  /// all threads have read it.
  void finishReads();
  /// The elements of the roots; all are computed before any is stored.
  void storeRoots(llvm::ArrayRef<Slot *> slots, Which which, Value guard);
  Value combine(const LoopNest::Reduction &reduction, Value x, Value y);

  // Transposed.
  struct Turned {
    unsigned dim; ///< in which the operands are contiguous
    llvm::SmallVector<const LoopNest::Access *> reads;
  };
  Turned turnedReads();
  /// Whether the kernel does nothing but turn bytes, in pieces of 16.
  bool turnsBytes() const;
  LaunchShape emitBytes();
  /// Where the only read is, and the only result.
  mlir::AffineExpr readPosition() const;
  mlir::AffineExpr rootPosition() const;

  // Rows.
  struct RowShape {
    int64_t threads; ///< of a row: a power of two up to 32, or warps
    int64_t rows;    ///< of a block
    int64_t vector;  ///< neighbours that a thread takes at once
    int64_t chunks;  ///< how often it takes some
    bool keeps;      ///< in registers from level to level
  };
  RowShape rowShape();
  /// Adds the row to `partials`: of each partial result the sums of the
  /// thread's elements of rows.
  void emitKeptRow(const RowShape &shape, llvm::ArrayRef<unsigned> kept,
                   Value row, Value isRow,
                   llvm::MutableArrayRef<Value> partials);
  /// Stores what there is one element of in a row.
  void storeOfRow(const RowShape &shape, llvm::ArrayRef<unsigned> kept,
                  Value row, Value isRow);
  LaunchShape emitRowParts(const RowShape &shape);
  void storePartials(const RowShape &shape, llvm::ArrayRef<Value> sums);
  void emitLongRow(const RowShape &shape, llvm::ArrayRef<unsigned> kept,
                   Value row, Value isRow);
  Values reduceRow(const RowShape &shape,
                   llvm::ArrayRef<const LoopNest::Reduction *> reductions,
                   Values sums);

  // Columns.
  struct ColumnShape {
    int64_t vector; ///< neighbouring columns of a thread
    int64_t lanes;  ///< threads beside each other, a power of two up to 32
  };
  ColumnShape columnShape();
  /// Combines the sums of the threads that have the same columns; all of them
  /// get the totals. `sums` are those of each reduction's columns.
  void combineSharers(const ColumnShape &shape,
                      llvm::ArrayRef<const LoopNest::Reduction *> reductions,
                      Values sums, Value local);
  /// Binds the totals of the thread's column `column`.
  void bindColumn(Slot &slot, int64_t column);

  KernelOp kernel;
  LoopNest nest;
  unsigned firstResult;
  ThreadCode &code;
  const KernelBody &body;
  std::deque<Slot> slots;
  SharedNumbers totals;
  /// The totals of each of the thread's columns.
  llvm::SmallVector<std::pair<Value, Values>> ofColumns;
};

} // namespace tandem::lower::cuda

#endif
