//===- Gemm.cpp - register-tiled matrix products --------------------------===//
#include "passes/lower/cpu/Gemm.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
using namespace tandem::lower;
using llvm::alignTo;
using llvm::divideCeil;

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

int64_t GemmSchedule::mBlocks(const Gemm &g) const {
  return divideCeil(g.M, mBlock);
}
int64_t GemmSchedule::panels(const Gemm &g) const {
  return divideCeil(g.N, width());
}
int64_t GemmSchedule::kBlocks(const Gemm &g) const {
  return std::max<int64_t>(1, divideCeil(g.K0, k0Block) *
                                  divideCeil(g.K1, k1Block));
}

/// `size` in equal parts of at most `most`, each a multiple of `unit`.
static int64_t equalParts(int64_t size, int64_t most, int64_t unit) {
  int64_t parts = std::max<int64_t>(1, divideCeil(size, most));
  return std::max<int64_t>(unit, alignTo(divideCeil(size, parts), unit));
}

/// The tile. Sums, one row of B and one element of A are in registers. A tile
/// of few rows is wide, so that sums which do not wait for each other hide the
/// latency of the multiply-add; more than 8 rows of an A in place would compete
/// for the ways of the first-level cache.
static void chooseTile(GemmSchedule &s, const Gemm &g,
                       const VectorTarget &target) {
  int64_t across = std::max<int64_t>(1, divideCeil(g.N, s.lanes));
  bool many = target.registers >= 32;
  int64_t wide = g.M == 1   ? (many ? 8 : 6)
                 : g.M == 2 ? (many ? 6 : 4)
                 : g.M == 3 ? (many ? 6 : 3)
                            : (many ? 4 : 2);
  s.vectors = std::min(across, wide);
  int64_t most = (target.registers - 2 - s.vectors) / s.vectors;
  most = std::min<int64_t>(most, s.vectors >= (many ? 4 : 2) ? 6 : 8);
  s.rows = equalParts(g.M, most, 1);
}

GemmSchedule cpu::scheduleGemm(const Gemm &g, const VectorTarget &target,
                               int64_t batches) {
  GemmSchedule s;
  s.lanes = target.lanes(g.type);
  chooseTile(s, g, target);

  // A panel stays in the second-level cache; and long sums are made of short
  // ones, which keeps f32 about as exact as blocked libraries are.
  constexpr int64_t panelBytes = 256 * 1024;
  int64_t rowBytes = s.width() * g.type.getIntOrFloatBitWidth() / 8;
  int64_t most = std::min<int64_t>(256, panelBytes / rowBytes);
  s.k1Block = equalParts(g.K1, most, std::max(s.lanes, s.unroll));
  if (g.K1 <= s.k1Block)
    s.k1Block = std::max<int64_t>(1, g.K1);
  s.k0Block = s.k1Block < g.K1
                  ? 1
                  : equalParts(g.K0, std::max<int64_t>(1, most / s.k1Block), 1);

  // Packing is paid back by the rows that use the panel.
  s.packs = !g.b || (!g.isPacked && g.M > 2 * s.rows);
  s.mBlock = equalParts(g.M, 480, s.rows);
  double k = static_cast<double>(g.K0) * g.K1;
  constexpr double enoughFlops = 4e6;
  constexpr int64_t enoughItems = 16, leastRows = 48;
  while (batches * s.mBlocks(g) * s.panels(g) < enoughItems &&
         s.mBlock >= 2 * leastRows &&
         2.0 * s.mBlock * s.width() * k > enoughFlops)
    s.mBlock = alignTo(divideCeil(s.mBlock, 2), s.rows);
  return s;
}

//===----------------------------------------------------------------------===//
// The code
//===----------------------------------------------------------------------===//

Value GemmPanel::row(Code &code, Value atK0, Value atK1) const {
  Value length = code.sub(k1End, k1);
  return code.add(code.mul(code.sub(atK0, k0), length), code.sub(atK1, k1));
}

namespace {
/// The emission of one item.
class GemmEmitter {
public:
  GemmEmitter(Code &code, const Gemm &g, const GemmSchedule &s,
              Scratch &scratch)
      : code(code), g(g), s(s) {
    manyBlocks = s.kBlocks(g) > 1;
    if (s.packs)
      panel.memref = scratch.take(
          code, {s.k0Block * s.k1Block + s.lanes, s.width()}, g.type);
    panel.width = s.width();
    panel.lanes = s.lanes;
    if (manyBlocks || !g.store)
      sums = scratch.take(code, {manyBlocks ? s.mBlock : s.rows, s.width()},
                          g.type);
  }

  /// Of a part.
  GemmEmitter(Code &code, const Gemm &g, const GemmSchedule &s)
      : code(code), g(g), s(s), manyBlocks(false) {
    assert(!s.packs && g.store && "a part has no scratch");
  }

