//===- Assembly.cpp - inline assembly, and bulk copies of tensors ---------===//
//
// Inline assembly is known by its text: one instruction whose operands are the
// call's in order; the loop around mbarrier.try_wait and the wgmma.mma_async
// that MLIR's NVVM dialect writes; and what orders wgmma with registers.
//
//===----------------------------------------------------------------------===//
#include "compiler/emit/emulation/KernelChunk.h"

#include "llvm/IR/InlineAsm.h"

#include <bit>

using namespace llvm;
using namespace tandem::emulation;
namespace am = tandem::artifact;
using am::MmaType;
using am::WgmmaCode;

/// The text without the places where assembly may have white space.
static std::string withoutSpaces(StringRef text) {
  std::string packed;
  for (char c : text)
    if (!isSpace(c))
      packed += c;
  return packed;
}

static bool consumeOperand(StringRef &text, unsigned &number) {
  return text.consume_front("$") && !text.consumeInteger(10, number);
}

/// The numbers of "{$0,$1}" or "$0", without a comma after them.
static bool consumeList(StringRef &text, SmallVectorImpl<unsigned> &numbers) {
  bool isList = text.consume_front("{");
  do {
    unsigned number;
    if (!consumeOperand(text, number))
      return false;
    numbers.push_back(number);
  } while (isList && text.consume_front(","));
  return !isList || text.consume_front("}");
}

static std::optional<MmaType> elementOf(StringRef &text) {
  const std::pair<StringRef, MmaType> types[] = {
      {".f16", MmaType::F16},   {".bf16", MmaType::BF16},
      {".tf32", MmaType::TF32}, {".f32", MmaType::F32},
      {".e4m3", MmaType::E4M3}, {".e5m2", MmaType::E5M2},
      {".s8", MmaType::S8},     {".u8", MmaType::U8},
      {".s32", MmaType::S32}};
  for (auto [name, type] : types)
    if (text.consume_front(name))
      return type;
  return std::nullopt;
}

/// {.reg.pred p; setp.ne.b32 p, $s, 0;
/// wgmma.mma_async.sync.aligned.m64nNkK.D.A.B {D}, A, B, p[, scale-a, scale-b[,
/// transpose-a, transpose-b]];}, of A in registers without transpose-a;
/// integers have no scales
bool KernelChunk::replaceWgmma(CallInst &call, StringRef text) {
  unsigned results = call.getType()->isStructTy()
                         ? cast<StructType>(call.getType())->getNumElements()
                         : 1;
  auto operand = [&](unsigned number) -> Value * {
    return number >= results && number - results < call.arg_size()
               ? call.getArgOperand(number - results)
               : nullptr;
  };
  unsigned scaleD, n, k;
  SmallVector<unsigned> d, a, b, immediates;
  if (!text.consume_front("{.reg.predp;setp.ne.b32p,") ||
      !consumeOperand(text, scaleD) ||
      !text.consume_front(",0;wgmma.mma_async.sync.aligned.m64n") ||
      text.consumeInteger(10, n) || !text.consume_front("k") ||
      text.consumeInteger(10, k))
    return false;
  auto dType = elementOf(text), aType = elementOf(text),
       bType = elementOf(text);
  if (!dType || !aType || !bType || !consumeList(text, d) ||
      !text.consume_front(",") || !consumeList(text, a) ||
      !text.consume_front(",") || !consumeList(text, b) ||
      !text.consume_front(",p"))
    return false;
  while (text.consume_front(",")) {
    unsigned number;
    if (!consumeOperand(text, number))
      return false;
    immediates.push_back(number);
  }
  unsigned registers = *dType == MmaType::F16 ? n / 4 : n / 2;
  bool isInteger = *dType == MmaType::S32;
  auto isByte = [](MmaType type) {
    return type == MmaType::S8 || type == MmaType::U8;
  };
  if (isInteger != isByte(*aType) || isInteger != isByte(*bType))
    return false;
  if (text != ";}" || b.size() != 1 || (a.size() != 1 && a.size() != 4) ||
      d.size() != results || d.size() != registers || n % 8 || n > 256 ||
      immediates.size() < (isInteger ? 0u : 2u) ||
      immediates.size() > (isInteger       ? 0u
                           : a.size() == 4 ? 3u
                                           : 4u))
    return false;
  WgmmaCode code;
  code.n8 = n / 8;
  code.a = *aType;
  code.b = *bType;
  code.d = *dType;
  SmallVector<int64_t> values;
  for (unsigned number : immediates) {
    auto *constant = dyn_cast_or_null<ConstantInt>(operand(number));
    if (!constant)
      return false;
    values.push_back(constant->getSExtValue());
  }
  code.flags = a.size() == 4 ? WgmmaCode::kARegisters : 0;
  if (values.size() >= 2)
    code.flags |= (values[0] == -1 ? WgmmaCode::kNegateA : 0) |
                  (values[1] == -1 ? WgmmaCode::kNegateB : 0);
  if (values.size() == 3) // A in registers is not transposed
    code.flags |= values[2] ? WgmmaCode::kTransposeB : 0;
  if (values.size() == 4)
    code.flags |= (values[2] ? WgmmaCode::kTransposeA : 0) |
                  (values[3] ? WgmmaCode::kTransposeB : 0);

  // The call's first arguments are D's old registers.
  SmallVector<Value *> operands;
  for (unsigned i = 0; i < results; ++i)
    operands.push_back(operand(results + i));
  operands.push_back(operand(scaleD));
  for (unsigned number : a)
    operands.push_back(operand(number));
  operands.push_back(operand(b[0]));
  if (llvm::is_contained(operands, nullptr))
    return false;
  KernelRecord &kernel = kernelOf(call);
  const DataLayout &layout = module.getDataLayout();
  Builder builder(&call);
  Value *in = array(kernel, kernel.operands);
  Value *out = array(kernel, kernel.results);
  auto at = [&](Value *base, uint64_t word) {
    return builder.CreateConstInBoundsGEP1_64(builder.getInt32Ty(), base, word);
  };
  uint64_t word = 0;
  for (Value *value : operands) {
    if (value->getType()->isIntegerTy(1))
      value = builder.CreateZExt(value, builder.getInt32Ty());
    own(builder.CreateAlignedStore(value, at(in, word), Align(4)));
    word += divideCeil(layout.getTypeStoreSize(value->getType()), 4);
  }
  setSite(builder, call, "wgmma.mma_async");
  callFunction(builder, "wgmma", builder.getVoidTy(),
               {kernel.thread, out, in,
                builder.getInt64(std::bit_cast<uint64_t>(code))});
  Value *whole = PoisonValue::get(call.getType());
  for (unsigned i = 0; i < results; ++i) {
    Type *type = call.getType()->isStructTy()
                     ? cast<StructType>(call.getType())->getElementType(i)
                     : call.getType();
    Value *value = own(builder.CreateAlignedLoad(type, at(out, i), Align(4)));
    whole = call.getType()->isStructTy()
                ? builder.CreateInsertValue(whole, value, i)
                : value;
  }
  replace(call, whole);
  return true;
}

