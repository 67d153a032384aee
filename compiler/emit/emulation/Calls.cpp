//===- Calls.cpp - intrinsics and inline assembly become calls ------------===//
//
// An intrinsic is, in this order: a field of the thread; something that the
// host says in its own instructions; a function of the emulator with the same
// name (EmulatedFunctions.def); or an error.
//
//===----------------------------------------------------------------------===//
#include "compiler/emit/emulation/KernelChunk.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Intrinsics.h"

#include <cstddef>

using namespace llvm;
using namespace tandem::emulation;
namespace am = tandem::artifact;

void KernelChunk::replace(CallInst &call, Value *value) {
  if (value)
    call.replaceAllUsesWith(value);
  else if (!call.getType()->isVoidTy())
    call.replaceAllUsesWith(PoisonValue::get(call.getType()));
  call.eraseFromParent();
}

//===----------------------------------------------------------------------===//
// Calling convention (runtime/artifact/Emulation.h)
//===----------------------------------------------------------------------===//

/// The integer type that a value of `bits` bits is passed as.
static Type *wordOf(IRBuilder<> &b, uint64_t bits) {
  return bits <= 32 ? b.getInt32Ty() : b.getInt64Ty();
}

Value *KernelChunk::toEmulator(Builder &b, Value *value) {
  Type *type = value->getType();
  if (type->isPointerTy())
    return b.CreatePointerBitCastOrAddrSpaceCast(value, b.getPtrTy());
  if (type->isFloatTy() || type->isDoubleTy())
    return value;
  uint64_t bits = module.getDataLayout().getTypeSizeInBits(type);
  if (!type->isIntegerTy())
    value = b.CreateBitCast(value, b.getIntNTy(bits));
  return b.CreateZExtOrTrunc(value, wordOf(b, bits));
}

Value *KernelChunk::fromEmulator(Builder &b, Value *value, Type *type) {
  if (value->getType() == type)
    return value;
  uint64_t bits = module.getDataLayout().getTypeSizeInBits(type);
  value = b.CreateZExtOrTrunc(value, b.getIntNTy(bits));
  return type->isIntegerTy() ? value : b.CreateBitCast(value, type);
}

void KernelChunk::setSite(Builder &b, CallInst &call, StringRef name) {
  Value *thread = kernelOf(call).thread;
  own(b.CreateStore(
      b.getInt32(siteOf(call, ("'" + name + "'").str())),
      b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), thread,
                                   offsetof(am::EmulatedThread, site))));
}

/// Calls the function of the same name; false if there is none.
bool KernelChunk::replaceByFunction(CallInst &call, const std::string &name) {
  FunctionKind kind;
  if (!findFunction(name, kind))
    return false;
  Builder b(&call);
  Type *type = call.getType();
  SmallVector<Value *> arguments;
  AllocaInst *out = nullptr;
  if (kind != FunctionKind::Pure) {
    arguments.push_back(kernelOf(call).thread);
    setSite(b, call, name);
  }
  if (type->isStructTy()) {
    out = variable(call, type);
    arguments.push_back(out);
  }
  for (Value *argument : call.args())
    arguments.push_back(toEmulator(b, argument));
  Type *result = type;
  if (out)
    result = b.getVoidTy();
  else if (!type->isVoidTy() && !type->isFloatTy() && !type->isDoubleTy())
    result = type->isPointerTy()
                 ? type
                 : wordOf(b, module.getDataLayout().getTypeSizeInBits(type));
  Value *value = callFunction(b, name, result, arguments);
  if (out)
    value = own(b.CreateLoad(type, out));
  else if (!type->isVoidTy())
    value = fromEmulator(b, value, type);
  replace(call, type->isVoidTy() ? nullptr : value);
  return true;
}

//===----------------------------------------------------------------------===//
// Special registers
//===----------------------------------------------------------------------===//

