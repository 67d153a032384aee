//===- Indexing.cpp - gather and scatter by data --------------------------===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/reference/Generic.h"

#include <cmath>
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

LogicalResult ScatterOp::inferReturnTypes(MLIRContext *, Loc loc,
                                          Adaptor adaptor, Types &types) {
  Type table = adaptor.getTable().getType();
  Type updates = adaptor.getUpdates().getType();
  auto shape = infer::shapeOf(loc, table);
  if (failed(shape))
    return failure();
  auto taken = takenShape(loc, *shape, adaptor.getIndices().getType());
  if (failed(taken) || failed(expectShape(loc, "updates", updates, *taken)) ||
      failed(expectSameElements(loc, table, updates)))
    return failure();
  if (getElementTypeOrSelf(table).isInteger(1) &&
      adaptor.getCombine() != Combine::set)
    return fail(loc, "expected bools to be 'set', but got '" +
                         stringifyCombine(adaptor.getCombine()) + "'");
  return pushShape(loc, table, *shape, types);
}

int64_t ScatterOp::getFlops() {
  return getCombine() == Combine::set ? 0
                                      : getUpdates().getType().getNumElements();
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

/// Which of `indices` are of one of `rows` rows.
static Expr insideOf(const Expr &indices, int64_t rows) {
  Expr inside = compare(ComparePredicate::ge, indices, indices.like(0.0));
  if (holds(indices.type().getElementType(), rows))
    inside =
        logicalAnd(inside, compare(ComparePredicate::lt, indices,
                                   indices.like(static_cast<double>(rows))));
  return inside;
}

/// The bools of `indices`, for each element of their rows in `like`.
static Expr perRow(const Expr &bools, const Expr &like) {
  auto leading = llvm::to_vector(llvm::seq<int64_t>(0, bools.rank()));
  return bools.broadcastTo(like.shape(), leading);
}

/// The rows of a table at `indices`; 0 for an index outside, for which take
/// gives what is no row of the table.
static Expr rowsOrZero(const Expr &table, const Expr &indices) {
  Expr taken =
      table.wrap(TakeOp::create(*table.builder, table.loc, table, indices));
  return select(perRow(insideOf(indices, table.dim(0)), taken), taken,
                taken.like(0.0));
}

LogicalResult TakeGradOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, rowsOrZero(p.dy(), p.expr(getIndices())));
  return success();
}

static Expr scatter(Combine combine, const Expr &table, const Expr &indices,
                    const Expr &updates) {
  return table.wrap(ScatterOp::create(*table.builder, table.loc, combine, table,
                                      indices, updates));
}

/// For each index whether its row is the one that stays: it is the last with
/// this index, and inside of the table.
static Expr lastOf(const Expr &indices, int64_t rows) {
  OpBuilder &b = *indices.builder;
  int64_t count = indices.type().getNumElements();
  auto numbersType = RankedTensorType::get({count}, b.getI64Type());
  Expr number = indices.wrap(IotaOp::create(b, indices.loc, numbersType, 0))
                    .reshape(indices.shape());
  auto lastType = RankedTensorType::get({rows}, b.getI64Type());
  Expr none = indices.wrap(ConstantOp::splat(b, indices.loc, lastType, -1.0));
  Expr last = scatter(Combine::set, none, indices, number);
  Expr taken = indices.wrap(TakeOp::create(b, indices.loc, last, indices));
  return logicalAnd(insideOf(indices, rows),
                    compare(ComparePredicate::eq, taken, number));
}

/// The factors of an element are the table's and all rows'.
static void pullbackProduct(Pullback &p) {
  Expr table = p.in(0), indices = p.in(1), updates = p.in(2);
  if (p.needs(0))
    p.set(0, p.dy() * scatter(Combine::mul, table.like(1.0), indices, updates));
  if (!p.needs(2))
    return;
  // A row's gradient is the whole product without it: by division, and where it
  // is the only 0 among the rows, by leaving it out.
  Expr isZero = compare(ComparePredicate::eq, updates, updates.like(0.0));
  Expr zeros = p.expr(TakeGradOp::create(
      p.builder, p.loc, isZero.cast(updates.type().getElementType()), indices,
      table.shape()));
  Expr count = rowsOrZero(zeros, indices);
  Expr isOnly =
      logicalAnd(isZero, compare(ComparePredicate::eq, count, count.like(1.0)));
  Expr one = updates.like(1.0);
  Expr without =
      scatter(Combine::mul, table, indices, select(isOnly, one, updates));
  p.set(2, select(isOnly, rowsOrZero(p.dy() * without, indices),
                  rowsOrZero(p.dy() * p.y(), indices) /
                      select(isZero, one, updates)));
}

