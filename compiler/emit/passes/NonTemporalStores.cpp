//===- NonTemporalStores.cpp - stores that go past the caches -------------===//
#include "compiler/emit/passes/Passes.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

/// An access group of no loop says nothing, and vectorization keeps it.
static constexpr unsigned kMark = LLVMContext::MD_access_group;
/// The least vector that is worth it: half a cache line, of which two stores
/// beside each other make a whole one.
static constexpr uint64_t kLeastBytes = 32, kLineBytes = 64;

PreservedAnalyses tandem::MarkNonTemporalStores::run(Module &module,
                                                     ModuleAnalysisManager &) {
  MDNode *mark = nullptr;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (isa<StoreInst>(instruction) &&
          instruction.hasMetadata(LLVMContext::MD_nontemporal)) {
        if (!mark)
          mark = MDNode::getDistinct(module.getContext(), {});
        instruction.setMetadata(LLVMContext::MD_nontemporal, nullptr);
        instruction.setMetadata(kMark, mark);
      }
  return mark ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

static uint64_t bytesOf(const StoreInst &store, const DataLayout &layout) {
  Type *type = store.getValueOperand()->getType();
  return layout.getTypeStoreSize(type).getKnownMinValue();
}

/// True if the store may be non-temporal now.
static bool isWholeVector(const StoreInst &store, const DataLayout &layout) {
  uint64_t bytes = bytesOf(store, layout);
  return store.isSimple() &&
         isa<FixedVectorType>(store.getValueOperand()->getType()) &&
         bytes >= kLeastBytes && store.getAlign() >= bytes;
}

/// The marked stores of a block that are to be non-temporal. Where one half of
/// a line goes past the caches and the other one through them, a kernel took 25
/// times as long: vectors of half a line are non-temporal where all are.
static SmallVector<StoreInst *> storesPastCaches(BasicBlock &block,
                                                 const DataLayout &layout) {
  SmallVector<StoreInst *> marked;
  for (Instruction &instruction : block)
    if (auto *store = dyn_cast<StoreInst>(&instruction);
        store && store->hasMetadata(kMark))
      marked.push_back(store);
  bool areAllWhole = all_of(
      marked, [&](StoreInst *store) { return isWholeVector(*store, layout); });
  erase_if(marked, [&](StoreInst *store) {
    return !isWholeVector(*store, layout) ||
           (!areAllWhole && bytesOf(*store, layout) < kLineBytes);
  });
  return marked;
}

PreservedAnalyses
tandem::EmitNonTemporalStores::run(Function &function,
                                   FunctionAnalysisManager &) {
  LLVMContext &context = function.getContext();
  MDNode *one = MDNode::get(context, ConstantAsMetadata::get(ConstantInt::get(
                                         Type::getInt32Ty(context), 1)));
  bool isChanged = false;
  for (BasicBlock &block : function)
    for (StoreInst *store : storesPastCaches(block, function.getDataLayout())) {
      store->setMetadata(LLVMContext::MD_nontemporal, one);
      isChanged = true;
    }
  if (!isChanged)
    return PreservedAnalyses::all();
  bool isX86 = function.getParent()->getTargetTriple().isX86();
  for (BasicBlock &block : function)
    if (isX86 && isa<ReturnInst>(block.getTerminator()))
      IRBuilder<>(block.getTerminator())
          .CreateIntrinsic(Intrinsic::x86_sse_sfence, {});
  return PreservedAnalyses::none();
}
