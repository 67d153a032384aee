//===- ExplainMethods.cpp - what a CPU's tables say of a kernel -----------===//
#include "passes/lower/cpu/ExplainMethods.h"
#include "passes/lower/cpu/KernelFunction.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

static FailureOr<ChosenMethod> chooseTrial(KernelOp kernel,
                                           const MethodQuestion &question) {
  lower::cpu::loadDialectsOfCode(kernel.getContext());
  return lower::cpu::chooseAlone(kernel, question);
}

std::optional<ExplainedKernel> lower::cpu::explainMethods(KernelOp kernel) {
  if (!hasMethods(kernel))
    return std::nullopt;
  return lower::explainMethods(kernel, chooseTrial);
}

MethodLog lower::cpu::considerMethods(KernelOp kernel) {
  if (!hasMethods(kernel))
    return {};
  return lower::considerMethods(kernel, chooseTrial);
}

ScheduleAttr lower::cpu::scheduleFor(KernelOp kernel,
                                     const ScheduleOverride &wish) {
  if (!hasMethods(kernel))
    return {};
  return lower::scheduleFor(kernel, wish, chooseTrial);
}
