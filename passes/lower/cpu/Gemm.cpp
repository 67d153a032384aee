//===- Gemm.cpp - register-tiled matrix products --------------------------===//
#include "passes/lower/cpu/Gemm.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
using namespace tandem::lower;
using llvm::divideCeil;

//===----------------------------------------------------------------------===//
// The code
//===----------------------------------------------------------------------===//

Value GemmPanel::row(Code &code, Value atK0, Value atK1) const {
  Value length = code.sub(k1End, k1);
  Value row =
      code.add(code.mul(code.sub(atK0, k0), length), code.sub(atK1, k1));
  return firstRow ? code.add(firstRow, row) : row;
}

Value GemmBlock::at(Code &code, Value tile, Value row) const {
  return code.add(code.mul(tile, tileLength), code.mul(row, rows));
}

namespace {
/// A range of k.
struct GemmRange {
  Value k0, k0End, k1, k1End;
};

/// A place in a loop over pieces.
struct GemmPiece {
  GemmRange range;
  Value number;
  Value isFirst, isLast;
};

/// The emission of one item.
class GemmEmitter {
public:
  GemmEmitter(Code &code, const Gemm &g, const GemmSchedule &s,
              Scratch &scratch)
      : code(code), g(g), s(s), manySums(s.kBlocks(g) > 1),
        manyPanels(s.kPanels(g) > 1) {
    panel.width = s.width();
    panel.lanes = s.lanes;
    if (s.packs) {
      // The word with which scratch begins.
      if (!manyPanels && scratch.bytes() == 0)
        packed = scratch.take(code, {1}, code.b.getI64Type());
      int64_t rows = s.group * panelRows();
      panel.memref = scratch.take(code, {rows, s.width()}, g.type);
      next = panel;
      if (packsAhead())
        next.memref = scratch.take(code, {rows, s.width()}, g.type);
    }
    if (s.packsA) {
      int64_t length = s.sweeps ? s.k1Block : s.k1Panel;
      block.rows = s.rows;
      block.tileLength =
          llvm::alignTo(length * s.rows + block.width() - s.rows, lineLength());
      block.memref =
          scratch.take(code, {s.mBlock / s.rows * block.tileLength}, g.type);
    }
    if (manySums || !g.store)
      sums = scratch.take(
          code, {s.sweeps ? s.group * s.mBlock : 2 * s.rows, s.width()},
          g.type);
  }

  /// Of a part.
  GemmEmitter(Code &code, const Gemm &g, const GemmSchedule &s)
      : code(code), g(g), s(s), manySums(false), manyPanels(false) {
    assert(!s.packs && g.store && "a part has no scratch");
  }

  void emit(const GemmItem &item);
  void emitPart(const GemmPart &part);

private:
  /// The pieces of `range` with at most `k0Step` and `k1Step` of k0 and k1.
  void forEachPiece(const GemmRange &range, int64_t k0Step, int64_t k1Step,
                    llvm::function_ref<void(const GemmPiece &)> body);
  /// The rows that a panel has in scratch.
  int64_t panelRows() const { return s.k0Panel * s.k1Panel + s.lanes; }
  /// Elements of a cache line.
  int64_t lineLength() const {
    return 512 / static_cast<int64_t>(g.type.getIntOrFloatBitWidth());
  }
  void locate(GemmPanel &which, Value group, Value place);
  bool packsAhead() const { return s.packsEvery > 0 && packed; }
  void forEachPanel(llvm::function_ref<void(Value place)> body);
  void packGroup();
  void packUnlessPacked(Value number);
  void notePacked(Value number);
  void packBlock(const GemmPiece &piece);
  void emitPanels(const GemmPiece &piece);
  void emitRows(const GemmPiece &piece);
  void emitTile(Value m, int64_t rows, int64_t columns, const GemmPiece &piece);
  void emitFinish(Value m);
  /// Where an item has the sums of row m.
  Value sumsRow(Value m) {
    return code.add(code.mul(place, s.mBlock), code.sub(m, mBegin));
  }
  Code::Values emitProduct(Value m, int64_t rows, int64_t columns,
                           const GemmRange &range);
  /// A(m + i, (k0, k1 + u))
  Value factor(Value m, int64_t i, Value k0, Value k1, int64_t u);
  Code::Values emitRound(Value m, int64_t rows, int64_t columns, Value k0,
                         Value k1, int64_t unroll, ValueRange sums);
  void enterTile(Value m, const GemmPiece &piece);
  void emitBeside(const GemmRange &range, Value k0, Value k1);
  void fetchEnd(Value round);
  /// The mask of vector `v` of a tile with `columns` columns; null if all its
  /// lanes are columns.
  Value maskOf(int64_t v, int64_t columns) {
    int64_t active = columns - v * s.lanes;
    return active >= s.lanes ? Value()
                             : code.firstLanes(code.index(active), s.lanes);
  }

