//===- AttentionScores.cpp - scores in the registers of threads -----------===//
#include "passes/lower/cuda/attention/AttentionScores.h"

#include "ir/ops/Scalar.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

static int64_t ceilDiv(int64_t x, int64_t y) { return (x + y - 1) / y; }

AttentionScores::AttentionScores(AnchorKernel &kernel, ThreadCode &code)
    : kernel(kernel), code(code), index(kernel.anchor),
      isForward(isa<AttentionForwardOp>(kernel.anchor)),
      byKey(isa<AttentionKeyGradOp>(kernel.anchor)) {
  ownRows = byKey ? index.attention.keys : index.attention.queries;
  otherRows = byKey ? index.attention.queries : index.attention.keys;
  // A positive factor leaves the largest score the largest.
  bool isPositive = index.scale > 0;
  before = isPositive ? 1 : index.scale;
  factor = (isPositive ? index.scale : 1) * std::numbers::log2e;
  widthA = ceilDiv(index.attention.width, 16) * 16;
  widthB = ceilDiv(index.attention.valueWidth, 16) * 16;
  if (isForward || (byKey && kernel.isWanted(1)))
    sums.push_back({byKey ? 1u : 0u, true, widthB, index.e});
  if (!isForward && kernel.isWanted(0))
    sums.push_back({0, false, widthA, index.d});
  for (const Sum &sum : sums)
    needsGradients |= !sum.ofB;
}

ScheduleOverride AttentionScores::Shape::numbers() const {
  using enum ScheduleKey;
  return ScheduleOverride({{BlockM, rows()}, {BlockN, step}, {WarpsM, warps}});
}

AttentionWork AttentionScores::work() const {
  const AttentionSizes &sizes = index.attention;
  AttentionWork work;
  work.kernel = isForward ? AttentionWork::Forward
                : byKey   ? AttentionWork::KeyGrad
                          : AttentionWork::QueryGrad;
  work.batches = sizes.batches;
  work.queries = sizes.queries;
  work.keys = sizes.keys;
  work.width = sizes.width;
  work.valueWidth = sizes.valueWidth;
  work.causal = index.causal;
  work.rows = shape.rows();
  work.step = shape.step;
  return work;
}

AttentionScores::Number AttentionScores::own(bool ofB) const {
  return byKey ? (ofB ? Number::V : Number::K) : (ofB ? Number::DY : Number::Q);
}
AttentionScores::Number AttentionScores::other(bool ofB) const {
  return byKey ? (ofB ? Number::DY : Number::Q) : (ofB ? Number::V : Number::K);
}

/// The steps with scores that are all seen and those with some that are not:
/// both as first and end. Of queries the latter are the last ones, of keys the
/// first ones.
std::pair<AttentionScores::Values, AttentionScores::Values>
AttentionScores::bounds() {
  int64_t step = shape.step, all = ceilDiv(otherRows, step);
  Value zero = code.index(0), end = code.index(all);
  // Rows that are not there are zeros; as queries these add nothing.
  Value full = code.index(byKey ? all : otherRows / step);
  if (!index.causal)
    return {{zero, full}, byKey ? Values{zero, zero} : Values{full, end}};
  if (byKey) {
    Value begin = code.min(code.div(ownFirst, step), end);
    Value middle = code.min(
        code.div(code.add(ownFirst, shape.rows() + step - 2), step), end);
    return {{middle, end}, {begin, middle}};
  }
  full = code.min(code.div(code.add(ownFirst, 1), step), full);
  end = code.min(code.div(code.add(ownFirst, shape.rows() + step - 1), step),
                 end);
  return {{zero, full}, {full, end}};
}

AttentionScores::Value AttentionScores::add(Value x, Value y) {
  return scalar::add(code.b, code.loc, x, y);
}

AttentionScores::Value AttentionScores::sub(Value x, Value y) {
  return scalar::sub(code.b, code.loc, x, y);
}

AttentionScores::Value AttentionScores::mul(Value x, Value y) {
  return scalar::mul(code.b, code.loc, x, y);
}

/// The instruction: its relative error is at most 2^-22, small beside that of
/// the weights, which are rounded to 16 bits.
AttentionScores::Value AttentionScores::exp2(Value x) {
  return LLVM::CallIntrinsicOp::create(
             code.b, code.loc, x.getType(),
             code.b.getStringAttr("llvm.nvvm.ex2.approx.ftz"), ValueRange{x})
      .getResults();
}

AttentionScores::Value AttentionScores::ownRow(int64_t block, int64_t half) {
  Value group = code.div(code.lane(), 4);
  Value first = code.add(ownFirst, code.mul(code.warp(), 16 * shape.blocks));
  return code.add(code.add(first, group), 16 * block + 8 * half);
}

//===----------------------------------------------------------------------===//
// Before and after the walk
//===----------------------------------------------------------------------===//

