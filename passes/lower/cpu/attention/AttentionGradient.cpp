//===- AttentionGradient.cpp - the gradients of attention -----------------===//
//
// The weights are computed again from the rows' statistics, which own queries
// have in lanes and own keys by block. Where the gradients of queries and keys
// are one kernel, an item is a batch: each tile of keys adds to all of the
// queries' gradients, one after the other.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cpu/attention/AttentionGradient.h"
#include "passes/lower/cpu/attention/AttentionItem.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

namespace {
/// A statistic of queries, of which a range is copied into scratch.
class Statistic {
public:
  Statistic(AnchorKernel &kernel, const AttentionIndex &index,
            AttentionIndex::Number number, int64_t lanes, int64_t most)
      : operand(kernel, number, index.operand(number), index.sizes, index.t,
                std::nullopt, index.d),
        copy(kernel, 1 + lanes, most, index.compute), lanes(lanes) {
    gemm.type = index.compute;
    gemm.N = index.sizes[index.t];
    operand.bindB(gemm);
  }

  void enter(ArrayRef<Value> batch) { operand.enter(batch); }
  void read(Code &code, Value from, Value to) {
    GemmPanel panel;
    panel.memref = copy.memref;
    panel.width = copy.matrix.stride;
    panel.lanes = lanes;
    panel.n = from;
    panel.columns = code.sub(to, from);
    panel.k0 = panel.k1 = code.index(0);
    panel.k0End = panel.k1End = code.index(1);
    gemm.pack(code, panel);
  }
  const Matrix &row() const { return copy.matrix; }

private:
  GemmOperand operand;
  Gemm gemm;
  ScratchMatrix copy;
  int64_t lanes;
};

class AttentionGradient : AttentionItem {
public:
  explicit AttentionGradient(AnchorKernel &kernel);
  Work emit();

private:
  /// What is summed for own rows: with gradients of scores as factors of the
  /// others' rows, or with weights as factors of their values.
  struct Sums {
    bool ofGradients;
    ScratchMatrix memory;
    Result result;
  };

  void addSums(unsigned number, bool ofGradients, Number like, unsigned column);
  void emitBatch(Value batch);
  void emitTile(Value item);
  void readStatistics(Value from, Value to);
  void emitBlock(const Block &block);
  void emitWeights(Value vector, const Block &block);

  /// The products of dy and v are wanted.
  bool needsProducts;
  // Of q and k, and of v and dy ("values").
  RowsOperand ownRows, others, ownValues, otherValues;
  ScratchMatrix own, ownProducts; ///< turned
  ScratchMatrix weights, gradients;
  Statistic lse;
  std::optional<Statistic> delta;
  SmallVector<Sums> results;
  /// The gradients of the queries, if keys are own.
  std::optional<Sums> queryGradients;
  Matrix ownMatrix; ///< own rows, of the tile
};
} // namespace

AttentionGradient::AttentionGradient(AnchorKernel &kernel)
    : AttentionItem(kernel, isa<AttentionKeyGradOp>(kernel.anchor)),
      needsProducts(!ownsKeys || kernel.companion || kernel.isWanted(0)),
      ownRows(kernel, index, ownsKeys ? Number::K : Number::Q,
              ownsKeys ? index.s : index.t, index.d, schedule,
              kernel.companion ? schedule.width() : 0),
      others(kernel, index, ownsKeys ? Number::Q : Number::K,
             ownsKeys ? index.t : index.s, index.d, schedule, schedule.block),
      ownValues(kernel, index, ownsKeys ? Number::V : Number::DY,
                ownsKeys ? index.s : index.t, index.e, schedule, 0),
      otherValues(kernel, index, ownsKeys ? Number::DY : Number::V,
                  ownsKeys ? index.t : index.s, index.e, schedule,
                  schedule.block),
      own(kernel, index.attention.width + schedule.lanes, schedule.width(),
          type),
      ownProducts(kernel,
                  needsProducts ? index.attention.valueWidth + schedule.lanes
                                : 0,
                  schedule.width(), type),
      weights(kernel, schedule.block, schedule.width(), type),
      gradients(kernel, needsProducts ? schedule.block : 0, schedule.width(),
                type),
      lse(kernel, index, Number::LSE, schedule.lanes,
          ownsKeys ? schedule.block : schedule.width()) {
  if (needsProducts)
    delta.emplace(kernel, index, Number::DELTA, schedule.lanes,
                  ownsKeys ? schedule.block : schedule.width());
  if (!ownsKeys)
    addSums(0, true, Number::Q, index.d);
  else if (kernel.isWanted(0))
    addSums(0, true, Number::K, index.d);
  if (ownsKeys && kernel.isWanted(1))
    addSums(1, false, Number::V, index.e);
  if (kernel.companion)
    queryGradients.emplace(
        Sums{true,
             ScratchMatrix(kernel, schedule.others,
                           schedule.padded(index.attention.width), type),
             resultLike(2, Number::Q, index.t, index.d)});
}

