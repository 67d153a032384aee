//===- CudaCode.cpp - kernels lowered for CUDA, run by the emulator -------===//
#include "tests/lower/CudaCode.h"

#include "compiler/emit/DeviceCode.h"
#include "compiler/emit/Emulation.h"
#include "compiler/emit/ManifestParts.h"
#include "cuda/emulator/TensorMap.h"
#include "passes/lower/cuda/ThreadCode.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <algorithm>

using namespace mlir;
using namespace tandem;
using namespace tandem::test;

CudaCode::CudaCode(ModuleOp lowered, const CudaTarget &target,
                   std::string &error, bool emulate)
    : lowered(lowered) {
  auto kernels = lowered.lookupSymbol<gpu::GPUModuleOp>("cuda");
  std::vector<std::string> names;
  for (auto func : kernels.getOps<LLVM::LLVMFuncOp>())
    if (func->hasAttr(kKernelAttr))
      names.push_back(func.getName().str());
  if (names.empty())
    return;
  auto code = emitDeviceCode(kernels, names, target, emulate, 1);
  if (!code) {
    error += code.status().message();
    return;
  }
  ptx = code->ptx;
  if (!emulate)
    return;
  auto elf = emitEmulation(code->modules, 1);
  if (!elf) {
    error += elf.status().message();
    return;
  }
  auto loaded =
      emulator::Image::load(std::as_bytes(std::span(elf->data(), elf->size())));
  if (loaded)
    image = std::move(*loaded);
  else
    error += loaded.status().message();
}

namespace {
class Observer : public emulator::MemoryObserver {
public:
  explicit Observer(const Allocations &memory) : memory(memory) {}
  emulator::MemoryRange allocation(const void *p) override {
    auto *at = static_cast<const char *>(p);
    auto next = memory.upper_bound(at);
    if (next == memory.begin())
      return {};
    auto [begin, bytes] = *std::prev(next);
    if (at >= begin + bytes)
      return {};
    return {begin, begin + bytes};
  }
  void access(const void *, size_t, bool, bool) override {}

private:
  const Allocations &memory;
};
} // namespace

/// What the runtime makes of a tensor map, as the emulator has it.
static emulator::TensorMap encode(const artifact::TensorMap &map,
                                  const char *buffer) {
  emulator::TensorMap made;
  made.elementType =
      map.element == "tf32" ? emulator::TensorMap::kTf32 : uint8_t(0);
  made.elementBytes = static_cast<uint8_t>(map.elementBytes());
  made.rank = static_cast<uint8_t>(map.sizes.size());
  made.swizzle = static_cast<uint8_t>(
      map.swizzle == 0 ? 0 : llvm::Log2_64(map.swizzle) - 4);
  made.address = reinterpret_cast<uintptr_t>(buffer) + map.offset;
  for (auto [d, size] : llvm::enumerate(map.sizes)) {
    made.sizes[d] = static_cast<uint32_t>(size);
    made.boxes[d] = static_cast<uint32_t>(map.box[d]);
    made.elementStrides[d] = 1;
    if (d > 0)
      made.strides[d - 1] = map.strides[d - 1];
  }
  return made;
}

void CudaCode::launch(LaunchOp op, ArrayRef<char *> buffers,
                      const Allocations &memory, emulator::Order order,
                      std::string &error) {
  StringRef name = op.getKernel().getLeafReference();
  KernelFactsAttr about = KernelFactsAttr::of(
      lowered.lookupSymbol<gpu::GPUModuleOp>("cuda").lookupSymbol(name));
  auto dim = [](ArrayRef<int64_t> sizes) {
    return emulator::Dim3{static_cast<unsigned>(sizes[0]),
                          static_cast<unsigned>(sizes[1]),
                          static_cast<unsigned>(sizes[2])};
  };
  Allocations all(memory);
  SmallVector<char *> pointers(buffers);
  size_t scratchBytes = about.getScratchBytes();
  // 256-byte aligned, as a device's memory.
  std::unique_ptr<char, decltype(&std::free)> scratch(
      static_cast<char *>(
          std::aligned_alloc(256, (scratchBytes + 256) / 256 * 256)),
      &std::free);
  SmallVector<void *> params;
  std::vector<emulator::TensorMap> maps;
  for (const artifact::TensorMap &map : tensorMapsOf(about.getTensorMaps()))
    maps.push_back(encode(map, buffers[map.buffer]));
  // Counters are zeros, behind them stands what some launch has left.
  size_t counterBytes = std::min<size_t>(
      scratchBytes, lower::cuda::mostCounters * lower::cuda::counterBytes);
  if (scratchBytes > 0) {
    std::fill_n(scratch.get(), counterBytes, '\0');
    std::fill_n(scratch.get() + counterBytes, scratchBytes - counterBytes,
                '\xff');
    all[scratch.get()] = scratchBytes;
    pointers.push_back(scratch.get());
  }
  for (char *&pointer : pointers)
    params.push_back(&pointer);
  for (emulator::TensorMap &map : maps)
    params.insert(params.begin() + static_cast<ptrdiff_t>(buffers.size()) +
                      (&map - maps.data()),
                  &map);
  emulator::LaunchRequest request;
  request.kernel = image->find(name.str());
  request.grid = dim(*op.getGrid());
  request.block = dim(about.getBlock().asArrayRef());
  request.dynamicShared = about.getSharedBytes();
  request.params = params.data();
  request.order = order;
  Observer observer(all);
  if (Status status = emulator::launch(request, &observer); !status)
    error += status.message() + "\n";
  if (std::any_of(scratch.get(), scratch.get() + counterBytes,
                  [](char byte) { return byte != 0; }))
    error += name.str() + ": counters are not left zero\n";
}
