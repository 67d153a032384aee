//===- KernelEmulator.cpp - runs CUDA kernels on the host -----------------===//
#include "cuda/emulator/KernelEmulator.h"
#include "cuda/emulator/kernel/Block.h"
#include "cuda/emulator/kernel/LoadedImage.h"

#include <numeric>
#include <sys/mman.h>

namespace tandem::emulator {

namespace {

/// Shared memory of a block stands at a multiple of this.
constexpr size_t kArena = 256 << 10;
/// What a block may have: 227 KiB, the most of all architectures.
constexpr size_t kMostShared = 227 << 10;
/// Of a thread's stack, beside the kernel's own variables: what its code spills
/// (up to some 7 KiB were seen; it is not optimized), and the emulator's
/// functions. What nobody touches takes no memory.
constexpr size_t kStack = 128 << 10;

/// Memory that a host thread keeps from launch to launch.
class Memory {
public:
  ~Memory() {
    if (mapped)
      munmap(mapped, 2 * kArena);
  }

  /// The memory for shared memory; null where there is none.
  std::byte *arena() {
    if (!mapped) {
      void *memory = mmap(nullptr, 2 * kArena, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED)
        return nullptr;
      mapped = static_cast<std::byte *>(memory);
    }
    auto address = reinterpret_cast<uintptr_t>(mapped);
    return mapped + ((address + kArena - 1) / kArena * kArena - address);
  }

  kernel::FiberStacks stacks;
  kernel::AccessMaps accesses;

private:
  std::byte *mapped = nullptr;
};

thread_local Memory memory;

Status checkRequest(const LaunchRequest &request) {
  if (!request.kernel)
    return Status::usage("a launch needs a kernel");
  const std::string &name = request.kernel->name;
  const Dim3 &b = request.block, &g = request.grid;
  uint64_t threads = uint64_t(b.x) * b.y * b.z;
  if (b.x > 1024 || b.y > 1024 || b.z > 64 || threads > 1024 || threads == 0)
    return Status::usage("kernel '" + name +
                         "': expected a block of 1 to 1024 "
                         "threads, but got " +
                         std::to_string(threads));
  if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7fffffff || g.y > 65535 ||
      g.z > 65535)
    return Status::usage("kernel '" + name + "': the grid (" +
                         std::to_string(g.x) + ", " + std::to_string(g.y) +
                         ", " + std::to_string(g.z) + ") is not possible");
  size_t shared = request.kernel->sharedBytes + request.dynamicShared;
  if (request.dynamicShared > kMostShared || shared > kMostShared)
    return Status::usage("kernel '" + name + "': " + std::to_string(shared) +
                         " bytes of shared memory are more than " +
                         std::to_string(kMostShared));
  return Status::success();
}

/// The block that runs as number `i`, in an order that is a permutation.
class BlockOrder {
public:
  BlockOrder(const LaunchRequest &request, std::mt19937_64 &random)
      : order(request.order),
        count(uint64_t(request.grid.x) * request.grid.y * request.grid.z) {
    if (order != Order::Random)
      return;
    // i * step + start mod count runs through all blocks.
    start = random() % count;
    do
      step = random() % count + 1;
    while (std::gcd(step, count) != 1);
  }
  uint64_t size() const { return count; }
  uint64_t operator[](uint64_t i) const {
    if (order == Order::Random)
      return static_cast<uint64_t>(
          (static_cast<unsigned __int128>(i) * step + start) % count);
    return order == Order::Descending ? count - 1 - i : i;
  }

private:
  Order order;
  uint64_t count, start = 0, step = 1;
};

} // namespace

Status launch(const LaunchRequest &request, MemoryObserver *observer) {
  if (Status status = checkRequest(request); !status)
    return status;
  const artifact::EmulatedChunk &chunk =
      *static_cast<const artifact::EmulatedChunk *>(request.kernel->chunk);
  const auto &code =
      *static_cast<const artifact::EmulatedKernel *>(request.kernel->code);
  size_t threads = request.block.x * request.block.y * request.block.z;
  bool fibers = code.flags & artifact::kEmulatedSynchronizes;
  std::byte *arena = memory.arena();
  if (!arena ||
      !memory.stacks.reserve(fibers ? threads : 1, kStack + code.localBytes))
    return Status::failed("no memory to emulate kernel '" +
                          request.kernel->name + "'");

  kernel::GlobalMemory global(observer, chunk.siteCount, memory.accesses);
  for (uint64_t i = 0; i < chunk.constantCount; ++i)
    global.addConstant(chunk.constants[i].data, chunk.constants[i].bytes);
  for (uint32_t i = 0; i < code.parameterCount; ++i)
    global.addConstant(request.params[i], code.parameterBytes[i]);
  kernel::LaunchErrors errors(request.kernel->name);
  bool weak = request.consistency == Consistency::Every ||
              (request.consistency == Consistency::Weak &&
               code.flags & artifact::kEmulatedHandsOver);
  kernel::Block block(request, chunk, global, errors, memory.stacks, arena,
                      weak);
  std::mt19937_64 random(request.seed);
  BlockOrder order(request, random);
  for (uint64_t i = 0; i < order.size(); ++i) {
    uint64_t number = order[i];
    const Dim3 &g = request.grid;
    const uint32_t ctaid[] = {static_cast<uint32_t>(number % g.x),
                              static_cast<uint32_t>(number / g.x % g.y),
                              static_cast<uint32_t>(number / g.x / g.y)};
    if (!block.run(ctaid, random))
      break;
  }
  global.flush();
  return errors.status();
}

} // namespace tandem::emulator
