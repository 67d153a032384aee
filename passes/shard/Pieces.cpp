//===- Pieces.cpp - what a rank computes of an op -------------------------===//
//
// Ops with the sizes of a rank. Most are the same op; what knows of places, as
// indices do, adds the place of the rank's piece.
//
//===----------------------------------------------------------------------===//
#include "passes/shard/Sharder.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;
using namespace tandem;

/// Positions in a tensor: an iota of all elements, reshaped.
static bool arePositions(Operation *op) {
  auto reshape = dyn_cast<ReshapeOp>(op);
  auto iota = reshape ? reshape.getX().getDefiningOp<IotaOp>() : IotaOp();
  return iota && iota.getY().getType().getRank() == 1;
}

/// True if a piece of `value` is computed for less than it is copied: from
/// constants, indices and what is repeated.
bool Sharder::isGenerated(Value value, int64_t depth) const {
  Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (auto constant = dyn_cast<ConstantOp>(op))
    return bool(constant.getSplat());
  if (isa<IotaOp, BroadcastOp>(op) || arePositions(op))
    return true;
  return isa<PointwiseOpInterface>(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isGenerated(operand, depth - 1);
         });
}

Value Sharder::computePiece(Value value, const Distribution &to) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1)
    return {};
  constexpr int64_t kDepth = 16;
  bool isCheap =
      isa<ViewOpInterface, TakeGradOp>(op) || isGenerated(value, kDepth);
  if (!isCheap)
    return {};
  SmallVector<Strategy> all = strategiesOf(op);
  Choice choice = choices.lookup(op);
  for (unsigned axis = 0; axis < mesh.size(); ++axis) {
    const Placement &is = choice[axis].results[0], &wanted = to[axis];
    if (is == wanted || (is.isCut() && wanted.isCut() && is.dim == wanted.dim))
      continue; // units are compared below
    if (!is.isWhole())
      return {};
    if (arePositions(op)) { // made of nothing
      choice[axis].results[0] = wanted;
      continue;
    }
    auto found = llvm::find_if(all, [&](const Strategy &strategy) {
      const Placement &result = strategy.results[0];
      return result.isCut() && wanted.isCut() && result.dim == wanted.dim &&
             llvm::none_of(strategy.operands,
                           [](const Placement &p) { return p.isPartial(); });
    });
    if (found == all.end())
      return {};
    int64_t unit = found->results[0].unit;
    choice[axis] =
        wanted.unit % unit == 0 ? found->scaled(wanted.unit / unit) : *found;
  }
  if (!fits(op, choice) || resultOf(op, choice, 0) != to)
    return {};
  OpBuilder::InsertionGuard guard(builder);
  Location outer = loc;
  loc = op->getLoc();
  Value made = build(op, choice)[0];
  loc = outer;
  return made;
}

Value Sharder::offsetOf(ArrayRef<unsigned> axes, int64_t size) {
  int64_t ranks = 1;
  for (unsigned axis : axes)
    ranks *= mesh.ranksOf(axis);
  SmallVector<int64_t> offsets;
  for (int64_t i = 0; i < ranks; ++i)
    offsets.push_back(i * size);
  auto i64 = builder.getI64Type();
  auto all = ConstantOp::create(
      builder, loc,
      DenseIntElementsAttr::get(RankedTensorType::get({ranks}, i64), offsets));
  auto at = NameLoc::get(builder.getStringAttr("place for " + reason), loc);
  Value own = RankSliceOp::create(builder, at, RankedTensorType::get({1}, i64),
                                  all, uint64_t(0), names(axes), IntegerAttr(),
                                  BufferAttr(), ArrayAttr());
  return Expr(builder, loc, own).reshape({});
}

Value Sharder::filled(Value value, Value piece, const Distribution &where,
                      int64_t dim, Fill fill) {
  if (!where.isPadded(mesh, typeOf(value), dim))
    return piece;
  Value &known = fills[{piece, dim, int(fill)}];
  if (known)
    return known;
  Expr x(builder, loc, piece);
  // The number of indices that are before the end of the value.
  int64_t size = x.dim(dim), end = typeOf(value).getDimSize(unsigned(dim));
  auto i64 = builder.getI64Type();
  Expr index(builder, loc,
             IotaOp::create(builder, loc, RankedTensorType::get({size}, i64),
                            uint64_t(0)));
  index = index + Expr(builder, loc, offsetOf(where.axesOf(dim), size))
                      .broadcastTo(index.shape(), {});
  Expr isThere =
      compare(ComparePredicate::lt, index, index.like(static_cast<double>(end)))
          .broadcastTo(x.shape(), {dim});
  double neutral = std::numeric_limits<double>::infinity();
  if (fill == Fill::Zero)
    neutral = 0;
  else if (fill == Fill::Lowest)
    neutral = -neutral;
  Value made = select(isThere, x, x.like(neutral));
  // A dimension that is filled twice is filled once.
  fills[{made, dim, int(fill)}] = made;
  return fills[{piece, dim, int(fill)}] = made;
}

Value Sharder::buildIota(IotaOp op, const Distribution &where,
                         RankedTensorType type) {
  auto dim = static_cast<int64_t>(op.getDim());
  Value made = IotaOp::create(builder, loc, type, op.getDim());
  SmallVector<unsigned> axes = where.axesOf(dim);
  if (axes.empty())
    return made;
  Expr offset(builder, loc, offsetOf(axes, type.getDimSize(unsigned(dim))));
  return Expr(builder, loc, made) +
         offset.cast(type.getElementType()).broadcastTo(type.getShape(), {});
}

