//===- LoneLanes.cpp - masked stores of one lane --------------------------===//
#include "compiler/emit/LoneLanes.h"

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
static std::optional<unsigned> loneLane(Value *mask) {
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

static void storeLane(IntrinsicInst &store, unsigned lane) {
  Value *vector = store.getArgOperand(0);
  Type *element = cast<VectorType>(vector->getType())->getElementType();
  uint64_t bits = element->getPrimitiveSizeInBits();
  if (bits == 0 || bits % 8 != 0)
    return;
  IRBuilder<> b(&store);
  Value *at = b.CreateConstGEP1_64(element, store.getArgOperand(1), lane);
  Align align =
      commonAlignment(store.getParamAlign(1).valueOrOne(), lane * bits / 8);
  StoreInst *lone =
      b.CreateAlignedStore(b.CreateExtractElement(vector, lane), at, align);
  lone->setAAMetadata(store.getAAMetadata());
  store.eraseFromParent();
}

void tandem::storeLoneLanes(Module &module) {
  if (!module.getTargetTriple().isX86())
    return;
  for (Function &function : module)
    for (Instruction &instruction :
         make_early_inc_range(instructions(function)))
      if (auto *store = dyn_cast<IntrinsicInst>(&instruction);
          store && store->getIntrinsicID() == Intrinsic::masked_store)
        if (std::optional<unsigned> lane = loneLane(store->getArgOperand(2)))
          storeLane(*store, *lane);
}
