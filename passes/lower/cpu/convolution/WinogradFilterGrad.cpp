//===- WinogradFilterGrad.cpp - gradients of 3x3 taps ---------------------===//
//
// With p a point, an item computes
//   products[p](result, plane) = sum over tiles of
//                                made[p](tile, result) seen[p](tile, plane)
// where `made` is a tile of dy, as 4 taps in each direction, and `seen` what
// the tile sees of x.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/Indices.h"
#include "passes/lower/cpu/convolution/WinogradTiles.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower::cpu::winograd;

namespace {
class FilterGradEmitter {
public:
  FilterGradEmitter(AnchorKernel &kernel, const Schedule &schedule);
  bool canRead() const { return image.canRead() && gradient.canRead(); }
  void takeScratch();
  Work emit();

private:
  void emitItem(Value item);
  void finish(Value firstResult, Value firstPlane);
  void storeTaps(ValueRange taps, Value result, Value firstPlane, Value plane);
  void finishLine(Value result, Value firstPlane);

  AnchorKernel &kernel;
  Code &code;
  Shape shape;
  Grid grid;
  Schedule s;
  TilePack image, gradient;
  std::optional<Operand> output;
  std::optional<PointMatrices> seen, made, products;
  Value line; ///< [planes and taps] of a result, where it is finished there
};
} // namespace

static constexpr int64_t kAllTaps = kTaps * kTaps;

FilterGradEmitter::FilterGradEmitter(AnchorKernel &kernel,
                                     const Schedule &schedule)
    : kernel(kernel), code(kernel.code), shape(Shape::of(kernel.anchor)),
      grid(shape.grid), s(schedule),
      image(kernel, 0, grid, shape.before, kPoints, s.lanes),
      gradient(kernel, 1, grid, {0, 0}, kTile, s.lanes) {
  SmallVector<AffineExpr> d = dimensions(code.b.getContext(), 3);
  output = kernel.directOutput(
      code.b.getF32Type(), {d[0], d[1], d[2].floorDiv(kTaps), d[2] % kTaps},
      {shape.groups * shape.results, shape.planes, kAllTaps}, 2);
}

void FilterGradEmitter::takeScratch() {
  int64_t tiles = s.segments * grid.segmentTiles;
  image.prepare();
  gradient.prepare();
  if (!output)
    line = kernel.scratch.take(code, {s.planeBlock * kAllTaps},
                               code.b.getF32Type());
  seen.emplace(kernel, tiles, s.planeBlock, s.lanes);
  made.emplace(kernel, tiles, s.resultBlock, s.lanes);
  products.emplace(kernel, s.resultBlock, s.planeBlock, s.lanes);
}

