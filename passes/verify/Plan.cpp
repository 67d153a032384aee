//===- Plan.cpp - what holds of planned and lowered programs --------------===//
#include "passes/plan/PlanMemory.h"
#include "passes/plan/PlannedSteps.h"
#include "passes/plan/StepMemory.h"
#include "passes/verify/PhaseVerifier.h"
#include "passes/verify/PhaseVerifiers.h"

#include "ir/Keys.h"
#include "ir/Report.h"

using namespace mlir;
using namespace tandem;

static DictionaryAttr withoutScratch(DictionaryAttr memory) {
  NamedAttrList list(memory);
  list.erase(key::kScratch);
  return list.getDictionary(memory.getContext());
}

/// The memory of a step follows from the programs. Where an edit has left it to
/// the compiler what scratch a kernel takes, so is the step's.
static LogicalResult checkStepMemory(ModuleOp module) {
  auto own = module->getAttrOfType<DictionaryAttr>(kStepMemoryAttr);
  DictionaryAttr expected = describeStepMemory(module);
  if (own && lacksScratch(module)) {
    own = withoutScratch(own);
    expected = withoutScratch(expected);
  }
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
