//===- AttentionWgmma.cpp - attention by warpgroups from bulk copies ------===//
//
// A stage is full when the copies of its rows have come and, for the keys'
// gradient, a warp has stored the numbers of these rows; it is empty when each
// warp that computes says so.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cuda/attention/AttentionWgmma.h"
#include "passes/lower/cuda/attention/AttentionTiles.h"
#include "passes/target/CudaModel.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

static int64_t ceilDiv(int64_t x, int64_t y) { return (x + y - 1) / y; }

/// What the threads that copy leave to the others, as in GemmWgmma.cpp.
static constexpr uint32_t copierRegisters = 24, computerRegisters = 240;

/// Blocks that run at a time, about.
static constexpr int64_t mostTogether = 132;

AttentionWgmma::AttentionWgmma(AnchorKernel &kernel, ThreadCode &code)
    : AttentionScores(kernel, code), warpgroup(code) {
  for (bool ofB : {false, true}) {
    if (!ofB || needsGradients)
      takeSide(own_[ofB], own(ofB), ofB);
    takeSide(other_[ofB], other(ofB), ofB);
  }
  chooseShape();
}

void AttentionWgmma::takeSide(Side &side, Number number, bool ofB) {
  bool isQuery = number == Number::Q || number == Number::DY;
  unsigned row = isQuery ? index.t : index.s, column = ofB ? index.e : index.d;
  side.rows = std::make_unique<MatrixFactor>(kernel, code, number,
                                             index.operand(number), index.sizes,
                                             ArrayRef(row), ArrayRef(column));
}

Fit AttentionWgmma::fit(AnchorKernel &kernel, ThreadCode &code) {
  AttentionIndex index(kernel.anchor);
  const CudaTarget &target = code.target;
  if (!target.isExact || target.sm != 90)
    return Fit::impossible("expected a target of sm_90a but got sm_" +
                           Twine(target.sm));
  if (!index.element.isF16() && !index.element.isBF16())
    return Fit::impossible("expected elements of f16 or bf16 but got " +
                           textOf(index.element));
  return AttentionWgmma(kernel, code).fitOfSizes();
}

