//===- AttentionWgmmaCode.cpp - what is computed of a step ----------------===//
#include "passes/lower/cuda/attention/AttentionWgmma.h"
#include "passes/lower/cuda/products/MmaCode.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

/// Of 16 k, in units of 16 bytes: along the neighbours of a factor, of which a
/// chunk has 64, and across them.
static constexpr int64_t alongStep = 2, acrossStep = 16 * tileRowBytes / 16;
static constexpr int64_t stepsOfChunk = 4;

void AttentionWgmma::compute() {
  Place first = firstPlace(0);
  Values init = {warpgroup.bits(0), first.stage, first.parity};
  if (isForward)
    init.append({first.stage, first.parity});
  forEachTile(init, [&](ValueRange carried) {
    Place a{carried[1], carried[2]}, b;
    if (isForward)
      b = {carried[3], carried[4]};
    auto [full, cut] = bounds();
    takeOwnRows(carried[0]);
    finish(isForward ? forward(full[1], cut[1], a, b)
                     : gradients(full, cut, a));
    Values next = {turned(carried[0]), a.stage, a.parity};
    if (isForward)
      next.append({b.stage, b.parity});
    return next;
  });
}

void AttentionWgmma::releaseOwnRows() {
  if (chain > 1)
    code.when(code.equal(code.lane(), code.index(0)),
              [&] { warpgroup.arrive(ownBarrier(/*isFull=*/false)); });
}

void AttentionWgmma::takeOwnRows(Value parity) {
  Value group = warpgroup.group();
  warpgroup.wait(ownBarrier(/*isFull=*/true), parity);
  for (bool ofB : {false, true})
    if (own_[ofB].rows) {
      Value rows =
          code.mul(warpgroup.word(group), warpgroupRows * tileRowBytes);
      ownDescriptors[ofB] =
          warpgroup.descriptor(code.add(code.add(base, own_[ofB].at), rows));
    }
}

Value AttentionWgmma::products(bool ofB, Value stage) {
  Value rows = warpgroup.descriptor(tileAt(ofB, stage));
  Value sums = warpgroup.noSums(shape.step);
  for (int64_t k = 0; k < widthOf(ofB) / 16; ++k) {
    auto at = [&](Value descriptor, int64_t rows) {
      int64_t chunk = k / stepsOfChunk * rows * tileRowBytes / 16;
      return code.add(descriptor, chunk + k % stepsOfChunk * alongStep);
    };
    sums =
        warpgroup.multiply(index.element, at(ownDescriptors[ofB], shape.rows()),
                           at(rows, shape.step), /*turned=*/false, sums,
                           /*adds=*/k > 0);
  }
  warpgroup.commit();
  return sums;
}

Value AttentionWgmma::accumulate(const Sum &sum, ValueRange factors,
                                 Value stage, Value sums) {
  Value rows =
      warpgroup.descriptor(tileAt(sum.ofB, stage), shape.step * tileRowBytes);
  for (int64_t k = 0; k < shape.step / 16; ++k)
    sums = warpgroup.multiply(index.element, factors.slice(4 * k, 4),
                              code.add(rows, k * acrossStep), /*turned=*/true,
                              sums);
  warpgroup.commit();
  return sums;
}

AttentionWgmma::Values AttentionWgmma::pack(const Values &scores) {
  MmaCode mma(code, index.element);
  Type word = code.b.getI32Type();
  Values packed;
  for (int64_t k = 0; k < shape.step / 16; ++k)
    for (int64_t i = 0; i < 4; ++i) {
      // The sums' registers are those of a left factor.
      size_t at = place(0, 2 * k + i / 2, 2 * (i % 2));
      Value pair = mma.pack(scores[at], scores[at + 1]);
      if (pair.getType() != word)
        pair = LLVM::BitcastOp::create(code.b, code.loc, word, pair);
      packed.push_back(pair);
    }
  return packed;
}

void AttentionWgmma::scaleAndMask(const Rows &rows, bool masked,
                                  Values &scores) {
  if (before != 1)
    for (Value &score : scores)
      score = mul(score, f32(before));
  if (masked)
    mask(rows, scores);
}

