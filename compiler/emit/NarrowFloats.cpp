//===- NarrowFloats.cpp - f16 and bf16 as the bits they are ---------------===//
#include "compiler/emit/NarrowFloats.h"

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

static Value *asBits(IRBuilder<> &builder, Value *value) {
  Type *type = value->getType();
  return builder.CreateBitCast(value,
                               type->getWithNewType(builder.getInt16Ty()));
}

/// The same with integers; null where that changes nothing.
static Value *withBits(IRBuilder<> &builder, Instruction &instruction) {
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

void tandem::moveNarrowFloatsAsBits(Module &module) {
  for (Function &function : module)
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
}
