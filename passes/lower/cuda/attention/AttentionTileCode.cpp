//===- AttentionTileCode.cpp - what is computed of a step -----------------===//
#include "passes/lower/cuda/attention/AttentionTiles.h"

#include "ir/ops/Scalar.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <limits>
#include <numbers>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

AttentionTiles::Value AttentionTiles::add(Value x, Value y) {
  return scalar::add(code.b, code.loc, x, y);
}
AttentionTiles::Value AttentionTiles::sub(Value x, Value y) {
  return scalar::sub(code.b, code.loc, x, y);
}
AttentionTiles::Value AttentionTiles::mul(Value x, Value y) {
  return scalar::mul(code.b, code.loc, x, y);
}

/// The instruction: its relative error is at most 2^-22, small beside that of
/// the weights, which are rounded to 16 bits.
AttentionTiles::Value AttentionTiles::exp2(Value x) {
  return LLVM::CallIntrinsicOp::create(
             code.b, code.loc, x.getType(),
             code.b.getStringAttr("llvm.nvvm.ex2.approx.ftz"), ValueRange{x})
      .getResults();
}

AttentionTiles::Value AttentionTiles::ownRow(int64_t block, int64_t half) {
  Value group = code.div(code.lane(), 4);
  Value first = code.add(ownFirst, code.mul(code.warp(), 16 * shape.blocks));
  return code.add(code.add(first, group), 16 * block + 8 * half);
}

//===----------------------------------------------------------------------===//
// Before and after the walk
//===----------------------------------------------------------------------===//

