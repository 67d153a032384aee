//===- Gemm.cpp - tiled matrix products for CUDA --------------------------===//
#include "passes/lower/cuda/products/Gemm.h"
#include "passes/lower/cuda/products/GemmCopy.h"
#include "passes/lower/cuda/products/GemmTile.h"
#include "passes/lower/cuda/products/GemmWgmma.h"
#include "passes/plan/LoopNest.h"

#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

namespace {
/// The code of one block.
class GemmEmitter {
public:
  GemmEmitter(ThreadCode &code, const Gemm &gemm, const GemmSchedule &schedule);
  LaunchShape emit();

private:
  using Value = mlir::Value;
  using Values = ThreadCode::Values;

  /// Which tile of C this block makes, and with which tiles of k.
  void place();
  /// The sums of the block's tiles of k.
  Values accumulate();
  /// Leaves the sums of all blocks of a tile to the last of them: calls
  /// `finish` there.
  void addSplits(ValueRange sums, llvm::function_ref<void(ValueRange)> finish);
  /// Stores the tile, from `result` in shared memory, where all of it is inside
  /// C, or else what is.
  void store(ValueRange sums);
  void storeWhole(Value result);
  void storeInside(Value result);
  /// Stores it part by part of kRowsOfTileSum rows, and the sums of each part.
  void storeAndSum(Value result);
  void storeSums(Value result, Value part, ValueRange sums);
  Value neutralOf(const Gemm::TileSum &sum);
  /// Neighbours that a thread stores: a piece of 16 bytes, or one.
  int64_t storeWidth() const;
  /// Where a piece of the tile is in C, and in shared memory.
  struct Stored {
    Value m, n, position;
  };
  Stored storedAt(Value piece);
  void append(const Stored &stored, Value result,
              SmallVectorImpl<GemmElement> &elements);

  int64_t tiles() const { return schedule.tiles(gemm); }
  bool isWgmma() const { return schedule.kind == GemmSchedule::Wgmma; }

  ThreadCode &code;
  const Gemm &gemm;
  const GemmSchedule &schedule;
  std::unique_ptr<GemmTile> tile;
  GemmCopy a, b;
  /// Bytes of shared memory: of the stages first, then of the tile of C.
  Value memory;
  int64_t aBytes, bBytes; ///< of all stages
  int64_t tilePitch;

  Value work, split;   ///< the number of the tile in the grid, of the split
  Value m, n;          ///< where the tile begins
  Value kFirst, count; ///< its tiles of k
};
} // namespace

GemmEmitter::GemmEmitter(ThreadCode &code, const Gemm &gemm,
                         const GemmSchedule &schedule)
    : code(code), gemm(gemm), schedule(schedule),
      tile(GemmTile::create(code, gemm, schedule)),
      a(code, *gemm.a, tile->a, gemm.M, gemm.K, schedule.threads()),
      b(code, *gemm.b, tile->b, gemm.N, gemm.K, schedule.threads()) {
  auto bytesOf = [&](const TileLayout &layout) {
    return static_cast<int64_t>(llvm::alignTo(
        layout.size() * schedule.stages * elementBytes(layout.element), 128));
  };
  aBytes = bytesOf(tile->a);
  bBytes = bytesOf(tile->b);
  int64_t stageBytes =
      isWgmma() ? WgmmaProduct::stageBytes(schedule) : aBytes + bBytes;
  // 8 more: threads that hold 2 columns of 8 rows store them without bank
  // conflicts.
  tilePitch = schedule.blockN + 8;
  int64_t tileBytes = schedule.blockM * tilePitch * elementBytes(gemm.type);
  memory = code.shared({std::max(stageBytes, tileBytes)}, code.b.getI8Type());
}

