//===- FarAngles.cpp - sin and cos of f32 far from 0 ----------------------===//
//
// x = m 2^e with m of 24 bits; x / 2pi is m times the bits of 1 / 2pi that
// matter at e (Payne and Hanek). With 128 of them the fraction of a turn has
// 104, of which the worst angle of f32 begins with about 30 zeros.
//
//===----------------------------------------------------------------------===//
#include "compiler/emit/passes/Passes.h"
#include "passes/lower/common/Polynomials.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

#include <numbers>
#include <optional>

using namespace llvm;
using namespace llvm::PatternMatch;

/// The exponent, as f32 has it, of the least angle that is far.
static constexpr uint64_t kLeastExponent = 127 + 17;
static_assert(tandem::lower::kFarAngle >= 0x1p17);

/// 2^249 / pi, which is 2^(kLeastExponent - 150) / 2pi in units of 2^-256.
static constexpr uint64_t kTurns[] = {0x00a2f9836e4e4415, 0x29fc2757d1f534dd,
                                      0xc0db6295993c4390, 0x41fe5163abdebbc5};

static Value *isFar(IRBuilder<> &b, Value *x) {
  return b.CreateFCmpOGT(
      b.CreateUnaryIntrinsic(Intrinsic::fabs, x),
      ConstantFP::get(x->getType(), tandem::lower::kFarAngle));
}

static Value *polynomial(IRBuilder<> &b, Value *x,
                         ArrayRef<double> coefficients) {
  Value *sum = ConstantFP::get(x->getType(), coefficients[0]);
  for (double c : coefficients.drop_front())
    sum = b.CreateFAdd(b.CreateFMul(sum, x), ConstantFP::get(x->getType(), c));
  return sum;
}

/// sin(x), or cos(x), of an x that is far.
static Value *angle(IRBuilder<> &b, Value *x, Value *isCosine) {
  auto word = [&](uint64_t value) { return b.getInt64(value); };
  auto left = [&](Value *high, Value *low, Value *shift) {
    return b.CreateIntrinsic(Intrinsic::fshl, {b.getInt64Ty()},
                             {high, low, shift});
  };
  Value *bits =
      b.CreateZExt(b.CreateBitCast(x, b.getInt32Ty()), b.getInt64Ty());
  Value *exponent = b.CreateAnd(b.CreateLShr(bits, 23), 0xff);
  Value *m = b.CreateOr(b.CreateAnd(bits, 0x7fffff), 0x800000);
  // The words of 1 / 2pi from the exponent on.
  Value *shift = b.CreateSub(exponent, word(kLeastExponent));
  Value *isBehind = b.CreateICmpUGE(shift, word(64));
  Value *words[3];
  for (size_t i = 0; i < 3; ++i)
    words[i] = b.CreateSelect(isBehind, word(kTurns[i + 1]), word(kTurns[i]));
  Value *high = left(words[0], words[1], shift);
  Value *low = left(words[1], words[2], shift);
  // A turn is 2^128 units.
  Type *wide = b.getInt128Ty();
  Value *product = b.CreateMul(b.CreateZExt(m, wide), b.CreateZExt(low, wide));
  Value *carry = b.CreateTrunc(b.CreateLShr(product, 64), b.getInt64Ty());
  high = b.CreateAdd(b.CreateMul(m, high), carry);
  low = b.CreateMul(m, low);
  // The nearest quarter, and what is left, from -1/2 to 1/2 quarters.
  Value *quarter = b.CreateLShr(b.CreateAdd(high, word(1ull << 61)), 62);
  Value *rest = b.CreateSIToFP(left(high, low, word(2)), b.getDoubleTy());
  Value *r = b.CreateFMul(
      rest, ConstantFP::get(b.getDoubleTy(), std::numbers::pi / 2 * 0x1p-64));
  Value *z = b.CreateFMul(r, r);
  Value *sine =
      b.CreateFMul(r, polynomial(b, z,
                                 {-1.0 / 39916800, 1.0 / 362880, -1.0 / 5040,
                                  1.0 / 120, -1.0 / 6, 1.0}));
  Value *cosine = polynomial(
      b, z, {-1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5, 1.0});
  // cos(x) is the sine a quarter farther; of x < 0 the sine is that of -x.
  Value *isNegative = b.CreateIsNotNull(b.CreateLShr(bits, 31));
  Value *more = b.CreateSelect(isCosine, word(1),
                               b.CreateSelect(isNegative, word(2), word(0)));
  quarter = b.CreateAdd(quarter, more);
  auto has = [&](uint64_t bit) {
    return b.CreateIsNotNull(b.CreateAnd(quarter, bit));
  };
  Value *y = b.CreateSelect(has(1), cosine, sine);
  y = b.CreateFPTrunc(b.CreateSelect(has(2), b.CreateFNeg(y), y), x->getType());
  return b.CreateSelect(b.CreateICmpEQ(exponent, word(0xff)),
                        ConstantFP::getNaN(x->getType()), y);
}

