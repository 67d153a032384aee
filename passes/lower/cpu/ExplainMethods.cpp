//===- ExplainMethods.cpp - what a CPU's tables say of a kernel -----------===//
#include "passes/lower/cpu/ExplainMethods.h"
#include "passes/lower/cpu/KernelFunction.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

static FailureOr<MethodCut> emitTrial(KernelOp kernel) {
  lower::cpu::loadDialectsOfCode(kernel.getContext());
  auto around = kernel->getParentOfType<ModuleOp>();
  OpBuilder b = OpBuilder::atBlockEnd(around.getBody());
  auto target = ModuleOp::create(b, kernel.getLoc(), "cpu");
  FailureOr<Work> work = lower::cpu::emitKernelBody(target, kernel, "trial");
  if (failed(work))
    return failure();
  return MethodCut{work->items, work->scratchBytes, 0};
}

static FailureOr<ChosenMethod> chooseTrial(KernelOp kernel, MethodLog *log) {
  lower::cpu::loadDialectsOfCode(kernel.getContext());
  return lower::cpu::chooseAlone(kernel, log);
}

std::optional<ExplainedKernel> lower::cpu::explainMethods(KernelOp kernel) {
  if (!hasMethods(kernel))
    return std::nullopt;
  return lower::explainMethods(kernel, chooseTrial, emitTrial);
}

MethodLog lower::cpu::considerMethods(KernelOp kernel) {
  if (!hasMethods(kernel))
    return {};
  return lower::considerMethods(kernel, chooseTrial);
}