LaunchShape GemmEmitter::emit() {
  place();
  auto finish = [&](ValueRange sums) {
    auto end = [&](ValueRange total) { store(tile->end(total)); };
    if (schedule.splits == 1)
      end(sums);
    else
      addSplits(sums, end);
  };
  LaunchShape shape;
  shape.grid[0] = tiles() * schedule.splits;
  shape.block[0] = schedule.threads();
  if (isWgmma()) {
    WgmmaProduct product(code, gemm, schedule);
    product.emit(memory, m, n, kFirst, count, finish);
    shape.block[0] = product.threads();
    shape.blocksAtOnce = 1;
  } else {
    finish(gemm.K == 0 ? tile->begin() : accumulate());
  }
  shape.scratchBytes = scratchOf(gemm, schedule);
  return shape;
}

void GemmEmitter::place() {
  int64_t mTiles = schedule.mTiles(gemm), nTiles = schedule.nTiles(gemm);
  std::tie(split, work) = code.split(code.block(), tiles());
  auto [batch, at] = code.split(work, mTiles * nTiles);
  // Blocks that run at the same time share lines of both factors in L2: they
  // make a group of rows, column by column. The last group has what is left.
  int64_t group = std::min<int64_t>(mTiles, 8), left = mTiles % group;
  auto [block, inBlock] = code.split(at, group * nTiles);
  auto [column, row] = code.split(inBlock, group);
  if (left > 0) {
    auto [lastColumn, lastRow] = code.split(inBlock, left);
    Value isLast = code.equal(block, code.index(mTiles / group));
    column = code.select(isLast, lastColumn, column);
    row = code.select(isLast, lastRow, row);
  }
  m = code.mul(code.add(code.mul(block, group), row), schedule.blockM);
  n = code.mul(column, schedule.blockN);
  kFirst = code.mul(split, schedule.splitTiles);
  int64_t kTiles = schedule.kTiles(gemm);
  count =
      schedule.splits == 1 ? code.index(kTiles)
      : kTiles % schedule.splitTiles == 0
          ? code.index(schedule.splitTiles)
          : code.min(code.sub(code.index(kTiles), kFirst), schedule.splitTiles);
  gemm.enter(batch);
}

GemmEmitter::Values GemmEmitter::accumulate() {
  OpBuilder &builder = code.b;
  int64_t stages = schedule.stages;
  Value aTiles = code.view(memory, 0, tile->a.size() * stages, tile->a.element);
  Value bTiles =
      code.view(memory, aBytes, tile->b.size() * stages, tile->b.element);
  bool anyAsync = a.isAsync() || b.isAsync();
  auto commit = [&] {
    if (anyAsync)
      nvgpu::DeviceAsyncCreateGroupOp::create(
          builder, code.loc,
          nvgpu::DeviceAsyncTokenType::get(builder.getContext()), ValueRange());
  };
  Value token;
  auto wait = [&](int64_t inFlight) {
    if (!anyAsync)
      return;
    if (!token)
      token = nvgpu::DeviceAsyncCreateGroupOp::create(
          builder, code.loc,
          nvgpu::DeviceAsyncTokenType::get(builder.getContext()), ValueRange());
    nvgpu::DeviceAsyncWaitOp::create(
        builder, code.loc, token,
        builder.getI32IntegerAttr(static_cast<int32_t>(inFlight)));
  };
  auto aAt = [&](Value stage) { return code.mul(stage, tile->a.size()); };
  auto bAt = [&](Value stage) { return code.mul(stage, tile->b.size()); };
  auto kOf = [&](Value number) {
    return code.mul(code.add(kFirst, number), schedule.blockK);
  };
  // Begins to fetch tile `number` to `stage`; what passes through registers is
  // returned. There may be no such tile: then registers get the last again.
  auto fetch = [&](Value number, Value stage) {
    std::pair<Values, Values> fetched;
    auto async = [&] {
      Value k = kOf(number);
      if (a.isAsync())
        a.fetch(m, k, aTiles, aAt(stage));
      if (b.isAsync())
        b.fetch(n, k, bTiles, bAt(stage));
    };
    if (anyAsync)
      code.when(code.less(number, count), async);
    commit();
    Value k = kOf(code.min(number, code.add(count, -1)));
    if (!a.isAsync())
      fetched.first = a.fetch(m, k, aTiles, aAt(stage));
    if (!b.isAsync())
      fetched.second = b.fetch(n, k, bTiles, bAt(stage));
    return fetched;
  };
  auto put = [&](const std::pair<Values, Values> &fetched, Value stage) {
    a.put(fetched.first, aTiles, aAt(stage));
    b.put(fetched.second, bTiles, bAt(stage));
  };

  if (schedule.tableBytes(gemm) > 0) {
    for (GemmFactor *factor : {gemm.a, gemm.b})
      factor->fillTable(kOf(code.index(0)), schedule.depth(),
                        schedule.threads());
    code.barrier();
  }
  if (anyAsync)
    wait(0); // makes the token, of a group of nothing
  code.loop(code.index(0), code.index(stages - 1), 1,
            [&](Value stage) { put(fetch(stage, stage), stage); });
  Values carried = tile->begin();
  carried.push_back(code.index(0));
  carried = code.loop(
      code.index(0), count, 1, carried, [&](Value number, ValueRange now) {
        Value stage = now.back();
        // Tile `number` has come, and all threads are done with the one
        // before, whose stage is filled anew.
        wait(stages - 2);
        code.barrier();
        Value free = code.select(code.equal(stage, code.index(0)),
                                 code.index(stages - 1), code.add(stage, -1));
        auto fetched = fetch(code.add(number, stages - 1), free);
        Values next = tile->multiply(aTiles, aAt(stage), bTiles, bAt(stage),
                                     now.drop_back());
        put(fetched, free);
        next.push_back(code.select(code.equal(stage, code.index(stages - 1)),
                                   code.index(0), code.add(stage, 1)));
        return next;
      });
  carried.pop_back();
  wait(0);
  return carried;
}

