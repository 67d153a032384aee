//===- WinogradSchedule.cpp - when and how Winograd's method is used ------===//
#include "passes/lower/cpu/Winograd.h"
#include "passes/lower/cpu/WinogradTransforms.h"

#include "passes/Target.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
using namespace tandem::cpu::winograd;
using llvm::divideCeil;

Grid Grid::of(int64_t images, int64_t height, int64_t width) {
  // Long rows are cut: what an item sees of a segment stays in the first-level
  // cache.
  constexpr int64_t most = 16;
  int64_t tiles = divideCeil(width, kTile);
  int64_t perRow = divideCeil(tiles, most);
  return {images, height, width, int64_t(divideCeil(tiles, perRow)), perRow};
}

int64_t Grid::rows() const { return divideCeil(height, kTile); }

static Convolution2d convolutionOf(Operation *op) {
  if (auto conv = dyn_cast<Conv2dOp>(op))
    return conv.getConvolution();
  return cast<Conv2dInputGradOp>(op).getConvolution();
}

Shape Shape::of(Operation *op) {
  Convolution2d c = convolutionOf(op);
  const Window2d &w = c.window;
  if (isa<Conv2dOp>(op))
    return {c.channels, c.filters, Grid::of(c.batch, w.output[0], w.output[1]),
            w.input,    w.before,  /*isInputGrad=*/false};
  // Pixel i of x is seen, at tap k, by pixel i + before - k of y.
  return {c.filters,
          c.channels,
          Grid::of(c.batch, w.input[0], w.input[1]),
          w.output,
          {kTaps - 1 - w.before[0], kTaps - 1 - w.before[1]},
          /*isInputGrad=*/true};
}

static bool hasShape(Operation *op) {
  if (!isa<Conv2dOp, Conv2dInputGradOp>(op))
    return false;
  Convolution2d c = convolutionOf(op);
  const Window2d &w = c.window;
  constexpr Window2d::Pair taps{kTaps, kTaps}, one{1, 1};
  return c.groups == 1 && w.kernel == taps && w.stride == one &&
         w.dilation == one;
}

/// The largest multiple of `unit` that divides `size` and is at most `most`.
static int64_t blockOf(int64_t size, int64_t unit, int64_t most) {
  int64_t block = most / unit * unit;
  while (size % block != 0)
    block -= unit;
  return block;
}

/// Vector operations, in multiply-adds, of a tile's or a pair of planes'
/// transform, with those that transpose.
static constexpr double kInputCost = 236, kTapsCost = 160, kResultCost = 190;

static bool isFaster(const Shape &shape, const Schedule &s) {
  double planes = shape.planes, results = shape.results;
  double pixels = static_cast<double>(shape.grid.images) * shape.grid.height *
                  shape.grid.width;
  double tiles = shape.grid.tiles();
  double blocks = divideCeil(shape.grid.segments(), s.segments);
  double direct = pixels * kTaps * kTaps * planes * results;
  double products = tiles * kPoints * kPoints * planes * results;
  double transforms = kInputCost * tiles * planes * (results / s.resultBlock) +
                      kTapsCost * blocks * planes * results +
                      kResultCost * tiles * results;
  return products + transforms < direct;
}

std::optional<Schedule> Schedule::choose(Operation *op,
                                         const VectorTarget &target) {
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (!hasShape(op) || !element.isF32() || !allowsWinograd(op))
    return std::nullopt;
  Shape shape = Shape::of(op);
  Schedule s;
  s.lanes = target.lanes(element);
  if (shape.planes % s.lanes != 0 || shape.results % s.lanes != 0 ||
      shape.grid.tiles() == 0)
    return std::nullopt;
  // One point's matrices stay in the first-level cache, all of them in the
  // second-level cache.
  constexpr int64_t planes = 32, results = 64, tiles = 64;
  s.planeBlock = blockOf(shape.planes, s.lanes, planes);
  s.resultBlock = blockOf(shape.results, s.lanes, results);
  s.segments = std::clamp<int64_t>(tiles / shape.grid.segmentTiles, 1,
                                   shape.grid.segments());
  return isFaster(shape, s) ? std::optional(s) : std::nullopt;
}
