//===- FunctionalizeCustom.cpp - the regions of a custom_vjp --------------===//
//
// Each region is functionalized as a block of its own, in which every storage
// that its refs name is an argument. What the forward region wrote becomes
// results of the op. What the backward region wrote it yields; the joint
// decides where that goes. What a backward may not do is noted for the joint.
//
//===----------------------------------------------------------------------===//
#include "passes/functionalize/Functionalizer.h"

#include "ir/Keys.h"
#include "ir/Signature.h"
#include "ir/Where.h"

using namespace mlir;
using namespace tandem;

namespace {

/// A storage of the outer block inside of a region.
struct Inner {
  StorageState *outer;
  StorageState *inner;
  BlockArgument argument;
};

/// One region while it becomes functional.
class RegionFunctionalizer {
public:
  RegionFunctionalizer(CustomVjpOp op, Block &block, Functionalizer &outer)
      : op(op), block(block), outer(outer), functionalizer(block) {}

  /// Puts an argument for each storage behind the block's, and binds the refs
  /// that begin at argument `first` to it.
  void bindRefs(unsigned first);
  /// The same for the cotangent of `result` that comes in as a ref.
  void bindCotangent(unsigned index, unsigned result);
  LogicalResult run();
  /// Removes the arguments that were refs.
  void eraseRefs();
  /// The new value of a storage, null if it was not written.
  Value newValue(const StorageState *storage) {
    return storage->version ? functionalizer.views.read(storage->whole)
                            : Value();
  }
  /// Calls `report` with each change of a handle or of a storage's size.
  void forEachChange(
      llvm::function_ref<void(Operation *, StringRef, StringRef)> report);

  CustomVjpOp op;
  Block &block;
  Functionalizer &outer;
  Functionalizer functionalizer;
  SmallVector<Inner> storages;
  /// The cotangents that were refs, and their storages.
  SmallVector<std::pair<unsigned, StorageState *>> cotangents;

private:
  struct Bound {
    BlockArgument ref;
    std::string name;
  };
  StorageState *addStorage(RankedTensorType type, Location loc,
                           BlockArgument argument) {
    return functionalizer.views.addStorage(type, argument, loc);
  }
  SmallVector<Bound> bound;
};

} // namespace

void RegionFunctionalizer::bindRefs(unsigned first) {
  for (auto [k, ref] : llvm::enumerate(op.getRefs())) {
    BlockArgument argument = block.getArgument(first + k);
    View *view = outer.viewOf(ref);
    auto known = llvm::find_if(storages, [&](const Inner &inner) {
      return inner.outer == view->storage;
    });
    if (known == storages.end()) {
      if (argument.use_empty())
        continue;
      RankedTensorType type = view->storage->whole->type;
      BlockArgument value = block.addArgument(type, op.getLoc());
      storages.push_back(
          {view->storage, addStorage(type, op.getLoc(), value), value});
      known = std::prev(storages.end());
    }
    functionalizer.bind(argument,
                        functionalizer.views.rebase(view, known->inner));
    bound.push_back(
        {argument, view->storage->role
                       ? view->storage->str()
                       : "ref #" + std::to_string(k) + ", an intermediate"});
  }
}

/// What a message calls the cotangent of a result: by the output that it is.
static std::string nameOfCotangent(CustomVjpOp op, unsigned result) {
  for (OpOperand &use : op->getResult(result).getUses())
    if (isa<func::ReturnOp>(use.getOwner())) {
      unsigned index = use.getOperandNumber();
      auto func = use.getOwner()->getParentOfType<func::FuncOp>();
      if (RoleAttr role = roleOfResult(func, index))
        return "the cotangent of " + nameOfResult(role, index);
    }
  return "the cotangent of result #" + std::to_string(result);
}

