//===- CudaKernel.cpp - one kernel, compiled for CUDA and emulated --------===//
#include "tests/support/CudaKernel.h"
#include "tests/support/JitKernel.h"

#include "compiler/Compile.h"
#include "compiler/emit/DeviceCode.h"
#include "compiler/emit/Emulation.h"
#include "ir/reference/Evaluator.h"
#include "passes/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <algorithm>
#include <cstring>

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
  NamedAttrList attributes(targetAttr(target, &context));
  attributes.set("matmul_precision", b.getStringAttr(options.matmulPrecision));
  original.get()->setAttr(kTargetAttr, attributes.getDictionary(&context));
  lowered = cast<ModuleOp>(original.get()->clone());
  PassManager passes(&context);
  passes.addPass(createLowerToCuda());
  if (failed(passes.run(*lowered)))
    return;
  LaunchOp launch;
  lowered->walk([&](LaunchOp op) { launch = op; });
  if (!launch) {
    error += "no kernel\n";
    return;
  }
  for (Type type : launch->getOperandTypes())
    inputTypes.push_back(cast<RankedTensorType>(type));
  for (Type type : launch->getResultTypes())
    outputTypes.push_back(cast<RankedTensorType>(type));
  auto kernels = lowered->lookupSymbol<gpu::GPUModuleOp>("cuda");
  std::string symbol = launch.getKernel().getLeafReference().str();
  auto about =
      kernels.lookupSymbol(symbol)->getAttrOfType<DictionaryAttr>(kKernelAttr);
  llvm::copy(about.getAs<DenseI64ArrayAttr>("block").asArrayRef(),
             block.begin());
  llvm::copy(*launch.getGrid(), grid.begin());
  sharedBytes = about.getAs<IntegerAttr>("shared_bytes").getInt();
  scratchBytes = about.getAs<IntegerAttr>("scratch_bytes").getInt();

  auto code = emitDeviceCode(kernels, {symbol}, target, options.emulate,
                             /*threads=*/1);
  if (!code) {
    error += code.status().message();
    return;
  }
  ptx = code->ptx;
  if (!options.emulate) {
    compiled = true;
    return;
  }
  auto elf = emitEmulation(code->bitcode, /*threads=*/1);
  if (!elf) {
    error += elf.status().message();
    return;
  }
  auto loaded =
      emulator::Image::load(std::as_bytes(std::span(elf->data(), elf->size())));
  if (!loaded) {
    error += loaded.status().message();
    return;
  }
  image = std::move(*loaded);
  kernel = image->find(symbol);
  compiled = kernel != nullptr;
}

namespace {
/// Knows the buffers of a run.
class Buffers : public emulator::MemoryObserver {
public:
  emulator::MemoryRange allocation(const void *p) override {
    auto *at = static_cast<const uint8_t *>(p);
    for (const KernelBuffer &buffer : memory) {
      auto *begin = static_cast<const uint8_t *>(buffer.data());
      if (at >= begin && at < begin + buffer.size())
        return {begin, begin + buffer.size()};
    }
    return {};
  }
  void access(const void *, size_t, bool, bool) override {}

  std::vector<KernelBuffer> memory;
};
} // namespace

std::vector<std::vector<uint8_t>>
CudaKernel::outputs(const std::vector<reference::Array> &inputs,
                    emulator::Order order) {
  Buffers buffers;
  buffers.memory.reserve(inputTypes.size() + outputTypes.size() + 1);
  for (auto [array, type] : llvm::zip_equal(inputs, inputTypes)) {
    buffers.memory.emplace_back(byteSize(type));
    toElements(array.data, type.getElementType(), buffers.memory.back().data());
  }
  for (RankedTensorType type : outputTypes)
    buffers.memory.emplace_back(byteSize(type), 0xFF);
  if (scratchBytes > 0)
    buffers.memory.emplace_back(scratchBytes, 0);
  std::vector<void *> pointers, params;
  for (KernelBuffer &buffer : buffers.memory)
    pointers.push_back(buffer.data());
  for (void *&pointer : pointers)
    params.push_back(&pointer);
  auto dim = [](const std::array<int64_t, 3> &sizes) {
    return emulator::Dim3{static_cast<unsigned>(sizes[0]),
                          static_cast<unsigned>(sizes[1]),
                          static_cast<unsigned>(sizes[2])};
  };
  emulator::LaunchRequest request;
  request.kernel = kernel;
  request.grid = dim(grid);
  request.block = dim(block);
  request.dynamicShared = sharedBytes;
  request.params = params.data();
  request.order = order;
  if (Status status = emulator::launch(request, &buffers); !status)
    error += status.message() + "\n";
  if (scratchBytes > 0) {
    auto *scratch = static_cast<uint8_t *>(pointers.back());
    if (std::any_of(scratch, scratch + scratchBytes,
                    [](uint8_t byte) { return byte != 0; }))
      error += "scratch is not left zero\n";
  }
  std::vector<std::vector<uint8_t>> results;
  for (size_t i = 0; i < outputTypes.size(); ++i) {
    const KernelBuffer &buffer = buffers.memory[inputTypes.size() + i];
    auto *bytes = static_cast<const uint8_t *>(buffer.data());
    results.emplace_back(bytes, bytes + buffer.size());
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
