//===- ObjectCode.cpp - from LLVM functions to a shared object ------------===//
#include "compiler/emit/ObjectCode.h"
#include "compiler/emit/Chunks.h"
#include "compiler/emit/CodeGen.h"
#include "compiler/emit/KernelKeys.h"
#include "compiler/emit/Link.h"
#include "compiler/emit/Listener.h"
#include "compiler/emit/passes/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/Module.h"

using namespace mlir;
using namespace tandem;

static void setFunctionAttributes(llvm::Module &module, const CpuTarget &target,
                                  llvm::TargetMachine &machine) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    // Without it LLVM prefers 256 bits on processors that have 512.
    function.addFnAttr("prefer-vector-width",
                       std::to_string(target.vectorBits));
    function.addFnAttr(llvm::Attribute::NoUnwind);
    // Without a frame pointer stacks are aligned to 16 bytes: by the time that
    // spills of wider vectors ask for more it is too late to reserve one. They
    // would cross lines of the cache, and some of them pages.
    if (target.vectorBits > 128)
      function.addFnAttr("frame-pointer", "all");
  }
}

/// Of a kernel that no entry of the cache has.
static bool multipliesTiles(ModuleOp code) {
  auto result = code.walk([](LLVM::CallIntrinsicOp call) {
    return call.getIntrin().starts_with("llvm.x86.tdp")
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return result.wasInterrupted();
}

bool tandem::usesTiles(ModuleOp kernels, KernelCache *cache) {
  auto has = [&](LLVM::LLVMFuncOp function) {
    const CompiledKernel *entry =
        function.isExternal() ? keptCode(function, cache) : nullptr;
    return entry && entry->usesTiles;
  };
  return multipliesTiles(kernels) ||
         llvm::any_of(kernels.getOps<LLVM::LLVMFuncOp>(), has);
}

namespace {
/// What `effort` is for LLVM. The order of operations stays, but whether a
/// product and a sum that may be rounded as one are may differ.
struct EffortRow {
  llvm::StringLiteral optimize; ///< in the place of kCpuPipeline's level
  llvm::CodeGenOptLevel level;
  bool isVectorized, hasSlp; ///< loops; straight code, which costs much time
};
} // namespace

static constexpr EffortRow kEfforts[] = {
    {"<O0>", llvm::CodeGenOptLevel::None, false, false},
    {"<O1>", llvm::CodeGenOptLevel::Default, true, false},
    {"<O2>", llvm::CodeGenOptLevel::Aggressive, true, false},
    {"<O3>", llvm::CodeGenOptLevel::Aggressive, true, true}};

/// Without any optimization LLVM crashes on products in tiles (22.1.8, in the
/// selection of instructions: values of tiles that it lowered and freed).
static const EffortRow &effortFor(bool usesTiles, int effort) {
  return kEfforts[usesTiles ? std::max(effort, 1) : effort];
}

static Result<std::string> compileUnit(ModuleOp unit, const CpuTarget &target,
                                       const EffortRow &effort,
                                       TimingScope *timing) {
  llvm::LLVMContext context;
  TimingScope step = timed(timing, "translate to LLVM IR");
  std::string errors;
  context.setDiagnosticHandler(std::make_unique<Listener>(errors));
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(unit, context, "tandem");
  if (!module)
    return Status::failed("kernels could not be translated to LLVM IR");
  auto machine = createMachine(target, effort.level);
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  setFunctionAttributes(*module, target, *machine);
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = effort.isVectorized;
  tuning.SLPVectorization = effort.hasSlp;
  auto [before, behind] = StringRef(kCpuPipeline).split("<O2>");
  std::string pipeline = (before + effort.optimize + behind).str();
  step = timed(timing, "LLVM's passes");
  if (Status s =
          runPasses(*module, machine.get(), pipeline, tuning, kNoUseForKernels);
      !s)
    return s;
  step = timed(timing, "machine code");
  auto object = emitFile(*module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (!errors.empty())
    return Status::failed("kernels could not be compiled: " + errors);
  return object;
}

/// Those of `exported`, and those that they call behind them.
static Result<std::vector<KernelUnit>>
unitsOf(ModuleOp kernels, const std::vector<std::string> &exported,
        KernelCache *cache) {
  SymbolTable symbols(kernels);
  llvm::SetVector<Attribute> names;
  auto add = [&](StringRef name) {
    names.insert(StringAttr::get(kernels.getContext(), name));
  };
  for (const std::string &name : exported)
    add(name);
  std::vector<KernelUnit> units;
  for (size_t i = 0; i < names.size(); ++i) {
    StringRef name = cast<StringAttr>(names[i]);
    SmallVector<std::string> calls;
    auto unit =
        keptOrUnitOf(kernels, symbols, name, kernelSymbol, cache, calls);
    if (!unit)
      return unit.status();
    units.push_back(*std::move(unit));
    for (const std::string &call : calls)
      add(call);
  }
  return units;
}

/// The object of a unit, with its function's name.
static Result<std::string> objectOf(KernelUnit &unit, const CpuTarget &target,
                                    const ObjectOptions &options) {
  CompiledKernel made;
  if (!unit.entry) {
    made.usesTiles = multipliesTiles(*unit.code);
    auto object =
        compileUnit(*unit.code, made.usesTiles ? target : withoutTiles(target),
                    effortFor(made.usesTiles, options.effort), options.timing);
    if (!object)
      return object;
    made.object = *std::move(object);
    StringRef key = codeKey(unit.function);
    std::optional<CompiledFacts> facts = compiledFacts(unit.function);
    if (options.cache && facts && !key.empty()) {
      made.facts = *facts;
      options.cache->store(key, made);
    }
  }
  return renameSymbol(unit.entry ? unit.entry->object : made.object,
                      kernelSymbol, unit.function.getName());
}

Result<std::string> tandem::emitSharedObject(
    ModuleOp kernels, const std::vector<std::string> &exported,
    const CpuTarget &target, const ObjectOptions &options) {
  auto units = unitsOf(kernels, exported, options.cache);
  if (!units)
    return units.status();
  std::vector<std::string> objects(units->size());
  Status status = forEachIndex(units->size(), options.threads, [&](size_t i) {
    auto object = objectOf((*units)[i], target, options);
    if (object)
      objects[i] = std::move(*object);
    return object.status();
  });
  if (!status)
    return status;
  TimingScope link = timed(options.timing, "link");
  return linkSharedObject(objects, exported);
}
