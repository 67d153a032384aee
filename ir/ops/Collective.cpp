//===- Collective.cpp - what the ranks of a mesh do together --------------===//
//
// A gradient is the transpose in the sense of the sum over all ranks of
// <cotangent, result>: where a value is whole on every rank, each rank's
// cotangent is its part of the whole cotangent.
//
//===----------------------------------------------------------------------===//
#include "ir/Collective.h"
#include "ir/Pullback.h"
#include "ir/ops/Inference.h"
#include "ir/reference/Generic.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/Collective.cpp.inc"

void TandemDialect::addCollectiveOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Collective.cpp.inc"
      >();
}

bool tandem::communicates(Operation *op) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  return collective && collective.communicates();
}

int64_t tandem::groupSize(Operation *op, ArrayAttr axes) {
  return MeshAttr::of(op).groupSize(axes);
}

static int64_t sizeOf(CollectiveOpInterface op) {
  return groupSize(op, op.axes());
}

RankedTensorType tandem::withDim(RankedTensorType type, int64_t dim,
                                 int64_t times) {
  SmallVector<int64_t> shape(type.getShape());
  if (times < 0 && shape[dim] % -times)
    return {};
  // At most 2^40, and times at most 2^20.
  shape[dim] = times < 0 ? shape[dim] / -times : shape[dim] * times;
  if (!isTensorShape(shape))
    return {};
  return RankedTensorType::get(shape, type.getElementType());
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// A branch or loop that this rank may take and another not.
static Operation *undecidedAround(Operation *op) {
  for (Operation *at = op->getParentOp(); at; at = at->getParentOp())
    if (isa<IfOp, WhileOp>(at))
      return at;
  return nullptr;
}

/// What all collectives have: a mesh, axes of it, and a place that every rank
/// comes to. Attributes of a launch stand only where one does.
static LogicalResult verifyGroup(CollectiveOpInterface op) {
  MeshAttr mesh = MeshAttr::of(op);
  if (!mesh)
    return op->emitOpError() << "expected its module to have '" << kMeshAttr
                             << "', the ranks that it is compiled for";
  if (failed(mesh.verifyAxes([&] { return op->emitOpError(); }, op.axes())))
    return failure();
  if (op.orderNumber() && *op.orderNumber() < 0)
    return op->emitOpError()
           << "expected 'number' of at least 0, but got " << *op.orderNumber();
  if (!op.communicates())
    return success();
  if (Operation *branch = undecidedAround(op)) {
    InFlightDiagnostic error =
        op->emitOpError()
        << "expected not to stand in '" << branch->getName()
        << "', which some ranks may run and others not: they would wait for "
           "each other";
    error.attachNote(branch->getLoc()) << "the branch or loop";
    return error;
  }
  return success();
}

static LogicalResult expectResult(Operation *op, RankedTensorType expected,
                                  int64_t ranks) {
  if (expected && op->getResult(0).getType() == expected)
    return success();
  InFlightDiagnostic error = op->emitOpError()
                             << "expected, over " << ranks << " ranks, ";
  if (!expected)
    return error << "sizes that can be cut so, but got "
                 << op->getOperand(0).getType();
  return error << "a result of type " << expected << ", but got "
               << op->getResult(0).getType();
}

static LogicalResult expectDims(Operation *op, ArrayRef<int64_t> dims) {
  int64_t rank = cast<RankedTensorType>(op->getOperand(0).getType()).getRank();
  for (int64_t dim : dims)
    if (dim < 0 || dim >= rank)
      return op->emitOpError() << "expected a dimension of its operand, of "
                               << rank << ", but got " << dim;
  return success();
}

LogicalResult AllReduceOp::verify() {
  if (failed(verifyGroup(*this)))
    return failure();
  return expectResult(*this, getX().getType(), sizeOf(*this));
}

LogicalResult ReduceScatterOp::verify() {
  if (failed(verifyGroup(*this)) || failed(expectDims(*this, getDim())))
    return failure();
  int64_t ranks = sizeOf(*this);
  return expectResult(*this, withDim(getX().getType(), getDim(), -ranks),
                      ranks);
}

LogicalResult AllGatherOp::verify() {
  if (failed(verifyGroup(*this)) || failed(expectDims(*this, getDim())))
    return failure();
  int64_t ranks = sizeOf(*this);
  return expectResult(*this, withDim(getX().getType(), getDim(), ranks), ranks);
}

LogicalResult AllToAllOp::verify() {
  if (failed(verifyGroup(*this)) ||
      failed(expectDims(*this, {static_cast<int64_t>(getSplitDim()),
                                static_cast<int64_t>(getConcatDim())})))
    return failure();
  int64_t ranks = sizeOf(*this);
  RankedTensorType cut = withDim(getX().getType(), getSplitDim(), -ranks);
  return expectResult(*this, cut ? withDim(cut, getConcatDim(), ranks) : cut,
                      ranks);
}

LogicalResult BroadcastFromOp::verify() {
  if (failed(verifyGroup(*this)))
    return failure();
  int64_t ranks = sizeOf(*this), root = getRoot();
  if (root < 0 || root >= ranks)
    return emitOpError() << "expected 'root' to be one of the group's " << ranks
                         << " ranks, but got " << root;
  return expectResult(*this, getX().getType(), ranks);
}

LogicalResult RankSliceOp::verify() {
  if (failed(verifyGroup(*this)) || failed(expectDims(*this, getDim())))
    return failure();
  int64_t ranks = sizeOf(*this);
  return expectResult(*this, withDim(getX().getType(), getDim(), -ranks),
                      ranks);
}

LogicalResult BarrierOp::verify() { return verifyGroup(*this); }

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

static LogicalResult expectSum(Operation *op, CollectiveReduce reduce) {
  if (reduce == CollectiveReduce::sum)
    return success();
  return op->emitOpError() << "has no gradient for '"
                           << stringifyCollectiveReduce(reduce)
                           << "': only sums over ranks have one";
}

LogicalResult AllReduceOp::pullback(Pullback &p) {
  if (!p.needs(0))
    return success();
  if (failed(expectSum(*this, getReduce())))
    return failure();
  Value dy = p.dy();
  p.set(0, p.expr(AllReduceOp::create(p.builder, p.loc, dy.getType(),
                                      CollectiveReduce::sum, dy, getAxesAttr(),
                                      {}, {}, {})));
  return success();
}

LogicalResult ReduceScatterOp::pullback(Pullback &p) {
  if (!p.needs(0))
    return success();
  if (failed(expectSum(*this, getReduce())))
    return failure();
  p.set(0,
        p.expr(AllGatherOp::create(p.builder, p.loc, getX().getType(), p.dy(),
                                   getDim(), getAxesAttr(), {}, {}, {})));
  return success();
}

LogicalResult AllGatherOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, p.expr(ReduceScatterOp::create(
                 p.builder, p.loc, getX().getType(), CollectiveReduce::sum,
                 p.dy(), getDim(), getAxesAttr(), {}, {}, {})));
  return success();
}

