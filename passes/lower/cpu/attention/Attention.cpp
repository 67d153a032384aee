//===- Attention.cpp - attention without a tensor of scores ---------------===//
//
// The forward is the online softmax: weights are relative to the largest score
// so far, and what is summed is scaled anew where that rises (Dao et al.,
// FlashAttention).
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cpu/attention/AttentionGradient.h"
#include "passes/lower/cpu/attention/AttentionItem.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

namespace {
class AttentionForward : AttentionItem {
public:
  explicit AttentionForward(AnchorKernel &kernel);
  Work emit();

private:
  void emitTile(Value item);
  void emitBlock(const Block &block);
  void emitWeights(Value vector, const Block &block);
  void finish();

  /// A score that is greater than all others, if scaled; with a negative scale
  /// that is the least.
  Value greatest(Value x, Value y) const {
    // Not maximumf: a score that is no number makes its weight none anyway.
    auto predicate =
        index.scale < 0 ? arith::CmpFPredicate::OLT : arith::CmpFPredicate::OGT;
    return code.select(arith::CmpFOp::create(code.b, code.loc, predicate, x, y),
                       x, y);
  }

  double hidden; ///< a score less than all others, if scaled
  RowsOperand queries, keys, values;
  ScratchMatrix own;    ///< queries, turned
  ScratchMatrix scores; ///< which become weights
  // Of lanes: the greatest score and the sum of weights so far, and the scale
  // of what was summed before the block.
  ScratchMatrix extreme, total, scales;
  ScratchMatrix sums;
  Result result;
};
} // namespace

AttentionForward::AttentionForward(AnchorKernel &kernel)
    : AttentionItem(kernel, /*ownsKeys=*/false),
      hidden(index.scale < 0 ? kInfinity : -kInfinity),
      queries(kernel, index, Number::Q, index.t, index.d, schedule, 0),
      keys(kernel, index, Number::K, index.s, index.d, schedule,
           schedule.block),
      values(kernel, index, Number::V, index.s, index.e, schedule,
             schedule.block),
      own(kernel, index.attention.width + schedule.lanes, schedule.width(),
          type),
      scores(kernel, schedule.block, schedule.width(), type),
      extreme(kernel, 1, schedule.width(), type),
      total(kernel, 1, schedule.width(), type),
      scales(kernel, 1, schedule.width(), type),
      sums(kernel, schedule.width(),
           schedule.padded(index.attention.valueWidth), type),
      result(resultLike(0, Number::DY, index.t, index.e)) {}

Work AttentionForward::emit() {
  Work work;
  work.items = index.attention.batches * schedule.tiles();
  kernel.forEachItem([&](Value item) { emitTile(item); });
  work.grain = grainOf(2, work.items);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

void AttentionForward::emitTile(Value item) {
  int64_t tiles = schedule.tiles();
  place = index.at(code, code.div(item, tiles));
  for (RowsOperand *operand : {&queries, &keys, &values})
    operand->enter(place);
  enterTile(code.mul(code.rem(item, tiles), schedule.width()));
  queries.turn(code, own.memref, firstOwn, code.add(firstOwn, ownCount));
  forEachBlock([&](const Block &block) { emitBlock(block); });
  finish();
}

void AttentionForward::emitBlock(const Block &block) {
  Matrix rows = keys.rows(code, block.from, block.to);
  forEachPanel([&](Value first, int64_t vectors) {
    multiply(rows, own.matrix, index.attention.width, scores.matrix, first,
             vectors, block);
    Value end = code.min(code.add(first, vectors), vectorCount);
    code.loop(first, end, 1, [&](Value vector) { emitWeights(vector, block); });
  });
  addToOwn(scores.matrix, values.rows(code, block.from, block.to),
           index.attention.valueWidth, sums.matrix, block, &scales.matrix);
}

void AttentionForward::emitWeights(Value vector, const Block &block) {
  Seen seen = seenBy(vector, block);
  Value zero = code.index(0), column = code.mul(vector, schedule.lanes);
  Value scale = splat(index.scale * unit);
  Value before = code.select(block.isFirst, splat(hidden),
                             load(extreme.matrix, zero, column));
  Value now = forEachRow(
      seen, block, before,
      [&](Value row, Hide hide, Value carried) {
        Value x = load(scores.matrix, row, column);
        return greatest(hide(x, hidden), carried);
      },
      [&](Value x, Value y) { return greatest(x, y); });
  store(now, extreme.matrix, zero, column);
  // Where no score is finite so far, nor is the difference of two.
  Value none = arith::CmpFOp::create(
      code.b, code.loc, arith::CmpFPredicate::OEQ, now, splat(hidden));
  Value most = mul(code.select(none, splat(0), now), scale);
  Value again = weightOf(sub(mul(before, scale), most));
  store(again, scales.matrix, zero, column);
  Value made = forEachRow(
      seen, block, splat(0),
      [&](Value row, Hide hide, Value carried) {
        Value x = load(scores.matrix, row, column);
        x = hide(weightOf(subtractFrom(x, scale, most)), 0);
        store(x, scores.matrix, row, column);
        return add(carried, x);
      },
      [&](Value x, Value y) { return add(x, y); });
  Value sum = code.select(
      block.isFirst, made,
      code.multiplyAdd(load(total.matrix, zero, column), again, made));
  store(sum, total.matrix, zero, column);
}

void AttentionForward::finish() {
  Value zero = code.index(0);
  bool isStatisticWanted = kernel.isWanted(1);
  code.loop(zero, vectorCount, 1, [&](Value vector) {
    Value column = code.mul(vector, schedule.lanes);
    Value sum = load(total.matrix, zero, column);
    Value score = load(extreme.matrix, zero, column);
    Value most = mul(score, splat(index.scale));
    // Without a finite score, a row of weights is none.
    Value none = arith::CmpFOp::create(
        code.b, code.loc, arith::CmpFPredicate::OEQ, most, splat(-kInfinity));
    store(code.select(none, splat(std::numeric_limits<double>::quiet_NaN()),
                      binary<arith::DivFOp>(splat(1), sum)),
          scales.matrix, zero, column);
    if (isStatisticWanted)
      store(add(most, math::LogOp::create(code.b, code.loc, sum)),
            extreme.matrix, zero, column);
  });
  finishRows(result, sums.matrix, firstOwn, ownCount,
             [&](Value row) { return element(scales.matrix, zero, row); });
  if (isStatisticWanted)
    code.loop(zero, ownCount, 1, [&](Value i) {
      kernel.finishResult(1, index.resultAt(place, code.add(firstOwn, i)),
                          element(extreme.matrix, zero, i));
    });
}

int64_t lower::cpu::scratchOfAttention(AnchorKernel &kernel) {
  if (!isa<AttentionForwardOp>(kernel.anchor))
    return scratchOfAttentionGradient(kernel);
  return kernel.countScratch([&] { AttentionForward{kernel}; });
}

ScheduleOverride lower::cpu::cutAttention(AnchorKernel &kernel) {
  using enum ScheduleKey;
  if (kernel.companion)
    return {};
  AttentionSchedule schedule(AttentionIndex(kernel.anchor), kernel.target,
                             isa<AttentionKeyGradOp>(kernel.anchor),
                             ScheduleOverride::of(kernel.kernel)[Vectors]);
  return ScheduleOverride({{Vectors, schedule.vectors}});
}

FailureOr<Work> lower::cpu::emitAttention(AnchorKernel &kernel) {
  if (isa<AttentionForwardOp>(kernel.anchor))
    return AttentionForward(kernel).emit();
  return emitAttentionGradient(kernel);
}
