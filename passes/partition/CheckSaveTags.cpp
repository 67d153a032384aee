//===- CheckSaveTags.cpp - tags leave a partition -------------------------===//
#include "passes/Passes.h"
#include "passes/partition/Joints.h"
#include "passes/partition/SavedValues.h"

#include "ir/Ops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tandem {
#define GEN_PASS_DEF_CHECKSAVETAGS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// True if both passes compute `op`, or one of them for the other.
static bool isPrimal(const JointView &view, Operation *op) {
  return op->getNumResults() > 0 && !view.isBackwardOnly(op->getResult(0));
}

/// Reports how the backward comes to need `value`, which may neither be saved
/// nor be computed again; true if it does not need it.
static bool isUnneeded(const JointView &view, Value value) {
  const Pins &pins = view.pins;
  // Breadth first: the shortest way.
  SmallVector<Value> work = {value};
  DenseMap<Value, Value> before = {{value, Value()}};
  for (size_t i = 0; i < work.size(); ++i) {
    Value link = work[i];
    Operation *reader = nullptr;
    for (Operation *user : link.getUsers()) {
      if (user->hasTrait<OpTrait::IsTerminator>())
        continue;
      if (!isPrimal(view, user)) {
        reader = user;
        break;
      }
      for (Value result : user->getResults())
        if (before.try_emplace(result, link).second)
          work.push_back(result);
    }
    if (!reader && !view.isGiven(link))
      continue;
    SmallVector<Value> path;
    for (Value step = link; step; step = before.lookup(step))
      path.push_back(step);
    Operation *made = value.getDefiningOp();
    auto error = made->emitError()
                 << "the tags leave no partition: the backward needs the "
                    "result of '"
                 << made->getName()
                 << "', which may neither be saved nor be computed again";
    error.attachNote(made->getLoc())
        << "'" << made->getName()
        << "' may not be computed again: " << pins.whyKept(value);
    for (Value step : llvm::reverse(path)) {
      Operation *op = step.getDefiningOp();
      auto &note = error.attachNote(op->getLoc());
      note << "'" << op->getName() << "' ";
      if (step != value)
        note << (isa<ViewOpInterface>(op) ? "is a view of it" : "uses it");
      if (pins.mayNotSave(step))
        note << (step == value ? "" : ", and ")
             << "may not be saved: " << pins.whyUnsaved(step);
    }
    if (reader)
      error.attachNote(reader->getLoc())
          << "'" << reader->getName() << "' of the backward needs it";
    else
      error.attachNote(view.joint.getLoc()) << "the backward gives it";
    return false;
  }
  return true;
}

/// Checks that the tags leave a partition, and are none of what the backward
/// alone has. Reports everything that is wrong.
static LogicalResult checkTags(const JointView &view) {
  bool ok = true;
  for (Operation &op : view.joint.getOps()) {
    for (NamedAttribute attribute : op.getDiscardableAttrs())
      if (isTag(attribute.getName()) && !isPrimal(view, &op)) {
        op.emitOpError() << "exists in the backward alone, where '"
                         << attribute.getName().getValue() << "' says nothing";
        ok = false;
      }
    for (Value result : op.getResults())
      if (view.pins.mayNotRepeat(result) && view.pins.mayNotSave(result))
        ok &= isUnneeded(view, result);
  }
  return success(ok);
}

namespace {

struct CheckSaveTags : tandem::impl::CheckSaveTagsBase<CheckSaveTags> {
  void runOnOperation() final {
    FailureOr<Joints> joints = findJoints(getOperation());
    if (failed(joints) ||
        (joints->joint && failed(checkTags(JointView(joints->joint)))))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
