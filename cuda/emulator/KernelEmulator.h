//===- KernelEmulator.h - runs CUDA kernels on the host -------------------===//
//
// An emulation image is the code of an artifact's kernels for the host
// (compiler/emit/Emulation.h). A launch runs every thread of every block, one
// block after the other, on the calling thread, and checks what a GPU leaves
// unsaid: bounds, alignment, races in shared memory and between blocks,
// divergent collectives, deadlocks, asynchronous copies that nobody waited for.
// Several host threads may launch at the same time.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_KERNELEMULATOR_H
#define TANDEM_CUDA_EMULATOR_KERNELEMULATOR_H

#include "runtime/artifact/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::emulator {

/// What an image holds beside its kernels; see Image.cpp.
class LoadedImage;

/// A kernel of an image; lives as long as the image.
struct Kernel {
  std::string name;
  std::vector<uint32_t> parameterBytes; ///< one entry per parameter
  size_t sharedBytes = 0;               ///< static shared memory of a block
  const void *chunk = nullptr;          ///< the image's records: of the kernels
  const void *code = nullptr;           ///< compiled with it, and its own
};

/// The kernels of one emulation image.
class Image {
public:
  /// Loads an ELF shared object made by the compiler. Fails where it is
  /// damaged, of another version, or needs instructions that this processor
  /// lacks.
  static Result<Image> load(std::span<const std::byte> elf);

  Image(Image &&) noexcept;
  Image &operator=(Image &&) noexcept;
  ~Image();

  /// Returns the kernel called `name`, or null.
  const Kernel *find(std::string_view name) const;
  /// All kernels, in the image's order.
  std::span<const Kernel> kernels() const;

private:
  explicit Image(std::unique_ptr<LoadedImage> loaded);
  std::unique_ptr<LoadedImage> loaded;
};

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// In which order runnable blocks, warps and threads take their turns. What a
/// correct kernel computes is the same in every order.
enum class Order { Ascending, Descending, Random };

/// What a block sees of what blocks before it wrote (kernel/WeakMemory.h).
enum class Consistency {
  Strong, ///< all of it
  /// What they handed over by fences and atomics: in kernels that have atomics
  /// on global memory. In others everything, at full speed.
  Weak,
  Every ///< as Weak, in all kernels: finds every race between blocks
};

struct LaunchRequest {
  const Kernel *kernel = nullptr;
  Dim3 grid, block;
  size_t dynamicShared = 0; ///< bytes after the static shared memory
  void **params = nullptr;  ///< as cuLaunchKernel: params[i] -> the i-th value
  Order order = Order::Ascending;
  uint64_t seed = 1; ///< of Order::Random
  Consistency consistency = Consistency::Weak;
};

/// A piece of global memory, empty if begin == end.
struct MemoryRange {
  const void *begin = nullptr, *end = nullptr;
};

/// Who knows the allocations of global memory, and wants to see accesses.
class MemoryObserver {
public:
  virtual ~MemoryObserver() = default;

  /// Returns the live allocation that holds the byte at `p`, or an empty range.
  /// An access that is not inside of one is not made: the launch ends with an
  /// error. Answers are kept until the launch ends.
  virtual MemoryRange allocation(const void *p) = 0;

  /// Bytes that the kernel accessed, to four bytes, all within one allocation.
  /// Comes when the launch has ended, after an error too: for each allocation
  /// and kind of access once, in rising order, whole ranges.
  virtual void access(const void *p, size_t bytes, bool isWrite,
                      bool isAtomic) = 0;
};

/// Runs the kernel to its end. The status lists what was found wrong, one line
/// each: kernel, block, thread, what; the first errors only, then a count.
/// After an error that makes going on impossible (an access out of bounds, a
/// deadlock) the rest of the grid is not run. Without an observer every
/// address outside of shared memory is taken for a good one.
Status launch(const LaunchRequest &request, MemoryObserver *observer);

} // namespace tandem::emulator

#endif
