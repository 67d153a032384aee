//===- WinogradSchedule.cpp - when and how Winograd's method is used ------===//
#include "passes/lower/common/ScheduleOverride.h"
#include "passes/lower/cpu/convolution/Winograd.h"
#include "passes/lower/cpu/convolution/WinogradTransforms.h"

#include "passes/lower/common/ConvolutionProduct.h"
#include "passes/target/Target.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower::cpu::winograd;
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

Shape Shape::of(Operation *op) {
  Convolution2d c = convolutionOf(op);
  const Window2d &w = c.window;
  if (!isa<Conv2dInputGradOp>(op))
    return {c.groups,
            c.channelsPerGroup(),
            c.filtersPerGroup(),
            Grid::of(c.batch, w.output[0], w.output[1]),
            w.input,
            w.before,
            /*isInputGrad=*/false};
  // Pixel i of x is seen, at tap k, by pixel i + before - k of y.
  return {c.groups,
          c.filtersPerGroup(),
          c.channelsPerGroup(),
          Grid::of(c.batch, w.input[0], w.input[1]),
          w.output,
          {kTaps - 1 - w.before[0], kTaps - 1 - w.before[1]},
          /*isInputGrad=*/true};
}

/// The reason against a convolution of these sizes and types, or "".
static std::string whyNot(Operation *op) {
  if (!isa<Conv2dOp, Conv2dInputGradOp, Conv2dFilterGradOp>(op))
    return "expected a convolution but got '" +
           op->getName().getStringRef().str() + "'";
  Convolution2d c = convolutionOf(op);
  const Window2d &w = c.window;
  constexpr Window2d::Pair taps{kTaps, kTaps}, one{1, 1};
  auto pair = [](StringRef what, const Window2d::Pair &expected,
                 const Window2d::Pair &got) {
    return ("expected " + what + " of " + crossed(expected) + " but got " +
            crossed(got))
        .str();
  };
  if (w.kernel != taps)
    return pair("taps", taps, w.kernel);
  if (w.stride != one)
    return pair("strides", one, w.stride);
  if (w.dilation != one)
    return pair("dilations", one, w.dilation);
  if (c.groups != 1 && !isa<Conv2dFilterGradOp>(op))
    return "expected one group but got " + std::to_string(c.groups);
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  if (!element.isF32() && !element.isBF16() && !element.isF16())
    return "expected elements of f32, bf16 or f16 but got " + textOf(element);
  if (!allowsWinograd(op))
    return "expected a target that allows it but got --winograd=no";
  return "";
}

/// The largest multiple of `unit` that divides `size` and is at most `most`.
static int64_t blockOf(int64_t size, int64_t unit, int64_t most) {
  int64_t block = most / unit * unit;
  while (size % block != 0)
    block -= unit;
  return block;
}

// Vector operations of a transform with its transposes: of what a tile sees, of
// a tile of y, of a pair of planes' taps; and back of a tile, and of taps.
static constexpr double kSeenCost = 236, kTileCost = 190, kTapsCost = 160,
                        kResultCost = 190, kTapsResultCost = 150;

/// What the transforms cost, in multiply-adds of lanes.
static double transformCost(const Shape &shape, const Schedule &s,
                            bool isFilterGrad) {
  double planes = shape.planes, results = shape.results;
  double tiles = shape.grid.tiles();
  double planeBlocks = planes / s.planeBlock,
         resultBlocks = results / s.resultBlock;
  double seen = kSeenCost * tiles * planes * resultBlocks;
  if (isFilterGrad)
    return seen + kTileCost * tiles * results * planeBlocks +
           kTapsResultCost * planes * results;
  double blocks = divideCeil(shape.grid.segments(), s.segments);
  return seen + kTapsCost * blocks * planes * results +
         kResultCost * tiles * results;
}

// The matrices of one point stay in the first-level cache; all those of an item
// are up to 1.2 MB, more than the second level that others reckon with.
static constexpr int64_t kLongSide = 64, kShortSide = 32;

/// Blocks of taps, which sum over all tiles.
static void cutTaps(const Shape &shape, Schedule &s) {
  constexpr int64_t enoughItems = 4;
  s.planeBlock = blockOf(shape.planes, s.lanes, kLongSide);
  s.resultBlock = blockOf(shape.results, s.lanes, kLongSide);
  auto items = [&] {
    return shape.groups * (shape.planes / s.planeBlock) *
           (shape.results / s.resultBlock);
  };
  // The transform of what a tile sees is the dearer one.
  for (int64_t *block : {&s.planeBlock, &s.resultBlock})
    if (items() < enoughItems && *block % (2 * s.lanes) == 0)
      *block /= 2;
}

