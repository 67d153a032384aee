//===- SingleLaneStores.cpp - masked stores of one lane -------------------===//
#include "compiler/emit/passes/Passes.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"

#include <optional>

using namespace llvm;

/// The only lane of the mask; nothing of another mask. A lane that is not
/// defined may be off.
static std::optional<unsigned> singleLane(Value *mask) {
  auto *constant = dyn_cast<Constant>(mask);
  auto *type = dyn_cast<FixedVectorType>(mask->getType());
  if (!constant || !type)
    return std::nullopt;
  std::optional<unsigned> lane;
  for (unsigned i = 0; i < type->getNumElements(); ++i) {
    Constant *bit = constant->getAggregateElement(i);
    if (!bit || !(isa<UndefValue>(bit) || isa<ConstantInt>(bit)))
      return std::nullopt;
    if (isa<UndefValue>(bit) || bit->isNullValue())
      continue;
    if (lane)
      return std::nullopt;
    lane = i;
  }
  return lane;
}

static bool storeLane(IntrinsicInst &store, unsigned lane) {
  Value *vector = store.getArgOperand(0);
  Type *element = cast<VectorType>(vector->getType())->getElementType();
  uint64_t bits = element->getPrimitiveSizeInBits();
  if (bits == 0 || bits % 8 != 0)
    return false;
  IRBuilder<> b(&store);
  Value *at = b.CreateConstGEP1_64(element, store.getArgOperand(1), lane);
  Align align =
      commonAlignment(store.getParamAlign(1).valueOrOne(), lane * bits / 8);
  StoreInst *single =
      b.CreateAlignedStore(b.CreateExtractElement(vector, lane), at, align);
  single->setAAMetadata(store.getAAMetadata());
  store.eraseFromParent();
  return true;
}

PreservedAnalyses tandem::SingleLaneStores::run(Function &function,
                                                FunctionAnalysisManager &) {
  if (!function.getParent()->getTargetTriple().isX86())
    return PreservedAnalyses::all();
  bool isChanged = false;
  for (Instruction &instruction : make_early_inc_range(instructions(function)))
    if (auto *store = dyn_cast<IntrinsicInst>(&instruction);
        store && store->getIntrinsicID() == Intrinsic::masked_store)
      if (std::optional<unsigned> lane = singleLane(store->getArgOperand(2)))
        isChanged |= storeLane(*store, *lane);
  return isChanged ? PreservedAnalyses::none() : PreservedAnalyses::all();
}