/// void(ptr x, i64 count, i1 isCosine): replaces those of `count` numbers that
/// are far by their sin or cos.
static Function *farAngles(Function &caller) {
  constexpr StringLiteral name = "tandem.far_angles";
  Module &module = *caller.getParent();
  if (Function *known = module.getFunction(name))
    return known;
  LLVMContext &context = module.getContext();
  IRBuilder<> b(context);
  auto *type = FunctionType::get(
      b.getVoidTy(), {b.getPtrTy(), b.getInt64Ty(), b.getInt1Ty()}, false);
  Function *made =
      Function::Create(type, GlobalValue::InternalLinkage, name, module);
  // What the processor has.
  for (StringRef of : {"target-cpu", "target-features", "frame-pointer"})
    if (Attribute attribute = caller.getFnAttribute(of); attribute.isValid())
      made->addFnAttr(attribute);
  for (auto of : {Attribute::Cold, Attribute::NoInline, Attribute::NoUnwind})
    made->addFnAttr(of);
  auto block = [&](const char *named) {
    return BasicBlock::Create(context, named, made);
  };
  BasicBlock *entry = block("entry"), *loop = block("loop"),
             *far = block("far"), *next = block("next"), *end = block("end");
  b.SetInsertPoint(entry);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  PHINode *i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(b.getInt64(0), entry);
  Value *at = b.CreateGEP(b.getFloatTy(), made->getArg(0), i);
  Value *x = b.CreateLoad(b.getFloatTy(), at);
  b.CreateCondBr(isFar(b, x), far, next);
  b.SetInsertPoint(far);
  b.CreateStore(angle(b, x, made->getArg(2)), at);
  b.CreateBr(next);
  b.SetInsertPoint(next);
  Value *following = b.CreateAdd(i, b.getInt64(1));
  i->addIncoming(following, next);
  b.CreateCondBr(b.CreateICmpEQ(following, made->getArg(1)), end, loop);
  b.SetInsertPoint(end);
  b.CreateRetVoid();
  return made;
}

namespace {
/// A call of llvm.sin or llvm.cos. `result` is the choice between it and `near`
/// by `isFar`, if that is its only use; else it is the call itself.
struct Angle {
  IntrinsicInst *call;
  Instruction *result;
  Value *isFar = nullptr, *near = nullptr;
};
using Group = SmallVector<Angle, 4>;
} // namespace

static IntrinsicInst *angleOf(Value *value) {
  auto *call = dyn_cast<IntrinsicInst>(value);
  bool isAngle = call && call->getType()->getScalarType()->isFloatTy() &&
                 call->hasAllowReciprocal() &&
                 (call->getIntrinsicID() == Intrinsic::sin ||
                  call->getIntrinsicID() == Intrinsic::cos);
  return isAngle ? call : nullptr;
}

