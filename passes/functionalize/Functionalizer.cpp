//===- Functionalizer.cpp - storage becomes values ------------------------===//
#include "passes/functionalize/Functionalizer.h"

#include "ir/Tags.h"

using namespace mlir;
using namespace tandem;

void Functionalizer::bind(Value ref, View *view) {
  handleIndex[ref] = handles.size();
  handles.push_back({view, view});
  shown[ref] = view;
  view->isHandle = true;
}

void Functionalizer::track(Operation *op) {
  if (!op->hasAttr(kNoGradAttr) && !op->hasTrait<NotDifferentiable>() &&
      llvm::any_of(op->getOperands(),
                   [&](Value operand) { return tracked.contains(operand); }))
    for (Value result : op->getResults())
      if (isDifferentiableType(result.getType()))
        tracked.insert(result);
}

/// Follows gradients through what was made behind `before`; what a hidden write
/// makes belongs to its no-grad region.
void Functionalizer::trackBetween(Operation *before, Operation *end,
                                  bool isHidden) {
  for (Operation *made = before ? before->getNextNode() : &block.front();
       made != end; made = made->getNextNode()) {
    if (isHidden)
      made->setAttr(kNoGradAttr, builder.getUnitAttr());
    track(made);
  }
}

LogicalResult Functionalizer::visitRead(ReadOp read) {
  View *view = shown.lookup(read.getRef());
  Value value = views.read(view);
  if (!value) {
    auto error = read.emitOpError()
                 << "reads " << view->storage->str() << ", which is freed";
    if (view->storage->resize)
      error.attachNote(view->storage->resize->getLoc()) << "it is freed here";
    return error;
  }
  if (read->hasAttr(kNoGradAttr) && isDifferentiableType(value.getType()))
    value = DetachOp::create(builder, read.getLoc(), value);
  read.getValue().replaceAllUsesWith(value);
  return success();
}

void Functionalizer::overwriteHidden(StorageState *storage, Value value,
                                     Operation *op) {
  Value old = views.known(storage->whole);
  if (old && tracked.contains(old)) {
    value = PassGradOp::create(builder, op->getLoc(), old, value);
    tracked.insert(value);
  } else if (tracked.contains(value)) {
    value = DetachOp::create(builder, op->getLoc(), value);
  }
  views.overwrite(storage, value);
  storage->lastWrite = op;
}

LogicalResult Functionalizer::visitWrite(WriteOp write) {
  View *view = shown.lookup(write.getRef());
  StorageState *storage = view->storage;
  if (storage->isFreed) {
    auto error = write.emitOpError()
                 << "writes " << storage->str() << ", which is freed";
    if (storage->resize)
      error.attachNote(storage->resize->getLoc()) << "it is freed here";
    return error;
  }
  // Writing back what is there changes nothing.
  if (views.known(view) == write.getValue())
    return success();
  bool isHidden = write->hasAttr(kNoGradAttr) || view->isHidden;
  Operation *before = write->getPrevNode();
  SmallVector<std::pair<View *, Value>> written;
  View *culprit = nullptr;
  Value whole =
      views.scatter(view, write.getValue(), write.getLoc(), culprit, written);
  trackBetween(before, write, isHidden);
  if (!whole) {
    auto error = write.emitOpError() << "writes " << storage->str()
                                     << " through '" << culprit->op.getValue()
                                     << "', whose elements overlap in storage";
    error.attachNote(culprit->loc) << "the view is made here";
    return failure();
  }
  if (isHidden) {
    overwriteHidden(storage, whole, write);
    return success();
  }
  views.overwrite(storage, whole);
  storage->lastWrite = write;
  if (!storage->visibleWrite)
    storage->visibleWrite = write;
  for (auto [seen, value] : written) {
    seen->value = value;
    seen->version = storage->version;
  }
  // The handle that the ref is, or is a view of.
  Value root = write.getRef();
  while (auto op = root.getDefiningOp<RefViewOpInterface>())
    root = op.getViewSource();
  Handle &handle = handles[handleIndex.lookup(root)];
  if (!handle.visibleWrite)
    handle.visibleWrite = write;
  return success();
}

LogicalResult Functionalizer::visitResize(ResizeOp resize) {
  View *view = shown.lookup(resize.getRef());
  StorageState *storage = view->storage;
  int64_t all = storage->whole->type.getNumElements();
  auto elements = static_cast<int64_t>(resize.getElements());
  if (elements != 0 && elements != all)
    return resize.emitOpError()
           << "expected the storage of " << storage->str() << " to have 0 or "
           << all << " elements, but got " << elements;
  if (elements != 0 && storage->isFreed) {
    // Memory that holds nothing yet: zeros, until it is filled.
    storage->isFreed = false;
    views.overwrite(storage, ConstantOp::splat(builder, resize.getLoc(),
                                               storage->whole->type, 0));
  } else if (elements == 0) {
    storage->isFreed = true;
    ++storage->version;
  }
  storage->resize = resize;
  return success();
}

