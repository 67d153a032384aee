//===- Matmul.cpp - matrix products for CUDA ------------------------------===//
//
// The dimensions of the code are those of the result, [batch..., m, n], and k
// after them.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cuda/KernelEmitter.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cuda_lower;

FailureOr<LaunchShape> cuda_lower::emitMatmul(AnchorKernel &kernel,
                                              ThreadCode &code) {
  auto op = cast<MatmulOp>(kernel.anchor);
  RankedTensorType type = op.getY().getType();
  int64_t rank = type.getRank();
  unsigned m = rank - 2, n = rank - 1, k = rank;
  SmallVector<int64_t> sizes(type.getShape());
  int64_t inner =
      op.getLhs().getType().getDimSize(op.getTransposeLhs() ? m : n);
  sizes.push_back(inner);
  SmallVector<AffineExpr> dims;
  for (int64_t d = 0; d <= rank; ++d)
    dims.push_back(getAffineDimExpr(d, op.getContext()));
  auto indexOf = [&](unsigned row, unsigned column, bool transposed) {
    SmallVector<AffineExpr> index(ArrayRef(dims).take_front(rank - 2));
    index.push_back(dims[transposed ? column : row]);
    index.push_back(dims[transposed ? row : column]);
    return index;
  };
  auto lhs = indexOf(m, k, op.getTransposeLhs());
  auto rhs = indexOf(k, n, op.getTransposeRhs());
  int64_t items = type.getNumElements();
  Type compute = scalar::computeType(type.getElementType());

  LaunchShape shape = LaunchShape::over(items);
  Value item = code.add(code.mul(code.block(), shape.block[0]), code.thread());
  code.when(code.less(item, code.index(items)), [&] {
    SmallVector<Value> at(rank + 1);
    Value rest = item;
    for (int64_t d = rank - 1; d >= 0; --d) {
      at[d] = d == 0 ? rest : code.rem(rest, sizes[d]);
      rest = code.div(rest, sizes[d]);
    }
    auto sums =
        code.loop(code.index(0), code.index(inner), 1,
                  {code.number(compute, 0)}, [&](Value iv, ValueRange carried) {
                    at[k] = iv;
                    Value x = kernel.element(0, lhs, at, sizes);
                    Value y = kernel.element(1, rhs, at, sizes);
                    Value product = scalar::mul(code.b, code.loc, x, y);
                    return ThreadCode::Values{
                        scalar::add(code.b, code.loc, carried[0], product)};
                  });
    kernel.finish(ArrayRef<Value>(at).take_front(rank), sums[0]);
  });
  return shape;
}
