//===- Kernels.cpp - what lowering kernels to any target has in common ----===//
#include "passes/lower/common/Kernels.h"

#include "ir/KernelFunctions.h"
#include "ir/Signature.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower;

static OpClass classOfOp(Operation &op) {
  if (auto cost = dyn_cast<CostOpInterface>(op))
    return cost.getOpClass();
  return OpClass::Program;
}

OpClass lower::classOf(KernelOp kernel) {
  OpClass result = OpClass::Pointwise;
  for (Operation &op : kernel.getBody().front()) {
    OpClass opClass = classOfOp(op);
    if (opClass == OpClass::Contraction || opClass == OpClass::Window ||
        opClass == OpClass::Indexed || opClass == OpClass::Flow)
      return opClass;
    if (opClass == OpClass::Reduction)
      result = opClass;
  }
  return result;
}

/// The kernel without what is no part of its code: its name, its places, and
/// when it runs.
static KernelOp codeOf(KernelOp kernel) {
  KernelOp copy = kernel.clone();
  copy.setName("");
  copy.removeBuffersAttr();
  copy.setStream(0);
  copy.removeNeedsAttr();
  copy.removeChoicesAttr();
  copy.removeLibraryAttr();
  // It follows from the code, and code does not depend on who chose it.
  copy.removeScratchBytesAttr();
  if (ScheduleAttr schedule = copy.getScheduleAttr())
    copy.setScheduleAttr(schedule.withoutChoosers());
  for (StringRef attr : {kRegionsAttr, kFunctionAttr, kCodeAttr, kCompiledAttr})
    copy->removeAttr(attr);
  copy->setOperands({});
  auto always = ArrayAttr::get(copy.getContext(), {});
  copy.walk([&](Operation *op) {
    if (auto zeros = dyn_cast<OrZeroOp>(op))
      zeros.setNeedsAttr(always);
    if (auto choice = dyn_cast<IfDefinedOp>(op))
      choice.setWhenAttr(always);
  });
  return copy;
}

