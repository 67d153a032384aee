//===- Indexing.cpp - gather and scatter by data --------------------------===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/reference/Generic.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::infer;

#define GET_OP_CLASSES
#include "ir/ops/Indexing.cpp.inc"

void TandemDialect::addIndexingOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Indexing.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// The shape of rows of `table` at `indices`.
static FailureOr<SmallVector<int64_t>> takenShape(Loc loc, Sizes table,
                                                  Type indices) {
  auto shape = infer::shapeOf(loc, indices);
  if (failed(shape))
    return failure();
  if (table.empty())
    return fail(loc, "expected a table of rank at least 1, but got rank 0");
  SmallVector<int64_t> taken(*shape);
  llvm::append_range(taken, table.drop_front());
  return taken;
}

LogicalResult TakeOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor adaptor,
                                       Types &types) {
  Type table = adaptor.getTable().getType();
  auto shape = infer::shapeOf(loc, table);
  if (failed(shape))
    return failure();
  auto taken = takenShape(loc, *shape, adaptor.getIndices().getType());
  if (failed(taken))
    return failure();
  return pushShape(loc, table, *taken, types);
}

LogicalResult TakeGradOp::inferReturnTypes(MLIRContext *, Loc loc,
                                           Adaptor adaptor, Types &types) {
  Type dy = adaptor.getDy().getType();
  auto taken =
      takenShape(loc, adaptor.getShape(), adaptor.getIndices().getType());
  if (failed(taken) || failed(expectShape(loc, "dy", dy, *taken)))
    return failure();
  return pushShape(loc, dy, adaptor.getShape(), types);
}

int64_t TakeOp::getFlops() { return 0; }
int64_t TakeGradOp::getFlops() { return getDy().getType().getNumElements(); }

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

LogicalResult TakeOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, p.expr(TakeGradOp::create(p.builder, p.loc, p.dy(), getIndices(),
                                       p.x().shape())));
  return success();
}

// What take gives for an index outside is not a row of the table: 0 instead.
LogicalResult TakeGradOp::pullback(Pullback &p) {
  if (!p.needs(0))
    return success();
  Expr indices = p.expr(getIndices());
  Expr zero = indices.like(0.0), row = indices;
  unsigned bits = indices.type().getElementTypeBitWidth();
  int64_t rows = getShape()[0];
  Expr inside = compare(ComparePredicate::ge, row, zero);
  if (bits > 32 || rows < (int64_t(1) << (bits - 1)))
    inside = p.expr(
        LogicalAndOp::create(p.builder, p.loc, inside,
                             compare(ComparePredicate::lt, row,
                                     row.like(static_cast<double>(rows)))));
  Expr taken = p.expr(TakeOp::create(p.builder, p.loc, p.dy(), getIndices()));
  auto leading = llvm::to_vector(llvm::seq<int64_t>(0, row.rank()));
  p.set(0, select(inside.broadcastTo(taken.shape(), leading), taken,
                  taken.like(0.0)));
  return success();
}

//===----------------------------------------------------------------------===//
// Reference
//===----------------------------------------------------------------------===//

/// Calls `body(i, row)` for each index; `row` is -1 for one outside.
template <typename Body>
static void forEachRow(const reference::Array &indices, int64_t rows,
                       Body body) {
  for (int64_t i = 0; i < indices.size(); ++i) {
    bool inside = indices[i] >= 0 && indices[i] < static_cast<double>(rows);
    body(i, inside ? static_cast<int64_t>(indices[i]) : -1);
  }
}

void TakeOp::evaluate(reference::Inputs in, reference::Outputs out) {
  int64_t rows = in[0]->dim(0), width = in[0]->size() / rows;
  bool isFloat = isa<FloatType>(getTable().getType().getElementType());
  double outside = isFloat ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  forEachRow(*in[1], rows, [&](int64_t i, int64_t row) {
    for (int64_t j = 0; j < width; ++j)
      out[0][i * width + j] = row < 0 ? outside : (*in[0])[row * width + j];
  });
}

void TakeGradOp::evaluate(reference::Inputs in, reference::Outputs out) {
  int64_t rows = getShape()[0], width = out[0].size() / rows;
  forEachRow(*in[1], rows, [&](int64_t i, int64_t row) {
    if (row >= 0)
      for (int64_t j = 0; j < width; ++j)
        out[0][row * width + j] += (*in[0])[i * width + j];
  });
}
