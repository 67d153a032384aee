//===- WeightProducts.cpp - the products of which a weight is a factor ----===//
#include "passes/common/WeightProducts.h"

#include "ir/Signature.h"

using namespace mlir;
using namespace tandem;

/// True if `op` repeats a matrix for each of several batches.
static bool repeats(BroadcastOp op) {
  ArrayRef<int64_t> shape = op.getShape(), dims = op.getDims();
  auto matrix = cast<RankedTensorType>(op.getX().getType());
  int64_t rank = static_cast<int64_t>(shape.size());
  return dims == ArrayRef<int64_t>{rank - 2, rank - 1} &&
         shape.take_back(2) == matrix.getShape();
}

/// Adds what reads `factor`, the weight or its transpose, as `value`: itself or
/// its repetition.
static void addReaders(Weight &weight, Value factor, Value value,
                       bool isTransposed) {
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    auto matmul = dyn_cast<MatmulOp>(op);
    auto permute = dyn_cast<PermuteOp>(op);
    auto broadcast = dyn_cast<BroadcastOp>(op);
    if (isa<LinearOp>(op) && use.getOperandNumber() == 1) {
      weight.products.push_back({op, factor, isTransposed});
    } else if (matmul && use.getOperandNumber() == 1 &&
               !matmul.getTransposeLhs()) {
      weight.products.push_back(
          {op, factor, isTransposed == matmul.getTransposeRhs()});
    } else if (permute && factor == value &&
               permute.getPermutation() == ArrayRef<int64_t>{1, 0}) {
      addReaders(weight, permute, permute, !isTransposed);
    } else if (broadcast && factor == value && repeats(broadcast)) {
      addReaders(weight, factor, broadcast, isTransposed);
    } else {
      weight.otherReader = op;
    }
  }
}

SmallVector<Weight> tandem::weightsOfProducts(func::FuncOp graph) {
  SmallVector<Weight> weights;
  for (BlockArgument argument : graph.getArguments()) {
    RoleAttr role = roleOfArgument(graph, argument.getArgNumber());
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (role.getKind() != RoleKind::Param || !type || type.getRank() != 2 ||
        !isa<FloatType>(type.getElementType()))
      continue;
    Weight weight{argument, role, {}};
    addReaders(weight, argument, argument, false);
    if (!weight.products.empty())
      weights.push_back(std::move(weight));
  }
  return weights;
}
