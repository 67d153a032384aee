//===- ChooseNonTemporalStores.h - when stores pass the caches by ---------===//
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
// What a program returns is read by its caller, who passes the same memory in
// the next call, or memory that it has just had back: so it is touched right
// after the program's end, and before its beginning, with as much beside it as
// its reader writes. A program that moves little then finds all of it in the
// cache. A caller who touches much more between two calls loses by that about
// as much as others gain: a layer norm of 16 MiB to 16 MiB, whose result is
// read after it, takes 0.73 of the time with ordinary stores if nothing else is
// touched, 0.93 with two such pairs by turns, 1.14 with three and 1.3 with ten
// (one thread of a machine with 480 MiB of last-level cache, of which a tenth
// to a sixth is found again).
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PLAN_CHOOSENONTEMPORALSTORES_H
#define TANDEM_PASSES_PLAN_CHOOSENONTEMPORALSTORES_H

#include "ir/Ops.h"
#include "passes/target/CpuCaches.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tandem {

/// Results smaller than this stay in a core's own cache, or about: nothing is
/// won by writing them past it.
inline constexpr int64_t kNonTemporalBytes = caches::kPast;

/// The bytes that are moved between touches of the memory of a result. Of a
/// planned function, until its kernels change.
class ReuseDistances {
public:
  explicit ReuseDistances(mlir::func::FuncOp func);

  /// From the last touch of the result's memory, in the run before if there is
  /// none in this, to the kernel that makes it; at most what the program
  /// touches in all. For a result in the caller's memory the distance begins
  /// with the program, and the result's bytes are added: the caller is taken to
  /// write as much while it reads the result.
  int64_t before(mlir::OpResult result) const;
  /// From the kernel to the next one that reads the result, of an argument
  /// that is overwritten perhaps in the next run; of what else the program
  /// returns, at most until its end. Both kernels sweep over it: so of them
  /// counts what the larger one moves. At most what the program touches in all.
  int64_t after(mlir::OpResult result) const;

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
  std::vector<int64_t> moved, until; ///< by kernel; by all before it
  int64_t footprint = 0;
};

} // namespace tandem

#endif
