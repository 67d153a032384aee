//===- JitKernel.cpp - one kernel, compiled and called --------------------===//
#include "tests/support/JitKernel.h"

#include "compiler/emit/CodeGen.h"
#include "compiler/emit/ObjectCode.h"
#include "compiler/emit/passes/Passes.h"
#include "ir/reference/Elements.h"
#include "ir/reference/Evaluator.h"
#include "passes/pipelines/Pipelines.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

#include <cstdlib>
#include <cstring>
#include <map>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

static constexpr int64_t kGuard = 256;

KernelBuffer::KernelBuffer(int64_t bytes, uint8_t fill)
    : memory(bytes + 64 + kGuard, fill), bytes(bytes) {
  auto address = reinterpret_cast<uintptr_t>(memory.data());
  start = memory.data() + (64 - address % 64) % 64;
  std::memset(start + bytes, 0xCD, kGuard);
}

bool KernelBuffer::guardIntact() const {
  for (int64_t i = 0; i < kGuard; ++i)
    if (start[bytes + i] != 0xCD)
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

namespace tandem::test {
/// What LLVM made of a kernel's function.
struct MachineCode {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  JitKernel::Function function = nullptr;
};
} // namespace tandem::test

/// Compiles the function `symbol` of `code`; null, with the reason in `error`,
/// if that fails.
static std::shared_ptr<MachineCode>
compileCode(ModuleOp code, const std::string &symbol, int vectorBits,
            Optimized optimized, std::string &error) {
  // Products in tiles are optimized as --effort=0 does it, too.
  bool isLeast = optimized == Optimized::Least && !usesTiles(code, nullptr);
  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  auto module = translateModuleToLLVMIR(code, *llvmContext);
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!module || !builder) {
    error += "no LLVM module\n";
    return nullptr;
  }
  builder->setCodeGenOptLevel(isLeast ? llvm::CodeGenOptLevel::None
                                      : llvm::CodeGenOptLevel::Aggressive);
  builder->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Fast;
  auto machine = llvm::cantFail(builder->createTargetMachine());
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  for (llvm::Function &f : *module)
    if (!f.isDeclaration()) {
      f.addFnAttr("target-cpu", machine->getTargetCPU());
      f.addFnAttr("target-features", machine->getTargetFeatureString());
      f.addFnAttr("prefer-vector-width", std::to_string(vectorBits));
    }
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = !isLeast;
  tuning.SLPVectorization = false;
  auto [before, behind] = StringRef(kCpuPipeline).split("<O2>");
  std::string pipeline = (before + (isLeast ? "<O0>" : "<O2>") + behind).str();
  if (Status s =
          runPasses(*module, machine.get(), pipeline, tuning, kNoUseForKernels);
      !s) {
    error += s.message() + "\n";
    return nullptr;
  }
  if (const char *dump = std::getenv("TANDEM_DUMP_KERNEL")) {
    std::error_code failure;
    llvm::raw_fd_ostream stream(dump, failure);
    module->print(stream, nullptr);
  }
  auto made = std::make_shared<MachineCode>();
  made->jit =
      llvm::cantFail(llvm::orc::LLJITBuilder()
                         .setJITTargetMachineBuilder(std::move(*builder))
                         .create());
  llvm::cantFail(made->jit->addIRModule(
      llvm::orc::ThreadSafeModule(std::move(module), std::move(llvmContext))));
  auto address = made->jit->lookup(symbol);
  if (!address) {
    error += llvm::toString(address.takeError());
    return nullptr;
  }
  made->function = address->toPtr<JitKernel::Function>();
  return made;
}

/// The same, once for all modules of this text: many schedules cut a small
/// kernel alike, and what is not one of its numbers is no part of its code.
static std::shared_ptr<MachineCode>
machineCodeOf(ModuleOp code, const std::string &symbol, int vectorBits,
              Optimized optimized, std::string &error) {
  static std::map<std::string, std::shared_ptr<MachineCode>> known;
  std::string key = std::to_string(vectorBits) +
                    (optimized == Optimized::Least ? " least " : " ") + symbol +
                    '\n';
  llvm::raw_string_ostream(key) << code;
  auto at = known.find(key);
  if (at != known.end())
    return at->second;
  auto made = compileCode(code, symbol, vectorBits, optimized, error);
  if (!made)
    return nullptr;
  if (known.size() >= 256) // memory
    known.clear();
  known.emplace(std::move(key), made);
  return made;
}

int test::hostVectorBits() {
  static const llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  return host.lookup("avx512f") ? 512 : host.lookup("avx2") ? 256 : 128;
}

