//===- ChooseMethod.cpp - the method of a kernel that is being planned ----===//
#include "passes/lower/cuda/ChooseMethod.h"
#include "passes/lower/common/Trial.h"
#include "passes/lower/cuda/KernelFunction.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

FailureOr<ChosenMethod> lower::cuda::chooseMethodOf(KernelOp kernel) {
  if (!hasMethods(kernel))
    return ChosenMethod();
  Trial trial(kernel);
  return chooseAlone(trial.kernel, MethodQuestion());
}