static int64_t splitBytes(const Gemm &gemm, const GemmSchedule &schedule) {
  return schedule.tiles(gemm) * schedule.splits * schedule.blockM *
         schedule.blockN * elementBytes(gemm.type);
}

int64_t lower::cuda::scratchOf(const Gemm &gemm, const GemmSchedule &schedule) {
  if (schedule.splits == 1)
    return 0;
  return mostCounters * counterBytes + splitBytes(gemm, schedule);
}

void GemmEmitter::addSplits(ValueRange sums,
                            llvm::function_ref<void(ValueRange)> finish) {
  // A counter for each tile; behind the counters of all kernels the parts, as
  // threads hold them: [work][split][sum][thread].
  OpBuilder &builder = code.b;
  int64_t lanes = tile->sumType.getNumElements(), threads = schedule.threads();
  int64_t bytes = splitBytes(gemm, schedule),
          partSize = tile->sums * threads * lanes;
  Value scratch = code.scratch(scratchOf(gemm, schedule));
  Value counters = code.view(scratch, 0, tiles(), builder.getI32Type());
  Type element = getElementTypeOrSelf(sums.front());
  Value parts = code.view(scratch, mostCounters * counterBytes,
                          bytes / elementBytes(gemm.type), element);
  auto at = [&](Value part, int64_t sum) {
    Value first =
        code.mul(code.add(code.mul(work, schedule.splits), part), partSize);
    return code.add(code.add(first, code.mul(code.thread(), lanes)),
                    sum * threads * lanes);
  };
  for (auto [i, sum] : llvm::enumerate(sums))
    code.store(sum, parts, at(split, i));
  Value isLast = code.shared({1}, builder.getI32Type());
  code.barrier();
  code.when(code.equal(code.thread(), code.index(0)), [&] {
    Value before = code.countBlock(counters, work, schedule.splits);
    memref::StoreOp::create(builder, code.loc, before, isLast, code.index(0));
  });
  code.barrier();
  Value before =
      memref::LoadOp::create(builder, code.loc, isLast, code.index(0));
  code.when(code.equal(before, code.like(before, schedule.splits - 1)), [&] {
    Values total = code.loop(
        code.index(0), code.index(schedule.splits), 1, tile->begin(),
        [&](Value part, ValueRange totals) {
          Values next;
          for (auto [i, sum] : llvm::enumerate(totals)) {
            Value x = code.load(parts, at(part, i), lanes);
            next.push_back(
                isa<FloatType>(element)
                    ? Value(arith::AddFOp::create(builder, code.loc, sum, x))
                    : Value(arith::AddIOp::create(builder, code.loc, sum, x)));
          }
          return next;
        });
    finish(total);
  });
}

