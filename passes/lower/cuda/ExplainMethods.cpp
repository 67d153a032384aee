//===- ExplainMethods.cpp - what CUDA's tables say of a kernel ------------===//
#include "passes/lower/cuda/ExplainMethods.h"
#include "passes/lower/cuda/KernelFunction.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

static FailureOr<ChosenMethod> chooseTrial(KernelOp kernel,
                                           const MethodQuestion &question) {
  lower::cuda::loadDialectsOfCode(kernel.getContext());
  return lower::cuda::chooseAlone(kernel, question);
}

std::optional<ExplainedKernel> lower::cuda::explainMethods(KernelOp kernel) {
  if (!hasMethods(kernel))
    return std::nullopt;
  return lower::explainMethods(kernel, chooseTrial);
}
