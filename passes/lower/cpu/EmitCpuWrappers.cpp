//===- EmitCpuWrappers.cpp - functions with the kernel ABI ----------------===//
//
// Of each distinct kernel there are two functions: `NAME.body`, whose
// parameters are the buffers, distinct and aligned, so that LLVM knows they do
// not overlap; and `NAME`, with the kernel ABI (docs/ARCHITECTURE.md, section
// 3), which loads the buffers and calls the body. That is not inlined: what is
// known of parameters would be lost. The kernel of a branch or a loop has the
// second one alone.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/lower/common/Kernels.h"
#include "passes/lower/cpu/FlowKernel.h"
#include "passes/lower/cpu/KernelFunction.h"
#include "passes/plan/InPlace.h"

#include "ir/KernelFunctions.h"
#include "ir/Signature.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

namespace tandem {
#define GEN_PASS_DEF_EMITCPUWRAPPERS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

namespace {
struct EmitCpuWrappers : tandem::impl::EmitCpuWrappersBase<EmitCpuWrappers> {
  void runOnOperation() final;

private:
  LogicalResult emit(KernelOp kernel, ModuleOp target, SymbolTable &symbols);
};
} // namespace

/// The function with the kernel ABI, without a body.
static LLVM::LLVMFuncOp declare(KernelOp kernel, ModuleOp target,
                                StringRef name, KernelFactsAttr facts) {
  MLIRContext *context = kernel.getContext();
  OpBuilder b = OpBuilder::atBlockEnd(target.getBody());
  Type pointer = LLVM::LLVMPointerType::get(context);
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(context),
      {pointer, b.getI64Type(), b.getI64Type(), pointer});
  auto func = LLVM::LLVMFuncOp::create(b, kernel.getLoc(), name, type);
  func->setAttr(kKernelAttr, facts);
  // The same for LLVM.
  if (facts.getScratchBytes())
    func.setArgAttr(3, LLVM::LLVMDialect::getDereferenceableAttrName(),
                    b.getI64IntegerAttr(facts.getScratchBytes()));
  return func;
}

/// Makes `func` call `body` with the buffers.
static void emitCall(KernelOp kernel, LLVM::LLVMFuncOp func,
                     LLVM::LLVMFuncOp body) {
  Location loc = kernel.getLoc();
  OpBuilder b(kernel.getContext());
  Type pointer = LLVM::LLVMPointerType::get(kernel.getContext());
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
  LLVM::CallOp::create(b, loc, body, arguments);
  LLVM::ReturnOp::create(b, loc, ValueRange{});
}

/// What the regions of a branch or a loop became, whose kernels have functions.
static FailureOr<SmallVector<lower::cpu::FlowSteps>>
flowSteps(KernelOp kernel, SymbolTable &symbols) {
  SmallVector<lower::cpu::FlowSteps> list;
  for (func::FuncOp region : regionFunctions(kernel)) {
    lower::cpu::FlowSteps &steps = list.emplace_back();
    steps.arenaBytes = planOf(region).getArenaBytes();
    for (auto inner : region.getOps<KernelOp>()) {
      StringRef name = kernelFunction(inner).getLeafReference();
      Operation *function = symbols.lookup(name);
      auto facts = function ? KernelFactsAttr::of(function) : KernelFactsAttr();
      auto buffers = lower::cpu::flowBuffersOf(inner);
      if (failed(buffers))
        return failure();
      if (!facts)
        return inner.emitOpError() << "expected a function '" << name
                                   << "' that says '" << kKernelAttr << "'";
      steps.steps.push_back(
          {name.str(), facts.getItems(), facts.getScratchBytes(), *buffers});
    }
  }
  return list;
}

/// One item: the kernels of the regions, one after the other.
static LogicalResult emitFlow(KernelOp kernel, ModuleOp target,
                              SymbolTable &symbols) {
  auto list = flowSteps(kernel, symbols);
  if (failed(list))
    return failure();
  LoweredFacts lowered;
  lowered.scratchBytes = lower::cpu::flowScratchBytes(kernel, *list);
  if (failed(checkPlannedScratch(kernel, lowered.scratchBytes)))
    return failure();
  LLVM::LLVMFuncOp func =
      declare(kernel, target, kernelFunction(kernel).getLeafReference(),
              describeKernel(kernel, lowered));
  symbols.insert(func);
  lower::cpu::emitFlow(kernel, *list, func);
  return success();
}

