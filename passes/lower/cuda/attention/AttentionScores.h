//===- AttentionScores.h - scores in the registers of threads -------------===//
//
// What a thread computes of attention between products of tensor cores. A block
// has some rows of one kind, its own: queries, or keys for the keys' gradient.
// It goes over the rows of the other kind step by step. Each warp has 16 or 32
// of the block's own rows: their scores with all rows of a step, from which the
// weights follow, and the sums that become the result are in its registers, as
// MmaCode.h says of sums. Nothing is added by several blocks, so that the order
// of all sums is fixed.
//
// Operands are called A and B on both sides: A (of width D) makes the scores q
// k^T, B (of width E) the products dy v^T. Who makes the products, and brings
// the rows for them, is AttentionTiles or AttentionWgmma.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_ATTENTION_ATTENTIONSCORES_H
#define TANDEM_PASSES_LOWER_CUDA_ATTENTION_ATTENTIONSCORES_H

#include "passes/lower/common/Method.h"
#include "passes/lower/cuda/attention/Attention.h"
#include "passes/target/AttentionTime.h"

namespace tandem::lower::cuda {

class AttentionScores {
public:
  /// How the work is cut.
  struct Shape {
    int64_t blocks = 1; ///< of 16 own rows that a warp has: 1 or 2
    int64_t warps = 1;
    int64_t step = 16; ///< other rows at a time, a multiple of 16
    int64_t rows() const { return 16 * blocks * warps; }
    ScheduleOverride numbers() const;
    int64_t threads() const { return warpSize * warps; }
  };

protected:
  using Number = AttentionIndex::Number;
  using Value = mlir::Value;
  using Values = llvm::SmallVector<mlir::Value>;

  AttentionScores(AnchorKernel &kernel, ThreadCode &code);

  /// A result: sums of the other rows A or B, times what follows from scores.
  struct Sum {
    unsigned result;
    bool ofB;        ///< of B with the weights; else of A with their gradients
    int64_t columns; ///< that a block has, a multiple of 16
    unsigned column; ///< the dimension
  };
  /// The other rows of one step.
  struct Rows {
    Value first; ///< the first row
    Value lse,
        delta;    ///< where the rows of the first step's are; keys' gradient
    Value rowsAt; ///< the position in these
  };

  /// What is computed, in tiles of `shape`.
  AttentionWork work() const;
  Number own(bool ofB) const;
  Number other(bool ofB) const;
  int64_t widthOf(bool ofB) const { return ofB ? widthB : widthA; }
  /// The steps with scores that are all seen and those with some that are not:
  /// both as first and end. Of queries the latter are the last ones, of keys
  /// the first ones.
  std::pair<Values, Values> bounds();

  /// Takes the numbers of own rows. The registers at the beginning: of the
  /// forward the largest score and the sum of weights of each own row, then the
  /// sums.
  Values start();
  /// Scores that are not seen, or of rows that are not there, are -infinity.
  void mask(const Rows &rows, Values &scores);
  /// Weights from scores, in their place; what is carried changes with the
  /// largest score. Returns what the sums so far are to be multiplied by.
  Values softmax(Values &scores, Values &carried);
  void decay(const Values &decays, llvm::MutableArrayRef<Value> values);
  /// exp(scores - lse)
  Values weightsOf(const Rows &other, const Values &scores);
  /// weights * (products - delta), of products dy v^T
  Values gradients(const Rows &other, const Values &weights, Values products);
  void finish(Values results);
  void storeSums(const Sum &sum, llvm::ArrayRef<Value> sums);
  /// The number of a step, in registers and in shared memory.
  Value perOther(Value memory, const Rows &other, int64_t column);

  Value f32(double x) { return code.number(code.b.getF32Type(), x); }
  Value exp2(Value x);
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  /// This thread's own row in block `block`, the first or second one.
  Value ownRow(int64_t block, int64_t half);
  /// Where the element of `scores` is: registers of a block, by columns of 8.
  size_t place(int64_t block, int64_t column, int64_t i) const {
    return (block * (shape.step / 8) + column) * 4 + i;
  }

  AnchorKernel &kernel;
  ThreadCode &code;
  AttentionIndex index;
  bool isForward, byKey;
  int64_t ownRows, otherRows;
  /// Widths in shared memory, multiples of 16.
  int64_t widthA, widthB;
  int64_t parts = 1; ///< of the results' columns
  Shape shape{};
  llvm::SmallVector<Sum, 2> sums;
  bool needsGradients = false;
  /// Scores are multiplied by `before`, then by `factor` where an exponential
  /// of base 2 is taken.
  double before, factor;

  Values batch; ///< the values of the batch's dimensions
  Value part, ownFirst;
  Values ownLse, ownDelta; ///< by block and half
};

} // namespace tandem::lower::cuda

#endif
