//===- DemoteRefs.cpp - refs that nobody writes become values -------------===//
//
// Storage is the argument or make_ref at the root of a tree of views. If none
// of the tree is written, the root's value takes its place: views become views
// of values, reads the values themselves.
//
//===----------------------------------------------------------------------===//
#include "compiler/capture/DemoteRefs.h"
#include "ir/BuildOp.h"
#include "ir/Ops.h"
#include "ir/Signature.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tandem;

Value tandem::storageOf(Value ref) {
  while (Operation *op = ref.getDefiningOp()) {
    if (auto view = dyn_cast<RefViewOpInterface>(op))
      ref = view.getViewSource();
    else if (auto handle = dyn_cast<TransposeHandleOp>(op))
      ref = handle.getX();
    else if (auto handle = dyn_cast<SetHandleOp>(op))
      ref = handle.getY();
    else
      break;
  }
  return ref;
}

SmallVector<Value> tandem::changedRefs(Operation *op) {
  if (auto write = dyn_cast<WriteOp>(op))
    return {write.getRef()};
  if (isa<TransposeHandleOp, SetHandleOp, ResizeOp>(op))
    return {op->getOperand(0)};
  SmallVector<Value> refs;
  if (auto custom = dyn_cast<CustomVjpOp>(op))
    for (ArrayRef<int64_t> list :
         {custom.getWrites(), custom.getBackwardWrites()})
      for (int64_t position : list)
        refs.push_back(custom.getRefs()[position]);
  return refs;
}

FailureOr<Value> tandem::changeHandle(OpBuilder &builder, Location loc,
                                      StringRef op, ValueRange operands,
                                      ArrayRef<NamedAttribute> attributes) {
  auto made = buildOp(builder, loc, op, operands, attributes);
  if (failed(made))
    return failure();
  Operation *change = *made;
  if (change->getNumResults() == 0)
    return operands[0];
  bool isView =
      isa_and_nonnull<RefViewOpInterface>(operands[0].getDefiningOp());
  if (!isView)
    return change->getResult(0);
  Operation *view;
  auto type = cast<RefType>(change->getResult(0).getType());
  if (auto transpose = dyn_cast<TransposeHandleOp>(change)) {
    auto permutation = llvm::to_vector(
        llvm::seq<int64_t>(0, static_cast<int64_t>(type.getShape().size())));
    std::swap(permutation[transpose.getA()], permutation[transpose.getB()]);
    view = PermuteOp::create(builder, loc, operands[0], permutation);
  } else {
    view = ReshapeOp::create(builder, loc, cast<SetHandleOp>(change).getY(),
                             type.getShape());
  }
  for (NamedAttribute attribute : change->getDiscardableAttrs())
    view->setAttr(attribute.getName(), attribute.getValue());
  change->erase();
  return view->getResult(0);
}

bool tandem::changesArguments(func::FuncOp func) {
  for (Operation &op : func.getBody().front())
    for (Value ref : changedRefs(&op))
      if (isa<BlockArgument>(storageOf(ref)))
        return true;
  return false;
}

void tandem::returnOutputs(OpBuilder &builder, func::FuncOp func,
                           ArrayRef<Value> outputs) {
  DenseMap<Value, int> shared;
  for (Value ref : outputs)
    ++shared[storageOf(ref)];
  // What a backward writes must not be returned as if it were not.
  DenseSet<Value> writtenLater;
  for (auto custom : func.getOps<CustomVjpOp>())
    for (int64_t position : custom.getBackwardWrites())
      writtenLater.insert(storageOf(custom.getRefs()[position]));
  SmallVector<Value> results;
  for (Value ref : outputs) {
    Value storage = storageOf(ref);
    bool aliases = isa<BlockArgument>(storage) || shared[storage] > 1 ||
                   writtenLater.contains(storage);
    results.push_back(
        aliases ? ref : ReadOp::create(builder, ref.getLoc(), ref).getValue());
  }
  func::ReturnOp::create(builder, func.getLoc(), results);
  func.setType(builder.getFunctionType(func.getArgumentTypes(),
                                       TypeRange(ValueRange(results))));
}

/// The views of `root`'s storage, `root` first; empty if they must stay refs.
static SmallVector<Value> unwrittenViews(Value root) {
  SmallVector<Value> views{root};
  for (size_t i = 0; i < views.size(); ++i)
    for (Operation *user : views[i].getUsers()) {
      if (isa<RefViewOpInterface>(user))
        views.push_back(user->getResult(0));
      else if (!isa<ReadOp>(user))
        return {};
    }
  return views;
}

/// Gives every view of the storage the type of a value and forwards its reads.
static void demote(ArrayRef<Value> views) {
  for (Value view : views) {
    if (auto ref = dyn_cast<RefType>(view.getType()))
      view.setType(ref.getTensorType());
    for (Operation *user : llvm::make_early_inc_range(view.getUsers()))
      if (auto read = dyn_cast<ReadOp>(user)) {
        read.replaceAllUsesWith(view);
        read.erase();
      }
  }
}

void tandem::demoteRefs(Block &block, ArrayRef<BlockArgument> arguments) {
  for (BlockArgument argument : arguments)
    if (auto views = unwrittenViews(argument); !views.empty())
      demote(views);
  SmallVector<MakeRefOp> roots(block.getOps<MakeRefOp>());
  for (MakeRefOp root : roots) {
    auto views = unwrittenViews(root.getRef());
    if (views.empty())
      continue;
    Value value = root.getValue();
    // Views of the ref become views of the value.
    for (OpOperand &use : llvm::make_early_inc_range(root.getRef().getUses()))
      if (!isa<ReadOp>(use.getOwner()))
        use.set(value);
    for (Operation *user :
         llvm::make_early_inc_range(root.getRef().getUsers())) {
      user->getResult(0).replaceAllUsesWith(value);
      user->erase();
    }
    views.erase(views.begin());
    demote(views);
    root.erase();
  }
}

void tandem::demoteRefs(func::FuncOp func) {
  // Arguments by the storage that they are declared to share.
  llvm::MapVector<StringRef, SmallVector<BlockArgument>> groups;
  for (BlockArgument argument : func.getArguments()) {
    RoleAttr role = roleOfArgument(func, argument.getArgNumber());
    StringRef storage = role.getName();
    if (StringAttr of = role.getAlias().of)
      storage = of;
    groups[storage].push_back(argument);
  }
  SmallVector<BlockArgument> arguments;
  for (auto &[storage, members] : groups)
    if (llvm::none_of(members, [](BlockArgument argument) {
          return unwrittenViews(argument).empty();
        }))
      llvm::append_range(arguments, members);
  demoteRefs(func.getBody().front(), arguments);
  func.setType(FunctionType::get(func.getContext(),
                                 func.getBody().front().getArgumentTypes(),
                                 func.getResultTypes()));
}
