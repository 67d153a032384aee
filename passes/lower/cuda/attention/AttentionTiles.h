//===- AttentionTiles.h - attention by tiles ------------------------------===//
//
// A block has some rows of one kind, its own: queries, or keys for the keys'
// gradient. It goes over the rows of the other kind step by step; these are in
// shared memory twice, so that the next ones arrive while a step is computed.
// Each warp has 16 or 32 of the block's own rows: their scores with all rows of
// a step, from which the weights follow, and the sums that become the result
// are in its registers. Nothing is added by several blocks, so that the order
// of all sums is fixed. f16 and bf16 are multiplied by tensor cores; f32 is by
// the threads, which have the same elements as those of MmaCode.h.
//
// Operands are called A and B on both sides: A (of width D) makes the scores q
// k^T, B (of width E) the products dy v^T.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_ATTENTION_ATTENTIONTILES_H
#define TANDEM_PASSES_LOWER_CUDA_ATTENTION_ATTENTIONTILES_H

#include "passes/lower/common/Method.h"
#include "passes/lower/cuda/attention/Attention.h"
#include "passes/lower/cuda/products/MmaCode.h"

namespace tandem::lower::cuda {

class AttentionTiles {
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

  AttentionTiles(AnchorKernel &kernel, ThreadCode &code);

  /// Whether there are such kernels of the operands.
  static Fit fit(const AttentionIndex &index, const CudaTarget &target);
  /// How it is cut.
  ScheduleOverride numbers() const;
  LaunchShape emit();

private:
  using Number = AttentionIndex::Number;
  using Value = mlir::Value;
  using Values = llvm::SmallVector<mlir::Value>;
  using Matrix = MmaCode::Matrix;

  /// A result: sums of the other rows A or B, times what follows from scores.
  struct Sum {
    unsigned result;
    bool ofB;        ///< of B with the weights; else of A with their gradients
    int64_t columns; ///< that a block has, a multiple of 16
    unsigned column; ///< the dimension
  };
  /// The other rows of one step.
  struct Step {
    Value first; ///< the first row
    Matrix a, b;
    Value lse,
        delta;    ///< where the rows of the first step's are; keys' gradient
    Value rowsAt; ///< the position in these
  };

  // Which tiles, and where they are (AttentionTiles.cpp).
  void chooseSums();
  void chooseShape();
  Shape modelShape() const;
  Shape fitted(Shape candidate) const;
  bool hasRoom(const Shape &candidate) const;
  int64_t sharedBytes(const Shape &shape) const;
  /// Elements of 16 bytes.
  int64_t piece() const { return 16 / elementBytes(index.element); }
  /// Of rows of `width` elements, a multiple of 16. The rows that a warp reads
  /// at once, eight or four, lie in different banks: they are an odd multiple
  /// of 16 bytes apart.
  int64_t strideFor(int64_t width) const { return width + piece(); }
  int64_t widthOf(bool ofB) const { return ofB ? widthB : widthA; }
  Number own(bool ofB) const;
  Number other(bool ofB) const;
  Matrix matrix(int64_t rows, int64_t width);
  void copyRows(Number number, const Matrix &to, int64_t rows, Value first);
  void copyNumbers(Number number, Value to, Value at, Value first);
  void copyStep(Value number);
  Step stepOf(Value number);
  void takeOwnRows();
  std::pair<Values, Values> bounds();
  Values walk(Value from, Value to, Value end, bool masked, Values carried);

  // What is computed of a step (AttentionTileCode.cpp).
  Values initial();
  Values compute(const Step &step, bool masked, Values carried);
  Values products(bool ofB, const Matrix &other);
  Values productsByThreads(bool ofB, const Matrix &other);
  void accumulateByThreads(const Sum &sum, const Values &weights,
                           const Matrix &other,
                           llvm::MutableArrayRef<Value> sums);
  Values left(bool ofB, int64_t block, int64_t k);
  void mask(const Step &step, Values &scores);
  Values softmax(Values &scores, Values &carried);
  Values weightsOf(const Step &step, const Values &scores);
  Values gradients(const Step &step, const Values &weights);
  void accumulate(const Sum &sum, const Values &weights, const Matrix &other,
                  llvm::MutableArrayRef<Value> sums);
  void finish(Values results);
  void storeSums(const Sum &sum, llvm::ArrayRef<Value> sums);
  /// The number of a step, in registers and in shared memory.
  Value perOther(Value memory, const Step &step, int64_t column);

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
  MmaCode mma;
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
  Matrix ownA, ownB, stepA, stepB;
  Value lseMemory, deltaMemory;
  Values kept[2];          ///< own rows in registers, or empty
  Values ownLse, ownDelta; ///< by block and half
};

} // namespace tandem::lower::cuda

#endif
