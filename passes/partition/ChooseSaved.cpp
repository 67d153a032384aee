//===- ChooseSaved.cpp - what crosses from forward to backward ------------===//
#include "passes/Passes.h"
#include "passes/partition/Joints.h"
#include "passes/partition/SavedMarks.h"
#include "passes/partition/SecondOrder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tandem {
#define GEN_PASS_DEF_CHOOSESAVED
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

struct ChooseSaved : tandem::impl::ChooseSavedBase<ChooseSaved> {
  using ChooseSavedBase::ChooseSavedBase;

  void runOnOperation() final {
    if (failed(checkPartitionKind(getOperation(), kind)))
      return signalPassFailure();
    FailureOr<Joints> joints = findJoints(getOperation());
    if (failed(joints))
      return signalPassFailure();
    if (!joints->joint)
      return markAllAnalysesPreserved();
    JointView first(joints->joint);
    choose(first);
    if (joints->gradJoint)
      choose(viewOfGradJoint(first, joints->gradJoint));
  }

  void choose(const JointView &view) {
    if (isChosen(view.joint))
      return;
    SavedValues values;
    if (!view.backwardResults.empty())
      values = kind == "default" ? saveWhatBackwardUses(view)
                                 : saveSmallestCut(view);
    markSaved(view.joint, values, kind);
    saved += values.size();
  }
};

} // namespace

LogicalResult tandem::checkPartitionKind(ModuleOp module, StringRef kind) {
  if (kind == "default" || kind == "min-cut")
    return success();
  return module.emitError()
         << "expected partition 'default' or 'min-cut' but got '" << kind
         << "'";
}
