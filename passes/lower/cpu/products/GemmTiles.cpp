//===- GemmTiles.cpp - the tiles of a product -----------------------------===//
#include "passes/lower/cpu/products/GemmEmitter.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;
using llvm::divideCeil;

/// What of A, of the next panel and of the next product belongs to a tile.
void GemmEmitter::enterTile(Value m, const GemmPiece &piece) {
  if (g.fetch && !s.packsA) {
    // Lines of A hold the elements of some tiles after this one; behind the
    // item's last rows come those of its first ones, further along k.
    Value later = code.add(m, 64 / (g.type.getIntOrFloatBitWidth() / 8));
    Value isInside = code.less(later, mEnd);
    fetchM =
        code.select(isInside, later, code.add(mBegin, code.sub(later, mEnd)));
    fetchK1 = code.select(isInside, code.index(0), code.index(s.k1Block));
  }
  if (g.fetchNext)
    tileNumber =
        code.add(code.mul(code.add(code.mul(itemNumber, s.group), place),
                          s.mBlock / s.rows),
                 code.div(code.sub(m, mBegin), s.rows));
  if (packsAhead()) {
    Value tile = code.div(code.sub(m, mBegin), s.rows);
    if (s.sweeps)
      tile = code.add(code.mul(piece.number, s.lastTiles(g)), tile);
    packRow = code.mul(tile, s.packedByTile(g));
    Value end = code.min(code.add(packRow, s.packedByTile(g)), g.K1);
    packEnd = code.select(packsNext, end, code.index(0));
  }
}

/// What stands beside a round of a product.
void GemmEmitter::emitBeside(const GemmRange &range, Value k0, Value k1) {
  Value round =
      code.div(code.sub(k1, s.sweeps ? range.k1 : panel.k1), s.unroll);
  if (g.fetch && !s.packsA)
    for (int64_t u = 0; u < s.unroll; ++u)
      g.fetch(code, fetchM, k0, code.add(k1, fetchK1), u);
  if (g.fetchEnd)
    fetchEnd(round);
  if (g.fetchNext)
    g.fetchNext(code, tileNumber, round);
  if (!packsAhead())
    return;
  Value row = code.add(packRow, code.div(round, s.packsEvery));
  Value isDue = code.equal(code.rem(round, s.packsEvery), code.index(0));
  code.when(code.both(isDue, code.less(row, packEnd)),
            [&] { g.packRow(code, next, row); });
}

/// Asks for what the tile will be finished with. While the last of it is on its
/// way, the rounds go on; too much at a time would hold up what they read.
void GemmEmitter::fetchEnd(Value round) {
  int64_t length = std::max(s.lanes, lineLength());
  int64_t across = divideCeil(s.width(), length), lines = s.rows * across;
  int64_t rounds = (s.sweeps ? s.k1Block : g.K1) / s.unroll;
  int64_t window = std::max<int64_t>(1, s.sweeps ? rounds / 2 : 3 * rounds / 4);
  int64_t inRound = divideCeil(lines, window);
  int64_t every =
      llvm::bit_floor<uint64_t>(std::max<int64_t>(1, window / lines));
  Value turn = code.div(round, every);
  Value isDue =
      code.both(code.equal(code.rem(round, every), code.index(0)),
                code.less(turn, code.index(divideCeil(lines, inRound))));
  code.when(code.both(endsTile, isDue), [&] {
    for (int64_t i = 0; i < inRound; ++i) {
      Value line = code.add(code.mul(turn, inRound), i);
      if (lines % inRound != 0)
        line = code.min(line, lines - 1);
      g.fetchEnd(code, code.add(tileM, code.div(line, across)),
                 code.add(panel.n, code.mul(code.rem(line, across), length)));
    }
  });
}

void GemmEmitter::emitTile(Value m, int64_t rows, int64_t columns,
                           const GemmPiece &piece) {
  tileM = m;
  endsTile = piece.isLast;
  int64_t vectors = divideCeil(columns, s.lanes);
  Code::Values tile;
  auto forEach = [&](auto body) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t v = 0; v < vectors; ++v)
        body(i, v, tile[i * vectors + v]);
  };
  auto keep = [&](Value row) {
    forEach([&](int64_t i, int64_t v, Value x) {
      code.store(x, sums, {code.add(row, i), code.index(v * s.lanes)});
    });
  };
  auto store = [&] {
    forEach([&](int64_t i, int64_t v, Value x) {
      g.store(code, m, i, code.add(panel.n, v * s.lanes), x,
              maskOf(v, columns));
    });
  };
  // `from` and `to` are the rows of the sums before and with this piece.
  auto addPiece = [&](const GemmPiece &part, Value from, Value to) {
    Value zeros = code.zeros(g.type, s.lanes);
    tile = emitProduct(m, rows, columns, part.range);
    forEach([&](int64_t i, int64_t v, Value &x) {
      Value before =
          s.sumsInResult
              ? g.load(code, m, i, code.add(panel.n, v * s.lanes), s.lanes,
                       maskOf(v, columns))
              : code.load(sums, {code.add(from, i), code.index(v * s.lanes)},
                          s.lanes);
      before = code.select(part.isFirst, zeros, before);
      x = arith::AddFOp::create(code.b, code.loc, before, x);
    });
    if (s.sumsInResult)
      store();
    else if (g.store)
      code.when(part.isLast, store, [&] { keep(to); });
    else
      keep(to);
  };

  if (!manySums) {
    tile = emitProduct(m, rows, columns, piece.range);
    return g.store ? store() : keep(code.index(0));
  }
  if (s.sweeps) {
    Value row = sumsRow(m);
    return addPiece(piece, row, row);
  }
  // Two places take turns: of one, LLVM would keep the sums in registers, of
  // which there are none left. The last sums are in the first one.
  forEachPiece(piece.range, s.k0Block, s.k1Block, [&](const GemmPiece &part) {
    Value from = code.mul(code.rem(part.number, 2), s.rows);
    Value to = code.sub(code.index(s.rows), from);
    addPiece(part, from, code.select(part.isLast, code.index(0), to));
  });
}

