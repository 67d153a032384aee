//===- Winograd.cpp - convolutions of 3x3 taps by fewer multiplications ---===//
//
// Lanes are planes: vectors of pixels are transposed on their way in and out,
// and no transform moves anything between lanes. With p a point, an item
// computes
//   products[p](tile, result) = sum over planes of
//                               inputs[p](tile, plane) taps[p](plane, result)
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cpu/Winograd.h"
#include "passes/lower/cpu/Gemm.h"
#include "passes/lower/cpu/WinogradTransforms.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
using namespace tandem::cpu::winograd;
using llvm::divideCeil;

static constexpr int64_t kAllPoints = kPoints * kPoints;

namespace {
/// A matrix for each point.
class PointMatrices {
public:
  PointMatrices(AnchorKernel &kernel, int64_t rows, int64_t columns,
                Type element, int64_t lanes)
      : columns(columns), code(kernel.code),
        // One vector more, so that the points' equal elements are in different
        // sets of the cache.
        memref(kernel.scratch.take(code, {kAllPoints, rows * columns + lanes},
                                   element)) {}

  SmallVector<Value> at(Value point, Value row, Value column) const {
    return {point, code.add(code.mul(row, columns), column)};
  }
  /// One vector of each point.
  Code::Values load(Value row, Value column, int64_t lanes) const {
    Code::Values result;
    Value position = code.add(code.mul(row, columns), column);
    for (int64_t p = 0; p < kAllPoints; ++p)
      result.push_back(code.load(memref, {code.index(p), position}, lanes));
    return result;
  }
  void store(ValueRange vectors, Value row, Value column) const {
    Value position = code.add(code.mul(row, columns), column);
    for (auto [p, vector] : llvm::enumerate(vectors))
      code.store(vector, memref, {code.index(p), position});
  }

  int64_t columns;

private:
  Code &code;

public:
  Value memref;
};

class Emitter {
public:
  Emitter(AnchorKernel &kernel, const Schedule &schedule);
  /// Whether the tensors are where they have to be.
  bool canRead() const;
  Work emit();

private:
  struct Place {
    Value image, y, x;
  };
  Place placeOf(Value segment) const;
  void emitItem(Value item);
  void packInputs(Value firstPlane);
  void packPatch(const Place &place, Value plane);
  void fillPatch(Value begin, Value end);
  void packLine(Value start, Value place, Value count);
  void packTaps(Value firstPlane, Value firstResult);
  void multiply(Value isFirst);
  void finish(Value firstResult);
  void finishSegment(const Place &place, Value plane);
  void storeLine(Value pixel, int64_t length, Value active, Value plane,
                 Value place);
  Code::Values loadTransposed(Value memref, Value position, int64_t stride,
                              int64_t count, Value active = {}) const;

  AnchorKernel &kernel;
  Code &code;
  Shape shape;
  Schedule s;
  Type type;
  int64_t tiles; ///< of an item
  int64_t patchWidth;
  Operand image, filter;
  std::optional<Operand> output;
  Value patch, lines;
  std::optional<PointMatrices> inputs, taps, products;
  Value firstSegment, segments; ///< of the item
};
} // namespace

Emitter::Emitter(AnchorKernel &kernel, const Schedule &schedule)
    : kernel(kernel), code(kernel.code), shape(Shape::of(kernel.anchor)),
      s(schedule), type(code.b.getF32Type()) {
  const Grid &grid = shape.grid;
  SmallVector<AffineExpr> d;
  for (unsigned i = 0; i < 4; ++i)
    d.push_back(getAffineDimExpr(i, code.b.getContext()));
  image = kernel.operand(
      0, d, {grid.images, shape.planes, shape.seen[0], shape.seen[1]});
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
  return image.isAffine() && filter.isAffine() && image.stride(3) == 1 &&
         filter.stride(2) == 1;
}

