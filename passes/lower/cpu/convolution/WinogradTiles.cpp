//===- WinogradTiles.cpp - the parts of kernels by Winograd's method ------===//
#include "passes/lower/cpu/convolution/WinogradTiles.h"
#include "passes/lower/common/Indices.h"
#include "passes/lower/cpu/products/Gemm.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower::cpu::winograd;

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

PointMatrices::PointMatrices(AnchorKernel &kernel, int64_t rows,
                             int64_t columns, int64_t lanes)
    : rows(rows), columns(columns),
      // One vector more, so that the points' equal elements are in different
      // sets of the cache.
      memref(kernel.scratch.take(kernel.code,
                                 {kAllPoints, rows * columns + lanes},
                                 kernel.code.b.getF32Type())),
      code(kernel.code), lanes(lanes) {}

SmallVector<Value> PointMatrices::at(Value point, Value row,
                                     Value column) const {
  return {point, code.add(code.mul(row, columns), column)};
}

Code::Values PointMatrices::load(Value row, Value column) const {
  Code::Values result;
  for (int64_t p = 0; p < kAllPoints; ++p)
    result.push_back(code.load(memref, at(code.index(p), row, column), lanes));
  return result;
}

void PointMatrices::store(ValueRange vectors, Value row, Value column) const {
  for (auto [p, vector] : llvm::enumerate(vectors))
    code.store(vector, memref, at(code.index(p), row, column));
}

/// How the product of a point is cut; its tile is what the kernel's schedule
/// says. One register across has more of them down, so that none waits for its
/// sum.
static GemmSchedule scheduleProduct(AnchorKernel &kernel, Gemm &gemm) {
  using enum ScheduleKey;
  auto asked = ScheduleOverride::of(kernel.kernel);
  for (ScheduleKey key : {Rows, Vectors})
    if (asked.has(key))
      gemm.asked.set(key, asked[key]);
  GemmSchedule schedule = scheduleGemm(gemm, kernel.target, /*batches=*/1);
  constexpr int64_t many = 16;
  if (!asked.has(Rows) && schedule.vectors == 1 && gemm.M % many == 0 &&
      kernel.target.registers > many + 1)
    schedule.rows = many;
  return schedule;
}

ScheduleOverride winograd::tileOfProducts(AnchorKernel &kernel, int64_t rows,
                                          int64_t columns) {
  Gemm gemm;
  gemm.M = rows;
  gemm.N = columns;
  gemm.K1 = 1; // of no meaning for the tile
  gemm.type = kernel.code.b.getF32Type();
  GemmSchedule schedule = scheduleProduct(kernel, gemm);
  return ScheduleOverride({{ScheduleKey::Rows, schedule.rows},
                           {ScheduleKey::Vectors, schedule.vectors}});
}

void winograd::emitProducts(AnchorKernel &kernel, const PointProducts &p) {
  Code &code = kernel.code;
  Gemm gemm;
  gemm.M = p.sums.rows;
  gemm.N = p.sums.columns;
  gemm.K1 = p.isTransposed ? p.a.rows : p.a.columns;
  gemm.type = code.b.getF32Type();
  gemm.isPacked = true;
  Value point;
  gemm.a = [&](Code &code, Value m, int64_t i, Value, Value k, int64_t u) {
    Value row = code.add(m, i), column = code.add(k, u);
    if (p.isTransposed)
      std::swap(row, column);
    return Value(memref::LoadOp::create(code.b, code.loc, p.a.memref,
                                        p.a.at(point, row, column)));
  };
  gemm.b = [&](Code &code, Value, Value k, int64_t u, Value n, int64_t lanes,
               Value mask) {
    Value row = code.add(k, u);
    if (p.firstOfB)
      row = code.add(row, p.firstOfB);
    return code.load(p.b.memref, p.b.at(point, row, n), lanes, mask);
  };
  GemmSchedule schedule = scheduleProduct(kernel, gemm);
  gemm.store = [&](Code &code, Value m, int64_t i, Value n, Value sums,
                   Value mask) {
    SmallVector<Value> at = p.sums.at(point, code.add(m, i), n);
    code.when(
        p.isFirst, [&] { code.store(sums, p.sums.memref, at, mask); },
        [&] {
          Value before = code.load(p.sums.memref, at, schedule.lanes, mask);
          Value sum = arith::AddFOp::create(code.b, code.loc, before, sums);
          code.store(sum, p.sums.memref, at, mask);
        });
  };
  // A part that may have any length is not even.
  bool isWhole = getConstantIntValue(p.k) == gemm.K1;
  schedule.k1Block = isWhole ? gemm.K1 : gemm.K1 | 1;
  schedule.packs = false;
  Value zero = code.index(0);
  code.loop(zero, code.index(kAllPoints), 1, [&](Value number) {
    point = number;
    code.loop(zero, code.index(schedule.panels(gemm)), 1, [&](Value panel) {
      emitGemmPart(code, gemm, schedule, {zero, p.rows, panel, zero, p.k});
    });
  });
}

