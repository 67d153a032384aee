//===- MatrixCalls.cpp - mma, ldmatrix, stmatrix --------------------------===//
//
// A collective costs a turn of every lane, so products and loads that stand
// together and do not need one another's results become one call, where the
// last of them stands. Operands and results go through two arrays of the
// kernel: nothing of them is needed beyond the call.
//
//===----------------------------------------------------------------------===//
#include "compiler/emit/emulation/KernelChunk.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Instructions.h"

#include <bit>

using namespace llvm;
using namespace tandem::emulation;
namespace am = tandem::artifact;
using am::MmaType;

/// Words of 32 bits in the arrays for operands and results.
static constexpr uint64_t kArrayWords = 2048;

static std::optional<MmaType> typeOf(StringRef name) {
  return StringSwitch<std::optional<MmaType>>(name)
      .Case("f16", MmaType::F16)
      .Case("bf16", MmaType::BF16)
      .Case("tf32", MmaType::TF32)
      .Case("f32", MmaType::F32)
      .Case("f64", MmaType::F64)
      .Case("s8", MmaType::S8)
      .Case("u8", MmaType::U8)
      .Case("e4m3", MmaType::E4M3)
      .Case("e5m2", MmaType::E5M2)
      .Default(std::nullopt);
}

/// "m16n8k16.row.col.f32.f32" and the like; nothing for what the emulator does
/// not know.
static std::optional<am::MmaCode> codeOf(StringRef name) {
  am::MmaCode code;
  unsigned m, n, k;
  if (!name.consume_front("m") || name.consumeInteger(10, m) ||
      !name.consume_front("n") || name.consumeInteger(10, n) ||
      !name.consume_front("k") || name.consumeInteger(10, k) ||
      !name.consume_front(".row.col") || k > 32)
    return std::nullopt;
  code.m = m;
  code.n = n;
  code.k = k;
  code.saturates = name.consume_front(".satfinite");
  SmallVector<StringRef> parts;
  name.split(parts, '.', -1, false);
  SmallVector<MmaType> types;
  for (StringRef part : parts) {
    auto type = typeOf(part);
    if (!type)
      return std::nullopt;
    types.push_back(*type);
  }
  if (types.empty())
    return std::nullopt;
  MmaType first = types.front();
  bool isInteger = first == MmaType::S8 || first == MmaType::U8;
  if (types.size() == 4 && types[0] == types[3]) { // D, A, B, C
    code.d = types[0];
    code.a = types[1];
    code.b = types[2];
  } else if (types.size() == 2 && types[0] == types[1] && !isInteger) {
    code.d = first; // D and C of f16 products
    code.a = code.b = MmaType::F16;
  } else if (types.size() <= 2 && first != MmaType::F16 &&
             first != MmaType::F32 && (isInteger || types.size() == 1)) {
    code.a = first;
    code.b = types.back();
    code.d = isInteger               ? MmaType::S32
             : first == MmaType::F64 ? MmaType::F64
                                     : MmaType::F32;
  } else {
    return std::nullopt;
  }
  if (n != 8 || (m != 16 && m != 8) ||
      (m == 8 && code.d != MmaType::F64 && code.d != MmaType::S32))
    return std::nullopt;
  return code;
}

struct LoadCode {
  unsigned number = 0;
  bool transposed = false;
};

/// "sync.aligned.m8n8.x4.trans.b16.p3"
static std::optional<LoadCode> loadCodeOf(StringRef name) {
  LoadCode code;
  if (!name.consume_front("sync.aligned.m8n8.x") ||
      name.consumeInteger(10, code.number))
    return std::nullopt;
  code.transposed = name.consume_front(".trans");
  if (!name.consume_front(".b16") || (name != "" && !name.starts_with(".p")))
    return std::nullopt;
  return code;
}

static StringRef nameOf(CallInst &call) {
  Function *callee = call.getCalledFunction();
  StringRef name = callee ? callee->getName() : "";
  return name.consume_front("llvm.nvvm.") ? name : "";
}

static bool isLoad(CallInst &call) {
  return nameOf(call).starts_with("ldmatrix.");
}

static bool isMatrixCall(Instruction &instruction) {
  auto *call = dyn_cast<CallInst>(&instruction);
  return call && (isLoad(*call) || nameOf(*call).starts_with("mma."));
}

static uint64_t wordsOf(const DataLayout &layout, Type *type) {
  return divideCeil(layout.getTypeStoreSize(type).getFixedValue(), 4);
}

AllocaInst *KernelChunk::array(KernelRecord &kernel, AllocaInst *&place) {
  if (!place) {
    BasicBlock &entry = kernel.function->getEntryBlock();
    Builder b(&entry, entry.begin());
    place = b.CreateAlloca(ArrayType::get(b.getInt32Ty(), kArrayWords));
    place->setAlignment(Align(16));
    kernel.localBytes += kArrayWords * 4 + 16;
  }
  return place;
}

/// Whether the emulator knows all of them; else each is an error.
bool KernelChunk::knowsAll(ArrayRef<CallInst *> calls) {
  bool known = true;
  for (CallInst *call : calls) {
    StringRef name = nameOf(*call);
    if (isLoad(*call) ? loadCodeOf(name.drop_front(9)).has_value()
                      : codeOf(name.drop_front(4)).has_value())
      continue;
    error(*call, "the emulator has no '" +
                     call->getCalledFunction()->getName().str() + "'");
    known = false;
  }
  return known;
}

