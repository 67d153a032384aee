//===- Kernels.cpp - kernels with the emulator's signature, and tables ----===//
#include "compiler/emit/emulation/KernelChunk.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <cstddef>

using namespace llvm;
using namespace tandem::emulation;
namespace am = tandem::artifact;

bool tandem::emulation::findFunction(StringRef name, FunctionKind &kind) {
  static const StringMap<FunctionKind> table = [] {
    StringMap<FunctionKind> all;
#define PURE(name, function) all[name] = FunctionKind::Pure;
#define THREAD(name, function) all[name] = FunctionKind::Thread;
#define WARP(name, function) all[name] = FunctionKind::Warp;
#define BLOCK(name, function) all[name] = FunctionKind::Block;
#define PARTIAL(name, function) all[name] = FunctionKind::Partial;
#include "runtime/artifact/EmulatedFunctions.def"
    return all;
  }();
  auto it = table.find(name);
  if (it == table.end())
    return false;
  kind = it->second;
  return true;
}

//===----------------------------------------------------------------------===//
// What the steps share
//===----------------------------------------------------------------------===//

KernelRecord &KernelChunk::kernelOf(Instruction &instruction) {
  return kernels[kernelIndex.lookup(instruction.getFunction())];
}

std::string KernelChunk::placeOf(const Instruction &instruction) const {
  if (DILocation *location = instruction.getDebugLoc())
    if (location->getLine())
      return " at " + location->getFilename().str() + ":" +
             std::to_string(location->getLine()) + ":" +
             std::to_string(location->getColumn());
  return "";
}

void KernelChunk::error(const Instruction &where, const std::string &what) {
  errors.push_back("kernel '" + where.getFunction()->getName().str() +
                   "': " + what + placeOf(where));
}

tandem::Status KernelChunk::status() const {
  if (errors.empty())
    return Status::success();
  std::string text = "kernels cannot be emulated";
  for (const std::string &one : errors)
    text += "\n" + one;
  return Status::unsupported(text);
}

uint32_t KernelChunk::siteOf(const Instruction &instruction,
                             const std::string &what) {
  auto number = static_cast<uint32_t>(sites.size());
  std::string place = placeOf(instruction);
  sites.push_back(what + (place.empty()
                              ? " (place " + std::to_string(number) + ")"
                              : place));
  return number;
}

Value *KernelChunk::threadField(Builder &b, uint64_t offset, Type *type) {
  Function *function = b.GetInsertBlock()->getParent();
  Value *thread = kernels[kernelIndex.lookup(function)].thread;
  LoadInst *load = own(b.CreateLoad(
      type, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), thread, offset)));
  load->setMetadata(LLVMContext::MD_invariant_load,
                    MDNode::get(module.getContext(), {}));
  return load;
}

CallInst *KernelChunk::callFunction(Builder &b, const std::string &name,
                                    Type *result, ArrayRef<Value *> arguments) {
  FunctionKind kind = FunctionKind::Pure;
  bool known = findFunction(name, kind);
  assert(known && "a function that is not in EmulatedFunctions.def");
  (void)known;
  uint32_t &flags =
      kernels[kernelIndex.lookup(b.GetInsertBlock()->getParent())].flags;
  if (kind >= FunctionKind::Warp)
    flags |= am::kEmulatedSynchronizes;
  if (kind == FunctionKind::Partial)
    flags |= am::kEmulatedPartialSync;
  auto [it, isNew] =
      functions.insert({name, static_cast<uint32_t>(functions.size())});
  if (!functionTable) // its size and contents come with the tables
    functionTable = new GlobalVariable(module, b.getPtrTy(), false,
                                       GlobalValue::ExternalLinkage, nullptr,
                                       "tandem.functions");
  LoadInst *callee = b.CreateLoad(
      b.getPtrTy(),
      b.CreateConstInBoundsGEP1_64(b.getPtrTy(), functionTable, it->second));
  callee->setMetadata(LLVMContext::MD_invariant_load,
                      MDNode::get(module.getContext(), {}));
  SmallVector<Type *> types;
  for (Value *argument : arguments)
    types.push_back(argument->getType());
  CallInst *call =
      b.CreateCall(FunctionType::get(result, types, false), callee, arguments);
  call->setDoesNotThrow();
  if (kind == FunctionKind::Pure) {
    call->setDoesNotAccessMemory();
    call->addFnAttr(Attribute::WillReturn);
  }
  return call;
}

