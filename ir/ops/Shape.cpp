//===- Shape.cpp - constants, and ops that only move elements -------------===//
#include "ir/EmptyTensors.h"
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/ops/Inference.h"
#include "ir/reference/Generic.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/Shape.cpp.inc"

void TandemDialect::addShapeOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Shape.cpp.inc"
      >();
}

using infer::expectDim;
using infer::expectList;
using infer::fail;
using infer::pushShape;
using infer::text;
using infer::Types;
using Loc = infer::Loc;

/// The shape behind a tensor or ref, of an op that is verified.
static ArrayRef<int64_t> shapeOf(Value v) {
  if (auto ref = dyn_cast<RefType>(v.getType()))
    return ref.getShape();
  return cast<RankedTensorType>(v.getType()).getShape();
}

//===----------------------------------------------------------------------===//
// constant, iota
//===----------------------------------------------------------------------===//

LogicalResult ConstantOp::inferReturnTypes(MLIRContext *, Loc, Adaptor adaptor,
                                           Types &types) {
  types.push_back(adaptor.getValue().getShapedType());
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

ConstantOp ConstantOp::splat(OpBuilder &b, Location loc, RankedTensorType type,
                             double number) {
  Type element = type.getElementType();
  TypedAttr value;
  if (isEmptyTensor(type))
    return cast<ConstantOp>(emptyConstant(b, loc, type).getDefiningOp());
  if (isa<FloatType>(element))
    value = b.getFloatAttr(element, number);
  else
    value = b.getIntegerAttr(element, static_cast<int64_t>(number));
  return create(b, loc,
                DenseElementsAttr::get(type, ArrayRef<Attribute>(value)));
}

TypedAttr ConstantOp::getSplat() {
  auto elements = dyn_cast<DenseElementsAttr>(getValue());
  if (!elements || elements.empty() || !elements.isSplat())
    return {};
  return cast<TypedAttr>(elements.getSplatValue<Attribute>());
}

void ConstantOp::evaluate(reference::Inputs, reference::Outputs out) {
  auto elements = cast<ElementsAttr>(getValue());
  int64_t i = 0;
  if (isa<FloatType>(elements.getElementType())) {
    for (APFloat value : elements.getValues<APFloat>()) {
      bool lost;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      out[0][i++] = value.convertToDouble();
    }
    return;
  }
  for (const APInt &value : elements.getValues<APInt>())
    out[0][i++] = numberOf(elements.getElementType(), value);
}

LogicalResult IotaOp::verify() {
  if (failed(expectDim(getLoc(), "dim", getDim(), getType().getRank())))
    return failure();
  Type element = getType().getElementType();
  int64_t largest = getType().getDimSize(getDim()) - 1;
  if (element.isInteger() && largest >= 0 && !holds(element, largest))
    return emitOpError() << "expected elements that hold " << largest
                         << ", but got " << element;
  return success();
}

void IotaOp::evaluate(reference::Inputs, reference::Outputs out) {
  int64_t i = 0;
  reference::forEachIndex(out[0].shape, [&](ArrayRef<int64_t> index) {
    out[0][i++] = static_cast<double>(index[getDim()]);
  });
}

//===----------------------------------------------------------------------===//
// broadcast
//===----------------------------------------------------------------------===//

LogicalResult BroadcastOp::inferReturnTypes(MLIRContext *, Loc loc,
                                            Adaptor adaptor, Types &types) {
  Type x = adaptor.getX().getType();
  auto from = infer::shapeOf(loc, x);
  if (failed(from))
    return failure();
  ArrayRef<int64_t> to = adaptor.getShape(), dims = adaptor.getDims();
  if (dims.size() != from->size())
    return fail(loc, "expected one entry of 'along' per operand dimension (" +
                         Twine(from->size()) + "), but got " + text(dims));
  for (auto [i, d] : llvm::enumerate(dims)) {
    int64_t size = (*from)[i];
    if (d < 0 || d >= static_cast<int64_t>(to.size()) ||
        (i > 0 && d <= dims[i - 1]))
      return fail(loc, "expected 'along' to rise within [0, " +
                           Twine(to.size()) + "), but got " + text(dims));
    if (size != 1 && size != to[d])
      return fail(loc, "expected operand dimension " + Twine(i) +
                           " to be 1 or " + Twine(to[d]) + ", but got " +
                           Twine(size));
  }
  return pushShape(loc, x, to, types);
}

AffineMap BroadcastOp::getIndexMap() {
  SmallVector<AffineExpr> exprs;
  for (auto [i, d] : llvm::enumerate(getDims()))
    exprs.push_back(shapeOf(getX())[i] == 1 && getShape()[d] != 1
                        ? getAffineConstantExpr(0, getContext())
                        : getAffineDimExpr(d, getContext()));
  return AffineMap::get(getShape().size(), 0, exprs, getContext());
}

LogicalResult BroadcastOp::pullback(Pullback &p) {
  if (!p.needs(0))
    return success();
  SmallVector<int64_t> repeated;
  for (int64_t d = 0, n = getShape().size(); d < n; ++d) {
    const auto *it = llvm::find(getDims(), d);
    bool stretched = it != getDims().end() &&
                     shapeOf(getX())[it - getDims().begin()] == 1 &&
                     getShape()[d] != 1;
    if (it == getDims().end() || stretched)
      repeated.push_back(d);
  }
  p.set(0, p.dy().reduceSum(repeated).reshape(shapeOf(getX())));
  return success();
}

static int64_t product(ArrayRef<int64_t> shape) {
  int64_t n = 1;
  for (int64_t dim : shape)
    n *= dim;
  return n;
}

Value BroadcastOp::scatterInto(OpBuilder &b, Location loc, Value base,
                               Value update) {
  ArrayRef<int64_t> from = shapeOf(base);
  if (product(from) != product(getShape()))
    return {}; // internal overlap: a write has no meaning
  return ReshapeOp::create(b, loc, update, from);
}

//===----------------------------------------------------------------------===//
// reshape
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::inferReturnTypes(MLIRContext *, Loc loc,
                                          Adaptor adaptor, Types &types) {
  Type x = adaptor.getX().getType();
  auto from = infer::shapeOf(loc, x);
  if (failed(from) || failed(pushShape(loc, x, adaptor.getShape(), types)))
    return failure();
  ArrayRef<int64_t> to = adaptor.getShape();
  if (!isTensorShape(*from) || product(*from) != product(to))
    return fail(loc, "expected " + text(to) + " to have as many elements as " +
                         text(*from) + ", but it has " + Twine(product(to)));
  return success();
}

bool ReshapeOp::isFree() { return true; }

/// The operand's index from the result's: through the row-major position,
/// but dimension by dimension where the two shapes agree on a prefix or suffix.
AffineMap ReshapeOp::getIndexMap() {
  MLIRContext *context = getContext();
  ArrayRef<int64_t> from = shapeOf(getX()), to = getShape();
  if (llvm::is_contained(from, 0))
    return AffineMap::getConstantMap(0, context); // of no element
  // Groups of dimensions with equal products map to each other.
  SmallVector<AffineExpr> exprs;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    size_t i0 = i, j0 = j;
    int64_t a = i < from.size() ? from[i++] : 1;
    int64_t b = j < to.size() ? to[j++] : 1;
    while (a != b) {
      if (a < b)
        a *= i < from.size() ? from[i++] : 1;
      else
        b *= j < to.size() ? to[j++] : 1;
    }
    AffineExpr position = getAffineConstantExpr(0, context);
    for (size_t k = j0; k < j; ++k)
      position = position * to[k] + getAffineDimExpr(k, context);
    SmallVector<AffineExpr> group;
    for (size_t k = i; k-- > i0;) {
      bool last = k == i0;
      group.push_back(last ? position : position % from[k]);
      if (!last)
        position = position.floorDiv(from[k]);
    }
    exprs.append(group.rbegin(), group.rend());
  }
  return AffineMap::get(to.size(), 0, exprs, context);
}

