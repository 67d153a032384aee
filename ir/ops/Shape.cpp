//===- Shape.cpp - constants, and ops that only move elements -------------===//
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/reference/Generic.h"

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

using Types = SmallVectorImpl<Type>;
using Loc = std::optional<Location>;

/// The shape behind a tensor or ref.
static ArrayRef<int64_t> shapeOf(Type type) {
  if (auto ref = dyn_cast<RefType>(type))
    return ref.getShape();
  return cast<RankedTensorType>(type).getShape();
}
static ArrayRef<int64_t> shapeOf(Value v) { return shapeOf(v.getType()); }

/// `type` with another shape: a tensor stays a tensor, a ref a ref.
static Type withShape(Type type, ArrayRef<int64_t> shape) {
  if (auto ref = dyn_cast<RefType>(type))
    return RefType::get(ref.getContext(), shape, ref.getElementType());
  return cast<RankedTensorType>(type).clone(shape);
}

static int64_t product(ArrayRef<int64_t> shape) {
  int64_t n = 1;
  for (int64_t dim : shape)
    n *= dim;
  return n;
}

/// Fails with `message` at `loc` where there is one.
static LogicalResult fail(Loc loc, const Twine &message) {
  return emitOptionalError(loc, message);
}

static std::string text(ArrayRef<int64_t> list) {
  std::string out = "[";
  llvm::interleave(
      list, [&](int64_t i) { out += std::to_string(i); }, [&] { out += ", "; });
  return out + "]";
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
  if (isa<FloatType>(element))
    value = b.getFloatAttr(element, number);
  else
    value = b.getIntegerAttr(element, static_cast<int64_t>(number));
  return create(b, loc,
                DenseElementsAttr::get(type, ArrayRef<Attribute>(value)));
}

TypedAttr ConstantOp::getSplat() {
  auto elements = dyn_cast<DenseElementsAttr>(getValue());
  if (!elements || !elements.isSplat())
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
    out[0][i++] = value.getBitWidth() == 1
                      ? static_cast<double>(value.getZExtValue())
                      : static_cast<double>(value.getSExtValue());
}

LogicalResult IotaOp::verify() {
  int64_t rank = getType().getRank();
  if (static_cast<int64_t>(getDim()) < 0 ||
      static_cast<int64_t>(getDim()) >= rank)
    return emitOpError() << "expected 'dim' in [0, " << rank << "), but got "
                         << getDim();
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
  ArrayRef<int64_t> from = shapeOf(adaptor.getX()), to = adaptor.getShape();
  ArrayRef<int64_t> dims = adaptor.getDims();
  if (dims.size() != from.size())
    return fail(loc, "expected one entry of 'along' per operand dimension (" +
                         Twine(from.size()) + "), but got " + text(dims));
  for (auto [i, d] : llvm::enumerate(dims)) {
    if (d < 0 || d >= static_cast<int64_t>(to.size()) ||
        (i > 0 && d <= dims[i - 1]))
      return fail(loc, "expected 'along' to rise within [0, " +
                           Twine(to.size()) + "), but got " + text(dims));
    if (from[i] != 1 && from[i] != to[d])
      return fail(loc, "expected operand dimension " + Twine(i) +
                           " to be 1 or " + Twine(to[d]) + ", but got " +
                           Twine(from[i]));
  }
  types.push_back(withShape(adaptor.getX().getType(), to));
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  return getX().getType() == getType() ? getX() : Value();
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

Value BroadcastOp::scatterInto(OpBuilder &, Location, Value, Value) {
  return {}; // internal overlap: a write has no meaning
}

//===----------------------------------------------------------------------===//
// reshape
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::inferReturnTypes(MLIRContext *, Loc loc,
                                          Adaptor adaptor, Types &types) {
  ArrayRef<int64_t> from = shapeOf(adaptor.getX()), to = adaptor.getShape();
  for (int64_t dim : to)
    if (dim < 0)
      return fail(loc, "expected sizes of at least 0, but got " + text(to));
  if (product(from) != product(to))
    return fail(loc, "expected " + text(to) + " to have " +
                         Twine(product(from)) + " elements as " + text(from) +
                         " has, but it has " + Twine(product(to)));
  types.push_back(withShape(adaptor.getX().getType(), to));
  return success();
}

bool ReshapeOp::isFree() { return true; }

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getX().getType() == getType())
    return getX();
  if (auto inner = getX().getDefiningOp<ReshapeOp>()) {
    setOperand(inner.getX());
    return getResult();
  }
  return {};
}

