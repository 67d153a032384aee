//===- Legalize.cpp - what host code cannot do, or would trap at ----------===//
//
// - Arithmetic in bfloat16 and conversions to it: LLVM would call a function of
//   compiler-rt. Done in f32 and rounded to nearest even; a NaN is 0x7fff, as
//   on the GPU.
// - Atomic instructions: threads take turns, so they are plain ones. Fences
//   that other blocks may rely on are calls of the emulator.
// - Division by zero, and of the least integer by -1: the host would trap. As
//   on the GPU, x / 0 is all ones and x % 0 is x.
// - Code that cannot be reached: reaching it is reported.
//
//===----------------------------------------------------------------------===//
#include "compiler/emit/emulation/KernelChunk.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/LowerAtomic.h"

using namespace llvm;
using namespace tandem::emulation;

static bool isBFloat(Type *type) { return type->getScalarType()->isBFloatTy(); }

/// The type with the elements of another.
static Type *withElement(Type *type, Type *element) {
  if (auto *vector = dyn_cast<VectorType>(type))
    return VectorType::get(element, vector->getElementCount());
  return element;
}

Value *KernelChunk::toFloat(Builder &b, Value *value) {
  Type *type = value->getType();
  if (!isBFloat(type))
    return value;
  Value *bits = b.CreateBitCast(value, withElement(type, b.getInt16Ty()));
  bits = b.CreateShl(b.CreateZExt(bits, withElement(type, b.getInt32Ty())), 16);
  return b.CreateBitCast(bits, withElement(type, b.getFloatTy()));
}

Value *KernelChunk::toBFloat(Builder &b, Value *value) {
  Type *type = value->getType();
  if (type->getScalarType()->isDoubleTy()) {
    // Rounding to odd first makes the second rounding the only one.
    Type *i64 = withElement(type, b.getInt64Ty());
    Value *bits = b.CreateBitCast(value, i64);
    Value *low = b.CreateAnd(bits, ConstantInt::get(i64, (1ull << 40) - 1));
    Value *sticky =
        b.CreateZExt(b.CreateICmpNE(low, ConstantInt::get(i64, 0)), i64);
    bits = b.CreateAnd(bits, ConstantInt::get(i64, ~((1ull << 40) - 1)));
    bits = b.CreateOr(bits, b.CreateShl(sticky, 40));
    value = b.CreateFPTrunc(b.CreateBitCast(bits, type),
                            withElement(type, b.getFloatTy()));
    type = value->getType();
  }
  Type *i32 = withElement(type, b.getInt32Ty());
  Type *i16 = withElement(type, b.getInt16Ty());
  auto constant = [&](uint32_t number) {
    return ConstantInt::get(i32, number);
  };
  Value *bits = b.CreateBitCast(value, i32);
  Value *odd = b.CreateAnd(b.CreateLShr(bits, 16), constant(1));
  Value *rounded = b.CreateAdd(bits, b.CreateAdd(odd, constant(0x7fff)));
  rounded = b.CreateLShr(rounded, 16);
  // Without flags: a comparison that may assume no NaN would drop the case.
  Value *isNan = b.CreateICmpUGT(b.CreateAnd(bits, constant(0x7fffffff)),
                                 constant(0x7f800000));
  rounded = b.CreateSelect(isNan, constant(0x7fff), rounded);
  return b.CreateBitCast(b.CreateTrunc(rounded, i16),
                         withElement(type, b.getBFloatTy()));
}

