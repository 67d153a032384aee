//===- Accesses.cpp - checks before every access to memory ----------------===//
#include "compiler/emit/emulation/KernelChunk.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/NVPTXAddrSpace.h"

using namespace llvm;
using namespace tandem::emulation;
namespace am = tandem::artifact;

static std::string typeName(Type *type) {
  std::string text;
  raw_string_ostream stream(text);
  type->print(stream);
  return text;
}

/// The number of bytes of the variable that `pointer` points into, and how far
/// it points, if both are constants.
static bool isInside(Value *pointer, uint64_t accessed,
                     const DataLayout &layout) {
  APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
  Value *base = pointer->stripAndAccumulateConstantOffsets(
      layout, offset, /*AllowNonInbounds=*/true);
  uint64_t bytes = 0;
  if (auto *local = dyn_cast<AllocaInst>(base))
    bytes = *local->getAllocationSize(layout);
  else if (auto *global = dyn_cast<GlobalVariable>(base))
    bytes = layout.getTypeAllocSize(global->getValueType());
  else
    return false;
  return offset.isNonNegative() && offset.getZExtValue() <= bytes &&
         accessed <= bytes - offset.getZExtValue();
}

static uint32_t spaceFlag(Value *pointer) {
  return pointer->getType()->getPointerAddressSpace() ==
                 NVPTXAS::ADDRESS_SPACE_SHARED
             ? am::kAccessShared
             : 0;
}

/// The emulator's address of a pointer in any address space.
static Value *generic(IRBuilder<> &b, Value *pointer) {
  return b.CreatePointerBitCastOrAddrSpaceCast(pointer, b.getPtrTy());
}

void KernelChunk::checkAccess(Instruction &access, Value *pointer, Type *type,
                              Align alignment, uint32_t flags) {
  const DataLayout &layout = module.getDataLayout();
  if ((flags & am::kAccessAtomic) && !spaceFlag(pointer))
    kernelOf(access).flags |= am::kEmulatedHandsOver;
  uint64_t bytes = layout.getTypeStoreSize(type);
  if (isInside(pointer, bytes, layout) && !(flags & am::kAccessAtomic))
    return;
  Builder b(&access);
  std::string what =
      std::string(access.getOpcodeName()) + " of '" + typeName(type) + "'";
  uint32_t site = siteOf(access, what);
  Value *thread = kernelOf(access).thread;
  Value *object = getUnderlyingObject(pointer);
  if (auto *local = dyn_cast<AllocaInst>(object)) {
    callFunction(
        b, "check.local", b.getVoidTy(),
        {thread, generic(b, pointer), b.getInt32(bytes), generic(b, local),
         b.getInt64(*local->getAllocationSize(layout)), b.getInt32(site)});
    return;
  }
  flags |= spaceFlag(pointer) | Log2(alignment) << am::kAccessAlignShift;
  callFunction(b, "check.access", b.getVoidTy(),
               {thread, generic(b, pointer), b.getInt32(bytes),
                b.getInt32(flags), b.getInt32(site)});
}

void KernelChunk::checkRange(Instruction &access, Value *pointer, Value *bytes,
                             uint32_t flags) {
  const DataLayout &layout = module.getDataLayout();
  if (auto *constant = dyn_cast<ConstantInt>(bytes))
    if (isInside(pointer, constant->getZExtValue(), layout))
      return;
  Builder b(&access);
  callFunction(b, "check.range", b.getVoidTy(),
               {kernelOf(access).thread, generic(b, pointer),
                b.CreateZExtOrTrunc(bytes, b.getInt64Ty()),
                b.getInt32(flags | spaceFlag(pointer)),
                b.getInt32(siteOf(access, "a copy of memory"))});
}

void KernelChunk::checkAccessesOf(Instruction &instruction) {
  if (auto *load = dyn_cast<LoadInst>(&instruction)) {
    bool polls = load->isVolatile() || load->isAtomic();
    checkAccess(*load, load->getPointerOperand(), load->getType(),
                load->getAlign(), polls ? am::kAccessAtomic : 0);
  } else if (auto *store = dyn_cast<StoreInst>(&instruction)) {
    bool atomic = store->isVolatile() || store->isAtomic();
    checkAccess(*store, store->getPointerOperand(),
                store->getValueOperand()->getType(), store->getAlign(),
                am::kAccessWrite | (atomic ? am::kAccessAtomic : 0));
  } else if (auto *rmw = dyn_cast<AtomicRMWInst>(&instruction)) {
    checkAccess(*rmw, rmw->getPointerOperand(), rmw->getType(), rmw->getAlign(),
                am::kAccessWrite | am::kAccessAtomic | am::kAccessModifies);
  } else if (auto *cas = dyn_cast<AtomicCmpXchgInst>(&instruction)) {
    checkAccess(*cas, cas->getPointerOperand(),
                cas->getNewValOperand()->getType(), cas->getAlign(),
                am::kAccessWrite | am::kAccessAtomic | am::kAccessModifies);
  } else if (auto *set = dyn_cast<AnyMemSetInst>(&instruction)) {
    checkRange(*set, set->getRawDest(), set->getLength(), am::kAccessWrite);
  } else if (auto *copy = dyn_cast<AnyMemTransferInst>(&instruction)) {
    checkRange(*copy, copy->getRawSource(), copy->getLength(), 0);
    checkRange(*copy, copy->getRawDest(), copy->getLength(), am::kAccessWrite);
  }
}

void KernelChunk::checkAccesses() {
  for (KernelRecord &kernel : kernels) {
    // What the steps before added is not the kernel's.
    SmallVector<Instruction *> all;
    for (Instruction &instruction : instructions(kernel.function))
      if (!instruction.hasMetadata(kOwn))
        all.push_back(&instruction);
    for (Instruction *instruction : all)
      checkAccessesOf(*instruction);
  }
}
