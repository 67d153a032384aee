//===- Ref.cpp - storage that a captured program can write ----------------===//
#include "ir/Ops.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tandem;

#define GET_OP_CLASSES
#include "ir/ops/Ref.cpp.inc"

void TandemDialect::addRefOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/Ref.cpp.inc"
      >();
}

LogicalResult MakeRefOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location> loc,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  Type type = adaptor.getValue().getType();
  if (!isTensorType(type))
    return emitOptionalError(loc,
                             "expected a tensor of static shape, "
                             "at most 2^40 elements, but got ",
                             type);
  types.push_back(RefType::of(cast<RankedTensorType>(type)));
  return success();
}

LogicalResult ReadOp::inferReturnTypes(MLIRContext *,
                                       std::optional<Location> loc,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  auto ref = dyn_cast<RefType>(adaptor.getRef().getType());
  if (!ref)
    return emitOptionalError(loc, "expected a ref, but got ",
                             adaptor.getRef().getType());
  types.push_back(ref.getTensorType());
  return success();
}

LogicalResult WriteOp::verify() {
  auto expected = getRef().getType().getTensorType();
  if (getValue().getType() != expected)
    return emitOpError() << "expected a value of type " << expected
                         << " but got " << getValue().getType();
  return success();
}

LogicalResult TransposeHandleOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  auto ref = dyn_cast<RefType>(adaptor.getX().getType());
  if (!ref)
    return emitOptionalError(loc, "expected a ref, but got ",
                             adaptor.getX().getType());
  SmallVector<int64_t> shape(ref.getShape());
  auto rank = static_cast<int64_t>(shape.size());
  int64_t a = adaptor.getA(), b = adaptor.getB();
  if (a < 0 || a >= rank || b < 0 || b >= rank)
    return emitOptionalError(loc, "expected 'dims' to be within [0, ", rank,
                             "), but got ", a, ", ", b);
  std::swap(shape[a], shape[b]);
  types.push_back(RefType::get(context, shape, ref.getElementType()));
  return success();
}

LogicalResult SetHandleOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> loc,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto x = dyn_cast<RefType>(adaptor.getX().getType());
  auto y = dyn_cast<RefType>(adaptor.getY().getType());
  if (!x || !y || x.getElementType() != y.getElementType())
    return emitOptionalError(loc,
                             "expected two refs of one element type, but "
                             "got ",
                             adaptor.getX().getType(), " and ",
                             adaptor.getY().getType());
  types.push_back(y);
  return success();
}