AllocaInst *KernelChunk::variable(Instruction &user, Type *type) {
  BasicBlock &entry = user.getFunction()->getEntryBlock();
  Builder b(&entry, entry.begin());
  return b.CreateAlloca(type);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

void KernelChunk::makeKernels() {
  SmallVector<Function *> originals;
  for (Function &function : module) {
    function.removeFnAttr("target-cpu");
    function.removeFnAttr("target-features");
    if (function.isDeclaration())
      continue;
    if (function.getCallingConv() == CallingConv::PTX_Kernel)
      originals.push_back(&function);
  }
  Type *pointer = PointerType::get(module.getContext(), 0);
  auto *type = FunctionType::get(Type::getVoidTy(module.getContext()),
                                 {pointer, pointer}, false);
  const DataLayout &layout = module.getDataLayout();
  for (Function *original : originals) {
    KernelRecord record;
    record.name = original->getName().str();
    auto *kernel =
        Function::Create(type, GlobalValue::InternalLinkage, "", &module);
    kernel->takeName(original);
    kernel->addFnAttr(Attribute::NoUnwind);
    kernel->setSubprogram(original->getSubprogram());
    original->setSubprogram(nullptr);
    kernel->splice(kernel->begin(), original);
    Builder b(&kernel->getEntryBlock(), kernel->getEntryBlock().begin());
    for (Argument &argument : original->args()) {
      Type *valueType = argument.getType();
      Value *place = own(b.CreateLoad(
          pointer, b.CreateConstInBoundsGEP1_64(pointer, kernel->getArg(1),
                                                argument.getArgNo())));
      Value *value = place;
      if (argument.hasByValAttr())
        valueType = argument.getParamByValType();
      else
        value = own(b.CreateLoad(valueType, place));
      if (value->getType() != argument.getType())
        value = b.CreateAddrSpaceCast(value, argument.getType());
      record.parameterBytes.push_back(
          static_cast<uint32_t>(layout.getTypeAllocSize(valueType)));
      argument.replaceAllUsesWith(value);
    }
    // How the host can name it in traces; kernels are called by the tables.
    if (!original->use_empty())
      errors.push_back("kernel '" + record.name + "' is used by other code");
    else
      original->eraseFromParent();
    record.function = kernel;
    record.thread = kernel->getArg(0);
    kernelIndex[kernel] = kernels.size();
    kernels.push_back(std::move(record));
  }

  // Device functions are inlined, callees first, until no call is left.
  for (KernelRecord &kernel : kernels) {
    for (unsigned round = 0;; ++round) {
      SmallVector<CallInst *> calls;
      for (Instruction &instruction : instructions(kernel.function))
        if (auto *call = dyn_cast<CallInst>(&instruction))
          if (Function *callee = call->getCalledFunction())
            if (!callee->isDeclaration())
              calls.push_back(call);
      if (calls.empty())
        break;
      if (round == 64) {
        error(*calls.front(),
              "recursive call of '" +
                  calls.front()->getCalledFunction()->getName().str() + "'");
        break;
      }
      for (CallInst *call : calls) {
        InlineFunctionInfo info;
        InlineResult result = InlineFunction(*call, info);
        if (!result.isSuccess()) {
          error(*call, std::string("a call cannot be inlined: ") +
                           result.getFailureReason());
          return;
        }
      }
    }
  }
  for (Function &function : make_early_inc_range(module))
    if (!function.isDeclaration() && !kernelIndex.count(&function)) {
      function.dropAllReferences();
      function.setLinkage(GlobalValue::ExternalLinkage);
    }
  for (Function &function : make_early_inc_range(module))
    if (function.isDeclaration() && function.use_empty())
      function.eraseFromParent();
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

void KernelChunk::addTables(const std::string &symbol) {
  LLVMContext &context = module.getContext();
  Type *pointer = PointerType::get(context, 0);
  auto *i32 = Type::getInt32Ty(context);
  auto *i64 = Type::getInt64Ty(context);
  auto number = [&](uint64_t value) { return ConstantInt::get(i32, value); };
  auto wide = [&](uint64_t value) { return ConstantInt::get(i64, value); };
  auto internal = [&](Constant *value, bool isConstant,
                      const Twine &name) -> GlobalVariable * {
    return new GlobalVariable(module, value->getType(), isConstant,
                              GlobalValue::InternalLinkage, value, name);
  };
  auto array = [&](Type *type, ArrayRef<Constant *> values,
                   const Twine &name) -> Constant * {
    auto *arrayType = ArrayType::get(type, values.size());
    return internal(ConstantArray::get(arrayType, values), true, name);
  };
  auto text = [&](StringRef value) -> Constant * {
    return internal(ConstantDataArray::getString(context, value), true,
                    "tandem.text");
  };

  // EmulatedKernel
  SmallVector<Constant *> records;
  auto *kernelType =
      StructType::get(context, {pointer, pointer, pointer, i32, i32, i64, i64});
  for (KernelRecord &kernel : kernels) {
    SmallVector<Constant *> bytes;
    for (uint32_t one : kernel.parameterBytes)
      bytes.push_back(number(one));
    records.push_back(ConstantStruct::get(
        kernelType, {text(kernel.name), kernel.function,
                     array(i32, bytes, "tandem.parameters"),
                     number(bytes.size()), number(kernel.flags),
                     wide(kernel.sharedBytes), wide(kernel.localBytes)}));
  }
  SmallVector<Constant *> names, places, data;
  for (auto &[name, index] : functions)
    names.push_back(text(name));
  for (const std::string &site : sites)
    places.push_back(text(site));
  auto *constantType = StructType::get(context, {pointer, i64});
  for (GlobalVariable *constant : constants)
    data.push_back(ConstantStruct::get(
        constantType,
        {ConstantExpr::getPointerBitCastOrAddrSpaceCast(constant, pointer),
         wide(module.getDataLayout().getTypeAllocSize(
             constant->getValueType()))}));
  auto *tableType = ArrayType::get(pointer, names.size());
  GlobalVariable *table = internal(ConstantAggregateZero::get(tableType), false,
                                   "tandem.function-table");
  if (functionTable) {
    functionTable->replaceAllUsesWith(table);
    functionTable->eraseFromParent();
    functionTable = nullptr;
  }
  // EmulatedChunk
  Constant *fields[] = {number(records.size()),
                        number(data.size()),
                        array(kernelType, records, "tandem.kernels"),
                        array(pointer, names, "tandem.function-names"),
                        table,
                        number(names.size()),
                        number(places.size()),
                        array(pointer, places, "tandem.sites"),
                        array(constantType, data, "tandem.constants")};
  auto *variable = new GlobalVariable(
      module,
      StructType::get(context, {i32, i32, pointer, pointer, pointer, i32, i32,
                                pointer, pointer}),
      true, GlobalValue::ExternalLinkage, ConstantStruct::getAnon(fields),
      symbol);
  variable->setVisibility(GlobalValue::HiddenVisibility);
}

static_assert(offsetof(am::EmulatedChunk, kernels) == 8 &&
              offsetof(am::EmulatedChunk, functionCount) == 32 &&
              offsetof(am::EmulatedChunk, constants) == 48 &&
              offsetof(am::EmulatedKernel, parameterCount) == 24 &&
              offsetof(am::EmulatedKernel, localBytes) == 40);
