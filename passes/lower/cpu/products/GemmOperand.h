//===- GemmOperand.h - tensors as the factors of a product ----------------===//
//
// Turns an operand of an anchor into the functions that the product emitter
// reads A or packs B with: by stride where the positions are affine (vectors
// of neighbours, squares that are transposed on the way, single elements), and
// through the element emitter where they are not.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_PRODUCTS_GEMMOPERAND_H
#define TANDEM_PASSES_LOWER_CPU_PRODUCTS_GEMMOPERAND_H

#include "passes/lower/common/Anchor.h"
#include "passes/lower/cpu/products/Gemm.h"

namespace tandem::lower::cpu {

using namespace lower;

class GemmOperand {
public:
  /// Operand `number` of the anchor at `index`, in dimensions of `sizes`. Of
  /// these, `line` is m or n and `k1` (and `k0`, if there is one) what is
  /// summed over; the others have one value during an item.
  GemmOperand(AnchorKernel &kernel, unsigned number,
              llvm::ArrayRef<mlir::AffineExpr> index,
              llvm::ArrayRef<int64_t> sizes, unsigned line,
              std::optional<unsigned> k0, unsigned k1);

  /// An item begins, in which the dimensions that are neither line nor k have
  /// these values (null: not theirs).
  void enter(llvm::ArrayRef<mlir::Value> dims);

  /// Makes this operand the product's A, or its B. `gemm.type` is set.
  void bindA(Gemm &gemm);
  void bindB(Gemm &gemm);

private:
  /// The position of (line, k0, k1) of an affine operand.
  mlir::Value position(mlir::Value atLine, mlir::Value atK0, mlir::Value atK1);
  /// The element there, of the type of the sums.
  mlir::Value element(mlir::Value atLine, mlir::Value atK0, mlir::Value atK1);
  int64_t stride(std::optional<unsigned> dim) const {
    return dim ? operand.stride(*dim) : 0;
  }
  bool isNear() const;
  void findPanels();
  void bindPanels(Gemm &gemm);
  void forEachK(const GemmPanel &panel,
                llvm::function_ref<void(mlir::Value k0, mlir::Value k1)> body);
  void packRow(const GemmPanel &panel, mlir::Value atK0, mlir::Value atK1,
               bool isMasked);
  void packRows(const GemmPanel &panel, int64_t N);
  void packTransposed(const GemmPanel &panel, int64_t N);
  void packElements(const GemmPanel &panel);
  void packBlock(const GemmBlock &block);

  AnchorKernel &kernel;
  Code &code;
  unsigned number;
  llvm::SmallVector<mlir::AffineExpr> index;
  llvm::SmallVector<int64_t> sizes;
  unsigned line;
  std::optional<unsigned> k0;
  unsigned k1;
  Operand operand;
  /// The operand in panels (passes/common/PackedWeights.h), if it is: of the
  /// dimensions after the others, the first counts panels, the second columns
  /// of one.
  std::optional<Operand> panels;
  int64_t panelColumns = 0;
  mlir::Type type; ///< of the sums

  llvm::SmallVector<mlir::Value> dims; ///< the item's values
  mlir::Value base;                    ///< the position of line 0, k 0
  /// The last position, to be used again in the same block.
  struct {
    mlir::Block *block = nullptr;
    mlir::Value line, k0, k1, position;
  } last;
};

} // namespace tandem::lower::cpu

#endif