std::pair<AttentionWgmma::Values, AttentionWgmma::Values>
AttentionWgmma::waitAfter(const Values &made, int64_t groups, Value sums,
                          ValueRange factors) {
  Values all = warpgroup.numbersOf(sums);
  size_t count = all.size();
  llvm::append_range(all, made);
  llvm::append_range(all, factors);
  all = warpgroup.wait(groups, all);
  ArrayRef<Value> rest(all);
  return {Values(rest.take_front(count)),
          Values(rest.slice(count, made.size()))};
}

void AttentionWgmma::endBlock(const Place &b) {
  warpgroup.wait(barrier(/*ofB=*/true, /*isFull=*/true, b.stage), b.parity);
}

void AttentionWgmma::release(bool ofB, Value stage) {
  code.when(code.equal(code.lane(), code.index(0)),
            [&] { warpgroup.arrive(barrier(ofB, /*isFull=*/false, stage)); });
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

/// Carried: the largest scores, the sums of weights, the sums, the weights that
/// are still to be multiplied, and where in the rings the next scores' rows and
/// the rows for these weights are.
AttentionWgmma::Values AttentionWgmma::forwardStep(Value number, bool masked,
                                                   ValueRange carried) {
  size_t columns = sums[0].columns / 2, packed = shape.step / 4;
  Values values(carried.take_front(4));
  ValueRange rest = carried.drop_front(4);
  ValueRange registers = rest.take_front(columns + packed);
  rest = rest.drop_front(columns + packed);
  Place a{rest[0], rest[1]}, b{rest[2], rest[3]};
  warpgroup.wait(barrier(/*ofB=*/false, /*isFull=*/true, a.stage), a.parity);
  warpgroup.wait(barrier(/*ofB=*/true, /*isFull=*/true, b.stage), b.parity);
  Values before = warpgroup.fence(registers);
  Values weights(ArrayRef(before).drop_front(columns));
  Value scores = products(/*ofB=*/false, a.stage);
  Value sum =
      accumulate(sums[0], weights, b.stage,
                 warpgroup.sumsOf(ArrayRef(before).take_front(columns)));
  Values next = warpgroup.wait(1, warpgroup.numbersOf(scores));
  release(/*ofB=*/false, a.stage);
  scaleAndMask(rowsOf(number, a.stage), masked, next);
  Values decays = softmax(next, values);
  // The factors' registers are read until then, and the exponentials are made
  // meanwhile.
  endBlock(b);
  auto [summed, made] = waitAfter(next, 0, sum, weights);
  release(/*ofB=*/true, b.stage);
  decay(decays, summed);
  llvm::append_range(values, summed);
  llvm::append_range(values, pack(made));
  Place nextA = after(a), nextB = after(b);
  values.append({nextA.stage, nextA.parity, nextB.stage, nextB.parity});
  return values;
}

AttentionWgmma::Values AttentionWgmma::forward(Value full, Value end, Place &a,
                                               Place &b) {
  size_t columns = sums[0].columns / 2;
  Values carried = start();
  Value last = code.add(end, -1);

  // The last step, which has all there is to mask, or the first of it.
  warpgroup.wait(barrier(/*ofB=*/false, /*isFull=*/true, a.stage), a.parity);
  warpgroup.fence({});
  Values scores =
      warpgroup.wait(0, warpgroup.numbersOf(products(/*ofB=*/false, a.stage)));
  release(/*ofB=*/false, a.stage);
  scaleAndMask(rowsOf(last, a.stage), index.causal || otherRows % shape.step,
               scores);
  Values largest(ArrayRef(carried).take_front(4));
  softmax(scores, largest);
  llvm::copy(largest, carried.begin());
  llvm::append_range(carried, pack(scores));
  a = after(a);
  carried.append({a.stage, a.parity, b.stage, b.parity});

  // The others from behind.
  full = code.min(full, last);
  if (index.causal && shape.rows() > shape.step)
    carried =
        code.loop(full, last, 1, carried, [&](Value at, ValueRange values) {
          Value number = code.sub(code.add(full, code.add(last, -1)), at);
          return forwardStep(number, /*masked=*/true, values);
        });
  carried = code.loop(code.index(0), full, 1, carried,
                      [&](Value at, ValueRange values) {
                        Value number = code.sub(code.add(full, -1), at);
                        return forwardStep(number, /*masked=*/false, values);
                      });

  // The weights of step 0.
  size_t packed = shape.step / 4;
  ArrayRef<Value> all(carried);
  ArrayRef<Value> places = all.drop_front(4 + columns + packed);
  a = {places[0], places[1]};
  b = {places[2], places[3]};
  releaseOwnRows();
  warpgroup.wait(barrier(/*ofB=*/true, /*isFull=*/true, b.stage), b.parity);
  Values registers = warpgroup.fence(all.slice(4, columns + packed));
  ArrayRef<Value> weights = ArrayRef(registers).drop_front(columns);
  Value sum =
      accumulate(sums[0], weights, b.stage,
                 warpgroup.sumsOf(ArrayRef(registers).take_front(columns)));
  Values summed = warpgroup.numbersOf(sum);
  llvm::append_range(summed, weights);
  summed = warpgroup.wait(0, summed);
  release(/*ofB=*/true, b.stage);
  b = after(b);
  Values results(all.take_front(4));
  results.append(summed.begin(), summed.begin() + columns);
  return results;
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// Carried: the sums, and the place in both rings.
AttentionWgmma::Values AttentionWgmma::gradientStep(Value number, bool masked,
                                                    ValueRange carried) {
  Place at{carried[carried.size() - 2], carried.back()};
  Rows rows = rowsOf(number, at.stage);
  for (bool ofB : {false, true})
    warpgroup.wait(barrier(ofB, /*isFull=*/true, at.stage), at.parity);
  warpgroup.fence({});
  Value scores = products(/*ofB=*/false, at.stage), slopes;
  if (needsGradients)
    slopes = products(/*ofB=*/true, at.stage);
  Values weights =
      warpgroup.wait(needsGradients ? 1 : 0, warpgroup.numbersOf(scores));
  scaleAndMask(rows, masked, weights);
  weights = weightsOf(rows, weights);

  // Sums of B first, whose factors are there: gradients are computed meanwhile.
  Values registers;
  ValueRange rest = carried;
  int64_t groups = 0;
  for (const Sum &sum : sums) {
    size_t columns = sum.columns / 2;
    Values factors = weights;
    if (!sum.ofB) {
      endBlock(at);
      auto [products, made] = waitAfter(weights, groups, slopes);
      factors = AttentionScores::gradients(rows, made, products);
    }
    Values own(rest.take_front(columns));
    rest = rest.drop_front(columns);
    llvm::append_range(own, pack(factors));
    own = warpgroup.fence(own);
    ArrayRef<Value> packed = ArrayRef(own).drop_front(columns);
    Value next =
        accumulate(sum, packed, at.stage,
                   warpgroup.sumsOf(ArrayRef(own).take_front(columns)));
    llvm::append_range(registers, warpgroup.numbersOf(next));
    llvm::append_range(registers, packed);
    ++groups;
  }
  // The factors' registers are read until then.
  registers = warpgroup.wait(0, registers);
  for (bool ofB : {false, true})
    release(ofB, at.stage);
  Values results;
  ArrayRef<Value> left(registers);
  for (const Sum &sum : sums) {
    llvm::append_range(results, left.take_front(sum.columns / 2));
    left = left.drop_front(sum.columns / 2 + shape.step / 4);
  }
  Place next = after(at);
  results.append({next.stage, next.parity});
  return results;
}

AttentionWgmma::Values AttentionWgmma::gradients(const Values &full,
                                                 const Values &cut, Place &at) {
  Values carried = start();
  carried.append({at.stage, at.parity});
  auto walk = [&](const Values &steps, bool masked) {
    carried = code.loop(steps[0], steps[1], 1, carried,
                        [&](Value number, ValueRange values) {
                          return gradientStep(number, masked, values);
                        });
  };
  if (byKey)
    walk(cut, /*masked=*/true);
  walk(full, /*masked=*/false);
  if (!byKey)
    walk(cut, /*masked=*/true);
  releaseOwnRows();
  at = {carried[carried.size() - 2], carried.back()};
  carried.pop_back_n(2);
  return carried;
}
