//===- LowerToCuda.cpp - kernels become CUDA kernels, programs launches ---===//
//
// One kernel function per distinct kernel, in `gpu.module @cuda`, with the ABI
// of docs/ARCHITECTURE.md, section 3: a pointer for each buffer of the launch.
// A result that overwrites an input comes with a pointer of its own, which is
// not used: the code knows that both are one.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/common/Phase.h"
#include "passes/lower/common/Kernels.h"
#include "passes/lower/cuda/KernelFunction.h"
#include "passes/lower/cuda/ToNVVM.h"
#include "passes/plan/InPlace.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringMap.h"

namespace tandem {
#define GEN_PASS_DEF_LOWERTOCUDA
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;
using lower::cuda::LaunchShape;
using Lowered = lower::cuda::KernelFunction;

namespace {
class LowerToCuda : public tandem::impl::LowerToCudaBase<LowerToCuda> {
public:
  LowerToCuda() = default;
  /// What a run finds out is not copied with the pass.
  LowerToCuda(const LowerToCuda &other) : LowerToCudaBase(other) {}

  void runOnOperation() override;

private:
  FailureOr<Lowered> lower(KernelOp kernel);

  gpu::GPUModuleOp target;
  DistinctKernels known;
  std::vector<FailureOr<Lowered>> made; ///< of each distinct kernel
  llvm::StringMap<int> namesUsed;
};
} // namespace

/// What the kernel's function says to LLVM and to the runtime. Only now: the
/// conversion from gpu.func keeps no parameters by value.
static void describeFunction(LLVM::LLVMFuncOp func, const Lowered &lowered,
                             KernelFactsAttr about) {
  Builder b(func.getContext());
  auto bytes = LLVM::LLVMArrayType::get(b.getI8Type(), 128);
  for (size_t i = 0; i < lowered.tensorMaps.size(); ++i) {
    auto number = static_cast<unsigned>(lowered.buffers + i);
    func.setArgAttr(number, LLVM::LLVMDialect::getByValAttrName(),
                    TypeAttr::get(bytes));
    func.setArgAttr(number, NVVM::NVVMDialect::getGridConstantAttrName(),
                    b.getUnitAttr());
  }
  func->setAttr(kKernelAttr, about);
  if (lowered.shape.setsRegisters)
    func->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                  b.getI32IntegerAttr(1));
}

static int64_t itemsOf(const LaunchShape &shape) {
  return shape.grid[0] * shape.grid[1] * shape.grid[2];
}

FailureOr<Lowered> LowerToCuda::lower(KernelOp kernel) {
  auto [number, isNew] = known.insert(kernel);
  if (!isNew)
    return made[number];
  made.emplace_back(failure());
  Lowered lowered;
  lowered.name =
      (kernel.getName() + "_" + Twine(namesUsed[kernel.getName()]++)).str();
  if (failed(lower::cuda::emitKernelFunction(target, kernel, lowered)) ||
      failed(checkPlannedScratch(kernel, lowered.shape.scratchBytes)))
    return failure();
  made[number] = lowered;
  return lowered;
}

void LowerToCuda::runOnOperation() {
  ModuleOp module = getOperation();
  if (failed(expectPhase(module, "plan")))
    return signalPassFailure();
  known = {};
  made.clear();
  namesUsed.clear();
  FailureOr<SmallVector<KernelOp>> kernels = plannedKernels(module);
  if (failed(kernels))
    return signalPassFailure();
  replaceHostCopies(*kernels);
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  target = gpu::GPUModuleOp::create(b, module.getLoc(), "cuda");

  SmallVector<Lowered> lowered;
  llvm::StringMap<std::pair<Lowered, KernelFactsAttr>> about;
  bool broken = false;
  for (KernelOp kernel : *kernels) {
    FailureOr<Lowered> one = lower(kernel);
    broken |= failed(one);
    lowered.push_back(failed(one) ? Lowered() : *one);
    if (failed(one) || about.count(one->name))
      continue;
    SmallVector<Attribute> maps;
    for (const lower::cuda::TensorMap &map : one->tensorMaps)
      maps.push_back(map.describe(b));
    LoweredFacts facts;
    facts.items = itemsOf(one->shape);
    facts.scratchBytes = one->shape.scratchBytes;
    facts.blocks = one->shape.grid;
    facts.block = one->shape.block;
    facts.sharedBytes = one->sharedBytes;
    facts.tensorMaps = maps;
    about[one->name] = {*one, describeKernel(kernel, facts)};
  }
  if (broken)
    return signalPassFailure();

  OpPassManager pipeline(ModuleOp::getOperationName());
  lower::cuda::buildToNVVM(pipeline);
  if (failed(runPipeline(pipeline, module)))
    return signalPassFailure();
  for (auto func : target.getOps<LLVM::LLVMFuncOp>())
    if (auto it = about.find(func.getSymName()); it != about.end())
      describeFunction(func, it->second.first, it->second.second);

  for (auto [kernel, one] : llvm::zip_equal(*kernels, lowered)) {
    auto symbol =
        SymbolRefAttr::get(&getContext(), target.getName(),
                           FlatSymbolRefAttr::get(&getContext(), one.name));
    replaceByLaunch(kernel, symbol, itemsOf(one.shape), 1,
                    b.getDenseI64ArrayAttr(one.shape.grid));
  }
  setPhase(module, "lower");
}
