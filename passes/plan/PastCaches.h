//===- PastCaches.h - results that need not be in a cache -----------------===//
//
// A store that goes past the caches spares the reading of the line that it
// overwrites, and its writing later; but it takes the line out of the cache,
// and whoever reads it waits for memory. So an ordinary store is better where
// both hold: the memory was touched so recently that it is still in the cache,
// and what is written is read before it has left it. How long that is, is
// counted in bytes: what a program's kernels move between two touches, in the
// order of the plan. A program runs again and again: before its first kernel
// comes its last one.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_PASTCACHES_H
#define TANDEM_PASSES_PLAN_PASTCACHES_H

#include "ir/Ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// On a kernel: the numbers of the results that are written past the caches,
/// rising.
inline constexpr llvm::StringLiteral kPastCachesAttr = "past_caches";

/// Results smaller than this stay in a core's own cache, or about: nothing is
/// won by writing them past it.
inline constexpr int64_t kPastCachesBytes = 4 << 20;

/// The bytes that a kernel reads of `value`, an argument of its region: of a
/// table the rows that are taken, of what only slices read the slices.
double bytesRead(mlir::Value value);

/// The bytes that are moved between touches of the memory of a result. Of a
/// planned function, until its kernels change.
class ReuseDistances {
public:
  explicit ReuseDistances(mlir::func::FuncOp func);

  /// From the last touch of the result's memory, in the run before if there is
  /// none in this, to the kernel that makes it. At most what the program
  /// touches in all; infinite of what it returns in memory of the caller, who
  /// may have done anything meanwhile.
  double before(mlir::OpResult result) const;
  /// From the kernel to the next one that reads the result; of what the program
  /// returns, at most until its end. Both kernels sweep over it: so of them
  /// counts what the larger one moves.
  double after(mlir::OpResult result) const;

private:
  /// Bytes of the arena, an argument, a result or a constant.
  struct Extent {
    BufferPlace place;
    int64_t position, begin, end; ///< position: of arena and constants 0
    bool overlaps(const Extent &other) const;
  };
  Extent extentOf(BufferAttr buffer, mlir::Value value) const;
  Extent extentOf(mlir::Value value) const;
  bool touches(size_t kernel, const Extent &extent) const;

  llvm::SmallVector<KernelOp> kernels;
  llvm::DenseMap<mlir::Operation *, size_t> numbers;
  llvm::DenseMap<mlir::Value, int64_t> constants; ///< numbers
  llvm::DenseSet<mlir::Value> returned;
  std::vector<llvm::SmallVector<Extent>> extents; ///< that a kernel touches
  std::vector<double> moved, until; ///< by kernel; by all before it
  double footprint = 0;
};

/// Sets kPastCachesAttr of the kernels of a planned function for a CPU.
void choosePastCaches(mlir::func::FuncOp func);

} // namespace tandem

#endif
