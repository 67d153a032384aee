//===- AttentionItem.cpp - what an item of attention consists of ----------===//
#include "passes/lower/cpu/attention/AttentionItem.h"
#include "passes/lower/common/FloatCode.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

static constexpr double kLog2E = 1.4426950408889634;

AttentionItem::AttentionItem(AnchorKernel &kernel, bool ownsKeys)
    : kernel(kernel), code(kernel.code), index(kernel.anchor),
      ownsKeys(ownsKeys),
      // The companion sums over tiles of own rows.
      schedule(index, kernel.target, ownsKeys,
               kernel.companion
                   ? 0
                   : ScheduleOverride::of(kernel.kernel)[ScheduleKey::Vectors]),
      type(index.compute), unit(type.isF32() ? kLog2E : 1) {}

//===----------------------------------------------------------------------===//
// Tiles and blocks
//===----------------------------------------------------------------------===//

void AttentionItem::enterTile(Value first) {
  firstOwn = first;
  ownCount = code.index(schedule.width());
  vectorCount = code.index(schedule.vectors);
  if (schedule.own % schedule.width() == 0)
    return;
  ownCount = code.min(code.sub(code.index(schedule.own), first), ownCount);
  vectorCount =
      code.div(code.add(ownCount, schedule.lanes - 1), schedule.lanes);
}

void AttentionItem::forEachBlock(
    llvm::function_ref<void(const Block &block)> body) {
  Value begin = code.index(0), end = code.index(schedule.others);
  // Keys that nobody sees have a block too, with no rows: their sums are 0.
  int64_t last = std::max<int64_t>(schedule.others - 1, 0);
  if (index.causal && ownsKeys)
    begin = roundedDown(code.min(firstOwn, last), schedule.block);
  else if (index.causal)
    end = code.min(code.add(firstOwn, schedule.width()), end);
  code.loop(begin, end, schedule.block, [&](Value from) {
    body({from, code.min(code.add(from, schedule.block), schedule.others),
          code.equal(from, begin)});
  });
}

void AttentionItem::forEachPanel(
    llvm::function_ref<void(Value first, int64_t vectors)> body) const {
  schedule.forEachPanel(code, schedule.vectors, vectorCount, body);
}

AttentionItem::Seen AttentionItem::seenBy(Value vector,
                                          const Block &block) const {
  Value first = firstOf(vector);
  if (!index.causal)
    return {first, block.from, block.to, block.to};
  auto inside = [&](Value x) {
    return code.max(block.from, code.min(x, block.to));
  };
  if (ownsKeys)
    return {first, inside(roundedDown(first, schedule.step())), block.to,
            inside(code.add(first, schedule.lanes - 1))};
  return {first, block.from, inside(code.add(first, schedule.lanes)),
          inside(code.add(first, 1))};
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void AttentionItem::forEachTile(
    Value low, Value high, int64_t rows,
    llvm::function_ref<void(Value row, int64_t rows)> body) {
  int64_t rest = schedule.others % rows;
  code.loop(low, high, rows, [&](Value row) {
    if (rest == 0)
      return body(row, rows);
    code.when(
        code.less(row, code.index(schedule.others - rows + 1)),
        [&] { body(row, rows); }, [&] { body(row, rest); });
  });
}

void AttentionItem::multiplyRows(const TileProduct &product,
                                 const Matrix &result, Value firstVector,
                                 int64_t vectors, Value low, Value high,
                                 Value from) {
  int64_t lanes = schedule.lanes;
  Value column = code.mul(firstVector, lanes);
  int64_t most =
      2 * vectors <= schedule.across ? schedule.step() : schedule.rows;
  forEachTile(low, high, most, [&](Value m, int64_t rows) {
    Value row = code.sub(m, from);
    Values sums = product.emit(code, row, rows, column, vectors, lanes);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t v = 0; v < vectors; ++v)
        store(sums[i * vectors + v], result, code.add(row, i),
              code.add(column, v * lanes));
  });
}

void AttentionItem::multiply(const Matrix &a, const Matrix &b, int64_t k,
                             const Matrix &result, Value firstVector,
                             int64_t vectors, const Block &block) {
  TileProduct product{a,   b, /*isTurned=*/false, code.index(0), code.index(k),
                      type};
  auto emit = [&](Value first, int64_t count, Value low, Value high) {
    multiplyRows(product, result, first, count, low, high, block.from);
  };
  if (!index.causal)
    return emit(firstVector, vectors, block.from, block.to);
  // The diagonal goes by vectors: own queries leave, own keys join.
  int64_t step = schedule.step();
  auto inside = [&](Value x) {
    return code.max(block.from, code.min(x, block.to));
  };
  auto firstOfNumber = [&](int64_t i) {
    return firstOf(code.add(firstVector, i));
  };
  if (ownsKeys) {
    Value low = inside(roundedDown(firstOfNumber(0), step));
    for (int64_t i = 0; i < vectors; ++i) {
      Value high = i + 1 == vectors
                       ? block.to
                       : inside(roundedDown(firstOfNumber(i + 1), step));
      emit(firstVector, i + 1, low, high);
      low = high;
    }
    return;
  }
  Value low = block.from;
  for (int64_t i = 0; i < vectors; ++i) {
    Value end = code.add(firstOfNumber(i + 1), step - 1);
    Value high = inside(roundedDown(end, step));
    emit(code.add(firstVector, i), vectors - i, low, high);
    low = high;
  }
}