void GemmEmitter::store(ValueRange sums) {
  // Through shared memory: a warp stores pieces of rows that are side by side,
  // and the code of an element's epilogue stands in a loop.
  Value result = code.view(memory, 0, schedule.blockM * tilePitch, gemm.type);
  code.barrier(); // the stages were here
  tile->spill(sums, result, tilePitch);
  code.barrier();
  bool isWhole = gemm.M % schedule.blockM == 0 && gemm.N % schedule.blockN == 0;
  if (!gemm.sums.empty())
    return storeAndSum(result);
  bool hasWhole = gemm.M >= schedule.blockM && gemm.N >= schedule.blockN;
  if (isWhole)
    storeWhole(result);
  else if (hasWhole)
    code.when(
        code.both(
            code.less(code.add(m, schedule.blockM - 1), code.index(gemm.M)),
            code.less(code.add(n, schedule.blockN - 1), code.index(gemm.N))),
        [&] { storeWhole(result); }, [&] { storeInside(result); });
  else
    storeInside(result);
}

int64_t GemmEmitter::storeWidth() const {
  int64_t width = 16 / elementBytes(gemm.element);
  return gemm.neighbours % width == 0 ? width : 1;
}

GemmEmitter::Stored GemmEmitter::storedAt(Value piece) {
  int64_t width = storeWidth(), perRow = schedule.blockN / width;
  Value row = code.div(piece, perRow);
  Value column = code.mul(code.rem(piece, perRow), width);
  return {code.add(m, row), code.add(n, column),
          code.add(code.mul(row, tilePitch), column)};
}

void GemmEmitter::append(const Stored &stored, Value result,
                         SmallVectorImpl<GemmElement> &elements) {
  OpBuilder &builder = code.b;
  int64_t width = storeWidth();
  int64_t lanes = std::min(width, tile->sumType.getNumElements());
  if (width == 1) {
    elements.push_back(
        {stored.m, stored.n, 0,
         memref::LoadOp::create(builder, code.loc, result, stored.position)});
    return;
  }
  for (int64_t i = 0; i < width; i += lanes) {
    Value sums = code.load(result, code.add(stored.position, i), lanes);
    for (int64_t j = 0; j < lanes; ++j)
      elements.push_back(
          {stored.m, stored.n, i + j,
           vector::ExtractOp::create(builder, code.loc, sums, j)});
  }
}

/// Pieces of 16 bytes that a thread finishes together: what is read for one of
/// them is under way while the others are asked for. Sums of f64 take twice the
/// registers, and where parts are added, few are left.
static int64_t piecesTogether(const Gemm &gemm, const GemmSchedule &schedule) {
  return gemm.type.isF64() || schedule.splits > 1 ? 2 : 4;
}

void GemmEmitter::storeWhole(Value result) {
  int64_t threads = schedule.threads();
  int64_t pieces = schedule.blockM * schedule.blockN / storeWidth();
  int64_t together = piecesTogether(gemm, schedule);
  while (pieces % (threads * together) != 0 && together > 1)
    together /= 2;
  code.loop(
      code.thread(), code.index(pieces), threads * together, [&](Value piece) {
        SmallVector<GemmElement> elements;
        for (int64_t i = 0; i < together; ++i)
          append(storedAt(code.add(piece, i * threads)), result, elements);
        gemm.finish(elements);
      });
}

