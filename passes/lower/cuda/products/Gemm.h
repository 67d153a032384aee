//===- Gemm.h - tiled matrix products for CUDA ----------------------------===//
//
// The one emitter behind matrix products and convolutions: for each batch,
//   C(m, n) = sum over k of A(m, k) B(k, n).
// A block of threads makes a tile of C. Tiles of A and B travel through a ring
// of stages in shared memory (GemmCopy.h) while registers multiply what arrived
// before (GemmTile.h); on sm_90a bulk copies fetch them and warpgroups multiply
// them where they are (GemmWgmma.h). Where there are few tiles and k is long,
// several blocks share a tile's k: the last of them adds the parts, in order.
// How A and B are found and where C goes are the caller's; what the sums are is
// a function of shapes, types and target alone.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_PRODUCTS_GEMM_H
#define TANDEM_PASSES_LOWER_CUDA_PRODUCTS_GEMM_H

#include "passes/lower/cuda/KernelEmitter.h"

#include <functional>
#include <optional>

namespace tandem::lower::cuda {

/// A factor in memory as a tensor of which bulk copies can take boxes. Its
/// first dimension has neighbours and is k or the lines, the second is the
/// other; those of the batch follow. Sizes and strides are in elements.
struct FactorTensor {
  int64_t buffer = 0; ///< which of the launch's
  int64_t offset = 0; ///< where the first element is
  llvm::SmallVector<int64_t> sizes, strides;
};

/// A factor of a product, as a matrix of lines (m of A, n of B) by k. It comes
/// in pieces: `vector` neighbours, aligned to as many, of which all exist or
/// none. But the last piece along k, or along the lines, may reach beyond the
/// end: what memory holds there is read, and is not multiplied.
class GemmFactor {
public:
  using Value = mlir::Value;
  virtual ~GemmFactor() = default;

  /// What elements have in memory, or the compute type if they are computed.
  mlir::Type element;
  /// Of bytes, i8 in memory, the type that they are of.
  mlir::Type format;
  int64_t vector = 1;
  bool alongK = true;    ///< neighbours are along k, else along the lines
  bool inMemory = false; ///< spot() else compute()

  /// Where a piece that begins at (line, k) is.
  struct Spot {
    Value memref;   ///< of rank 1
    Value position; ///< anything if it is not inside
    Value inside;   ///< i1; null for always
  };
  virtual Spot spot(Value line, Value k) = 0;
  /// The factor as a tensor, if it is one; and where the block's batch is in
  /// its dimensions from the third on.
  std::optional<FactorTensor> tensor;
  virtual llvm::SmallVector<Value> batchPlace() { return {}; }
  /// The element, of compute type, of a place that exists.
  virtual Value compute(Value line, Value k) = 0;

  /// Bytes of shared memory in which the factor keeps what follows from k, of a
  /// block that sums over `depth` k.
  virtual int64_t tableBytes(int64_t /*depth*/) const { return 0; }
  /// All `threads` fill it for the k from `first` on. A barrier follows.
  virtual void fillTable(Value /*first*/, int64_t /*depth*/,
                         int64_t /*threads*/) {}
};

/// The element (m, n + j) of C.
struct GemmElement {
  mlir::Value m, n;
  int64_t j;
  mlir::Value sum;
};

/// What is multiplied, and where it goes.
struct Gemm {
  int64_t batches = 1, M = 0, N = 0, K = 0;
  mlir::Type element;  ///< of the factors, as tensors
  mlir::Type type;     ///< of the sums: f32 or f64
  bool isTf32 = false; ///< factors of f32 may be rounded to tf32
  /// The factors have 8 bits, floats or integers both; `element` is C's then.
  bool isOfBytes = false;
  GemmFactor *a = nullptr, *b = nullptr;

  /// The code of a block begins, which makes a tile of this batch.
  std::function<void(mlir::Value batch)> enter;
  /// Finishes and stores elements, whose j are below `neighbours`; what it
  /// reads for one of them it reads before it stores. Returns, for each of
  /// `sums`, what each element adds.
  std::function<llvm::SmallVector<mlir::Value>(llvm::ArrayRef<GemmElement>)>
      finish;
  /// A sum, or a maximum, over each kRowsOfTileSum rows, a row of N each in
  /// memory of rank 1.
  struct TileSum {
    mlir::Value memory;
    ReductionOpInterface op;
  };
  /// There is one batch then, and tiles are whole.
  llvm::SmallVector<TileSum> sums;
  /// So many elements of a row, aligned to as many, are stored side by side.
  int64_t neighbours = 1;
};

/// How it is cut.
struct GemmSchedule {
  enum Kind {
    Simt, ///< fused multiply-adds of the sums' type
    Mma,  ///< tensor cores: f16, bf16, tf32 and 8 bits by warp
    Wgmma ///< tensor cores: f16, bf16, tf32 and 8 bits by warpgroup
  };
  Kind kind = Simt;
  int64_t blockM = 128, blockN = 128, blockK = 8; ///< the tile of a block
  int64_t warpsM = 4, warpsN = 2;                 ///< its warps
  int64_t stages = 2;                             ///< tiles of k on their way
  int64_t splits = 1;                             ///< blocks that share a k
  int64_t splitTiles = 0; ///< tiles of k of each, but for the last

  /// Those that multiply.
  int64_t threads() const { return warpsM * warpsN * warpSize; }
  int64_t warpM() const { return blockM / warpsM; }
  int64_t warpN() const { return blockN / warpsN; }
  int64_t mTiles(const Gemm &g) const { return (g.M + blockM - 1) / blockM; }
  int64_t nTiles(const Gemm &g) const { return (g.N + blockN - 1) / blockN; }
  int64_t tiles(const Gemm &g) const {
    return g.batches * mTiles(g) * nTiles(g);
  }
  int64_t kTiles(const Gemm &g) const { return (g.K + blockK - 1) / blockK; }
  /// k of a block, in whole tiles.
  int64_t depth() const { return splitTiles * blockK; }
  /// What a kernel's schedule says of it.
  ScheduleOverride numbers() const;
  int64_t tableBytes(const Gemm &g) const {
    return g.a->tableBytes(depth()) + g.b->tableBytes(depth());
  }
};

/// A schedule, and the seconds that it is expected to take.
struct TimedSchedule {
  GemmSchedule cut;
  double seconds = 0;
};

/// The schedule of the least time by products of this kind, which the factors
/// allow, of those that have the numbers that are asked for; nothing where no
/// tile fits.
std::optional<TimedSchedule> scheduleGemm(const Gemm &gemm,
                                          const CudaTarget &target,
                                          GemmSchedule::Kind kind,
                                          const ScheduleOverride &asked = {});

/// The scratch of a launch: what the splits of a tile have summed.
int64_t scratchOf(const Gemm &gemm, const GemmSchedule &schedule);

/// Emits the product; it has at least one element.
LaunchShape emitGemm(ThreadCode &code, const Gemm &gemm,
                     const GemmSchedule &schedule);

} // namespace tandem::lower::cuda

#endif