void AttentionItem::addToOwn(const Matrix &scores, const Matrix &b,
                             int64_t columns, const Matrix &sums,
                             const Block &block, const Matrix *scales) {
  int64_t lanes = schedule.lanes, rows = std::min(schedule.rows, lanes);
  Value zero = code.index(0);
  int64_t count = schedule.padded(columns) / lanes;
  auto emitTile = [&](const TileProduct &product, Value row, Value first,
                      int64_t vectors) {
    Value column = code.mul(first, lanes);
    Values made = product.emit(code, row, rows, column, vectors, lanes);
    auto put = [&](bool isFirst) {
      for (int64_t i = 0; i < rows; ++i) {
        Value at = code.add(row, i), scale;
        if (scales && !isFirst)
          scale = code.splat(element(*scales, zero, at), lanes);
        for (int64_t v = 0; v < vectors; ++v) {
          Value to = code.add(column, v * lanes), x = made[i * vectors + v];
          if (!isFirst) {
            Value before = load(sums, at, to);
            x = scale ? code.multiplyAdd(before, scale, x) : add(before, x);
          }
          store(x, sums, at, to);
        }
      }
    };
    code.when(
        block.isFirst, [&] { put(true); }, [&] { put(false); });
  };
  schedule.forEachPanel(code, count, {}, [&](Value first, int64_t vectors) {
    code.loop(zero, vectorCount, 1, [&](Value vector) {
      Seen seen = seenBy(vector, block);
      TileProduct product{scores,
                          b,
                          /*isTurned=*/true,
                          code.sub(seen.low, block.from),
                          code.sub(seen.high, block.from),
                          type};
      Value row = code.mul(vector, lanes);
      code.loop(row, code.add(row, lanes), rows,
                [&](Value row) { emitTile(product, row, first, vectors); });
    });
  });
}

void AttentionItem::addToOthers(const Matrix &scores, const Matrix &b,
                                int64_t columns, const Matrix &sums,
                                const Block &block) {
  assert(ownsKeys && "own keys are seen by the others from them on");
  int64_t lanes = schedule.lanes;
  Value zero = code.index(0), low = block.from;
  if (index.causal)
    low =
        code.max(low, code.min(roundedDown(firstOwn, schedule.rows), block.to));
  auto emitTile = [&](Value m, int64_t rows, Value column, int64_t vectors) {
    Value end = ownCount;
    if (index.causal) {
      // The vectors of own keys that the tile's last row sees.
      Value last = code.sub(code.add(m, schedule.rows - 1), firstOwn);
      end = code.min(code.add(roundedDown(last, lanes), lanes), end);
    }
    TileProduct product{scores, b, /*isTurned=*/false, zero, end, type};
    Values made = product.emit(code, code.sub(m, block.from), rows, column,
                               vectors, lanes);
    auto put = [&](bool isFirst) {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t v = 0; v < vectors; ++v) {
          Value row = code.add(m, i), to = code.add(column, v * lanes);
          Value x = made[i * vectors + v];
          store(isFirst ? x : add(load(sums, row, to), x), sums, row, to);
        }
    };
    code.when(
        code.equal(firstOwn, zero), [&] { put(true); }, [&] { put(false); });
  };
  int64_t count = schedule.padded(columns) / lanes;
  schedule.forEachPanel(code, count, {}, [&](Value first, int64_t vectors) {
    forEachTile(low, block.to, schedule.rows, [&](Value m, int64_t rows) {
      emitTile(m, rows, code.mul(first, lanes), vectors);
    });
  });
}

//===----------------------------------------------------------------------===//
// Rows of scores
//===----------------------------------------------------------------------===//

AttentionItem::Values AttentionItem::forEachHidden(const Seen &seen, Value low,
                                                   Value high,
                                                   const Block &block,
                                                   ValueRange init,
                                                   RoundBody body) {
  return code.loop(low, high, 1, init, [&](Value row, ValueRange in) {
    // Of own queries the first lanes see less, of own keys the last.
    Value lanes = code.sub(row, seen.own);
    Value mask =
        code.firstLanes(ownsKeys ? code.add(lanes, 1) : lanes, schedule.lanes);
    auto hide = [&](Value x, double instead) {
      Value other = splat(instead);
      return ownsKeys ? code.select(mask, x, other)
                      : code.select(mask, other, x);
    };
    return body(code.sub(row, block.from), hide, in);
  });
}

static Value plain(Value x, double) { return x; }