/// Rewrites an instruction that computes with bfloat16; false if it does not.
bool KernelChunk::legalizeBFloat(Instruction &instruction) {
  Type *type = instruction.getType();
  bool operands = any_of(instruction.operands(),
                         [](Use &use) { return isBFloat(use->getType()); });
  if (!isBFloat(type) && !operands)
    return false;
  Builder b(&instruction);
  b.setFastMathFlags(isa<FPMathOperator>(instruction)
                         ? instruction.getFastMathFlags()
                         : FastMathFlags());
  auto finish = [&](Value *value) {
    instruction.replaceAllUsesWith(value);
    instruction.eraseFromParent();
    return true;
  };
  auto operand = [&](unsigned i) {
    return toFloat(b, instruction.getOperand(i));
  };
  if (auto *binary = dyn_cast<BinaryOperator>(&instruction))
    return finish(toBFloat(
        b, b.CreateBinOp(binary->getOpcode(), operand(0), operand(1))));
  if (instruction.getOpcode() == Instruction::FNeg) {
    Type *i16 = withElement(type, b.getInt16Ty());
    Value *bits = b.CreateBitCast(instruction.getOperand(0), i16);
    return finish(b.CreateBitCast(
        b.CreateXor(bits, ConstantInt::get(i16, 0x8000)), type));
  }
  // What moves does so as bits: as numbers, values that live on in another
  // block, and choices, would be made f32 and rounded by a call.
  auto asBits = [&](Value *value) {
    return b.CreateBitCast(value,
                           withElement(value->getType(), b.getInt16Ty()));
  };
  if (auto *phi = dyn_cast<PHINode>(&instruction)) {
    Type *bits = withElement(type, b.getInt16Ty());
    PHINode *other = b.CreatePHI(bits, phi->getNumIncomingValues());
    DenseMap<BasicBlock *, Value *> incoming;
    for (auto [value, block] : zip(phi->incoming_values(), phi->blocks())) {
      Value *&one = incoming[block];
      if (!one)
        one = Builder(block->getTerminator()).CreateBitCast(value, bits);
      other->addIncoming(one, block);
    }
    b.SetInsertPoint(phi->getParent(), phi->getParent()->getFirstInsertionPt());
    return finish(b.CreateBitCast(other, type));
  }
  if (auto *extract = dyn_cast<ExtractElementInst>(&instruction))
    return finish(b.CreateBitCast(
        b.CreateExtractElement(asBits(extract->getVectorOperand()),
                               extract->getIndexOperand()),
        type));
  if (auto *insert = dyn_cast<InsertElementInst>(&instruction))
    return finish(
        b.CreateBitCast(b.CreateInsertElement(asBits(insert->getOperand(0)),
                                              asBits(insert->getOperand(1)),
                                              insert->getOperand(2)),
                        type));
  if (auto *shuffle = dyn_cast<ShuffleVectorInst>(&instruction))
    return finish(
        b.CreateBitCast(b.CreateShuffleVector(asBits(shuffle->getOperand(0)),
                                              asBits(shuffle->getOperand(1)),
                                              shuffle->getShuffleMask()),
                        type));
  if (auto *select = dyn_cast<SelectInst>(&instruction))
    return finish(b.CreateBitCast(
        b.CreateSelect(select->getCondition(), asBits(select->getTrueValue()),
                       asBits(select->getFalseValue())),
        type));
  if (auto *load = dyn_cast<LoadInst>(&instruction))
    return finish(b.CreateBitCast(
        b.CreateAlignedLoad(withElement(type, b.getInt16Ty()),
                            load->getPointerOperand(), load->getAlign(),
                            load->isVolatile()),
        type));
  if (auto *store = dyn_cast<StoreInst>(&instruction)) {
    store->setOperand(0, asBits(store->getValueOperand()));
    return true;
  }
  if (auto *compare = dyn_cast<FCmpInst>(&instruction))
    return finish(
        b.CreateFCmp(compare->getPredicate(), operand(0), operand(1)));
  if (auto *cast = dyn_cast<CastInst>(&instruction)) {
    switch (cast->getOpcode()) {
    case Instruction::FPTrunc:
      return finish(toBFloat(b, instruction.getOperand(0)));
    case Instruction::FPExt: {
      Value *value = operand(0);
      return finish(value->getType() == type ? value
                                             : b.CreateFPExt(value, type));
    }
    case Instruction::UIToFP:
    case Instruction::SIToFP:
      return finish(
          toBFloat(b, b.CreateCast(cast->getOpcode(), instruction.getOperand(0),
                                   withElement(type, b.getFloatTy()))));
    case Instruction::FPToUI:
    case Instruction::FPToSI:
      return finish(b.CreateCast(cast->getOpcode(), operand(0), type));
    default:
      return false;
    }
  }
  auto *call = dyn_cast<IntrinsicInst>(&instruction);
  if (!call)
    return false;
  SmallVector<Value *> arguments;
  for (Value *argument : call->args())
    arguments.push_back(toFloat(b, argument));
  SmallVector<Type *> overloads;
  if (!Intrinsic::isOverloaded(call->getIntrinsicID()))
    return false;
  overloads.push_back(isBFloat(type) ? withElement(type, b.getFloatTy())
                                     : arguments[0]->getType());
  Value *value =
      b.CreateIntrinsic(call->getIntrinsicID(), overloads, arguments);
  return finish(isBFloat(type) ? toBFloat(b, value) : value);
}

