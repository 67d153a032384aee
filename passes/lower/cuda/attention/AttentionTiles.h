//===- AttentionTiles.h - attention by tiles ------------------------------===//
//
// The rows that a block goes over are in shared memory twice, so that the next
// ones arrive while a step is computed. f16 and bf16 are multiplied by tensor
// cores, warp by warp; f32 is by the threads, which have the same elements as
// those of MmaCode.h. What is computed of scores is in AttentionScores.h.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_ATTENTION_ATTENTIONTILES_H
#define TANDEM_PASSES_LOWER_CUDA_ATTENTION_ATTENTIONTILES_H

#include "passes/lower/cuda/attention/AttentionScores.h"
#include "passes/lower/cuda/products/MmaCode.h"

namespace tandem::lower::cuda {

class AttentionTiles : public AttentionScores {
public:
  AttentionTiles(AnchorKernel &kernel, ThreadCode &code);

  /// Whether there are such kernels of the operands.
  static Fit fit(const AttentionIndex &index, const CudaTarget &target);
  /// How it is cut.
  ScheduleOverride numbers() const;
  double seconds() const;
  LaunchShape emit();

private:
  using Matrix = MmaCode::Matrix;

  /// The other rows of one step.
  struct Step : Rows {
    Matrix a, b;
  };

  // Which tiles, and where they are (AttentionTiles.cpp).
  void divideSums();
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
  Matrix matrix(int64_t rows, int64_t width);
  void copyRows(Number number, const Matrix &to, int64_t rows, Value first);
  void copyNumbers(Number number, Value to, Value at, Value first);
  void copyStep(Value number);
  Step stepOf(Value number);
  void takeOwnRows();
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
  void accumulate(const Sum &sum, const Values &weights, const Matrix &other,
                  llvm::MutableArrayRef<Value> sums);

  MmaCode mma;
  Matrix ownA, ownB, stepA, stepB;
  Value lseMemory, deltaMemory;
  Values kept[2]; ///< own rows in registers, or empty
};

} // namespace tandem::lower::cuda

#endif
