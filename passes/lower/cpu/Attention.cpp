//===- Attention.cpp - attention without a tensor of scores ---------------===//
//
// The forward is the online softmax: weights are relative to the largest score
// so far, and what is summed is scaled anew where that rises (Dao et al.,
// FlashAttention). The gradients compute the weights again from the rows'
// statistics. Of causal attention, what nobody in a vector of own rows sees is
// left out. An own row is summed over the same blocks of other rows in their
// order, whichever tile and thread it is in.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/common/Polynomials.h"
#include "passes/lower/cpu/AttentionTiles.h"
#include "passes/lower/cpu/KernelEmitter.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
using namespace tandem::lower;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kLog2E = 1.4426950408889634;

namespace {
/// The code of the items of one op.
class AttentionTile {
public:
  explicit AttentionTile(AnchorKernel &kernel);

  Work emit();

private:
  /// A matrix of an item: row 0 is row `first` of what it is a part of.
  struct Rows {
    Value memref, first;
  };
  /// The other rows [low, high) that some lane, an own row from `own` on, sees.
  /// All lanes see those up to `middle`, if queries are own, or from there on.
  struct Seen {
    Value own, low, high, middle;
  };
  /// What is summed of a result, for each vector of own rows.
  struct Sums {
    unsigned result;
    unsigned column; ///< the dimension of the result's columns
    Matrices memory;
    std::optional<Operand> output; ///< if rows are stored as they are
  };
  using Number = AttentionIndex::Number;

  void addSums(unsigned result, Number like, unsigned column);
  void emitItem(Value item);
  void beginVector(Value vector);
  void emitBlock(Value from);
  Seen seenBy(Value vector, Value from, Value to);
  void emitForward(Value vector, const Seen &seen, Rows keys, Rows values);
  void emitGradient(Value vector, const Seen &seen, Rows rows, Rows values);
  void finishVector(Value vector);
  void finishRows(const Sums &sums, Value vector, Value factors);
  void finishStatistic(Value vector, Value values);
  void forEachOwn(Value vector,
                  llvm::function_ref<void(Value lane, Value row)> body);

  /// What is `hidden(x, instead)`: a lane has `instead` where it does not see
  /// the row.
  using Hide = llvm::function_ref<Value(Value x, double instead)>;
  using Values = Code::Values;
  /// Calls `body` for each of the seen.
  Values forEachRow(
      const Seen &seen, ValueRange init,
      llvm::function_ref<Values(Value row, Hide hidden, ValueRange carried)>
          body);
  /// result = factor * a b, a row for each of the seen; b has `k` rows.
  void multiply(Rows a, Value b, int64_t k, const Seen &seen, Rows result,
                double factor);
  /// sums = scales * sums + a^T b, over the seen; `scales` has one row.
  void accumulate(Rows a, Rows b, const Seen &seen, const Sums &sums,
                  Value vector, Value scales = {});

  template <typename Op> Value binary(Value x, Value y) {
    return Op::create(code.b, code.loc, x, y, arith::FastMathFlags::contract);
  }
  Value add(Value x, Value y) { return binary<arith::AddFOp>(x, y); }
  Value sub(Value x, Value y) { return binary<arith::SubFOp>(x, y); }
  Value mul(Value x, Value y) { return binary<arith::MulFOp>(x, y); }
  Value div(Value x, Value y) { return binary<arith::DivFOp>(x, y); }
  /// exp(x / unit)
  Value weightOf(Value x) {
    return type.isF32() ? lower::emitExp2(code.b, code.loc, x)
                        : math::ExpOp::create(code.b, code.loc, x);
  }
  Value splat(double x) {
    return code.splat(code.number(type, x), schedule.lanes);
  }
  Value larger(Value x, Value y) {
    // Not maximumf: a score that is no number makes its weight none anyway.
    return code.select(arith::CmpFOp::create(code.b, code.loc,
                                             arith::CmpFPredicate::OGT, x, y),
                       x, y);
  }
  Value load(Value memref, Value row) {
    return code.load(memref, {row, code.index(0)}, schedule.lanes);
  }
  void store(Value x, Value memref, Value row) {
    code.store(x, memref, {row, code.index(0)});
  }
  Value element(Value memref, Value row, Value column) {
    return memref::LoadOp::create(code.b, code.loc, memref,
                                  ValueRange{row, column});
  }