  Code &code;
  const Gemm &g;
  const GemmSchedule &s;
  GemmPanel panel, next; ///< `next` is packed beside the product
  GemmBlock block;       ///< of A, if that is packed
  /// A sum is made of several short ones; of several panels.
  bool manySums, manyPanels;
  Value sums; ///< of the item, or twice of a tile
  Value mBegin, mEnd;
  Value group, place; ///< of the panel
  Value packsNext;    ///< while this item runs
  /// Where the number of the panel in scratch is, plus one: at the beginning
  /// of scratch, which is 0 when a thread runs the first items of a launch.
  Value packed;
  /// What a tile does beside its product: it asks for a block of A, and packs
  /// these rows of the next panel.
  Value fetchM, fetchK1, packRow, packEnd;
  /// The tile, and whether its end comes after this piece.
  Value tileM, endsTile;
};
} // namespace

void GemmEmitter::forEachPiece(
    const GemmRange &range, int64_t k0Step, int64_t k1Step,
    llvm::function_ref<void(const GemmPiece &)> body) {
  // Along one dimension. A range that is not cut keeps its bounds.
  auto cut = [&](Value from, Value to, int64_t step, int64_t size,
                 llvm::function_ref<void(Value, Value)> piece) {
    if (step >= size)
      return piece(from, to);
    code.loop(from, to, step, [&](Value at) {
      Value end = code.add(at, step);
      piece(at, size % step == 0 ? end : code.min(end, to));
    });
  };
  int64_t along = std::max<int64_t>(1, divideCeil(g.K1, k1Step));
  cut(range.k0, range.k0End, k0Step, g.K0, [&](Value k0, Value k0End) {
    cut(range.k1, range.k1End, k1Step, g.K1, [&](Value k1, Value k1End) {
      GemmPiece piece;
      piece.range = {k0, k0End, k1, k1End};
      piece.number =
          code.add(code.mul(code.div(k0, k0Step), along), code.div(k1, k1Step));
      piece.isFirst =
          code.both(code.equal(k0, range.k0), code.equal(k1, range.k1));
      piece.isLast = code.both(code.equal(k0End, range.k0End),
                               code.equal(k1End, range.k1End));
      body(piece);
    });
  });
}

/// Makes `which` the panel at this place of a group.
void GemmEmitter::locate(GemmPanel &which, Value group, Value place) {
  Value number = code.add(code.mul(group, s.group), place);
  which.firstRow = code.mul(place, panelRows());
  which.n = code.mul(number, s.width());
  which.columns = g.N % s.width() == 0
                      ? code.index(s.width())
                      : code.min(code.sub(code.index(g.N), which.n), s.width());
}

void GemmEmitter::emit(const GemmItem &item) {
  Value number = code.div(item.number, s.mBlocks(g));
  Value mBlock = code.rem(item.number, s.mBlocks(g));
  mBegin = code.mul(mBlock, s.mBlock);
  mEnd = code.min(code.add(mBegin, s.mBlock), g.M);
  group = number;

  GemmRange all = {code.index(0), code.index(g.K0), code.index(0),
                   code.index(g.K1)};
  Value isLastBlock = code.equal(mBlock, code.index(s.mBlocks(g) - 1));
  if (packsAhead()) {
    // Two groups take turns.
    Value last = code.index(s.groups(g) - 1);
    Value isOdd = code.equal(code.rem(number, 2), code.index(1));
    Value even = panel.memref, odd = next.memref;
    panel.memref = code.select(isOdd, odd, even);
    next.memref = code.select(isOdd, even, odd);
    std::tie(next.k0, next.k0End) = std::tie(all.k0, all.k0End);
    std::tie(next.k1, next.k1End) = std::tie(all.k1, all.k1End);
    packsNext = code.both(isLastBlock, code.less(number, last));
  }
  forEachPiece(all, s.k0Panel, s.k1Panel, [&](const GemmPiece &part) {
    panel.k0 = part.range.k0;
    panel.k0End = part.range.k0End;
    panel.k1 = part.range.k1;
    panel.k1End = part.range.k1End;
    if (s.packs && packed)
      packUnlessPacked(item.group);
    else if (s.packs)
      packGroup();
    if (!s.sweeps)
      return emitPanels(part);
    forEachPiece(part.range, s.k0Block, s.k1Block, [&](GemmPiece piece) {
      piece.isFirst = code.both(piece.isFirst, part.isFirst);
      piece.isLast = code.both(piece.isLast, part.isLast);
      emitPanels(piece);
    });
  });
  if (packsAhead())
    code.when(packsNext, [&] { notePacked(code.add(item.group, 1)); });
}

/// Calls `body` for each panel of the group.
void GemmEmitter::forEachPanel(llvm::function_ref<void(Value place)> body) {
  Value count = code.index(s.group);
  if (s.panels(g) % s.group != 0)
    count = code.min(
        count, code.sub(code.index(s.panels(g)), code.mul(group, s.group)));
  code.loop(code.index(0), count, 1, [&](Value at) {
    place = at;
    locate(panel, group, at);
    body(at);
  });
}

void GemmEmitter::packGroup() {
  forEachPanel([&](Value) { g.pack(code, panel); });
}

