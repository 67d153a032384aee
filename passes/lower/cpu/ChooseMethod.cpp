//===- ChooseMethod.cpp - the method of a kernel that is being planned ----===//
#include "passes/lower/cpu/ChooseMethod.h"
#include "passes/lower/common/Trial.h"
#include "passes/lower/cpu/FlowKernel.h"
#include "passes/lower/cpu/KernelFunction.h"

#include "ir/Signature.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

/// The regions are planned in the trial's module, as they are when they are
/// lowered.
static FailureOr<int64_t> scratchOfFlow(KernelOp kernel) {
  Trial trial(kernel);
  SmallVector<lower::cpu::FlowSteps> list;
  for (Region &region : lower::cpu::flowOf(trial.kernel)->getRegions()) {
    FailureOr<func::FuncOp> func = lower::cpu::planRegion(
        *trial.module, region, ("region" + Twine(list.size())).str());
    if (failed(func))
      return failure();
    lower::cpu::FlowSteps &steps = list.emplace_back();
    steps.arenaBytes = planOf(*func).getArenaBytes();
    for (auto inner : func->getOps<KernelOp>())
      steps.steps.emplace_back().scratchBytes =
          static_cast<int64_t>(inner.getScratchBytes().value_or(0));
  }
  return lower::cpu::flowScratchBytes(trial.kernel, list);
}

FailureOr<ChosenMethod> lower::cpu::chooseMethodOf(KernelOp kernel) {
  ChosenMethod chosen;
  if (flowOf(kernel)) {
    FailureOr<int64_t> bytes = scratchOfFlow(kernel);
    if (failed(bytes))
      return failure();
    chosen.scratchBytes = *bytes;
    return chosen;
  }
  if (!hasMethods(kernel))
    return chosen;
  Trial trial(kernel);
  return chooseAlone(trial.kernel, MethodQuestion());
}
