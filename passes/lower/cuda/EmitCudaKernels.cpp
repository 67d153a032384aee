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

static LogicalResult emit(gpu::GPUModuleOp target, KernelOp kernel) {
  lower::cuda::KernelFunction made;
  made.name = kernelFunction(kernel).getLeafReference().str();
  if (failed(lower::cuda::emitKernelFunction(target, kernel, made)) ||
      failed(checkPlannedScratch(kernel, made.shape.scratchBytes)))
    return failure();
  Operation *function = target.lookupSymbol(made.name);
  function->setAttr(kKernelAttr, factsOf(kernel, made));
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