/// wgmma.fence or wgmma.wait_group, through which registers pass: the results
/// are the operands.
bool KernelChunk::replaceOrder(CallInst &call, StringRef text) {
  auto *type = dyn_cast<StructType>(call.getType());
  StringRef name = text.split(' ').first;
  name.consume_back(";");
  bool isWait = name == "wgmma.wait_group.sync.aligned";
  StringRef number = text.drop_front(name.size()).ltrim();
  uint64_t groups = 0;
  if (!type || type->getNumElements() != call.arg_size() ||
      (isWait ? number.consumeInteger(10, groups)
              : name != "wgmma.fence.sync.aligned") ||
      number != ";")
    return false;
  Builder builder(&call);
  setSite(builder, call, name);
  SmallVector<Value *> arguments = {kernelOf(call).thread};
  if (isWait)
    arguments.push_back(builder.getInt64(groups));
  callFunction(builder, name.str(), builder.getVoidTy(), arguments);
  Value *whole = PoisonValue::get(type);
  for (unsigned i = 0; i < call.arg_size(); ++i)
    whole = builder.CreateInsertValue(whole, call.getArgOperand(i), i);
  replace(call, whole);
  return true;
}

void KernelChunk::replaceAssembly(CallInst &call) {
  auto *assembly = cast<InlineAsm>(call.getCalledOperand());
  StringRef text = StringRef(assembly->getAsmString()).trim();
  StringRef line = text;
  line.consume_back(";");
  auto [mnemonic, operands] = line.split(' ');
  unsigned results = call.getType()->isVoidTy() ? 0 : 1;
  SmallVector<StringRef> parts;
  operands.split(parts, ',', -1, false);
  bool inOrder = parts.size() == results + call.arg_size() &&
                 !call.getType()->isStructTy();
  for (size_t i = 0; i < parts.size() && inOrder; ++i)
    inOrder = parts[i].trim() == "$" + std::to_string(i);
  if (inOrder && replaceByFunction(call, ("asm " + mnemonic).str()))
    return;
  std::string packed = withoutSpaces(text);
  if (packed == "{.reg.predP1;LAB_WAIT:mbarrier.try_wait.parity.shared.b64P1,["
                "$0],$1,$2;@P1bra.uniDONE;bra.uniLAB_WAIT;DONE:}" &&
      replaceByFunction(call, "mbarrier.loop.parity"))
    return;
  if (replaceWgmma(call, packed) || replaceOrder(call, text))
    return;
  error(call, "the emulator has no inline assembly '" + text.str() + "'");
}

/// cp.async.bulk.tensor.g2s[.cta].tile.Nd (to, mbarrier, map, coordinates, ...)
/// and s2g.tile.Nd (from, map, coordinates, ...)
bool KernelChunk::replaceTensorCopy(CallInst &call, StringRef name) {
  if (!name.consume_front("cp.async.bulk.tensor."))
    return false;
  bool loads = name.consume_front("g2s.");
  if (!loads && !name.consume_front("s2g."))
    return false;
  bool ofBlock = name.consume_front("cta.");
  unsigned rank;
  if (!name.consume_front("tile.") || name.consumeInteger(10, rank) ||
      name != "d" || rank > 5)
    return false;
  unsigned first = loads ? 3 : 2;
  if (loads && !ofBlock) { // multicast to blocks of a cluster
    auto *multicast =
        dyn_cast<ConstantInt>(call.getArgOperand(first + rank + 2));
    if (!multicast || !multicast->isZero())
      return false;
  }
  KernelRecord &kernel = kernelOf(call);
  Builder b(&call);
  Value *coordinates = array(kernel, kernel.operands);
  for (unsigned i = 0; i < rank; ++i)
    own(b.CreateStore(
        call.getArgOperand(first + i),
        b.CreateConstInBoundsGEP1_64(b.getInt32Ty(), coordinates, i)));
  setSite(b, call, call.getCalledFunction()->getName());
  SmallVector<Value *> arguments{kernel.thread};
  for (unsigned i = 0; i < first; ++i)
    arguments.push_back(toEmulator(b, call.getArgOperand(i)));
  arguments.push_back(coordinates);
  arguments.push_back(b.getInt32(rank));
  callFunction(b, loads ? "tma.load" : "tma.store", b.getVoidTy(), arguments);
  replace(call, nullptr);
  return true;
}