LogicalResult Functionalizer::visitHandle(Operation *op) {
  Value before = op->getOperand(0), after = op->getResult(0);
  auto found = handleIndex.find(before);
  if (found == handleIndex.end())
    return op->emitOpError() << "changes a view; only what comes in or is made "
                                "by 'tandem.make_ref' is a handle of its own";
  unsigned index = found->second;
  Handle &handle = handles[index];
  if (auto transpose = dyn_cast<TransposeHandleOp>(op)) {
    handle.now = views.addTransposed(handle.now, transpose.getA(),
                                     transpose.getB(), op->getLoc());
    handle.transpose = op;
  } else {
    handle.now = shown.lookup(cast<SetHandleOp>(op).getY());
    handle.set = op;
  }
  handleIndex[after] = index;
  shown[after] = handle.now;
  stale[before] = op;
  return success();
}

LogicalResult Functionalizer::visitCustom(CustomVjpOp op) {
  auto made = functionalizeCustom(op, *this);
  if (failed(made))
    return failure();
  unsigned outputs = op.getNumResults();
  op.replaceAllUsesWith(made->op.getResults().take_front(outputs));
  track(made->op);
  for (auto [storage, value] : made->written)
    overwriteHidden(storage, value, made->op);
  llvm::append_range(privateStates, made->privateStates);
  return success();
}

/// What the regions of a branch or a loop write is their own.
LogicalResult Functionalizer::visitRegions(Operation *op) {
  if (isa<CustomVjpOp>(op))
    return success();
  for (Region &region : op->getRegions()) {
    Functionalizer inner(region.front());
    for (BlockArgument argument : region.getArguments())
      if (isDifferentiableType(argument.getType()))
        inner.addTracked(argument);
    if (failed(inner.run()))
      return failure();
    inner.eraseRefOps();
  }
  return success();
}

LogicalResult Functionalizer::visit(Operation *op) {
  auto isRef = [](Value value) { return isa<RefType>(value.getType()); };
  if (llvm::none_of(op->getOperands(), isRef) &&
      llvm::none_of(op->getResults(), isRef)) {
    if (auto custom = dyn_cast<CustomVjpOp>(op);
        custom && !custom.isFunctional()) {
      builder.setInsertionPoint(op);
      dead.push_back(op);
      return visitCustom(custom);
    }
    track(op);
    return visitRegions(op);
  }
  dead.push_back(op);
  for (Value operand : op->getOperands())
    if (auto it = stale.find(operand); it != stale.end()) {
      auto error = op->emitOpError() << "uses a handle as it was before it "
                                        "changed; expected the changed one";
      error.attachNote(it->second->getLoc()) << "it changes here";
      return failure();
    }
  builder.setInsertionPoint(op);
  if (auto view = dyn_cast<RefViewOpInterface>(op)) {
    Value source = view.getViewSource();
    shown[op->getResult(0)] = views.add(shown.lookup(source), op);
    return success();
  }
  if (auto make = dyn_cast<MakeRefOp>(op)) {
    Value value = make.getValue();
    if (make->hasAttr(kNoGradAttr) && tracked.contains(value))
      value = DetachOp::create(builder, op->getLoc(), value);
    StorageState *storage = views.addStorage(
        cast<RankedTensorType>(value.getType()), value, op->getLoc());
    bind(make.getRef(), storage->whole);
    return success();
  }
  Operation *before = op->getPrevNode();
  LogicalResult result =
      TypeSwitch<Operation *, LogicalResult>(op)
          .Case([&](ReadOp read) { return visitRead(read); })
          .Case([&](WriteOp write) { return visitWrite(write); })
          .Case([&](ResizeOp resize) { return visitResize(resize); })
          .Case([&](CustomVjpOp custom) { return visitCustom(custom); })
          .Case<TransposeHandleOp, SetHandleOp>(
              [&](Operation *change) { return visitHandle(change); })
          .Default([](Operation *other) {
            return other->emitOpError()
                   << "uses a ref, but is neither a view, a read, a write nor "
                      "a change of it";
          });
  if (!isa<WriteOp>(op))
    trackBetween(before, op, /*isHidden=*/false);
  // What is made in its place is of its region.
  if (Attribute region = op->getAttr(kCheckpointAttr))
    for (Operation *made = before ? before->getNextNode() : &block.front();
         made != op; made = made->getNextNode())
      made->setAttr(kCheckpointAttr, region);
  return result;
}

LogicalResult Functionalizer::run() {
  bool ok = true;
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator()))
    ok &= succeeded(visit(&op));
  builder.setInsertionPoint(block.getTerminator());
  return success(ok);
}

void Functionalizer::eraseRefOps() {
  for (Operation *op : llvm::reverse(dead))
    op->erase();
  dead.clear();
}