Work Emitter::emit() {
  const Grid &grid = shape.grid;
  tiles = s.segments * grid.segmentTiles;
  patchWidth = grid.segmentWidth() + kTaps - 1;
  patch = kernel.scratch.take(code, {kPoints * patchWidth + s.lanes, s.lanes},
                              type);
  if (!output)
    lines = kernel.scratch.take(
        code, {s.lanes, kTile * grid.segmentWidth() + s.lanes}, type);
  inputs.emplace(kernel, tiles, s.planeBlock, type, s.lanes);
  taps.emplace(kernel, s.planeBlock, s.resultBlock, type, s.lanes);
  products.emplace(kernel, tiles, s.resultBlock, type, s.lanes);

  kernel.forEachItem([&](Value item) { emitItem(item); });

  Work work;
  int64_t resultBlocks = shape.results / s.resultBlock;
  work.items = divideCeil(grid.segments(), s.segments) * resultBlocks;
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
  if (shape.grid.segments() % s.segments != 0)
    segments = code.min(
        segments, code.sub(code.index(shape.grid.segments()), firstSegment));
  Value zero = code.index(0);
  code.loop(zero, code.index(shape.planes), s.planeBlock, [&](Value plane) {
    packInputs(plane);
    packTaps(plane, firstResult);
    multiply(code.equal(plane, zero));
  });
  finish(firstResult);
}

Emitter::Place Emitter::placeOf(Value segment) const {
  const Grid &grid = shape.grid;
  Value row = code.div(segment, grid.perRow);
  return {code.div(row, grid.rows()),
          code.mul(code.rem(row, grid.rows()), kTile),
          code.mul(code.rem(segment, grid.perRow), grid.segmentWidth())};
}

//===----------------------------------------------------------------------===//
// In
//===----------------------------------------------------------------------===//

/// `count` neighbours (of which the first `active` are read, and others 0) from
/// each of positions `stride` apart, one position a lane: a vector for each
/// neighbour.
Code::Values Emitter::loadTransposed(Value memref, Value position,
                                     int64_t stride, int64_t count,
                                     Value active) const {
  Code::Values result;
  for (int64_t begin = 0; begin < count; begin += s.lanes) {
    Value mask;
    if (active)
      mask = code.firstLanes(code.add(active, -begin), s.lanes);
    else if (count - begin < s.lanes)
      mask = code.firstLanes(code.index(count - begin), s.lanes);
    Code::Values rows;
    for (int64_t lane = 0; lane < s.lanes; ++lane)
      rows.push_back(code.load(
          memref, code.add(position, lane * stride + begin), s.lanes, mask));
    Code::Values columns = code.transpose(rows);
    columns.truncate(std::min(s.lanes, count - begin));
    llvm::append_range(result, columns);
  }
  return result;
}

void Emitter::fillPatch(Value begin, Value end) {
  Value zeros = code.zeros(type, s.lanes);
  code.loop(begin, end, 1, [&](Value at) {
    code.store(zeros, patch, {at, code.index(0)});
  });
}

/// Packs `count` elements of a line of the image, the first of them at `place`.
/// What follows them in the patch becomes anything.
void Emitter::packLine(Value start, Value place, Value count) {
  int64_t step = std::min({patchWidth, shape.seen[1], s.lanes});
  code.loop(code.index(0), count, s.lanes, [&](Value at) {
    Code::Values pixels =
        loadTransposed(image.memref, code.add(place, at), image.stride(1), step,
                       code.sub(count, at));
    for (auto [i, pixel] : llvm::enumerate(pixels))
      code.store(pixel, patch,
                 {code.add(code.add(start, at), i), code.index(0)});
  });
}

