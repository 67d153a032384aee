//===- LoopEmitter.h - the code of loop kernels ---------------------------===//
//
// One kernel of loop ops, in one of three forms:
// - pointwise: no reductions; an item is a block of elements;
// - rows: the innermost index is reduced; an item is one kept index, and its
//   reductions are scalars carried by the loops over the reduced indices. With
//   partial results an item is a part: the kept indices of one after the other,
//   and rows of accumulators;
// - columns: the innermost index is kept; an item is a block of it, and its
//   reductions are short rows of accumulators.
// Loops run once per level of reductions; what is much work and needed at
// several levels is kept in scratch where a row of it is small (RowCache.h).
//
// The order of an item's arithmetic depends on the kernel alone, and long sums
// are sums of partial sums, so that their error does not grow with the length.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_LOOPS_LOOPEMITTER_H
#define TANDEM_PASSES_LOWER_CPU_LOOPS_LOOPEMITTER_H

#include "passes/lower/common/ElementEmitter.h"
#include "passes/lower/cpu/KernelEmitter.h"
#include "passes/lower/cpu/loops/OneHotReduction.h"
#include "passes/lower/cpu/loops/RowCache.h"
#include "passes/plan/LoopNest.h"
#include "passes/target/CpuCaches.h"

namespace tandem::lower::cpu {

/// Tensors from here on do not stay in a core's own caches.
inline constexpr int64_t kLargeBytes = caches::kPast;

class LoopEmitter {
public:
  LoopEmitter(KernelOp kernel, LoopNest nest, mlir::OpBuilder &b,
              KernelBody &body);

  Work emitPointwise();
  Work emitRows();
  Work emitColumns();
  /// The scratch that the code of rows takes.
  int64_t scratchOfRows() const;
  /// How each form cuts the kernel.
  ScheduleOverride cutPointwise();
  ScheduleOverride cutRows();
  ScheduleOverride cutColumns();

private:
  using Values = llvm::SmallVector<mlir::Value>;
  using Body = llvm::function_ref<void(mlir::Value iv)>;

  mlir::Value constant(int64_t value);
  /// for iv = low, low + 1, ... below high.
  mlir::scf::ForOp loop(mlir::Value low, mlir::Value high, Body body);
  /// How many vectors stand beside each other in the code of a loop over `size`
  /// elements, which has long chains of steps or carries sums; and the same
  /// said to LLVM.
  int64_t vectorsTogether(bool hasChains, bool hasSums, int64_t size);
  int64_t vectorsTogether(mlir::scf::ForOp loop, int64_t size);
  /// Makes vectors of `loop` over `size` elements, `count` side by side.
  void vectorize(mlir::scf::ForOp loop, int64_t count, int64_t size);
  /// Fixes the order in which `loop` adds up rows of `size` elements.
  void fixOrder(mlir::scf::ForOp loop, int64_t size);
  void loop(int64_t size, Body body) {
    loop(constant(0), constant(size), body);
  }
  /// The same, carrying values.
  Values
  loop(mlir::Value low, mlir::Value high, mlir::ValueRange init,
       llvm::function_ref<Values(mlir::Value iv, mlir::ValueRange)> body);
  /// The bounds of block `block` of `size` indices cut into blocks.
  std::pair<mlir::Value, mlir::Value> bounds(mlir::Value block,
                                             int64_t blockSize, int64_t size);
  /// Sets the indices of `dims` from their joint row-major position.
  void setIndices(llvm::ArrayRef<unsigned> dims, mlir::Value position);

  /// A dimension of what is concatenated, and where its pieces begin, and end.
  struct Pieces {
    unsigned dim;
    llvm::SmallVector<int64_t> bounds;
  };
  std::optional<Pieces> findPieces() const;
  /// Emits `code` for where the index `at` of a dimension is in [low, high):
  /// meanwhile the nest is the part of it there.
  void within(unsigned dim, int64_t low, int64_t high, mlir::Value at,
              llvm::function_ref<void()> code);
  /// Emits `code` for each piece of what is concatenated, where its dimension
  /// is one of those around the code, so that what is read is known in it; else
  /// once.
  void whereReadsAreKnown(llvm::function_ref<void()> code);

