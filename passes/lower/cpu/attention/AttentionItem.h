//===- AttentionItem.h - what an item of attention consists of ------------===//
//
// The forward and the gradients walk over blocks of other rows for a tile of
// own rows, make scores, and sum rows with them as factors. Of causal
// attention, what nobody in a vector of own rows sees is left out. An own row
// is summed over the same blocks of other rows in their order, whichever thread
// it is in.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_ATTENTION_ATTENTIONITEM_H
#define TANDEM_PASSES_LOWER_CPU_ATTENTION_ATTENTIONITEM_H

#include "passes/lower/cpu/KernelEmitter.h"
#include "passes/lower/cpu/attention/AttentionTiles.h"

#include "mlir/Dialect/Math/IR/Math.h"

namespace tandem::lower::cpu {

class AttentionItem {
protected:
  using Number = AttentionIndex::Number;
  using Values = Code::Values;
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;

  AttentionItem(AnchorKernel &kernel, bool ownsKeys);

  /// The tile of the own rows from `first` on.
  void enterTile(Value first);
  /// Calls `body` with each panel of vectors of the tile.
  void forEachPanel(
      llvm::function_ref<void(Value first, int64_t vectors)> body) const;
  Value firstOf(Value vector) const {
    return code.add(firstOwn, code.mul(vector, schedule.lanes));
  }

  /// The rows [from, to) of a block.
  struct Block {
    Value from, to;
    Value isFirst; ///< of the tile's
  };
  /// Of the block's rows [low, high), which some lane of a vector sees, all
  /// lanes see those up to `middle`, if queries are own, or from there on.
  struct Seen {
    Value own; ///< the vector's first row
    Value low, high, middle;
  };
  Seen seenBy(Value vector, const Block &block) const;
  /// Calls `body` with each block of other rows that the tile sees.
  void forEachBlock(llvm::function_ref<void(const Block &block)> body);

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  /// result(row, own) = a(row, ...) b(..., own) with `k` columns of `a`, for
  /// the rows of the block that a vector of the panel sees; up to `step` rows
  /// more may be written.
  void multiply(const Matrix &a, const Matrix &b, int64_t k,
                const Matrix &result, Value firstVector, int64_t vectors,
                const Block &block);
  /// sums(own, ...) = scales(own) * sums + the sum of scores(row, own) b(row,
  /// ...) over the block's seen rows; without the first if the block is the
  /// first. `scales` has one row; without it they are 1.
  void addToOwn(const Matrix &scores, const Matrix &b, int64_t columns,
                const Matrix &sums, const Block &block,
                const Matrix *scales = nullptr);
  /// sums(row, ...) += the sum of scores(row, own) b(own, ...) over own keys,
  /// for the rows of the block, which are numbered from the first of all;
  /// without what was there if the tile is the first.
  void addToOthers(const Matrix &scores, const Matrix &b, int64_t columns,
                   const Matrix &sums, const Block &block);

  //===--------------------------------------------------------------------===//
  // Rows of scores
  //===--------------------------------------------------------------------===//

  /// `hidden(x, instead)`: a lane has `instead` where it does not see the row.
  using Hide = llvm::function_ref<Value(Value x, double instead)>;
  /// Calls `body` for each of the seen, as a row of the block, with a value
  /// carried on from `init`: several, which `join` makes one in the end.
  Value forEachRow(
      const Seen &seen, const Block &block, Value init,
      llvm::function_ref<Value(Value row, Hide hidden, Value carried)> body,
      llvm::function_ref<Value(Value, Value)> join);
  /// The same without a value.
  void forEachRow(const Seen &seen, const Block &block,
                  llvm::function_ref<void(Value row, Hide hidden)> body);

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  /// A result whose rows are along dimension `along`, columns along `column`.
  struct Result {
    unsigned number, along, column;
    std::optional<Operand> output; ///< if rows are stored as they are
  };
  Result resultLike(unsigned number, Number like, unsigned along,
                    unsigned column);
  /// Stores `count` rows from `first` on, each that row of `sums` times the
  /// scalar that `factor` gives for it.
  void finishRows(const Result &result, const Matrix &sums, Value first,
                  Value count, llvm::function_ref<Value(Value row)> factor);

  //===--------------------------------------------------------------------===//
  // Arithmetic
  //===--------------------------------------------------------------------===//

  template <typename Op> Value binary(Value x, Value y) const {
    return Op::create(code.b, code.loc, x, y,
                      mlir::arith::FastMathFlags::contract);
  }
  Value add(Value x, Value y) const {
    return binary<mlir::arith::AddFOp>(x, y);
  }
  Value sub(Value x, Value y) const {
    return binary<mlir::arith::SubFOp>(x, y);
  }
  Value mul(Value x, Value y) const {
    return binary<mlir::arith::MulFOp>(x, y);
  }
  Value splat(double x) const {
    return code.splat(code.number(type, x), schedule.lanes);
  }
  Value load(const Matrix &m, Value row, Value column) const {
    return code.load(m.memref, m.at(code, row, column), schedule.lanes);
  }
  void store(Value x, const Matrix &m, Value row, Value column) const {
    code.store(x, m.memref, m.at(code, row, column));
  }
  Value element(const Matrix &m, Value row, Value column) const {
    return mlir::memref::LoadOp::create(code.b, code.loc, m.memref,
                                        m.at(code, row, column));
  }
  /// scale * x - y
  Value subtractFrom(Value x, Value scale, Value y) const {
    return sub(mul(x, scale), y);
  }
  /// exp(x / unit), of x up to 127
  Value weightOf(Value x) const;
  /// The grain of `items` tiles with `products` products of rows each.
  int64_t grainOf(int64_t products, int64_t items) const;

  AnchorKernel &kernel;
  Code &code;
  AttentionIndex index;
  bool ownsKeys;
  AttentionSchedule schedule;
  mlir::Type type; ///< of the sums
  double unit;     ///< weights are powers of exp(1 / unit)

  // The item.
  llvm::SmallVector<Value> place; ///< of the batch
  Value firstOwn, ownCount;       ///< of the tile
  Value vectorCount;              ///< vectors with own rows

private:
  using RoundBody =
      llvm::function_ref<Values(Value row, Hide hidden, ValueRange carried)>;
  /// Calls `body` for rows [low, high) of a block, of which some are hidden.
  Values forEachHidden(const Seen &seen, Value low, Value high,
                       const Block &block, ValueRange init, RoundBody body);
  /// Calls `body` with tiles of `rows` rows, or what is left of these, for the
  /// block's rows [low, high); these are multiples of `rows`, but for the end.
  void forEachTile(Value low, Value high, int64_t rows,
                   llvm::function_ref<void(Value row, int64_t rows)> body);
  void multiplyRows(const TileProduct &product, const Matrix &result,
                    Value firstVector, int64_t vectors, Value low, Value high,
                    Value from);
  Value roundedDown(Value x, int64_t unit) const {
    return code.mul(code.div(x, unit), unit);
  }
};

} // namespace tandem::lower::cpu

#endif