/// The function of a kernel whose code is there, without a body.
static LogicalResult declareCompiled(KernelOp kernel, ModuleOp target,
                                     const CompiledFacts &compiled,
                                     SymbolTable &symbols) {
  if (failed(checkPlannedScratch(kernel, compiled.scratchBytes)))
    return failure();
  LoweredFacts lowered;
  lowered.items = compiled.items;
  lowered.scratchBytes = compiled.scratchBytes;
  LLVM::LLVMFuncOp func =
      declare(kernel, target, kernelFunction(kernel).getLeafReference(),
              describeKernel(kernel, lowered));
  symbols.insert(func);
  func->setAttr(kGrainAttr,
                Builder(kernel.getContext()).getI64IntegerAttr(compiled.grain));
  func->setAttr(kCodeAttr, kernel->getAttr(kCodeAttr));
  setCompiledFacts(func, compiled);
  return success();
}

LogicalResult EmitCpuWrappers::emit(KernelOp kernel, ModuleOp target,
                                    SymbolTable &symbols) {
  ++wrappers;
  if (lower::cpu::flowOf(kernel))
    return emitFlow(kernel, target, symbols);
  StringRef name = kernelFunction(kernel).getLeafReference();
  if (auto compiled = compiledFacts(kernel))
    return declareCompiled(kernel, target, *compiled, symbols);
  auto body = symbols.lookup<LLVM::LLVMFuncOp>(lower::cpu::bodyName(name));
  KernelFactsAttr facts = body ? KernelFactsAttr::of(body) : KernelFactsAttr();
  if (!facts)
    return kernel.emitOpError()
           << "expected its code in the function '"
           << lower::cpu::bodyName(name) << "', with '" << kKernelAttr << "'";
  body.setLinkage(LLVM::Linkage::Internal);
  body.setNoInline(true);
  LLVM::LLVMFuncOp func = declare(kernel, target, name, facts);
  symbols.insert(func);
  func->setAttr(kGrainAttr, body->removeAttr(kGrainAttr));
  if (Attribute key = kernel->getAttr(kCodeAttr)) {
    func->setAttr(kCodeAttr, key);
    setCompiledFacts(
        func, {facts.getItems(), facts.getScratchBytes(), grainOf(func)});
  }
  body->removeAttr(kKernelAttr);
  emitCall(kernel, func, body);
  return success();
}

/// Puts the functions of all pieces into `target`, each that is only declared
/// (libm's) once.
static void joinPieces(ModuleOp target) {
  llvm::StringSet<> declared;
  SmallVector<ModuleOp> pieces(target.getOps<ModuleOp>());
  for (ModuleOp piece : pieces) {
    for (Operation &op : llvm::make_early_inc_range(*piece.getBody())) {
      auto func = dyn_cast<LLVM::LLVMFuncOp>(op);
      if (func && func.isExternal() && !declared.insert(func.getName()).second)
        continue;
      op.moveBefore(target.getBody(), target.getBody()->end());
    }
    piece.erase();
  }
}

void EmitCpuWrappers::runOnOperation() {
  ModuleOp module = getOperation();
  auto target = module.lookupSymbol<ModuleOp>("cpu");
  FailureOr<SmallVector<KernelOp>> kernels = distinctKernels(module);
  if (failed(kernels))
    return signalPassFailure();
  if (!target) {
    module.emitError() << "expected a module '@cpu' with the code of kernels";
    return signalPassFailure();
  }
  joinPieces(target);
  SymbolTable symbols(target);
  bool isBroken = false;
  for (KernelOp kernel : *kernels)
    isBroken |= failed(emit(kernel, target, symbols));
  if (isBroken)
    return signalPassFailure();
  // Their kernels are called, and are launched by no program.
  llvm::SetVector<Operation *> regions;
  module.walk([&](KernelOp kernel) {
    for (func::FuncOp region : regionFunctions(kernel))
      regions.insert(region);
  });
  module.walk([&](KernelOp kernel) { kernel->removeAttr(kRegionsAttr); });
  for (Operation *region : regions)
    region->erase();
}