  void storeRoots(llvm::function_ref<bool(const LoopNest::Root &)> which);
  mlir::Value combine(const LoopNest::Reduction &reduction, mlir::Value x,
                      mlir::Value y, bool anyOrder);

  // What is asked for before it is needed.
  struct Stream {
    unsigned input;
    mlir::AffineExpr at; ///< linear
    int64_t bytes;       ///< of an element
  };
  llvm::SmallVector<Stream> largeReads();
  /// Those that the schedule lets it ask for.
  llvm::SmallVector<Stream> streams();
  /// `ahead`, where there is anything to ask for.
  ScheduleOverride cutAhead();
  void askAhead(std::optional<unsigned> step = {}, int64_t stepSize = 1);
  void prefetchNextRow(mlir::Value position, unsigned level);

  // Rows.
  /// What is saved at a level for later ones, and where: in scratch, or
  /// the elements themselves where the code has no loops over them.
  struct Saved : CachedRow {
    mlir::Value row;
    Values elements = {};
  };
  /// The elements of the rows that lie in scratch, which have one for each
  /// reduced index: of those that are saved, then of the partial results.
  llvm::SmallVector<mlir::Type>
  rowsInScratch(llvm::ArrayRef<CachedRow> saved) const;
  int64_t rowBytes(mlir::Type element) const;
  void emitRow(mlir::Value position);
  void storePartials(mlir::Value item, mlir::Value position);
  void overReduced(llvm::function_ref<void(mlir::Value position)> code);
  void emitRowLevel(unsigned level);
  llvm::SmallVector<const LoopNest::Reduction *>
  reductionsInLoops(unsigned level) const;
  mlir::Value emitPicked(const LoopNest::Reduction &reduction,
                         const OneHotReduction &picked);
  Values rowLoops(unsigned level, llvm::ArrayRef<unsigned> dims,
                  mlir::ValueRange totals, bool isOuter);
  mlir::Value savedElement(const Saved &row);
  Values writtenOut(unsigned dim, mlir::ValueRange init,
                    llvm::function_ref<Values(mlir::ValueRange)> code);
  Values innermostRow(unsigned level, unsigned dim, mlir::Value low,
                      mlir::Value high);

  Work workOf(int64_t items, int64_t scratchBytes = 0);
  /// How a pointwise kernel is cut into items.
  struct PointwiseCut {
    unsigned
        dim; ///< that is cut into blocks; the rank if an item is an element
    int64_t block = 1, blocks = 1; ///< of its indices
    int64_t together = 1;          ///< elements whose code stands together
  };
  PointwiseCut pointwiseCut() const;
  /// So many are some microseconds of work, and fit the first-level cache.
  int64_t elementsOfItem() const;
  int64_t columnsOfItem() const;
  ScheduleOverride said() const { return ScheduleOverride::of(kernel); }

  KernelOp kernel;
  LoopNest nest;
  mlir::OpBuilder &b;
  mlir::Location loc;
  KernelBody &body;
  ElementEmitter elements;
  /// The index of each dimension of the nest, where the code stands.
  Values ivs;
  llvm::SmallVector<Saved> saved;
  mlir::AffineExpr rowPosition;
  /// Rows: whether each element has code of its own, and where that code stands
  /// in the row then.
  bool isWrittenOut = false;
  int64_t writtenPosition = 0;
  /// Rows: the reductions that no loop is needed for.
  llvm::DenseMap<mlir::Operation *, OneHotReduction> picked;
  /// Rows: the accumulators of the partial results.
  Values partials;
};

} // namespace tandem::lower::cpu

#endif
