//===- NarrowFloats.cpp - f16 and bf16 as the bits they are ---------------===//
#include "compiler/emit/passes/Passes.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

static bool isNarrow(Type *type) {
  Type *scalar = type->getScalarType();
  return scalar->isBFloatTy() || scalar->isHalfTy();
}

static Type *bitsOf(Type *type) {
  return type->getWithNewType(Type::getInt16Ty(type->getContext()));
}

static Value *asBits(IRBuilder<> &builder, Value *value) {
  Type *bits = bitsOf(value->getType());
  if (auto *cast = dyn_cast<BitCastInst>(value);
      cast && cast->getSrcTy() == bits)
    return cast->getOperand(0);
  return builder.CreateBitCast(value, bits);
}

/// Moves of bf16, of which a processor may have no registers; those of f16 are
/// no calls.
static Value *moveWithBits(IRBuilder<> &builder, Instruction &instruction) {
  auto isBrain = [](Type *type) { return type->getScalarType()->isBFloatTy(); };
  if (auto *store = dyn_cast<StoreInst>(&instruction)) {
    if (!isBrain(store->getValueOperand()->getType()) || !store->isSimple())
      return nullptr;
    StoreInst *made = builder.CreateAlignedStore(
        asBits(builder, store->getValueOperand()), store->getPointerOperand(),
        store->getAlign());
    made->copyMetadata(*store);
    return made;
  }
  if (!isBrain(instruction.getType()))
    return nullptr;
  if (auto *load = dyn_cast<LoadInst>(&instruction)) {
    if (!load->isSimple())
      return nullptr;
    LoadInst *made = builder.CreateAlignedLoad(
        bitsOf(load->getType()), load->getPointerOperand(), load->getAlign());
    made->copyMetadata(*load);
    return made;
  }
  if (auto *shuffle = dyn_cast<ShuffleVectorInst>(&instruction))
    return builder.CreateShuffleVector(asBits(builder, shuffle->getOperand(0)),
                                       asBits(builder, shuffle->getOperand(1)),
                                       shuffle->getShuffleMask());
  if (auto *extract = dyn_cast<ExtractElementInst>(&instruction))
    return builder.CreateExtractElement(
        asBits(builder, extract->getVectorOperand()),
        extract->getIndexOperand());
  if (auto *insert = dyn_cast<InsertElementInst>(&instruction))
    return builder.CreateInsertElement(asBits(builder, insert->getOperand(0)),
                                       asBits(builder, insert->getOperand(1)),
                                       insert->getOperand(2));
  return nullptr;
}

/// Numbers that are bits again: the bits that they were.
static void dropRoundTrips(Function &function) {
  SmallVector<Instruction *> casts;
  for (Instruction &instruction : instructions(function))
    if (auto *cast = dyn_cast<BitCastInst>(&instruction);
        cast && (isNarrow(cast->getSrcTy()) || isNarrow(cast->getDestTy())))
      casts.push_back(cast);
  for (Instruction *cast : casts)
    if (auto *inner = dyn_cast<BitCastInst>(cast->getOperand(0));
        inner && inner->getSrcTy() == cast->getType())
      cast->replaceAllUsesWith(inner->getOperand(0));
  // What uses a cast comes after it, but for blocks out of order.
  for (Instruction *cast : llvm::reverse(casts))
    if (cast->use_empty())
      cast->eraseFromParent();
}

/// The same with integers; null where that changes nothing.
static Value *withBits(IRBuilder<> &builder, Instruction &instruction) {
  if (Value *moved = moveWithBits(builder, instruction))
    return moved;
  if (auto *select = dyn_cast<SelectInst>(&instruction);
      select && isNarrow(select->getType()))
    return builder.CreateSelect(select->getCondition(),
                                asBits(builder, select->getTrueValue()),
                                asBits(builder, select->getFalseValue()));
  auto *call = dyn_cast<IntrinsicInst>(&instruction);
  if (!call)
    return nullptr;
  auto align = [&](unsigned operand) {
    return call->getParamAlign(operand).valueOrOne();
  };
  if (call->getIntrinsicID() == Intrinsic::masked_load &&
      isNarrow(call->getType())) {
    Value *otherwise = asBits(builder, call->getArgOperand(2));
    return builder.CreateMaskedLoad(otherwise->getType(),
                                    call->getArgOperand(0), align(0),
                                    call->getArgOperand(1), otherwise);
  }
  if (call->getIntrinsicID() == Intrinsic::masked_gather &&
      isNarrow(call->getType())) {
    Value *otherwise = asBits(builder, call->getArgOperand(2));
    return builder.CreateMaskedGather(otherwise->getType(),
                                      call->getArgOperand(0), align(0),
                                      call->getArgOperand(1), otherwise);
  }
  if (call->getIntrinsicID() == Intrinsic::masked_scatter &&
      isNarrow(call->getArgOperand(0)->getType()))
    return builder.CreateMaskedScatter(asBits(builder, call->getArgOperand(0)),
                                       call->getArgOperand(1), align(1),
                                       call->getArgOperand(2));
  if (call->getIntrinsicID() == Intrinsic::masked_store &&
      isNarrow(call->getArgOperand(0)->getType()))
    return builder.CreateMaskedStore(asBits(builder, call->getArgOperand(0)),
                                     call->getArgOperand(1), align(1),
                                     call->getArgOperand(2));
  return nullptr;
}

PreservedAnalyses tandem::NarrowFloatsAsBits::run(Function &function,
                                                  FunctionAnalysisManager &) {
  for (Instruction &instruction :
       llvm::make_early_inc_range(instructions(function))) {
    IRBuilder<> builder(&instruction);
    Value *bits = withBits(builder, instruction);
    if (!bits)
      continue;
    if (!instruction.getType()->isVoidTy())
      instruction.replaceAllUsesWith(
          builder.CreateBitCast(bits, instruction.getType()));
    instruction.eraseFromParent();
  }
  dropRoundTrips(function);
  return PreservedAnalyses::none();
}
