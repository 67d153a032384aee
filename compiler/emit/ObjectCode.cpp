//===- ObjectCode.cpp - from LLVM functions to a shared object ------------===//
//
// Kernels are compiled in chunks of a fixed size, each in an LLVM context of
// its own: several chunks at a time, and the bytes depend on nothing but the
// input. A function that several chunks use is compiled in each.
//
//===----------------------------------------------------------------------===//
#include "compiler/emit/ObjectCode.h"
#include "compiler/emit/Link.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"

#include <atomic>
#include <thread>

using namespace mlir;
using namespace tandem;

/// Kernels in one chunk: enough to share LLVM's start-up, few enough that two
/// threads have work to share.
static constexpr size_t kChunk = 4;

/// Adds `op` and every symbol that it uses, directly or not.
static void collect(Operation *op, SymbolTable &symbols,
                    llvm::SetVector<Operation *> &needed) {
  if (!needed.insert(op))
    return;
  auto uses = SymbolTable::getSymbolUses(op);
  if (!uses)
    return;
  for (SymbolTable::SymbolUse use : *uses)
    if (Operation *used = symbols.lookup(use.getSymbolRef().getRootReference()))
      collect(used, symbols, needed);
}

/// Copies the functions `names` and what they use into a module of their own,
/// where only `names` are visible from outside.
static OwningOpRef<ModuleOp> extract(ModuleOp kernels, SymbolTable &symbols,
                                     ArrayRef<std::string> names) {
  llvm::SetVector<Operation *> needed;
  for (const std::string &name : names)
    collect(symbols.lookup(name), symbols, needed);
  OwningOpRef<ModuleOp> chunk = ModuleOp::create(kernels.getLoc());
  OpBuilder b = OpBuilder::atBlockEnd(chunk->getBody());
  for (Operation &op : *kernels.getBody()) {
    if (!needed.contains(&op))
      continue;
    Operation *copy = b.clone(op);
    auto symbol = dyn_cast<SymbolOpInterface>(copy);
    bool exported = symbol && llvm::is_contained(names, symbol.getName());
    if (auto func = dyn_cast<LLVM::LLVMFuncOp>(copy)) {
      for (NamedAttribute attr : llvm::to_vector(func->getDiscardableAttrs()))
        if (attr.getName().getValue().starts_with("tandem."))
          func->removeDiscardableAttr(attr.getName());
      if (!func.isExternal())
        func.setLinkage(exported ? LLVM::Linkage::External
                                 : LLVM::Linkage::Internal);
    } else if (auto global = dyn_cast<LLVM::GlobalOp>(copy)) {
      global.setLinkage(LLVM::Linkage::Internal);
    }
  }
  return chunk;
}

static void setFunctionAttributes(llvm::Module &module, const CpuTarget &target,
                                  llvm::TargetMachine &machine) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.arch);
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    // Without it LLVM prefers 256 bits on processors that have 512.
    function.addFnAttr("prefer-vector-width",
                       std::to_string(target.vectorBits));
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = false; // kernels are loops; SLP costs compile time
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2)
      .run(module, modules);
}

static Result<std::string> compileChunk(ModuleOp chunk,
                                        const CpuTarget &target) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(chunk, context, "tandem");
  if (!module)
    return Status::failed("kernels could not be translated to LLVM IR");
  auto machine = createMachine(target);
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  setFunctionAttributes(*module, target, *machine);
  optimize(*module, *machine);
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager codegen;
  if (machine->addPassesToEmitFile(codegen, stream, nullptr,
                                   llvm::CodeGenFileType::ObjectFile))
    return Status::unsupported("LLVM cannot emit objects for this target");
  codegen.run(*module);
  return object.str().str();
}

Result<std::string>
tandem::emitSharedObject(ModuleOp kernels,
                         const std::vector<std::string> &exported,
                         const CpuTarget &target, int threads) {
  SymbolTable symbols(kernels);
  std::vector<OwningOpRef<ModuleOp>> chunks;
  ArrayRef<std::string> names(exported);
  for (; !names.empty();
       names = names.drop_front(std::min(kChunk, names.size())))
    chunks.push_back(extract(kernels, symbols, names.take_front(kChunk)));

  std::vector<std::string> objects(chunks.size());
  std::vector<Status> statuses(chunks.size());
  std::atomic<size_t> next = 0;
  auto work = [&] {
    for (size_t i; (i = next++) < chunks.size();) {
      auto object = compileChunk(*chunks[i], target);
      if (object)
        objects[i] = std::move(*object);
      else
        statuses[i] = object.status();
    }
  };
  if (threads <= 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> workers;
  for (int i = 1; i < threads && i < static_cast<int>(chunks.size()); ++i)
    workers.emplace_back(work);
  work();
  for (std::thread &worker : workers)
    worker.join();
  for (Status &status : statuses)
    if (!status)
      return status;
  return linkSharedObject(objects);
}