void KernelChunk::guardDivision(BinaryOperator &division) {
  auto *constant = dyn_cast<Constant>(division.getOperand(1));
  if (constant && !constant->containsUndefOrPoisonElement() &&
      constant->isNotOneValue() && !constant->isZeroValue() &&
      !constant->isAllOnesValue())
    return;
  Builder b(&division);
  Value *x = division.getOperand(0), *y = division.getOperand(1);
  Type *type = y->getType();
  Constant *zero = Constant::getNullValue(type);
  Constant *ones = Constant::getAllOnesValue(type);
  unsigned opcode = division.getOpcode();
  bool isSigned = opcode == Instruction::SDiv || opcode == Instruction::SRem;
  bool isDivision = opcode == Instruction::SDiv || opcode == Instruction::UDiv;
  Value *byZero = b.CreateICmpEQ(y, zero);
  Value *special = byZero;
  Value *byMinusOne = isSigned ? b.CreateICmpEQ(y, ones) : nullptr;
  if (isSigned)
    special = b.CreateOr(special, byMinusOne);
  Value *safe = b.CreateSelect(special, ConstantInt::get(type, 1), y);
  auto *copy = cast<BinaryOperator>(division.clone());
  copy->setOperand(1, safe);
  b.Insert(copy);
  Value *result =
      b.CreateSelect(byZero, isDivision ? static_cast<Value *>(ones) : x, copy);
  if (isSigned)
    result = b.CreateSelect(
        byMinusOne, isDivision ? b.CreateNeg(x) : static_cast<Value *>(zero),
        result);
  division.replaceAllUsesWith(result);
  division.eraseFromParent();
}

/// Fences of less than the device order what threads that take turns order.
void KernelChunk::replaceFence(FenceInst &fence) {
  SmallVector<StringRef> scopes;
  module.getContext().getSyncScopeNames(scopes);
  StringRef scope = scopes[fence.getSyncScopeID()];
  if (scope == "device" || scope.empty()) {
    AtomicOrdering order = fence.getOrdering();
    std::string name = order == AtomicOrdering::Acquire ? "fence.device.acquire"
                       : order == AtomicOrdering::Release
                           ? "fence.device.release"
                           : "fence.device";
    Builder b(&fence);
    callFunction(b, name, b.getVoidTy(), {kernelOf(fence).thread});
  }
  fence.eraseFromParent();
}

void KernelChunk::legalize() {
  for (KernelRecord &kernel : kernels) {
    for (Instruction &instruction :
         make_early_inc_range(instructions(kernel.function))) {
      if (auto *rmw = dyn_cast<AtomicRMWInst>(&instruction))
        lowerAtomicRMWInst(rmw);
      else if (auto *cas = dyn_cast<AtomicCmpXchgInst>(&instruction))
        lowerAtomicCmpXchgInst(cas);
      else if (auto *load = dyn_cast<LoadInst>(&instruction))
        load->setAtomic(AtomicOrdering::NotAtomic);
      else if (auto *store = dyn_cast<StoreInst>(&instruction))
        store->setAtomic(AtomicOrdering::NotAtomic);
      else if (auto *fence = dyn_cast<FenceInst>(&instruction))
        replaceFence(*fence);
    }
    SmallVector<Instruction *> all;
    for (Instruction &instruction : instructions(kernel.function))
      all.push_back(&instruction);
    for (Instruction *instruction : all) {
      if (isa<UnreachableInst>(instruction)) {
        Builder b(instruction);
        callFunction(b, "trap", b.getVoidTy(), {kernel.thread});
        continue;
      }
      if (legalizeBFloat(*instruction))
        continue;
      auto *binary = dyn_cast<BinaryOperator>(instruction);
      if (binary && binary->isIntDivRem())
        guardDivision(*binary);
    }
  }
}
