//===- FlowRegion.cpp - branches and loops from recorded regions ----------===//
#include "compiler/capture/FlowRegion.h"
#include "compiler/capture/DemoteRefs.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace tandem;

FlowRegion::FlowRegion(std::string what, Location loc, TypeRange arguments)
    : what(std::move(what)), loc(loc), region(std::make_unique<Region>()) {
  region->emplaceBlock();
  for (Type type : arguments)
    block().addArgument(type, loc);
}

SmallVector<Value> FlowRegion::begin(OpBuilder &builder) {
  SmallVector<Value> refs;
  for (BlockArgument argument : block().getArguments())
    refs.push_back(MakeRefOp::create(builder, loc, argument));
  return refs;
}

bool FlowRegion::end(OpBuilder &builder, ArrayRef<Value> results) {
  bool ok = true;
  for (Operation &op : block())
    for (Value ref : changedRefs(&op)) {
      auto make = storageOf(ref).getDefiningOp<MakeRefOp>();
      auto argument =
          make ? dyn_cast<BlockArgument>(make.getValue()) : BlockArgument();
      if (!argument)
        continue;
      emitError(op.getLoc())
          << "writes argument #" << argument.getArgNumber() << " of " << what
          << ", which is a value; expected a clone of it to be written";
      ok = false;
    }
  if (!ok)
    return false;
  SmallVector<Value> values;
  for (Value ref : results) {
    values.push_back(ReadOp::create(builder, loc, ref));
    types.push_back(values.back().getType());
  }
  YieldOp::create(builder, loc, values);
  demoteRefs(block(), {});
  return true;
}

static FailureOr<Operation *> verified(Operation *op,
                                       ArrayRef<NamedAttribute> tags) {
  for (NamedAttribute tag : tags)
    op->setAttr(tag.getName(), tag.getValue());
  if (succeeded(verify(op)))
    return op;
  op->erase();
  return failure();
}

FailureOr<Operation *> tandem::buildIf(OpBuilder &builder, Location loc,
                                       Value condition, ValueRange inputs,
                                       FlowRegion &then, FlowRegion &otherwise,
                                       ArrayRef<NamedAttribute> tags) {
  auto op = IfOp::create(builder, loc, then.yielded(), condition, inputs);
  then.moveTo(op.getThen());
  otherwise.moveTo(op.getOtherwise());
  return verified(op, tags);
}

FailureOr<SmallVector<Type>> ScanParts::argumentTypes(Location loc) const {
  SmallVector<Type> types;
  for (Value carry : carries)
    types.push_back(carry.getType());
  for (auto [i, input] : llvm::enumerate(inputs)) {
    auto type = dyn_cast<RankedTensorType>(input.getType());
    if (!type || type.getRank() == 0 || type.getDimSize(0) != length) {
      emitError(loc) << "expected input #" << i << " to have " << length
                     << " slices along dimension 0, but got "
                     << input.getType();
      return failure();
    }
    types.push_back(RankedTensorType::get(type.getShape().drop_front(),
                                          type.getElementType()));
  }
  for (Value constant : constants)
    types.push_back(constant.getType());
  return types;
}

FailureOr<Operation *> tandem::buildScan(OpBuilder &builder, Location loc,
                                         const ScanParts &parts,
                                         FlowRegion &body,
                                         ArrayRef<NamedAttribute> tags) {
  SmallVector<Type> types;
  for (auto [i, type] : llvm::enumerate(body.yielded())) {
    if (i < parts.carries.size()) {
      types.push_back(parts.carries[i].getType());
      continue;
    }
    auto slice = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape = {parts.length};
    llvm::append_range(shape, slice.getShape());
    if (!isTensorShape(shape))
      return emitError(loc)
             << "expected a stack of " << parts.length << " slices of type "
             << slice << " to be a tensor of at most 2^40 elements";
    types.push_back(RankedTensorType::get(shape, slice.getElementType()));
  }
  auto op = ScanOp::create(builder, loc, types,
                           builder.getI64IntegerAttr(parts.length), parts.trips,
                           parts.reverse ? builder.getUnitAttr() : UnitAttr(),
                           parts.carries, parts.inputs, parts.constants);
  body.moveTo(op.getBody());
  return verified(op, tags);
}

FailureOr<Operation *>
tandem::buildWhile(OpBuilder &builder, Location loc, ValueRange carries,
                   ValueRange constants, FlowRegion &condition,
                   FlowRegion &body, ArrayRef<NamedAttribute> tags) {
  auto op =
      WhileOp::create(builder, loc, carries.getTypes(), carries, constants);
  condition.moveTo(op.getCondition());
  body.moveTo(op.getBody());
  return verified(op, tags);
}
