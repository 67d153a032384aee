//===- Trials.cpp - variants of a kernel, compiled ------------------------===//
#include "compiler/tune/Trials.h"
#include "compiler/emit/ManifestParts.h"
#include "compiler/emit/ObjectCode.h"
#include "passes/lower/common/Kernels.h"
#include "passes/pipelines/Pipelines.h"
#include "passes/plan/InPlace.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tandem;

/// A planned module with one program, which runs the kernel with each of the
/// schedules.
static OwningOpRef<ModuleOp> moduleOf(KernelOp kernel,
                                      ArrayRef<ScheduleAttr> schedules) {
  Location loc = kernel.getLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc, "trials");
  auto whole = kernel->getParentOfType<ModuleOp>();
  OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
  (*module)->setAttr(kPhaseAttr, b.getStringAttr("plan"));
  if (Attribute target = whole->getAttr(kTargetAttr))
    (*module)->setAttr(kTargetAttr, target);
  auto func = func::FuncOp::create(
      b, loc, "trials", b.getFunctionType(kernel->getOperandTypes(), {}));
  Block *entry = func.addEntryBlock();
  b.setInsertionPointToStart(entry);
  for (ScheduleAttr schedule : schedules) {
    auto copy = cast<KernelOp>(b.clone(*kernel));
    copy->setOperands(entry->getArguments());
    copy.setStream(0);
    copy.removeNeedsAttr();
    copy.removeChoicesAttr();
    if (schedule)
      copy.setScheduleAttr(schedule);
    else
      copy.removeScheduleAttr();
    copy.removeScratchBytesAttr();
  }
  func::ReturnOp::create(b, loc);
  return module;
}

/// What tells the code of kernel function `name` from that of others: all of it
/// but the name.
static std::string codeOf(ModuleOp kernels, StringRef name) {
  std::string text;
  if (auto body = kernels.lookupSymbol((name + ".body").str())) {
    Operation *copy = body->clone();
    SymbolTable::setSymbolName(copy, "body");
    llvm::raw_string_ostream stream(text);
    copy->print(stream, OpPrintingFlags().useLocalScope());
    copy->destroy();
  }
  return text;
}

static std::vector<KernelTrials::Tensor> tensorsOf(TypeRange types) {
  std::vector<KernelTrials::Tensor> tensors;
  for (Type type : types) {
    auto tensor = cast<RankedTensorType>(type);
    tensors.push_back({dtypeOf(tensor.getElementType()), byteSize(tensor)});
  }
  return tensors;
}

Result<CompiledTrials> tandem::compileTrials(KernelOp kernel,
                                             ArrayRef<ScheduleAttr> schedules,
                                             const CpuTarget &target,
                                             int threads) {
  OwningOpRef<ModuleOp> module = moduleOf(kernel, schedules);
  PassManager manager(kernel.getContext());
  addLowerToCpuPasses(manager);
  if (failed(manager.run(*module)))
    return Status::failed("the variants of kernel '" + kernel.getName().str() +
                          "' could not be lowered");

  CompiledTrials compiled;
  auto kernels = module->lookupSymbol<ModuleOp>("cpu");
  std::vector<std::string> symbols;
  llvm::StringSet<> seen;
  SmallVector<LaunchOp> launches;
  for (auto func : module->getOps<func::FuncOp>())
    llvm::append_range(launches, func.getOps<LaunchOp>());
  for (auto [launch, schedule] : llvm::zip_equal(launches, schedules)) {
    StringRef name = launch.getKernel().getLeafReference().getValue();
    std::string code = codeOf(kernels, name);
    code += std::to_string(launch.getWork()) + ' ' +
            std::to_string(launch.getGrain());
    if (!seen.insert(code).second)
      continue;
    auto function = kernels.lookupSymbol<LLVM::LLVMFuncOp>(name);
    KernelTrial trial;
    trial.symbol = name.str();
    trial.work = launch.getWork();
    trial.grain = launch.getGrain();
    trial.scratchBytes = KernelFactsAttr::of(function).getScratchBytes();
    compiled.trials.trials.push_back(std::move(trial));
    compiled.schedules.push_back(schedule);
    symbols.push_back(name.str());
  }
  auto object =
      emitSharedObject(kernels, symbols, target, {.threads = threads});
  if (!object)
    return object.status();
  compiled.trials.object = std::move(*object);
  compiled.trials.inputs = tensorsOf(kernel->getOperandTypes());
  compiled.trials.outputs = tensorsOf(kernel->getResultTypes());
  for (int64_t input : inPlaceInputs(kernel))
    compiled.trials.overwrites.push_back(input);
  return compiled;
}