JitKernel::JitKernel(const std::string &text, int vectorBits,
                     Optimized optimized) {
  ScopedDiagnosticHandler handler(&context, [this](Diagnostic &diagnostic) {
    error += diagnostic.str() + "\n";
    return success();
  });
  context.disableMultithreading();
  context.loadDialect<TandemDialect, func::FuncDialect>();
  registerBuiltinDialectTranslation(context);
  registerLLVMDialectTranslation(context);
  original = parseSourceString<ModuleOp>(text, &context);
  if (original)
    compile(vectorBits, optimized);
}

JitKernel::~JitKernel() = default;

void JitKernel::compile(int vectorBits, Optimized optimized) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  Builder b(&context);
  if (vectorBits == 0)
    vectorBits = hostVectorBits();
  original.get()->setAttr(kPhaseAttr, b.getStringAttr("plan"));
  TargetAttr target = TargetAttr::of(original.get());
  if (!target)
    target =
        TargetAttr::get(&context, TargetKind::Cpu, b.getDictionaryAttr({}));
  original.get()->setAttr(
      kTargetAttr,
      target.with(TargetAttr::kVectorBits, b.getI64IntegerAttr(vectorBits)));
  lowered = cast<ModuleOp>(original.get()->clone());
  PassManager passes(&context);
  addLowerToCpuPasses(passes);
  passes.enableVerifier(false); // once is enough, as in the compiler
  if (failed(passes.run(*lowered)) || failed(verify(*lowered)))
    return;
  LaunchOp launch;
  lowered->walk([&](LaunchOp op) { launch = op; });
  if (!launch) {
    error += "no kernel\n";
    return;
  }
  work = launch.getWork();
  grain = launch.getGrain();
  for (Type type : launch->getOperandTypes())
    inputTypes.push_back(cast<RankedTensorType>(type));
  for (Type type : launch->getResultTypes())
    outputTypes.push_back(cast<RankedTensorType>(type));
  auto code = lowered->lookupSymbol<ModuleOp>("cpu");
  std::string symbol = launch.getKernel().getLeafReference().str();
  if (auto facts = KernelFactsAttr::of(code.lookupSymbol(symbol)))
    scratchBytes = facts.getScratchBytes();
  code.walk(
      [](LLVM::LLVMFuncOp func) { func->removeDiscardableAttr(kKernelAttr); });

  machineCode = machineCodeOf(code, symbol, vectorBits, optimized, error);
  if (machineCode)
    function = machineCode->function;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

void JitKernel::run(std::vector<void *> &buffers, int64_t piece,
                    bool backwards) {
  KernelBuffer scratch(scratchBytes, 0xFF);
  beginLaunch(scratch.data());
  int64_t pieces = (work + piece - 1) / piece;
  for (int64_t i = 0; i < pieces; ++i) {
    int64_t begin = (backwards ? pieces - 1 - i : i) * piece;
    function(buffers.data(), begin, std::min(begin + piece, work),
             scratch.data());
  }
  if (!scratch.guardIntact())
    error += "scratch overrun\n";
}

std::vector<std::vector<uint8_t>>
JitKernel::outputs(const std::vector<reference::Array> &inputs, int64_t piece,
                   bool backwards) {
  std::vector<KernelBuffer> memory;
  memory.reserve(inputTypes.size() + outputTypes.size());
  for (size_t i = 0; i < inputTypes.size(); ++i) {
    memory.emplace_back(byteSize(inputTypes[i]));
    reference::encode(inputs[i], inputTypes[i].getElementType(),
                      memory.back().data());
  }
  for (RankedTensorType type : outputTypes)
    memory.emplace_back(byteSize(type));
  std::vector<void *> buffers;
  for (KernelBuffer &buffer : memory)
    buffers.push_back(buffer.data());
  run(buffers, piece, backwards);
  std::vector<std::vector<uint8_t>> results;
  for (size_t i = 0; i < memory.size(); ++i) {
    if (!memory[i].guardIntact())
      error += "buffer " + std::to_string(i) + " overrun\n";
    auto *bytes = static_cast<uint8_t *>(memory[i].data());
    if (i >= inputTypes.size())
      results.emplace_back(bytes, bytes + memory[i].size());
  }
  return results;
}

std::vector<reference::Array>
JitKernel::expected(const std::vector<reference::Array> &inputs) {
  func::FuncOp func;
  original->walk([&](func::FuncOp op) { func = op; });
  auto results = reference::evaluate(func, inputs);
  if (failed(results))
    return {};
  return {results->begin(), results->end()};
}