Work FilterGradEmitter::emit() {
  takeScratch();
  kernel.forEachItem([&](Value item) { emitItem(item); });

  Work work;
  work.items = shape.groups * (shape.planes / s.planeBlock) *
               (shape.results / s.resultBlock);
  double flops = 2.0 * kAllPoints * grid.tiles() * s.planeBlock * s.resultBlock;
  work.grain = grainFor(work.items, flops, /*bytesPerItem=*/0);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

void FilterGradEmitter::emitItem(Value item) {
  int64_t planeBlocks = shape.planes / s.planeBlock;
  int64_t resultBlocks = shape.results / s.resultBlock;
  Value ofAll = code.div(item, planeBlocks); // blocks of all groups' results
  Value group = code.div(ofAll, resultBlocks);
  Value firstPlane = code.mul(code.rem(item, planeBlocks), s.planeBlock);
  Value firstSeen = code.add(code.mul(group, shape.planes), firstPlane);
  Value firstResult = code.mul(ofAll, s.resultBlock);
  Value zero = code.index(0), all = code.index(grid.segments());
  code.loop(zero, all, s.segments, [&](Value segment) {
    Value segments = code.index(s.segments);
    if (grid.segments() % s.segments != 0)
      segments = code.min(segments, code.sub(all, segment));
    image.pack(segment, segments, firstSeen, *seen, transformInput);
    gradient.pack(segment, segments, firstResult, *made, transformTaps);
    PointProducts sums{*made, *seen, *products};
    sums.isTransposed = true;
    sums.rows = code.index(s.resultBlock);
    sums.k = code.mul(segments, grid.segmentTiles);
    sums.isFirst = code.equal(segment, zero);
    emitProducts(kernel, sums);
  });
  finish(firstResult, firstPlane);
}

void FilterGradEmitter::finish(Value firstResult, Value firstPlane) {
  Value zero = code.index(0);
  auto transform = [](Code &code, ValueRange m) {
    return transformProducts(code, m, kTaps);
  };
  code.loop(zero, code.index(s.resultBlock), 1, [&](Value result) {
    Value ofAll = code.add(firstResult, result);
    code.loop(zero, code.index(s.planeBlock), s.lanes, [&](Value plane) {
      storeTaps(transformSquare(code, products->load(result, plane), transform),
                ofAll, firstPlane, plane);
    });
    if (!output)
      finishLine(ofAll, firstPlane);
  });
}

/// Stores the taps of `lanes` planes from `plane` of the block on, a vector for
/// each tap.
void FilterGradEmitter::storeTaps(ValueRange taps, Value result,
                                  Value firstPlane, Value plane) {
  Value to = line, at = code.mul(plane, kAllTaps);
  int64_t stride = kAllTaps;
  if (output) {
    to = output->memref;
    at = output->at(code, {result, code.add(firstPlane, plane), {}});
    stride = output->stride(1);
  }
  for (int64_t begin = 0; begin < kAllTaps; begin += s.lanes) {
    int64_t count = std::min(s.lanes, kAllTaps - begin);
    Code::Values columns(taps.slice(begin, count));
    columns.resize(s.lanes, code.zeros(code.b.getF32Type(), s.lanes));
    Value mask = code.firstLanes(code.index(count), s.lanes);
    Code::Values rows = code.transpose(columns);
    for (auto [lane, vector] : llvm::enumerate(rows))
      code.store(vector, to, code.add(at, lane * stride + begin), mask);
  }
}

/// Finishes the sums of `line`, the taps of one result.
void FilterGradEmitter::finishLine(Value result, Value firstPlane) {
  Value first = code.mul(firstPlane, kAllTaps);
  int64_t results = shape.groups * shape.results;
  AffineExpr d0 = getAffineDimExpr(0, code.b.getContext());
  AffineExpr n = getAffineDimExpr(1, code.b.getContext());
  SmallVector<AffineExpr> index{d0, n.floorDiv(kAllTaps),
                                n.floorDiv(kTaps) % kTaps, n % kTaps};
  bool isFlat = kernel.keepsIndices();
  code.loop(code.index(0), code.index(s.planeBlock * kAllTaps), 1,
            [&](Value i) {
              Value sum = memref::LoadOp::create(code.b, code.loc, line, i);
              Value at = code.add(first, i);
              if (isFlat)
                return kernel.finish(index, {result, at},
                                     {results, shape.planes * kAllTaps}, sum);
              Value tap = code.rem(at, kAllTaps);
              kernel.finish({result, code.div(at, kAllTaps),
                             code.div(tap, kTaps), code.rem(tap, kTaps)},
                            sum);
            });
}

bool winograd::canReadForFilterGrad(AnchorKernel &kernel,
                                    const Schedule &schedule) {
  return FilterGradEmitter(kernel, schedule).canRead();
}

int64_t winograd::scratchOfFilterGrad(AnchorKernel &kernel,
                                      const Schedule &schedule) {
  FilterGradEmitter emitter(kernel, schedule);
  return kernel.countScratch([&] { emitter.takeScratch(); });
}

Work winograd::emitFilterGrad(AnchorKernel &kernel, const Schedule &schedule) {
  return FilterGradEmitter(kernel, schedule).emit();
}
