//===- AttentionIndex.h - the dimensions of attention's code --------------===//
//
// The code of attention and its gradients walks over [leading..., t, s, d, e]:
// query, key, column of q and k, column of v. Here is which of them index each
// operand and result.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_ATTENTIONINDEX_H
#define TANDEM_PASSES_LOWER_COMMON_ATTENTIONINDEX_H

#include "passes/lower/common/Anchor.h"

namespace tandem::lower {

struct AttentionIndex {
  /// `op` is one of the three.
  explicit AttentionIndex(mlir::Operation *op);

  AttentionSizes attention;
  bool causal;
  double scale;
  mlir::Type element, compute;
  /// The positions of the dimensions, and the sizes of all.
  unsigned t, s, d, e;
  llvm::SmallVector<int64_t> sizes;

  /// Operands by number, in the order of attention_key_grad.
  enum Number : unsigned { Q, K, V, DY, LSE, DELTA };

  /// [leading..., last...]
  llvm::SmallVector<mlir::AffineExpr>
  index(llvm::ArrayRef<unsigned> last) const;
  /// The index of an operand.
  llvm::SmallVector<mlir::AffineExpr> operand(Number number) const;
  /// Values of all dimensions, of which those of the batch are set.
  llvm::SmallVector<mlir::Value> at(Code &code, mlir::Value batch) const;
  /// The index of a result [leading..., row], or of [leading..., row, column].
  llvm::SmallVector<mlir::Value> resultAt(llvm::ArrayRef<mlir::Value> at,
                                          mlir::Value row,
                                          mlir::Value column = {}) const;

private:
  mlir::MLIRContext *context;
};

} // namespace tandem::lower

#endif
