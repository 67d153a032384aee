//===- Prefetches.cpp - prefetching what loops will load ------------------===//
#include "compiler/emit/passes/Passes.h"
#include "passes/lower/common/KernelBody.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"

using namespace llvm;

static constexpr int64_t kLineBytes = 64;
/// The least vector that counts as one of a loop over vectors.
static constexpr uint64_t kLeastBytes = 16;

/// Bytes by parameter; 0: nothing is prefetched.
static SmallVector<int64_t> distancesOf(const Function &function) {
  SmallVector<StringRef> texts;
  function.getFnAttribute(tandem::lower::kLoadsAheadAttr)
      .getValueAsString()
      .split(texts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  SmallVector<int64_t> distances;
  for (StringRef text : texts)
    if (text.getAsInteger(10, distances.emplace_back()))
      return {};
  return distances;
}

static bool prefetchInBlock(BasicBlock &block, ArrayRef<int64_t> distances) {
  const DataLayout &layout = block.getDataLayout();
  // The lines that are, of the block: a pointer and the number of a line from
  // there.
  DenseSet<std::pair<Value *, int64_t>> prefetched;
  for (Instruction &instruction : make_early_inc_range(block)) {
    auto *load = dyn_cast<LoadInst>(&instruction);
    if (!load || !isa<FixedVectorType>(load->getType()) ||
        layout.getTypeStoreSize(load->getType()) < kLeastBytes)
      continue;
    auto *from =
        dyn_cast<Argument>(getUnderlyingObject(load->getPointerOperand()));
    if (!from || from->getArgNo() >= distances.size() ||
        distances[from->getArgNo()] == 0)
      continue;
    APInt offset(layout.getIndexTypeSizeInBits(load->getPointerOperandType()),
                 0);
    Value *base = load->getPointerOperand()->stripAndAccumulateConstantOffsets(
        layout, offset, /*AllowNonInbounds=*/true);
    if (!prefetched.insert({base, offset.getSExtValue() / kLineBytes}).second)
      continue;
    IRBuilder<> b(load);
    Value *ahead = b.CreatePtrAdd(load->getPointerOperand(),
                                  b.getInt64(distances[from->getArgNo()]));
    constexpr int isRead = 0, staysClose = 3, isData = 1;
    b.CreateIntrinsic(Intrinsic::prefetch, {ahead->getType()},
                      {ahead, b.getInt32(isRead), b.getInt32(staysClose),
                       b.getInt32(isData)});
  }
  return !prefetched.empty();
}

PreservedAnalyses tandem::InsertPrefetches::run(Function &function,
                                                FunctionAnalysisManager &) {
  SmallVector<int64_t> distances = distancesOf(function);
  bool isChanged = false;
  if (!distances.empty())
    for (BasicBlock &block : function)
      isChanged |= prefetchInBlock(block, distances);
  return isChanged ? PreservedAnalyses::none() : PreservedAnalyses::all();
}
