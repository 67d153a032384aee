//===- Matmul.cpp - matrix products for CUDA ------------------------------===//
//
// The dimensions of the code are those of the result, [batch..., m, n], and k
// after them. Where all batches have the same rhs, they are one product with
// more rows.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/Indices.h"
#include "passes/lower/cuda/Methods.h"
#include "passes/lower/cuda/products/GemmFactor.h"
#include "passes/target/ByteProducts.h"
#include "passes/target/Target.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

/// Whether the operand does not depend on the first `batches` dimensions.
static bool isShared(AnchorKernel &kernel, unsigned number,
                     ArrayRef<AffineExpr> index, ArrayRef<int64_t> sizes,
                     unsigned batches, bool ofCast) {
  Operand operand = kernel.operand(number, index, sizes, ofCast);
  if (!operand.isAffine())
    return false;
  for (unsigned d = 0; d < batches; ++d)
    if (sizes[d] > 1 && operand.stride(d) != 0)
      return false;
  return true;
}

void lower::cuda::withMatmul(AnchorKernel &kernel, ThreadCode &code,
                             AskProduct ask) {
  auto op = cast<MatmulOp>(kernel.anchor);
  RankedTensorType type = op.getY().getType();
  if (type.getNumElements() == 0)
    return;
  unsigned rank = type.getRank();
  unsigned m = rank - 2, n = rank - 1, k = rank;
  SmallVector<int64_t> sizes(type.getShape());
  sizes.push_back(
      op.getLhs().getType().getDimSize(op.getTransposeLhs() ? m : n));
  SmallVector<AffineExpr> dims = dimensions(op.getContext(), rank + 1);
  auto indexOf = [&](unsigned row, unsigned column, bool transposed) {
    SmallVector<AffineExpr> index(ArrayRef(dims).take_front(rank - 2));
    index.push_back(dims[transposed ? column : row]);
    index.push_back(dims[transposed ? row : column]);
    return index;
  };
  auto lhsIndex = indexOf(m, k, op.getTransposeLhs());
  auto rhsIndex = indexOf(k, n, op.getTransposeRhs());

  SmallVector<unsigned> batchDims, rows;
  for (unsigned d = 0; d < m; ++d)
    batchDims.push_back(d);
  bool ofCasts = multipliesBytes(op);
  if (isShared(kernel, 1, rhsIndex, sizes, m, ofCasts))
    std::swap(rows, batchDims);
  rows.push_back(m);
  MatrixFactor lhs(kernel, code, 0, lhsIndex, sizes, rows, {k});
  MatrixFactor rhs(kernel, code, 1, rhsIndex, sizes, {n}, {k});
  std::optional<MatrixFactor> lhsBytes, rhsBytes;
  if (ofCasts) {
    lhsBytes.emplace(kernel, code, 0, lhsIndex, sizes, rows,
                     ArrayRef<unsigned>{k}, /*ofCast=*/true);
    rhsBytes.emplace(kernel, code, 1, rhsIndex, sizes, ArrayRef<unsigned>{n},
                     ArrayRef<unsigned>{k}, /*ofCast=*/true);
  }

  Gemm gemm;
  gemm.element = type.getElementType();
  gemm.type = scalar::computeType(type.getElementType());
  gemm.isTf32 = productPrecision(op) == "tf32";
  gemm.a = &lhs;
  gemm.b = &rhs;
  gemm.M = 1;
  for (unsigned d : rows)
    gemm.M *= sizes[d];
  for (unsigned d : batchDims)
    gemm.batches *= sizes[d];
  gemm.N = gemm.neighbours = sizes[n];
  gemm.K = sizes[k];

  SmallVector<Value> at(rank + 1, code.index(0));
  auto spread = [&](ArrayRef<unsigned> axis, Value value) {
    for (unsigned d : llvm::reverse(axis))
      if (d == axis.front())
        at[d] = value;
      else
        std::tie(value, at[d]) = code.split(value, sizes[d]);
  };
  gemm.enter = [&](Value batch) {
    spread(batchDims, batch);
    lhs.enter(at);
    rhs.enter(at);
  };
  gemm.finish = [&](ArrayRef<GemmElement> elements) {
    SmallVector<AnchorKernel::Element> together;
    for (const GemmElement &element : elements) {
      spread(rows, element.m);
      at[n] = code.add(element.n, element.j);
      together.push_back(
          {llvm::to_vector(ArrayRef(at).take_front(rank)), element.sum});
    }
    return kernel.finishTogether(together);
  };
  for (unsigned output : kernel.tileSums()) {
    Value memory = kernel.body.outputs[output];
    Value sum =
        kernel.kernel.getBody().front().getTerminator()->getOperand(output);
    OpBuilder::InsertionGuard guard(code.b);
    code.b.setInsertionPointAfterValue(memory);
    gemm.sums.push_back({flatten(code.b, code.loc, memory),
                         sum.getDefiningOp<ReductionOpInterface>()});
  }
  Gemm bytes = gemm;
  bytes.isOfBytes = ofCasts && lhsBytes->inMemory && rhsBytes->inMemory;
  if (bytes.isOfBytes) {
    bytes.a = &*lhsBytes;
    bytes.b = &*rhsBytes;
    bytes.enter = [&](Value batch) {
      spread(batchDims, batch);
      lhsBytes->enter(at);
      rhsBytes->enter(at);
    };
  }
  ProductKernel product{kernel.kernel, code, gemm,
                        bytes.isOfBytes ? &bytes : nullptr};
  ask(product);
}
