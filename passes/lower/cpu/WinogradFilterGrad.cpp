//===- WinogradFilterGrad.cpp - gradients of 3x3 taps ---------------------===//
//
// With p a point, an item computes
//   products[p](result, plane) = sum over tiles of
//                                made[p](tile, result) seen[p](tile, plane)
// where `made` is a tile of dy, as 4 taps in each direction, and `seen` what
// the tile sees of x.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cpu/WinogradTiles.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
using namespace tandem::cpu::winograd;

namespace {
class FilterGradEmitter {
public:
  FilterGradEmitter(AnchorKernel &kernel, const Schedule &schedule);
  bool canRead() const { return image.canRead() && gradient.canRead(); }
  Work emit();

private:
  void emitItem(Value item);
  void finish(Value firstResult, Value firstPlane);
  void finishTaps(ValueRange taps, Value result, Value plane);

  AnchorKernel &kernel;
  Code &code;
  Shape shape;
  Grid grid;
  Schedule s;
  TilePack image, gradient;
  std::optional<Operand> output;
  std::optional<PointMatrices> seen, made, products;
  Value lines; ///< [planes][taps], where results are finished one by one
};
} // namespace

static constexpr int64_t kAllTaps = kTaps * kTaps;

FilterGradEmitter::FilterGradEmitter(AnchorKernel &kernel,
                                     const Schedule &schedule)
    : kernel(kernel), code(kernel.code), shape(Shape::of(kernel.anchor)),
      grid(shape.grid), s(schedule),
      image(kernel, 0, grid, shape.before, kPoints, s.lanes),
      gradient(kernel, 1, grid, {0, 0}, kTile, s.lanes) {
  SmallVector<AffineExpr> d;
  for (unsigned i = 0; i < 3; ++i)
    d.push_back(getAffineDimExpr(i, code.b.getContext()));
  output = kernel.directOutput(
      code.b.getF32Type(), {d[0], d[1], d[2].floorDiv(kTaps), d[2] % kTaps},
      {shape.groups * shape.results, shape.planes, kAllTaps}, 2);
}

Work FilterGradEmitter::emit() {
  int64_t tiles = s.segments * grid.segmentTiles;
  image.prepare();
  gradient.prepare();
  if (!output)
    lines = kernel.scratch.take(code, {s.lanes, kAllTaps + s.lanes},
                                code.b.getF32Type());
  seen.emplace(kernel, tiles, s.planeBlock, s.lanes);
  made.emplace(kernel, tiles, s.resultBlock, s.lanes);
  products.emplace(kernel, s.resultBlock, s.planeBlock, s.lanes);

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
    code.loop(zero, code.index(s.planeBlock), s.lanes, [&](Value plane) {
      finishTaps(
          transformSquare(code, products->load(result, plane), transform),
          code.add(firstResult, result), code.add(firstPlane, plane));
    });
  });
}

/// Stores the taps of `lanes` planes from `plane` on, a vector for each tap.
void FilterGradEmitter::finishTaps(ValueRange taps, Value result, Value plane) {
  Value zero = code.index(0);
  for (int64_t begin = 0; begin < kAllTaps; begin += s.lanes) {
    int64_t count = std::min(s.lanes, kAllTaps - begin);
    Code::Values columns(taps.slice(begin, count));
    columns.resize(s.lanes, code.zeros(code.b.getF32Type(), s.lanes));
    Value mask = code.firstLanes(code.index(count), s.lanes);
    Code::Values rows = code.transpose(columns);
    for (auto [lane, vector] : llvm::enumerate(rows))
      if (output)
        code.store(vector, output->memref,
                   code.add(output->at(code, {result, plane, zero}),
                            lane * output->stride(1) + begin),
                   mask);
      else
        code.store(vector, lines, {code.index(lane), code.index(begin)});
  }
  if (output)
    return;
  auto each = [&](int64_t count, llvm::function_ref<void(Value)> body) {
    code.loop(zero, code.index(count), 1, body);
  };
  each(s.lanes, [&](Value lane) {
    each(kTaps, [&](Value y) {
      each(kTaps, [&](Value x) {
        Value tap = code.add(code.mul(y, kTaps), x);
        Value sum = memref::LoadOp::create(code.b, code.loc, lines,
                                           ValueRange{lane, tap});
        kernel.finish({result, code.add(plane, lane), y, x}, sum);
      });
    });
  });
}

std::optional<Work> winograd::emitFilterGrad(AnchorKernel &kernel,
                                             const Schedule &schedule) {
  FilterGradEmitter emitter(kernel, schedule);
  if (!emitter.canRead())
    return std::nullopt;
  return emitter.emit();
}
