//===- Winograd.cpp - convolutions of 3x3 taps by fewer multiplications ---===//
//
// With p a point, an item computes
//   products[p](tile, result) = sum over planes of
//                               inputs[p](tile, plane) taps[p](plane, result)
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/Indices.h"
#include "passes/lower/common/VectorFinish.h"
#include "passes/lower/cpu/convolution/WinogradTiles.h"
#include "passes/lower/cpu/products/PackedNumber.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower::cpu::winograd;
using llvm::divideCeil;

namespace {
class Emitter {
public:
  Emitter(AnchorKernel &kernel, const Schedule &schedule);
  /// Whether the tensors are where they have to be.
  bool canRead() const;
  void takeScratch();
  Work emit();

private:
  void emitItem(Value item);
  void packTaps(Value firstPlane, Value firstResult, Value firstRow);
  void finish(Value firstResult);
  void finishSegment(const TileOrigin &place, Value plane);
  int64_t lineWidth() const;
  void storeLine(Value pixel, int64_t length, Value active, Value place);
  void finishLines(const TileOrigin &place, Value lane, Value plane,
                   Value height, Value width);
  /// The lines of a segment are whole lines of the result, one after the other.
  bool isFlat() const { return grid.perRow == 1 && kernel.keepsIndices(); }
  struct Index {
    SmallVector<AffineExpr> index;
    SmallVector<int64_t> sizes;
  };
  Index resultIndex() const;

  AnchorKernel &kernel;
  Code &code;
  Shape shape;
  Grid grid;
  Schedule s;
  Type type;
  TilePack image;
  Operand filter;
  std::optional<Operand> output;
  std::optional<VectorFinish> ends; ///< where results are not the sums
  std::optional<PointMatrices> inputs, taps, products;
  /// Where each thread packs all taps once, of a filter of few planes: they are
  /// number 0.
  PackedNumber keptTaps;
  Value made;  ///< [pixels of a segment][lanes]
  Value lines; ///< its transpose, where results are finished one by one
  Value firstSegment, segments; ///< of the item
};
} // namespace

Emitter::Emitter(AnchorKernel &kernel, const Schedule &schedule)
    : kernel(kernel), code(kernel.code), shape(Shape::of(kernel.anchor)),
      grid(shape.grid), s(schedule), type(code.b.getF32Type()),
      image(kernel, 0, grid, shape.before, kPoints, s.lanes) {
  SmallVector<AffineExpr> d = dimensions(code.b.getContext(), 4);
  // The filter's dimensions here: plane, result, tap.
  SmallVector<AffineExpr> index{d[1], d[0], d[2].floorDiv(kTaps), d[2] % kTaps};
  if (shape.isInputGrad)
    std::swap(index[0], index[1]);
  filter =
      kernel.operand(1, index, {shape.planes, shape.results, kTaps * kTaps});
  output = kernel.directOutput(
      type, d, {grid.images, shape.results, grid.height, grid.width}, 3);
}

bool Emitter::canRead() const {
  return image.canRead() && filter.isAffine() && filter.stride(2) == 1;
}

void Emitter::takeScratch() {
  int64_t tiles = s.segments * grid.segmentTiles;
  int64_t pixels = kTile * grid.segmentWidth() + s.lanes;
  if (keepsTaps(shape, s))
    keptTaps = PackedNumber::take(code, kernel.scratch);
  image.prepare();
  made = kernel.scratch.take(code, {pixels, s.lanes}, type);
  if (!output) {
    lines = kernel.scratch.take(code, {s.lanes, pixels}, type);
    Index at = resultIndex();
    ends = VectorFinish::of(kernel, at.index, at.sizes, at.sizes.size() - 1);
  }
  inputs.emplace(kernel, tiles, s.planeBlock, s.lanes);
  taps.emplace(kernel, keptTaps.isThere() ? shape.planes : s.planeBlock,
               s.resultBlock, s.lanes);
  products.emplace(kernel, tiles, s.resultBlock, s.lanes);
}