static std::optional<Angle> choiceOf(Value *value) {
  Value *isFar, *far, *near;
  if (!match(value, m_Select(m_Value(isFar), m_Value(far), m_Value(near))))
    return std::nullopt;
  IntrinsicInst *call = angleOf(far);
  if (!call || !call->hasOneUse() ||
      !match(isFar, m_SpecificFCmp(FCmpInst::FCMP_OGT,
                                   m_FAbs(m_Specific(call->getArgOperand(0))),
                                   m_SpecificFP(tandem::lower::kFarAngle))))
    return std::nullopt;
  return Angle{call, cast<Instruction>(value), isFar, near};
}

/// Choices of a loop's interleaved vectors stand beside each other: those of
/// one type between which none is used have one branch.
static void collect(BasicBlock &block, SmallVectorImpl<Group> &groups) {
  Group group;
  auto finish = [&] {
    if (!group.empty())
      groups.push_back(group);
    group.clear();
  };
  for (Instruction &instruction : block) {
    std::optional<Angle> choice = choiceOf(&instruction);
    if (any_of(group, [&](const Angle &angle) {
          return is_contained(instruction.operands(), angle.result) ||
                 (choice && angle.result->getType() != instruction.getType());
        }))
      finish();
    if (choice)
      group.push_back(*choice);
    else if (IntrinsicInst *call = angleOf(&instruction);
             call && !(call->hasOneUse() && choiceOf(call->user_back())))
      groups.push_back({Angle{call, call}});
  }
  finish();
}

/// The result of a call, at least in lanes that are far.
static Value *farOf(IRBuilder<> &b, IntrinsicInst &call) {
  Function &function = *call.getFunction();
  Value *x = call.getArgOperand(0);
  Value *isCosine = b.getInt1(call.getIntrinsicID() == Intrinsic::cos);
  // A GPU's kernels call nothing.
  if (function.getParent()->getTargetTriple().isNVPTX())
    return angle(b, x, isCosine);
  BasicBlock &entry = function.getEntryBlock();
  IRBuilder<> start(&entry, entry.getFirstInsertionPt());
  auto *vector = dyn_cast<FixedVectorType>(x->getType());
  AllocaInst *place = start.CreateAlloca(x->getType());
  b.CreateStore(x, place);
  int64_t count = vector ? vector->getNumElements() : 1;
  b.CreateCall(farAngles(function), {place, b.getInt64(count), isCosine});
  return b.CreateLoad(x->getType(), place);
}

/// One test of all lanes, and a branch that is hardly ever taken.
static void expand(Group &group) {
  Instruction *last = group.back().result;
  Type *type = last->getType();
  auto *vector = dyn_cast<FixedVectorType>(type);
  IRBuilder<> b(last);
  Value *any = nullptr;
  for (Angle &choice : group) {
    if (!choice.isFar) {
      choice.isFar = isFar(b, choice.call->getArgOperand(0));
      choice.near = Constant::getNullValue(type);
    }
    any = any ? b.CreateOr(any, choice.isFar) : choice.isFar;
  }
  if (vector)
    any = b.CreateOrReduce(any);
  Instruction *next = last->getNextNode();
  b.SetInsertPoint(next);
  any = b.CreateFreeze(any);
  BasicBlock *before = last->getParent();
  Instruction *branch = SplitBlockAndInsertIfThen(
      any, next, /*Unreachable=*/false,
      MDBuilder(last->getContext()).createUnlikelyBranchWeights());
  for (Angle &choice : group) {
    b.SetInsertPoint(branch);
    Value *far = farOf(b, *choice.call);
    far = b.CreateSelect(choice.isFar, far, choice.near);
    b.SetInsertPoint(next);
    PHINode *y = b.CreatePHI(type, 2);
    y->addIncoming(choice.near, before);
    y->addIncoming(far, branch->getParent());
    choice.result->replaceAllUsesWith(y);
  }
  for (Angle &choice : group) {
    choice.result->eraseFromParent();
    if (choice.call != choice.result)
      choice.call->eraseFromParent();
  }
}

PreservedAnalyses tandem::FarAngles::run(Module &module,
                                         ModuleAnalysisManager &) {
  SmallVector<Group> groups;
  for (Function &function : module)
    for (BasicBlock &block : function)
      collect(block, groups);
  for (Group &group : groups)
    expand(group);
  return groups.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}
