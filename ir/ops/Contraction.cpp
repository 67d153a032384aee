//===- Contraction.cpp - matrix products and convolutions -----------------===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/reference/Generic.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/Contraction.cpp.inc"

void TandemDialect::addContractionOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Contraction.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// matmul
//===----------------------------------------------------------------------===//

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *,
                                         std::optional<Location> loc,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto lhs = cast<RankedTensorType>(adaptor.getLhs().getType());
  auto rhs = cast<RankedTensorType>(adaptor.getRhs().getType());
  int64_t rank = lhs.getRank();
  if (rank < 2 || rhs.getRank() != rank)
    return emitOptionalError(
        loc, "expected operands of one rank of at least 2, but got ranks ",
        rank, " and ", rhs.getRank());
  if (lhs.getElementType() != rhs.getElementType())
    return emitOptionalError(loc,
                             "expected operands of one element type, but "
                             "got ",
                             lhs.getElementType(), " and ",
                             rhs.getElementType());
  for (int64_t d = 0; d < rank - 2; ++d)
    if (lhs.getDimSize(d) != rhs.getDimSize(d))
      return emitOptionalError(loc,
                               "expected equal leading dimensions, but "
                               "dimension ",
                               d, " is ", lhs.getDimSize(d), " and ",
                               rhs.getDimSize(d));
  bool tl = adaptor.getTransposeLhs(), tr = adaptor.getTransposeRhs();
  int64_t k = lhs.getDimSize(rank - (tl ? 2 : 1));
  int64_t rhsK = rhs.getDimSize(rank - (tr ? 1 : 2));
  if (k != rhsK)
    return emitOptionalError(loc, "expected lhs columns (", k,
                             ") to equal rhs rows (", rhsK, ")");
  SmallVector<int64_t> shape(lhs.getShape().drop_back(2));
  shape.push_back(lhs.getDimSize(rank - (tl ? 1 : 2)));
  shape.push_back(rhs.getDimSize(rank - (tr ? 2 : 1)));
  types.push_back(lhs.clone(shape));
  return success();
}

/// Columns of op(lhs), the length of the sums.
static int64_t innerSize(MatmulOp op) {
  auto type = op.getLhs().getType();
  return type.getDimSize(type.getRank() - (op.getTransposeLhs() ? 2 : 1));
}

int64_t MatmulOp::getFlops() {
  return 2 * getY().getType().getNumElements() * innerSize(*this);
}

// With Y = op(A) op(B): d op(A) = dY op(B)^T and d op(B) = op(A)^T dY; where A
// itself is the transpose, so is its gradient.
LogicalResult MatmulOp::pullback(Pullback &p) {
  bool tl = getTransposeLhs(), tr = getTransposeRhs();
  auto product = [&](Value a, Value b, bool ta, bool tb) {
    return p.expr(MatmulOp::create(p.builder, p.loc, a, b, ta, tb));
  };
  if (p.needs(0))
    p.set(0, tl ? product(getRhs(), p.dy(), tr, true)
                : product(p.dy(), getRhs(), false, !tr));
  if (p.needs(1))
    p.set(1, tr ? product(p.dy(), getLhs(), true, tl)
                : product(getLhs(), p.dy(), !tl, false));
  return success();
}

void MatmulOp::evaluate(reference::Inputs in, reference::Outputs out) {
  const auto &a = *in[0], &b = *in[1];
  auto &y = out[0];
  int64_t rank = y.rank(), M = y.dim(rank - 2), N = y.dim(rank - 1);
  int64_t K = innerSize(*this);
  int64_t batches = M * N ? y.size() / (M * N) : 0;
  bool tl = getTransposeLhs(), tr = getTransposeRhs();
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t m = 0; m < M; ++m)
      for (int64_t k = 0; k < K; ++k) {
        double x = a[batch * M * K + (tl ? k * M + m : m * K + k)];
        for (int64_t n = 0; n < N; ++n)
          y[(batch * M + m) * N + n] +=
              x * b[batch * K * N + (tr ? n * K + k : k * N + n)];
      }
}