/// Blocks of tiles where no item transforms taps of its own, so that smaller
/// ones cost little: threads should not wait for the last one.
static void cutTiles(const Grid &grid, Schedule &s) {
  constexpr int64_t enoughItems = 16, fewestTiles = 16;
  while (divideCeil(grid.segments(), s.segments) < enoughItems &&
         s.segments % 2 == 0 &&
         s.segments / 2 * grid.segmentTiles >= fewestTiles)
    s.segments /= 2;
}

/// What is asked for, as far as the sizes reach and matrices stay small: what
/// is summed at a time, which follows from the shapes alone, is not.
static void ask(const ScheduleOverride &asked, const Shape &shape,
                bool isFilterGrad, Schedule &s) {
  constexpr int64_t mostPlanes = 256, mostTiles = 1024;
  auto planes = [&](int64_t size, int64_t count) {
    count = std::clamp(count, s.lanes, std::max(s.lanes, mostPlanes));
    return blockOf(size, s.lanes, count);
  };
  int64_t block = asked[ScheduleKey::Block];
  if (int64_t columns = asked[ScheduleKey::Columns])
    s.resultBlock = planes(shape.results, columns);
  if (block && isFilterGrad)
    s.planeBlock = planes(shape.planes, block);
  else if (block)
    s.segments = std::clamp<int64_t>(std::min(block, mostTiles) /
                                         shape.grid.segmentTiles,
                                     1, shape.grid.segments());
}

bool winograd::keepsTaps(const Shape &shape, const Schedule &s) {
  // The taps' matrices are a third of the second-level cache then.
  constexpr int64_t most = 64 * 64;
  return shape.results == s.resultBlock && shape.planes * shape.results <= most;
}

Counts winograd::countsOf(Operation *op, const Schedule &s) {
  Shape shape = Shape::of(op);
  const Grid &grid = shape.grid;
  double products = static_cast<double>(shape.planes) * shape.results;
  double pixels = static_cast<double>(grid.images) * grid.height * grid.width;
  return {products * grid.tiles() * kPoints * kPoints +
              transformCost(shape, s, isa<Conv2dFilterGradOp>(op)),
          products * pixels * kTaps * kTaps};
}

Fit Schedule::fit(Operation *op, const CpuModel &target, Schedule &s) {
  if (std::string reason = whyNot(op); !reason.empty())
    return Fit::impossible(reason);
  Shape shape = Shape::of(op);
  const Grid &grid = shape.grid;
  s.lanes = target.lanes(Float32Type::get(op->getContext()));
  if (shape.planes % s.lanes != 0 || shape.results % s.lanes != 0)
    return Fit::impossible("expected multiples of " + Twine(s.lanes) +
                           " planes but got " + Twine(shape.planes) +
                           " that are summed and " + Twine(shape.results) +
                           " of the result");
  if (grid.tiles() == 0)
    return Fit::impossible("expected pixels but got none");
  bool isFilterGrad = isa<Conv2dFilterGradOp>(op);
  if (isFilterGrad) {
    cutTaps(shape, s);
  } else {
    s.planeBlock = blockOf(shape.planes, s.lanes, kShortSide);
    s.resultBlock = blockOf(shape.results, s.lanes, kLongSide);
  }
  s.segments = std::clamp<int64_t>((isFilterGrad ? kShortSide : kLongSide) /
                                       grid.segmentTiles,
                                   1, grid.segments());

  if (!isFilterGrad && keepsTaps(shape, s))
    cutTiles(grid, s);

  Counts counts = countsOf(op, s);
  ScheduleOverride asked;
  if (auto kernel = op->getParentOfType<KernelOp>())
    asked = ScheduleOverride::of(kernel);
  // Whether it is faster is decided before what is asked for is looked at.
  ask(asked, shape, isFilterGrad, s);
  if (counts.own >= counts.direct)
    return Fit::slower("expected fewer multiply-adds than the " +
                       Twine(static_cast<int64_t>(counts.direct)) +
                       " of a direct sum but got " +
                       Twine(static_cast<int64_t>(counts.own)) +
                       ", transforms included");
  return Fit::good();
}

std::optional<Schedule> Schedule::choose(Operation *op,
                                         const CpuModel &target) {
  Schedule s;
  if (!fit(op, target, s).isGood())
    return std::nullopt;
  return s;
}
