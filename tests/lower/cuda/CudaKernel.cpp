//===- CudaKernel.cpp - one kernel, compiled for CUDA and emulated --------===//
#include "tests/lower/cuda/CudaKernel.h"
#include "tests/support/JitKernel.h"

#include "compiler/Compile.h"
#include "ir/reference/Elements.h"
#include "ir/reference/Evaluator.h"
#include "passes/pipelines/Pipelines.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

CudaKernel::CudaKernel(const std::string &text, const CudaOptions &options) {
  ScopedDiagnosticHandler handler(&context, [this](Diagnostic &diagnostic) {
    error += diagnostic.str() + "\n";
    return success();
  });
  context.disableMultithreading();
  DialectRegistry registry;
  registerCompiler(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<TandemDialect, func::FuncDialect>();
  original = parseSourceString<ModuleOp>(text, &context);
  if (original)
    compile(options);
}

CudaKernel::~CudaKernel() = default;

void CudaKernel::compile(const CudaOptions &options) {
  Builder b(&context);
  CudaTarget target{options.arch};
  original.get()->setAttr(kPhaseAttr, b.getStringAttr("plan"));
  TargetAttr attribute =
      targetAttr(target, &context)
          .with(TargetAttr::kMatmulPrecision,
                b.getStringAttr(options.matmulPrecision))
          .with(TargetAttr::kProducts, b.getStringAttr(options.products));
  original.get()->setAttr(kTargetAttr, attribute);
  lowered = cast<ModuleOp>(original.get()->clone());
  PassManager passes(&context);
  addLowerToCudaPasses(passes);
  passes.enableVerifier(false); // once is enough, as in the compiler
  if (failed(passes.run(*lowered)) || failed(verify(*lowered)))
    return;
  lowered->walk([&](LaunchOp op) { launch = op; });
  if (!launch) {
    error += "no kernel\n";
    return;
  }
  for (Type type : launch->getOperandTypes())
    inputTypes.push_back(cast<RankedTensorType>(type));
  for (Type type : launch->getResultTypes())
    outputTypes.push_back(cast<RankedTensorType>(type));
  blocks = launch.getWork();
  scratchBytes =
      KernelFactsAttr::of(
          lowered->lookupSymbol<gpu::GPUModuleOp>("cuda").lookupSymbol(
              launch.getKernel().getLeafReference()))
          .getScratchBytes();
  code.emplace(*lowered, target, error, options.emulate);
}

std::vector<std::vector<uint8_t>>
CudaKernel::outputs(const std::vector<reference::Array> &inputs,
                    emulator::Order order) {
  std::vector<KernelBuffer> memory;
  memory.reserve(inputTypes.size() + outputTypes.size());
  for (auto [array, type] : llvm::zip_equal(inputs, inputTypes)) {
    memory.emplace_back(byteSize(type));
    reference::encode(array, type.getElementType(), memory.back().data());
  }
  for (RankedTensorType type : outputTypes)
    memory.emplace_back(byteSize(type), 0xFF);
  Allocations allocations;
  std::vector<char *> buffers;
  for (KernelBuffer &buffer : memory) {
    buffers.push_back(static_cast<char *>(buffer.data()));
    allocations[buffers.back()] = buffer.size();
  }
  code->launch(launch, buffers, allocations, order, error);
  std::vector<std::vector<uint8_t>> results;
  for (size_t i = inputTypes.size(); i < memory.size(); ++i) {
    auto *bytes = static_cast<const uint8_t *>(memory[i].data());
    results.emplace_back(bytes, bytes + memory[i].size());
  }
  return results;
}

std::vector<reference::Array>
CudaKernel::expected(const std::vector<reference::Array> &inputs) {
  func::FuncOp func;
  original->walk([&](func::FuncOp op) { func = op; });
  auto results = reference::evaluate(func, inputs);
  if (failed(results))
    return {};
  return {results->begin(), results->end()};
}
