//===- GemmTile.h - what registers do with tiles in shared memory ---------===//
//
// A tile of A is [blockM, blockK] and one of B [blockN, blockK]; how they lie
// in shared memory is for the multiplier to say: so that neither filling nor
// reading has bank conflicts.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CUDA_PRODUCTS_GEMMTILE_H
#define TANDEM_PASSES_LOWER_CUDA_PRODUCTS_GEMMTILE_H

#include "passes/lower/cuda/products/Gemm.h"

#include <memory>

namespace tandem::lower::cuda {

/// How a factor's tiles, one for each stage, lie in shared memory.
struct TileLayout {
  mlir::Type element;
  int64_t lines, depth; ///< of the tile; depth is along k
  /// Rows of the memory run along k, one for each line; else along the lines,
  /// one for each k.
  bool rowsAlongK = false;
  int64_t pitch = 0; ///< elements from row to row
  /// Pieces of 16 bytes change places within a row, in a way that depends on
  /// the row: eight rows have their pieces of one column in different banks.
  bool swizzled = false;

  int64_t size() const { return pitch * (rowsAlongK ? lines : depth); }
  /// The position in its stage of the element at (line, k).
  mlir::Value position(Code &code, mlir::Value line, mlir::Value k) const;
};

/// Multiplies tiles into sums that a thread holds in registers.
class GemmTile {
public:
  using Value = mlir::Value;
  using Values = ThreadCode::Values;

  static std::unique_ptr<GemmTile> create(ThreadCode &code, const Gemm &gemm,
                                          const GemmSchedule &schedule);
  virtual ~GemmTile() = default;

  TileLayout a, b;
  int64_t sums = 0;         ///< vectors of sums of a thread
  mlir::VectorType sumType; ///< of each: 16 bytes

  /// `sums` + A B of the tiles that begin at `aAt` and `bAt` of their memrefs.
  virtual Values multiply(Value aTiles, Value aAt, Value bTiles, Value bAt,
                          mlir::ValueRange sums) = 0;
  /// Stores the sums in a tile of C: [blockM][pitch].
  virtual void spill(mlir::ValueRange sums, Value tile, int64_t pitch) = 0;

  /// What `multiply` adds to at first, zeros, and the sums that become of that:
  /// the same, unless it adds in another type.
  virtual Values begin();
  virtual Values end(mlir::ValueRange added) { return Values(added); }

protected:
  GemmTile(ThreadCode &code, const GemmSchedule &schedule)
      : code(code), schedule(schedule) {}
  ThreadCode &code;
  const GemmSchedule &schedule;
};

std::unique_ptr<GemmTile> createSimtTile(ThreadCode &code, const Gemm &gemm,
                                         const GemmSchedule &schedule);
std::unique_ptr<GemmTile> createMmaTile(ThreadCode &code, const Gemm &gemm,
                                        const GemmSchedule &schedule);
std::unique_ptr<GemmTile> createByteTile(ThreadCode &code, const Gemm &gemm,
                                         const GemmSchedule &schedule);

} // namespace tandem::lower::cuda

#endif
