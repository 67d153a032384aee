//===- TileProduct.cpp - matrix products of bf16 by tiles -----------------===//
#include "passes/lower/cpu/products/TileProduct.h"
#include "passes/lower/common/Indices.h"
#include "passes/lower/common/MatmulIndex.h"
#include "passes/lower/cpu/KernelEmitter.h"
#include "passes/lower/cpu/products/PackedNumber.h"
#include "passes/lower/cpu/products/PairCode.h"
#include "passes/lower/cpu/products/TileFactor.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;
using llvm::divideCeil;

/// Vectors of pairs have sums of few rows of several tiles: each pair of a left
/// row, which is loaded for all lanes, is then multiplied by as many rows of
/// right ones. With 24 sums that is a load for two operations; of one tile it
/// would be one for each.
static TileSchedule::Block blockOfPairs(int64_t N) {
  int64_t across = divideCeil(N, TileCode::lines);
  if (across == 1)
    return {};
  auto padded = [&](int64_t columns) { return llvm::alignTo(across, columns); };
  // Two take 20 loads for 32 operations, three take 22 for 48.
  return {1, 16 * padded(3) <= 17 * padded(2) ? 3 : 2};
}
static int64_t linesAtOnce(int64_t N) {
  return blockOfPairs(N).columns == 1 ? TileCode::lines : TileCode::lines / 2;
}

/// What tiles, or vectors of pairs, do beyond what the model counts on.
static double fasterBy(bool hasOwn) { return hasOwn ? 16 : 2; }

namespace {
class TileProduct {
public:
  /// Of [m, k] by [k, n], whose factors are at `at`; or, if it `isTurned`, of
  /// the right factor's transpose by the left one's.
  TileProduct(AnchorKernel &kernel, ArrayRef<ArrayRef<AffineExpr>> at,
              ArrayRef<int64_t> sizes, bool isTurned);

  /// Whether the left tiles are read where they are.
  bool isInPlace() const { return !s.packsLeft; }
  ScheduleOverride numbers() const {
    return ScheduleOverride(
        {{rowsOfItem(), s.mBlock}, {columnsOfItem(), s.group * s.width()}});
  }
  void takeScratch();
  Work emit();

private:
  /// Steps of k, and whether they are the first and the last of a sum.
  struct Range {
    Value from, to;
    Value isFirst, isLast;
  };

  void emitItem(Value item);
  void packGroup(const Range &range);
  void emitRows(const Range &range, Value from, Value to);
  void emitBlock(Value m, Value panel, const Range &range);
  void sumLines(Value m, Value panel, const Range &range, Value row,
                int64_t firstLine);
  TileAddress leftTile(Value m, int64_t tile, Value step);
  TileAddress rightTile(Value panel, int64_t tile, Value step);
  TileAddress sumsTile(Value row, int64_t tileRow, int64_t tileColumn);
  Code::Values multiply(Value m, Value panel, const Range &range,
                        int64_t firstLine, Code::Values sums);
  Code::Values multiplyOwn(Value m, Value panel, Value step,
                           Code::Values block);
  Code::Values multiplyPairs(Value m, Value panel, Value step,
                             int64_t firstLine, Code::Values block);
  void finishBlock(Value m, Value firstRow, Value column);
  void storeRow(Value row, Value sumsRow, Value column, int64_t columns);
  void forEachRange(const Range &whole, int64_t step, int64_t size,
                    llvm::function_ref<void(const Range &)> body);
  /// What the kernel's schedule calls the rows and columns of the product.
  ScheduleKey rowsOfItem() const {
    return isTurned ? ScheduleKey::Columns : ScheduleKey::Block;
  }
  ScheduleKey columnsOfItem() const {
    return isTurned ? ScheduleKey::Block : ScheduleKey::Columns;
  }
  Value firstOf(Value number, int64_t size) { return code.mul(number, size); }
  int64_t groups() const { return divideCeil(panels, s.group); }
  int64_t mBlocks() const { return divideCeil(M, s.mBlock); }

  AnchorKernel &kernel;
  Code &code;
  bool hasOwn; ///< the processor has tiles, or else vectors of pairs
  TileCode tiles;
  SmallVector<int64_t> sizes;
  bool isTurned;
  unsigned m, n, k; ///< dimensions
  int64_t M, N, K, steps;
  TileFactor left, right;
  TileSchedule s;
  int64_t panels;
  bool manyParts, manyPanels; ///< of a sum, along k
  std::optional<Operand> output;

