//===- EmitCpuKernels.cpp - the code of each distinct kernel --------------===//
#include "passes/Passes.h"
#include "passes/lower/common/CodeDialects.h"
#include "passes/lower/common/Kernels.h"
#include "passes/lower/cpu/FlowKernel.h"
#include "passes/lower/cpu/KernelFunction.h"
#include "passes/plan/HostCopies.h"

#include "ir/KernelFunctions.h"

namespace tandem {
#define GEN_PASS_DEF_EMITCPUKERNELS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

/// Kernels in one piece of the code. Pieces are modules of their own until they
/// are of LLVM's dialect, so that threads convert several at a time; which
/// kernel is in which depends on nothing else.
static constexpr unsigned kPiece = 8;

namespace {
struct EmitCpuKernels : tandem::impl::EmitCpuKernelsBase<EmitCpuKernels> {
  void runOnOperation() final;
};
} // namespace

/// Writes the kernel's code in `target`, and says of the function what `Work`
/// says.
static LogicalResult emit(ModuleOp target, KernelOp kernel) {
  if (Operation *copy = hostCopyOf(kernel))
    return copy->emitOpError() << "is of a device's program, but this is "
                                  "lowered for the host";
  StringRef name = kernelFunction(kernel).getLeafReference();
  FailureOr<Work> work = lower::cpu::emitKernelBody(target, kernel, name);
  if (failed(work) || failed(checkPlannedScratch(kernel, work->scratchBytes)))
    return failure();
  LoweredFacts facts;
  facts.items = work->items;
  facts.scratchBytes = work->scratchBytes;
  Operation *function = target.lookupSymbol(lower::cpu::bodyName(name));
  function->setAttr(kKernelAttr, describeKernel(kernel, facts));
  function->setAttr(kGrainAttr,
                    Builder(kernel.getContext())
                        .getI64IntegerAttr(std::max<int64_t>(work->grain, 1)));
  return success();
}

void EmitCpuKernels::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<SmallVector<KernelOp>> kernels = distinctKernels(module);
  if (failed(kernels) || failed(checkSharedFunctions(module)))
    return signalPassFailure();
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  auto target = ModuleOp::create(b, module.getLoc(), "cpu");
  bool isBroken = false;
  ModuleOp piece;
  unsigned inPiece = 0;
  for (KernelOp kernel : *kernels) {
    if (lower::cpu::flowOf(kernel))
      continue; // It calls the functions of its regions' kernels.
    if (compiledFacts(kernel))
      continue;
    if (inPiece++ % kPiece == 0) {
      b.setInsertionPointToEnd(target.getBody());
      piece = ModuleOp::create(b, module.getLoc());
    }
    isBroken |= failed(emit(piece, kernel));
    ++emitted;
  }
  if (isBroken)
    signalPassFailure();
}
