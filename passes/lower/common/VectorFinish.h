//===- VectorFinish.h - what follows from results, of whole vectors -------===//
//
// What follows from an element of an anchor's result is code of one element
// (AnchorKernel::finish). Where it is arithmetic on neighbours and on what all
// of them share, a vector of sums is finished in registers: the code is written
// once, aside, and copied with vectors in place of elements. A lane gets what
// its element would get, bit for bit.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_COMMON_VECTORFINISH_H
#define TANDEM_PASSES_LOWER_COMMON_VECTORFINISH_H

#include "passes/lower/common/Anchor.h"

#include <memory>

namespace tandem::lower {

class VectorFinish {
public:
  /// Of the elements of the anchor's one result at `index`, in dimensions of
  /// `sizes`, of which `line` runs along the lanes. None where an element needs
  /// other code than its neighbour, or reads or stores what is not beside it.
  static std::optional<VectorFinish> of(AnchorKernel &kernel,
                                        llvm::ArrayRef<mlir::AffineExpr> index,
                                        llvm::ArrayRef<int64_t> sizes,
                                        unsigned line);

  /// Whether an element needs functions, whose code is long.
  bool hasFunctions() const;
  /// Finishes and stores a vector of sums whose first lane is at `dims` (a null
  /// value stands for 0): those lanes that are on in `mask`, or all.
  void emit(Code &code, llvm::ArrayRef<mlir::Value> dims, mlir::Value sums,
            mlir::Value mask) const;
  /// Some sums that are side by side in memory.
  struct Run {
    mlir::Value memref;
    llvm::SmallVector<mlir::Value> at; ///< of the first, the last index runs
    mlir::Value count;
  };
  /// The same of a run of sums, whose first is at `dims`.
  void emitRun(Code &code, llvm::SmallVector<mlir::Value> dims,
               const Run &run) const;

private:
  VectorFinish() = default;
  bool widen(unsigned line);
  bool widen(mlir::Operation &op);
  int64_t strideOf(mlir::Value position) const {
    return strides.lookup(position);
  }

  unsigned line;
  int64_t lanes; ///< of the processor
  /// The code of one element; its arguments are the dimensions and the sum.
  std::shared_ptr<mlir::Block> element;
  llvm::DenseSet<mlir::Value> vectors; ///< that differ from lane to lane
  /// Positions that do: how far those of neighbours are apart.
  llvm::DenseMap<mlir::Value, int64_t> strides;
};

} // namespace tandem::lower

#endif
