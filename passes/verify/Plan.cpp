//===- Plan.cpp - what holds of planned and lowered programs --------------===//
#include "passes/PhaseVerifiers.h"
#include "passes/plan/PlanMemory.h"
#include "passes/plan/PlannedSteps.h"
#include "passes/plan/StepMemory.h"
#include "passes/verify/PhaseVerifier.h"

#include "ir/Report.h"

using namespace mlir;
using namespace tandem;

/// The memory of a step follows from the programs.
static LogicalResult checkStepMemory(ModuleOp module) {
  Attribute own = module->getAttr(kStepMemoryAttr),
            expected = describeStepMemory(module);
  if (!own || own == expected)
    return success();
  return module.emitError() << "expected '" << kStepMemoryAttr << "' to be "
                            << expected << ", but got " << own;
}

static LogicalResult verify(ModuleOp module, StringRef phase,
                            llvm::function_ref<bool(func::FuncOp)> isRight) {
  if (failed(verifyPrograms(module, phase)))
    return failure();
  bool areRight = true;
  for (auto func : module.getOps<func::FuncOp>())
    areRight &= isRight(func);
  if (!areRight)
    return failure();
  return checkStepMemory(module);
}

LogicalResult tandem::verifyPlan(ModuleOp module) {
  return verify(module, "plan", [](func::FuncOp func) {
    InPlacePairs pairs;
    return succeeded(checkPlan(func, &pairs));
  });
}

LogicalResult tandem::verifyLower(ModuleOp module) {
  SymbolTableCollection symbols;
  return verify(module, "lower", [&](func::FuncOp func) {
    bool isRight = true;
    func.walk([&](LaunchOp launch) {
      isRight &= succeeded(checkLaunch(launch, symbols));
    });
    return isRight && succeeded(checkPlan(func, nullptr));
  });
}