Value GemmEmitter::neutralOf(const Gemm::TileSum &sum) {
  ReductionOpInterface op = sum.op;
  return code.number(gemm.type,
                     cast<FloatAttr>(op.getNeutral()).getValueAsDouble());
}

void GemmEmitter::storeAndSum(Value result) {
  OpBuilder &builder = code.b;
  // A thread has the same columns of all its pieces.
  int64_t threads = schedule.threads(), width = storeWidth();
  int64_t pieces = kRowsOfTileSum * schedule.blockN / width;
  int64_t together = piecesTogether(gemm, schedule);
  while (pieces % (threads * together) != 0 && together > 1)
    together /= 2;
  for (int64_t p = 0; p < schedule.blockM / kRowsOfTileSum; ++p) {
    Values sums;
    for (const Gemm::TileSum &sum : gemm.sums)
      sums.append(width, neutralOf(sum));
    sums = code.loop(
        code.add(code.thread(), p * pieces), code.index((p + 1) * pieces),
        threads * together, sums, [&](Value piece, ValueRange carried) {
          SmallVector<GemmElement> elements;
          for (int64_t i = 0; i < together; ++i)
            append(storedAt(code.add(piece, i * threads)), result, elements);
          Values addends = gemm.finish(elements), next(carried);
          for (auto [i, addend] : llvm::enumerate(addends)) {
            ReductionOpInterface op = gemm.sums[i / elements.size()].op;
            Value &sum = next[i / elements.size() * width + i % width];
            sum = op.emitCombine(builder, code.loc, sum, addend);
          }
          return next;
        });
    storeSums(result, code.index(p * kRowsOfTileSum), sums);
  }
}

/// Adds what the threads with the same columns have, in their order, through
/// the rows of the tile that have been stored.
void GemmEmitter::storeSums(Value result, Value part, ValueRange sums) {
  OpBuilder &builder = code.b;
  int64_t threads = schedule.threads(), width = storeWidth();
  int64_t perRow = schedule.blockN / width, sharers = threads / perRow;
  Value sharer = code.div(code.thread(), perRow);
  Value first = code.mul(code.rem(code.thread(), perRow), width);
  auto at = [&](Value row, Value column) {
    return code.add(code.mul(code.add(part, row), tilePitch), column);
  };
  for (auto [s, tileSum] : llvm::enumerate(gemm.sums)) {
    ReductionOpInterface op = tileSum.op;
    Value memory = tileSum.memory;
    code.barrier(); // the rows were read, or the sums before these
    for (int64_t j = 0; j < width; ++j)
      memref::StoreOp::create(builder, code.loc, sums[s * width + j], result,
                              at(sharer, code.add(first, j)));
    code.barrier();
    code.loop(
        code.thread(), code.index(schedule.blockN), threads, [&](Value column) {
          Value total;
          for (int64_t i = 0; i < sharers; ++i) {
            Value x = memref::LoadOp::create(builder, code.loc, result,
                                             at(code.index(i), column));
            total = total ? op.emitCombine(builder, code.loc, total, x) : x;
          }
          Value row = code.div(code.add(m, part), kRowsOfTileSum);
          memref::StoreOp::create(
              builder, code.loc, total, memory,
              code.add(code.add(code.mul(row, gemm.N), n), column));
        });
  }
}

void GemmEmitter::storeInside(Value result) {
  int64_t pieces = schedule.blockM * schedule.blockN / storeWidth();
  code.loop(code.thread(), code.index(pieces), schedule.threads(),
            [&](Value piece) {
              Stored stored = storedAt(piece);
              Value inside = code.both(code.less(stored.m, code.index(gemm.M)),
                                       code.less(stored.n, code.index(gemm.N)));
              code.when(inside, [&] {
                SmallVector<GemmElement> elements;
                append(stored, result, elements);
                gemm.finish(elements);
              });
            });
}

LaunchShape lower::cuda::emitGemm(ThreadCode &code, const Gemm &gemm,
                                  const GemmSchedule &schedule) {
  return GemmEmitter(code, gemm, schedule).emit();
}
