//===- ThreadCode.h - the code of one CUDA thread as formulas -------------===//
//
// What CUDA's emitters write their code with: index arithmetic and loops
// (Code), and beside them where the thread stands, shared memory, barriers and
// the exchange of values in a warp. Blocks have one dimension, x.
//
// Barriers and exchanges are for all threads of a block, or of a warp: never
// under a condition that only some of them meet.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_THREADCODE_H
#define TANDEM_PASSES_LOWER_CUDA_THREADCODE_H

#include "passes/lower/common/AnchorCode.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace tandem::lower::cuda {

inline constexpr int64_t warpSize = 32;

/// The counters at the start of scratch memory, where all kernels have them:
/// what one kernel leaves as parts of sums never is a counter of the next. More
/// tiles than that have blocks enough without being split.
inline constexpr int64_t mostCounters = 4096, counterBytes = 4;

/// What the GPU that code is made for can do.
struct CudaTarget {
  int64_t sm = 90;      ///< sm_90: 90
  bool isExact = false; ///< sm_90a: what only this architecture has
  /// What products are made of where they can be, "mma" or "wgmma"; empty: what
  /// an estimate prefers. For measurements and tests.
  std::string products;
  /// That of the module around `op`: its attribute `tandem.target`.
  static CudaTarget of(mlir::Operation *op);
  /// The most shared memory that a block can ask for.
  int64_t sharedBytes() const;
};

/// A tensor in a buffer of the launch as bulk copies see it, innermost
/// dimension first: sizes and box in elements, the rest in bytes.
struct TensorMap {
  int64_t buffer = 0, offset = 0;
  mlir::Type element;
  bool roundsToTf32 = false;                      ///< f32, rounded on its way
  llvm::SmallVector<int64_t> sizes, strides, box; ///< no stride of dimension 0
  int64_t swizzle = 128;

  TensorMapAttr describe(mlir::Builder &b) const;
};

class ThreadCode : public lower::Code {
public:
  using Combine = llvm::function_ref<Value(Value x, Value y)>;

  ThreadCode(mlir::OpBuilder &b, mlir::Location loc, const CudaTarget &target)
      : Code(b, loc), target(target) {}

  CudaTarget target;

  /// This thread in its block, and this block in the grid; `index` values.
  Value thread();
  Value block(int dim = 0);
  /// thread() / 32 and thread() % 32
  Value warp();
  Value lane();

  /// x / y and x % y of an index below 2^31: in 32 bits, which take half the
  /// instructions.
  std::pair<Value, Value> split(Value x, int64_t y);
  /// An index as i32 and back.
  Value narrow(Value x);
  Value widenIndex(Value x);

  void barrier();
  /// Makes barriers of `body` be of the first `threads` alone, which run it.
  void forFirst(int64_t threads, llvm::function_ref<void()> body);
  /// The value that the thread with lane ^ mask has; of numbers of any compute
  /// type.
  Value shuffleXor(Value x, int64_t mask);
  /// The value that the thread `lane` of the warp has, an index below 32.
  Value shuffleFrom(Value x, Value lane);
  /// Combines the values of each `lanes` neighbouring lanes, a power of two up
  /// to 32; all of them get the result. The order is a tree: the same for all.
  Value reduceLanes(Value x, int64_t lanes, Combine combine);
  /// Combines the values of all `threads` of the block, a multiple of 32; all
  /// get the results. `x[i]` is combined by `combine(i, ...)`. Shared memory
  /// for it is taken once for each place in the code.
  Values
  reduceBlock(mlir::ValueRange x, int64_t threads,
              llvm::function_ref<Value(size_t i, Value x, Value y)> combine);

  /// A memref of `shape` in shared memory, 128-byte aligned; of i1 as i8.
  Value shared(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  /// The bytes of shared memory that a block has: the most that were taken.
  int64_t sharedBytes() const { return most; }
  /// Writes code of which each block runs one alternative alone: all begin
  /// where the shared memory of what is in front of them ends.
  void alternative(llvm::function_ref<void()> body);

  /// A memref of bytes in device memory that is private to the launch. First
  /// come `mostCounters` counters, zeros before the launch and to be left so;
  /// the rest has what earlier launches left. Once in a kernel, whose
  /// LaunchShape says `bytes` too.
  Value scratch(int64_t bytes);
  /// Hands over between blocks: returns how many of `blocks` blocks came to the
  /// counter `at` before this one, an i32. What those stored before they came
  /// can be read then, and what this one has stored by those that come later.
  /// The last to come leaves the counter at zero. For one thread, behind a
  /// barrier that ends the block's stores and before one that begins its loads.
  Value countBlock(Value counters, Value at, int64_t blocks);
  /// A parameter with what the bulk copies of `map` are told, as a pointer. The
  /// kernel's attribute says how the runtime makes it.
  Value tensorMap(const TensorMap &map);
  llvm::ArrayRef<TensorMap> tensorMaps() const { return maps; }
  /// Part of a memref of bytes, in any memory, as a memref of one dimension.
  Value view(Value bytes, int64_t at, int64_t size, mlir::Type element);

private:
  mlir::gpu::GPUFuncOp function();
  Value shuffle(Value x, Value lane, mlir::gpu::ShuffleMode mode);
  /// Made once, at the start of the kernel.
  Value atEntry(llvm::function_ref<Value()> make);

  Value ids[4], memory;
  int64_t used = 0, most = 0; ///< bytes of shared memory
  llvm::SmallVector<TensorMap> maps;
  bool hasScratch = false;
  int64_t first = 0; ///< threads that barriers are of; 0: all
};

} // namespace tandem::lower::cuda

#endif