LogicalResult ReshapeOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, p.dy().reshape(shapeOf(getX())));
  return success();
}

Value ReshapeOp::scatterInto(OpBuilder &b, Location loc, Value base,
                             Value update) {
  return create(b, loc, update, shapeOf(base));
}

//===----------------------------------------------------------------------===//
// permute
//===----------------------------------------------------------------------===//

/// The permutation that undoes another.
static SmallVector<int64_t> inverse(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> result(permutation.size());
  for (auto [i, p] : llvm::enumerate(permutation))
    result[p] = i;
  return result;
}

LogicalResult PermuteOp::inferReturnTypes(MLIRContext *, Loc loc,
                                          Adaptor adaptor, Types &types) {
  Type x = adaptor.getX().getType();
  auto from = infer::shapeOf(loc, x);
  if (failed(from))
    return failure();
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  if (permutation.size() != from->size() || !isPermutationVector(permutation))
    return fail(loc, "expected 'by' to be a permutation of " +
                         Twine(from->size()) + " dimensions, but got " +
                         text(permutation));
  SmallVector<int64_t> to;
  for (int64_t d : permutation)
    to.push_back((*from)[d]);
  return pushShape(loc, x, to, types);
}

AffineMap PermuteOp::getIndexMap() {
  SmallVector<AffineExpr> exprs;
  for (int64_t d : inverse(getPermutation()))
    exprs.push_back(getAffineDimExpr(d, getContext()));
  return AffineMap::get(exprs.size(), 0, exprs, getContext());
}