/// Finishes the elements of the tile's rows from `m` on.
void GemmEmitter::emitFinish(Value m) {
  Value end = code.add(m, s.rows);
  if (g.M % s.rows != 0)
    end = code.min(end, g.M);
  Value zero = code.index(0);
  bool isOneLine = g.lineLength == g.N;
  auto whole = [&](Value columns) {
    code.loop(m, end, 1, [&](Value row) {
      Value at = s.sweeps ? sumsRow(row) : code.sub(row, m);
      code.loop(zero, columns, 1, [&](Value column) {
        Value sum = memref::LoadOp::create(code.b, code.loc, sums,
                                           ValueRange{at, column});
        g.finish(code, row, zero, code.add(panel.n, column), sum);
      });
    });
  };
  // Loops of a known length are the better ones.
  if (isOneLine)
    return code.when(
        code.equal(panel.columns, code.index(s.width())),
        [&] { whole(code.index(s.width())); }, [&] { whole(panel.columns); });
  Value nEnd = code.add(panel.n, panel.columns);
  Value firstLine = code.div(panel.n, g.lineLength);
  Value endLine = code.add(code.div(code.add(nEnd, -1), g.lineLength), 1);
  code.loop(m, end, 1, [&](Value row) {
    Value at = s.sweeps ? sumsRow(row) : code.sub(row, m);
    code.loop(firstLine, endLine, 1, [&](Value line) {
      // Column 0 of the line is that column of the panel.
      Value start = code.sub(code.mul(line, g.lineLength), panel.n);
      Value low = code.max(zero, code.sub(zero, start));
      Value high =
          code.min(code.sub(code.sub(nEnd, panel.n), start), g.lineLength);
      code.loop(low, high, 1, [&](Value column) {
        Value sum = memref::LoadOp::create(
            code.b, code.loc, sums, ValueRange{at, code.add(start, column)});
        g.finish(code, row, line, column, sum);
      });
    });
  });
}

Code::Values GemmEmitter::emitProduct(Value m, int64_t rows, int64_t columns,
                                      const GemmRange &range) {
  int64_t vectors = divideCeil(columns, s.lanes);
  Code::Values zero(rows * vectors, code.zeros(g.type, s.lanes));
  auto alongK1 = [&](Value k0, ValueRange carried) {
    // Rounds of `unroll`, and one by one what they leave.
    Value length = code.sub(range.k1End, range.k1);
    Value whole =
        code.add(range.k1, code.mul(code.div(length, s.unroll), s.unroll));
    bool even = g.K1 % s.unroll == 0 && s.k1Block % s.unroll == 0;
    if (even)
      whole = range.k1End;
    Code::Values tile = code.loop(
        range.k1, whole, s.unroll, carried, [&](Value k1, ValueRange in) {
          emitBeside(range, k0, k1);
          return emitRound(m, rows, columns, k0, k1, s.unroll, in);
        });
    if (even)
      return tile;
    return code.loop(whole, range.k1End, 1, tile, [&](Value k1, ValueRange in) {
      return emitRound(m, rows, columns, k0, k1, 1, in);
    });
  };
  if (g.K0 == 1)
    return alongK1(range.k0, zero);
  return code.loop(range.k0, range.k0End, 1, zero, alongK1);
}

Value GemmEmitter::factor(Value m, int64_t i, Value k0, Value k1, int64_t u) {
  if (!s.packsA)
    return g.a(code, m, i, k0, k1, u);
  Value tile = code.div(code.sub(m, block.m), s.rows);
  Value at = block.at(code, tile, code.sub(k1, block.k1));
  return memref::LoadOp::create(code.b, code.loc, block.memref,
                                code.add(at, u * s.rows + i));
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
      Value x = code.splat(factor(m, i, k0, k1, u), s.lanes);
      for (int64_t v = 0; v < vectors; ++v)
        tile[i * vectors + v] =
            code.multiplyAdd(x, row[v], tile[i * vectors + v]);
    }
  }
  return tile;
}