LogicalResult AllToAllOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, p.expr(AllToAllOp::create(p.builder, p.loc, getX().getType(),
                                       p.dy(), getConcatDim(), getSplitDim(),
                                       getAxesAttr(), {}, {}, {})));
  return success();
}

/// Where in its group this rank is: i64 [1].
static Expr positionInGroup(Pullback &p, ArrayAttr axes, int64_t ranks) {
  Type i64 = p.builder.getI64Type();
  Value all =
      IotaOp::create(p.builder, p.loc, RankedTensorType::get({ranks}, i64), 0);
  return p.expr(RankSliceOp::create(p.builder, p.loc,
                                    RankedTensorType::get({1}, i64), all, 0,
                                    axes, {}, {}, {}));
}

LogicalResult BroadcastFromOp::pullback(Pullback &p) {
  if (!p.needs(0))
    return success();
  Expr dy = p.dy();
  Expr sum = p.expr(AllReduceOp::create(p.builder, p.loc, dy.type(),
                                        CollectiveReduce::sum, dy,
                                        getAxesAttr(), {}, {}, {}));
  Expr position = positionInGroup(p, getAxesAttr(), sizeOf(*this));
  Expr isRoot = compare(ComparePredicate::eq, position,
                        position.like(static_cast<double>(getRoot())))
                    .reshape({})
                    .broadcastTo(dy.shape(), {});
  p.set(0, select(isRoot, sum, sum.like(0)));
  return success();
}

