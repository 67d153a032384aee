//===- RowStates.h - how values follow from the rows of a batch -----------===//
//
// The batch is the first dimension of the inputs. For each value of a function
// without side effects: whether it follows from inputs at all, whether one of
// its dimensions goes over the rows and each row of it follows from that row of
// the inputs alone, or whether it is a sum over the rows. What no rule covers
// is unknown, which is always right.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_ROWS_ROWSTATES_H
#define TANDEM_PASSES_ROWS_ROWSTATES_H

#include "ir/Ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"

namespace tandem {

struct RowState {
  enum class Kind {
    Unknown,
    Constant, ///< follows from no input with rows
    Each,     ///< dimension `dim` goes over rows: place p of it is of row
              ///< (p / block) % rows, `repeats` times all rows
    Sum,      ///< a sum over rows of what follows from one row
    Mean,     ///< the same, and constants: a mean over rows
    Weighted  ///< a sum divided by the number of elements that count
  };
  Kind kind = Kind::Unknown;
  int64_t dim = 0, block = 1, repeats = 1;
  /// Constants: the dimensions along which all elements are equal.
  llvm::BitVector uniform = {};
  /// Weighted: the input whose elements are counted, and the one value of it
  /// that does not count.
  llvm::StringRef counted = {};
  int64_t ignored = 0;

  bool is(Kind other) const { return kind == other; }
  bool operator==(const RowState &other) const = default;
  /// Whether both go over rows, in the same order.
  bool goesAs(const RowState &other) const {
    return is(Kind::Each) && other.is(Kind::Each) && block == other.block &&
           repeats == other.repeats;
  }
};

class RowStates {
public:
  /// Finds the states of all values of `func`.
  explicit RowStates(mlir::func::FuncOp func);

  /// The rows of a batch: the first dimension of the first input that has one;
  /// 0 if there is none.
  int64_t batch() const { return rows; }
  RowState of(mlir::Value value) const { return states.lookup(value); }

private:
  RowState ofArgument(mlir::BlockArgument argument) const;
  void visit(mlir::Operation *op);
  RowState ofPointwise(mlir::Operation *op) const;
  RowState ofSums(mlir::Operation *op) const;
  RowState ofQuotient(mlir::Value total, mlir::Value count) const;
  RowState ofView(mlir::Operation *op) const;
  RowState ofReshape(mlir::Operation *op) const;
  RowState ofReduction(mlir::Operation *op) const;
  RowState ofMatmul(MatmulOp op) const;
  RowState ofTake(TakeOp op) const;
  void visitScan(ScanOp op);
  RowState joined(const RowState &before, const RowState &after) const;
  RowState along(mlir::Operation *op, int64_t dim) const;
  bool isUniform(mlir::Value value, int64_t dim) const;

  mlir::func::FuncOp func;
  int64_t rows = 0;
  llvm::DenseMap<mlir::Value, RowState> states;
};

/// Returns the argument of `func` that `value` is, seen through views and casts
/// between integers; null if it is none.
mlir::BlockArgument seenThroughViews(mlir::Value value);

} // namespace tandem

#endif
