//===- DeviceCode.cpp - from kernels to PTX -------------------------------===//
#include "compiler/emit/DeviceCode.h"
#include "compiler/emit/Chunks.h"
#include "compiler/emit/CodeGen.h"
#include "compiler/emit/DeviceChecks.h"
#include "compiler/emit/KernelKeys.h"
#include "compiler/emit/Listener.h"
#include "compiler/emit/passes/Passes.h"
#include "ir/Dialect.h"
#include "ir/KernelFunctions.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Module.h"

using namespace mlir;
using namespace tandem;

/// Says how many threads a block has, so that ptxas gives no kernel more
/// registers than a block of that size can have.
static void setBlock(ModuleOp code, LLVM::LLVMFuncOp original) {
  KernelFactsAttr about = KernelFactsAttr::of(original);
  DenseI64ArrayAttr block = about ? about.getBlock() : DenseI64ArrayAttr();
  auto function = code.lookupSymbol<LLVM::LLVMFuncOp>(deviceSymbol);
  if (!block || !function)
    return;
  SmallVector<int32_t> sizes(block.asArrayRef());
  // PTX takes one of the two.
  function->removeAttr(NVVM::NVVMDialect::getMaxntidAttrName());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    DenseI32ArrayAttr::get(code.getContext(), sizes));
}

/// Shared variables as the hardware and PTX want them, and names that say
/// nothing of other kernels.
static void prepare(llvm::Module &module) {
  const llvm::DataLayout &layout = module.getDataLayout();
  unsigned number = 0;
  auto rename = [&](llvm::GlobalValue &value) {
    value.setName(std::string(deviceSymbol) + "$" + std::to_string(number++));
  };
  for (llvm::GlobalVariable &variable : module.globals()) {
    if (variable.getAddressSpace() == 3) {
      // Asynchronous copies and ldmatrix move 16 bytes; of internal variables
      // only the element's alignment would be kept.
      bool isDynamic = layout.getTypeAllocSize(variable.getValueType()) == 0;
      llvm::Align least(isDynamic ? 128 : 16);
      variable.setAlignment(std::max(least, variable.getAlign().valueOrOne()));
      // What is given at the launch: as an internal variable it would be one of
      // a byte with an address of its own.
      if (isDynamic) {
        variable.setInitializer(nullptr);
        variable.setLinkage(llvm::GlobalValue::ExternalLinkage);
      }
    }
    rename(variable);
  }
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (function.hasLocalLinkage())
      rename(function);
  }
}

/// `text` with the kernel's name.
static std::string named(std::string text, StringRef name) {
  StringRef symbol = deviceSymbol;
  for (size_t at = 0; (at = text.find(symbol, at)) != std::string::npos;
       at += name.size())
    text.replace(at, symbol.size(), name);
  return text;
}

/// The version of PTX that the kernel needs beside what the architecture needs.
static unsigned ptxVersionFor(ModuleOp code) {
  // From 8.4 on there are products of f8 values by mma.sync.
  bool hasFloats8 = false;
  code.walk([&](LLVM::CallIntrinsicOp call) {
    StringRef name = call.getIntrin();
    hasFloats8 |= name.contains(".e4m3.") || name.contains(".e5m2.");
  });
  if (hasFloats8)
    return 84;
  // Until 8.1 parameters had 4352 bytes.
  bool hasMany =
      llvm::any_of(code.getOps<LLVM::LLVMFuncOp>(), [](LLVM::LLVMFuncOp f) {
        return f.getNumArguments() * 8 > 4352;
      });
  return hasMany ? 81 : 0;
}

static Status compileUnit(ModuleOp code, StringRef name,
                          const CudaTarget &target, bool keepBitcode,
                          CompiledKernel &made, TimingScope *timing) {
  llvm::LLVMContext context;
  TimingScope step = timed(timing, "translate to LLVM IR");
  std::string errors;
  context.setDiagnosticHandler(std::make_unique<Listener>(errors));
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(code, context, "tandem");
  if (!module)
    return Status::failed("kernels could not be translated to LLVM IR");
  auto machine = createMachine(target, ptxVersionFor(code));
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  prepare(*module);
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false; // a thread's registers are scalars
  tuning.LoopInterleaving = false;
  step = timed(timing, "LLVM's passes");
  if (Status s = runPasses(*module, machine.get(), kCudaPipeline, tuning); !s)
    return s;
  if (Status s = checkOptimized(*module); !s)
    return Status::unsupported(named(s.message(), name));
  if (keepBitcode) {
    llvm::raw_string_ostream stream(made.bitcode);
    llvm::WriteBitcodeToFile(*module, stream);
  }
  step = timed(timing, "PTX");
  auto text = emitFile(*module, *machine, llvm::CodeGenFileType::AssemblyFile);
  if (!text)
    return text.status();
  if (!errors.empty())
    return Status::failed("kernels could not be translated to PTX: " +
                          named(errors, name));
  made.object = std::move(*text);
  return Status::success();
}

/// The number of a text's version of PTX: 8000 of 8.0, 8010 of 8.10.
static unsigned versionOf(StringRef text) {
  StringRef line = text.split("\n.version ").second.split('\n').first;
  unsigned major = 0, minor = 0;
  line.split('.').first.getAsInteger(10, major);
  line.split('.').second.getAsInteger(10, minor);
  return 1000 * major + minor;
}

/// One text, with the header of the latest version once.
static std::string join(const std::vector<std::string> &texts) {
  constexpr StringLiteral lastOfHeader = ".address_size 64\n";
  std::string header, body;
  unsigned latest = 0;
  for (StringRef text : texts) {
    auto [first, rest] = text.split(lastOfHeader);
    if (unsigned version = versionOf(text); version > latest) {
      latest = version;
      header = (first + lastOfHeader).str();
    }
    body += rest;
  }
  return header + body;
}

Result<KernelCode>
tandem::emitDeviceCode(gpu::GPUModuleOp kernels,
                       const std::vector<std::string> &exported,
                       const CudaTarget &target, bool keepBitcode, int threads,
                       TimingScope *timing, KernelCache *cache) {
  if (Status s = checkKernels(kernels, exported, target); !s)
    return s;
  SymbolTable symbols(kernels);
  std::vector<KernelUnit> units(exported.size());
  for (auto [unit, name] : llvm::zip_equal(units, exported)) {
    SmallVector<std::string> calls; // a kernel calls none
    auto found =
        keptOrUnitOf(kernels, symbols, name, deviceSymbol, cache, calls);
    if (!found)
      return found.status();
    unit = *std::move(found);
    if (unit.code)
      setBlock(*unit.code, unit.function);
  }
  std::vector<std::string> texts(units.size());
  KernelCode code;
  code.modules.resize(keepBitcode ? units.size() : 0);
  Status status = forEachIndex(units.size(), threads, [&](size_t i) {
    KernelUnit &unit = units[i];
    CompiledKernel made;
    if (!unit.entry) {
      if (Status s = compileUnit(*unit.code, exported[i], target, keepBitcode,
                                 made, timing);
          !s)
        return s;
      KernelFactsAttr facts = KernelFactsAttr::of(unit.function);
      StringRef key = codeKey(unit.function);
      if (cache && facts && !key.empty()) {
        llvm::raw_string_ostream(made.launch) << facts;
        cache->store(key, made);
      }
    }
    const CompiledKernel &kernel = unit.entry ? *unit.entry : made;
    texts[i] = named(kernel.object, exported[i]);
    if (keepBitcode)
      code.modules[i] = {kernel.bitcode, exported[i]};
    return Status::success();
  });
  if (!status)
    return status;
  code.ptx = join(texts);
  return code;
}
