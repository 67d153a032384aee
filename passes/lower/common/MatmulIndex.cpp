//===- MatmulIndex.cpp - the dimensions of a matrix product's code --------===//
#include "passes/lower/common/MatmulIndex.h"
#include "passes/lower/common/Indices.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

MatmulIndex MatmulIndex::of(Operation *anchor) {
  auto op = cast<MatmulOp>(anchor);
  RankedTensorType type = op.getY().getType();
  unsigned rank = type.getRank();
  MatmulIndex index;
  index.m = rank - 2;
  index.n = rank - 1;
  index.k = rank;
  index.sizes.assign(type.getShape().begin(), type.getShape().end());
  index.sizes.push_back(op.getLhs().getType().getDimSize(
      op.getTransposeLhs() ? index.m : index.n));
  index.dims = dimensions(op.getContext(), rank + 1);
  auto of = [&](unsigned row, unsigned column, bool transposed) {
    SmallVector<AffineExpr> place(ArrayRef(index.dims).take_front(rank - 2));
    place.push_back(index.dims[transposed ? column : row]);
    place.push_back(index.dims[transposed ? row : column]);
    return place;
  };
  index.lhs = of(index.m, index.k, op.getTransposeLhs());
  index.rhs = of(index.k, index.n, op.getTransposeRhs());
  return index;
}