LogicalResult PermuteOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, p.dy().permute(inverse(getPermutation())));
  return success();
}

Value PermuteOp::scatterInto(OpBuilder &b, Location loc, Value, Value update) {
  return create(b, loc, update, inverse(getPermutation()));
}

//===----------------------------------------------------------------------===//
// slice
//===----------------------------------------------------------------------===//

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor adaptor,
                                        Types &types) {
  Type x = adaptor.getX().getType();
  auto from = infer::shapeOf(loc, x);
  if (failed(from))
    return failure();
  ArrayRef<int64_t> starts = adaptor.getStarts(), limits = adaptor.getLimits(),
                    strides = adaptor.getStrides();
  if (failed(expectList(loc, "from", starts, from->size(), 0)) ||
      failed(expectList(loc, "to", limits, from->size(), 0)) ||
      failed(expectList(loc, "step", strides, from->size(), 1)))
    return failure();
  SmallVector<int64_t> to;
  for (auto [d, size] : llvm::enumerate(*from)) {
    if (limits[d] < starts[d] || limits[d] > size)
      return fail(loc, "expected 0 <= from <= to <= " + Twine(size) +
                           " in dimension " + Twine(d) + ", but got from " +
                           Twine(starts[d]) + " and to " + Twine(limits[d]));
    int64_t length = limits[d] - starts[d];
    to.push_back(length == 0 ? 0 : (length - 1) / strides[d] + 1);
  }
  return pushShape(loc, x, to, types);
}

AffineMap SliceOp::getIndexMap() {
  SmallVector<AffineExpr> exprs;
  for (auto [d, start] : llvm::enumerate(getStarts()))
    exprs.push_back(getAffineDimExpr(d, getContext()) * getStrides()[d] +
                    start);
  return AffineMap::get(exprs.size(), 0, exprs, getContext());
}

/// `small`, an array of the slice's shape, at its place in zeros of the
/// source's shape.
static PadOp padBack(SliceOp slice, OpBuilder &b, Location loc, Value small) {
  ArrayRef<int64_t> from = shapeOf(slice.getX()), to = shapeOf(small);
  SmallVector<int64_t> high, interior;
  for (size_t d = 0; d < from.size(); ++d) {
    int64_t spread = to[d] == 0 ? 0 : (to[d] - 1) * slice.getStrides()[d] + 1;
    high.push_back(from[d] - slice.getStarts()[d] - spread);
    interior.push_back(slice.getStrides()[d] - 1);
  }
  Type element = cast<RankedTensorType>(small.getType()).getElementType();
  return PadOp::create(b, loc, small, slice.getStarts(), high, interior,
                       cast<TypedAttr>(b.getZeroAttr(element)));
}

LogicalResult SliceOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, p.expr(padBack(*this, p.builder, p.loc, p.dy())));
  return success();
}

Value SliceOp::scatterInto(OpBuilder &b, Location loc, Value base,
                           Value update) {
  auto type = cast<RankedTensorType>(update.getType());
  Value ones = ConstantOp::splat(b, loc, type.clone(b.getI1Type()), 1);
  Value inside = padBack(*this, b, loc, ones);
  Value spread = padBack(*this, b, loc, update);
  return SelectOp::create(b, loc, inside, spread, base);
}

//===----------------------------------------------------------------------===//
// pad
//===----------------------------------------------------------------------===//

