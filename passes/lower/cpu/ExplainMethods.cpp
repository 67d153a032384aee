//===- ExplainMethods.cpp - what a CPU's tables say of a kernel -----------===//
#include "passes/lower/cpu/ExplainMethods.h"
#include "passes/lower/cpu/FlowKernel.h"
#include "passes/lower/cpu/KernelFunction.h"
#include "passes/plan/HostCopies.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

static FailureOr<MethodCut> emitTrial(KernelOp kernel, MethodLog *log) {
  kernel.getContext()
      ->loadDialect<affine::AffineDialect, arith::ArithDialect,
                    func::FuncDialect, index::IndexDialect, LLVM::LLVMDialect,
                    math::MathDialect, memref::MemRefDialect, scf::SCFDialect,
                    ub::UBDialect, vector::VectorDialect>();
  auto around = kernel->getParentOfType<ModuleOp>();
  OpBuilder b = OpBuilder::atBlockEnd(around.getBody());
  auto target = ModuleOp::create(b, kernel.getLoc(), "cpu");
  FailureOr<Work> work =
      lower::cpu::emitKernelBody(target, kernel, "trial", log);
  if (failed(work))
    return failure();
  return MethodCut{work->items, work->scratchBytes, 0};
}

static bool hasMethods(KernelOp kernel) {
  return !lower::cpu::flowOf(kernel) && !hostCopyOf(kernel);
}

std::optional<ExplainedKernel> lower::cpu::explainMethods(KernelOp kernel) {
  if (!hasMethods(kernel))
    return std::nullopt;
  return lower::explainMethods(kernel, emitTrial);
}

MethodLog lower::cpu::considerMethods(KernelOp kernel) {
  if (!hasMethods(kernel))
    return {};
  return lower::considerMethods(kernel, emitTrial);
}