AttentionScores::Values AttentionScores::start() {
  ownLse.clear();
  ownDelta.clear();
  if (!isForward && !byKey)
    for (int64_t i = 0; i < 2 * shape.blocks; ++i) {
      Values dims(batch);
      dims[index.t] = code.min(ownRow(i / 2, i % 2), ownRows - 1);
      auto number = [&](Number number) {
        return kernel.element(number, index.operand(number), dims, index.sizes);
      };
      ownLse.push_back(mul(number(Number::LSE), f32(-std::numbers::log2e)));
      ownDelta.push_back(number(Number::DELTA));
    }

  Values values;
  if (isForward) {
    values.append(2 * shape.blocks, f32(-kInfinity));
    values.append(2 * shape.blocks, f32(0));
  }
  for (const Sum &sum : sums)
    values.append(shape.blocks * sum.columns / 2, f32(0));
  return values;
}

void AttentionScores::finish(Values results) {
  ArrayRef<Value> rest(results);
  Values factors; // of own rows
  if (isForward) {
    int64_t rows = 2 * shape.blocks;
    for (int64_t i = 0; i < rows; ++i) {
      Value total = code.reduceLanes(
          results[rows + i], 4, [&](Value x, Value y) { return add(x, y); });
      factors.push_back(scalar::div(code.b, code.loc, f32(1), total));
      if (!kernel.isWanted(1))
        continue;
      Value row = ownRow(i / 2, i % 2);
      Value isOne = code.both(
          code.less(row, code.index(ownRows)),
          code.both(code.equal(code.rem(code.lane(), 4), code.index(0)),
                    code.equal(part, code.index(0))));
      code.when(isOne, [&] {
        Value lse = add(mul(results[i], f32(factor * std::numbers::ln2)),
                        scalar::log(code.b, code.loc, total));
        kernel.finishResult(1, index.resultAt(batch, row), lse);
      });
    }
    rest = rest.drop_front(2 * rows);
  }
  for (const Sum &sum : sums) {
    size_t count = shape.blocks * sum.columns / 2;
    Values scaled(rest.take_front(count));
    for (auto [i, x] : llvm::enumerate(scaled)) {
      size_t block = i / (sum.columns / 2), half = i % 4 / 2;
      if (isForward)
        x = mul(x, factors[2 * block + half]);
      else if (!sum.ofB)
        x = mul(x, f32(index.scale));
    }
    storeSums(sum, scaled);
    rest = rest.drop_front(count);
  }
}