Fit AttentionWgmma::fitOfSizes() const {
  constexpr int64_t mostColumns = 128, mostRows = int64_t(1) << 30;
  if (int64_t columns = std::max(widthA, widthB); columns > mostColumns)
    return Fit::impossible("expected at most " + Twine(mostColumns) +
                           " columns but got " + Twine(columns));
  if (int64_t rows = std::max(ownRows, otherRows); rows > mostRows)
    return Fit::impossible("expected at most " + Twine(mostRows) +
                           " rows but got " + Twine(rows));
  for (const Side *sides : {own_, other_})
    for (const Side &side : ArrayRef(sides, 2))
      if (side.rows && !(side.rows->tensor && side.rows->alongK))
        return Fit::impossible("expected operands whose rows bulk copies can "
                               "take but got one that is not so");
  if (sums.empty() || !isCut)
    return Fit::impossible("expected tiles that fit registers and shared "
                           "memory but got none");
  double warps = AttentionTiles(kernel, code).seconds();
  auto micros = [](double seconds) {
    return llvm::formatv("{0:f1} us", 1e6 * seconds).str();
  };
  if (code.target.products != "wgmma" && seconds() >= warps)
    return Fit::slower("expected less than the " + micros(warps) +
                       " of 'tiles' but got " + micros(seconds()));
  if (code.target.products == "mma")
    return Fit::slower("expected a target that prefers it but got one that "
                       "prefers 'mma'");
  return Fit::good();
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

ScheduleOverride AttentionWgmma::numbers() const {
  using enum ScheduleKey;
  return ScheduleOverride({{BlockM, shape.rows()},
                           {BlockN, shape.step},
                           {WarpsM, shape.warps},
                           {Stages, stages}});
}

AttentionWork AttentionWgmma::work() const {
  AttentionWork work = AttentionScores::work();
  work.chain = chain;
  return work;
}

double AttentionWgmma::seconds() const {
  const CudaModel &model = CudaModel::of(code.target.sm);
  return timeByWarpgroups(work(), model.device(), model.multiprocessors)
      .seconds();
}

/// Those that have to be kept: scores, twice where gradients follow from them,
/// what is packed of them, and sums.
int64_t AttentionWgmma::registers() const {
  int64_t scores = (needsGradients ? 2 : 1) * shape.step / 2;
  int64_t packed = shape.step / 4, columns = 0;
  for (const Sum &sum : sums)
    columns += sum.columns;
  return scores + packed + columns / 2;
}

int64_t AttentionWgmma::sharedBytes() const {
  int64_t bytes = 1024; // barriers, and what pieces are aligned by
  for (bool ofB : {false, true}) {
    if (own_[ofB].rows)
      bytes += tileBytes(ofB, shape.rows());
    bytes +=
        stages * (tileBytes(ofB, shape.step) + (byKey ? shape.step * 4 : 0));
  }
  return bytes;
}

bool AttentionWgmma::hasRoom() const {
  // Besides: addresses, and what is on its way.
  constexpr int64_t mostKept = 208;
  return registers() <= mostKept && sharedBytes() <= code.target.sharedBytes();
}

/// The first cut that has room, of those that are asked for or of all. The more
/// rows a step has, the fewer bytes of shared memory a product reads.
void AttentionWgmma::chooseShape() {
  constexpr int64_t mostStages = 4;
  auto asked = ScheduleOverride::of(kernel.kernel);
  int64_t usual = ownRows <= warpgroupRows ? 1 : 2;
  auto isMet = [&](const ScheduleKeyRow &row) {
    ScheduleOverride own = numbers();
    return !asked.has(row.key) || !own.has(row.key) ||
           asked[row.key] == own[row.key];
  };
  auto find = [&](bool isAsked) {
    for (int64_t groups : {usual, 3 - usual})
      for (int64_t step : {128, 64, 32})
        for (stages = mostStages; stages >= 2; --stages) {
          shape = {1, 4 * groups, step};
          bool isLarge = step > 32 && otherRows <= step / 2 &&
                         !asked.has(ScheduleKey::BlockN);
          if (hasRoom() && !isLarge &&
              (!isAsked || llvm::all_of(scheduleKeys(), isMet)))
            return true;
        }
    return false;
  };
  isCut = find(true) || find(false);
  chooseChain();
}

/// How many tiles a block has: the model says when it is worth it. What goes on
/// from tile to tile takes registers, too.
void AttentionWgmma::chooseChain() {
  constexpr int64_t mostKept = 200;
  int64_t best = 1, tiles = ceilDiv(ownRows, shape.rows());
  double least = 0;
  for (int64_t count : {1, 2, 4, 8}) {
    if (count > tiles || (count > 1 && registers() > mostKept))
      break;
    chain = count;
    if (double own = seconds(); count == 1 || own < least) {
      best = count;
      least = own;
    }
  }
  chain = best;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

Value AttentionWgmma::barrier(bool ofB, bool isFull, Value stage) {
  int64_t first = 2 + ((isFull ? 0 : 2) + (ofB ? 1 : 0)) * stages;
  return warpgroup.barrierAt(barriers, code.add(stage, first));
}

AttentionWgmma::Place AttentionWgmma::firstPlace(int64_t parity) {
  return {code.index(0), warpgroup.bits(parity)};
}

AttentionWgmma::Place AttentionWgmma::after(const Place &place) {
  Value isLast = code.equal(place.stage, code.index(stages - 1));
  return {code.select(isLast, code.index(0), code.add(place.stage, 1)),
          code.select(isLast, turned(place.parity), place.parity)};
}

Value AttentionWgmma::turned(Value parity) {
  return arith::XOrIOp::create(code.b, code.loc, parity, warpgroup.bits(1));
}

Value AttentionWgmma::numberOf(Value begin, Value count, Value done) {
  // The forward begins with the last step, which alone may have scores that
  // are not seen.
  if (!isForward)
    return code.add(begin, done);
  return code.sub(code.add(begin, code.add(count, -1)), done);
}

AttentionWgmma::Rows AttentionWgmma::rowsOf(Value number, Value stage) {
  return {code.mul(number, shape.step), lseMemory, deltaMemory,
          code.mul(stage, shape.step)};
}

void AttentionWgmma::makeMap(Side &side, int64_t rows) {
  const FactorTensor &tensor = *side.rows->tensor;
  int64_t bytes = elementBytes(index.element);
  TensorMap map;
  map.buffer = tensor.buffer;
  map.offset = tensor.offset * bytes;
  map.element = index.element;
  map.sizes = tensor.sizes;
  for (int64_t stride : ArrayRef(tensor.strides).drop_front())
    map.strides.push_back(stride * bytes);
  map.box.assign(tensor.sizes.size(), 1);
  map.box[0] = tileRowBytes / bytes;
  map.box[1] = rows;
  side.map = code.tensorMap(map);
}

/// A block has some tiles of a batch, one after the other: the copies of the
/// next one's rows begin while the last one's results are stored. Of a causal
/// batch a long one and a short one by turns, so that blocks have equal work.
void AttentionWgmma::forEachTile(
    const Values &init, llvm::function_ref<Values(ValueRange carried)> body) {
  int64_t tiles = ceilDiv(ownRows, shape.rows());
  auto enter = [&](Value tile) {
    if (index.causal && !byKey)
      tile = code.sub(code.index(tiles - 1), tile);
    ownFirst = code.mul(tile, shape.rows());
  };
  part = code.index(0);
  if (chain > 1) {
    auto [inBatches, inTiles] = code.split(code.block(), ceilDiv(tiles, chain));
    batch = index.at(code, inBatches);
    Value first = code.mul(inTiles, chain);
    code.loop(first, code.min(code.add(first, chain), tiles), 1, init,
              [&](Value at, ValueRange carried) {
                auto [pair, inPair] = code.split(at, 2);
                Value other = code.sub(code.index(tiles - 1), pair);
                enter(index.causal
                          ? code.select(code.equal(inPair, code.index(0)), pair,
                                        other)
                          : at);
                return body(carried);
              });
    return;
  }
  // Blocks of some batches together, whose rows L2 has, those with most work
  // first, so that the last ones to run are short.
  int64_t together = 1, batches = index.attention.batches;
  for (int64_t count = 1; count <= batches; ++count)
    if (batches % count == 0 && count * tiles <= mostTogether)
      together = count;
  auto [portion, inPortion] = code.split(code.block(), together * tiles);
  auto [tile, inTile] = code.split(inPortion, together);
  batch = index.at(code, code.add(code.mul(portion, together), inTile));
  enter(tile);
  body(init);
}

void AttentionWgmma::layOut() {
  int64_t bytes = 0;
  for (bool ofB : {false, true}) {
    own_[ofB].at = bytes;
    if (own_[ofB].rows)
      bytes += tileBytes(ofB, shape.rows());
  }
  for (bool ofB : {false, true}) {
    other_[ofB].at = bytes;
    bytes += stages * tileBytes(ofB, shape.step);
  }
  Value memory = code.shared({bytes}, code.b.getI8Type());
  if (byKey) {
    lseMemory = code.shared({stages * shape.step}, code.b.getF32Type());
    deltaMemory = code.shared({stages * shape.step}, code.b.getF32Type());
  }
  base = warpgroup.addressOf(memory);
  barriers =
      warpgroup.addressOf(code.shared({2 + 4 * stages}, code.b.getI64Type()));
  for (bool ofB : {false, true}) {
    if (own_[ofB].rows)
      makeMap(own_[ofB], shape.rows());
    makeMap(other_[ofB], shape.step);
  }
}

void AttentionWgmma::initialize() {
  code.when(code.equal(code.thread(), code.index(0)), [&] {
    warpgroup.initialize(ownBarrier(/*isFull=*/true), 1);
    warpgroup.initialize(ownBarrier(/*isFull=*/false), shape.warps);
    for (bool ofB : {false, true})
      for (int64_t i = 0; i < stages; ++i) {
        Value stage = code.index(i);
        // The thread that copies rows and, of the keys' gradient, a warp that
        // copies numbers; and a lane of each warp that computes.
        warpgroup.initialize(barrier(ofB, /*isFull=*/true, stage),
                             1 + (byKey ? warpSize : 0));
        warpgroup.initialize(barrier(ofB, /*isFull=*/false, stage),
                             shape.warps);
      }
    warpgroup.fenceInitialized();
  });
  code.when(code.equal(code.thread(), code.index(shape.threads())), [&] {
    for (const Side *sides : {own_, other_})
      for (const Side &side : ArrayRef(sides, 2))
        if (side.rows)
          warpgroup.prefetch(side.map);
  });
  code.barrier();
}

//===----------------------------------------------------------------------===//
// Who brings rows
//===----------------------------------------------------------------------===//

void AttentionWgmma::copyTile(Side &side, bool ofB, int64_t rows, Value first,
                              Value to, Value barrier) {
  constexpr int64_t columns = 64;
  side.rows->enter(batch);
  for (int64_t chunk = 0; chunk < chunks(ofB); ++chunk) {
    Values place = {code.index(columns * chunk), first};
    llvm::append_range(place, side.rows->batchPlace());
    warpgroup.copy(side.map, place, code.add(to, chunk * rows * tileRowBytes),
                   barrier);
  }
}

/// Numbers of the rows of a step, by a warp; zeros of rows that are not there.
void AttentionWgmma::copyNumbers(Number number, Value to, Value at,
                                 Value first) {
  for (int64_t begin = 0; begin < shape.step; begin += warpSize) {
    Value id = code.add(code.lane(), begin), row = code.add(first, id);
    Values dims(batch);
    dims[index.t] = code.min(row, otherRows - 1);
    Value x = kernel.element(number, index.operand(number), dims, index.sizes);
    if (otherRows % shape.step != 0)
      x = code.select(code.less(row, code.index(otherRows)), x, f32(0));
    memref::StoreOp::create(code.b, code.loc, x, to, code.add(at, id));
  }
}

/// Calls `body` for each step of this tile, with the number of its first row
/// and its place in the rings; returns the place behind the last.
AttentionWgmma::Place AttentionWgmma::forEachStep(
    const Place &from,
    llvm::function_ref<void(const Rows &rows, const Place &at)> body) {
  auto [full, cut] = bounds();
  Value begin = byKey ? cut[0] : full[0], end = byKey ? full[1] : cut[1];
  Value count = code.max(code.sub(end, begin), code.index(0));
  Values last =
      code.loop(code.index(0), count, 1, {from.stage, from.parity},
                [&](Value done, ValueRange carried) {
                  Place at{carried[0], carried[1]};
                  body(rowsOf(numberOf(begin, count, done), at.stage), at);
                  Place next = after(at);
                  return Values{next.stage, next.parity};
                });
  return {last[0], last[1]};
}

void AttentionWgmma::bringNumbers() {
  // The stages are empty at first: their barriers' turn before the first has
  // the other parity.
  Place first = firstPlace(1);
  forEachTile({first.stage, first.parity}, [&](ValueRange carried) {
    Place last = forEachStep(
        {carried[0], carried[1]}, [&](const Rows &rows, const Place &at) {
          for (bool ofB : {false, true}) {
            warpgroup.wait(barrier(ofB, /*isFull=*/false, at.stage), at.parity);
            copyNumbers(ofB ? Number::DELTA : Number::LSE,
                        ofB ? rows.delta : rows.lse, rows.rowsAt, rows.first);
            warpgroup.arrive(barrier(ofB, /*isFull=*/true, at.stage));
          }
        });
    return Values{last.stage, last.parity};
  });
}

void AttentionWgmma::bringRows() {
  int64_t bytes = 0;
  for (bool ofB : {false, true})
    if (own_[ofB].rows)
      bytes += tileBytes(ofB, shape.rows());
  Place first = firstPlace(1);
  Values init = {first.stage, first.parity, warpgroup.bits(1)};
  forEachTile(init, [&](ValueRange carried) {
    Value full = ownBarrier(/*isFull=*/true), parity = carried[2];
    warpgroup.wait(ownBarrier(/*isFull=*/false), parity);
    warpgroup.expect(full, bytes);
    for (bool ofB : {false, true})
      if (own_[ofB].rows)
        copyTile(own_[ofB], ofB, shape.rows(), ownFirst,
                 code.add(base, own_[ofB].at), full);
    Place last = forEachStep(
        {carried[0], carried[1]}, [&](const Rows &rows, const Place &at) {
          for (bool ofB : {false, true}) {
            warpgroup.wait(barrier(ofB, /*isFull=*/false, at.stage), at.parity);
            Value full = barrier(ofB, /*isFull=*/true, at.stage);
            warpgroup.expect(full, tileBytes(ofB, shape.step));
            copyTile(other_[ofB], ofB, shape.step, rows.first,
                     tileAt(ofB, at.stage), full);
          }
        });
    return Values{last.stage, last.parity, turned(parity)};
  });
}

void AttentionWgmma::bring() {
  if (groups() > 1)
    NVVM::SetMaxRegisterOp::create(code.b, code.loc, copierRegisters,
                                   NVVM::SetMaxRegisterAction::decrease);
  if (byKey)
    code.when(code.equal(code.warp(), code.index(shape.warps + 1)),
              [&] { bringNumbers(); });
  code.when(code.equal(code.thread(), code.index(shape.threads())),
            [&] { bringRows(); });
}

Value AttentionWgmma::tileAt(bool ofB, Value stage) {
  Value first = code.add(base, other_[ofB].at);
  return code.add(first,
                  code.mul(warpgroup.word(stage), tileBytes(ofB, shape.step)));
}

LaunchShape AttentionWgmma::emit() {
  LaunchShape launch;
  launch.grid[0] = index.attention.batches * work().blocksOfBatch();
  launch.block[0] = shape.threads() + warpgroupSize;
  launch.blocksAtOnce = 1;
  layOut();
  initialize();
  code.when(
      code.less(code.thread(), code.index(shape.threads())),
      [&] {
        if (groups() > 1)
          NVVM::SetMaxRegisterOp::create(code.b, code.loc, computerRegisters,
                                         NVVM::SetMaxRegisterAction::increase);
        compute();
      },
      [&] { bring(); });
  return launch;
}

LaunchShape lower::cuda::emitAttentionWgmma(AnchorKernel &kernel,
                                            ThreadCode &code) {
  return AttentionWgmma(kernel, code).emit();
}
