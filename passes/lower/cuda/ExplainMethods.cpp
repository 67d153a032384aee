//===- ExplainMethods.cpp - what CUDA's tables say of a kernel ------------===//
#include "passes/lower/cuda/ExplainMethods.h"
#include "passes/lower/cuda/KernelFunction.h"
#include "passes/plan/HostCopies.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

static FailureOr<MethodCut> emitTrial(KernelOp kernel, MethodLog *log) {
  kernel.getContext()
      ->loadDialect<affine::AffineDialect, arith::ArithDialect,
                    cf::ControlFlowDialect, gpu::GPUDialect,
                    index::IndexDialect, LLVM::LLVMDialect, math::MathDialect,
                    memref::MemRefDialect, NVVM::NVVMDialect,
                    nvgpu::NVGPUDialect, scf::SCFDialect, ub::UBDialect,
                    vector::VectorDialect>();
  auto around = kernel->getParentOfType<ModuleOp>();
  OpBuilder b = OpBuilder::atBlockEnd(around.getBody());
  auto target = gpu::GPUModuleOp::create(b, kernel.getLoc(), "cuda");
  lower::cuda::KernelFunction made;
  made.name = "trial";
  if (failed(lower::cuda::emitKernelFunction(target, kernel, made, log)))
    return failure();
  const auto &grid = made.shape.grid;
  return MethodCut{grid[0] * grid[1] * grid[2], made.shape.scratchBytes,
                   made.sharedBytes};
}

std::optional<ExplainedKernel> lower::cuda::explainMethods(KernelOp kernel) {
  if (hostCopyOf(kernel))
    return std::nullopt;
  return lower::explainMethods(kernel, emitTrial);
}