/// The operand's index from the result's: through the row-major position,
/// but dimension by dimension where the two shapes agree on a prefix or suffix.
AffineMap ReshapeOp::getIndexMap() {
  MLIRContext *context = getContext();
  ArrayRef<int64_t> from = shapeOf(getX()), to = getShape();
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

static SmallVector<int64_t> inverse(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> result(permutation.size());
  for (auto [i, p] : llvm::enumerate(permutation))
    result[p] = i;
  return result;
}

LogicalResult PermuteOp::inferReturnTypes(MLIRContext *, Loc loc,
                                          Adaptor adaptor, Types &types) {
  ArrayRef<int64_t> from = shapeOf(adaptor.getX());
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  SmallVector<int64_t> to;
  SmallVector<bool> seen(from.size());
  for (int64_t d : permutation) {
    if (permutation.size() != from.size() || d < 0 ||
        d >= static_cast<int64_t>(from.size()) || seen[d])
      return fail(loc, "expected 'by' to be a permutation of " +
                           Twine(from.size()) + " dimensions, but got " +
                           text(permutation));
    seen[d] = true;
    to.push_back(from[d]);
  }
  if (to.size() != from.size())
    return fail(loc, "expected 'by' to be a permutation of " +
                         Twine(from.size()) + " dimensions, but got " +
                         text(permutation));
  types.push_back(withShape(adaptor.getX().getType(), to));
  return success();
}

OpFoldResult PermuteOp::fold(FoldAdaptor) {
  if (llvm::is_sorted(getPermutation()))
    return getX();
  if (auto inner = getX().getDefiningOp<PermuteOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t d : getPermutation())
      composed.push_back(inner.getPermutation()[d]);
    setOperand(inner.getX());
    setPermutation(composed);
    return getResult();
  }
  return {};
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
  ArrayRef<int64_t> from = shapeOf(adaptor.getX());
  ArrayRef<int64_t> starts = adaptor.getStarts(), limits = adaptor.getLimits(),
                    strides = adaptor.getStrides();
  if (starts.size() != from.size() || limits.size() != from.size() ||
      strides.size() != from.size())
    return fail(loc, "expected 'from', 'to' and 'step' to have " +
                         Twine(from.size()) + " entries, but got " +
                         text(starts) + ", " + text(limits) + " and " +
                         text(strides));
  SmallVector<int64_t> to;
  for (size_t d = 0; d < from.size(); ++d) {
    if (starts[d] < 0 || limits[d] < starts[d] || limits[d] > from[d])
      return fail(loc, "expected 0 <= start <= limit <= " + Twine(from[d]) +
                           " in dimension " + Twine(d) + ", but got start " +
                           Twine(starts[d]) + " and limit " + Twine(limits[d]));
    if (strides[d] < 1)
      return fail(loc, "expected steps of at least 1, but got " +
                           Twine(strides[d]) + " in dimension " + Twine(d));
    to.push_back((limits[d] - starts[d] + strides[d] - 1) / strides[d]);
  }
  types.push_back(withShape(adaptor.getX().getType(), to));
  return success();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  return getX().getType() == getType() ? getX() : Value();
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
    int64_t spread = to[d] ? (to[d] - 1) * slice.getStrides()[d] + 1 : 0;
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
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  ArrayRef<int64_t> from = type.getShape();
  if (adaptor.getLow().size() != from.size() ||
      adaptor.getHigh().size() != from.size() ||
      adaptor.getInterior().size() != from.size())
    return fail(loc, "expected 'low', 'high' and 'interior' to have " +
                         Twine(from.size()) + " entries");
  if (cast<TypedAttr>(adaptor.getValue()).getType() != type.getElementType())
    return fail(loc, "expected the fill value to have the element type");
  SmallVector<int64_t> to;
  for (size_t d = 0; d < from.size(); ++d) {
    int64_t low = adaptor.getLow()[d], high = adaptor.getHigh()[d],
            interior = adaptor.getInterior()[d];
    if (low < 0 || high < 0 || interior < 0)
      return fail(loc, "expected padding of at least 0 in dimension " +
                           Twine(d) + ", but got " +
                           text({low, high, interior}));
    int64_t spread = from[d] ? (from[d] - 1) * (interior + 1) + 1 : 0;
    to.push_back(low + spread + high);
  }
  types.push_back(type.clone(to));
  return success();
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
    if (getHigh()[d] || !from[d]) {
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
    limits.push_back(getLow()[d] + (size ? (size - 1) * stride + 1 : 0));
    strides.push_back(stride);
  }
  p.set(0, p.expr(SliceOp::create(p.builder, p.loc, p.dy(), getLow(), limits,
                                  strides)));
  return success();
}
