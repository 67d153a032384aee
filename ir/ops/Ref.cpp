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
                                          std::optional<Location>,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  types.push_back(
      RefType::of(cast<RankedTensorType>(adaptor.getValue().getType())));
  return success();
}

LogicalResult ReadOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  types.push_back(cast<RefType>(adaptor.getRef().getType()).getTensorType());
  return success();
}

LogicalResult WriteOp::verify() {
  auto expected = getRef().getType().getTensorType();
  if (getValue().getType() != expected)
    return emitOpError() << "expected a value of type " << expected
                         << " but got " << getValue().getType();
  return success();
}
