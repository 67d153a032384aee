//===- PackedWeights.cpp - right factors of products in panels ------------===//
#include "passes/common/PackedWeights.h"
#include "passes/target/Target.h"

using namespace mlir;
using namespace tandem;

int64_t tandem::panelColumns(Operation *op) {
  return hasFeature(op, "avx512f") ? 64 : 16;
}

bool tandem::canReadPanels(MatmulOp product) {
  RankedTensorType type = product.getRhs().getType();
  Type element = type.getElementType();
  return !isForCuda(product) && type.getRank() == 2 &&
         (element.isF32() || element.isF64());
}

Value tandem::panelsOf(MatmulOp product) {
  if (!canReadPanels(product) || product.getTransposeRhs())
    return {};
  Value shown = product.getRhs();
  // All of k, and columns from the first one on.
  if (auto slice = shown.getDefiningOp<SliceOp>()) {
    auto from = cast<RankedTensorType>(slice.getX().getType());
    auto to = cast<RankedTensorType>(shown.getType());
    if (!llvm::all_of(slice.getStarts(), [](int64_t i) { return i == 0; }) ||
        !llvm::all_of(slice.getStrides(), [](int64_t i) { return i == 1; }) ||
        from.getDimSize(0) != to.getDimSize(0))
      return {};
    shown = slice.getX();
  }
  auto rows = shown.getDefiningOp<ReshapeOp>();
  auto turned = rows ? rows.getX().getDefiningOp<PermuteOp>() : PermuteOp();
  if (!turned || turned.getPermutation() != ArrayRef<int64_t>{1, 0, 2})
    return {};
  auto panels = cast<RankedTensorType>(turned.getX().getType());
  auto matrix = cast<RankedTensorType>(shown.getType());
  if (!llvm::is_contained(kPanelColumns, panels.getDimSize(2)) ||
      matrix.getRank() != 2 || matrix.getDimSize(0) != panels.getDimSize(1))
    return {};
  return turned.getX();
}
