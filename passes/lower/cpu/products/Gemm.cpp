//===- Gemm.cpp - register-tiled matrix products --------------------------===//
#include "passes/lower/cpu/products/GemmEmitter.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;
using llvm::divideCeil;

Value GemmPanel::row(Code &code, Value atK0, Value atK1) const {
  Value length = code.sub(k1End, k1);
  Value row =
      code.add(code.mul(code.sub(atK0, k0), length), code.sub(atK1, k1));
  return firstRow ? code.add(firstRow, row) : row;
}

void GemmPanel::storeTurned(Code &code, Code::Values columns, Value atK0,
                            Value atK1, Value column) const {
  Value first = row(code, atK0, atK1);
  for (auto [i, vector] : llvm::enumerate(code.transpose(columns)))
    code.store(vector, memref, {code.add(first, i), column});
}

Value GemmBlock::at(Code &code, Value tile, Value row) const {
  return code.add(code.mul(tile, tileLength), code.mul(row, rows));
}

GemmEmitter::GemmEmitter(Code &code, const Gemm &g, const GemmSchedule &s,
                         Scratch &scratch)
    : code(code), g(g), s(s), manySums(s.kBlocks(g) > 1),
      manyPanels(s.kPanels(g) > 1) {
  panel.width = s.width();
  panel.lanes = s.lanes;
  if (s.packs) {
    if (!manyPanels && scratch.bytes() == 0)
      packed = PackedNumber::take(code, scratch);
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
        scratch.take(code, {s.rowsNear / s.rows * block.tileLength}, g.type);
  }
  if ((manySums && !s.sumsInResult) || !g.store)
    sums = scratch.take(
        code, {s.sweeps ? s.group * s.mBlock : 2 * s.rows, s.width()}, g.type);
}

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

/// The rows of a group's items. Each group begins with others: threads that
/// have groups of their own read the same rows of A a while after each other,
/// and not both from memory.
Value GemmEmitter::blockOfTurn(Value group, Value turn) {
  if (s.groups(g) == 1 || s.mBlocks(g) == 1)
    return turn;
  Value first = code.div(code.mul(group, s.mBlocks(g)), s.groups(g));
  return code.rem(code.add(first, turn), s.mBlocks(g));
}

void GemmEmitter::emit(const GemmItem &item) {
  Value number = code.div(item.number, s.mBlocks(g));
  Value turn = code.rem(item.number, s.mBlocks(g));
  mBegin = code.mul(blockOfTurn(number, turn), s.mBlock);
  mEnd = code.min(code.add(mBegin, s.mBlock), g.M);
  group = number;
  itemNumber = item.number;

  GemmRange all = {code.index(0), code.index(g.K0), code.index(0),
                   code.index(g.K1)};
  Value isLastBlock = code.equal(turn, code.index(s.mBlocks(g) - 1));
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
    if (s.packs && packed.isThere())
      packed.packUnlessThere(code, item.group, [&] { packGroup(); });
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
    code.when(packsNext, [&] { packed.note(code, code.add(item.group, 1)); });
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
  Value packs = packsNext;
  auto forEachRows = [&](llvm::function_ref<void(Value m)> body) {
    if (!s.packsA)
      return code.loop(mBegin, mEnd, s.rows, body);
    auto near = [&](Value from, Value to) {
      packBlock(from, to, piece);
      code.loop(from, to, s.rows, body);
    };
    if (s.rowsNear >= s.mBlock)
      return near(mBegin, mEnd);
    code.loop(mBegin, mEnd, s.rowsNear, [&](Value from) {
      near(from, code.min(code.add(from, s.rowsNear), mEnd));
    });
  };
  auto enterPanel = [&](Value at) {
    if (!packsAhead())
      return;
    // The panel at the same place of the next group, if there is one.
    Value nextGroup = code.add(group, 1);
    Value number = code.add(code.mul(nextGroup, s.group), at);
    packsNext = code.both(packs, code.less(number, code.index(s.panels(g))));
    locate(next, code.select(packsNext, nextGroup, group), at);
  };
  // A short part of a panel stays in the first-level cache while all rows pass
  // by. Where rows are packed it is longer, and they stay. And where a tile is
  // finished, its rows better pass by all panels before the next ones do: what
  // is read and stored then lies in long runs, which the processor foresees.
  if (s.sweeps && !s.packsA && !g.fetchEnd)
    forEachPanel([&](Value at) {
      enterPanel(at);
      forEachRows([&](Value m) { emitRows(m, piece); });
    });
  else
    forEachRows([&](Value m) {
      forEachPanel([&](Value at) {
        enterPanel(at);
        emitRows(m, piece);
      });
    });
  packsNext = packs;
}

/// Packs rows [m, end) of A.
void GemmEmitter::packBlock(Value m, Value end, const GemmPiece &piece) {
  block.m = m;
  block.mEnd = end;
  block.k0 = piece.range.k0;
  block.k1 = piece.range.k1;
  block.k1End = piece.range.k1End;
  g.packA(code, block);
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
  code.loop(mBegin, mEnd, s.rows, [&](Value m) { emitRows(m, whole); });
}

/// Multiplies the rows of a tile from `m` on with the panel.
void GemmEmitter::emitRows(Value m, const GemmPiece &piece) {
  int64_t restRows = g.M % s.rows, restColumns = g.N % s.width();
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
}

int64_t lower::cpu::scratchOf(Code &code, const Gemm &gemm,
                              const GemmSchedule &schedule) {
  Scratch scratch;
  GemmEmitter(code, gemm, schedule, scratch);
  return scratch.bytes();
}

void lower::cpu::emitGemm(Code &code, const Gemm &gemm,
                          const GemmSchedule &schedule, Scratch &scratch,
                          const GemmItem &item) {
  GemmEmitter(code, gemm, schedule, scratch).emit(item);
}

void lower::cpu::emitGemmPart(Code &code, const Gemm &gemm,
                              const GemmSchedule &schedule,
                              const GemmPart &part) {
  GemmEmitter(code, gemm, schedule).emitPart(part);
}
