//===- AttentionTiles.cpp - how attention is cut, and its products --------===//
#include "passes/lower/cpu/attention/AttentionTiles.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using llvm::alignTo;
using llvm::divideCeil;

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

AttentionSchedule::AttentionSchedule(const AttentionIndex &index,
                                     const CpuModel &target, bool ownsKeys,
                                     int64_t asked)
    : own(ownsKeys ? index.attention.keys : index.attention.queries),
      others(ownsKeys ? index.attention.queries : index.attention.keys),
      lanes(target.lanes(index.compute)) {
  // Sixteen or twelve sums hide the latency of the multiply-add, and leave
  // registers for what is loaded. (Without an instruction for multiply-add a
  // product needs one too.)
  bool many = target.registers >= 32, wide = target.bits >= 256;
  rows = many ? 8 : 4;
  across = many ? 2 : wide ? 3 : 2;
  // With 64 rows, a block and its scores are in the first-level cache.
  constexpr int64_t tileRows = 64, enoughItems = 16;
  int64_t count = std::max<int64_t>(1, divideCeil(own, tileRows));
  int64_t equal = divideCeil(std::max<int64_t>(own, 1), count);
  vectors = divideCeil(equal, lanes);
  while (vectors > across && index.attention.batches * tiles() < enoughItems)
    vectors = std::max<int64_t>(across, divideCeil(vectors, 2));
  // Blocks that are as wide as tiles have the diagonal in corners.
  int64_t unit = index.causal ? std::lcm(step(), width()) : step();
  block = alignTo(std::clamp<int64_t>(others, 1, tileRows), unit);
  // Blocks, by which own rows are summed, stay, and so do their corners.
  if (asked && (!index.causal || block % (asked * lanes) == 0))
    vectors =
        std::min<int64_t>(asked, divideCeil(std::max<int64_t>(own, 1), lanes));
}

int64_t AttentionSchedule::tiles() const { return divideCeil(own, width()); }

int64_t AttentionSchedule::padded(int64_t columns) const {
  return alignTo(std::max<int64_t>(columns, 1), lanes);
}

void AttentionSchedule::forEachPanel(
    Code &code, int64_t count, Value end,
    llvm::function_ref<void(Value first, int64_t vectors)> body) const {
  int64_t whole = count / across * across, rest = count - whole;
  Value wholeEnd = code.index(whole);
  if (end)
    wholeEnd = code.min(wholeEnd, end);
  code.loop(code.index(0), wholeEnd, across,
            [&](Value first) { body(first, across); });
  if (rest == 0)
    return;
  Value first = code.index(whole);
  code.when(end ? code.less(first, end) : code.less(first, code.index(count)),
            [&] { body(first, rest); });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

ScratchMatrix::ScratchMatrix(AnchorKernel &kernel, int64_t rows,
                             int64_t columns, Type type)
    : memref(kernel.scratch.take(kernel.code, {rows, columns}, type)),
      matrix{memref ? flatten(kernel.code.b, kernel.code.loc, memref) : Value(),
             kernel.code.index(0), columns} {}

RowsOperand::RowsOperand(AnchorKernel &kernel, const AttentionIndex &index,
                         AttentionIndex::Number number, unsigned along,
                         unsigned line, const AttentionSchedule &schedule,
                         int64_t most)
    : kernel(kernel), along(along), line(line), columns(index.sizes[line]),
      lanes(schedule.lanes),
      operand(kernel.operand(number, index.operand(number), index.sizes)),
      packedRows(kernel, number, index.operand(number), index.sizes, line,
                 std::nullopt, along),
      packedColumns(kernel, number, index.operand(number), index.sizes, along,
                    std::nullopt, line) {
  rowsOf.type = columnsOf.type = index.compute;
  rowsOf.N = columns;
  columnsOf.N = index.sizes[along];
  packedRows.bindB(rowsOf);
  packedColumns.bindB(columnsOf);
  isInPlace = operand.isAffine() && operand.element == index.compute &&
              operand.stride(line) == 1 && columns % lanes == 0;
  if (!isInPlace && most > 0)
    copy.emplace(kernel, most + lanes, schedule.padded(columns), index.compute);
}

void RowsOperand::enter(ArrayRef<Value> batch) {
  packedRows.enter(batch);
  packedColumns.enter(batch);
  place.assign(batch.begin(), batch.end());
  place[along] = place[line] = nullptr;
}

/// What a pack of all columns of a panel is asked for.
static GemmPanel panelOf(Code &code, Value memref, int64_t lanes) {
  GemmPanel panel;
  panel.memref = memref;
  panel.width = cast<MemRefType>(memref.getType()).getDimSize(1);
  panel.lanes = lanes;
  panel.n = panel.k0 = panel.k1 = code.index(0);
  panel.k0End = code.index(1);
  return panel;
}

Matrix RowsOperand::rows(Code &code, Value from, Value to) {
  if (isInPlace) {
    Value start = code.add(operand.at(code, place),
                           code.mul(from, operand.stride(along)));
    return {operand.memref, start, operand.stride(along)};
  }
  GemmPanel panel = panelOf(code, copy->memref, lanes);
  panel.columns = code.index(columns);
  panel.k1 = from;
  panel.k1End = to;
  rowsOf.pack(code, panel);
  return copy->matrix;
}

void RowsOperand::turn(Code &code, Value memref, Value from, Value to) {
  GemmPanel panel = panelOf(code, memref, lanes);
  panel.n = from;
  panel.columns = code.sub(to, from);
  panel.k1End = code.index(columns);
  columnsOf.pack(code, panel);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Code::Values TileProduct::emit(Code &code, Value row, int64_t rows,
                               Value column, int64_t vectors,
                               int64_t lanes) const {
  constexpr int64_t rounds = 4;
  Value zero = code.index(0);
  Value aStart = isTurned ? a.at(code, zero, row) : a.at(code, row, zero);
  Value bStart = b.at(code, zero, column);
  auto round = [&](Value k, int64_t count, ValueRange in) {
    Code::Values sums(in), line(vectors);
    Value aPlace = code.add(aStart, isTurned ? code.mul(k, a.stride) : k);
    Value bPlace = code.add(bStart, code.mul(k, b.stride));
    for (int64_t u = 0; u < count; ++u) {
      for (int64_t v = 0; v < vectors; ++v)
        line[v] = code.load(b.memref,
                            code.add(bPlace, u * b.stride + v * lanes), lanes);
      for (int64_t i = 0; i < rows; ++i) {
        int64_t offset = isTurned ? u * a.stride + i : i * a.stride + u;
        Value x = memref::LoadOp::create(code.b, code.loc, a.memref,
                                         code.add(aPlace, offset));
        x = code.splat(x, lanes);
        for (int64_t v = 0; v < vectors; ++v)
          sums[i * vectors + v] =
              code.multiplyAdd(x, line[v], sums[i * vectors + v]);
      }
    }
    return sums;
  };
  Value length = code.sub(kEnd, k);
  Value whole = code.add(k, code.mul(code.div(length, rounds), rounds));
  Code::Values sums(rows * vectors, code.zeros(type, lanes));
  sums = code.loop(k, whole, rounds, sums, [&](Value k, ValueRange in) {
    return round(k, rounds, in);
  });
  return code.loop(whole, kEnd, 1, sums,
                   [&](Value k, ValueRange in) { return round(k, 1, in); });
}