/// The field of EmulatedThread that a register is, or -1.
static int64_t fieldOf(StringRef reg) {
  using Thread = am::EmulatedThread;
  auto of = [&](StringRef name, int64_t field) -> int64_t {
    StringRef dimension = reg;
    if (!dimension.consume_front(name))
      return -1;
    int64_t i = dimension == ".x"   ? 0
                : dimension == ".y" ? 1
                : dimension == ".z" ? 2
                                    : -1;
    return i < 0 ? -1 : field + i * 4;
  };
  // A cluster is a block.
  const std::pair<StringRef, int64_t> triples[] = {
      {"tid", offsetof(Thread, tid)},
      {"ntid", offsetof(Thread, ntid)},
      {"ctaid", offsetof(Thread, ctaid)},
      {"nctaid", offsetof(Thread, nctaid)},
      {"clusterid", offsetof(Thread, ctaid)},
      {"nclusterid", offsetof(Thread, nctaid)}};
  for (auto [name, field] : triples)
    if (int64_t found = of(name, field); found >= 0)
      return found;
  return StringSwitch<int64_t>(reg)
      .Case("laneid", offsetof(Thread, lane))
      .Case("warpid", offsetof(Thread, warp))
      .Case("nwarpid", offsetof(Thread, warps))
      .Case("dynamic.smem.size", offsetof(Thread, dynamicShared))
      .Case("dynamic_smem_size", offsetof(Thread, dynamicShared))
      .Case("total.smem.size", offsetof(Thread, totalShared))
      .Case("total_smem_size", offsetof(Thread, totalShared))
      .Default(-1);
}

