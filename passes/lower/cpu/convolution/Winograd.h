//===- Winograd.h - convolutions of 3x3 taps by fewer multiplications -----===//
//
// A convolution with stride 1 and 3x3 taps makes each tile of 4x4 pixels of its
// result with 36 multiplications for each plane that is summed, not 144
// (WinogradTransforms.h). The elements of many tiles that belong to one of the
// 36 points are a matrix, and so are the taps': 36 products of matrices, whose
// results are transformed back.
//
// The item of work is a block of tiles times a block of planes of the result.
// Taps are transformed by every item that needs them: with enough tiles in an
// item that costs less than to fetch 4 times their bytes from memory.
//
// The gradient of the taps is a sum over all tiles, whose item is a block of
// planes seen times a block of planes of y.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_LOWER_CPU_CONVOLUTION_WINOGRAD_H
#define TANDEM_PASSES_LOWER_CPU_CONVOLUTION_WINOGRAD_H

#include "passes/lower/common/Method.h"
#include "passes/lower/cpu/KernelEmitter.h"

#include "ir/ops/Convolution.h"

namespace tandem::lower::cpu::winograd {

inline constexpr int64_t kTile = 4, kTaps = 3;

/// The pixels that tiles cover, and how: tiles side by side are a segment, and
/// a row of tiles has one or more segments of equal length. Tiles may reach
/// over the right and the lower edge.
struct Grid {
  int64_t images, height, width;
  int64_t segmentTiles, perRow;

  static Grid of(int64_t images, int64_t height, int64_t width);

  int64_t rows() const; ///< of tiles of an image
  int64_t segments() const { return images * rows() * perRow; }
  int64_t tiles() const { return segments() * segmentTiles; }
  int64_t segmentWidth() const { return segmentTiles * kTile; }
};

/// conv2d or conv2d_input_grad: a convolution of the image that is seen; or
/// conv2d_filter_grad, with the names of conv2d.
struct Shape {
  int64_t groups;  ///< more than one of conv2d_filter_grad alone
  int64_t planes;  ///< that are summed, of a group
  int64_t results; ///< planes of the result, of a group
  Grid grid;
  Window2d::Pair seen;   ///< height and width
  Window2d::Pair before; ///< where pixel (0, 0) begins to see, negated
  bool isInputGrad;      ///< the taps are turned by 180 degrees

  static Shape of(mlir::Operation *op);
};

/// How it is cut.
struct Schedule {
  int64_t lanes;
  int64_t planeBlock;  ///< planes that are summed at a time, or are in an item
  int64_t resultBlock; ///< planes of the result in an item
  int64_t segments;    ///< of an item, or that are summed at a time

  /// Of an op for which it is expected to be faster than a direct sum, for a
  /// target that does not forbid it; nothing for others. Depends on the op and
  /// the target alone.
  static std::optional<Schedule> choose(mlir::Operation *op,
                                        const CpuModel &target);
  /// The same with the reason against it. `schedule` is set where it is
  /// possible, whether it is faster or not.
  static Fit fit(mlir::Operation *op, const CpuModel &target,
                 Schedule &schedule);
};

/// The multiply-adds of lanes of the method, transforms included; and of a
/// direct sum.
struct Counts {
  double own, direct;
};
Counts countsOf(mlir::Operation *op, const Schedule &schedule);

/// Whether a thread transforms all taps once and keeps them: those of few
/// planes, of conv2d and conv2d_input_grad.
bool keepsTaps(const Shape &shape, const Schedule &schedule);

/// The kernel of conv2d_filter_grad, and whether its tensors are where it can
/// read them.
bool canReadForFilterGrad(AnchorKernel &kernel, const Schedule &schedule);
Work emitFilterGrad(AnchorKernel &kernel, const Schedule &schedule);
int64_t scratchOfFilterGrad(AnchorKernel &kernel, const Schedule &schedule);

/// The tile of registers, `rows` and `vectors`, of products with so many rows
/// and columns.
ScheduleOverride tileOfProducts(AnchorKernel &kernel, int64_t rows,
                                int64_t columns);

/// The row of this method (Methods.cpp).
Fit fit(AnchorKernel &kernel);
double seconds(AnchorKernel &kernel);
int64_t scratch(AnchorKernel &kernel);
ScheduleOverride cut(AnchorKernel &kernel);
mlir::FailureOr<Work> emit(AnchorKernel &kernel);

} // namespace tandem::lower::cpu::winograd

#endif