  PackedNumber packed; ///< of the group of panels in scratch
  Value rightMemory, leftMemory, sums, zeroRow;
  SmallVector<Value> at; ///< the item's place
  Value mBegin, mEnd, firstPanel, panelEnd;
  Value packedFrom; ///< the first step that is packed
  Value nearBegin;  ///< the first of the rows that are packed
};
} // namespace

TileProduct::TileProduct(AnchorKernel &kernel,
                         ArrayRef<ArrayRef<AffineExpr>> factors,
                         ArrayRef<int64_t> sizes, bool isTurned)
    : kernel(kernel), code(kernel.code), hasOwn(hasTiles(kernel.anchor)),
      tiles(kernel.code, hasOwn,
            linesAtOnce(sizes[sizes.size() - (isTurned ? 3 : 2)])),
      sizes(sizes), isTurned(isTurned), m(sizes.size() - (isTurned ? 2 : 3)),
      n(sizes.size() - (isTurned ? 3 : 2)), k(sizes.size() - 1), M(sizes[m]),
      N(sizes[n]), K(sizes[k]), steps(divideCeil(K, TileCode::terms)),
      left(kernel, isTurned, TileFactor::Left, factors[isTurned], sizes, m, k),
      right(kernel, !isTurned, TileFactor::Right, factors[!isTurned], sizes, n,
            k),
      at(sizes.size()) {
  int64_t batches = product(ArrayRef(sizes).drop_back(3));
  auto asked = ScheduleOverride::of(kernel.kernel);
  if (isTurned) {
    ScheduleOverride turned;
    if (asked.has(rowsOfItem()))
      turned.set(ScheduleKey::Block, asked[rowsOfItem()]);
    if (asked.has(columnsOfItem()))
      turned.set(ScheduleKey::Columns, asked[columnsOfItem()]);
    asked = turned;
  }
  TileSchedule::Block block =
      hasOwn ? TileSchedule::blockOf(M, N) : blockOfPairs(N);
  s = scheduleTiles(M, N, K, batches, block, false, asked);
  if (left.isInPlace(s.height()))
    s = scheduleTiles(M, N, K, batches, block, true, asked);
  panels = divideCeil(N, s.width());
  manyPanels = s.panelSteps < steps;
  manyParts = s.part < steps;
  if (isTurned) // neighbours in a row of sums are not neighbours in the result
    return;
  SmallVector<AffineExpr> dims = dimensions(code.b.getContext(), n + 1);
  output = kernel.directOutput(code.b.getBF16Type(), dims,
                               ArrayRef(sizes).drop_back(), n);
}

