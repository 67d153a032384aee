//===- Retyper.cpp - ops in other types than they were written in ---------===//
#include "passes/precision/Retyper.h"

#include "ir/Autocast.h"
#include "ir/Ops.h"
#include "ir/Tags.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace tandem;

Type tandem::elementOf(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor ? tensor.getElementType() : Type();
}

/// True if `value` is one that `type` takes the place of.
static bool isOther(Value value, Type type) {
  Type element = elementOf(value);
  return element && isMixable(element) && element != type;
}

Value Retyper::computedIn(Value value, Type type) const {
  auto cast = value.getDefiningOp<CastOp>();
  Value version = versions.lookup({value, type});
  return cast && version == cast->getOperand(0) ? version : Value();
}

void Retyper::skip(CastOp op) {
  Value from = op->getOperand(0), to = op->getResult(0);
  if (Value version = computedIn(from, elementOf(to)))
    to.replaceAllUsesWith(version);
  else
    versions[{to, elementOf(from)}] = from;
}

Value Retyper::in(Value value, Type type, Operation *user) {
  Value &version = versions[{value, type}];
  if (version)
    return version;
  OpBuilder builder(user);
  auto tensor = cast<RankedTensorType>(value.getType()).clone(type);
  auto cast = CastOp::create(builder, user->getLoc(), tensor, value);
  // Others may use it: it is of no region, and nothing is said of its saving.
  if (Attribute pass = user->getAttr(kPassAttr))
    cast->setAttr(kPassAttr, pass);
  return version = cast;
}

FailureOr<Operation *> Retyper::compute(Operation *op, Type type) {
  auto other = [&](Value value) { return isOther(value, type); };
  if (llvm::none_of(op->getOperands(), other) &&
      llvm::none_of(op->getResults(), other))
    return op;
  SmallVector<Value> operands(op->getOperands());
  for (Value &operand : operands)
    if (other(operand))
      operand = in(operand, type, op);
  OpBuilder builder(op);
  Operation *made = builder.clone(*op);
  made->setOperands(operands);
  for (NamedAttribute attribute : op->getAttrs())
    if (auto number = dyn_cast<FloatAttr>(attribute.getValue());
        number && isMixable(number.getType()))
      made->setAttr(attribute.getName(),
                    FloatAttr::get(type, number.getValueAsDouble()));
  for (Value result : made->getResults())
    if (other(result))
      result.setType(cast<RankedTensorType>(result.getType()).clone(type));
  if (failed(verify(made, /*verifyRecursively=*/false)))
    return failure();
  for (auto [old, result] :
       llvm::zip_equal(op->getResults(), made->getResults())) {
    if (old.getType() == result.getType()) {
      old.replaceAllUsesWith(result);
      continue;
    }
    auto back = CastOp::create(builder, op->getLoc(), old.getType(), result);
    // As the op: else it would be saved in the op's place, or differentiated.
    for (StringRef tag :
         {StringRef(kCheckpointAttr), StringRef(kRecomputeAttr),
          StringRef(kNoGradAttr), StringRef(kStreamAttr), StringRef(kPassAttr)})
      if (Attribute value = op->getAttr(tag))
        back->setAttr(tag, value);
    versions[{back, type}] = result;
    old.replaceAllUsesWith(back);
  }
  op->erase();
  return made;
}