bool KernelChunk::replaceRegister(CallInst &call, StringRef name) {
  if (!name.consume_front("read.ptx.sreg."))
    return false;
  Builder b(&call);
  Type *i32 = b.getInt32Ty();
  if (int64_t field = fieldOf(name); field >= 0) {
    replace(call, threadField(b, field, i32));
    return true;
  }
  auto is = [&](ArrayRef<StringRef> names) {
    return is_contained(names, name);
  };
  int64_t constant = -1;
  if (name == "warpsize")
    constant = 32;
  else if (is({"cluster.ctaid.x", "cluster.ctaid.y", "cluster.ctaid.z",
               "cluster.ctarank", "smid", "gridid"}))
    constant = 0;
  else if (is({"cluster.nctaid.x", "cluster.nctaid.y", "cluster.nctaid.z",
               "cluster.nctarank", "nsmid"}))
    constant = 1;
  if (constant >= 0) {
    replace(call, ConstantInt::get(call.getType(), constant));
    return true;
  }
  if (name.consume_front("lanemask.")) {
    Value *lane = threadField(b, offsetof(am::EmulatedThread, lane), i32);
    Value *bit = b.CreateShl(b.getInt32(1), lane);
    Value *below = b.CreateSub(bit, b.getInt32(1));
    Value *mask = nullptr;
    if (name == "eq")
      mask = bit;
    else if (name == "lt")
      mask = below;
    else if (name == "le")
      mask = b.CreateOr(below, bit);
    else if (name == "gt")
      mask = b.CreateNot(b.CreateOr(below, bit));
    else if (name == "ge")
      mask = b.CreateNot(below);
    if (!mask)
      return false;
    replace(call, mask);
    return true;
  }
  if (name == "clock" || name == "clock64" || name == "globaltimer" ||
      name == "globaltimer.lo") {
    setSite(b, call, name);
    Value *time =
        callFunction(b, "clock", b.getInt64Ty(), {kernelOf(call).thread});
    replace(call, b.CreateZExtOrTrunc(time, call.getType()));
    return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// What the host can say itself
//===----------------------------------------------------------------------===//

/// Hints, and orders of memory that threads that take turns always have.
static bool isNothing(StringRef name) {
  FunctionKind kind;
  if (findFunction(name, kind))
    return false;
  for (StringRef prefix :
       {"membar.cta", "fence.acquire.", "fence.release.", "fence.sc.",
        "fence.mbarrier_init.", "fence.proxy.", "prefetch.", "prefetchu.",
        "applypriority.", "setmaxnreg.", "griddepcontrol.", "pm.event.mask"})
    if (name.starts_with(prefix))
      return true;
  return false;
}

bool KernelChunk::replaceInline(CallInst &call, StringRef name) {
  Builder b(&call);
  if (isNothing(name)) {
    replace(call, nullptr);
    return true;
  }
  if (name.starts_with("move.")) {
    replace(call, call.getArgOperand(0));
    return true;
  }
  if (name.starts_with("fabs.") && !name.starts_with("fabs.ftz")) {
    replace(call,
            b.CreateUnaryIntrinsic(Intrinsic::fabs, call.getArgOperand(0)));
    return true;
  }
  if (name == "isspacep.shared" || name == "isspacep.shared.cluster") {
    Value *base =
        threadField(b, offsetof(am::EmulatedThread, shared), b.getPtrTy());
    Value *bytes = threadField(b, offsetof(am::EmulatedThread, totalShared),
                               b.getInt32Ty());
    Value *offset =
        b.CreateSub(b.CreatePtrToInt(call.getArgOperand(0), b.getInt64Ty()),
                    b.CreatePtrToInt(base, b.getInt64Ty()));
    replace(call, b.CreateICmpULT(offset, b.CreateZExt(bytes, b.getInt64Ty())));
    return true;
  }
  // Shuffles move bits, whatever they mean.
  if (name.starts_with("shfl.sync.") &&
      (name.ends_with(".f32") || name.ends_with(".f32p"))) {
    bool pair = name.ends_with("p");
    std::string other =
        name.drop_back(pair ? 4 : 3).str() + (pair ? "i32p" : "i32");
    SmallVector<Value *> arguments(call.args());
    arguments[1] = b.CreateBitCast(arguments[1], b.getInt32Ty());
    Type *type = pair ? StructType::get(b.getInt32Ty(), b.getInt1Ty())
                      : static_cast<Type *>(b.getInt32Ty());
    auto callee = module.getOrInsertFunction(
        "llvm.nvvm." + other,
        FunctionType::get(
            type,
            {b.getInt32Ty(), b.getInt32Ty(), b.getInt32Ty(), b.getInt32Ty()},
            false));
    CallInst *bits = b.CreateCall(callee, arguments);
    bits->setDebugLoc(call.getDebugLoc());
    Value *value = bits;
    if (pair) {
      Value *first =
          b.CreateBitCast(b.CreateExtractValue(bits, 0), b.getFloatTy());
      value = b.CreateInsertValue(PoisonValue::get(call.getType()), first, 0);
      value = b.CreateInsertValue(value, b.CreateExtractValue(bits, 1), 1);
    } else {
      value = b.CreateBitCast(bits, b.getFloatTy());
    }
    replace(call, value);
    return replaceByFunction(*bits, other);
  }
  return false;
}

//===----------------------------------------------------------------------===//
// All calls
//===----------------------------------------------------------------------===//

void KernelChunk::replaceCall(CallInst &call) {
  if (call.isInlineAsm())
    return replaceAssembly(call);
  Function *callee = call.getCalledFunction();
  if (!callee)
    return error(call, "an indirect call");
  StringRef name = callee->getName();
  if (name.consume_front("llvm.nvvm.")) {
    if (!replaceRegister(call, name) && !replaceInline(call, name) &&
        !replaceStoreMatrix(call, name) && !replaceTensorCopy(call, name) &&
        !replaceByFunction(call, name.str()))
      error(call, "the emulator has no '" + callee->getName().str() + "'");
    return;
  }
  if (callee->getIntrinsicID() == Intrinsic::trap ||
      callee->getIntrinsicID() == Intrinsic::debugtrap) {
    Builder b(&call);
    setSite(b, call, name);
    callFunction(b, "trap", b.getVoidTy(), {kernelOf(call).thread});
    return replace(call, nullptr);
  }
  if (!callee->isIntrinsic())
    error(call, "a call of '" + name.str() + "', which is not there");
}

void KernelChunk::replaceCalls() {
  for (KernelRecord &kernel : kernels) {
    replaceMatrixCalls(kernel);
    SmallVector<CallInst *> calls;
    for (Instruction &instruction : instructions(kernel.function)) {
      auto *call = dyn_cast<CallInst>(&instruction);
      // Calls through the table are the emulator's.
      if (call && (call->getCalledFunction() || call->isInlineAsm() ||
                   !call->doesNotThrow()))
        calls.push_back(call);
    }
    for (CallInst *call : calls)
      replaceCall(*call);
  }
}
