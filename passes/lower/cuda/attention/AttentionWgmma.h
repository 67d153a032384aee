//===- AttentionWgmma.h - attention by warpgroups from bulk copies --------===//
//
// Attention of f16 and bf16 on sm_90a. One warpgroup of a block brings rows by
// bulk copies of tensors, into a ring of stages for A and one for B; one or two
// others have 64 of the block's own rows each. Their scores are products of
// factors in shared memory (wgmma); what is made of these stays in registers
// and is the left factor of the sums. The forward gives the products of the
// next step's scores to the tensor cores before those that take the weights of
// this one, so that exponentials are computed while products are made.
//
// Where there are many tiles, a block has several, one after the other; the
// rings go on from one to the next. All operands must have tensors for bulk
// copies.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_ATTENTION_ATTENTIONWGMMA_H
#define TANDEM_PASSES_LOWER_CUDA_ATTENTION_ATTENTIONWGMMA_H

#include "passes/lower/cuda/attention/AttentionScores.h"
#include "passes/lower/cuda/products/GemmFactor.h"
#include "passes/lower/cuda/products/WarpgroupCode.h"

#include <memory>

namespace tandem::lower::cuda {

class AttentionWgmma : public AttentionScores {
public:
  AttentionWgmma(AnchorKernel &kernel, ThreadCode &code);

  /// Whether there are such kernels of the operands.
  static Fit fit(AnchorKernel &kernel, ThreadCode &code);
  /// How it is cut.
  ScheduleOverride numbers() const;
  double seconds() const;
  LaunchShape emit();

private:
  /// A and B, of the own rows and of the others.
  struct Side {
    std::unique_ptr<MatrixFactor> rows; ///< null if it is not needed
    Value map;
    int64_t at = 0; ///< bytes from the base to the first tile
  };
  /// Where somebody stands in a ring of stages.
  struct Place {
    Value stage, parity;
  };

  // Which tiles, and where they are (AttentionWgmma.cpp).
  Fit fitOfSizes() const;
  void chooseShape();
  void chooseChain();
  AttentionWork work() const;
  bool hasRoom() const;
  int64_t registers() const;
  int64_t groups() const { return shape.warps / 4; }
  int64_t chunks(bool ofB) const { return (widthOf(ofB) + 63) / 64; }
  int64_t tileBytes(bool ofB, int64_t rows) const {
    return chunks(ofB) * rows * tileRowBytes;
  }
  int64_t sharedBytes() const;
  void takeSide(Side &side, Number number, bool ofB);
  void makeMap(Side &side, int64_t rows);
  void layOut();
  void initialize();
  void forEachTile(const Values &init,
                   llvm::function_ref<Values(mlir::ValueRange carried)> body);

  // Who brings rows.
  void bring();
  void bringRows();
  void bringNumbers();
  Place
  forEachStep(const Place &from,
              llvm::function_ref<void(const Rows &rows, const Place &at)> body);
  void copyTile(Side &side, bool ofB, int64_t rows, Value first, Value to,
                Value barrier);
  void copyNumbers(Number number, Value to, Value at, Value first);
  /// The step that comes after `done` others.
  Value numberOf(Value begin, Value count, Value done);
  Rows rowsOf(Value number, Value stage);

  // Who computes (AttentionWgmmaCode.cpp).
  void compute();
  void takeOwnRows(Value parity);
  void releaseOwnRows();
  /// The registers of `start` behind the last step; the places move on.
  Values forward(Value full, Value end, Place &a, Place &b);
  Values forwardStep(Value number, bool masked, mlir::ValueRange carried);
  /// The sums of gradients over the steps of `full` and `cut` (see bounds).
  Values gradients(const Values &full, const Values &cut, Place &at);
  Values gradientStep(Value number, bool masked, mlir::ValueRange carried);
  /// Begins the products of the own rows with those of a stage.
  Value products(bool ofB, Value stage);
  /// Begins to add those of `factors`, packed, with the rows of a stage.
  Value accumulate(const Sum &sum, mlir::ValueRange factors, Value stage,
                   Value sums);
  void scaleAndMask(const Rows &rows, bool masked, Values &scores);
  /// Weights or gradients as left factors.
  Values pack(const Values &scores);
  /// Waits for `sums` and all products before them, when the numbers `made` are
  /// there; returns both. `factors` are registers of these products.
  std::pair<Values, Values> waitAfter(const Values &made, int64_t groups,
                                      Value sums,
                                      mlir::ValueRange factors = {});
  /// ptxas puts arithmetic that follows nothing but a wait for other products
  /// behind that wait. Not if it is in another basic block: here B's stage, for
  /// which has been waited, is waited for again, which it does with one branch.
  void endBlock(const Place &b);
  void release(bool ofB, Value stage);

  // The rings.
  Value barrier(bool ofB, bool isFull, Value stage);
  Value ownBarrier(bool isFull) {
    return warpgroup.barrierAt(barriers, code.index(isFull ? 0 : 1));
  }
  Value turned(Value parity);
  Place firstPlace(int64_t parity);
  Place after(const Place &place);
  /// The address of a stage.
  Value tileAt(bool ofB, Value stage);

  WarpgroupCode warpgroup;
  int64_t stages = 2;
  int64_t chain = 1; ///< tiles of a block
  Side own_[2], other_[2];
  bool isCut = false;   ///< there are such tiles
  Value base, barriers; ///< addresses
  Value ownDescriptors[2];
  Value lseMemory, deltaMemory;
};

} // namespace tandem::lower::cuda

#endif