void RegionFunctionalizer::bindCotangent(unsigned index, unsigned result) {
  BlockArgument ref = block.getArgument(index);
  auto type = cast<RefType>(ref.getType()).getTensorType();
  BlockArgument value = block.insertArgument(index + 1, type, ref.getLoc());
  StorageState *storage = addStorage(type, ref.getLoc(), value);
  functionalizer.bind(ref, storage->whole);
  cotangents.push_back({static_cast<unsigned>(cotangents.size()), storage});
  bound.push_back({ref, nameOfCotangent(op, result)});
}

LogicalResult RegionFunctionalizer::run() {
  if (failed(functionalizer.run()))
    return failure();
  for (Value value : block.getTerminator()->getOperands())
    if (isa<RefType>(value.getType()))
      return block.getTerminator()->emitOpError() << "yields a ref";
  return success();
}

void RegionFunctionalizer::forEachChange(
    llvm::function_ref<void(Operation *, StringRef, StringRef)> report) {
  for (const Bound &one : bound) {
    const Functionalizer::Handle &handle = functionalizer.handleOf(one.ref);
    if (handle.now != handle.before) {
      bool isStorage = handle.now->storage != handle.before->storage;
      Operation *change =
          isStorage || !handle.transpose ? handle.set : handle.transpose;
      report(change, isStorage ? "storage" : "metadata", one.name);
    }
    const StorageState *storage = handle.before->storage;
    if (storage->isFreed != storage->wasFreed)
      report(storage->resize, "size", one.name);
  }
}

void RegionFunctionalizer::eraseRefs() {
  functionalizer.eraseRefOps();
  for (unsigned i = block.getNumArguments(); i > 0; --i)
    if (isa<RefType>(block.getArgument(i - 1).getType()))
      block.eraseArgument(i - 1);
}

/// The dictionary of one state of the backward.
static DictionaryAttr stateOf(OpBuilder &b, const StorageState *storage,
                              unsigned input, bool isWritten) {
  NamedAttrList state;
  if (storage->role)
    state.set(key::kName, storage->role.getName());
  else
    state.set(key::kInput, b.getI64IntegerAttr(input));
  if (isWritten)
    state.set(key::kWritten, b.getUnitAttr());
  return state.getDictionary(b.getContext());
}

