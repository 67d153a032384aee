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
                             "expected a tensor of static shape, not "
                             "empty, at most 2^40 elements, but got ",
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