/// Shared evenly by the table's element and the rows that equal the result.
static void pullbackExtreme(Pullback &p) {
  Expr table = p.in(0), indices = p.in(1), updates = p.in(2);
  Type element = table.type().getElementType();
  Expr ofTable = compare(ComparePredicate::eq, table, p.y()).cast(element);
  Expr ofRows =
      compare(ComparePredicate::eq, updates, rowsOrZero(p.y(), indices))
          .cast(element);
  Expr each = p.dy() / scatter(Combine::add, ofTable, indices, ofRows);
  if (p.needs(0))
    p.set(0, ofTable * each);
  if (p.needs(2))
    p.set(2, ofRows * rowsOrZero(each, indices));
}

LogicalResult ScatterOp::pullback(Pullback &p) {
  Expr indices = p.in(1);
  switch (getCombine()) {
  case Combine::set:
    if (p.needs(0))
      p.set(0, scatter(Combine::set, p.dy(), indices, p.in(2).like(0.0)));
    if (p.needs(2)) {
      Expr taken = p.expr(TakeOp::create(p.builder, p.loc, p.dy(), indices));
      Expr stays = lastOf(indices, p.dy().dim(0));
      p.set(2, select(perRow(stays, taken), taken, taken.like(0.0)));
    }
    return success();
  case Combine::add:
    if (p.needs(0))
      p.set(0, p.dy());
    if (p.needs(2))
      p.set(2, rowsOrZero(p.dy(), indices));
    return success();
  case Combine::mul:
    pullbackProduct(p);
    return success();
  case Combine::min:
  case Combine::max:
    pullbackExtreme(p);
    return success();
  }
  return failure();
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
  int64_t rows = in[0]->dim(0), count = std::max<int64_t>(in[1]->size(), 1);
  int64_t width = out[0].size() / count; // there may be no row in the table
  bool isFloat = isa<FloatType>(getTable().getType().getElementType());
  double outside = isFloat ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  forEachRow(*in[1], rows, [&](int64_t i, int64_t row) {
    for (int64_t j = 0; j < width; ++j)
      out[0][i * width + j] = row < 0 ? outside : (*in[0])[row * width + j];
  });
}

void TakeGradOp::evaluate(reference::Inputs in, reference::Outputs out) {
  int64_t rows = getShape()[0], width = rows ? out[0].size() / rows : 0;
  forEachRow(*in[1], rows, [&](int64_t i, int64_t row) {
    if (row >= 0)
      for (int64_t j = 0; j < width; ++j)
        out[0][row * width + j] += (*in[0])[i * width + j];
  });
}

/// `x` after `y` has been combined into it.
static double combined(Combine combine, Type type, double x, double y) {
  switch (combine) {
  case Combine::set:
    return y;
  case Combine::add:
    return reference::sum(type, x, y);
  case Combine::mul:
    return reference::product(type, x, y);
  case Combine::min:
    return std::isnan(x) || x < y ? x : y;
  case Combine::max:
    return std::isnan(x) || x > y ? x : y;
  }
  return x;
}

void ScatterOp::evaluate(reference::Inputs in, reference::Outputs out) {
  out[0].data = in[0]->data;
  int64_t rows = out[0].dim(0), width = rows ? out[0].size() / rows : 0;
  forEachRow(*in[1], rows, [&](int64_t i, int64_t row) {
    for (int64_t j = 0; row >= 0 && j < width; ++j) {
      double &element = out[0][row * width + j];
      element = combined(getCombine(), getTable().getType().getElementType(),
                         element, (*in[2])[i * width + j]);
    }
  });
}