// The operand as [before, ranks, piece, behind]: the cotangent stands in each
// piece, and is kept in this rank's.
LogicalResult RankSliceOp::pullback(Pullback &p) {
  if (!p.needs(0))
    return success();
  Expr dy = p.dy();
  int64_t ranks = sizeOf(*this), dim = getDim();
  SmallVector<int64_t> shape(dy.shape()), others;
  shape.insert(shape.begin() + dim, ranks);
  for (int64_t d = 0; d <= dy.rank(); ++d)
    if (d != dim)
      others.push_back(d);
  Value places =
      IotaOp::create(p.builder, p.loc,
                     RankedTensorType::get({ranks}, p.builder.getI64Type()), 0);
  Expr position = positionInGroup(p, getAxesAttr(), ranks);
  Expr isOwn = compare(ComparePredicate::eq, p.expr(places),
                       position.reshape({}).broadcastTo({ranks}, {}))
                   .broadcastTo(shape, {dim});
  Expr pieces = dy.broadcastTo(shape, others);
  p.set(0, select(isOwn, pieces, pieces.like(0))
               .reshape(getX().getType().getShape()));
  return success();
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

/// `bytes` without the part that a rank has itself.
static int64_t bytesOfOthers(int64_t bytes, int64_t ranks) {
  return bytes - bytes / ranks;
}

int64_t AllReduceOp::getLinkBytes() {
  return 2 * bytesOfOthers(byteSize(getX().getType()), sizeOf(*this));
}
int64_t ReduceScatterOp::getLinkBytes() {
  return bytesOfOthers(byteSize(getX().getType()), sizeOf(*this));
}
int64_t AllGatherOp::getLinkBytes() {
  return bytesOfOthers(byteSize(getY().getType()), sizeOf(*this));
}
int64_t AllToAllOp::getLinkBytes() {
  return bytesOfOthers(byteSize(getX().getType()), sizeOf(*this));
}
int64_t BroadcastFromOp::getLinkBytes() {
  return sizeOf(*this) > 1 ? byteSize(getX().getType()) : 0;
}
int64_t RankSliceOp::getLinkBytes() { return 0; }
int64_t BarrierOp::getLinkBytes() { return 0; }

//===----------------------------------------------------------------------===//
// Reference
//===----------------------------------------------------------------------===//

/// Calls `body(inPiece, inWhole)`, positions in the two, for each element of
/// piece `number` of an array along `dim`.
template <typename Body>
static void forEachOfPiece(ArrayRef<int64_t> piece, ArrayRef<int64_t> whole,
                           int64_t dim, int64_t number, Body body) {
  reference::Array sizes;
  sizes.shape.assign(whole.begin(), whole.end());
  int64_t next = 0;
  reference::forEachIndex(piece, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> moved(index);
    moved[dim] += number * piece[dim];
    body(next++, sizes.at(moved));
  });
}

static void putPiece(const reference::Array &piece, reference::Array &whole,
                     int64_t dim, int64_t number) {
  forEachOfPiece(piece.shape, whole.shape, dim, number,
                 [&](int64_t i, int64_t at) { whole[at] = piece[i]; });
}

static void takePiece(const reference::Array &whole, reference::Array &piece,
                      int64_t dim, int64_t number) {
  forEachOfPiece(piece.shape, whole.shape, dim, number,
                 [&](int64_t i, int64_t at) { piece[i] = whole[at]; });
}

/// The elements of all ranks as one, in the order of the ranks.
static reference::Array combined(reference::Inputs in, CollectiveReduce reduce,
                                 Type element) {
  reference::Array all = *in[0];
  for (const reference::Array *next : in.drop_front())
    for (int64_t i = 0; i < all.size(); ++i) {
      double a = all[i], b = (*next)[i];
      bool isMax = reduce == CollectiveReduce::max;
      all[i] = reduce == CollectiveReduce::sum  ? reference::sum(element, a, b)
               : std::isnan(a) || std::isnan(b) ? std::nan("")
               : (a < b) == isMax               ? b
                                                : a;
    }
  return all;
}

void AllReduceOp::evaluateGroup(reference::Inputs in, reference::Outputs out) {
  reference::Array all =
      combined(in, getReduce(), getX().getType().getElementType());
  for (reference::Array &result : out)
    result = all;
}

void ReduceScatterOp::evaluateGroup(reference::Inputs in,
                                    reference::Outputs out) {
  reference::Array all =
      combined(in, getReduce(), getX().getType().getElementType());
  for (auto [r, result] : llvm::enumerate(out))
    takePiece(all, result, getDim(), r);
}

void AllGatherOp::evaluateGroup(reference::Inputs in, reference::Outputs out) {
  for (reference::Array &result : out)
    for (auto [r, piece] : llvm::enumerate(in))
      putPiece(*piece, result, getDim(), r);
}

void AllToAllOp::evaluateGroup(reference::Inputs in, reference::Outputs out) {
  SmallVector<int64_t> shape(in[0]->shape.begin(), in[0]->shape.end());
  shape[getSplitDim()] /= static_cast<int64_t>(in.size());
  reference::Array piece{ArrayRef<int64_t>(shape)};
  for (auto [to, result] : llvm::enumerate(out))
    for (auto [from, whole] : llvm::enumerate(in)) {
      takePiece(*whole, piece, getSplitDim(), to);
      putPiece(piece, result, getConcatDim(), from);
    }
}

void BroadcastFromOp::evaluateGroup(reference::Inputs in,
                                    reference::Outputs out) {
  for (reference::Array &result : out)
    result = *in[getRoot()];
}

void RankSliceOp::evaluateGroup(reference::Inputs in, reference::Outputs out) {
  for (auto [r, result] : llvm::enumerate(out))
    takePiece(*in[r], result, getDim(), r);
}

void BarrierOp::evaluateGroup(reference::Inputs, reference::Outputs) {}
