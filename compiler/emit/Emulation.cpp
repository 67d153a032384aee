//===- Emulation.cpp - kernels for the kernel emulator --------------------===//
#include "compiler/emit/Emulation.h"
#include "compiler/Target.h"
#include "compiler/emit/Chunks.h"
#include "compiler/emit/CodeGen.h"
#include "compiler/emit/Link.h"
#include "compiler/emit/emulation/KernelChunk.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace tandem;
using emulation::KernelChunk;
namespace am = tandem::artifact;

/// The same on every machine of an architecture.
static Result<CpuTarget> emulationTarget() {
#if defined(__x86_64__)
  return parseCpuTarget("cpu:x86-64-v3");
#else
  return parseCpuTarget("cpu:generic");
#endif
}

static std::string symbolOf(size_t chunk) {
  return std::string(am::kEmulationSymbol) + "_" + std::to_string(chunk);
}

static void setTarget(Module &module, TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
}

/// Makes host code of an NVVM module.
static Status retarget(Module &module, const std::string &symbol) {
  KernelChunk chunk(module);
  chunk.makeKernels();
  if (Status s = chunk.status(); !s)
    return s;
  chunk.placeVariables();
  chunk.checkAccesses();
  chunk.replaceCalls();
  chunk.legalize();
  chunk.addTables(symbol);
  return chunk.status();
}

static Result<std::string> compileChunk(const DeviceModule &kernels,
                                        size_t index, const CpuTarget &target) {
  LLVMContext context;
  auto module =
      parseBitcodeFile(MemoryBufferRef(kernels.bitcode, "kernels"), context);
  if (!module)
    return Status::failed("kernels cannot be read: " +
                          toString(module.takeError()));
  for (GlobalObject &object : (*module)->global_objects())
    if (StringRef name = object.getName(); name.consume_front(deviceSymbol))
      object.setName(kernels.kernel + name.str());
  // The emulator's checks are most of a run, and the code of a kernel a tenth:
  // to make better machine code took longer than it saved.
  auto machine = createMachine(target, CodeGenOptLevel::None);
  if (Status s = retarget(**module, symbolOf(index)); !s)
    return s;
  // What NVPTX alone understands.
  for (StringRef name : {"nvvm.annotations", "nvvmir.version"})
    if (NamedMDNode *node = (*module)->getNamedMetadata(name))
      node->eraseFromParent();
  if (NamedMDNode *flags = (*module)->getModuleFlagsMetadata())
    flags->eraseFromParent();
  StripDebugInfo(**module);
  setTarget(**module, *machine);
  for (Function &function : **module)
    if (!function.isDeclaration()) {
      function.addFnAttr("target-cpu", target.arch);
      function.addFnAttr("target-features", machine->getTargetFeatureString());
    }
  std::string problems;
  raw_string_ostream stream(problems);
  if (verifyModule(**module, &stream))
    return Status::failed("the emulation image's code is wrong: " + problems);
  // The kernels are optimized already; what the steps added is not.
  if (Status s = runPasses(**module, machine.get(),
                           "function(sroa,early-cse,instsimplify,dce)");
      !s)
    return s;
  return emitFile(**module, *machine, CodeGenFileType::ObjectFile);
}

/// The object that lists the chunks.
static Result<std::string> compileIndex(size_t chunks,
                                        const CpuTarget &target) {
  LLVMContext context;
  Module module("index", context);
  auto machine = createMachine(target);
  setTarget(module, *machine);
  Type *pointer = PointerType::get(context, 0);
  auto *i32 = Type::getInt32Ty(context);
  SmallVector<Constant *> list;
  for (size_t i = 0; i < chunks; ++i) {
    auto *chunk =
        new GlobalVariable(module, pointer, true, GlobalValue::ExternalLinkage,
                           nullptr, symbolOf(i));
    chunk->setVisibility(GlobalValue::HiddenVisibility);
    list.push_back(chunk);
  }
  auto *type = ArrayType::get(pointer, list.size());
  auto *array =
      new GlobalVariable(module, type, true, GlobalValue::InternalLinkage,
                         ConstantArray::get(type, list), "chunks");
  Constant *image =
      ConstantStruct::getAnon({ConstantInt::get(i32, am::kEmulationVersion),
                               ConstantInt::get(i32, chunks), array});
  new GlobalVariable(module, image->getType(), true,
                     GlobalValue::ExternalLinkage, image, am::kEmulationSymbol);
  return emitFile(module, *machine, CodeGenFileType::ObjectFile);
}

Result<std::string>
tandem::emitEmulation(const std::vector<DeviceModule> &modules, int threads) {
  auto target = emulationTarget();
  if (!target)
    return target.status();
  std::vector<std::string> objects(modules.size() + 1);
  Status status = forEachIndex(objects.size(), threads, [&](size_t i) {
    auto object = i < modules.size() ? compileChunk(modules[i], i, *target)
                                     : compileIndex(modules.size(), *target);
    if (object)
      objects[i] = std::move(*object);
    return object.status();
  });
  if (!status)
    return status;
  return linkSharedObject(objects);
}