FailureOr<FunctionalCustom> tandem::functionalizeCustom(CustomVjpOp op,
                                                        Functionalizer &outer) {
  OpBuilder &b = outer.builder;
  unsigned outputs = op.getNumResults(), saved = op.numSaved();
  unsigned inputs = op.getInputs().size();
  RegionFunctionalizer forward(op, op.getForward().front(), outer);
  forward.bindRefs(inputs);
  RegionFunctionalizer backward(op, op.getBackward().front(), outer);
  // The refs' own arguments move as cotangents that are refs get a value.
  SmallVector<int64_t> cotangentRefs;
  unsigned first = saved;
  for (unsigned i = 0; i < outputs; ++i, ++first)
    if (isa<RefType>(backward.block.getArgument(first).getType())) {
      backward.bindCotangent(first++, i);
      cotangentRefs.push_back(i);
    }
  backward.bindRefs(first);
  if (failed(forward.run()) || failed(backward.run()))
    return failure();

  // The forward: storages come in behind the inputs; what was written goes out
  // between the results and what is saved.
  bool ok = true;
  forward.forEachChange([&](Operation *change, StringRef what, StringRef name) {
    auto error = change->emitOpError()
                 << "changes the " << what << " of " << name
                 << " in the forward of " << op.str();
    error.attachNote(op.getLoc()) << "the custom_vjp is here";
    ok = false;
  });
  SmallVector<Value> operands(op.getInputs());
  for (const Inner &inner : forward.storages) {
    Value value = outer.views.read(inner.outer->whole);
    if (!value) {
      op.emitOpError() << "takes a ref to freed storage";
      return failure();
    }
    operands.push_back(value);
  }
  SmallVector<Value> yielded(
      forward.block.getTerminator()->getOperands().take_front(outputs));
  FunctionalCustom result;
  for (const Inner &inner : forward.storages)
    if (Value value = forward.newValue(inner.inner)) {
      yielded.push_back(value);
      result.written.push_back({inner.outer, value});
    }
  llvm::append_range(
      yielded,
      forward.block.getTerminator()->getOperands().drop_front(outputs));
  forward.block.getTerminator()->setOperands(yielded);
  forward.eraseRefs();

  // The backward: states come in behind the cotangents; what was written goes
  // out behind the gradients.
  SmallVector<Attribute> states;
  SmallVector<Value> given(backward.block.getTerminator()->getOperands());
  for (const Inner &inner : backward.storages) {
    Value value = backward.newValue(inner.inner);
    StorageState *storage = inner.outer;
    unsigned input = operands.size();
    if (storage->isShared) {
      op.emitOpError() << "has a backward that uses storage which inputs share "
                          "and of which no argument is the whole";
      return failure();
    }
    if (!storage->role) {
      Value copy = outer.views.read(storage->whole);
      if (!copy) {
        op.emitOpError() << "takes a ref to freed storage";
        return failure();
      }
      operands.push_back(copy);
      // The forward region does not look at it.
      forward.block.addArgument(copy.getType(), op.getLoc());
      Operation *write = value ? inner.inner->lastWrite : nullptr;
      result.privateStates.push_back(
          {nullptr, storage, storage->version,
           write ? ("'" + write->getName().getStringRef() + "'").str() : "",
           write ? write->getLoc() : op.getLoc()});
    }
    states.push_back(stateOf(b, storage, input, value != nullptr));
    if (value)
      given.push_back(value);
  }
  SmallVector<int64_t> cotangentWrites;
  for (auto [k, storage] : backward.cotangents)
    if (Value value = backward.newValue(storage)) {
      cotangentWrites.push_back(cotangentRefs[k]);
      given.push_back(value);
    }
  backward.block.getTerminator()->setOperands(given);
  SmallVector<Attribute> rejected;
  backward.forEachChange(
      [&](Operation *change, StringRef what, StringRef name) {
        std::string message =
            ("'" + change->getName().getStringRef() + "' changes the " + what +
             " of " + name + " in a backward")
                .str();
        rejected.push_back(b.getDictionaryAttr(
            {b.getNamedAttr(key::kMessage, b.getStringAttr(message)),
             b.getNamedAttr(key::kLoc, LocationAttr(change->getLoc()))}));
      });
  backward.eraseRefs();
  if (!ok)
    return failure();

  OperationState state(op.getLoc(), CustomVjpOp::getOperationName());
  auto &properties = state.getOrAddProperties<CustomVjpOp::Properties>();
  properties = op.getProperties();
  properties.operandSegmentSizes = {static_cast<int32_t>(operands.size()), 0};
  properties.setWrites(b.getDenseI64ArrayAttr({}));
  properties.setBackwardWrites(b.getDenseI64ArrayAttr({}));
  properties.setOutputs(b.getI64IntegerAttr(outputs));
  properties.setSaved(b.getI64IntegerAttr(saved));
  properties.setDifferentiable(b.getI64IntegerAttr(inputs));
  if (!states.empty())
    properties.setStates(b.getArrayAttr(states));
  properties.setCotangentWrites(b.getDenseI64ArrayAttr(cotangentWrites));
  if (!rejected.empty())
    properties.setRejected(b.getArrayAttr(rejected));
  state.addAttributes(llvm::to_vector(op->getDiscardableAttrs()));
  state.addOperands(operands);
  state.addTypes(TypeRange(ValueRange(yielded)));
  state.addRegion()->takeBody(op.getForward());
  state.addRegion()->takeBody(op.getBackward());
  result.op = cast<CustomVjpOp>(b.create(state));
  for (auto [i, written] : llvm::enumerate(result.written))
    written.second = result.op.getResult(outputs + i);
  for (Functionalizer::PrivateState &one : result.privateStates)
    one.op = result.op;
  return result;
}
