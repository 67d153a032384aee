//===- LowerToCpu.cpp - kernels become functions, programs launches -------===//
//
// One function per distinct kernel: equal regions (locations, names and places
// aside) share one. Each is written twice over: `NAME.body`, whose parameters
// are the buffers, distinct and aligned, so that LLVM knows they do not
// overlap; and `NAME`, with the kernel ABI (docs/ARCHITECTURE.md, section 3),
// which loads the buffers and calls the body. That is not inlined: what is
// known of parameters would be lost.
// The kernel of a branch or a loop has the second one alone: it calls the
// functions of the kernels of its regions.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/common/Phase.h"
#include "passes/lower/common/Kernels.h"
#include "passes/lower/cpu/FlowKernel.h"
#include "passes/lower/cpu/KernelFunction.h"
#include "passes/lower/cpu/ToLLVM.h"
#include "passes/plan/HostCopies.h"
#include "passes/plan/InPlace.h"

#include "ir/Signature.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

namespace tandem {
#define GEN_PASS_DEF_LOWERTOCPU
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

namespace {
struct Lowered {
  SymbolRefAttr symbol;
  Work work;
};

class LowerToCpu : public tandem::impl::LowerToCpuBase<LowerToCpu> {
public:
  LowerToCpu() = default;
  /// What a run finds out is not copied with the pass.
  LowerToCpu(const LowerToCpu &other) : LowerToCpuBase(other) {}

  void runOnOperation() override;

private:
  FailureOr<Lowered> lower(KernelOp kernel);
  FailureOr<Work> lowerRegions(KernelOp kernel, StringRef name);
  void emitWrapper(KernelOp kernel, StringRef name, const Work &work);

  ModuleOp target;
  /// The kernels that functions were made of, in that order.
  SmallVector<std::pair<KernelOp, Lowered>> distinct;
  /// The regions of branches and loops, as functions; and their kernels.
  SmallVector<func::FuncOp> regions;
  DenseMap<Operation *, SmallVector<lower::cpu::FlowSteps>> flows;
  DistinctKernels known;
  std::vector<FailureOr<Lowered>> made; ///< of each distinct kernel
  llvm::StringMap<int> namesUsed;
};
} // namespace

/// Lowers the kernels of the regions of a branch or a loop.
FailureOr<Work> LowerToCpu::lowerRegions(KernelOp kernel, StringRef name) {
  SmallVector<lower::cpu::FlowSteps> list;
  for (Region &region : lower::cpu::flowOf(kernel)->getRegions()) {
    auto func = lower::cpu::planRegion(
        getOperation(), region, (name + ".region" + Twine(list.size())).str());
    if (failed(func))
      return failure();
    regions.push_back(*func);
    lower::cpu::FlowSteps &steps = list.emplace_back();
    steps.arenaBytes = planOf(*func).getArenaBytes();
    for (auto inner : func->getOps<KernelOp>()) {
      FailureOr<Lowered> one = lower(inner);
      auto buffers = lower::cpu::flowBuffersOf(inner);
      if (failed(one) || failed(buffers))
        return failure();
      steps.steps.push_back({one->symbol.getLeafReference().str(),
                             one->work.items, one->work.scratchBytes,
                             *buffers});
    }
  }
  Work work;
  work.items = work.grain = 1;
  work.scratchBytes = lower::cpu::flowScratchBytes(kernel, list);
  flows[kernel] = std::move(list);
  return work;
}

/// The function with the kernel ABI around an already lowered body.
void LowerToCpu::emitWrapper(KernelOp kernel, StringRef name,
                             const Work &work) {
  Location loc = kernel.getLoc();
  MLIRContext *context = &getContext();
  OpBuilder b = OpBuilder::atBlockEnd(target.getBody());
  Type pointer = LLVM::LLVMPointerType::get(context);
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(context),
      {pointer, b.getI64Type(), b.getI64Type(), pointer});
  auto func = LLVM::LLVMFuncOp::create(b, loc, name, type);
  LoweredFacts lowered;
  lowered.items = work.items;
  lowered.scratchBytes = work.scratchBytes;
  func->setAttr(kKernelAttr, describeKernel(kernel, lowered));
  // The same for LLVM.
  if (work.scratchBytes)
    func.setArgAttr(3, LLVM::LLVMDialect::getDereferenceableAttrName(),
                    b.getI64IntegerAttr(work.scratchBytes));

