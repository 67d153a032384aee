//===- Attention.cpp - attention without a tensor of scores ---------------===//
//
// An item is one row of a result: of queries for the forward and the queries'
// gradient, of keys for the keys' gradient. Its scores, or weights, are in the
// thread's scratch.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/AttentionIndex.h"
#include "passes/lower/cpu/KernelEmitter.h"

#include "ir/ops/Scalar.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
using namespace tandem::lower;

namespace {
/// The code of one item.
class AttentionRow {
public:
  AttentionRow(AnchorKernel &kernel)
      : index(kernel.anchor), kernel(kernel), code(kernel.code) {}

  void emitForward();
  void emitQueryGrad();
  void emitKeyGrad();

  AttentionIndex index;

private:
  using Number = AttentionIndex::Number;

  Value element(Number number, Value t, Value s, unsigned column = 0,
                Value at = {}) {
    SmallVector<Value> dims(place);
    if (t)
      dims[index.t] = t;
    if (s)
      dims[index.s] = s;
    if (at)
      dims[column] = at;
    return kernel.element(number, index.operand(number), dims, index.sizes);
  }
  /// The sum over [0, size) of what `term` gives.
  Value sum(Value from, Value to, llvm::function_ref<Value(Value)> term) {
    return code.loop(from, to, 1, {code.number(index.compute, 0)},
                     [&](Value i, ValueRange sums) -> Code::Values {
                       return {scalar::add(code.b, code.loc, sums[0], term(i))};
                     })[0];
  }
  /// The product of row `t` of `left` with row `s` of `right`.
  Value dot(Number left, Number right, unsigned column, Value t, Value s) {
    return sum(code.index(0), code.index(index.sizes[column]), [&](Value i) {
      return mul(element(left, t, s, column, i),
                 element(right, t, s, column, i));
    });
  }
  Value mul(Value x, Value y) { return scalar::mul(code.b, code.loc, x, y); }
  Value sub(Value x, Value y) { return scalar::sub(code.b, code.loc, x, y); }
  Value exp(Value x) { return scalar::exp(code.b, code.loc, x); }
  Value score(Value t, Value s) {
    return mul(dot(Number::Q, Number::K, index.d, t, s),
               code.number(index.compute, index.scale));
  }
  Value weight(Value t, Value s) {
    return exp(sub(score(t, s), element(Number::LSE, t, {})));
  }
  Value gradientOfScore(Value t, Value s, Value weight) {
    return mul(weight, sub(dot(Number::DY, Number::V, index.e, t, s),
                           element(Number::DELTA, t, {})));
  }
  Value load(Value memory, Value i) {
    return memref::LoadOp::create(code.b, code.loc, memory, i);
  }
  void store(Value x, Value memory, Value i) {
    memref::StoreOp::create(code.b, code.loc, x, memory, i);
  }
  /// Calls `body` with each item's row of `rows`.
  void forEachRow(int64_t rows, llvm::function_ref<void(Value)> body) {
    kernel.forEachItem([&](Value item) {
      place = index.at(code, code.div(item, rows));
      body(code.rem(item, rows));
    });
  }
  /// One past the last key that query `t` sees.
  Value seenBy(Value t) {
    Value all = code.index(index.attention.keys);
    return index.causal ? code.min(code.add(t, 1), all) : all;
  }
  /// Stores row `row` of result `number`, over `from` to `to` the sums of
  /// `weights` times the rows of `operand`.
  void storeRow(unsigned number, Value row, Number operand, unsigned column,
                bool overKeys, Value from, Value to, Value weights,
                Value factor) {
    code.loop(code.index(0), code.index(index.sizes[column]), 1, [&](Value i) {
      Value total = sum(from, to, [&](Value j) {
        return mul(load(weights, j),
                   element(operand, overKeys ? Value() : j,
                           overKeys ? j : Value(), column, i));
      });
      kernel.finishResult(number, index.resultAt(place, row, i),
                          mul(total, factor));
    });
  }

  AnchorKernel &kernel;
  Code &code;
  SmallVector<Value> place; ///< of the batch
};
} // namespace

void AttentionRow::emitForward() {
  Value scores =
      kernel.scratch.take(code, {index.attention.keys}, index.compute);
  Value zero = code.index(0);
  forEachRow(index.attention.queries, [&](Value t) {
    Value seen = seenBy(t);
    Value lowest =
        code.number(index.compute, -std::numeric_limits<double>::infinity());
    Value largest =
        code.loop(zero, seen, 1, {lowest},
                  [&](Value s, ValueRange carried) -> Code::Values {
                    Value x = score(t, s);
                    store(x, scores, s);
                    return {scalar::maximum(code.b, code.loc, carried[0], x)};
                  })[0];
    Value total = sum(zero, seen, [&](Value s) {
      Value x = exp(sub(load(scores, s), largest));
      store(x, scores, s);
      return x;
    });
    Value one = code.number(index.compute, 1);
    storeRow(0, t, Number::V, index.e, /*overKeys=*/true, zero, seen, scores,
             scalar::div(code.b, code.loc, one, total));
    if (kernel.isWanted(1))
      kernel.finishResult(1, index.resultAt(place, t),
                          scalar::add(code.b, code.loc, largest,
                                      scalar::log(code.b, code.loc, total)));
  });
}

void AttentionRow::emitQueryGrad() {
  Value weights =
      kernel.scratch.take(code, {index.attention.keys}, index.compute);
  Value zero = code.index(0);
  forEachRow(index.attention.queries, [&](Value t) {
    Value seen = seenBy(t);
    code.loop(zero, seen, 1, [&](Value s) {
      store(gradientOfScore(t, s, weight(t, s)), weights, s);
    });
    storeRow(0, t, Number::K, index.d, /*overKeys=*/true, zero, seen, weights,
             code.number(index.compute, index.scale));
  });
}

void AttentionRow::emitKeyGrad() {
  SmallVector<int64_t> rows{index.attention.queries};
  Value weights = kernel.scratch.take(code, rows, index.compute);
  Value gradients = kernel.scratch.take(code, rows, index.compute);
  Value all = code.index(index.attention.queries);
  forEachRow(index.attention.keys, [&](Value s) {
    // The queries from `s` on see the key.
    Value from = index.causal ? code.min(s, all) : code.index(0);
    code.loop(from, all, 1, [&](Value t) {
      Value x = weight(t, s);
      store(x, weights, t);
      store(gradientOfScore(t, s, x), gradients, t);
    });
    if (kernel.isWanted(0))
      storeRow(0, s, Number::Q, index.d, /*overKeys=*/false, from, all,
               gradients, code.number(index.compute, index.scale));
    if (kernel.isWanted(1))
      storeRow(1, s, Number::DY, index.e, /*overKeys=*/false, from, all,
               weights, code.number(index.compute, 1));
  });
}

FailureOr<Work> cpu::emitAttention(AnchorKernel &kernel) {
  AttentionRow row(kernel);
  const AttentionSizes &sizes = row.index.attention;
  Work work;
  if (isa<AttentionForwardOp>(kernel.anchor))
    row.emitForward();
  else if (isa<AttentionQueryGradOp>(kernel.anchor))
    row.emitQueryGrad();
  else
    row.emitKeyGrad();
  bool byKey = isa<AttentionKeyGradOp>(kernel.anchor);
  work.items = sizes.batches * (byKey ? sizes.keys : sizes.queries);
  double other = byKey ? sizes.queries : sizes.keys;
  double columns = sizes.width + sizes.valueWidth;
  work.grain = grainFor(work.items, 4 * other * columns,
                        elementBytes(row.index.element) * other * columns);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}
