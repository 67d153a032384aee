//===- DeviceCode.cpp - from kernels to PTX -------------------------------===//
#include "compiler/emit/DeviceCode.h"
#include "compiler/emit/Chunks.h"
#include "compiler/emit/CodeGen.h"
#include "compiler/emit/DeviceChecks.h"
#include "compiler/emit/Listener.h"
#include "compiler/emit/passes/Passes.h"
#include "ir/Dialect.h"

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
static void setBlocks(ModuleOp chunk, gpu::GPUModuleOp kernels) {
  for (auto function : chunk.getOps<LLVM::LLVMFuncOp>()) {
    auto original = kernels.lookupSymbol<LLVM::LLVMFuncOp>(function.getName());
    KernelFactsAttr about = KernelFactsAttr::of(original);
    DenseI64ArrayAttr block = about ? about.getBlock() : DenseI64ArrayAttr();
    if (!block)
      continue;
    SmallVector<int32_t> sizes(block.asArrayRef());
    // PTX takes one of the two.
    function->removeAttr(NVVM::NVVMDialect::getMaxntidAttrName());
    function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                      DenseI32ArrayAttr::get(chunk.getContext(), sizes));
  }
}

/// Shared variables as the hardware and PTX want them, and names that differ
/// from those of other chunks.
static void prepare(llvm::Module &module, size_t chunk) {
  const llvm::DataLayout &layout = module.getDataLayout();
  std::string suffix = "$" + std::to_string(chunk);
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
    variable.setName(variable.getName() + suffix);
  }
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr(llvm::Attribute::NoUnwind);
    if (function.hasLocalLinkage())
      function.setName(function.getName() + suffix);
  }
}

static Status compileChunk(ModuleOp chunk, size_t index,
                           const CudaTarget &target, unsigned ptxVersion,
                           std::string &ptx, std::string *bitcode,
                           TimingScope *timing) {
  llvm::LLVMContext context;
  TimingScope step = timed(timing, "translate to LLVM IR");
  std::string errors;
  context.setDiagnosticHandler(std::make_unique<Listener>(errors));
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(chunk, context, "tandem");
  if (!module)
    return Status::failed("kernels could not be translated to LLVM IR");
  auto machine = createMachine(target, ptxVersion);
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  prepare(*module, index);
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false; // a thread's registers are scalars
  tuning.LoopInterleaving = false;
  step = timed(timing, "LLVM's passes");
  if (Status s = runPasses(*module, machine.get(), kCudaPipeline, tuning); !s)
    return s;
  if (Status s = checkOptimized(*module); !s)
    return s;
  if (bitcode) {
    llvm::raw_string_ostream stream(*bitcode);
    llvm::WriteBitcodeToFile(*module, stream);
  }
  step = timed(timing, "PTX");
  auto text = emitFile(*module, *machine, llvm::CodeGenFileType::AssemblyFile);
  if (!text)
    return text.status();
  if (!errors.empty())
    return Status::failed("kernels could not be translated to PTX: " + errors);
  ptx = std::move(*text);
  return Status::success();
}

/// One text, with the header once.
static std::string join(const std::vector<std::string> &texts) {
  constexpr StringLiteral lastOfHeader = ".address_size 64\n";
  std::string joined;
  for (StringRef text : texts) {
    auto [header, body] = text.split(lastOfHeader);
    if (joined.empty())
      joined = (header + lastOfHeader).str();
    joined += body;
  }
  return joined;
}

/// The version of PTX that the kernels need beside what the architecture needs.
static unsigned ptxVersionFor(gpu::GPUModuleOp kernels) {
  // From 8.4 on there are products of f8 values by mma.sync.
  bool hasFloats8 = false;
  kernels.walk([&](LLVM::CallIntrinsicOp call) {
    StringRef name = call.getIntrin();
    hasFloats8 |= name.contains(".e4m3.") || name.contains(".e5m2.");
  });
  if (hasFloats8)
    return 84;
  // Until 8.1 parameters had 4352 bytes.
  bool hasMany =
      llvm::any_of(kernels.getOps<LLVM::LLVMFuncOp>(), [](LLVM::LLVMFuncOp f) {
        return f.getNumArguments() * 8 > 4352;
      });
  return hasMany ? 81 : 0;
}

Result<KernelCode>
tandem::emitDeviceCode(gpu::GPUModuleOp kernels,
                       const std::vector<std::string> &exported,
                       const CudaTarget &target, bool keepBitcode, int threads,
                       TimingScope *timing) {
  if (Status s = checkKernels(kernels, exported, target); !s)
    return s;
  std::vector<Chunk> chunks = chunksOf(kernels, exported);
  for (Chunk &chunk : chunks)
    setBlocks(*chunk, kernels);
  unsigned version = ptxVersionFor(kernels);
  std::vector<std::string> texts(chunks.size());
  KernelCode code;
  code.bitcode.resize(keepBitcode ? chunks.size() : 0);
  Status status = forEachIndex(chunks.size(), threads, [&](size_t i) {
    return compileChunk(*chunks[i], i, target, version, texts[i],
                        keepBitcode ? &code.bitcode[i] : nullptr, timing);
  });
  if (!status)
    return status;
  code.ptx = join(texts);
  return code;
}
