//===- CustomRegions.cpp - custom_vjp from two recorded regions -----------===//
#include "compiler/capture/CustomRegions.h"
#include "compiler/capture/DemoteRefs.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace tandem;

CustomRegions::CustomRegions(std::string name, Location loc,
                             ArrayRef<Value> inputs, ArrayRef<Value> refs)
    : name(std::move(name)), loc(loc), inputs(inputs), refs(refs),
      forward(std::make_unique<Region>()),
      backward(std::make_unique<Region>()) {
  forward->emplaceBlock();
  backward->emplaceBlock();
}

SmallVector<Value> CustomRegions::refsOf(Block &block) const {
  return llvm::to_vector_of<Value>(block.getArguments().take_back(refs.size()));
}

void CustomRegions::beginForward(OpBuilder &builder,
                                 SmallVectorImpl<Value> &values) {
  Block &block = forwardBlock();
  for (Value input : inputs)
    values.push_back(MakeRefOp::create(
        builder, loc, block.addArgument(input.getType(), loc)));
  for (Value ref : refs)
    block.addArgument(ref.getType(), loc);
}

/// The block arguments that `ref` may show: both sides of each set_.
static void collectRoots(Value ref, SmallVectorImpl<Value> &roots) {
  while (Operation *op = ref.getDefiningOp()) {
    if (auto set = dyn_cast<SetHandleOp>(op))
      collectRoots(set.getY(), roots);
    if (isa<MakeRefOp>(op))
      break;
    ref = op->getOperand(0);
  }
  roots.push_back(ref);
}

SmallVector<int64_t> CustomRegions::declaredWrites(Block &block) const {
  llvm::SmallBitVector written(refs.size());
  unsigned first = block.getNumArguments() - refs.size();
  for (Operation &op : block)
    for (Value ref : changedRefs(&op)) {
      SmallVector<Value> roots;
      collectRoots(ref, roots);
      for (Value root : roots)
        if (auto argument = dyn_cast<BlockArgument>(root))
          if (argument.getArgNumber() >= first)
            written.set(argument.getArgNumber() - first);
    }
  return llvm::to_vector_of<int64_t>(written.set_bits());
}

/// The block argument that a tensor is read from or a view of; null if it is
/// computed.
static BlockArgument originOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto read = dyn_cast<ReadOp>(op))
      value = storageOf(read.getRef());
    else if (auto make = dyn_cast<MakeRefOp>(op))
      value = make.getValue();
    else if (auto view = dyn_cast<RefViewOpInterface>(op))
      value = view.getViewSource();
    else
      return {};
  }
  return cast<BlockArgument>(value);
}

/// A write to the value that argument `value` of a region holds.
bool CustomRegions::checkWrite(Operation *op, BlockArgument value) {
  bool inForward = value.getOwner() == &forward->front();
  BlockArgument origin = value;
  if (!inForward) {
    if (value.getArgNumber() >= saved.size())
      return true;
    // What the forward computed is the custom_vjp's own.
    origin = originOf(saved[value.getArgNumber()]);
    if (!origin)
      return true;
  }
  unsigned number = origin.getArgNumber();
  auto error = emitError(op->getLoc()) << "writes ";
  if (number < inputs.size())
    error << "input #" << number;
  else
    error << "ref #" << number - inputs.size();
  error << " of " << str()
        << (inForward ? ", which is a value" : ", as the forward saved it")
        << "; expected the write to go through 'refs'";
  return false;
}

bool CustomRegions::checkWrites(Block &block) {
  bool ok = true;
  for (Operation &op : block)
    for (Value ref : changedRefs(&op))
      if (auto make = storageOf(ref).getDefiningOp<MakeRefOp>())
        if (auto argument = dyn_cast<BlockArgument>(make.getValue()))
          ok &= checkWrite(&op, argument);
  return ok;
}

bool CustomRegions::endForward(OpBuilder &builder, ArrayRef<Value> outputs,
                               ArrayRef<Value> kept,
                               ArrayRef<int64_t> positions) {
  Block &block = forward->front();
  bool ok = checkWrites(block);
  unsigned first = inputs.size();
  DenseMap<Value, unsigned> storages;
  for (auto [i, ref] : llvm::enumerate(outputs)) {
    Value storage = storageOf(ref);
    auto argument = dyn_cast<BlockArgument>(storage);
    auto [other, isNew] = storages.insert({storage, i});
    if (!argument && isNew)
      continue;
    auto error = emitError(ref.getLoc()) << "result #" << i << " of " << str()
                                         << " shares storage with ";
    if (argument)
      error << "ref #" << argument.getArgNumber() - first;
    else
      error << "result #" << other->second;
    error << ", which is an alias that nothing declares; expected a clone";
    ok = false;
  }
  if (!ok)
    return false;
  SmallVector<Value> yielded;
  for (Value ref : outputs) {
    yielded.push_back(ReadOp::create(builder, loc, ref));
    results.push_back(tensorTypeOf(ref.getType()));
  }
  llvm::append_range(yielded, kept);
  Operation *yield = YieldOp::create(builder, loc, yielded);
  demoteRefs(block, {});
  saved = llvm::to_vector(yield->getOperands().drop_front(outputs.size()));
  unchecked.assign(positions.begin(), positions.end());
  return true;
}

void CustomRegions::beginBackward(OpBuilder &builder,
                                  SmallVectorImpl<Value> &values,
                                  SmallVectorImpl<Value> &cotangents) {
  Block &block = backwardBlock();
  for (Value value : saved)
    values.push_back(MakeRefOp::create(
        builder, loc, block.addArgument(value.getType(), loc)));
  for (Type result : results)
    cotangents.push_back(
        block.addArgument(RefType::of(cast<RankedTensorType>(result)), loc));
  for (Value ref : refs)
    block.addArgument(ref.getType(), loc);
}

bool CustomRegions::endBackward(OpBuilder &builder, ArrayRef<Value> gradients) {
  Block &block = backward->front();
  if (!checkWrites(block))
    return false;
  SmallVector<Value> yielded;
  for (auto [i, ref] : llvm::enumerate(gradients)) {
    if (ref) {
      yielded.push_back(ReadOp::create(builder, loc, ref));
      continue;
    }
    Type type = i < inputs.size()
                    ? inputs[i].getType()
                    : RankedTensorType::get({}, builder.getF32Type());
    yielded.push_back(UndefinedOp::create(builder, loc, type));
  }
  YieldOp::create(builder, loc, yielded);
  // A cotangent that is written stays a ref.
  auto arguments = block.getArguments().slice(saved.size(), results.size());
  demoteRefs(block, SmallVector<BlockArgument>(arguments));
  return true;
}

FailureOr<CustomVjpOp> CustomRegions::build(OpBuilder &builder,
                                            bool undefinedCotangents,
                                            bool firstOrder,
                                            ArrayRef<NamedAttribute> tags) {
  auto op = CustomVjpOp::create(
      builder, loc, results, inputs, refs, name,
      declaredWrites(forward->front()), declaredWrites(backward->front()),
      unchecked, undefinedCotangents, firstOrder,
      /*outputs=*/IntegerAttr(), /*saved=*/IntegerAttr(),
      /*differentiable=*/IntegerAttr(), /*states=*/ArrayAttr(),
      /*cotangent_writes=*/ArrayRef<int64_t>(), /*rejected=*/ArrayAttr());
  op.getForward().takeBody(*forward);
  op.getBackward().takeBody(*backward);
  for (NamedAttribute tag : tags)
    op->setAttr(tag.getName(), tag.getValue());
  if (succeeded(verify(op)))
    return op;
  op.erase();
  return failure();
}