Value AttentionItem::forEachRow(
    const Seen &seen, const Block &block, Value init,
    llvm::function_ref<Value(Value, Hide, Value)> body,
    llvm::function_ref<Value(Value, Value)> join) {
  // Rows that do not wait for each other.
  constexpr int64_t rounds = 4;
  auto one = [&](Value row, Hide hide, ValueRange in) {
    return Values{body(row, hide, in[0])};
  };
  auto whole = [&](Value low, Value high, ValueRange init) {
    Value even = code.add(low, roundedDown(code.sub(high, low), rounds));
    Values several(rounds, init[0]);
    several =
        code.loop(low, even, rounds, several, [&](Value row, ValueRange in) {
          Values out;
          for (int64_t u = 0; u < rounds; ++u)
            out.push_back(
                body(code.add(code.sub(row, block.from), u), plain, in[u]));
          return out;
        });
    Value joined =
        join(join(several[0], several[1]), join(several[2], several[3]));
    return code.loop(even, high, 1, joined, [&](Value row, ValueRange in) {
      return one(code.sub(row, block.from), plain, in);
    });
  };
  if (!index.causal)
    return whole(seen.low, seen.high, init)[0];
  if (ownsKeys) {
    Values hidden =
        forEachHidden(seen, seen.low, seen.middle, block, init, one);
    return whole(seen.middle, seen.high, hidden)[0];
  }
  Values plainly = whole(seen.low, seen.middle, init);
  return forEachHidden(seen, seen.middle, seen.high, block, plainly, one)[0];
}

void AttentionItem::forEachRow(
    const Seen &seen, const Block &block,
    llvm::function_ref<void(Value row, Hide hidden)> body) {
  auto whole = [&](Value low, Value high) {
    code.loop(low, high, 1,
              [&](Value row) { body(code.sub(row, block.from), plain); });
  };
  auto hidden = [&](Value low, Value high) {
    forEachHidden(seen, low, high, block, {},
                  [&](Value row, Hide hide, ValueRange) -> Values {
                    body(row, hide);
                    return {};
                  });
  };
  if (!index.causal)
    return whole(seen.low, seen.high);
  if (ownsKeys) {
    hidden(seen.low, seen.middle);
    return whole(seen.middle, seen.high);
  }
  whole(seen.low, seen.middle);
  hidden(seen.middle, seen.high);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

AttentionItem::Result AttentionItem::resultLike(unsigned number, Number like,
                                                unsigned along,
                                                unsigned column) {
  return {number, along, column,
          kernel.directOutput(index.element, index.operand(like), index.sizes,
                              column, number)};
}

void AttentionItem::finishRows(const Result &result, const Matrix &sums,
                               Value first, Value count,
                               llvm::function_ref<Value(Value row)> factor) {
  int64_t lanes = schedule.lanes, columns = index.sizes[result.column];
  Value zero = code.index(0);
  code.loop(zero, count, 1, [&](Value i) {
    Value row = code.add(first, i), scale = factor(i);
    if (!result.output) {
      code.loop(zero, code.index(columns), 1, [&](Value column) {
        Value x = arith::MulFOp::create(code.b, code.loc,
                                        element(sums, i, column), scale);
        kernel.finishResult(result.number, index.resultAt(place, row, column),
                            x);
      });
      return;
    }
    SmallVector<Value> at(place);
    at[result.along] = row;
    Value line = result.output->at(code, at);
    Value factors = code.splat(scale, lanes);
    for (int64_t column = 0; column < columns; column += lanes) {
      Value x = mul(load(sums, i, code.index(column)), factors);
      if (index.element != type)
        x = arith::TruncFOp::create(code.b, code.loc,
                                    VectorType::get({lanes}, index.element), x);
      Value mask;
      if (columns - column < lanes)
        mask = code.firstLanes(code.index(columns - column), lanes);
      code.store(x, result.output->memref, code.add(line, column), mask);
    }
  });
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// 2^x = 2^k 2^r with x = k + r and |r| <= 1/2; 2^r is a polynomial of least
/// relative error (9e-8) among those that are 1 at 0. A weight less than 2^-100
/// becomes that: next to the greatest, which is 1, it is nothing.
Value AttentionItem::weightOf(Value x) const {
  if (!type.isF32())
    return math::ExpOp::create(code.b, code.loc, x);
  using P = arith::CmpFPredicate;
  FloatCode w(code.b, code.loc, x.getType());
  Value least = w.number(-100);
  x = w.select(P::OLT, x, least, least, x);
  // Added to 1.5 * 2^23, x is rounded to an integer, in the last bits.
  Value shifted = w.addFloat(x, w.number(0x1.8p23));
  Value r = w.subFloat(x, w.subFloat(shifted, w.number(0x1.8p23)));
  Value p = w.number(1.3264727e-3);
  for (double c : {9.6715127e-3, 5.5507337e-2, 2.4022242e-1, 6.9314698e-1, 1.0})
    p = w.fma(p, r, w.number(c));
  return w.ofBits(w.add(w.bitsOf(p), w.left(w.bitsOf(shifted), 23)));
}

int64_t AttentionItem::grainOf(int64_t products, int64_t items) const {
  double rows = std::min(schedule.own, schedule.width());
  double all = static_cast<double>(schedule.others) *
               (index.attention.width + index.attention.valueWidth);
  return grainFor(items, products * rows * all,
                  elementBytes(index.element) * all);
}