static size_t hashOf(KernelOp code) {
  llvm::hash_code hash = llvm::hash_code(0);
  code->walk<WalkOrder::PreOrder>([&](Operation *op) {
    hash =
        llvm::hash_combine(hash, OperationEquivalence::computeHash(
                                     op, OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

std::pair<size_t, bool> DistinctKernels::insert(KernelOp kernel) {
  OwningOpRef<KernelOp> code(codeOf(kernel));
  size_t hash = hashOf(*code);
  auto [begin, end] = byHash.equal_range(hash);
  for (auto &[_, number] : llvm::make_range(begin, end))
    if (OperationEquivalence::isEquivalentTo(
            *code, *common[number], OperationEquivalence::IgnoreLocations))
      return {number, false};
  byHash.emplace(hash, common.size());
  common.push_back(std::move(code));
  return {common.size() - 1, true};
}

std::string lower::textOf(KernelOp kernel) {
  OwningOpRef<KernelOp> code(codeOf(kernel));
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (Type type : kernel->getOperandTypes())
    stream << type << ' ';
  // What a tool was asked to print of modules is none of the code: two kernels
  // are equal wherever they come from, and different if a constant is.
  code->print(stream, OpPrintingFlags()
                          .useLocalScope()
                          .printGenericOpForm()
                          .enableDebugInfo(false)
                          .elideLargeElementsAttrs(
                              std::numeric_limits<int64_t>::max()));
  return text;
}

MemRefType lower::memrefOf(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  Type element = type.getElementType();
  if (element.isInteger(1) || isNarrowFloat(element))
    element = IntegerType::get(element.getContext(), 8);
  return MemRefType::get(type.getShape(), element);
}

bool lower::isLoopKernel(KernelOp kernel) {
  OpClass opClass = classOf(kernel);
  return opClass == OpClass::Pointwise || opClass == OpClass::Reduction;
}

SmallVector<KernelOp> lower::programKernels(ModuleOp module) {
  SmallVector<KernelOp> kernels;
  llvm::DenseSet<StringAttr> regions;
  module.walk([&](KernelOp kernel) {
    kernels.push_back(kernel);
    for (FlatSymbolRefAttr region : kernelRegions(kernel))
      regions.insert(region.getAttr());
  });
  llvm::erase_if(kernels, [&](KernelOp kernel) {
    return regions.contains(
        kernel->getParentOfType<func::FuncOp>().getSymNameAttr());
  });
  return kernels;
}

SmallVector<KernelOp> lower::regionKernels(KernelOp kernel) {
  SmallVector<KernelOp> kernels;
  for (func::FuncOp region : regionFunctions(kernel))
    llvm::append_range(kernels, region.getOps<KernelOp>());
  return kernels;
}

SmallVector<func::FuncOp> lower::regionFunctions(KernelOp kernel) {
  SmallVector<func::FuncOp> functions;
  for (FlatSymbolRefAttr name : kernelRegions(kernel))
    if (auto function =
            SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(kernel, name))
      functions.push_back(function);
  return functions;
}

/// Adds the kernel behind those of its regions, unless one with its function
/// is there.
static LogicalResult addDistinct(KernelOp kernel, DenseSet<Attribute> &seen,
                                 SmallVectorImpl<KernelOp> &distinct) {
  SymbolRefAttr function = kernelFunction(kernel);
  if (!function)
    return kernel.emitOpError()
           << "expected '" << kFunctionAttr
           << "': tandem-deduplicate-kernels comes before its code";
  if (!seen.insert(function).second)
    return success();
  // The attribute has a name for each region, if there is one.
  bool hasRegions = classOf(kernel) == OpClass::Flow;
  size_t named = kernelRegions(kernel).size();
  if (hasRegions != (named > 0) || regionFunctions(kernel).size() != named)
    return kernel.emitOpError()
           << "expected '" << kRegionsAttr
           << "' to name functions that there are, planned by "
              "tandem-outline-regions, but got "
           << (hasRegions ? kernel->getAttr(kRegionsAttr) : Attribute());
  for (func::FuncOp region : regionFunctions(kernel))
    if (!planOf(region))
      return region.emitOpError()
             << "expected '" << kPlanAttr << "': plan comes before lower";
  for (KernelOp inner : regionKernels(kernel))
    if (!inner.getBuffersAttr())
      return inner.emitOpError("expected 'buffers': plan comes before lower");
    else if (failed(addDistinct(inner, seen, distinct)))
      return failure();
  distinct.push_back(kernel);
  return success();
}

FailureOr<SmallVector<KernelOp>> lower::distinctKernels(ModuleOp module) {
  DenseSet<Attribute> seen;
  SmallVector<KernelOp> distinct;
  for (KernelOp kernel : programKernels(module))
    if (failed(addDistinct(kernel, seen, distinct)))
      return failure();
  return distinct;
}

LogicalResult lower::checkSharedFunctions(ModuleOp module) {
  DistinctKernels known;
  llvm::DenseMap<SymbolRefAttr, std::pair<size_t, KernelOp>> first;
  WalkResult result = module.walk([&](KernelOp kernel) {
    SymbolRefAttr function = kernelFunction(kernel);
    if (!function) // It is said elsewhere.
      return WalkResult::advance();
    size_t number = known.insert(kernel).first;
    auto [it, isNew] = first.try_emplace(function, number, kernel);
    if (it->second.first == number)
      return WalkResult::advance();
    auto error = kernel.emitOpError()
                 << "expected '" << kFunctionAttr
                 << "' to be that of kernels with equal code, but got "
                 << function;
    error.attachNote(it->second.second.getLoc()) << "which is this kernel's";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult lower::checkPlannedScratch(KernelOp kernel, int64_t taken) {
  std::optional<uint64_t> planned = kernel.getScratchBytes();
  if (!planned || static_cast<int64_t>(*planned) == taken)
    return success();
  return kernel.emitError()
         << "expected 'scratch_bytes' to be what the kernel's code takes with "
            "its schedule, "
         << taken << ", but got " << *planned;
}
