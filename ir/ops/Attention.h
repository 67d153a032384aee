//===- Attention.h - the sizes of attention -------------------------------===//
//
// One struct for attention, its form for kernels and the gradients of that:
// inference fills it from shapes, the reference and lowering read it.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_IR_OPS_ATTENTION_H
#define TANDEM_IR_OPS_ATTENTION_H

#include "ir/ops/Inference.h"

namespace tandem {

/// q is [leading..., queries, width], k [leading..., keys, width], v
/// [leading..., keys, valueWidth]; the scores are [leading..., queries, keys].
struct AttentionSizes {
  llvm::SmallVector<int64_t> leading;
  int64_t batches; ///< the product of `leading`
  int64_t queries, keys, width, valueWidth;

  /// Checks the types against each other.
  static mlir::FailureOr<AttentionSizes> get(infer::Loc loc, mlir::Type q,
                                             mlir::Type k, mlir::Type v);
  /// Of types that are checked.
  static AttentionSizes of(mlir::Type q, mlir::Type k, mlir::Type v);

  /// The shape `leading..., last...`.
  llvm::SmallVector<int64_t> shape(infer::Sizes last) const;
  /// How many keys query `t` sees: those up to it if `causal`.
  int64_t seen(int64_t t, bool causal) const {
    return causal ? std::min(keys, t + 1) : keys;
  }
  /// Scores that are not masked, of all batches.
  int64_t scores(bool causal) const;
};

/// Who sees whom in attention, by a mask [..., T, S] of bools, true where a
/// position is seen, or of floats that are added to scores.
enum class MaskKind {
  Other,  ///< not known, or something else
  All,    ///< each position sees all
  Causal, ///< position t sees those up to t
};
MaskKind kindOfMask(mlir::Value mask);

} // namespace tandem

#endif