/// Sums of indices times strides of the whole tensor.
Value Sharder::buildPositions(ReshapeOp op, const Distribution &where) {
  RankedTensorType whole = typeOf(op.getY());
  RankedTensorType type = where.local(mesh, whole);
  Expr sum;
  int64_t stride = whole.getNumElements();
  for (int64_t dim = 0; dim < whole.getRank(); ++dim) {
    int64_t size = whole.getDimSize(unsigned(dim));
    stride = size == 0 ? 0 : stride / size;
    Expr index(builder, loc, IotaOp::create(builder, loc, type, uint64_t(dim)));
    if (SmallVector<unsigned> axes = where.axesOf(dim); !axes.empty())
      index = index +
              Expr(builder, loc, offsetOf(axes, type.getDimSize(unsigned(dim))))
                  .cast(type.getElementType())
                  .broadcastTo(type.getShape(), {});
    Expr term = stride == 1 ? index : index * static_cast<double>(stride);
    sum = sum ? sum + term : term;
  }
  return sum;
}

/// Rows of other ranks are zeros, and rows of none are no numbers, as in the
/// whole table.
Value Sharder::buildTake(TakeOp op, Value table, Value indices,
                         ArrayRef<unsigned> axes) {
  auto i64 = builder.getI64Type();
  auto rows = cast<RankedTensorType>(table.getType()).getDimSize(0);
  int64_t allRows = typeOf(op.getTable()).getDimSize(0);
  Expr at = Expr(builder, loc, indices).cast(i64);
  Expr local =
      at - Expr(builder, loc, offsetOf(axes, rows)).broadcastTo(at.shape(), {});
  auto isWithin = [&](const Expr &index, int64_t end) {
    return logicalAnd(compare(ComparePredicate::ge, index, index.like(0)),
                      compare(ComparePredicate::lt, index,
                              index.like(static_cast<double>(end))));
  };
  Expr own = isWithin(local, rows);
  Value taken =
      TakeOp::create(builder, loc, table, select(own, local, local.like(0)));
  Expr y(builder, loc, taken);
  SmallVector<int64_t> dims(llvm::to_vector(llvm::seq<int64_t>(at.rank())));
  auto along = [&](const Expr &condition) {
    return condition.broadcastTo(y.shape(), dims);
  };
  Expr nothing = y.like(std::numeric_limits<double>::quiet_NaN());
  return select(along(isWithin(at, allRows)), select(along(own), y, y.like(0)),
                nothing);
}

/// Indices of other ranks' rows are outside of this one's, and ignored.
Value Sharder::buildTakeGrad(TakeGradOp op, Value dy, Value indices,
                             RankedTensorType type, ArrayRef<unsigned> axes) {
  Expr at = Expr(builder, loc, indices).cast(builder.getI64Type());
  Expr local = at - Expr(builder, loc, offsetOf(axes, type.getDimSize(0)))
                        .broadcastTo(at.shape(), {});
  return TakeGradOp::create(builder, loc, dy, local, type.getShape());
}

/// Attributes that repeat sizes say those of a rank.
static void setSizes(Operation *op) {
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  llvm::TypeSwitch<Operation *>(op)
      .Case<BroadcastOp, ReshapeOp, TakeGradOp, Conv2dInputGradOp,
            Conv2dFilterGradOp, MaxPool2dGradOp, AvgPool2dGradOp>(
          [&](auto sized) { sized.setShape(shape); });
}

SmallVector<Value> Sharder::build(Operation *op, const Choice &choice) {
  SmallVector<Distribution> wheres;
  SmallVector<Type> types;
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    wheres.push_back(resultOf(op, choice, unsigned(i)));
    types.push_back(pieceOf(result, wheres.back()));
  }
  if (arePositions(op) && !wheres[0].isWhole())
    return {buildPositions(cast<ReshapeOp>(op), wheres[0])};
  if (auto constant = dyn_cast<ConstantOp>(op);
      constant && !wheres[0].isWhole())
    return {ConstantOp::create(builder, loc, types[0],
                               cast<SplatElementsAttr>(constant.getValue())
                                   .resizeSplat(cast<ShapedType>(types[0])))};
  if (auto iota = dyn_cast<IotaOp>(op))
    return {buildIota(iota, wheres[0], cast<RankedTensorType>(types[0]))};
  SmallVector<Value> operands;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    Distribution where = operandOf(op, choice, unsigned(i));
    Value piece = bring(operand, where);
    for (auto [axis, strategy] : llvm::enumerate(choice))
      if (strategy.fill != Fill::Any && where[unsigned(axis)].isCut())
        piece = filled(operand, piece, where, where[unsigned(axis)].dim,
                       strategy.fill);
    operands.push_back(piece);
  }
  SmallVector<unsigned> masked;
  for (auto [axis, strategy] : llvm::enumerate(choice))
    if (strategy.masksRows)
      masked.push_back(unsigned(axis));
  if (!masked.empty()) {
    if (auto take = dyn_cast<TakeOp>(op))
      return {buildTake(take, operands[0], operands[1], masked)};
    return {buildTakeGrad(cast<TakeGradOp>(op), operands[0], operands[1],
                          cast<RankedTensorType>(types[0]), masked)};
  }
  Operation *made = builder.clone(*op);
  made->setOperands(operands);
  for (auto [result, type] : llvm::zip_equal(made->getResults(), types))
    result.setType(type);
  if (auto slice = dyn_cast<SliceOp>(made)) {
    SmallVector<int64_t> limits(slice.getLimits());
    Distribution where = operandOf(op, choice, 0);
    auto from = cast<RankedTensorType>(operands[0].getType());
    for (auto [dim, limit] : llvm::enumerate(limits))
      if (!where.axesOf(int64_t(dim)).empty())
        limit = from.getDimSize(unsigned(dim));
    slice.setLimits(limits);
  } else {
    setSizes(made);
  }
  return SmallVector<Value>(made->getResults());
}
