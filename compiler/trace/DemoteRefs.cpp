//===- DemoteRefs.cpp - refs that nobody writes become values -------------===//
//
// Storage is the argument or make_ref at the root of a tree of views. If none
// of the tree is written, the root's value takes its place: views become views
// of values, reads the values themselves.
//
//===----------------------------------------------------------------------===//
#include "compiler/trace/Recorder.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::trace;

/// The views of `root`'s storage, `root` first; empty if one is written.
static SmallVector<Value> unwrittenViews(Value root) {
  SmallVector<Value> views{root};
  for (size_t i = 0; i < views.size(); ++i)
    for (Operation *user : views[i].getUsers()) {
      if (auto view = dyn_cast<RefViewOpInterface>(user))
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

void trace::demoteRefs(func::FuncOp func) {
  for (BlockArgument argument : func.getArguments())
    if (auto views = unwrittenViews(argument); !views.empty())
      demote(views);
  SmallVector<MakeRefOp> roots(func.getOps<MakeRefOp>());
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
  func.setType(FunctionType::get(func.getContext(),
                                 func.getBody().front().getArgumentTypes(),
                                 func.getResultTypes()));
}
