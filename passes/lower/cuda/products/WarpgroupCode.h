//===- WarpgroupCode.h - bulk copies and wgmma as formulas ----------------===//
//
// What code of sm_90a is written with: barriers in shared memory, the copies of
// a tensor's box that complete them (TMA), and the products of 64 rows that 128
// threads make (wgmma), whose sums a thread has as mma.sync's (MmaCode.h): warp
// w of the group has rows 16 w to 16 w + 15.
//
// A tile in shared memory is rows of 128 bytes, which copies write and wgmma
// reads with their pieces of 16 bytes permuted by the row's number modulo 8
// (PTX ISA, "swizzling modes"), free of bank conflicts. Tiles begin at
// multiples of 1024 bytes. Addresses in shared memory are i64.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_PRODUCTS_WARPGROUPCODE_H
#define TANDEM_PASSES_LOWER_CUDA_PRODUCTS_WARPGROUPCODE_H

#include "passes/lower/cuda/ThreadCode.h"

namespace tandem::lower::cuda {

inline constexpr int64_t tileRowBytes = 128;
/// Eight rows: after so many the permutation begins anew.
inline constexpr int64_t tileGroupBytes = 8 * tileRowBytes;
inline constexpr int64_t warpgroupSize = 128, warpgroupRows = 64;
inline constexpr int64_t barrierBytes = 8;

class WarpgroupCode {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<mlir::Value>;

  explicit WarpgroupCode(ThreadCode &code) : code(code) {}

  Value bits(int64_t value); ///< i32
  Value word(Value index);   ///< i64
  Value addressOf(Value memref);
  Value pointer(Value address, unsigned space = 3);
  /// The number of this thread's warpgroup: the same in all threads of a warp,
  /// and known to be.
  Value group();

  // Barriers.
  /// The barrier `number` of those from the address `first` on.
  Value barrierAt(Value first, Value number);
  void initialize(Value barrier, int64_t arrivals);
  /// Behind all `initialize` of the thread.
  void fenceInitialized();
  void wait(Value barrier, Value parity);
  void arrive(Value barrier);
  /// Arrives, and announces so many bytes of copies.
  void expect(Value barrier, int64_t bytes);

  // Copies.
  void prefetch(Value map);
  /// The box at `place`, indices; innermost first.
  void copy(Value map, llvm::ArrayRef<Value> place, Value to, Value barrier);

  // Products.
  /// The tile at `address` as a factor; `leading` is the distance of chunks of
  /// 128 bytes of lines, where the lines of a factor are its neighbours.
  Value descriptor(Value address, int64_t leading = 16);
  /// The sums that products begin with, which they do not read.
  Value noSums(int64_t columns);
  Value sumsOf(mlir::ValueRange numbers);
  Values numbersOf(Value sums);
  /// Begins the products of 64 rows of A, which are in the registers of the
  /// threads (four, as those of mma.sync), by 16 k and the columns of `sums`,
  /// of f16 or bf16. The lines of B are its neighbours where `turned`.
  Value multiply(mlir::Type element, mlir::ValueRange a, Value b, bool turned,
                 Value sums);
  /// The same of A in shared memory, whose neighbours are along k.
  Value multiply(mlir::Type element, Value a, Value b, bool turned, Value sums,
                 bool adds);
  /// What registers have so far, products may read: those given, which wait
  /// for nothing else.
  Values fence(mlir::ValueRange registers);
  void commit();
  /// Waits until at most `groups` groups of products are under way, and gives
  /// the registers that these have written: who computes with what comes back
  /// does not do so before.
  Values wait(int64_t groups, mlir::ValueRange registers);

private:
  Values pinned(const llvm::Twine &instruction, mlir::ValueRange registers);

  ThreadCode &code;
};

} // namespace tandem::lower::cuda

#endif
