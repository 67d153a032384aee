//===- WinogradTiles.h - the parts of kernels by Winograd's method --------===//
//
// Lanes are planes: vectors of neighbouring pixels are transposed on their way
// in and out, and no transform moves anything between lanes.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_CONVOLUTION_WINOGRADTILES_H
#define TANDEM_PASSES_LOWER_CPU_CONVOLUTION_WINOGRADTILES_H

#include "passes/lower/cpu/convolution/Winograd.h"
#include "passes/lower/cpu/convolution/WinogradTransforms.h"

namespace tandem::lower::cpu::winograd {

inline constexpr int64_t kAllPoints = kPoints * kPoints;

/// A matrix of f32 for each of the 36 points, in scratch memory.
class PointMatrices {
public:
  using Value = mlir::Value;
  PointMatrices(AnchorKernel &kernel, int64_t rows, int64_t columns,
                int64_t lanes);

  /// Where an element is.
  llvm::SmallVector<Value> at(Value point, Value row, Value column) const;
  /// One vector of each point.
  Code::Values load(Value row, Value column) const;
  void store(mlir::ValueRange vectors, Value row, Value column) const;

  const int64_t rows, columns;
  Value memref; ///< [points][...]

private:
  Code &code;
  int64_t lanes;
};

/// sums[p] (+)= a[p] b[p] for each point p.
struct PointProducts {
  const PointMatrices &a, &b, &sums;
  bool isTransposed = false; ///< a is [k][row]
  mlir::Value rows = {},
              k = {}; ///< how many of them, at most what the matrices have
  mlir::Value isFirst = {};  ///< the sums begin
  mlir::Value firstOfB = {}; ///< the row of b that is k 0; null: the first
};
void emitProducts(AnchorKernel &kernel, const PointProducts &products);

/// The first pixel of a segment.
struct TileOrigin {
  mlir::Value image, y, x;
  static TileOrigin of(Code &code, const Grid &grid, mlir::Value segment);
};

/// `count` neighbours (of which the first `active` are read, and others 0) from
/// each of `lanes` positions `stride` apart, one position a lane: a vector for
/// each neighbour.
Code::Values loadTransposed(Code &code, mlir::Value memref,
                            mlir::Value position, int64_t stride, int64_t lanes,
                            int64_t count, mlir::Value active = {});

/// What tiles see of an image, transformed.
class TilePack {
public:
  using Value = mlir::Value;
  /// Of operand `number`, [images, planes, height, width]: `side` x `side`
  /// pixels for each tile of `grid`, of which the first is `before` the tile's.
  TilePack(AnchorKernel &kernel, unsigned number, const Grid &grid,
           Window2d::Pair before, int64_t side, int64_t lanes);

  /// Whether it is where vectors of neighbours can be read.
  bool canRead() const { return image.isAffine() && image.stride(3) == 1; }
  /// Takes the scratch memory.
  void prepare();
  /// Row t of `to` becomes tile t, from the first segment on, of `to.columns`
  /// planes.
  void pack(Value firstSegment, Value segments, Value firstPlane,
            const PointMatrices &to, Transform transform);

private:
  void packPatch(const TileOrigin &place, Value plane);
  void packLine(Value start, Value place, Value count);
  void fill(Value begin, Value end);

  AnchorKernel &kernel;
  Code &code;
  Grid grid;
  Window2d::Pair seen, before;
  int64_t side, lanes, width;
  Operand image;
  Value patch; ///< [lines * width and some more][lanes]
};

} // namespace tandem::lower::cpu::winograd

#endif
