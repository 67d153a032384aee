//===- AttentionRows.cpp - attention, a warp for each row -----------------===//
//
// The form for operands of any type, size and place. A warp has one row of the
// result (of queries, or of keys for the keys' gradient) and goes over the rows
// of the other kind in steps of 32: each lane has the score of one of them;
// then all lanes add these rows, times their weights, to the columns that each
// has in registers. Wide results are cut into parts, whose warps compute the
// same scores.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cuda/attention/Attention.h"

#include "ir/ops/Scalar.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

static constexpr int64_t kWarps = 8;
/// Columns of a result that a warp has.
static constexpr int64_t kColumns = 256;

namespace {
class AttentionRows {
public:
  AttentionRows(AnchorKernel &kernel, ThreadCode &code)
      : kernel(kernel), code(code), index(kernel.anchor),
        isForward(isa<AttentionForwardOp>(kernel.anchor)),
        byKey(isa<AttentionKeyGradOp>(kernel.anchor)) {}

  LaunchShape emit();

private:
  using Number = AttentionIndex::Number;
  using Values = ThreadCode::Values;

  /// A result made of weighted rows: of which operand, and the registers of a
  /// lane.
  struct Sum {
    unsigned result;
    Number rows;
    unsigned column; ///< the dimension
    int64_t registers;
    bool ofWeights; ///< and not of the scores' gradients
  };

  void emitRow(Value item);
  void findSums();
  /// Element `number` in the row of queries `t` or of keys `s`.
  Value element(Number number, Value own, Value other, Value column = {});
  Value dot(Number left, Number right, unsigned column, Value own, Value other);
  /// Adds the `count` rows from `first` on, each times a lane's weight.
  Values addRows(Value own, Value first, Value count, Value weight,
                 Value gradient, Values sums);
  Value columnOf(int64_t number) {
    return code.add(code.add(code.mul(part, kColumns), code.lane()),
                    number * warpSize);
  }

  Value add(Value x, Value y) { return scalar::add(code.b, code.loc, x, y); }
  Value sub(Value x, Value y) { return scalar::sub(code.b, code.loc, x, y); }
  Value mul(Value x, Value y) { return scalar::mul(code.b, code.loc, x, y); }
  Value exp(Value x) { return scalar::exp(code.b, code.loc, x); }
  Value number(double x) { return code.number(index.compute, x); }

  AnchorKernel &kernel;
  ThreadCode &code;
  AttentionIndex index;
  bool isForward, byKey;
  SmallVector<Sum> sums;
  SmallVector<Value> place; ///< of the batch
  Value part;               ///< of the columns
};
} // namespace

void AttentionRows::findSums() {
  auto add = [&](unsigned result, Number rows, unsigned column,
                 bool ofWeights) {
    if (!kernel.isWanted(result))
      return;
    int64_t most = std::min(index.sizes[column], kColumns);
    sums.push_back(
        {result, rows, column, (most + warpSize - 1) / warpSize, ofWeights});
  };
  if (isForward)
    add(0, Number::V, index.e, true);
  else if (!byKey)
    add(0, Number::K, index.d, false);
  else {
    add(0, Number::Q, index.d, false);
    add(1, Number::DY, index.e, true);
  }
}

Value AttentionRows::element(Number number, Value own, Value other,
                             Value column) {
  SmallVector<Value> dims(place);
  dims[index.t] = byKey ? other : own;
  dims[index.s] = byKey ? own : other;
  if (column) {
    dims[index.d] = column;
    dims[index.e] = column;
  }
  return kernel.element(number, index.operand(number), dims, index.sizes);
}

Value AttentionRows::dot(Number left, Number right, unsigned column, Value own,
                         Value other) {
  return code.loop(code.index(0), code.index(index.sizes[column]), 1,
                   {number(0)}, [&](Value i, ValueRange sum) -> Values {
                     return {add(sum[0], mul(element(left, own, other, i),
                                             element(right, own, other, i)))};
                   })[0];
}

AttentionRows::Values AttentionRows::addRows(Value own, Value first,
                                             Value count, Value weight,
                                             Value gradient, Values carried) {
  return code.loop(
      code.index(0), count, 1, carried, [&](Value i, ValueRange before) {
        Value row = code.add(first, i);
        Values next;
        Value factors[2];
        for (const Sum &sum : sums) {
          Value &factor = factors[sum.ofWeights];
          if (!factor)
            factor = code.shuffleFrom(sum.ofWeights ? weight : gradient, i);
          for (int64_t r = 0; r < sum.registers; ++r) {
            // Columns behind the last one are computed of the last.
            Value column = code.min(columnOf(r), index.sizes[sum.column] - 1);
            Value x = element(sum.rows, own, row, column);
            next.push_back(add(before[next.size()], mul(factor, x)));
          }
        }
        return next;
      });
}