/// Multiplies the item's rows with each of its panels.
void GemmEmitter::emitPanels(const GemmPiece &piece) {
  if (s.packsA)
    packBlock(piece);
  Value packs = packsNext;
  forEachPanel([&](Value at) {
    if (packsAhead()) {
      // The panel at the same place of the next group, if there is one.
      Value nextGroup = code.add(group, 1);
      Value number = code.add(code.mul(nextGroup, s.group), at);
      packsNext = code.both(packs, code.less(number, code.index(s.panels(g))));
      locate(next, code.select(packsNext, nextGroup, group), at);
    }
    emitRows(piece);
  });
  packsNext = packs;
}

/// Packs the item's rows of A.
void GemmEmitter::packBlock(const GemmPiece &piece) {
  block.m = mBegin;
  block.mEnd = mEnd;
  block.k0 = piece.range.k0;
  block.k1 = piece.range.k1;
  block.k1End = piece.range.k1End;
  g.packA(code, block);
}

/// The items before this one on the same thread may have packed its panel.
void GemmEmitter::packUnlessPacked(Value number) {
  Value known = arith::IndexCastOp::create(
      code.b, code.loc, code.b.getIndexType(),
      memref::LoadOp::create(code.b, code.loc, packed,
                             ValueRange{code.index(0)}));
  code.when(
      code.equal(known, code.add(number, 1)), [] {},
      [&] {
        packGroup();
        notePacked(number);
      });
}

void GemmEmitter::notePacked(Value number) {
  Value known = arith::IndexCastOp::create(
      code.b, code.loc, code.b.getI64Type(), code.add(number, 1));
  memref::StoreOp::create(code.b, code.loc, known, packed,
                          ValueRange{code.index(0)});
}

void GemmEmitter::emitPart(const GemmPart &part) {
  mBegin = part.m;
  mEnd = part.mEnd;
  panel.n = code.mul(part.panel, s.width());
  panel.k0 = code.index(0);
  panel.k0End = code.index(1);
  panel.k1 = part.k1;
  panel.k1End = part.k1End;
  GemmPiece whole;
  whole.range = {panel.k0, panel.k0End, panel.k1, panel.k1End};
  emitRows(whole);
}

void GemmEmitter::emitRows(const GemmPiece &piece) {
  int64_t restRows = g.M % s.rows, restColumns = g.N % s.width();
  code.loop(mBegin, mEnd, s.rows, [&](Value m) {
    enterTile(m, piece);
    auto columns = [&](int64_t count) {
      Value isWhole = code.less(m, code.index(g.M - s.rows + 1));
      if (restRows == 0)
        emitTile(m, s.rows, count, piece);
      else
        code.when(
            isWhole, [&] { emitTile(m, s.rows, count, piece); },
            [&] { emitTile(m, restRows, count, piece); });
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
      code.when(piece.isLast, [&] { emitFinish(m); });
  });
}

/// The block of A and the part of the next panel that belong to a tile.
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
  Value inPiece = code.div(code.sub(k1, range.k1), s.unroll);
  if (g.fetch && !s.packsA)
    for (int64_t u = 0; u < s.unroll; ++u)
      g.fetch(code, fetchM, k0, code.add(k1, fetchK1), u);
  if (g.fetchEnd)
    fetchEnd(inPiece);
  if (!packsAhead())
    return;
  Value round =
      code.div(code.sub(k1, s.sweeps ? range.k1 : panel.k1), s.unroll);
  Value row = code.add(packRow, code.div(round, s.packsEvery));
  Value isDue = code.equal(code.rem(round, s.packsEvery), code.index(0));
  code.when(code.both(isDue, code.less(row, packEnd)),
            [&] { g.packRow(code, next, row); });
}

/// Asks for what the tile will be finished with, in the first half of its last
/// rounds: while it is on its way, they go on.
void GemmEmitter::fetchEnd(Value round) {
  int64_t length = std::max(s.lanes, lineLength());
  int64_t across = divideCeil(s.width(), length), lines = s.rows * across;
  int64_t rounds = s.k1Block / s.unroll;
  int64_t inRound = divideCeil(lines, std::max<int64_t>(1, rounds / 2));
  Value isDue = code.less(round, code.index(divideCeil(lines, inRound)));
  code.when(code.both(endsTile, isDue), [&] {
    for (int64_t i = 0; i < inRound; ++i) {
      Value line = code.add(code.mul(round, inRound), i);
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
    endsTile = part.isLast;
    Value zeros = code.zeros(g.type, s.lanes);
    tile = emitProduct(m, rows, columns, part.range);
    forEach([&](int64_t i, int64_t v, Value &x) {
      Value before = code.load(
          sums, {code.add(from, i), code.index(v * s.lanes)}, s.lanes);
      before = code.select(part.isFirst, zeros, before);
      x = arith::AddFOp::create(code.b, code.loc, before, x);
    });
    if (g.store)
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

void cpu::emitGemm(Code &code, const Gemm &gemm, const GemmSchedule &schedule,
                   Scratch &scratch, const GemmItem &item) {
  GemmEmitter(code, gemm, schedule, scratch).emit(item);
}

void cpu::emitGemmPart(Code &code, const Gemm &gemm,
                       const GemmSchedule &schedule, const GemmPart &part) {
  GemmEmitter(code, gemm, schedule).emitPart(part);
}
