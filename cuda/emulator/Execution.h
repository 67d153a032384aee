//===- Execution.h - one operation while it runs --------------------------===//
//
// What a running operation may do with memory. Its accesses are collected and
// compared with those of others (Shadow.h) when it ends; whether memory may be
// used at all is checked before it is used.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_CUDA_EMULATOR_EXECUTION_H
#define TANDEM_CUDA_EMULATOR_EXECUTION_H

#include "cuda/emulator/KernelEmulator.h"
#include "cuda/emulator/Operation.h"

#include <vector>

namespace tandem::emulator {

class Machine;
struct Allocation;

/// A set of bytes, given piece by piece.
class Ranges {
public:
  using Range = std::pair<uintptr_t, uintptr_t>; ///< first, and after the last

  void add(uintptr_t begin, uintptr_t end);
  /// Returns them sorted, with touching ones joined.
  const std::vector<Range> &sorted();

private:
  void compact();

  std::vector<Range> ranges;
  size_t limit = 1 << 16; ///< of `ranges`, before it is compacted
};

class Execution : public MemoryObserver {
public:
  Execution(Machine &machine, const Operation &operation)
      : machine(machine), operation(operation) {}

  /// Says that bytes are read or written; false, with an error, where they are
  /// not all in one live allocation: then they must not be touched.
  bool read(uintptr_t begin, size_t bytes) { return use(begin, bytes, false); }
  bool write(uintptr_t begin, size_t bytes) { return use(begin, bytes, true); }
  /// Says that bytes are written, whatever is there.
  void claim(uintptr_t begin, size_t bytes);

  // Of the kernel emulator.
  MemoryRange allocation(const void *p) override;
  void access(const void *p, size_t bytes, bool isWrite,
              bool isAtomic) override;

  /// Reports an error of this operation.
  void error(const std::string &text);
  /// Compares the accesses with those of other operations.
  void finish();

  Machine &machine;
  const Operation &operation;

private:
  bool use(uintptr_t begin, size_t bytes, bool isWrite);
  const Allocation *find(uintptr_t at, const std::string &does);

  Ranges reads, writes;
};

} // namespace tandem::emulator

#endif
