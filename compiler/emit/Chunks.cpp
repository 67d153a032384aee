//===- Chunks.cpp - kernels in pieces that are compiled apart -------------===//
#include "compiler/emit/Chunks.h"
#include "compiler/emit/KernelKeys.h"
#include "ir/Dialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

#include <atomic>
#include <system_error>
#include <thread>

using namespace mlir;
using namespace tandem;

/// Makes what a piece has nobody else's, but for what `isExported`.
static void finishCopy(Operation *copy, bool isExported) {
  for (NamedAttribute attr : llvm::to_vector(copy->getDiscardableAttrs()))
    if (attr.getName().getValue().starts_with("tandem."))
      copy->removeDiscardableAttr(attr.getName());
  if (auto func = dyn_cast<LLVM::LLVMFuncOp>(copy)) {
    if (!func.isExternal())
      func.setLinkage(isExported ? LLVM::Linkage::External
                                 : LLVM::Linkage::Internal);
  } else if (auto global = dyn_cast<LLVM::GlobalOp>(copy)) {
    global.setLinkage(LLVM::Linkage::Internal);
  }
}

/// Adds every symbol that `op` uses, directly or not, up to functions of
/// kernels.
static void collectUnit(Operation *op, SymbolTable &symbols,
                        llvm::SetVector<Operation *> &needed) {
  auto uses = SymbolTable::getSymbolUses(op);
  if (!uses)
    return;
  for (SymbolTable::SymbolUse use : *uses) {
    Operation *used = symbols.lookup(use.getSymbolRef().getRootReference());
    if (used && needed.insert(used) && !used->hasAttr(kKernelAttr))
      collectUnit(used, symbols, needed);
  }
}

Chunk tandem::unitOf(Operation *kernels, SymbolTable &symbols, StringRef name,
                     StringRef as, SmallVectorImpl<std::string> &calls) {
  Operation *kernel = symbols.lookup(name);
  llvm::SetVector<Operation *> needed;
  needed.insert(kernel);
  collectUnit(kernel, symbols, needed);
  Chunk unit = ModuleOp::create(kernels->getLoc());
  OpBuilder b = OpBuilder::atBlockEnd(unit->getBody());
  // In the order in which they are used: where they stand may depend on other
  // kernels.
  for (Operation *op : needed) {
    bool isCalled = op != kernel && op->hasAttr(kKernelAttr);
    if (isCalled)
      calls.push_back(cast<SymbolOpInterface>(op).getName().str());
    Operation *copy =
        isCalled ? b.insert(op->cloneWithoutRegions()) : b.clone(*op);
    finishCopy(copy, op == kernel);
    if (op == kernel)
      cast<SymbolOpInterface>(copy).setName(as);
  }
  return unit;
}

Result<KernelUnit> tandem::keptOrUnitOf(Operation *kernels,
                                        SymbolTable &symbols, StringRef name,
                                        StringRef as, KernelCache *cache,
                                        SmallVectorImpl<std::string> &calls) {
  KernelUnit unit;
  unit.function = symbols.lookup<LLVM::LLVMFuncOp>(name);
  if (!unit.function)
    return Status::failed("there is no function '" + name.str() + "'");
  unit.entry = keptCode(unit.function, cache);
  if (unit.entry)
    return unit;
  if (unit.function.isExternal())
    return Status::failed("the function '" + name.str() + "' has no code");
  unit.code = unitOf(kernels, symbols, name, as, calls);
  return unit;
}

Status tandem::forEachIndex(size_t count, int threads,
                            const std::function<Status(size_t)> &work) {
  std::vector<Status> statuses(count);
  std::atomic<size_t> next = 0;
  auto some = [&] {
    for (size_t i; (i = next++) < count;)
      statuses[i] = work(i);
  };
  if (threads <= 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> workers;
  try {
    for (int i = 1; i < threads && i < static_cast<int>(count); ++i)
      workers.emplace_back(some);
  } catch (const std::system_error &) {
    // The system gives no more threads: those that are there do it.
  }
  some();
  for (std::thread &worker : workers)
    worker.join();
  for (Status &status : statuses)
    if (!status)
      return status;
  return Status::success();
}
