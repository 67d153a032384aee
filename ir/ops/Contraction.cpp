//===- Contraction.cpp - matrix products and convolutions -----------------===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/ops/Inference.h"
#include "ir/reference/Generic.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::infer;

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

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *, Loc loc,
                                         Adaptor adaptor, Types &types) {
  Type lhs = adaptor.getLhs().getType(), rhs = adaptor.getRhs().getType();
  auto a = infer::shapeOf(loc, lhs), b = infer::shapeOf(loc, rhs);
  if (failed(a) || failed(b) || failed(expectSameElements(loc, lhs, rhs)) ||
      failed(expectPrecision(loc, adaptor.getPrecision(), lhs)))
    return failure();
  size_t rank = a->size();
  if (rank < 2 || b->size() != rank)
    return fail(loc, "expected operands of one rank of at least 2, but got "
                     "ranks " +
                         Twine(rank) + " and " + Twine(b->size()));
  if (a->drop_back(2) != b->drop_back(2))
    return fail(loc, "expected equal leading dimensions, but got " + text(*a) +
                         " and " + text(*b));
  bool tl = adaptor.getTransposeLhs(), tr = adaptor.getTransposeRhs();
  int64_t k = (*a)[rank - (tl ? 2 : 1)], rhsK = (*b)[rank - (tr ? 1 : 2)];
  if (k != rhsK)
    return fail(loc, "expected lhs columns (" + Twine(k) +
                         ") to equal rhs rows (" + Twine(rhsK) + ")");
  SmallVector<int64_t> shape(a->drop_back(2));
  shape.push_back((*a)[rank - (tl ? 1 : 2)]);
  shape.push_back((*b)[rank - (tr ? 2 : 1)]);
  return pushShape(loc, lhs, shape, types);
}

/// Columns of op(lhs), the length of the sums.
static int64_t innerSize(MatmulOp op) {
  auto type = op.getLhs().getType();
  return type.getDimSize(type.getRank() - (op.getTransposeLhs() ? 2 : 1));
}

int64_t MatmulOp::getFlops() {
  return 2 * getY().getType().getNumElements() * innerSize(*this);
}

/// The operand of a permutation that swaps the last two dimensions alone.
static Value transposed(Value v) {
  auto permute = v.getDefiningOp<PermuteOp>();
  if (!permute)
    return {};
  ArrayRef<int64_t> by = permute.getPermutation();
  int64_t rank = by.size();
  if (rank < 2 || by[rank - 1] != rank - 2 || by[rank - 2] != rank - 1 ||
      !llvm::is_sorted(by.drop_back(2)))
    return {};
  return permute.getX();
}

namespace {
struct FoldTranspose : OpRewritePattern<MatmulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const final {
    Value lhs = transposed(op.getLhs()), rhs = transposed(op.getRhs());
    if (!lhs && !rhs)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      if (lhs) {
        op.getLhsMutable().assign(lhs);
        op.setTransposeLhs(!op.getTransposeLhs());
      }
      if (rhs) {
        op.getRhsMutable().assign(rhs);
        op.setTransposeRhs(!op.getTransposeRhs());
      }
    });
    return success();
  }
};
} // namespace

void MatmulOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                           MLIRContext *context) {
  patterns.add<FoldTranspose>(context);
}

// With Y = op(A) op(B): d op(A) = dY op(B)^T and d op(B) = op(A)^T dY; where A
// itself is the transpose, so is its gradient.
LogicalResult MatmulOp::pullback(Pullback &p) {
  bool tl = getTransposeLhs(), tr = getTransposeRhs();
  auto product = [&](Value a, Value b, bool ta, bool tb) {
    return p.expr(
        MatmulOp::create(p.builder, p.loc, a, b, ta, tb, getPrecisionAttr()));
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
  int64_t batches = M * N != 0 ? y.size() / (M * N) : 0;
  bool tl = getTransposeLhs();
  std::vector<double> turned;
  for (int64_t batch = 0; batch < batches; ++batch) {
    const double *rows = b.data.data() + batch * K * N;
    if (getTransposeRhs()) {
      turned = reference::turned(rows, N, K);
      rows = turned.data();
    }
    for (int64_t m = 0; m < M; ++m)
      for (int64_t k = 0; k < K; ++k) {
        double x = a[batch * M * K + (tl ? k * M + m : m * K + k)];
        for (int64_t n = 0; n < N; ++n)
          y[(batch * M + m) * N + n] += x * rows[k * N + n];
      }
  }
}
