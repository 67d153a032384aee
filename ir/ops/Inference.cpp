//===- Inference.cpp - what shape inference functions share ---------------===//
#include "ir/ops/Inference.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::infer;

LogicalResult infer::fail(Loc loc, const Twine &message) {
  return emitOptionalError(loc, message);
}

std::string infer::text(Sizes list) {
  std::string out = "[";
  llvm::interleave(
      list, [&](int64_t i) { out += std::to_string(i); }, [&] { out += ", "; });
  return out + "]";
}

FailureOr<Sizes> infer::shapeOf(Loc loc, Type type) {
  if (auto ref = dyn_cast<RefType>(type))
    return ref.getShape();
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    if (tensor.hasStaticShape())
      return tensor.getShape();
  return emitOptionalError(loc, "expected a tensor of static shape, but got ",
                           type);
}

LogicalResult infer::pushShape(Loc loc, Type type, Sizes shape, Types &types) {
  if (!isTensorShape(shape))
    return fail(loc, "expected sizes of at least 0 and at most 2^40 elements "
                     "in the result, but got " +
                         text(shape));
  if (auto ref = dyn_cast<RefType>(type))
    types.push_back(
        RefType::get(ref.getContext(), shape, ref.getElementType()));
  else
    types.push_back(cast<RankedTensorType>(type).clone(shape));
  return success();
}

LogicalResult infer::expectRank(Loc loc, StringRef name, Type type,
                                int64_t rank) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor && tensor.getRank() == rank)
    return success();
  return emitOptionalError(loc, "expected '", name, "' to have rank ", rank,
                           ", but got ", type);
}

LogicalResult infer::expectList(Loc loc, StringRef name, Sizes list,
                                size_t size, int64_t least) {
  // Nothing that is a size, a step or a margin is larger than a tensor can be.
  bool inside = llvm::all_of(
      list, [&](int64_t i) { return i >= least && i <= kMaxElements; });
  if (list.size() == size && inside)
    return success();
  return fail(loc, "expected '" + name + "' to have " + Twine(size) +
                       " entries of at least " + Twine(least) +
                       " and at most 2^40, but got " + text(list));
}

LogicalResult infer::expectDim(Loc loc, StringRef name, int64_t dim,
                               int64_t rank) {
  if (dim >= 0 && dim < rank)
    return success();
  return fail(loc, "expected '" + name + "' in [0, " + Twine(rank) +
                       "), but got " + Twine(dim));
}

LogicalResult infer::expectSameElements(Loc loc, Type a, Type b) {
  Type x = getElementTypeOrSelf(a), y = getElementTypeOrSelf(b);
  if (x == y)
    return success();
  return emitOptionalError(
      loc, "expected operands of one element type, but got ", x, " and ", y);
}

LogicalResult
infer::expectPrecision(Loc loc, std::optional<StringRef> precision, Type type) {
  if (!precision)
    return success();
  if (*precision != "f32" && *precision != "tf32")
    return fail(loc, "expected 'precision' to be 'f32' or 'tf32' but got '" +
                         *precision + "'");
  if (Type element = getElementTypeOrSelf(type); !element.isF32())
    return emitOptionalError(loc,
                             "'precision' is of products of 'f32', but "
                             "the operands are of ",
                             element);
  return success();
}

LogicalResult infer::expectShape(Loc loc, StringRef name, Type type,
                                 Sizes shape) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor && tensor.getShape() == shape)
    return success();
  return emitOptionalError(loc, "expected '", name, "' to have shape ",
                           text(shape), ", but got ", type);
}

LogicalResult infer::inferReduced(Loc loc, Type operand, Sizes dims,
                                  Types &types) {
  auto from = infer::shapeOf(loc, operand);
  if (failed(from))
    return failure();
  int64_t rank = from->size();
  for (auto [i, d] : llvm::enumerate(dims))
    if (d < 0 || d >= rank || (i > 0 && d <= dims[i - 1]))
      return fail(loc, "expected 'over' to rise within [0, " + Twine(rank) +
                           "), but got " + text(dims));
  SmallVector<int64_t> shape;
  for (int64_t d = 0; d < rank; ++d)
    if (!llvm::is_contained(dims, d))
      shape.push_back((*from)[d]);
  return pushShape(loc, operand, shape, types);
}
