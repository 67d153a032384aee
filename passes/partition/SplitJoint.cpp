//===- SplitJoint.cpp - the joint becomes programs ------------------------===//
//
// @forward and @backward from @joint, @grad_forward and @grad_backward from
// @grad_joint, along the values that are marked as saved. Nothing is merged
// from here on: equal ops are a value that is computed again on purpose.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/partition/Joints.h"
#include "passes/partition/SavedMarks.h"
#include "passes/partition/SecondOrder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace tandem {
#define GEN_PASS_DEF_SPLITJOINT
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

struct SplitJoint : tandem::impl::SplitJointBase<SplitJoint> {
  void runOnOperation() final {
    FailureOr<Joints> joints = findJoints(getOperation());
    if (failed(joints))
      return signalPassFailure();
    if (!joints->joint)
      return markAllAnalysesPreserved();
    if (failed(checkNames()))
      return signalPassFailure();
    JointView view(joints->joint);
    FailureOr<SavedValues> marked = markedValues(view);
    if (failed(marked))
      return signalPassFailure();
    // What the forward keeps, also for a backward that is differentiated.
    SavedValues kept = *marked;
    std::optional<SecondOrder> second;
    if (joints->gradJoint) {
      JointView gradView = viewOfGradJoint(view, joints->gradJoint);
      FailureOr<SavedValues> gradMarked = markedValues(gradView);
      if (failed(gradMarked))
        return signalPassFailure();
      second.emplace(view, std::move(gradView), std::move(*gradMarked), kept);
    }
    SavedNames names(joints->joint, kept);
    buildForward(view, kept, names);
    if (!view.backwardResults.empty())
      buildBackward(view, *marked, names);
    if (second) {
      second->build(names);
      joints->gradJoint.erase();
    }
    saved += kept.size();
    joints->joint.erase();
  }

  /// The programs are not there yet.
  LogicalResult checkNames() {
    bool isFree = true;
    for (StringRef name :
         {"forward", "backward", "grad_forward", "grad_backward"})
      if (Operation *other = getOperation().lookupSymbol(name)) {
        other->emitError() << "expected no '" << name
                           << "' in a module whose joint is divided";
        isFree = false;
      }
    return success(isFree);
  }
};

} // namespace
