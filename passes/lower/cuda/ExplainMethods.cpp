//===- ExplainMethods.cpp - what CUDA's tables say of a kernel ------------===//
#include "passes/lower/cuda/ExplainMethods.h"
#include "passes/lower/cuda/KernelFunction.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

static FailureOr<MethodCut> emitTrial(KernelOp kernel) {
  lower::cuda::loadDialectsOfCode(kernel.getContext());
  auto around = kernel->getParentOfType<ModuleOp>();
  OpBuilder b = OpBuilder::atBlockEnd(around.getBody());
  auto target = gpu::GPUModuleOp::create(b, kernel.getLoc(), "cuda");
  lower::cuda::KernelFunction made;
  made.name = "trial";
  if (failed(lower::cuda::emitKernelFunction(target, kernel, made)))
    return failure();
  const auto &grid = made.shape.grid;
  return MethodCut{grid[0] * grid[1] * grid[2], made.shape.scratchBytes,
                   made.sharedBytes};
}

static FailureOr<ChosenMethod> chooseTrial(KernelOp kernel, MethodLog *log) {
  lower::cuda::loadDialectsOfCode(kernel.getContext());
  return lower::cuda::chooseAlone(kernel, log);
}

std::optional<ExplainedKernel> lower::cuda::explainMethods(KernelOp kernel) {
  if (!hasMethods(kernel))
    return std::nullopt;
  return lower::explainMethods(kernel, chooseTrial, emitTrial);
}