  AnchorKernel &kernel;
  Code &code;
  AttentionIndex index;
  bool isForward, ownsKeys;
  /// The products of dy and v are wanted.
  bool needsProducts;
  AttentionSchedule schedule;
  Type type;   ///< of the sums
  double unit; ///< scores are in multiples of 1 / unit

  // Own rows, transposed, and blocks of others: those of q and k, and those of
  // v and dy ("values").
  PackedOperand own, others, otherValues;
  std::optional<PackedOperand> ownValues, lse, delta;
  Matrices ownMemory, ownValueMemory, otherMemory, otherValueMemory;
  // Of a vector and a block: the scores, which become weights, and the products
  // of dy and v, which become gradients of scores.
  Matrices scores, products;
  Matrices scales; ///< of the sums so far, for each lane
  // Of lanes: the largest score and the sum of weights so far, or lse and
  // delta. For own keys lse and delta of the block.
  Matrices largest, total;
  SmallVector<Sums> results;

  // The item.
  SmallVector<Value> place; ///< of the batch
  Value firstOwn, vectorCount;
};
} // namespace

AttentionTile::AttentionTile(AnchorKernel &kernel)
    : kernel(kernel), code(kernel.code), index(kernel.anchor),
      isForward(isa<AttentionForwardOp>(kernel.anchor)),
      ownsKeys(isa<AttentionKeyGradOp>(kernel.anchor)),
      needsProducts(!isForward && (!ownsKeys || kernel.isWanted(0))),
      schedule(index, kernel.target, ownsKeys), type(index.compute),
      unit(type.isF32() ? kLog2E : 1),
      own(kernel, index, ownsKeys ? Number::K : Number::Q, index.d,
          ownsKeys ? index.s : index.t),
      others(kernel, index, ownsKeys ? Number::Q : Number::K,
             ownsKeys ? index.t : index.s, index.d),
      otherValues(kernel, index, ownsKeys ? Number::DY : Number::V,
                  ownsKeys ? index.t : index.s, index.e),
      ownMemory(kernel, schedule.vectors, index.sizes[index.d] + schedule.lanes,
                schedule.lanes, type),
      ownValueMemory(kernel, needsProducts ? schedule.vectors : 0,
                     index.sizes[index.e] + schedule.lanes, schedule.lanes,
                     type),
      otherMemory(kernel, 1, schedule.block + schedule.lanes,
                  schedule.padded(index.sizes[index.d]), type),
      otherValueMemory(kernel, 1, schedule.block + schedule.lanes,
                       schedule.padded(index.sizes[index.e]), type),
      scores(kernel, 1, schedule.block, schedule.lanes, type),
      products(kernel, needsProducts ? 1 : 0, schedule.block, schedule.lanes,
               type),
      scales(kernel, isForward ? 1 : 0, 1, schedule.lanes, type),
      largest(kernel, ownsKeys ? 1 : schedule.vectors, 1,
              ownsKeys ? schedule.block : schedule.lanes, type),
      total(kernel, ownsKeys ? 1 : schedule.vectors, 1,
            ownsKeys ? schedule.block : schedule.lanes, type) {
  if (needsProducts) {
    ownValues.emplace(kernel, index, ownsKeys ? Number::V : Number::DY, index.e,
                      ownsKeys ? index.s : index.t);
    delta.emplace(kernel, index, Number::DELTA, index.d, index.t);
  }
  if (!isForward)
    lse.emplace(kernel, index, Number::LSE, index.d, index.t);
  if (isForward)
    addSums(0, Number::DY, index.e);
  else if (!ownsKeys)
    addSums(0, Number::Q, index.d);
  else {
    if (kernel.isWanted(0))
      addSums(0, Number::K, index.d);
    if (kernel.isWanted(1))
      addSums(1, Number::V, index.e);
  }
}