/// The registers at the beginning: of the forward the largest score and the sum
/// of weights of each own row, then the sums.
AttentionTiles::Values AttentionTiles::initial() {
  // Own rows stay in registers where they are few.
  constexpr int64_t fewRegisters = 32;
  int64_t registers =
      shape.blocks * (widthA + (needsGradients ? widthB : 0)) / 4;
  if (registers <= fewRegisters && !index.element.isF32()) {
    waitForCopies(code, 1);
    code.barrier();
    for (bool ofB : {false, true}) {
      if (ofB && !needsGradients)
        continue;
      Values all;
      for (int64_t block = 0; block < shape.blocks; ++block)
        for (int64_t k = 0; k < widthOf(ofB) / 16; ++k)
          llvm::append_range(all, left(ofB, block, k));
      kept[ofB] = all;
    }
  }
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

void AttentionTiles::finish(Values results) {
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

void AttentionTiles::storeSums(const Sum &sum, ArrayRef<Value> values) {
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

AttentionTiles::Values AttentionTiles::left(bool ofB, int64_t block,
                                            int64_t k) {
  if (!kept[ofB].empty()) {
    size_t at = (block * (widthOf(ofB) / 16) + k) * 4;
    return Values(ArrayRef(kept[ofB]).slice(at, 4));
  }
  Value row = code.add(code.mul(code.warp(), 16 * shape.blocks), 16 * block);
  return mma.loadLeft(ofB ? ownB : ownA, row, code.index(16 * k));
}

/// The products of the own rows, A or B, with the rows of a step.
AttentionTiles::Values AttentionTiles::products(bool ofB, const Matrix &rows) {
  if (index.element.isF32())
    return productsByThreads(ofB, rows);
  Values results(shape.blocks * shape.step / 2, f32(0));
  for (int64_t k = 0; k < widthOf(ofB) / 16; ++k) {
    SmallVector<Values, 2> lefts;
    for (int64_t block = 0; block < shape.blocks; ++block)
      lefts.push_back(left(ofB, block, k));
    for (int64_t column = 0; column < shape.step / 8; column += 2) {
      Values right = mma.loadRightTransposed(rows, code.index(8 * column),
                                             code.index(16 * k));
      for (int64_t block = 0; block < shape.blocks; ++block)
        for (int64_t c = 0; c < 2; ++c) {
          auto sums =
              MutableArrayRef(results).slice(place(block, column + c, 0), 4);
          Values next = mma.multiplyAdd(
              lefts[block], ArrayRef(right).slice(2 * c, 2), Values(sums));
          llvm::copy(next, sums.begin());
        }
    }
  }
  return results;
}

/// Adds the products of `weights`, whose columns are the rows of a step, with
/// these rows.
void AttentionTiles::accumulate(const Sum &sum, const Values &weights,
                                const Matrix &rows,
                                MutableArrayRef<Value> sums) {
  if (index.element.isF32())
    return accumulateByThreads(sum, weights, rows, sums);
  Value first = code.mul(part, sum.columns);
  for (int64_t k = 0; k < shape.step / 16; ++k) {
    SmallVector<Values, 2> lefts;
    for (int64_t block = 0; block < shape.blocks; ++block) {
      // The sums' registers are those of a left matrix.
      Values left;
      for (int64_t i = 0; i < 4; ++i) {
        size_t at = place(block, 2 * k + i / 2, 2 * (i % 2));
        left.push_back(mma.pack(weights[at], weights[at + 1]));
      }
      lefts.push_back(left);
    }
    for (int64_t column = 0; column < sum.columns / 8; column += 2) {
      Values right =
          mma.loadRight(rows, code.index(16 * k), code.add(first, 8 * column));
      for (int64_t block = 0; block < shape.blocks; ++block)
        for (int64_t c = 0; c < 2; ++c) {
          auto at = sums.slice(block * sum.columns / 2 + (column + c) * 4, 4);
          Values next = mma.multiplyAdd(
              lefts[block], ArrayRef(right).slice(2 * c, 2), Values(at));
          llvm::copy(next, at.begin());
        }
    }
  }
}

AttentionTiles::Values AttentionTiles::productsByThreads(bool ofB,
                                                         const Matrix &rows) {
  constexpr int64_t atOnce = 4;
  const Matrix &mine = ofB ? ownB : ownA;
  Value own = code.sub(ownRow(0, 0), ownFirst);
  Value pair = code.mul(code.rem(code.lane(), 4), 2);
  auto load = [&](const Matrix &matrix, Value row, Value column) {
    Value all = code.load(matrix.memory, matrix.at(code, row, column), atOnce);
    Values elements;
    for (int64_t i = 0; i < atOnce; ++i)
      elements.push_back(vector::ExtractOp::create(code.b, code.loc, all, i));
    return elements;
  };
  return code.loop(
      code.index(0), code.index(widthOf(ofB)), atOnce,
      Values(shape.blocks * shape.step / 2, f32(0)),
      [&](Value k, ValueRange before) {
        Values results(before);
        SmallVector<Values, 4> lefts;
        for (int64_t r = 0; r < 2 * shape.blocks; ++r)
          lefts.push_back(
              load(mine, code.add(own, 16 * (r / 2) + 8 * (r % 2)), k));
        for (int64_t column = 0; column < shape.step / 8; ++column)
          for (int64_t j = 0; j < 2; ++j) {
            Values right = load(rows, code.add(pair, 8 * column + j), k);
            for (int64_t r = 0; r < 2 * shape.blocks; ++r) {
              Value &sum = results[place(r / 2, column, 2 * (r % 2) + j)];
              for (int64_t i = 0; i < atOnce; ++i)
                sum = code.multiplyAdd(lefts[r][i], right[i], sum);
            }
          }
        return results;
      });
}

void AttentionTiles::accumulateByThreads(const Sum &sum, const Values &weights,
                                         const Matrix &rows,
                                         MutableArrayRef<Value> sums) {
  Value pair = code.mul(code.rem(code.lane(), 4), 2);
  Value first = code.add(code.mul(part, sum.columns), pair);
  Value group = code.mul(code.div(code.lane(), 4), 4);
  for (int64_t k = 0; k < shape.step; ++k) {
    // The weights of this thread's rows, from the thread that has them.
    Values mine;
    for (int64_t r = 0; r < 2 * shape.blocks; ++r)
      mine.push_back(
          code.shuffleFrom(weights[place(r / 2, k / 8, 2 * (r % 2) + k % 2)],
                           code.add(group, k % 8 / 2)));
    for (int64_t column = 0; column < sum.columns / 8; ++column) {
      Value both = code.load(
          rows.memory,
          rows.at(code, code.index(k), code.add(first, 8 * column)), 2);
      for (int64_t j = 0; j < 2; ++j) {
        Value right = vector::ExtractOp::create(code.b, code.loc, both, j);
        for (int64_t r = 0; r < 2 * shape.blocks; ++r) {
          Value &x =
              sums[(r / 2) * sum.columns / 2 + column * 4 + 2 * (r % 2) + j];
          x = code.multiplyAdd(mine[r], right, x);
        }
      }
    }
  }
}

/// Scores that are not seen, or of rows that are not there, are -infinity.
void AttentionTiles::mask(const Step &step, Values &scores) {
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
  Value first = code.add(step.first, code.mul(code.rem(code.lane(), 4), 2));
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
AttentionTiles::Values AttentionTiles::softmax(Values &scores,
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

AttentionTiles::Value AttentionTiles::perOther(Value memory, const Step &step,
                                               int64_t column) {
  Value at = code.add(step.rowsAt, code.mul(code.rem(code.lane(), 4), 2));
  return memref::LoadOp::create(code.b, code.loc, memory,
                                ValueRange{code.add(at, column)});
}

/// exp(scores - lse)
AttentionTiles::Values AttentionTiles::weightsOf(const Step &step,
                                                 const Values &scores) {
  Values weights(scores);
  for (int64_t column = 0; column < shape.step / 8; ++column)
    for (int64_t j = 0; j < 2; ++j) {
      Value shift;
      if (byKey)
        shift = mul(perOther(step.lse, step, 8 * column + j),
                    f32(-std::numbers::log2e));
      for (int64_t r = 0; r < 2 * shape.blocks; ++r) {
        Value &x = weights[place(r / 2, column, 2 * (r % 2) + j)];
        x = exp2(code.multiplyAdd(x, f32(factor), byKey ? shift : ownLse[r]));
      }
    }
  return weights;
}

/// weights * (dy v^T - delta)
AttentionTiles::Values AttentionTiles::gradients(const Step &step,
                                                 const Values &weights) {
  Values results = products(/*ofB=*/true, step.b);
  for (int64_t column = 0; column < shape.step / 8; ++column)
    for (int64_t j = 0; j < 2; ++j) {
      Value delta;
      if (byKey)
        delta = perOther(step.delta, step, 8 * column + j);
      for (int64_t r = 0; r < 2 * shape.blocks; ++r) {
        size_t at = place(r / 2, column, 2 * (r % 2) + j);
        results[at] =
            mul(weights[at], sub(results[at], byKey ? delta : ownDelta[r]));
      }
    }
  return results;
}

AttentionTiles::Values AttentionTiles::compute(const Step &step, bool masked,
                                               Values carried) {
  Values scores = products(/*ofB=*/false, step.a);
  if (before != 1)
    for (Value &score : scores)
      score = mul(score, f32(before));
  if (masked)
    mask(step, scores);
  MutableArrayRef<Value> rest(carried);
  if (isForward) {
    Values decays = softmax(scores, carried);
    rest = rest.drop_front(4 * shape.blocks);
    for (auto [i, x] : llvm::enumerate(rest)) {
      size_t block = i / (sums[0].columns / 2), half = i % 4 / 2;
      x = mul(x, decays[2 * block + half]);
    }
    accumulate(sums[0], scores, step.b, rest);
    return carried;
  }
  // All sums after the last loop of products: those made before it would wait
  // for their end in registers, with all that they are made of.
  Values weights = weightsOf(step, scores), gradient;
  if (needsGradients)
    gradient = gradients(step, weights);
  for (const Sum &sum : sums) {
    size_t count = shape.blocks * sum.columns / 2;
    accumulate(sum, sum.ofB ? weights : gradient, sum.ofB ? step.b : step.a,
               rest.take_front(count));
    rest = rest.drop_front(count);
  }
  return carried;
}
