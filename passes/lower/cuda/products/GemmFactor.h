//===- GemmFactor.h - tensors as the factors of a product -----------------===//
//
// An operand of an anchor, whose index is given in dimensions of the anchor's
// code, as a factor: lines and k are each one dimension or several, the last
// fastest. Where positions are affine it is read by stride, in pieces of
// neighbours; otherwise element by element through the element emitter.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_PRODUCTS_GEMMFACTOR_H
#define TANDEM_PASSES_LOWER_CUDA_PRODUCTS_GEMMFACTOR_H

#include "passes/lower/cuda/products/Gemm.h"

namespace tandem::lower::cuda {

class MatrixFactor : public GemmFactor {
public:
  /// Operand `number` at `index`, in dimensions of `sizes`. Those that are
  /// neither of the lines nor of k have one value in a block. With `ofCast` the
  /// factor is what the operand, a cast, reads.
  MatrixFactor(AnchorKernel &kernel, ThreadCode &code, unsigned number,
               llvm::ArrayRef<mlir::AffineExpr> index,
               llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<unsigned> lines,
               llvm::ArrayRef<unsigned> k, bool ofCast = false);

  /// A block begins, in which the other dimensions have these values.
  void enter(llvm::ArrayRef<Value> dims);

  Spot spot(Value line, Value k) override;
  Value compute(Value line, Value k) override;
  llvm::SmallVector<Value> batchPlace() override;

private:
  using Dims = llvm::SmallVector<unsigned>;
  void takeBytes();
  /// Whether the dimensions are one, by position.
  bool isOne(const Dims &axis) const;
  /// How many neighbours along the axis come together. The last of them may be
  /// behind its end, where the tensor has elements, too.
  int64_t neighbours(const Dims &axis, const Dims &other) const;
  /// Whether the tensor has elements wherever pieces of `count` neighbours
  /// reach.
  bool hasRoom(const Dims &axis, int64_t count) const;
  /// What is in memory is views of this input.
  Value whole() const;
  Value offset(const Dims &axis, Value at);
  /// The factor for bulk copies, whose strides, but for the first dimension's
  /// of 1, and first address are multiples of 16 bytes.
  std::optional<FactorTensor> asTensor() const;
  int64_t extent(const Dims &axis) const;
  /// The position of the first element.
  int64_t first() const;
  /// Sets the values of the axis' dimensions.
  void spread(const Dims &axis, Value at, llvm::MutableArrayRef<Value> values);

  AnchorKernel &kernel;
  ThreadCode &code;
  unsigned number;
  llvm::SmallVector<mlir::AffineExpr> index;
  llvm::SmallVector<int64_t> sizes;
  Dims lineDims, kDims;
  Dims batchDims; ///< those that the tensor has
  Operand operand;
  llvm::SmallVector<Value> dims; ///< the block's values
  Value base;                    ///< the position of line 0, k 0
};

} // namespace tandem::lower::cuda

#endif