void TileProduct::takeScratch() {
  Type bf16 = code.b.getBF16Type(), f32 = code.b.getF32Type();
  packed = PackedNumber::take(code, kernel.scratch);
  zeroRow = kernel.scratch.take(code, {TileCode::lines}, f32);
  int64_t tile = TileCode::elements * s.panelSteps;
  rightMemory = kernel.scratch.take(code, {s.group * s.columns * tile}, bf16);
  // Blocks at the lower edge read tiles of rows that are not there.
  int64_t rowTiles = llvm::alignTo(s.rowsNear, s.height()) / TileCode::lines;
  if (s.packsLeft)
    leftMemory = kernel.scratch.take(code, {rowTiles * tile}, bf16);
  int64_t rows = !manyParts   ? s.height()
                 : manyPanels ? s.group * llvm::alignTo(s.mBlock, s.height())
                              : llvm::alignTo(s.rowsNear, s.height());
  sums = kernel.scratch.take(code, {rows * s.width()}, f32);
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

/// The parts of `whole`, whose length is at most `size`, of `step` steps.
void TileProduct::forEachRange(const Range &whole, int64_t step, int64_t size,
                               llvm::function_ref<void(const Range &)> body) {
  if (step >= size)
    return body(whole);
  code.loop(whole.from, whole.to, step, [&](Value from) {
    Range part;
    part.from = from;
    part.to = code.min(code.add(from, step), whole.to);
    part.isFirst = code.both(whole.isFirst, code.equal(from, whole.from));
    part.isLast = code.both(whole.isLast, code.equal(part.to, whole.to));
    body(part);
  });
}

void TileProduct::emitItem(Value item) {
  int64_t items = groups() * mBlocks();
  ArrayRef<int64_t> batch = ArrayRef(sizes).drop_back(3);
  llvm::copy(split(code, code.div(item, items), batch), at.begin());
  left.enter(at);
  right.enter(at);
  Value number = code.rem(item, items);
  mBegin = firstOf(code.rem(number, mBlocks()), s.mBlock);
  mEnd = code.min(code.add(mBegin, s.mBlock), M);
  firstPanel = firstOf(code.div(number, mBlocks()), s.group);
  panelEnd = code.min(code.add(firstPanel, s.group), panels);

  Value yes = code.equal(code.index(0), code.index(0));
  Range all = {code.index(0), code.index(steps), yes, yes};
  forEachRange(all, s.panelSteps, steps, [&](const Range &range) {
    if (manyPanels)
      packGroup(range);
    else
      packed.packUnlessThere(code, code.div(item, mBlocks()),
                             [&] { packGroup(range); });
    code.loop(mBegin, mEnd, s.rowsNear, [&](Value from) {
      Value to = code.min(code.add(from, s.rowsNear), mEnd);
      emitRows(range, from, to);
    });
  });
}

void TileProduct::packGroup(const Range &range) {
  auto number = [&](Value lines, Value step) {
    Value panel = code.div(lines, s.columns);
    Value row = code.add(code.mul(panel, s.panelSteps), step);
    return code.add(code.mul(row, s.columns), code.rem(lines, s.columns));
  };
  right.pack({rightMemory, number}, firstOf(firstPanel, s.width()),
             code.min(firstOf(panelEnd, s.width()), N), range.from, range.to);
}

/// The rows [from, to) of the item with all its panels.
void TileProduct::emitRows(const Range &range, Value from, Value to) {
  packedFrom = range.from;
  nearBegin = from;
  auto number = [&](Value lines, Value step) {
    return code.add(code.mul(lines, s.panelSteps), step);
  };
  if (s.packsLeft)
    left.pack({leftMemory, number}, from, to, range.from, range.to);
  code.loop(firstPanel, panelEnd, 1, [&](Value panel) {
    forEachRange(range, s.part, s.panelSteps, [&](const Range &part) {
      code.loop(from, to, s.height(),
                [&](Value row) { emitBlock(row, panel, part); });
    });
  });
}

//===----------------------------------------------------------------------===//
// Blocks of sums
//===----------------------------------------------------------------------===//

/// The tile of lines m + 16 tile at a step.
TileAddress TileProduct::leftTile(Value m, int64_t tile, Value step) {
  if (!s.packsLeft)
    return left.inPlace(code.add(m, tile * TileCode::lines),
                        code.mul(step, TileCode::terms));
  Value number =
      code.add(code.div(code.sub(m, nearBegin), TileCode::lines), tile);
  Value place =
      code.add(code.mul(number, s.panelSteps), code.sub(step, packedFrom));
  return {tiles.pointer(leftMemory, code.mul(place, TileCode::elements)),
          tiles.number(code.index(TileCode::rowBytes))};
}

TileAddress TileProduct::rightTile(Value panel, int64_t tile, Value step) {
  Value row = code.add(code.mul(code.sub(panel, firstPanel), s.panelSteps),
                       code.sub(step, packedFrom));
  Value place = code.add(code.mul(row, s.columns), tile);
  return {tiles.pointer(rightMemory, code.mul(place, TileCode::elements)),
          tiles.number(code.index(TileCode::rowBytes))};
}

/// Where a tile of the sums is whose block begins at a row of the scratch.
TileAddress TileProduct::sumsTile(Value row, int64_t tileRow,
                                  int64_t tileColumn) {
  Value position =
      code.mul(code.add(row, tileRow * TileCode::lines), s.width());
  position = code.add(position, tileColumn * TileCode::lines);
  return {tiles.pointer(sums, position),
          tiles.number(code.index(4 * s.width()))};
}

Code::Values TileProduct::multiply(Value m, Value panel, const Range &range,
                                   int64_t firstLine, Code::Values sums) {
  return code.loop(
      range.from, range.to, 1, sums, [&](Value step, ValueRange carried) {
        return hasOwn ? multiplyOwn(m, panel, step, carried)
                      : multiplyPairs(m, panel, step, firstLine, carried);
      });
}

Code::Values TileProduct::multiplyOwn(Value m, Value panel, Value step,
                                      Code::Values block) {
  Code::Values rows, columns;
  // Rows pass by once for each panel, which is to stay.
  auto loadRow = [&](int64_t i) {
    rows.push_back(tiles.loadFactor(leftTile(m, i, step), /*isStreamed=*/true));
  };
  loadRow(0);
  for (int64_t j = 0; j < s.columns; ++j)
    columns.push_back(tiles.loadFactor(rightTile(panel, j, step)));
  for (int64_t i = 1; i < s.rows; ++i)
    loadRow(i);
  for (int64_t i = 0; i < s.rows; ++i)
    for (int64_t j = 0; j < s.columns; ++j) {
      Value &sum = block[i * s.columns + j];
      sum = tiles.multiplyAdd(rows[i], columns[j], sum);
    }
  return block;
}

Code::Values TileProduct::multiplyPairs(Value m, Value panel, Value step,
                                        int64_t firstLine, Code::Values block) {
  // Of 16 pairs: 64 multiplications, or 48 of three tiles.
  const int64_t atOnce = s.columns > 2 ? 2 : 4;
  TileAddress left = tiles.from(leftTile(m, 0, step), firstLine);
  SmallVector<TileAddress> rights;
  for (int64_t j = 0; j < s.columns; ++j)
    rights.push_back(rightTile(panel, j, step));
  return code.loop(
      code.index(0), code.index(TileCode::terms / 2), atOnce, block,
      [&](Value pair, ValueRange carried) {
        TileAddress a = left;
        a.pointer = tiles.after(a.pointer, code.mul(pair, TileCode::pairBytes));
        SmallVector<TileAddress> b(rights);
        for (TileAddress &right : b)
          right.pointer =
              tiles.after(right.pointer, code.mul(pair, TileCode::rowBytes));
        return tiles.multiplyAdd(a, b, atOnce, carried);
      });
}

/// Adds the products along a range to the sums of a block, or of some of its
/// lines, whose first row in scratch is `row`.
void TileProduct::sumLines(Value m, Value panel, const Range &range, Value row,
                           int64_t firstLine) {
  auto forEach = [&](auto body) {
    for (int64_t i = 0; i < s.rows; ++i)
      for (int64_t j = 0; j < s.columns; ++j)
        body(i * s.columns + j, tiles.from(sumsTile(row, i, j), firstLine));
  };
  Code::Values block;
  Value none = tiles.number(code.index(0));
  Value zero = manyParts ? tiles.pointer(zeroRow, code.index(0)) : Value();
  forEach([&](int64_t, TileAddress place) {
    if (!manyParts) {
      llvm::append_range(block, tiles.zeros());
      return;
    }
    // A row of zeros, again and again.
    place.pointer = code.select(range.isFirst, zero, place.pointer);
    place.stride = code.select(range.isFirst, none, place.stride);
    llvm::append_range(block, tiles.load(place));
  });
  block = multiply(m, panel, range, firstLine, block);
  forEach([&](int64_t tile, const TileAddress &place) {
    int64_t values = tiles.values();
    tiles.store(ValueRange(block).slice(tile * values, values), place);
  });
}

void TileProduct::emitBlock(Value m, Value panel, const Range &range) {
  // The first row of the block's sums in scratch.
  Value row = code.index(0);
  if (manyPanels)
    row = code.add(code.mul(code.sub(panel, firstPanel),
                            llvm::alignTo(s.mBlock, s.height())),
                   code.sub(m, mBegin));
  else if (manyParts)
    row = code.sub(m, nearBegin);

  // Vectors of pairs: some lines at one time, as far as there are any.
  for (int64_t line = 0; line < std::min(M, s.height());
       line += hasOwn ? s.height() : tiles.values())
    sumLines(m, panel, range, row, line);
  code.when(range.isLast,
            [&] { finishBlock(m, row, firstOf(panel, s.width())); });
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

void TileProduct::finishBlock(Value m, Value firstRow, Value column) {
  Value rows = code.index(s.height());
  if (M % s.height() != 0)
    rows = code.min(rows, code.sub(code.index(M), m));
  auto finish = [&](int64_t columns) {
    code.loop(code.index(0), rows, 1, [&](Value row) {
      storeRow(code.add(m, row), code.add(firstRow, row), column, columns);
    });
  };
  // Loops of a known length are the better ones.
  int64_t rest = N % s.width();
  if (rest == 0)
    return finish(s.width());
  code.when(
      code.less(column, code.index(N - rest)), [&] { finish(s.width()); },
      [&] { finish(rest); });
}

/// Finishes and stores C(row, column ...), whose sums are at `sumsRow`.
void TileProduct::storeRow(Value row, Value sumsRow, Value column,
                           int64_t columns) {
  SmallVector<Value> index(ArrayRef<Value>(at).drop_back());
  index[m] = row;
  Value first = code.mul(sumsRow, s.width());
  if (!output) {
    code.loop(code.index(0), code.index(columns), 1, [&](Value j) {
      index[n] = code.add(column, j);
      Value sum = memref::LoadOp::create(code.b, code.loc, sums,
                                         ValueRange{code.add(first, j)});
      kernel.finish(index, sum);
    });
    return;
  }
  index[n] = column;
  Value to = output->at(code, index);
  for (int64_t j = 0; j < columns; j += TileCode::lines) {
    Value mask;
    if (columns - j < TileCode::lines)
      mask = code.firstLanes(code.index(columns - j), TileCode::lines);
    Value sum = code.load(sums, code.add(first, j), TileCode::lines);
    code.store(pairs::narrow(code, sum), output->memref, code.add(to, j), mask);
  }
}

Work TileProduct::emit() {
  takeScratch();
  ArrayRef<int64_t> batch = ArrayRef(sizes).drop_back(3);
  kernel.forEachItem([&](Value item) {
    code.store(code.zeros(code.b.getF32Type(), TileCode::lines), zeroRow,
               code.index(0));
    emitItem(item);
  });
  Work work;
  work.items = product(batch) * groups() * mBlocks();
  double columns = std::min(s.group * s.width(), N);
  double rows = std::min(s.mBlock, M);
  work.grain = grainFor(work.items, 2 * rows * columns * K / fasterBy(hasOwn),
                        2 * (columns * K + rows * K + rows * columns));
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

/// Of fewer lines most of a vector's tile is multiplied for nothing.
static constexpr int64_t kLeastLines = TileCode::lines / 2;

Fit lower::cpu::fitTileProduct(AnchorKernel &kernel) {
  Operation *anchor = kernel.anchor;
  for (unsigned number : {0, 1})
    if (Type type = getElementTypeOrSelf(anchor->getOperand(number).getType());
        !type.isBF16())
      return Fit::impossible("expected factors of bf16 but got " +
                             textOf(type));
  bool hasOwn = hasTiles(anchor);
  if (!hasOwn && !hasPairs(anchor))
    return Fit::impossible("expected a processor with tiles of bf16 "
                           "('amx-bf16'), or with products of its pairs "
                           "('avx512bf16'), but got one without");
  auto index = MatmulIndex::of(anchor);
  if (index.isEmpty())
    return Fit::impossible("expected elements but got none");
  int64_t rows = index.sizes[index.m], columns = index.sizes[index.n];
  if (!hasOwn && std::min(rows, columns) < kLeastLines)
    return Fit::slower("expected at least " + llvm::Twine(kLeastLines) +
                       " rows and columns but got " + llvm::Twine(rows) +
                       " and " + llvm::Twine(columns));
  return Fit::good();
}

/// Of whole tiles.
double lower::cpu::secondsOfTileProduct(AnchorKernel &kernel) {
  auto index = MatmulIndex::of(kernel.anchor);
  auto whole = [&](unsigned dim, int64_t unit) {
    return static_cast<double>(llvm::alignTo(index.sizes[dim], unit));
  };
  return secondsOf(
      kernel.kernel, kernel.anchor,
      product(index.batchSizes()) * whole(index.m, TileCode::lines) *
          whole(index.n, TileCode::lines) * whole(index.k, TileCode::terms) /
          fasterBy(hasTiles(kernel.anchor)),
      /*narrow=*/true);
}

/// Calls `body` with the product that a kernel is computed by.
static void withProduct(AnchorKernel &kernel,
                        llvm::function_ref<void(TileProduct &)> body) {
  auto index = MatmulIndex::of(kernel.anchor);
  // The left factor's few rows are packed at once, and the right one, a linear
  // layer's weights, is read from memory by tiles.
  if (index.sizes[index.m] <= TileCode::lines) {
    TileProduct turned(kernel, {index.lhs, index.rhs}, index.sizes,
                       /*isTurned=*/true);
    if (turned.isInPlace())
      return body(turned);
  }
  TileProduct product(kernel, {index.lhs, index.rhs}, index.sizes,
                      /*isTurned=*/false);
  body(product);
}

int64_t lower::cpu::scratchOfTileProduct(AnchorKernel &kernel) {
  int64_t bytes = 0;
  withProduct(kernel, [&](TileProduct &product) {
    bytes = kernel.countScratch([&] { product.takeScratch(); });
  });
  return bytes;
}

ScheduleOverride lower::cpu::cutTileProduct(AnchorKernel &kernel) {
  ScheduleOverride numbers;
  withProduct(kernel,
              [&](TileProduct &product) { numbers = product.numbers(); });
  return numbers;
}

FailureOr<Work> lower::cpu::emitTileProduct(AnchorKernel &kernel) {
  Work work;
  withProduct(kernel, [&](TileProduct &product) { work = product.emit(); });
  return work;
}