  void emit(Value mBlock, Value panelNumber);
  void emitPart(const GemmPart &part);

private:
  void emitBlock(Value isFirst, Value isLast);
  void emitTile(Value m, int64_t rows, int64_t columns, Value isLast);
  void emitFinish(Value m);
  Code::Values emitProduct(Value m, int64_t rows, int64_t columns);
  Code::Values emitRound(Value m, int64_t rows, int64_t columns, Value k0,
                         Value k1, int64_t unroll, ValueRange sums);
  /// The mask of vector `v` of a tile with `columns` columns; null if all its
  /// lanes are columns.
  Value maskOf(int64_t v, int64_t columns) {
    int64_t active = columns - v * s.lanes;
    return active >= s.lanes ? Value()
                             : code.firstLanes(code.index(active), s.lanes);
  }
  /// The row of `sums` that C(m, ...) has.
  Value sumsRow(Value m, Value firstOfTile) {
    return code.sub(m, manyBlocks ? mBegin : firstOfTile);
  }

  Code &code;
  const Gemm &g;
  const GemmSchedule &s;
  GemmPanel panel;
  bool manyBlocks;
  Value sums;
  Value mBegin, mEnd, nEnd;
};
} // namespace

void GemmEmitter::emit(Value mBlock, Value panelNumber) {
  mBegin = code.mul(mBlock, s.mBlock);
  mEnd = code.min(code.add(mBegin, s.mBlock), g.M);
  panel.n = code.mul(panelNumber, s.width());
  nEnd = code.add(panel.n, s.width());
  if (g.N % s.width() != 0)
    nEnd = code.min(nEnd, g.N);
  panel.columns =
      g.N % s.width() == 0 ? code.index(s.width()) : code.sub(nEnd, panel.n);

  int64_t blocks = s.kBlocks(g);
  int64_t k1Blocks = std::max<int64_t>(1, divideCeil(g.K1, s.k1Block));
  code.loop(code.index(0), code.index(blocks), 1, [&](Value block) {
    Value k0 = code.div(block, k1Blocks), k1 = code.rem(block, k1Blocks);
    panel.k0 = code.mul(k0, s.k0Block);
    panel.k0End = code.min(code.add(panel.k0, s.k0Block), g.K0);
    panel.k1 = code.mul(k1, s.k1Block);
    panel.k1End = code.min(code.add(panel.k1, s.k1Block), g.K1);
    if (s.k0Block == 1 && g.K0 > 0)
      panel.k0End = code.add(panel.k0, 1);
    if (k1Blocks == 1) {
      panel.k1 = code.index(0);
      panel.k1End = code.index(g.K1);
    }
    if (s.packs)
      g.pack(code, panel);
    emitBlock(code.equal(block, code.index(0)),
              code.equal(block, code.index(blocks - 1)));
  });
}

void GemmEmitter::emitPart(const GemmPart &part) {
  mBegin = part.m;
  mEnd = part.mEnd;
  panel.n = code.mul(part.panel, s.width());
  panel.k0 = code.index(0);
  panel.k0End = code.index(1);
  panel.k1 = part.k1;
  panel.k1End = part.k1End;
  emitBlock(/*isFirst=*/{}, /*isLast=*/{}); // there is one
}

void GemmEmitter::emitBlock(Value isFirst, Value isLast) {
  if (manyBlocks)
    code.when(isFirst, [&] {
      code.loop(code.index(0), code.sub(mEnd, mBegin), 1, [&](Value row) {
        for (int64_t v = 0; v < s.vectors; ++v)
          code.store(code.zeros(g.type, s.lanes), sums,
                     {row, code.index(v * s.lanes)});
      });
    });

  int64_t restRows = g.M % s.rows, restColumns = g.N % s.width();
  code.loop(mBegin, mEnd, s.rows, [&](Value m) {
    auto columns = [&](int64_t count) {
      Value isWhole = code.less(m, code.index(g.M - s.rows + 1));
      if (restRows == 0)
        emitTile(m, s.rows, count, isLast);
      else
        code.when(
            isWhole, [&] { emitTile(m, s.rows, count, isLast); },
            [&] { emitTile(m, restRows, count, isLast); });
    };
    if (restColumns == 0)
      columns(s.width());
    else if (g.N < s.width())
      columns(restColumns);
    else
      code.when(
          code.less(panel.n, code.index(g.N - s.width() + 1)),
          [&] { columns(s.width()); }, [&] { columns(restColumns); });
    if (!g.store)
      code.when(isLast, [&] { emitFinish(m); });
  });
}