/// Packs what a segment sees of `lanes` planes.
void Emitter::packPatch(const Place &place, Value plane) {
  Value zero = code.index(0);
  Value x = code.add(place.x, -shape.before[1]);
  Value from = code.max(x, zero);
  Value to = code.max(from, code.min(code.add(x, patchWidth), shape.seen[1]));
  code.loop(zero, code.index(kPoints), 1, [&](Value line) {
    Value y = code.add(code.add(place.y, -shape.before[0]), line);
    Value start = code.mul(line, patchWidth), end = code.add(start, patchWidth);
    code.when(
        code.below(y, shape.seen[0]),
        [&] {
          Value first = code.add(start, code.sub(from, x));
          Value count = code.sub(to, from);
          fillPatch(start, first);
          packLine(first, image.at(code, {place.image, plane, y, from}), count);
          fillPatch(code.add(first, count), end);
        },
        [&] { fillPatch(start, end); });
  });
}

void Emitter::packInputs(Value firstPlane) {
  Value zero = code.index(0);
  int64_t segmentTiles = shape.grid.segmentTiles;
  code.loop(zero, code.index(s.planeBlock), s.lanes, [&](Value planes) {
    code.loop(zero, segments, 1, [&](Value segment) {
      packPatch(placeOf(code.add(firstSegment, segment)),
                code.add(firstPlane, planes));
      code.loop(zero, code.index(segmentTiles), 1, [&](Value tile) {
        Code::Values seen;
        for (int64_t i = 0; i < kPoints; ++i)
          for (int64_t j = 0; j < kPoints; ++j)
            seen.push_back(code.load(
                patch,
                {code.add(code.mul(tile, kTile), i * patchWidth + j), zero},
                s.lanes));
        inputs->store(transformSquare(code, seen, transformInput),
                      code.add(code.mul(segment, segmentTiles), tile), planes);
      });
    });
  });
}

void Emitter::packTaps(Value firstPlane, Value firstResult) {
  Value zero = code.index(0);
  code.loop(zero, code.index(s.resultBlock), s.lanes, [&](Value results) {
    code.loop(zero, code.index(s.planeBlock), 1, [&](Value plane) {
      Value place = filter.at(code, {code.add(firstPlane, plane),
                                     code.add(firstResult, results), zero});
      Code::Values seen =
          loadTransposed(filter.memref, place, filter.stride(1), kTaps * kTaps);
      if (shape.isInputGrad)
        std::reverse(seen.begin(), seen.end());
      taps->store(transformSquare(code, seen, transformTaps), plane, results);
    });
  });
}

//===----------------------------------------------------------------------===//
// The products
//===----------------------------------------------------------------------===//

void Emitter::multiply(Value isFirst) {
  Gemm gemm;
  gemm.M = tiles;
  gemm.N = s.resultBlock;
  gemm.K1 = s.planeBlock;
  gemm.type = type;
  gemm.isPacked = true;
  Value point;
  gemm.a = [&](Code &code, Value m, int64_t i, Value, Value k, int64_t u) {
    return Value(memref::LoadOp::create(
        code.b, code.loc, inputs->memref,
        inputs->at(point, code.add(m, i), code.add(k, u))));
  };
  gemm.b = [&](Code &code, Value, Value k, int64_t u, Value n, int64_t lanes,
               Value mask) {
    return code.load(taps->memref, taps->at(point, code.add(k, u), n), lanes,
                     mask);
  };
  gemm.store = [&](Code &code, Value m, int64_t i, Value n, Value sums,
                   Value mask) {
    SmallVector<Value> at = products->at(point, code.add(m, i), n);
    code.when(
        isFirst, [&] { code.store(sums, products->memref, at, mask); },
        [&] {
          Value before = code.load(products->memref, at, s.lanes, mask);
          Value sum = arith::AddFOp::create(code.b, code.loc, before, sums);
          code.store(sum, products->memref, at, mask);
        });
  };
  GemmSchedule schedule = scheduleGemm(gemm, kernel.target, /*batches=*/1);
  schedule.k1Block = s.planeBlock;
  schedule.packs = false;
  Value zero = code.index(0);
  code.loop(zero, code.index(kAllPoints), 1, [&](Value p) {
    point = p;
    code.loop(zero, code.index(schedule.panels(gemm)), 1, [&](Value panel) {
      emitGemmPart(code, gemm, schedule,
                   {zero, code.mul(segments, shape.grid.segmentTiles), panel,
                    zero, code.index(s.planeBlock)});
    });
  });
}

