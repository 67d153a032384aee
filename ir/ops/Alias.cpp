//===- Alias.cpp - views that matter for what shares storage --------------===//
#include "ir/Ops.h"
#include "ir/ops/Inference.h"
#include "ir/ops/Scalar.h"
#include "ir/reference/Array.h"
#include "ir/reference/Generic.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace tandem;

/// A tensor or ref type with other sizes.
static Type withShape(Type type, ArrayRef<int64_t> shape) {
  if (auto ref = dyn_cast<RefType>(type))
    return RefType::get(type.getContext(), shape, ref.getElementType());
  return cast<RankedTensorType>(type).clone(shape);
}

//===----------------------------------------------------------------------===//
// detach
//===----------------------------------------------------------------------===//

LogicalResult DetachOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getX().getType());
  return success();
}

AffineMap DetachOp::getIndexMap() {
  return AffineMap::getMultiDimIdentityMap(tensorTypeOf(getType()).getRank(),
                                           getContext());
}

bool DetachOp::isFree() { return true; }

Value DetachOp::scatterInto(OpBuilder &, Location, Value, Value update) {
  return update;
}

//===----------------------------------------------------------------------===//
// as_strided
//===----------------------------------------------------------------------===//

LogicalResult AsStridedOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> loc,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto from = infer::shapeOf(loc, adaptor.getX().getType());
  if (failed(from))
    return failure();
  ArrayRef<int64_t> sizes = adaptor.getSizes(), strides = adaptor.getStrides();
  if (sizes.size() != strides.size())
    return emitOptionalError(loc, "expected one stride per size (",
                             sizes.size(), "), but got ", strides.size());
  if (!isTensorShape(sizes))
    return emitOptionalError(loc, "expected 'sizes' of at least 0 with at most "
                                  "2^40 elements");
  int64_t elements = 1;
  for (int64_t size : *from)
    elements *= size;
  int64_t last = adaptor.getOffset();
  bool isEmpty = llvm::is_contained(sizes, 0);
  bool fits = last >= 0 && (last < elements || isEmpty);
  for (auto [size, stride] : llvm::zip_equal(sizes, strides)) {
    // PyTorch gives one element the sum of its dimensions' strides.
    fits &= stride >= 0 && (stride <= elements || size <= 1);
    if (isEmpty)
      continue;
    if (fits && size > 1)
      fits =
          (size - 1) <= (elements - 1 - last) / std::max<int64_t>(stride, 1) ||
          stride == 0;
    if (fits)
      last += (size - 1) * stride;
    fits &= last < elements;
  }
  if (!fits)
    return emitOptionalError(loc,
                             "expected 'strides' and 'offset' of at least "
                             "0 that stay within the operand's ",
                             elements, " elements");
  types.push_back(withShape(adaptor.getX().getType(), sizes));
  return success();
}

SmallVector<int64_t> AsStridedOp::positions() {
  SmallVector<int64_t> result;
  reference::forEachIndex(getSizes(), [&](ArrayRef<int64_t> index) {
    int64_t position = getOffset();
    for (auto [i, stride] : llvm::zip_equal(index, getStrides()))
      position += i * stride;
    result.push_back(position);
  });
  return result;
}

void AsStridedOp::evaluate(ArrayRef<const reference::Array *> in,
                           MutableArrayRef<reference::Array> out) {
  for (auto [i, position] : llvm::enumerate(positions()))
    out[0][i] = (*in[0])[position];
}

/// Elements of a flat tensor, by constant positions.
static Value takeAt(OpBuilder &b, Location loc, Value flat,
                    ArrayRef<int64_t> positions) {
  auto type = RankedTensorType::get(static_cast<int64_t>(positions.size()),
                                    b.getI64Type());
  Value indices =
      ConstantOp::create(b, loc, DenseIntElementsAttr::get(type, positions));
  return TakeOp::create(b, loc, flat, indices);
}

static Value flatten(OpBuilder &b, Location loc, Value value) {
  int64_t elements = cast<RankedTensorType>(value.getType()).getNumElements();
  return ReshapeOp::create(b, loc, value, ArrayRef<int64_t>{elements});
}

SmallVector<Value> AsStridedOp::decompose(OpBuilder &b) {
  Value taken = takeAt(b, getLoc(), flatten(b, getLoc(), getX()), positions());
  return {ReshapeOp::create(b, getLoc(), taken, getSizes())};
}

Value AsStridedOp::scatterInto(OpBuilder &b, Location loc, Value base,
                               Value update) {
  auto type = cast<RankedTensorType>(base.getType());
  int64_t elements = type.getNumElements();
  // Each element of the result comes from the base or from the update behind
  // it.
  SmallVector<int64_t> from(elements);
  for (int64_t i = 0; i < elements; ++i)
    from[i] = i;
  for (auto [i, position] : llvm::enumerate(positions())) {
    if (from[position] != position)
      return {}; // internal overlap: a write has no meaning
    from[position] = elements + static_cast<int64_t>(i);
  }
  Value both = ConcatOp::create(
      b, loc, ValueRange{flatten(b, loc, base), flatten(b, loc, update)}, 0);
  return ReshapeOp::create(b, loc, takeAt(b, loc, both, from), type.getShape());
}

//===----------------------------------------------------------------------===//
// bitcast
//===----------------------------------------------------------------------===//

LogicalResult BitcastOp::verify() {
  Type from = getX().getType(), to = getType();
  if (isa<RefType>(from) != isa<RefType>(to))
    return emitOpError() << "expected two tensors or two refs, but got " << from
                         << " and " << to;
  RankedTensorType x = tensorTypeOf(from), y = tensorTypeOf(to);
  auto width = [](RankedTensorType type) {
    return type.getElementType().getIntOrFloatBitWidth();
  };
  if (x.getShape() != y.getShape() || width(x) != width(y) || width(x) == 1)
    return emitOpError()
           << "expected elements of one width, not bools, and one "
              "shape, but got "
           << from << " and " << to;
  return success();
}

Value BitcastOp::emitScalar(OpBuilder &b, Location loc, ValueRange x) {
  Type from = tensorTypeOf(getX().getType()).getElementType();
  Type to = tensorTypeOf(getType()).getElementType();
  if (from == to)
    return x[0];
  return scalar::fromBits(b, loc, scalar::toBits(b, loc, x[0], from), to);
}

double BitcastOp::referenceScalar(ArrayRef<double> x) {
  return reference::bitcastElement(
      tensorTypeOf(getX().getType()).getElementType(),
      tensorTypeOf(getType()).getElementType(), x[0]);
}

Value BitcastOp::scatterInto(OpBuilder &b, Location loc, Value base,
                             Value update) {
  return create(b, loc, base.getType(), update);
}
