//===- PhaseBounds.cpp - where phases begin and end -----------------------===//
#include "passes/Passes.h"
#include "passes/common/Phase.h"
#include "passes/verify/PhaseVerifiers.h"

namespace tandem {
#define GEN_PASS_DEF_ENTERPHASE
#define GEN_PASS_DEF_LEAVEPHASE
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

struct EnterPhase : tandem::impl::EnterPhaseBase<EnterPhase> {
  using EnterPhaseBase::EnterPhaseBase;
  void runOnOperation() final {
    ModuleOp module = getOperation();
    // Where programs stand for themselves, there may be some of them alone.
    if (failed(expectPhase(module, after)) ||
        failed(after == "partition" ? checkHandedValues(module)
                                    : verifyAfter(module, after)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

struct LeavePhase : tandem::impl::LeavePhaseBase<LeavePhase> {
  using LeavePhaseBase::LeavePhaseBase;
  void runOnOperation() final {
    if (failed(leavePhase(getOperation(), phase)))
      signalPassFailure();
  }
};

} // namespace