void AttentionRows::emitRow(Value item) {
  int64_t rows = byKey ? index.attention.keys : index.attention.queries;
  int64_t others = byKey ? index.attention.queries : index.attention.keys;
  Value own = code.rem(item, rows);
  place = index.at(code, code.div(item, rows));
  Value from = code.index(0), to = code.index(others);
  if (index.causal && byKey)
    from = code.min(own, to);
  else if (index.causal)
    to = code.min(code.add(own, 1), to);

  Value lowest = number(-std::numeric_limits<double>::infinity());
  Values init;
  if (isForward)
    init = {lowest, number(0)};
  size_t first = init.size();
  for (const Sum &sum : sums)
    init.append(sum.registers, number(0));
  Value ownLse, ownDelta;
  if (!isForward && !byKey) {
    ownLse = element(Number::LSE, own, from);
    ownDelta = element(Number::DELTA, own, from);
  }
  Values results = code.loop(
      from, to, warpSize, init, [&](Value step, ValueRange carried) -> Values {
        Value isOne = code.less(code.add(step, code.lane()), to);
        Value other = code.min(code.add(step, code.lane()), others - 1);
        Value score = mul(dot(Number::Q, Number::K, index.d, own, other),
                          number(index.scale));
        score = code.select(isOne, score, lowest);
        Values next(carried);
        Value weight, gradient;
        if (isForward) {
          Value largest = scalar::maximum(
              code.b, code.loc, carried[0],
              code.reduceLanes(score, warpSize, [&](Value x, Value y) {
                return scalar::maximum(code.b, code.loc, x, y);
              }));
          // Of scores that are all -infinity nothing can be subtracted.
          Value shift = code.select(scalar::compare(code.b, code.loc,
                                                    ComparePredicate::eq,
                                                    largest, lowest),
                                    number(0), largest);
          weight = exp(sub(score, shift));
          Value decay = exp(sub(carried[0], shift));
          next[0] = largest;
          next[1] =
              add(mul(carried[1], decay),
                  code.reduceLanes(weight, warpSize, [&](Value x, Value y) {
                    return add(x, y);
                  }));
          for (Value &sum : MutableArrayRef(next).drop_front(first))
            sum = mul(sum, decay);
        } else {
          Value lse = byKey ? element(Number::LSE, own, other) : ownLse;
          Value delta = byKey ? element(Number::DELTA, own, other) : ownDelta;
          weight = code.select(isOne, exp(sub(score, lse)), number(0));
          gradient =
              mul(weight,
                  sub(dot(Number::DY, Number::V, index.e, own, other), delta));
        }
        Values added =
            addRows(own, step, code.min(code.sub(to, step), warpSize), weight,
                    gradient, Values(ArrayRef(next).drop_front(first)));
        llvm::copy(added, next.begin() + first);
        return next;
      });

  size_t at = first;
  for (const Sum &sum : sums)
    for (int64_t r = 0; r < sum.registers; ++r) {
      Value x = results[at++], column = columnOf(r);
      if (isForward)
        x = scalar::div(code.b, code.loc, x, results[1]);
      else if (!sum.ofWeights)
        x = mul(x, number(index.scale));
      auto store = [&] {
        kernel.finishResult(sum.result, index.resultAt(place, own, column), x);
      };
      code.when(code.less(column, code.index(index.sizes[sum.column])), store);
    }
  if (!isForward || !kernel.isWanted(1))
    return;
  Value isFirst = code.both(code.equal(code.lane(), code.index(0)),
                            code.equal(part, code.index(0)));
  code.when(isFirst, [&] {
    Value lse = add(results[0], scalar::log(code.b, code.loc, results[1]));
    kernel.finishResult(1, index.resultAt(place, own), lse);
  });
}

LaunchShape AttentionRows::emit() {
  findSums();
  int64_t parts = 1;
  for (const Sum &sum : sums)
    parts =
        std::max(parts, (index.sizes[sum.column] + kColumns - 1) / kColumns);
  int64_t rows = byKey ? index.attention.keys : index.attention.queries;
  int64_t items = index.attention.batches * rows * parts;
  Value item = code.add(code.mul(code.block(), kWarps), code.warp());
  code.when(code.less(item, code.index(items)), [&] {
    part = code.rem(item, parts);
    emitRow(code.div(item, parts));
  });
  return LaunchShape::over(items * warpSize, kWarps * warpSize);
}

LaunchShape lower::cuda::emitAttentionRows(AnchorKernel &kernel,
                                           ThreadCode &code) {
  return AttentionRows(kernel, code).emit();
}
