//===- AttentionTileCode.cpp - what is computed of a step -----------------===//
#include "passes/lower/cuda/attention/AttentionTiles.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

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
  return start();
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
    decay(decays, rest);
    accumulate(sums[0], scores, step.b, rest);
    return carried;
  }
  // All sums after the last loop of products: those made before it would wait
  // for their end in registers, with all that they are made of.
  Values weights = weightsOf(step, scores), gradient;
  if (needsGradients)
    gradient = gradients(step, weights, products(/*ofB=*/true, step.b));
  for (const Sum &sum : sums) {
    size_t count = shape.blocks * sum.columns / 2;
    accumulate(sum, sum.ofB ? weights : gradient, sum.ofB ? step.b : step.a,
               rest.take_front(count));
    rest = rest.drop_front(count);
  }
  return carried;
}
