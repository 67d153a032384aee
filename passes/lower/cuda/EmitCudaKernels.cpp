//===- EmitCudaKernels.cpp - the code of each distinct kernel -------------===//
//
// One kernel function per distinct kernel, in `gpu.module @cuda`, with the ABI
// of docs/ARCHITECTURE.md, section 3: a pointer for each buffer of the launch.
// A result that overwrites an input comes with a pointer of its own, which is
// not used: the code knows that both are one.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/lower/common/CodeDialects.h"
#include "passes/lower/common/Kernels.h"
#include "passes/lower/cuda/KernelFunction.h"

#include "ir/KernelFunctions.h"

namespace tandem {
#define GEN_PASS_DEF_EMITCUDAKERNELS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

namespace {
struct EmitCudaKernels : tandem::impl::EmitCudaKernelsBase<EmitCudaKernels> {
  void runOnOperation() final;
};
} // namespace

/// What the function says of itself to later passes and to the runtime.
static KernelFactsAttr factsOf(KernelOp kernel,
                               const lower::cuda::KernelFunction &made) {
  Builder b(kernel.getContext());
  SmallVector<Attribute> maps;
  for (const lower::cuda::TensorMap &map : made.tensorMaps)
    maps.push_back(map.describe(b));
  const auto &grid = made.shape.grid;
  LoweredFacts facts;
  facts.items = grid[0] * grid[1] * grid[2];
  facts.scratchBytes = made.shape.scratchBytes;
  facts.blocks = grid;
  facts.block = made.shape.block;
  facts.sharedBytes = made.sharedBytes;
  facts.tensorMaps = maps;
  return describeKernel(kernel, facts);
}

/// The function of a kernel whose code is there, without a body.
static LogicalResult declareCompiled(gpu::GPUModuleOp target, KernelOp kernel,
                                     KernelFactsAttr compiled) {
  if (failed(checkPlannedScratch(kernel, compiled.getScratchBytes())))
    return failure();
  auto sizes = [](DenseI64ArrayAttr list) {
    return list ? list.asArrayRef() : ArrayRef<int64_t>();
  };
  LoweredFacts facts;
  facts.items = compiled.getItems();
  facts.scratchBytes = compiled.getScratchBytes();
  facts.blocks = sizes(compiled.getBlocks());
  facts.block = sizes(compiled.getBlock());
  facts.sharedBytes = compiled.getSharedBytes();
  if (ArrayAttr maps = compiled.getTensorMaps())
    facts.tensorMaps = maps.getValue();
  OpBuilder b = OpBuilder::atBlockEnd(target.getBody());
  // Buffers, tensor maps and scratch, as the code's own function has them.
  SmallVector<Type> parameters(
      kernel->getNumOperands() + kernel->getNumResults() +
          facts.tensorMaps.size() + (facts.scratchBytes != 0),
      LLVM::LLVMPointerType::get(b.getContext()));
  auto function = LLVM::LLVMFuncOp::create(
      b, kernel.getLoc(), kernelFunction(kernel).getLeafReference(),
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  parameters));
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    b.getUnitAttr());
  function->setAttr(kKernelAttr, describeKernel(kernel, facts));
  function->setAttr(kCodeAttr, kernel->getAttr(kCodeAttr));
  return success();
}

static LogicalResult emit(gpu::GPUModuleOp target, KernelOp kernel) {
  if (auto compiled = kernel->getAttrOfType<KernelFactsAttr>(kCompiledAttr))
    return declareCompiled(target, kernel, compiled);
  lower::cuda::KernelFunction made;
  made.name = kernelFunction(kernel).getLeafReference().str();
  if (failed(lower::cuda::emitKernelFunction(target, kernel, made)) ||
      failed(checkPlannedScratch(kernel, made.shape.scratchBytes)))
    return failure();
  Operation *function = target.lookupSymbol(made.name);
  function->setAttr(kKernelAttr, factsOf(kernel, made));
  if (Attribute key = kernel->getAttr(kCodeAttr))
    function->setAttr(kCodeAttr, key);
  if (made.shape.blocksAtOnce)
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      Builder(kernel.getContext())
                          .getI32IntegerAttr(*made.shape.blocksAtOnce));
  return success();
}

void EmitCudaKernels::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<SmallVector<KernelOp>> kernels = distinctKernels(module);
  if (failed(kernels) || failed(checkSharedFunctions(module)))
    return signalPassFailure();
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  auto target = gpu::GPUModuleOp::create(b, module.getLoc(), "cuda");
  bool isBroken = false;
  for (KernelOp kernel : *kernels) {
    isBroken |= failed(emit(target, kernel));
    ++emitted;
  }
  if (isBroken)
    signalPassFailure();
}