void AttentionGradient::addSums(unsigned number, bool ofGradients, Number like,
                                unsigned column) {
  results.push_back(
      {ofGradients,
       ScratchMatrix(kernel, schedule.width(),
                     schedule.padded(index.sizes[column]), type),
       resultLike(number, like, ownsKeys ? index.s : index.t, column)});
}

Work AttentionGradient::emit() {
  Work work;
  work.items = index.attention.batches;
  if (!queryGradients)
    work.items *= schedule.tiles();
  kernel.forEachItem([&](Value item) {
    if (queryGradients)
      emitBatch(item);
    else
      emitTile(item);
  });
  work.grain = grainOf(2 + results.size(), work.items);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

void AttentionGradient::emitBatch(Value batch) {
  int64_t tiles = schedule.tiles();
  Value first = code.mul(batch, tiles), zero = code.index(0);
  code.loop(zero, code.index(tiles), 1,
            [&](Value tile) { emitTile(code.add(first, tile)); });
  place = index.at(code, batch);
  Value factor = code.number(type, index.scale);
  finishRows(queryGradients->result, queryGradients->memory.matrix, zero,
             code.index(schedule.others), [&](Value) { return factor; });
}

void AttentionGradient::emitTile(Value item) {
  int64_t tiles = schedule.tiles();
  place = index.at(code, code.div(item, tiles));
  for (RowsOperand *operand : {&ownRows, &others, &ownValues, &otherValues})
    operand->enter(place);
  lse.enter(place);
  if (delta)
    delta->enter(place);
  enterTile(code.mul(code.rem(item, tiles), schedule.width()));
  Value end = code.add(firstOwn, ownCount);
  ownRows.turn(code, own.memref, firstOwn, end);
  if (needsProducts)
    ownValues.turn(code, ownProducts.memref, firstOwn, end);
  if (!ownsKeys)
    readStatistics(firstOwn, end);
  if (queryGradients)
    ownMatrix = ownRows.rows(code, firstOwn, end);
  forEachBlock([&](const Block &block) { emitBlock(block); });
  for (const Sums &sums : results) {
    Value factor = code.number(type, sums.ofGradients ? index.scale : 1);
    finishRows(sums.result, sums.memory.matrix, firstOwn, ownCount,
               [&](Value) { return factor; });
  }
}

void AttentionGradient::readStatistics(Value from, Value to) {
  lse.read(code, from, to);
  if (delta)
    delta->read(code, from, to);
}

void AttentionGradient::emitBlock(const Block &block) {
  if (ownsKeys)
    readStatistics(block.from, block.to);
  Matrix rows = others.rows(code, block.from, block.to);
  Matrix values = otherValues.rows(code, block.from, block.to);
  forEachPanel([&](Value first, int64_t vectors) {
    multiply(rows, own.matrix, index.attention.width, weights.matrix, first,
             vectors, block);
    if (needsProducts)
      multiply(values, ownProducts.matrix, index.attention.valueWidth,
               gradients.matrix, first, vectors, block);
    Value end = code.min(code.add(first, vectors), vectorCount);
    code.loop(first, end, 1, [&](Value vector) { emitWeights(vector, block); });
  });
  for (const Sums &sums : results)
    if (sums.ofGradients)
      addToOwn(gradients.matrix, rows, index.attention.width,
               sums.memory.matrix, block);
    else
      addToOwn(weights.matrix, values, index.attention.valueWidth,
               sums.memory.matrix, block);
  if (queryGradients)
    addToOthers(gradients.matrix, ownMatrix, index.attention.width,
                queryGradients->memory.matrix, block);
}

/// Makes weights of scores, and of products of dy and v gradients of scores.
void AttentionGradient::emitWeights(Value vector, const Block &block) {
  Value zero = code.index(0), column = code.mul(vector, schedule.lanes);
  Value scale = splat(index.scale * unit), inUnits = splat(unit);
  auto statistic = [&](const Statistic &of, Value row) {
    return ownsKeys ? code.splat(element(of.row(), zero, row), schedule.lanes)
                    : load(of.row(), zero, column);
  };
  forEachRow(seenBy(vector, block), block, [&](Value row, Hide hide) {
    Value score = load(weights.matrix, row, column);
    Value weight =
        weightOf(subtractFrom(score, scale, mul(statistic(lse, row), inUnits)));
    weight = hide(weight, 0);
    store(weight, weights.matrix, row, column);
    if (!needsProducts)
      return;
    Value x = sub(load(gradients.matrix, row, column), statistic(*delta, row));
    store(hide(mul(weight, x), 0), gradients.matrix, row, column);
  });
}

int64_t lower::cpu::scratchOfAttentionGradient(AnchorKernel &kernel) {
  return kernel.countScratch([&] { AttentionGradient{kernel}; });
}

FailureOr<Work> lower::cpu::emitAttentionGradient(AnchorKernel &kernel) {
  return AttentionGradient(kernel).emit();
}