void AttentionTile::addSums(unsigned result, Number like, unsigned column) {
  int64_t columns = index.sizes[column];
  Type element = index.element;
  Matrices memory(kernel, schedule.vectors, schedule.lanes,
                  schedule.padded(columns), type);
  results.push_back({result, column, memory,
                     kernel.directOutput(element, index.operand(like),
                                         index.sizes, column, result)});
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

Work AttentionTile::emit() {
  Work work;
  double columns = index.attention.width + index.attention.valueWidth;
  double rows = std::min(schedule.own, schedule.width());
  double all = schedule.others * columns;
  work.items = index.attention.batches * schedule.tiles();
  kernel.forEachItem([&](Value item) { emitItem(item); });
  work.grain = grainFor(work.items, 2 * rows * all * (isForward ? 1 : 2),
                        elementBytes(index.element) * all);
  work.scratchBytes = kernel.scratch.bytes();
  return work;
}

void AttentionTile::emitItem(Value item) {
  int64_t tiles = schedule.tiles(), lanes = schedule.lanes;
  place = index.at(code, code.div(item, tiles));
  firstOwn = code.mul(code.rem(item, tiles), schedule.width());
  vectorCount = code.index(schedule.vectors);
  if (schedule.own % schedule.width() != 0) {
    Value rest = code.sub(code.index(schedule.own), firstOwn);
    vectorCount =
        code.min(code.div(code.add(rest, lanes - 1), lanes), vectorCount);
  }
  for (PackedOperand *operand : {&own, &others, &otherValues})
    operand->enter(place);
  for (std::optional<PackedOperand> *operand : {&ownValues, &lse, &delta})
    if (*operand)
      (*operand)->enter(place);

  Value zero = code.index(0);
  code.loop(zero, vectorCount, 1, [&](Value vector) { beginVector(vector); });
  Value begin = zero, end = code.index(schedule.others);
  if (index.causal && ownsKeys)
    begin = code.mul(code.div(firstOwn, schedule.block), schedule.block);
  else if (index.causal)
    end = code.min(code.add(firstOwn, schedule.width()), end);
  code.loop(begin, end, schedule.block, [&](Value from) { emitBlock(from); });
  code.loop(zero, vectorCount, 1, [&](Value vector) { finishVector(vector); });
}

void AttentionTile::beginVector(Value vector) {
  int64_t lanes = schedule.lanes;
  Value zero = code.index(0), one = code.index(1);
  Value first = code.add(firstOwn, code.mul(vector, lanes));
  Value columns = code.index(lanes);
  if (schedule.own % lanes != 0)
    columns = code.min(code.sub(code.index(schedule.own), first), columns);
  own.pack(code, ownMemory.at(vector), lanes, zero,
           code.index(index.sizes[index.d]), first, columns);
  if (ownValues)
    ownValues->pack(code, ownValueMemory.at(vector), lanes, zero,
                    code.index(index.sizes[index.e]), first, columns);
  if (isForward) {
    store(splat(-kInfinity), largest.at(vector), zero);
    store(splat(0), total.at(vector), zero);
  } else if (!ownsKeys) {
    lse->pack(code, largest.at(vector), lanes, zero, one, first, columns);
    delta->pack(code, total.at(vector), lanes, zero, one, first, columns);
  }
  for (const Sums &sums : results) {
    Value memory = sums.memory.at(vector);
    int64_t width = schedule.padded(index.sizes[sums.column]);
    code.loop(zero, code.index(lanes), 1, [&](Value row) {
      for (int64_t column = 0; column < width; column += lanes)
        code.store(splat(0), memory, {row, code.index(column)});
    });
  }
}

void AttentionTile::emitBlock(Value from) {
  int64_t lanes = schedule.lanes;
  Value zero = code.index(0), one = code.index(1);
  Value to = code.min(code.add(from, schedule.block), schedule.others);
  Rows rows{otherMemory.at(zero), from},
      values{otherValueMemory.at(zero), from};
  others.pack(code, rows.memref, lanes, from, to, zero,
              code.index(index.sizes[index.d]));
  otherValues.pack(code, values.memref, lanes, from, to, zero,
                   code.index(index.sizes[index.e]));
  if (ownsKeys) {
    Value count = code.sub(to, from);
    lse->pack(code, largest.at(zero), lanes, zero, one, from, count);
    if (delta)
      delta->pack(code, total.at(zero), lanes, zero, one, from, count);
  }
  code.loop(zero, vectorCount, 1, [&](Value vector) {
    Seen seen = seenBy(vector, from, to);
    auto emit = [&] {
      if (isForward)
        emitForward(vector, seen, rows, values);
      else
        emitGradient(vector, seen, rows, values);
    };
    if (index.causal)
      code.when(code.less(seen.low, seen.high), emit);
    else
      emit();
  });
}

void AttentionTile::finishVector(Value vector) {
  Value zero = code.index(0);
  if (isForward) {
    Value sum = load(total.at(vector), zero);
    finishRows(results[0], vector, div(splat(1), sum));
    if (kernel.isWanted(1))
      finishStatistic(vector,
                      add(mul(load(largest.at(vector), zero), splat(1 / unit)),
                          math::LogOp::create(code.b, code.loc, sum)));
    return;
  }
  for (const Sums &sums : results)
    finishRows(sums, vector, splat(sums.column == index.d ? index.scale : 1));
}

/// Stores the rows of a vector, each the sums times its lane of `factors`.
void AttentionTile::finishRows(const Sums &sums, Value vector, Value factors) {
  int64_t lanes = schedule.lanes, columns = index.sizes[sums.column];
  Value zero = code.index(0), memory = sums.memory.at(vector);
  Value lane = scores.at(zero);
  store(factors, lane, zero);
  forEachOwn(vector, [&](Value i, Value row) {
    Value factor = element(lane, zero, i);
    if (!sums.output) {
      code.loop(zero, code.index(columns), 1, [&](Value column) {
        Value x = arith::MulFOp::create(code.b, code.loc,
                                        element(memory, i, column), factor);
        kernel.finishResult(sums.result, index.resultAt(place, row, column), x);
      });
      return;
    }
    SmallVector<Value> at(place);
    at[ownsKeys ? index.s : index.t] = row;
    Value line = sums.output->at(code, at);
    factor = code.splat(factor, lanes);
    for (int64_t column = 0; column < columns; column += lanes) {
      Value x = mul(code.load(memory, {i, code.index(column)}, lanes), factor);
      if (index.element != type)
        x = arith::TruncFOp::create(code.b, code.loc,
                                    VectorType::get({lanes}, index.element), x);
      Value mask;
      if (columns - column < lanes)
        mask = code.firstLanes(code.index(columns - column), lanes);
      code.store(x, sums.output->memref, code.add(line, column), mask);
    }
  });
}

void AttentionTile::finishStatistic(Value vector, Value values) {
  Value zero = code.index(0), lane = scores.at(zero);
  store(values, lane, zero);
  forEachOwn(vector, [&](Value i, Value row) {
    kernel.finishResult(1, index.resultAt(place, row), element(lane, zero, i));
  });
}

/// Calls `body` with each lane of a vector and its own row.
void AttentionTile::forEachOwn(
    Value vector, llvm::function_ref<void(Value lane, Value row)> body) {
  Value first = code.add(firstOwn, code.mul(vector, schedule.lanes));
  Value count = code.index(schedule.lanes);
  if (schedule.own % schedule.lanes != 0)
    count = code.min(code.sub(code.index(schedule.own), first), count);
  code.loop(code.index(0), count, 1,
            [&](Value lane) { body(lane, code.add(first, lane)); });
}

//===----------------------------------------------------------------------===//
// A vector of own rows and a block of others
//===----------------------------------------------------------------------===//

AttentionTile::Seen AttentionTile::seenBy(Value vector, Value from, Value to) {
  Value first = code.add(firstOwn, code.mul(vector, schedule.lanes));
  if (!index.causal)
    return {first, from, to, to};
  // Tiles of registers begin at multiples of their rows.
  int64_t unit = schedule.scoreProduct().rows;
  Value end = code.add(first, schedule.lanes - 1);
  if (ownsKeys) {
    Value low = code.max(from, code.mul(code.div(first, unit), unit));
    return {first, low, to, code.max(low, code.min(end, to))};
  }
  Value high =
      code.min(code.mul(code.div(code.add(end, unit), unit), unit), to);
  return {first, from, high,
          code.max(from, code.min(code.add(first, 1), high))};
}

AttentionTile::Values AttentionTile::forEachRow(
    const Seen &seen, ValueRange init,
    llvm::function_ref<Values(Value, Hide, ValueRange)> body) {
  auto loop = [&](Value low, Value high, bool isHidden, ValueRange init) {
    return code.loop(low, high, 1, init, [&](Value row, ValueRange carried) {
      Value mask;
      auto hide = [&](Value x, double instead) {
        if (!isHidden)
          return x;
        Value other = splat(instead);
        // Of own queries the first lanes see less, of own keys the last.
        Value lanes = code.sub(row, seen.own);
        if (!mask)
          mask = code.firstLanes(ownsKeys ? code.add(lanes, 1) : lanes,
                                 schedule.lanes);
        return ownsKeys ? code.select(mask, x, other)
                        : code.select(mask, other, x);
      };
      return body(row, hide, carried);
    });
  };
  if (!index.causal)
    return loop(seen.low, seen.high, false, init);
  Values middle = loop(seen.low, seen.middle, ownsKeys, init);
  return loop(seen.middle, seen.high, !ownsKeys, middle);
}

void AttentionTile::emitForward(Value vector, const Seen &seen, Rows keys,
                                Rows values) {
  Value zero = code.index(0);
  Rows weights{scores.at(zero), keys.first};
  multiply(keys, ownMemory.at(vector), index.attention.width, seen, weights,
           index.scale * unit);
  Value before = load(largest.at(vector), zero);
  auto at = [&](Value row) { return code.sub(row, keys.first); };
  Value now =
      forEachRow(seen, before, [&](Value row, Hide hide, ValueRange carried) {
        Value x = load(weights.memref, at(row));
        return Values{larger(hide(x, -kInfinity), carried[0])};
      })[0];
  store(now, largest.at(vector), zero);
  // Where all scores are -infinity so far, the weights are 0.
  Value none = arith::CmpFOp::create(
      code.b, code.loc, arith::CmpFPredicate::OEQ, now, splat(-kInfinity));
  Value relative = code.select(none, splat(0), now);
  Value scale = weightOf(sub(before, relative));
  Value sum = mul(load(total.at(vector), zero), scale);
  sum = forEachRow(seen, sum, [&](Value row, Hide hide, ValueRange carried) {
    Value x = weightOf(sub(load(weights.memref, at(row)), relative));
    x = hide(x, 0);
    store(x, weights.memref, at(row));
    return Values{add(carried[0], x)};
  })[0];
  store(sum, total.at(vector), zero);
  store(scale, scales.at(zero), zero);
  accumulate(weights, values, seen, results[0], vector, scales.at(zero));
}

void AttentionTile::emitGradient(Value vector, const Seen &seen, Rows rows,
                                 Rows values) {
  Value zero = code.index(0);
  Rows weights{scores.at(zero), rows.first}, gradients;
  multiply(rows, ownMemory.at(vector), index.attention.width, seen, weights,
           index.scale * unit);
  if (needsProducts) {
    gradients = {products.at(zero), rows.first};
    multiply(values, ownValueMemory.at(vector), index.attention.valueWidth,
             seen, gradients, 1);
  }
  // Own queries have their statistics in lanes.
  Value lses = largest.at(ownsKeys ? zero : vector);
  Value deltas = total.at(ownsKeys ? zero : vector);
  auto statistic = [&](Value memory, Value at) {
    return ownsKeys ? code.splat(element(memory, zero, at), schedule.lanes)
                    : load(memory, zero);
  };
  forEachRow(seen, {}, [&](Value row, Hide hide, ValueRange) -> Values {
    Value at = code.sub(row, rows.first);
    Value lse = mul(statistic(lses, at), splat(unit));
    Value weight = hide(weightOf(sub(load(weights.memref, at), lse)), 0);
    if (ownsKeys)
      store(weight, weights.memref, at);
    if (needsProducts) {
      Value x = sub(load(gradients.memref, at), statistic(deltas, at));
      store(hide(mul(weight, x), 0), gradients.memref, at);
    }
    return {};
  });
  for (const Sums &sums : results)
    if (sums.column == index.d)
      accumulate(gradients, rows, seen, sums, vector);
    else
      accumulate(weights, values, seen, sums, vector);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void AttentionTile::multiply(Rows a, Value b, int64_t k, const Seen &seen,
                             Rows result, double factor) {
  Gemm gemm;
  gemm.M = schedule.others;
  gemm.N = schedule.lanes;
  gemm.K1 = k;
  gemm.type = type;
  gemm.a = [&](Code &, Value m, int64_t i, Value, Value k1, int64_t u) {
    return element(a.memref, code.add(code.sub(m, a.first), i),
                   code.add(k1, u));
  };
  gemm.b = [&](Code &, Value, Value k1, int64_t u, Value, int64_t, Value) {
    return load(b, code.add(k1, u));
  };
  gemm.store = [&](Code &, Value m, int64_t i, Value, Value x, Value) {
    store(factor == 1 ? x : mul(x, splat(factor)), result.memref,
          code.add(code.sub(m, result.first), i));
  };
  Value zero = code.index(0);
  emitGemmPart(code, gemm, schedule.scoreProduct(),
               {seen.low, seen.high, zero, zero, code.index(k)});
}

void AttentionTile::accumulate(Rows a, Rows b, const Seen &seen,
                               const Sums &sums, Value vector, Value scales) {
  Value memory = sums.memory.at(vector);
  int64_t lanes = schedule.lanes, columns = index.sizes[sums.column];
  Gemm gemm;
  gemm.M = lanes;
  gemm.N = schedule.padded(columns);
  gemm.K1 = schedule.others;
  gemm.type = type;
  gemm.a = [&](Code &, Value m, int64_t i, Value, Value k1, int64_t u) {
    return element(a.memref, code.add(code.sub(k1, a.first), u),
                   code.add(m, i));
  };
  gemm.b = [&](Code &, Value, Value k1, int64_t u, Value n, int64_t, Value) {
    return code.load(b.memref, {code.add(code.sub(k1, b.first), u), n}, lanes);
  };
  gemm.store = [&](Code &, Value m, int64_t i, Value n, Value x, Value) {
    Value row = code.add(m, i), before = code.load(memory, {row, n}, lanes);
    if (scales) {
      Value scale = element(scales, code.index(0), row);
      x = code.multiplyAdd(before, code.splat(scale, lanes), x);
    } else {
      x = add(before, x);
    }
    code.store(x, memory, {row, n});
  };
  GemmSchedule tiles = schedule.rowProduct(columns);
  code.loop(code.index(0), code.index(tiles.panels(gemm)), 1, [&](Value panel) {
    emitGemmPart(
        code, gemm, tiles,
        {code.index(0), code.index(lanes), panel, seen.low, seen.high});
  });
}

FailureOr<Work> cpu::emitAttention(AnchorKernel &kernel) {
  return AttentionTile(kernel).emit();
}