  if (auto flow = flows.find(kernel); flow != flows.end())
    return lower::cpu::emitFlow(kernel, flow->second, func);
  auto bodyFunc =
      target.lookupSymbol<LLVM::LLVMFuncOp>(lower::cpu::bodyName(name));
  bodyFunc.setLinkage(LLVM::Linkage::Internal);
  bodyFunc.setNoInline(true);

  Block *entry = func.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  Value buffers = entry->getArgument(0);
  auto load = [&](unsigned i) -> Value {
    Value place =
        LLVM::GEPOp::create(b, loc, pointer, pointer, buffers,
                            ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    return LLVM::LoadOp::create(b, loc, pointer, place);
  };
  unsigned inputs = kernel->getNumOperands();
  SmallVector<Value> arguments;
  for (unsigned i = 0; i < inputs; ++i)
    arguments.push_back(load(i));
  for (auto [i, input] : llvm::enumerate(inPlaceInputs(kernel)))
    if (input < 0)
      arguments.push_back(load(inputs + i));
  arguments.append(
      {entry->getArgument(1), entry->getArgument(2), entry->getArgument(3)});
  LLVM::CallOp::create(b, loc, bodyFunc, arguments);
  LLVM::ReturnOp::create(b, loc, ValueRange{});
}

FailureOr<Lowered> LowerToCpu::lower(KernelOp kernel) {
  auto [number, isNew] = known.insert(kernel);
  if (!isNew)
    return made[number];
  made.emplace_back(failure());
  std::string name =
      (kernel.getName() + "_" + Twine(namesUsed[kernel.getName()]++)).str();
  FailureOr<Work> work = lower::cpu::flowOf(kernel)
                             ? lowerRegions(kernel, name)
                             : lower::cpu::emitKernelBody(target, kernel, name);
  if (failed(work) || failed(checkPlannedScratch(kernel, work->scratchBytes)))
    return failure();
  auto symbol = SymbolRefAttr::get(&getContext(), *target.getSymName(),
                                   FlatSymbolRefAttr::get(&getContext(), name));
  Lowered lowered{symbol, *work};
  made[number] = lowered;
  distinct.push_back({kernel, lowered});
  return lowered;
}

void LowerToCpu::runOnOperation() {
  ModuleOp module = getOperation();
  if (failed(expectPhase(module, "plan")))
    return signalPassFailure();
  known = {};
  made.clear();
  namesUsed.clear();
  distinct.clear();
  regions.clear();
  flows.clear();
  FailureOr<SmallVector<KernelOp>> kernels = plannedKernels(module);
  if (failed(kernels))
    return signalPassFailure();
  bool isForDevice = false;
  for (KernelOp kernel : *kernels)
    if (Operation *copy = hostCopyOf(kernel)) {
      copy->emitOpError()
          << "is of a device's program, but this is lowered for "
             "the host";
      isForDevice = true;
    }
  if (isForDevice)
    return signalPassFailure();
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  target = ModuleOp::create(b, module.getLoc(), "cpu");

  SmallVector<Lowered> lowered;
  bool broken = false;
  for (KernelOp kernel : *kernels) {
    FailureOr<Lowered> one = lower(kernel);
    broken |= failed(one);
    lowered.push_back(failed(one) ? Lowered() : *one);
  }
  if (broken)
    return signalPassFailure();

  OpPassManager pipeline(ModuleOp::getOperationName());
  lower::cpu::buildToLLVM(pipeline);
  if (failed(runPipeline(pipeline, target)))
    return signalPassFailure();
  for (auto &[kernel, one] : distinct)
    emitWrapper(kernel, one.symbol.getLeafReference(), one.work);

  for (func::FuncOp region : regions)
    region.erase();

  for (auto [kernel, one] : llvm::zip_equal(*kernels, lowered))
    replaceByLaunch(kernel, one.symbol, one.work.items,
                    std::max<int64_t>(one.work.grain, 1), /*grid=*/{});
  setPhase(module, "lower");
}
