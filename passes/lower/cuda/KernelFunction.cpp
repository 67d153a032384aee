//===- KernelFunction.cpp - the function around a kernel's code -----------===//
#include "passes/lower/cuda/KernelFunction.h"
#include "passes/lower/common/Kernels.h"
#include "passes/plan/Collectives.h"
#include "passes/plan/InPlace.h"

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
using lower::cuda::LaunchShape;

namespace {
/// The function of a kernel, whose body is to be written.
struct Opened {
  gpu::GPUFuncOp func;
  KernelBody body;
};
} // namespace

/// Makes the function at the end of `target`; its code goes to the builder.
static Opened open(gpu::GPUModuleOp target, KernelOp kernel, StringRef name,
                   OpBuilder &b) {
  Location loc = kernel.getLoc();
  b.setInsertionPointToEnd(target.getBody());
  SmallVector<int64_t> overwrites = inPlaceInputs(kernel);
  SmallVector<Type> types;
  for (Type type : kernel->getOperandTypes())
    types.push_back(memrefOf(type));
  for (Type type : kernel->getResultTypes())
    types.push_back(memrefOf(type));
  auto func =
      gpu::GPUFuncOp::create(b, loc, name, b.getFunctionType(types, {}));
  func->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  unsigned inputs = kernel->getNumOperands();
  for (unsigned i = 0; i < types.size(); ++i) {
    bool isWritten =
        i >= inputs || llvm::is_contained(overwrites, static_cast<int64_t>(i));
    func.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                    b.getI64IntegerAttr(64));
    // What is overwritten in place is no longer read through its own pointer.
    func.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                    b.getUnitAttr());
    if (!isWritten)
      func.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(),
                      b.getUnitAttr());
  }
  Block &entry = func.getBody().front();
  b.setInsertionPointToEnd(&entry);
  auto end = gpu::ReturnOp::create(b, loc);
  b.setInsertionPoint(end);

  Opened opened{func, {}};
  for (unsigned i = 0; i < inputs; ++i)
    opened.body.inputs.push_back(entry.getArgument(i));
  for (auto [i, input] : llvm::enumerate(overwrites))
    opened.body.outputs.push_back(entry.getArgument(
        input < 0 ? inputs + i : static_cast<unsigned>(input)));
  return opened;
}

LogicalResult lower::cuda::emitKernelFunction(gpu::GPUModuleOp target,
                                              KernelOp kernel,
                                              KernelFunction &lowered) {
  OpBuilder b(kernel.getContext());
  auto [func, body] = open(target, kernel, lowered.name, b);
  lower::cuda::ThreadCode code(b, kernel.getLoc(),
                               lower::cuda::CudaTarget::of(kernel));
  FailureOr<LaunchShape> shape =
      isLoopKernel(kernel) ? lower::cuda::emitLoops(kernel, code, body)
                           : lower::cuda::emitAnchor(kernel, code, body);
  if (failed(shape))
    return failure();
  lowered.shape = *shape;
  lowered.sharedBytes = code.sharedBytes();
  lowered.buffers =
      static_cast<int64_t>(kernel->getNumOperands() + kernel->getNumResults());
  llvm::append_range(lowered.tensorMaps, code.tensorMaps());
  if (lowered.sharedBytes > code.target.sharedBytes())
    return kernel->emitError()
           << "kernel '" << kernel.getName() << "' needs "
           << lowered.sharedBytes << " bytes of shared memory, but 'sm_"
           << code.target.sm << "' has " << code.target.sharedBytes();
  func.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr(llvm::map_to_vector<3>(
      shape->block, [](int64_t n) { return static_cast<int32_t>(n); })));
  // Known ranges make divisions of indices ones of 32 bits.
  auto bound = [&](auto id, ArrayRef<int64_t> sizes) {
    id.setUpperBoundAttr(
        b.getIndexAttr(sizes[static_cast<size_t>(id.getDimension())]));
  };
  func.walk([&](gpu::ThreadIdOp id) { bound(id, shape->block); });
  func.walk([&](gpu::BlockIdOp id) { bound(id, shape->grid); });
  return success();
}

bool lower::cuda::hasMethods(KernelOp kernel) { return !standsAlone(kernel); }

FailureOr<ChosenMethod>
lower::cuda::chooseAlone(KernelOp kernel, const MethodQuestion &question) {
  OpBuilder b =
      OpBuilder::atBlockEnd(kernel->getParentOfType<ModuleOp>().getBody());
  auto target = gpu::GPUModuleOp::create(b, kernel.getLoc(), "cuda");
  Opened opened = open(target, kernel, "choice", b);
  ThreadCode code(b, kernel.getLoc(), CudaTarget::of(kernel));
  return isLoopKernel(kernel)
             ? chooseLoops(kernel, code, opened.body, question)
             : chooseAnchor(kernel, code, opened.body, question);
}

void lower::cuda::loadDialectsOfCode(MLIRContext *context) {
  context->loadDialect<affine::AffineDialect, arith::ArithDialect,
                       cf::ControlFlowDialect, gpu::GPUDialect,
                       index::IndexDialect, LLVM::LLVMDialect,
                       math::MathDialect, memref::MemRefDialect,
                       NVVM::NVVMDialect, nvgpu::NVGPUDialect, scf::SCFDialect,
                       ub::UBDialect, vector::VectorDialect>();
}