/// Replaces loads, or products of one kind, by one call before the last.
void KernelChunk::replaceMatrixGroup(ArrayRef<CallInst *> calls) {
  if (!knowsAll(calls)) {
    for (CallInst *call : calls)
      replace(*call, nullptr);
    return;
  }
  CallInst &last = *calls.back();
  KernelRecord &kernel = kernelOf(last);
  const DataLayout &layout = module.getDataLayout();
  Builder b(&last);
  Value *in = array(kernel, kernel.operands);
  Value *out = array(kernel, kernel.results);
  auto at = [&](Value *base, uint64_t word) {
    return b.CreateConstInBoundsGEP1_64(b.getInt32Ty(), base, word);
  };
  uint64_t word = 0;
  auto put = [&](Value *value) {
    own(b.CreateAlignedStore(value, at(in, word), Align(4)));
    word += wordsOf(layout, value->getType());
  };
  for (CallInst *call : calls) {
    for (Value *operand : call->args())
      put(operand->getType()->isPointerTy()
              ? b.CreatePointerBitCastOrAddrSpaceCast(operand, b.getPtrTy())
              : operand);
    if (isLoad(*call)) { // am::MatrixLoad
      LoadCode code = *loadCodeOf(nameOf(*call).drop_front(9));
      put(b.getInt32(code.number));
      put(b.getInt32(code.transposed));
    }
  }
  setSite(b, last, nameOf(last));
  Value *count = b.getInt32(calls.size());
  if (isLoad(last)) {
    callFunction(b, "ldmatrix", b.getVoidTy(), {kernel.thread, out, in, count});
  } else {
    am::MmaCode code = *codeOf(nameOf(last).drop_front(4));
    callFunction(b, "mma", b.getVoidTy(),
                 {kernel.thread, out, in,
                  b.getInt64(std::bit_cast<uint64_t>(code)), count});
  }
  word = 0;
  for (CallInst *call : calls) {
    auto *type = dyn_cast<StructType>(call->getType());
    SmallVector<Type *> elements{call->getType()};
    if (type)
      elements.assign(type->element_begin(), type->element_end());
    SmallVector<Value *> values;
    for (Type *element : elements) {
      values.push_back(
          own(b.CreateAlignedLoad(element, at(out, word), Align(4))));
      word += wordsOf(layout, element);
    }
    for (User *user : make_early_inc_range(call->users()))
      if (auto *extract = dyn_cast<ExtractValueInst>(user)) {
        extract->replaceAllUsesWith(values[extract->getIndices().front()]);
        extract->eraseFromParent();
      }
    Value *whole = values.front();
    if (type && !call->use_empty()) {
      whole = PoisonValue::get(type);
      for (auto [i, value] : enumerate(values))
        whole = b.CreateInsertValue(whole, value, i);
    }
    call->replaceAllUsesWith(whole);
    call->eraseFromParent();
  }
}

void KernelChunk::replaceMatrixCalls(KernelRecord &kernel) {
  const DataLayout &layout = module.getDataLayout();
  for (BasicBlock &block : *kernel.function) {
    std::vector<SmallVector<CallInst *>> groups;
    SmallVector<CallInst *> group;
    SmallPtrSet<Value *, 32> results; // of the group, and parts of them
    uint64_t words = 0;
    auto close = [&] {
      if (!group.empty())
        groups.push_back(std::move(group));
      group.clear();
      results.clear();
      words = 0;
    };
    for (Instruction &instruction : block) {
      bool uses = any_of(instruction.operands(),
                         [&](Use &use) { return results.contains(use.get()); });
      if (uses && isa<ExtractValueInst>(instruction)) {
        results.insert(&instruction);
        continue;
      }
      if (!isMatrixCall(instruction)) {
        bool loads = !group.empty() && isLoad(*group[0]);
        if (uses || (loads && instruction.mayWriteToMemory()))
          close();
        continue;
      }
      auto &call = cast<CallInst>(instruction);
      uint64_t needed = 0;
      for (Value *operand : call.args())
        needed += wordsOf(layout, operand->getType());
      // Loads of any kind go together, products of one kind.
      bool other = !group.empty() &&
                   group[0]->getCalledFunction() != call.getCalledFunction() &&
                   !(isLoad(*group[0]) && isLoad(call));
      if (uses || words + needed > kArrayWords / 4 || other)
        close();
      group.push_back(&call);
      results.insert(&call);
      words += needed;
    }
    close();
    for (ArrayRef<CallInst *> one : groups)
      replaceMatrixGroup(one);
  }
}

/// stmatrix.sync.aligned.m8n8.x4.trans.b16 (row address, registers)
bool KernelChunk::replaceStoreMatrix(CallInst &call, StringRef name) {
  if (!name.consume_front("stmatrix."))
    return false;
  auto code = loadCodeOf(name);
  if (!code)
    return false;
  KernelRecord &kernel = kernelOf(call);
  Builder b(&call);
  Value *in = array(kernel, kernel.operands);
  for (unsigned i = 0; i < code->number; ++i)
    own(b.CreateAlignedStore(
        call.getArgOperand(1 + i),
        b.CreateConstInBoundsGEP1_64(b.getInt32Ty(), in, i), Align(4)));
  setSite(b, call, nameOf(call));
  callFunction(b, "stmatrix", b.getVoidTy(),
               {kernel.thread,
                b.CreatePointerBitCastOrAddrSpaceCast(call.getArgOperand(0),
                                                      b.getPtrTy()),
                in, b.getInt32(code->number), b.getInt32(code->transposed)});
  replace(call, nullptr);
  return true;
}