void AttentionScores::storeSums(const Sum &sum, ArrayRef<Value> values) {
  unsigned row = byKey ? index.s : index.t;
  int64_t columns = index.sizes[sum.column];
  std::optional<Operand> output =
      kernel.directOutput(index.element, index.index({row, sum.column}),
                          index.sizes, sum.column, sum.result);
  bool pairs = output && columns % 2 == 0;
  for (unsigned d = 0; output && d < index.sizes.size(); ++d)
    pairs &=
        d == sum.column || index.sizes[d] == 1 || output->stride(d) % 2 == 0;
  Value pair = code.add(code.mul(part, sum.columns),
                        code.mul(code.rem(code.lane(), 4), 2));

  auto storeRow = [&](Value ownAt, ArrayRef<Value> inRow) {
    for (int64_t c = 0; c < sum.columns / 8; ++c) {
      Value column = code.add(pair, 8 * c);
      auto isThere = [&](int64_t i) {
        return sum.columns * parts == columns
                   ? Value(code.number(code.b.getI1Type(), 1))
                   : code.less(code.add(column, i), code.index(columns));
      };
      if (pairs) {
        code.when(isThere(0), [&] {
          Values at(batch);
          at[row] = ownAt;
          at[sum.column] = column;
          Value both = vector::FromElementsOp::create(
              code.b, code.loc, VectorType::get({2}, code.b.getF32Type()),
              inRow.slice(2 * c, 2));
          if (!index.element.isF32())
            both = arith::TruncFOp::create(
                code.b, code.loc, VectorType::get({2}, index.element), both);
          code.store(both, output->memref, output->at(code, at));
        });
        continue;
      }
      for (int64_t i = 0; i < 2; ++i)
        code.when(isThere(i), [&] {
          kernel.finishResult(sum.result,
                              index.resultAt(batch, ownAt, code.add(column, i)),
                              inRow[2 * c + i]);
        });
    }
  };
  for (int64_t block = 0; block < shape.blocks; ++block)
    for (int64_t half = 0; half < 2; ++half) {
      Values inRow;
      for (int64_t c = 0; c < sum.columns / 8; ++c)
        for (int64_t i = 0; i < 2; ++i)
          inRow.push_back(
              values[block * sum.columns / 2 + c * 4 + 2 * half + i]);
      Value ownAt = ownRow(block, half);
      if (ownRows % shape.rows() == 0)
        storeRow(ownAt, inRow);
      else
        code.when(code.less(ownAt, code.index(ownRows)),
                  [&] { storeRow(ownAt, inRow); });
    }
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

/// Scores that are not seen, or of rows that are not there, are -infinity.
void AttentionScores::mask(const Rows &rows, Values &scores) {
  Type i32 = code.b.getI32Type();
  auto narrow = [&](Value x) -> Value {
    return arith::IndexCastOp::create(code.b, code.loc, i32, x);
  };
  auto compare = [&](arith::CmpIPredicate predicate, Value x,
                     int64_t y) -> Value {
    return arith::CmpIOp::create(code.b, code.loc, predicate, x,
                                 code.number(i32, static_cast<double>(y)));
  };
  // This thread's first other row, and its distance from its first own row.
  Value first = code.add(rows.first, code.mul(code.rem(code.lane(), 4), 2));
  Value other = narrow(first), distance = narrow(code.sub(first, ownRow(0, 0)));
  // Rows that are not there, as queries, are zeros.
  bool hasEnd = !byKey && otherRows % shape.step != 0;
  for (int64_t block = 0; block < shape.blocks; ++block)
    for (int64_t column = 0; column < shape.step / 8; ++column)
      for (int64_t i = 0; i < 4; ++i) {
        int64_t row = 16 * block + 8 * (i / 2), at = 8 * column + i % 2;
        Value isSeen;
        if (index.causal)
          isSeen = compare(byKey ? arith::CmpIPredicate::sge
                                 : arith::CmpIPredicate::sle,
                           distance, row - at);
        if (hasEnd) {
          Value isThere =
              compare(arith::CmpIPredicate::slt, other, otherRows - at);
          isSeen = isSeen ? code.both(isSeen, isThere) : isThere;
        }
        Value &score = scores[place(block, column, i)];
        if (isSeen)
          score = code.select(isSeen, score, f32(-kInfinity));
      }
}

/// Weights from scores, in their place; what is carried changes with the
/// largest score.
AttentionScores::Values AttentionScores::softmax(Values &scores,
                                                 Values &carried) {
  int64_t rows = 2 * shape.blocks;
  Values decays;
  auto maximum = [&](Value x, Value y) -> Value {
    return scalar::maximum(code.b, code.loc, x, y);
  };
  for (int64_t r = 0; r < rows; ++r) {
    SmallVector<size_t> mine;
    for (int64_t column = 0; column < shape.step / 8; ++column)
      for (int64_t i = 0; i < 2; ++i)
        mine.push_back(place(r / 2, column, 2 * (r % 2) + i));
    Value largest = scores[mine[0]];
    for (size_t at : ArrayRef(mine).drop_front())
      largest = maximum(largest, scores[at]);
    largest = maximum(carried[r], code.reduceLanes(largest, 4, maximum));
    // From scores that are all -infinity nothing can be subtracted.
    Value isLowest = arith::CmpFOp::create(
        code.b, code.loc, arith::CmpFPredicate::OEQ, largest, f32(-kInfinity));
    Value shift = code.select(isLowest, f32(0), mul(largest, f32(-factor)));
    Value decay = exp2(code.multiplyAdd(carried[r], f32(factor), shift));
    Value total = mul(carried[rows + r], decay);
    for (size_t at : mine) {
      scores[at] = exp2(code.multiplyAdd(scores[at], f32(factor), shift));
      total = add(total, scores[at]);
    }
    carried[r] = largest;
    carried[rows + r] = total;
    decays.push_back(decay);
  }
  return decays;
}

void AttentionScores::decay(const Values &decays,
                            MutableArrayRef<Value> values) {
  for (auto [i, x] : llvm::enumerate(values)) {
    size_t block = i / (sums[0].columns / 2), half = i % 4 / 2;
    x = mul(x, decays[2 * block + half]);
  }
}

AttentionScores::Value
AttentionScores::perOther(Value memory, const Rows &other, int64_t column) {
  Value at = code.add(other.rowsAt, code.mul(code.rem(code.lane(), 4), 2));
  return memref::LoadOp::create(code.b, code.loc, memory,
                                ValueRange{code.add(at, column)});
}

/// exp(scores - lse)
AttentionScores::Values AttentionScores::weightsOf(const Rows &other,
                                                   const Values &scores) {
  Values weights(scores);
  for (int64_t column = 0; column < shape.step / 8; ++column)
    for (int64_t j = 0; j < 2; ++j) {
      Value shift;
      if (byKey)
        shift = mul(perOther(other.lse, other, 8 * column + j),
                    f32(-std::numbers::log2e));
      for (int64_t r = 0; r < 2 * shape.blocks; ++r) {
        Value &x = weights[place(r / 2, column, 2 * (r % 2) + j)];
        x = exp2(code.multiplyAdd(x, f32(factor), byKey ? shift : ownLse[r]));
      }
    }
  return weights;
}

/// weights * (dy v^T - delta)
AttentionScores::Values AttentionScores::gradients(const Rows &other,
                                                   const Values &weights,
                                                   Values products) {
  for (int64_t column = 0; column < shape.step / 8; ++column)
    for (int64_t j = 0; j < 2; ++j) {
      Value delta;
      if (byKey)
        delta = perOther(other.delta, other, 8 * column + j);
      for (int64_t r = 0; r < 2 * shape.blocks; ++r) {
        size_t at = place(r / 2, column, 2 * (r % 2) + j);
        products[at] =
            mul(weights[at], sub(products[at], byKey ? delta : ownDelta[r]));
      }
    }
  return products;
}
