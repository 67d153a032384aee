//===- GemmTile.cpp - what registers do with tiles in shared memory -------===//
//
// Here: where elements lie, and multiplication by fused multiply-adds.
//
// A warp makes 4 x 8 blocks of sums, one a lane, in as many groups as its tile
// holds: a group's rows of A are 4 x 16 bytes, its columns of B 8 x 16 bytes,
// so that one 16-byte load for each lane touches each bank once (A's are
// broadcast), and a register of either factor is used for 8 products of the
// largest tile: 4 loads for 64 multiply-adds.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cuda/products/GemmTile.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

Value TileLayout::position(Code &code, Value line, Value k) const {
  Value row = rowsAlongK ? line : k, column = rowsAlongK ? k : line;
  if (swizzled) {
    int64_t piece = 16 / elementBytes(element), perRow = pitch / piece;
    // Rows of 128 bytes and more differ in all banks of a piece; of shorter
    // ones several make 128 bytes.
    int64_t ways = std::min<int64_t>(perRow, 8), rowsOf128 = 8 / ways;
    if (ways > 1) {
      Value turn = code.rem(code.div(row, rowsOf128), ways);
      Value at = code.b.createOrFold<arith::XOrIOp>(
          code.loc, code.div(column, piece), turn);
      column = code.add(code.mul(at, piece), code.rem(column, piece));
    }
  }
  return code.add(code.mul(row, pitch), column);
}

namespace {
class SimtTile : public GemmTile {
public:
  SimtTile(ThreadCode &code, const Gemm &gemm, const GemmSchedule &schedule);
  Values multiply(Value aTiles, Value aAt, Value bTiles, Value bAt,
                  ValueRange sums) override;
  void spill(ValueRange sums, Value tile, int64_t pitch) override;

private:
  static constexpr int64_t lanesM = 4, lanesN = 8;
  /// The first row of the lane's group `i`, and column of group `j`.
  Value row(int64_t i);
  Value column(int64_t j);

  int64_t group; ///< elements in 16 bytes
  int64_t rowGroups, columnGroups;
};
} // namespace

SimtTile::SimtTile(ThreadCode &code, const Gemm &gemm,
                   const GemmSchedule &schedule)
    : GemmTile(code, schedule) {
  group = 16 / elementBytes(gemm.type);
  rowGroups = schedule.warpM() / (lanesM * group);
  columnGroups = schedule.warpN() / (lanesN * group);
  // Rows along the lines: a thread's lines are neighbours. 16 bytes more make
  // the four k of a 16-byte piece, stored one by one, go to different banks.
  a = {gemm.type, schedule.blockM,         schedule.blockK,
       false,     schedule.blockM + group, false};
  b = {gemm.type, schedule.blockN,         schedule.blockK,
       false,     schedule.blockN + group, false};
  sums = rowGroups * group * columnGroups;
  sumType = VectorType::get({group}, gemm.type);
}

Value SimtTile::row(int64_t i) {
  Value warp = code.div(code.warp(), schedule.warpsN);
  Value lane = code.div(code.lane(), lanesN);
  return code.add(
      code.add(code.mul(warp, schedule.warpM()), code.mul(lane, group)),
      i * lanesM * group);
}

Value SimtTile::column(int64_t j) {
  Value warp = code.rem(code.warp(), schedule.warpsN);
  Value lane = code.rem(code.lane(), lanesN);
  return code.add(
      code.add(code.mul(warp, schedule.warpN()), code.mul(lane, group)),
      j * lanesN * group);
}

GemmTile::Values SimtTile::multiply(Value aTiles, Value aAt, Value bTiles,
                                    Value bAt, ValueRange before) {
  Values result(before);
  OpBuilder &builder = code.b;
  Value aFirst = code.add(aAt, row(0)), bFirst = code.add(bAt, column(0));
  for (int64_t k = 0; k < schedule.blockK; ++k) {
    Values x, y;
    for (int64_t i = 0; i < rowGroups; ++i)
      x.push_back(code.load(
          aTiles, code.add(aFirst, k * a.pitch + i * lanesM * group), group));
    for (int64_t j = 0; j < columnGroups; ++j)
      y.push_back(code.load(
          bTiles, code.add(bFirst, k * b.pitch + j * lanesN * group), group));
    for (int64_t i = 0; i < rowGroups * group; ++i) {
      Value scalar =
          vector::ExtractOp::create(builder, code.loc, x[i / group], i % group);
      Value factor = code.splat(scalar, group);
      for (int64_t j = 0; j < columnGroups; ++j) {
        Value &sum = result[i * columnGroups + j];
        sum = code.multiplyAdd(factor, y[j], sum);
      }
    }
  }
  return result;
}

void SimtTile::spill(ValueRange values, Value tile, int64_t pitch) {
  for (int64_t i = 0; i < rowGroups * group; ++i)
    for (int64_t j = 0; j < columnGroups; ++j) {
      Value atRow = code.add(row(i / group), i % group);
      code.store(values[i * columnGroups + j], tile,
                 code.add(code.mul(atRow, pitch), column(j)));
    }
}

std::unique_ptr<GemmTile>
lower::cuda::createSimtTile(ThreadCode &code, const Gemm &gemm,
                            const GemmSchedule &schedule) {
  return std::make_unique<SimtTile>(code, gemm, schedule);
}

GemmTile::Values GemmTile::begin() {
  return Values(sums,
                code.zeros(sumType.getElementType(), sumType.getNumElements()));
}

std::unique_ptr<GemmTile> GemmTile::create(ThreadCode &code, const Gemm &gemm,
                                           const GemmSchedule &schedule) {
  if (gemm.isOfBytes)
    return createByteTile(code, gemm, schedule);
  // Sums of wgmma lie in threads as those of mma.sync do.
  if (schedule.kind != GemmSchedule::Simt)
    return createMmaTile(code, gemm, schedule);
  return createSimtTile(code, gemm, schedule);
}