//===----------------------------------------------------------------------===//
// Images
//===----------------------------------------------------------------------===//

TileOrigin TileOrigin::of(Code &code, const Grid &grid, Value segment) {
  Value row = code.div(segment, grid.perRow);
  return {code.div(row, grid.rows()),
          code.mul(code.rem(row, grid.rows()), kTile),
          code.mul(code.rem(segment, grid.perRow), grid.segmentWidth())};
}

Code::Values winograd::loadTransposed(Code &code, Value memref, Value position,
                                      int64_t stride, int64_t lanes,
                                      int64_t count, Value active) {
  Code::Values result;
  for (int64_t begin = 0; begin < count; begin += lanes) {
    Value mask;
    if (active)
      mask = code.firstLanes(code.add(active, -begin), lanes);
    else if (count - begin < lanes)
      mask = code.firstLanes(code.index(count - begin), lanes);
    Code::Values rows;
    for (int64_t lane = 0; lane < lanes; ++lane)
      rows.push_back(code.widen(
          code.load(memref, code.add(position, lane * stride + begin), lanes,
                    mask),
          code.b.getF32Type()));
    Code::Values columns = code.transpose(rows);
    columns.truncate(std::min(lanes, count - begin));
    llvm::append_range(result, columns);
  }
  return result;
}

TilePack::TilePack(AnchorKernel &kernel, unsigned number, const Grid &grid,
                   Window2d::Pair before, int64_t side, int64_t lanes)
    : kernel(kernel), code(kernel.code), grid(grid), before(before), side(side),
      lanes(lanes), width(grid.segmentWidth() + side - kTile) {
  auto shape =
      cast<RankedTensorType>(kernel.anchor->getOperand(number).getType())
          .getShape();
  seen = {shape[2], shape[3]};
  SmallVector<AffineExpr> dims = dimensions(code.b.getContext(), 4);
  image = kernel.operand(number, dims, shape);
}

void TilePack::prepare() {
  patch = kernel.scratch.take(code, {side * width + lanes, lanes},
                              code.b.getF32Type());
}

void TilePack::fill(Value begin, Value end) {
  Value zeros = code.zeros(code.b.getF32Type(), lanes);
  code.loop(begin, end, 1, [&](Value at) {
    code.store(zeros, patch, {at, code.index(0)});
  });
}

/// Packs `count` elements of a line of the image, the first of them at `place`.
/// What follows them in the patch becomes anything.
void TilePack::packLine(Value start, Value place, Value count) {
  int64_t step = std::min({width, seen[1], lanes});
  code.loop(code.index(0), count, lanes, [&](Value at) {
    Code::Values pixels =
        loadTransposed(code, image.memref, code.add(place, at), image.stride(1),
                       lanes, step, code.sub(count, at));
    for (auto [i, pixel] : llvm::enumerate(pixels))
      code.store(pixel, patch,
                 {code.add(code.add(start, at), i), code.index(0)});
  });
}

/// Packs what a segment sees of `lanes` planes.
void TilePack::packPatch(const TileOrigin &place, Value plane) {
  Value zero = code.index(0);
  Value x = code.add(place.x, -before[1]);
  Value from = code.max(x, zero);
  Value to = code.max(from, code.min(code.add(x, width), seen[1]));
  code.loop(zero, code.index(side), 1, [&](Value line) {
    Value y = code.add(code.add(place.y, -before[0]), line);
    Value start = code.mul(line, width), end = code.add(start, width);
    code.when(
        code.below(y, seen[0]),
        [&] {
          Value first = code.add(start, code.sub(from, x));
          Value count = code.sub(to, from);
          fill(start, first);
          packLine(first, image.at(code, {place.image, plane, y, from}), count);
          fill(code.add(first, count), end);
        },
        [&] { fill(start, end); });
  });
}

void TilePack::pack(Value firstSegment, Value segments, Value firstPlane,
                    const PointMatrices &to, Transform transform) {
  Value zero = code.index(0);
  code.loop(zero, code.index(to.columns), lanes, [&](Value planes) {
    code.loop(zero, segments, 1, [&](Value segment) {
      packPatch(TileOrigin::of(code, grid, code.add(firstSegment, segment)),
                code.add(firstPlane, planes));
      code.loop(zero, code.index(grid.segmentTiles), 1, [&](Value tile) {
        Code::Values pixels;
        for (int64_t i = 0; i < side; ++i)
          for (int64_t j = 0; j < side; ++j)
            pixels.push_back(code.load(
                patch, {code.add(code.mul(tile, kTile), i * width + j), zero},
                lanes));
        to.store(transformSquare(code, pixels, transform),
                 code.add(code.mul(segment, grid.segmentTiles), tile), planes);
      });
    });
  });
}
