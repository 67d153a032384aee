//===- ReportPlan.cpp - what the plan comes to ----------------------------===//
#include "ir/Report.h"
#include "ir/Signature.h"
#include "passes/Passes.h"
#include "passes/plan/StepMemory.h"

#include "ir/Ops.h"

namespace tandem {
#define GEN_PASS_DEF_REPORTPLAN
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

static void remarkOn(func::FuncOp func) {
  PlanAttr plan = planOf(func);
  func.emitRemark() << llvm::range_size(func.getOps<KernelOp>())
                    << " kernels; arena " << plan.getArenaBytes()
                    << " bytes, at least " << plan.getLowerBoundBytes()
                    << " are live at once";
  for (auto kernel : func.getOps<KernelOp>())
    if (InPlaceAttr pairs = kernel.getInPlaceAttr())
      kernel.emitRemark() << "'" << kernel.getName() << "' overwrites "
                          << pairs.getPairs().size() << " of its inputs";
}

namespace {
struct ReportPlan : tandem::impl::ReportPlanBase<ReportPlan> {
  using ReportPlanBase::ReportPlanBase;
  void runOnOperation() final {
    ModuleOp module = getOperation();
    if (remarks)
      for (auto func : module.getOps<func::FuncOp>())
        remarkOn(func);
    module->setAttr(kStepMemoryAttr, describeStepMemory(module));
  }
};
} // namespace