//===----------------------------------------------------------------------===//
// Out
//===----------------------------------------------------------------------===//

void Emitter::finish(Value firstResult) {
  Value zero = code.index(0);
  const Grid &grid = shape.grid;
  code.loop(zero, code.index(s.resultBlock), s.lanes, [&](Value results) {
    code.loop(zero, segments, 1, [&](Value segment) {
      code.loop(zero, code.index(grid.segmentTiles), 1, [&](Value tile) {
        Code::Values made = transformSquare(
            code,
            products->load(code.add(code.mul(segment, grid.segmentTiles), tile),
                           results, s.lanes),
            [](Code &code, ValueRange m) {
              return transformProducts(code, m, kTile);
            });
        for (auto [i, vector] : llvm::enumerate(made)) {
          // The patch's vectors are now those of kTile lines.
          Value pixel = code.add(code.mul(tile, kTile),
                                 i / kTile * grid.segmentWidth() + i % kTile);
          code.store(vector, patch, {pixel, zero});
        }
      });
      finishSegment(placeOf(code.add(firstSegment, segment)),
                    code.add(firstResult, results));
    });
  });
}

/// Stores the elements of `lanes` planes, `length` pixels from `pixel` on of
/// which the first `active` exist.
void Emitter::storeLine(Value pixel, int64_t length, Value active, Value plane,
                        Value place) {
  Value zero = code.index(0);
  code.loop(zero, code.min(code.index(length), active), s.lanes,
            [&](Value begin) {
              Code::Values rows;
              for (int64_t i = 0; i < s.lanes; ++i)
                rows.push_back(
                    i < length
                        ? code.load(patch,
                                    {code.add(code.add(pixel, begin), i), zero},
                                    s.lanes)
                        : code.zeros(type, s.lanes));
              Value mask = code.firstLanes(code.sub(active, begin), s.lanes);
              Code::Values columns = code.transpose(rows);
              for (int64_t lane = 0; lane < s.lanes; ++lane) {
                if (output)
                  code.store(columns[lane], output->memref,
                             code.add(code.add(place, begin),
                                      lane * output->stride(1)),
                             mask);
                else
                  code.store(columns[lane], lines,
                             {code.index(lane), code.add(pixel, begin)});
              }
            });
}

void Emitter::finishSegment(const Place &place, Value plane) {
  const Grid &grid = shape.grid;
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
  bool isOneLine = grid.segmentWidth() == grid.width &&
                   (!output || output->stride(2) == grid.width);
  if (isOneLine)
    storeLine(zero, kTile * grid.width, code.mul(height, grid.width), plane,
              first);
  else
    code.loop(zero, height, 1, [&](Value line) {
      storeLine(code.mul(line, grid.segmentWidth()), grid.segmentWidth(), width,
                plane,
                output ? code.add(first, code.mul(line, output->stride(2)))
                       : zero);
    });
  if (output)
    return;
  code.loop(zero, code.index(s.lanes), 1, [&](Value lane) {
    code.loop(zero, height, 1, [&](Value line) {
      code.loop(zero, width, 1, [&](Value column) {
        Value pixel = code.add(code.mul(line, grid.segmentWidth()), column);
        Value sum = memref::LoadOp::create(code.b, code.loc, lines,
                                           ValueRange{lane, pixel});
        kernel.finish({place.image, code.add(plane, lane),
                       code.add(place.y, line), code.add(place.x, column)},
                      sum);
      });
    });
  });
}

std::optional<Work> winograd::emit(AnchorKernel &kernel) {
  auto schedule = Schedule::choose(kernel.anchor, kernel.target);
  if (!schedule)
    return std::nullopt;
  Emitter emitter(kernel, *schedule);
  if (!emitter.canRead())
    return std::nullopt;
  return emitter.emit();
}