void GemmEmitter::emitTile(Value m, int64_t rows, int64_t columns,
                           Value isLast) {
  Code::Values tile = emitProduct(m, rows, columns);
  int64_t vectors = divideCeil(columns, s.lanes);
  auto forEach = [&](auto body) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t v = 0; v < vectors; ++v)
        body(i, v, tile[i * vectors + v]);
  };
  auto place = [&](int64_t i, int64_t v) {
    return Code::Values{code.add(sumsRow(m, m), i), code.index(v * s.lanes)};
  };
  auto keep = [&] {
    forEach([&](int64_t i, int64_t v, Value x) {
      code.store(x, sums, place(i, v));
    });
  };
  auto store = [&] {
    forEach([&](int64_t i, int64_t v, Value x) {
      g.store(code, m, i, code.add(panel.n, v * s.lanes), x,
              maskOf(v, columns));
    });
  };
  if (manyBlocks)
    forEach([&](int64_t i, int64_t v, Value &x) {
      Value before = code.load(sums, place(i, v), s.lanes);
      x = arith::AddFOp::create(code.b, code.loc, before, x);
    });
  if (!g.store)
    keep();
  else if (manyBlocks)
    code.when(isLast, store, keep);
  else
    store();
}

/// Finishes the elements of the tile's rows from `m` on.
void GemmEmitter::emitFinish(Value m) {
  Value end = code.add(m, s.rows);
  if (g.M % s.rows != 0)
    end = code.min(end, g.M);
  Value zero = code.index(0);
  bool isOneLine = g.lineLength == g.N;
  Value firstLine = isOneLine ? zero : code.div(panel.n, g.lineLength);
  Value endLine = isOneLine
                      ? code.index(1)
                      : code.add(code.div(code.add(nEnd, -1), g.lineLength), 1);
  code.loop(m, end, 1, [&](Value row) {
    Value at = sumsRow(row, m);
    code.loop(firstLine, endLine, 1, [&](Value line) {
      // Column 0 of the line is that column of the panel.
      Value start = code.sub(code.mul(line, g.lineLength), panel.n);
      Value low = panel.n, high = nEnd;
      if (!isOneLine) {
        low = code.max(zero, code.sub(zero, start));
        high = code.min(code.sub(code.sub(nEnd, panel.n), start), g.lineLength);
      }
      code.loop(low, high, 1, [&](Value column) {
        Value sum = memref::LoadOp::create(
            code.b, code.loc, sums, ValueRange{at, code.add(start, column)});
        g.finish(code, row, line, column, sum);
      });
    });
  });
}

Code::Values GemmEmitter::emitProduct(Value m, int64_t rows, int64_t columns) {
  int64_t vectors = divideCeil(columns, s.lanes);
  Code::Values zero(rows * vectors, code.zeros(g.type, s.lanes));
  return code.loop(
      panel.k0, panel.k0End, 1, zero, [&](Value k0, ValueRange carried) {
        // Rounds of `unroll`, and one by one what they leave.
        Value length = code.sub(panel.k1End, panel.k1);
        Value whole =
            code.add(panel.k1, code.mul(code.div(length, s.unroll), s.unroll));
        bool even = g.K1 % s.unroll == 0 && s.k1Block % s.unroll == 0;
        if (even)
          whole = panel.k1End;
        Code::Values tile = code.loop(
            panel.k1, whole, s.unroll, carried, [&](Value k1, ValueRange in) {
              return emitRound(m, rows, columns, k0, k1, s.unroll, in);
            });
        if (even)
          return tile;
        return code.loop(whole, panel.k1End, 1, tile,
                         [&](Value k1, ValueRange in) {
                           return emitRound(m, rows, columns, k0, k1, 1, in);
                         });
      });
}

Code::Values GemmEmitter::emitRound(Value m, int64_t rows, int64_t columns,
                                    Value k0, Value k1, int64_t unroll,
                                    ValueRange in) {
  int64_t vectors = divideCeil(columns, s.lanes);
  Code::Values tile(in), row(vectors);
  Value panelRow = s.packs ? panel.row(code, k0, k1) : Value();
  for (int64_t u = 0; u < unroll; ++u) {
    for (int64_t v = 0; v < vectors; ++v)
      row[v] = s.packs
                   ? code.load(panel.memref,
                               {code.add(panelRow, u), code.index(v * s.lanes)},
                               s.lanes)
                   : g.b(code, k0, k1, u, code.add(panel.n, v * s.lanes),
                         s.lanes, maskOf(v, columns));
    for (int64_t i = 0; i < rows; ++i) {
      Value x = code.splat(g.a(code, m, i, k0, k1, u), s.lanes);
      for (int64_t v = 0; v < vectors; ++v)
        tile[i * vectors + v] =
            code.multiplyAdd(x, row[v], tile[i * vectors + v]);
    }
  }
  return tile;
}

void cpu::emitGemm(Code &code, const Gemm &gemm, const GemmSchedule &schedule,
                   Scratch &scratch, Value mBlock, Value panel) {
  GemmEmitter(code, gemm, schedule, scratch).emit(mBlock, panel);
}

void cpu::emitGemmPart(Code &code, const Gemm &gemm,
                       const GemmSchedule &schedule, const GemmPart &part) {
  GemmEmitter(code, gemm, schedule).emitPart(part);
}