LogicalResult PadOp::inferReturnTypes(MLIRContext *, Loc loc, Adaptor adaptor,
                                      Types &types) {
  Type x = adaptor.getX().getType();
  auto from = infer::shapeOf(loc, x);
  if (failed(from))
    return failure();
  ArrayRef<int64_t> low = adaptor.getLow(), high = adaptor.getHigh(),
                    interior = adaptor.getInterior();
  if (failed(expectList(loc, "low", low, from->size(), 0)) ||
      failed(expectList(loc, "high", high, from->size(), 0)) ||
      failed(expectList(loc, "interior", interior, from->size(), 0)))
    return failure();
  auto value = dyn_cast<TypedAttr>(adaptor.getValue());
  Type element = getElementTypeOrSelf(x);
  if (!value || value.getType() != element)
    return emitOptionalError(loc, "expected a fill value of type ", element,
                             ", but got ", adaptor.getValue());
  SmallVector<int64_t> to;
  for (auto [d, size] : llvm::enumerate(*from)) {
    // Neither factor nor summand is above 2^40, but the product can be.
    if (size > 1 && interior[d] >= kMaxElements / size)
      return fail(loc, "expected 'interior' below " +
                           Twine(kMaxElements / size) + " in dimension " +
                           Twine(d) + ", but got " + Twine(interior[d]));
    int64_t spread = size == 0 ? 0 : (size - 1) * (interior[d] + 1) + 1;
    to.push_back(low[d] + spread + high[d]);
  }
  return pushShape(loc, x, to, types);
}

TypedAttr PadOp::getFill() { return cast<TypedAttr>(getValueAttr()); }

AffineMap PadOp::getIndexMap() {
  SmallVector<AffineExpr> exprs;
  for (auto [d, low] : llvm::enumerate(getLow()))
    exprs.push_back((getAffineDimExpr(d, getContext()) - low)
                        .floorDiv(getInterior()[d] + 1));
  return AffineMap::get(exprs.size(), 0, exprs, getContext());
}

IntegerSet PadOp::getIndexDomain() {
  SmallVector<AffineExpr> constraints;
  SmallVector<bool> equal;
  ArrayRef<int64_t> from = shapeOf(getX()), to = shapeOf(getY());
  for (size_t d = 0; d < from.size(); ++d) {
    AffineExpr i = getAffineDimExpr(d, getContext());
    if (from[d] == to[d])
      continue;
    if (getLow()[d]) {
      constraints.push_back(i - getLow()[d]);
      equal.push_back(false);
    }
    if (getHigh()[d]) {
      constraints.push_back(-i + (to[d] - getHigh()[d] - 1));
      equal.push_back(false);
    }
    if (getInterior()[d]) {
      constraints.push_back((i - getLow()[d]) % (getInterior()[d] + 1));
      equal.push_back(true);
    }
  }
  if (constraints.empty())
    return {};
  return IntegerSet::get(from.size(), 0, constraints, equal);
}

LogicalResult PadOp::pullback(Pullback &p) {
  if (!p.needs(0))
    return success();
  SmallVector<int64_t> limits, strides;
  for (auto [d, size] : llvm::enumerate(shapeOf(getX()))) {
    int64_t stride = getInterior()[d] + 1;
    limits.push_back(getLow()[d] + (size - 1) * stride + 1);
    strides.push_back(stride);
  }
  p.set(0, p.expr(SliceOp::create(p.builder, p.loc, p.dy(), getLow(), limits,
                                  strides)));
  return success();
}

//===----------------------------------------------------------------------===//
// reverse
//===----------------------------------------------------------------------===//

LogicalResult ReverseOp::inferReturnTypes(MLIRContext *, Loc loc,
                                          Adaptor adaptor, Types &types) {
  Type x = adaptor.getX().getType();
  auto from = infer::shapeOf(loc, x);
  if (failed(from))
    return failure();
  ArrayRef<int64_t> dims = adaptor.getDims();
  int64_t rank = from->size();
  for (auto [i, d] : llvm::enumerate(dims))
    if (d < 0 || d >= rank || (i > 0 && d <= dims[i - 1]))
      return fail(loc, "expected 'along' to rise within [0, " + Twine(rank) +
                           "), but got " + text(dims));
  return pushShape(loc, x, *from, types);
}

AffineMap ReverseOp::getIndexMap() {
  SmallVector<AffineExpr> exprs;
  for (auto [d, size] : llvm::enumerate(shapeOf(getX()))) {
    AffineExpr i = getAffineDimExpr(d, getContext());
    bool isReversed = llvm::is_contained(getDims(), static_cast<int64_t>(d));
    exprs.push_back(isReversed && size > 1 ? -i + (size - 1) : i);
  }
  return AffineMap::get(exprs.size(), 0, exprs, getContext());
}

LogicalResult ReverseOp::pullback(Pullback &p) {
  if (p.needs(0))
    p.set(0, p.dy().reverse(getDims()));
  return success();
}
