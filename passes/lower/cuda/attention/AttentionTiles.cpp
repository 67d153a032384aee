//===- AttentionTiles.cpp - which tiles, and how they get to memory -------===//
#include "passes/lower/cuda/attention/AttentionTiles.h"
#include "passes/target/CudaModel.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

static int64_t ceilDiv(int64_t x, int64_t y) { return (x + y - 1) / y; }
static int64_t roundUp(int64_t x, int64_t y) { return ceilDiv(x, y) * y; }

/// Registers of a thread that the sums may have, and the sums and scores
/// together; the others are for addresses and what is on the way. Where threads
/// multiply, more is on the way.
static constexpr int64_t kSums = 128, kRegisters = 168;
static constexpr int64_t kSumsByThreads = 64, kRegistersByThreads = 144;

AttentionTiles::AttentionTiles(AnchorKernel &kernel, ThreadCode &code)
    : AttentionScores(kernel, code), mma(code, index.element) {
  divideSums();
  chooseShape();
}

Fit AttentionTiles::fit(const AttentionIndex &index, const CudaTarget &target) {
  const AttentionSizes &sizes = index.attention;
  // Distances of rows are compared in 32 bits.
  constexpr int64_t mostRows = int64_t(1) << 30, mostColumns = 256;
  if (index.element.getIntOrFloatBitWidth() > 32)
    return Fit::impossible("expected elements of at most 32 bits but got " +
                           textOf(index.element));
  if (target.sm < 80)
    return Fit::impossible("expected a target of at least sm_80 but got sm_" +
                           Twine(target.sm));
  if (int64_t rows = std::max(sizes.queries, sizes.keys); rows > mostRows)
    return Fit::impossible("expected at most " + Twine(mostRows) +
                           " rows but got " + Twine(rows));
  if (int64_t columns = std::max(sizes.width, sizes.valueWidth);
      columns > mostColumns)
    return Fit::impossible("expected at most " + Twine(mostColumns) +
                           " columns but got " + Twine(columns));
  return Fit::good();
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// Sums that are too many for a thread's registers are divided by columns.
void AttentionTiles::divideSums() {
  int64_t columns = 0;
  for (const Sum &sum : sums)
    columns += sum.columns;
  // With 16 own rows, two columns are a register.
  parts = ceilDiv(columns / 2, index.element.isF32() ? kSumsByThreads : kSums);
  for (Sum &sum : sums) {
    sum.columns = roundUp(ceilDiv(sum.columns, parts), 16);
    (sum.ofB ? widthB : widthA) = sum.columns * parts;
  }
}

int64_t AttentionTiles::sharedBytes(const Shape &shape) const {
  int64_t bytes = elementBytes(index.element);
  int64_t a = strideFor(widthA) * bytes, b = strideFor(widthB) * bytes;
  int64_t ownBytes = shape.rows() * (a + (needsGradients ? b : 0));
  int64_t numbers = byKey ? shape.step * 2 * 4 : 0;
  // Each piece begins at a multiple of 128 bytes.
  return ownBytes + 2 * (shape.step * (a + b) + numbers) + 8 * 128;
}

ScheduleOverride AttentionTiles::numbers() const { return shape.numbers(); }

double AttentionTiles::seconds() const {
  // Until the first rows have come, as in GemmSchedule.cpp; and what threads
  // reach of their rate. Assumed.
  constexpr double start = 1e-6, ofThreads = 0.8;
  const DeviceRow &device = CudaModel::of(code.target.sm).device();
  double flops = work().flops();
  return start + (index.element.isF32() ? flops / (device.f32 * ofThreads)
                                        : secondsByWarps(flops, device));
}

/// Candidates, the best first.
static constexpr AttentionTiles::Shape shapes[] = {
    {2, 4, 64}, {2, 4, 32}, {1, 4, 64}, {1, 4, 32},
    {1, 4, 16}, {1, 2, 32}, {1, 2, 16}, {1, 1, 16}};

/// The candidate for so many rows.
AttentionTiles::Shape AttentionTiles::fitted(Shape candidate) const {
  candidate.step =
      std::min(candidate.step, roundUp(std::min<int64_t>(otherRows, 64), 16));
  // The code of a step is as long as the step is.
  if (index.element.isF32())
    candidate.step = std::min<int64_t>(candidate.step, 32);
  candidate.warps =
      std::min(candidate.warps, ceilDiv(ownRows, 16 * candidate.blocks));
  return candidate;
}

/// Whether its sums and scores have registers, and its rows shared memory.
bool AttentionTiles::hasRoom(const Shape &candidate) const {
  int64_t columns = 0;
  for (const Sum &sum : sums)
    columns += sum.columns;
  // A quarter of the scores, made to factors, is there twice.
  int64_t scores = (needsGradients ? 2 : 1) * candidate.step * 5 / 8;
  return candidate.blocks * (columns / 2 + scores) <=
             (index.element.isF32() ? kRegistersByThreads : kRegisters) &&
         sharedBytes(candidate) <= code.target.sharedBytes();
}

AttentionTiles::Shape AttentionTiles::modelShape() const {
  // Twice as many own rows need half as many loads from shared memory; but
  // there should be two blocks for each multiprocessor of a large GPU.
  constexpr int64_t manyBlocks = 264;
  Shape last{};
  for (const Shape &candidate : shapes) {
    int64_t tiles = ceilDiv(ownRows, candidate.rows());
    if (candidate.blocks > 1 &&
        (ownRows <= 64 || tiles * parts * index.attention.batches < manyBlocks))
      continue;
    last = fitted(candidate);
    if (hasRoom(last))
      break;
  }
  return last;
}

/// What is asked for, if it is a candidate that has room; else the model's.
void AttentionTiles::chooseShape() {
  shape = {};
  auto asked = ScheduleOverride::of(kernel.kernel);
  bool isAsked = false;
  for (const ScheduleKeyRow &row : scheduleKeys())
    isAsked |= asked.has(row.key) && Shape().numbers().has(row.key);
  for (const Shape &candidate : shapes) {
    Shape own = fitted(candidate);
    ScheduleOverride numbers = own.numbers();
    auto differs = [&](const ScheduleKeyRow &row) {
      return asked.has(row.key) && numbers.has(row.key) &&
             asked[row.key] != numbers[row.key];
    };
    if (isAsked && llvm::none_of(scheduleKeys(), differs) && hasRoom(own)) {
      shape = own;
      return;
    }
  }
  shape = modelShape();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

AttentionTiles::Matrix AttentionTiles::matrix(int64_t rows, int64_t width) {
  int64_t stride = strideFor(width);
  return {code.shared({rows * stride}, index.element), stride, code.index(0)};
}

/// True if pieces of `elements` neighbours along `column` can be moved at once.
static bool isAligned(const Operand &operand, ArrayRef<int64_t> sizes,
                      unsigned column, int64_t elements) {
  if (!operand.isAffine() || operand.stride(column) != 1 ||
      sizes[column] % elements != 0)
    return false;
  SmallVector<AffineExpr> zeros(
      sizes.size(), getAffineConstantExpr(0, operand.position.getContext()));
  auto first = cast<AffineConstantExpr>(operand.position.replaceDims(zeros));
  if (first.getValue() % elements != 0)
    return false;
  for (unsigned d = 0; d < sizes.size(); ++d)
    if (d != column && sizes[d] > 1 && operand.stride(d) % elements != 0)
      return false;
  return true;
}

/// Copies rows of an operand, from row `first` on; zeros behind its last row
/// and column.
void AttentionTiles::copyRows(Number number, const Matrix &to, int64_t rows,
                              Value first) {
  bool isOwn = number == own(false) || number == own(true);
  bool ofB = number == own(true) || number == other(true);
  unsigned row = (isOwn != byKey) ? index.t : index.s;
  unsigned column = ofB ? index.e : index.d;
  int64_t allRows = isOwn ? ownRows : otherRows;
  int64_t columns = index.sizes[column], width = widthOf(ofB);
  Operand operand = kernel.operand(number, index.operand(number), index.sizes);
  bool atOnce = isAligned(operand, index.sizes, column, this->piece());
  int64_t piece = atOnce ? this->piece() : 1;
  int64_t perRow = width / piece, threads = shape.threads();

  auto copy = [&](Value inRow, Value inColumn) {
    Values at(batch);
    at[row] = code.add(first, inRow);
    at[column] = inColumn;
    Value isThere;
    if (allRows % rows != 0) {
      isThere = code.less(at[row], code.index(allRows));
      at[row] = code.min(at[row], allRows - 1);
    }
    if (columns < width) {
      Value isColumn = code.less(inColumn, code.index(columns));
      isThere = isThere ? code.both(isThere, isColumn) : isColumn;
      at[column] = code.min(inColumn, columns - piece);
    }
    Value toAt = to.at(code, inRow, inColumn);
    if (atOnce) {
      copyAsync(code, operand.memref, operand.at(code, at), to.memory, toAt,
                piece, isThere);
      return;
    }
    Value x = kernel.element(number, index.operand(number), at, index.sizes);
    if (isThere)
      x = code.select(isThere, x, f32(0));
    storeElement(code.b, code.loc, index.element, x, to.memory, toAt);
  };
  int64_t all = rows * perRow;
  if (!atOnce) {
    code.loop(code.thread(), code.index(all), threads, [&](Value id) {
      copy(code.div(id, perRow), code.rem(id, perRow));
    });
    return;
  }
  // Where whole rows of threads fit, their columns are the same in each round.
  bool isEven = threads % perRow == 0;
  for (int64_t begin = 0; begin < all; begin += threads) {
    Value id = code.add(code.thread(), begin);
    auto one = [&] {
      if (isEven)
        copy(code.add(code.div(code.thread(), perRow), begin / perRow),
             code.mul(code.rem(code.thread(), perRow), piece));
      else
        copy(code.div(id, perRow), code.mul(code.rem(id, perRow), piece));
    };
    if (begin + threads <= all)
      one();
    else
      code.when(code.less(id, code.index(all)), one);
  }
}

/// Copies numbers of other rows, lse or delta.
void AttentionTiles::copyNumbers(Number number, Value to, Value at,
                                 Value first) {
  Operand operand = kernel.operand(number, index.operand(number), index.sizes);
  for (int64_t begin = 0; begin < shape.step; begin += shape.threads()) {
    Value id = code.add(code.thread(), begin);
    auto one = [&] {
      Values dims(batch);
      Value row = code.add(first, id), isThere;
      if (otherRows % shape.step != 0) {
        isThere = code.less(row, code.index(otherRows));
        row = code.min(row, otherRows - 1);
      }
      dims[index.t] = row;
      Value toAt = code.add(at, id);
      if (operand.isAffine()) {
        copyAsync(code, operand.memref, operand.at(code, dims), to, toAt, 1,
                  isThere);
        return;
      }
      Value x =
          kernel.element(number, index.operand(number), dims, index.sizes);
      if (isThere)
        x = code.select(isThere, x, f32(0));
      memref::StoreOp::create(code.b, code.loc, x, to, toAt);
    };
    if (begin + shape.threads() <= shape.step)
      one();
    else
      code.when(code.less(id, code.index(shape.step)), one);
  }
}

AttentionTiles::Step AttentionTiles::stepOf(Value number) {
  Value slot = code.rem(number, 2);
  Step step;
  step.first = code.mul(number, shape.step);
  step.a = stepA;
  step.b = stepB;
  step.a.first = code.mul(slot, shape.step * stepA.stride);
  step.b.first = code.mul(slot, shape.step * stepB.stride);
  step.lse = lseMemory;
  step.delta = deltaMemory;
  step.rowsAt = code.mul(slot, shape.step);
  return step;
}

void AttentionTiles::copyStep(Value number) {
  Step step = stepOf(number);
  copyRows(other(false), step.a, shape.step, step.first);
  copyRows(other(true), step.b, shape.step, step.first);
  if (!byKey)
    return;
  copyNumbers(Number::LSE, step.lse, step.rowsAt, step.first);
  if (needsGradients)
    copyNumbers(Number::DELTA, step.delta, step.rowsAt, step.first);
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

/// The steps [from, to) of those before `end`, the first of which is on its
/// way.
AttentionTiles::Values AttentionTiles::walk(Value from, Value to, Value end,
                                            bool masked, Values carried) {
  return code.loop(from, to, 1, carried,
                   [&](Value number, ValueRange values) -> Values {
                     waitForCopies(code, 0);
                     // This step is there for all threads, and all are done
                     // with the one before, whose place the next one gets.
                     code.barrier();
                     Value next = code.add(number, 1);
                     code.when(code.less(next, end), [&] { copyStep(next); });
                     commitCopies(code);
                     return compute(stepOf(number), masked, Values(values));
                   });
}

void AttentionTiles::takeOwnRows() {
  copyRows(own(false), ownA, shape.rows(), ownFirst);
  if (needsGradients)
    copyRows(own(true), ownB, shape.rows(), ownFirst);
  commitCopies(code);
}

LaunchShape AttentionTiles::emit() {
  int64_t tiles = ceilDiv(ownRows, shape.rows());
  Value item = code.block();
  part = code.rem(item, parts);
  Value tile = code.rem(code.div(item, parts), tiles);
  batch = index.at(code, code.div(item, parts * tiles));
  // The blocks with most work begin first.
  if (index.causal && !byKey)
    tile = code.sub(code.index(tiles - 1), tile);
  ownFirst = code.mul(tile, shape.rows());

  ownA = matrix(shape.rows(), widthA);
  if (needsGradients)
    ownB = matrix(shape.rows(), widthB);
  stepA = matrix(2 * shape.step, widthA);
  stepB = matrix(2 * shape.step, widthB);
  if (byKey) {
    lseMemory = code.shared({2 * shape.step}, code.b.getF32Type());
    if (needsGradients)
      deltaMemory = code.shared({2 * shape.step}, code.b.getF32Type());
  }

  auto [full, cut] = bounds();
  Value begin = byKey ? cut[0] : full[0], end = byKey ? full[1] : cut[1];
  takeOwnRows();
  code.when(code.less(begin, end), [&] { copyStep(begin); });
  commitCopies(code);
  Values results = initial();
  if (byKey) {
    results = walk(cut[0], cut[1], end, /*masked=*/true, results);
    results = walk(full[0], full[1], end, /*masked=*/false, results);
  } else {
    results = walk(full[0], full[1], end, /*masked=*/false, results);
    results = walk(cut[0], cut[1], end, /*masked=*/true, results);
  }
  finish(results);

  LaunchShape launch;
  launch.block[0] = shape.threads();
  launch.grid[0] = index.attention.batches * tiles * parts;
  // ptxas would spill what lives through the loop to fit one block more. So
  // blocks are as few as where each thread has the 255 registers that it can
  // have at most, of the 65536 of a multiprocessor.
  constexpr int64_t all = 65536, ofThread = 255;
  if (isForward && elementBytes(index.element) < 4)
    launch.blocksAtOnce = static_cast<int>(
        std::max<int64_t>(1, all / (shape.threads() * ofThread)));
  return launch;
}

LaunchShape lower::cuda::emitAttentionTiles(AnchorKernel &kernel,
                                            ThreadCode &code) {
  return AttentionTiles(kernel, code).emit();
}
