//===- EmulatedKernels.h - kernels as text, run by the emulator -----------===//
#ifndef TANDEM_TESTS_CUDA_EMULATOR_KERNEL_EMULATEDKERNELS_H
#define TANDEM_TESTS_CUDA_EMULATOR_KERNEL_EMULATEDKERNELS_H

#include "cuda/emulator/KernelEmulator.h"

#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace tandem::test {

/// Parses LLVM IR for NVPTX (target lines are added) and makes the emulation
/// image; the status is that of the compiler or of the loader.
Result<emulator::Image> imageOf(const std::string &ir);

/// The image's bytes.
Result<std::string> imageBytes(const std::string &ir);

/// Global memory of a test: buffers with nothing beside them, and a log of the
/// accesses.
class TestMemory : public emulator::MemoryObserver {
public:
  struct Access {
    size_t offset, bytes;
    bool isWrite, isAtomic;
  };

  /// A buffer of `bytes`, all NaN; 256-byte aligned.
  template <typename T> T *buffer(size_t count) {
    return static_cast<T *>(allocate(count * sizeof(T)));
  }
  ~TestMemory() override;

  emulator::MemoryRange allocation(const void *p) override;
  void access(const void *p, size_t bytes, bool isWrite,
              bool isAtomic) override;
  /// The accesses to the buffer at `begin`.
  const std::vector<Access> &accesses(const void *begin) { return log[begin]; }

private:
  void *allocate(size_t bytes);
  std::map<uintptr_t, size_t> buffers;
  std::map<const void *, std::vector<Access>> log;
};

/// Launches a kernel whose parameters are `arguments`, as they stand.
template <typename... Arguments>
Status launch(const emulator::Image &image, const char *name,
              emulator::Dim3 grid, emulator::Dim3 block, TestMemory &memory,
              emulator::Order order, Arguments... arguments) {
  void *params[] = {&arguments..., nullptr};
  emulator::LaunchRequest request;
  request.kernel = image.find(name);
  request.grid = grid;
  request.block = block;
  request.params = params;
  request.order = order;
  return emulator::launch(request, &memory);
}

inline const emulator::Order kOrders[] = {emulator::Order::Ascending,
                                          emulator::Order::Descending,
                                          emulator::Order::Random};

/// The text with the `n`-th occurrence of `what` (a whole line) taken out.
std::string without(const std::string &text, const std::string &what,
                    int n = 0);
/// The text with the first `what` replaced.
std::string replaced(std::string text, const std::string &what,
                     const std::string &with);

} // namespace tandem::test

#endif