Work Emitter::emit() {
  takeScratch();
  kernel.forEachItem([&](Value item) { emitItem(item); });

  Work work;
  work.items =
      divideCeil(grid.segments(), s.segments) * (shape.results / s.resultBlock);
  int64_t tiles = s.segments * grid.segmentTiles;
  double flops = 2.0 * kAllPoints * tiles * shape.planes * s.resultBlock;
  work.grain = grainFor(work.items, flops, /*bytesPerItem=*/0);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

void Emitter::emitItem(Value item) {
  int64_t resultBlocks = shape.results / s.resultBlock;
  Value firstResult = code.mul(code.rem(item, resultBlocks), s.resultBlock);
  firstSegment = code.mul(code.div(item, resultBlocks), s.segments);
  segments = code.index(s.segments);
  if (grid.segments() % s.segments != 0)
    segments =
        code.min(segments, code.sub(code.index(grid.segments()), firstSegment));
  Value zero = code.index(0);
  if (keptTaps.isThere())
    keptTaps.packUnlessThere(code, zero, [&] {
      code.loop(zero, code.index(shape.planes), s.planeBlock,
                [&](Value plane) { packTaps(plane, zero, plane); });
    });
  code.loop(zero, code.index(shape.planes), s.planeBlock, [&](Value plane) {
    image.pack(firstSegment, segments, plane, *inputs, transformInput);
    PointProducts sums{*inputs, *taps, *products};
    if (keptTaps.isThere())
      sums.firstOfB = plane;
    else
      packTaps(plane, firstResult, zero);
    sums.rows = code.mul(segments, grid.segmentTiles);
    sums.k = code.index(s.planeBlock);
    sums.isFirst = code.equal(plane, zero);
    emitProducts(kernel, sums);
  });
  finish(firstResult);
}

/// Packs the taps of a block of planes to rows from `firstRow` on.
void Emitter::packTaps(Value firstPlane, Value firstResult, Value firstRow) {
  Value zero = code.index(0);
  code.loop(zero, code.index(s.resultBlock), s.lanes, [&](Value results) {
    code.loop(zero, code.index(s.planeBlock), 1, [&](Value plane) {
      Value place = filter.at(code, {code.add(firstPlane, plane),
                                     code.add(firstResult, results), zero});
      Code::Values seen = loadTransposed(
          code, filter.memref, place, filter.stride(1), s.lanes, kTaps * kTaps);
      if (shape.isInputGrad)
        std::reverse(seen.begin(), seen.end());
      taps->store(transformSquare(code, seen, transformTaps),
                  code.add(firstRow, plane), results);
    });
  });
}

void Emitter::finish(Value firstResult) {
  Value zero = code.index(0);
  auto transform = [](Code &code, ValueRange m) {
    return transformProducts(code, m, kTile);
  };
  code.loop(zero, code.index(s.resultBlock), s.lanes, [&](Value results) {
    code.loop(zero, segments, 1, [&](Value segment) {
      Value first = code.mul(segment, grid.segmentTiles);
      code.loop(zero, code.index(grid.segmentTiles), 1, [&](Value tile) {
        Code::Values y = transformSquare(
            code, products->load(code.add(first, tile), results), transform);
        for (auto [i, vector] : llvm::enumerate(y)) {
          int64_t pixel = i / kTile * grid.segmentWidth() + i % kTile;
          code.store(vector, made,
                     {code.add(code.mul(tile, kTile), pixel), zero});
        }
      });
      finishSegment(TileOrigin::of(code, grid, code.add(firstSegment, segment)),
                    code.add(firstResult, results));
    });
  });
}

/// Stores `length` pixels of `lanes` planes, from `pixel` of the segment on, of
/// which the first `active` exist, to `place` of the output or of `lines`.
void Emitter::storeLine(Value pixel, int64_t length, Value active,
                        Value place) {
  Value zero = code.index(0);
  code.loop(zero, code.min(active, length), s.lanes, [&](Value begin) {
    Value first = code.add(pixel, begin), to = code.add(place, begin);
    Code::Values pixels;
    for (int64_t i = 0; i < std::min(s.lanes, length); ++i)
      pixels.push_back(code.load(made, {code.add(first, i), zero}, s.lanes));
    pixels.resize(s.lanes, code.zeros(type, s.lanes));
    Value mask = code.firstLanes(code.sub(active, begin), s.lanes);
    Code::Values planes = code.transpose(pixels);
    for (auto [lane, vector] : llvm::enumerate(planes))
      if (output)
        code.store(vector, output->memref,
                   code.add(to, lane * output->stride(1)), mask);
      else
        code.store(vector, lines, {code.index(lane), to});
  });
}

/// The width of a segment in `lines`.
int64_t Emitter::lineWidth() const {
  return grid.perRow == 1 ? grid.width : grid.segmentWidth();
}

void Emitter::finishSegment(const TileOrigin &place, Value plane) {
  Value zero = code.index(0);
  Value height = code.min(code.sub(code.index(grid.height), place.y), kTile);
  if (grid.height % kTile == 0)
    height = code.index(kTile);
  Value width =
      code.min(code.sub(code.index(grid.width), place.x), grid.segmentWidth());
  if (grid.width % grid.segmentWidth() == 0)
    width = code.index(grid.segmentWidth());
  Value first =
      output ? output->at(code, {place.image, plane, place.y, place.x}) : zero;
  int64_t stride = output ? output->stride(2) : lineWidth();
  bool isOneLine = grid.segmentWidth() == grid.width && stride == grid.width;
  if (isOneLine)
    storeLine(zero, kTile * grid.width, code.mul(height, grid.width), first);
  else
    code.loop(zero, height, 1, [&](Value line) {
      storeLine(code.mul(line, grid.segmentWidth()), grid.segmentWidth(), width,
                code.add(first, code.mul(line, stride)));
    });
  if (output)
    return;
  code.loop(zero, code.index(s.lanes), 1, [&](Value lane) {
    finishLines(place, lane, code.add(plane, lane), height, width);
  });
}

/// The index of a result: pixels of a plane are one dimension where the lines
/// of a segment are whole ones.
Emitter::Index Emitter::resultIndex() const {
  SmallVector<AffineExpr> d = dimensions(code.b.getContext(), 4);
  if (!isFlat())
    return {d, {grid.images, shape.results, grid.height, grid.width}};
  return {{d[0], d[1], d[2].floorDiv(grid.width), d[2] % grid.width},
          {grid.images, shape.results, grid.height * grid.width}};
}

/// Finishes the sums of a plane of a segment in `lines`.
void Emitter::finishLines(const TileOrigin &place, Value lane, Value plane,
                          Value height, Value width) {
  Value zero = code.index(0);
  Index at = resultIndex();
  // `count` sums from `from` on, which are results from `dims` on.
  auto finish = [&](Value from, Code::Values dims, Value count) {
    if (ends)
      return ends->emitRun(code, dims, {lines, {lane, from}, count});
    Value first = dims.back();
    code.loop(zero, count, 1, [&](Value done) {
      dims.back() = code.add(first, done);
      Value sum = memref::LoadOp::create(
          code.b, code.loc, lines, ValueRange{lane, code.add(from, done)});
      kernel.finish(at.index, dims, at.sizes, sum);
    });
  };
  // Whole lines are one loop: a short loop over one of them would be written
  // out before it could become vectors.
  if (isFlat())
    return finish(zero, {place.image, plane, code.mul(place.y, grid.width)},
                  code.mul(height, grid.width));
  code.loop(zero, height, 1, [&](Value line) {
    finish(code.mul(line, lineWidth()),
           {place.image, plane, code.add(place.y, line), place.x}, width);
  });
}

Fit winograd::fit(AnchorKernel &kernel) {
  Schedule schedule;
  Fit fit = Schedule::fit(kernel.anchor, kernel.target, schedule);
  if (!fit.isPossible())
    return fit;
  bool canRead = isa<Conv2dFilterGradOp>(kernel.anchor)
                     ? canReadForFilterGrad(kernel, schedule)
                     : Emitter(kernel, schedule).canRead();
  if (!canRead)
    return Fit::impossible("expected images and taps whose neighbours are side "
                           "by side in memory but got others");
  return fit;
}

double winograd::seconds(AnchorKernel &kernel) {
  Schedule schedule;
  Schedule::fit(kernel.anchor, kernel.target, schedule);
  return secondsOf(kernel.kernel, kernel.anchor,
                   countsOf(kernel.anchor, schedule).own);
}

int64_t winograd::scratch(AnchorKernel &kernel) {
  Schedule schedule;
  Schedule::fit(kernel.anchor, kernel.target, schedule);
  if (isa<Conv2dFilterGradOp>(kernel.anchor))
    return scratchOfFilterGrad(kernel, schedule);
  Emitter emitter(kernel, schedule);
  return kernel.countScratch([&] { emitter.takeScratch(); });
}

ScheduleOverride winograd::cut(AnchorKernel &kernel) {
  using enum ScheduleKey;
  Schedule s;
  Schedule::fit(kernel.anchor, kernel.target, s);
  bool isFilterGrad = isa<Conv2dFilterGradOp>(kernel.anchor);
  int64_t tiles = s.segments * Shape::of(kernel.anchor).grid.segmentTiles;
  ScheduleOverride numbers =
      isFilterGrad ? tileOfProducts(kernel, s.resultBlock, s.planeBlock)
                   : tileOfProducts(kernel, tiles, s.resultBlock);
  numbers.set(Block, isFilterGrad ? s.planeBlock : tiles);
  numbers.set(Columns, s.resultBlock);
  return numbers;
}

FailureOr<Work> winograd::emit(AnchorKernel &kernel) {
  Schedule schedule;
  Schedule::fit(kernel.anchor, kernel.target, schedule);
  if (isa<Conv2dFilterGradOp>(kernel.anchor))
    return emitFilterGrad(kernel, schedule);
  return Emitter(kernel, schedule).emit();
}
