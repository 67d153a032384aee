//===- GemmWgmma.cpp - products of warpgroups from bulk copies ------------===//
//
// A factor whose neighbours are along k has a row of its tile for each line.
// One whose neighbours are along the lines has chunks of 64 lines (of 2 bytes),
// in each a row for each k; wgmma transposes it. A wgmma takes 32 bytes of k.
// Of other elements than those of 2 bytes it transposes none.
//
// Cores of sm_90 add products of f8 values with 13 bits below the largest of
// what they add, the sum among it (passes/target/ByteProducts.h). So those of
// each tile, 128 k, begin at zeros, and f32 adds what they give to the sums.
// The tensor cores are the other warpgroup's meanwhile.
//
// Which registers a wgmma reads and writes is known to be safe only after
// wgmma.wait_group: the sums are not touched between the products, and the
// products of one tile are still under way while those of the next are given.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/cuda/products/GemmWgmma.h"

#include "ir/Dialect.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cuda;

namespace {
// What the threads of the copying warpgroup leave to the others: a block of
/// three warpgroups has 168 registers for each thread at its start.
constexpr uint32_t copierRegisters = 40, multiplierRegisters = 232;

/// How the rows of one wgmma's k are found from those of the one before.
int64_t stepBytes(bool alongK, int64_t bytes) {
  return alongK ? 32 : 32 / bytes * tileRowBytes;
}
} // namespace

Fit lower::cuda::fitOfWgmma(const Gemm &gemm, const CudaTarget &target) {
  if (!target.isExact || target.sm != 90)
    return Fit::impossible("expected a target of sm_90a but got sm_" +
                           Twine(target.sm));
  bool isHalf =
      !gemm.isOfBytes && (gemm.element.isF16() || gemm.element.isBF16());
  if (!isHalf && !gemm.isOfBytes && !(gemm.isTf32 && gemm.element.isF32()))
    return Fit::impossible(
        "expected factors of f16, bf16, tf32 or 8 bits but got " +
        textOf(gemm.element));
  if (gemm.K == 0)
    return Fit::impossible("expected sums of some terms but got none");
  auto fits = [&](const GemmFactor &factor) {
    // Words and bytes are not transposed.
    return factor.tensor &&
           (gemm.isOfBytes || factor.element == gemm.element) &&
           (isHalf || factor.alongK);
  };
  for (const GemmFactor *factor : {gemm.a, gemm.b})
    if (!fits(*factor))
      return Fit::impossible(
          "expected factors that bulk copies can take boxes of but got a " +
          Twine(factor == gemm.a ? "left" : "right") + " one that is not so");
  return Fit::good();
}

int64_t WgmmaProduct::stageBytes(const GemmSchedule &schedule) {
  return (schedule.blockM + schedule.blockN) * tileRowBytes * schedule.stages;
}

WgmmaProduct::WgmmaProduct(ThreadCode &code, const Gemm &gemm,
                           const GemmSchedule &schedule)
    : code(code), warpgroup(code), gemm(gemm), schedule(schedule),
      a(describe(*gemm.a, schedule.blockM, 0)),
      b(describe(*gemm.b, schedule.blockN,
                 schedule.blockM * tileRowBytes * schedule.stages)) {
  bool isOfIntegers = gemm.isOfBytes && !isa<FloatType>(gemm.a->format);
  SmallVector<Type> sums(static_cast<size_t>(schedule.blockN / 2),
                         isOfIntegers ? Type(code.b.getI32Type())
                                      : code.b.getF32Type());
  sumsType = LLVM::LLVMStructType::getLiteral(code.b.getContext(), sums);
}

WgmmaProduct::Factor WgmmaProduct::describe(GemmFactor &factor, int64_t lines,
                                            int64_t at) {
  const FactorTensor &tensor = *factor.tensor;
  int64_t bytes = elementBytes(factor.element), inner = tileRowBytes / bytes;
  TensorMap map;
  map.buffer = tensor.buffer;
  map.offset = tensor.offset * bytes;
  map.element = factor.element;
  map.roundsToTf32 = factor.element.isF32();
  map.sizes = tensor.sizes;
  for (int64_t stride : ArrayRef(tensor.strides).drop_front())
    map.strides.push_back(stride * bytes);
  map.box.assign(tensor.sizes.size(), 1);
  map.box[0] = inner;
  map.box[1] = factor.alongK ? lines : schedule.blockK;
  return {&factor, lines, at, lines * tileRowBytes, code.tensorMap(map)};
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

std::pair<Value, Value> WgmmaProduct::after(Value stage, Value parity) {
  Value isLast = code.equal(stage, code.index(schedule.stages - 1));
  Value turned =
      arith::XOrIOp::create(code.b, code.loc, parity, warpgroup.bits(1));
  return {code.select(isLast, code.index(0), code.add(stage, 1)),
          code.select(isLast, turned, parity)};
}

void WgmmaProduct::initialize() {
  code.when(code.equal(code.thread(), code.index(0)), [&] {
    for (int64_t i = 0; i < schedule.stages; ++i) {
      Value stage = code.index(i);
      // The thread that copies; and a lane of each warp that multiplies.
      warpgroup.initialize(warpgroup.barrierAt(full, stage), 1);
      warpgroup.initialize(warpgroup.barrierAt(empty, stage),
                           schedule.threads() / warpSize);
    }
    warpgroup.fenceInitialized();
  });
  // The first copies wait for what they are told, which is in memory.
  code.when(code.equal(code.thread(), code.index(schedule.threads())), [&] {
    for (const Factor &factor : {a, b})
      warpgroup.prefetch(factor.map);
  });
  code.barrier();
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void WgmmaProduct::copyTile(const Factor &factor, Value line, Value k,
                            Value stage, Value full) {
  Value to = code.add(
      code.add(base, code.mul(warpgroup.word(stage), factor.bytes)), factor.at);
  int64_t chunk = factor.alongK()
                      ? factor.lines
                      : tileRowBytes / elementBytes(factor.factor->element);
  for (int64_t done = 0; done < factor.lines; done += chunk) {
    Values place;
    Value atLine = code.add(line, done);
    place.push_back(factor.alongK() ? k : atLine);
    place.push_back(factor.alongK() ? atLine : k);
    llvm::append_range(place, factor.factor->batchPlace());
    warpgroup.copy(factor.map, place, code.add(to, done * tileRowBytes), full);
  }
}

void WgmmaProduct::copy(Value m, Value n, Value kFirst, Value count) {
  NVVM::SetMaxRegisterOp::create(code.b, code.loc, copierRegisters,
                                 NVVM::SetMaxRegisterAction::decrease);
  code.when(code.equal(code.thread(), code.index(schedule.threads())), [&] {
    // The stages are empty at first: their barriers' turn before the first has
    // the other parity.
    code.loop(code.index(0), count, 1, {code.index(0), warpgroup.bits(1)},
              [&](Value number, ValueRange carried) {
                Value stage = carried[0], parity = carried[1];
                warpgroup.wait(warpgroup.barrierAt(empty, stage), parity);
                Value barrier = warpgroup.barrierAt(full, stage);
                warpgroup.expect(barrier, a.bytes + b.bytes);
                Value k = code.mul(code.add(kFirst, number), schedule.blockK);
                copyTile(a, m, k, stage, barrier);
                copyTile(b, n, k, stage, barrier);
                auto [next, turn] = after(stage, parity);
                return Values{next, turn};
              });
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value WgmmaProduct::descriptor(const Factor &factor, Value stage, Value line) {
  Value at = code.add(code.add(base, factor.at),
                      code.mul(warpgroup.word(stage), factor.bytes));
  if (line)
    at = code.add(at, code.mul(warpgroup.word(line), tileRowBytes));
  return warpgroup.descriptor(
      at, factor.alongK() ? 16 : warpgroupRows * tileRowBytes);
}

/// What wgmma takes a factor's elements for.
static NVVM::WGMMATypes typeOf(const GemmFactor &factor) {
  Type type = factor.format ? factor.format : factor.element;
  if (isa<Float8E4M3FNType>(type))
    return NVVM::WGMMATypes::e4m3;
  if (isa<Float8E5M2Type>(type))
    return NVVM::WGMMATypes::e5m2;
  if (type.isInteger(8))
    return type.isUnsignedInteger() ? NVVM::WGMMATypes::u8
                                    : NVVM::WGMMATypes::s8;
  return type.isF16()    ? NVVM::WGMMATypes::f16
         : type.isBF16() ? NVVM::WGMMATypes::bf16
                         : NVVM::WGMMATypes::tf32;
}

Value WgmmaProduct::multiplyTile(Value stage, Value sums) {
  OpBuilder &b = code.b;
  Location loc = code.loc;
  int64_t bytes = elementBytes(gemm.a->element);
  Value ofA = descriptor(a, stage, code.mul(group, warpgroupRows));
  Value ofB = descriptor(this->b, stage, Value());
  bool isInteger =
      cast<LLVM::LLVMStructType>(sumsType).getBody().front().isInteger();
  auto shape = NVVM::MMAShapeAttr::get(
      b.getContext(), static_cast<int>(warpgroupRows),
      static_cast<int>(schedule.blockN), static_cast<int>(32 / bytes));
  // The first products of all replace what registers have: writing zeros to
  // them would be for nothing, and has to be over before the fence.
  auto scale = sums ? NVVM::WGMMAScaleOut::one : NVVM::WGMMAScaleOut::zero;
  if (!sums)
    sums = LLVM::UndefOp::create(b, loc, sumsType);
  NVVM::WgmmaFenceAlignedOp::create(b, loc);
  for (int64_t i = 0; i < tileRowBytes / 32; ++i) {
    auto atStep = [&](Value descriptor, const Factor &factor) {
      return code.add(descriptor, i * stepBytes(factor.alongK(), bytes) / 16);
    };
    sums = NVVM::WgmmaMmaAsyncOp::create(
        b, loc, sumsType, sums, atStep(ofA, a), atStep(ofB, this->b), shape,
        typeOf(*gemm.a), typeOf(*gemm.b),
        isInteger ? NVVM::WGMMATypes::s32 : NVVM::WGMMATypes::f32, scale,
        NVVM::WGMMAScaleIn::one, NVVM::WGMMAScaleIn::one,
        a.alongK() ? NVVM::MMALayout::row : NVVM::MMALayout::col,
        this->b.alongK() ? NVVM::MMALayout::col : NVVM::MMALayout::row,
        NVVM::MMAIntOverflowAttr());
    scale = NVVM::WGMMAScaleOut::one;
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(b, loc);
  return sums;
}

WgmmaProduct::Values WgmmaProduct::multiplyApart(Value count) {
  OpBuilder &b = code.b;
  Values carried(static_cast<size_t>(schedule.blockN / 2),
                 code.number(b.getF32Type(), 0));
  size_t sums = carried.size();
  carried.append({code.index(0), warpgroup.bits(0)});
  carried = code.loop(
      code.index(0), count, 1, carried, [&](Value, ValueRange before) {
        Value stage = before[sums], parity = before[sums + 1];
        warpgroup.wait(warpgroup.barrierAt(full, stage), parity);
        // Behind the wait, through which the products pass, f32 adds them.
        Values next = warpgroup.wait(
            0, warpgroup.numbersOf(multiplyTile(stage, Value())));
        code.when(code.equal(code.lane(), code.index(0)),
                  [&] { warpgroup.arrive(warpgroup.barrierAt(empty, stage)); });
        for (size_t i = 0; i < sums; ++i)
          next[i] = arith::AddFOp::create(b, code.loc, before[i], next[i]);
        auto [nextStage, turn] = after(stage, parity);
        next.append({nextStage, turn});
        return next;
      });
  carried.truncate(sums);
  return carried;
}

WgmmaProduct::Values WgmmaProduct::multiply(Value count) {
  OpBuilder &b = code.b;
  Location loc = code.loc;
  NVVM::SetMaxRegisterOp::create(b, loc, multiplierRegisters,
                                 NVVM::SetMaxRegisterAction::increase);
  group = warpgroup.group();
  if (gemm.isOfBytes && isa<FloatType>(gemm.a->format))
    return multiplyApart(count);
  warpgroup.wait(warpgroup.barrierAt(full, code.index(0)), warpgroup.bits(0));
  Value first = multiplyTile(code.index(0), Value());
  auto [stage, parity] = after(code.index(0), warpgroup.bits(0));
  Values last =
      code.loop(code.index(1), count, 1, {first, stage, parity},
                [&](Value, ValueRange carried) {
                  Value stage = carried[1], parity = carried[2];
                  warpgroup.wait(warpgroup.barrierAt(full, stage), parity);
                  Value next = multiplyTile(stage, carried[0]);
                  // All but these products are done: the stage before is empty.
                  NVVM::WgmmaWaitGroupSyncOp::create(b, loc, 1);
                  code.when(code.equal(code.lane(), code.index(0)), [&] {
                    Value before = code.select(code.equal(stage, code.index(0)),
                                               code.index(schedule.stages - 1),
                                               code.add(stage, -1));
                    warpgroup.arrive(warpgroup.barrierAt(empty, before));
                  });
                  auto [nextStage, turn] = after(stage, parity);
                  return Values{next, nextStage, turn};
                });
  NVVM::WgmmaWaitGroupSyncOp::create(b, loc, 0);
  return warpgroup.numbersOf(last[0]);
}

void WgmmaProduct::emit(Value memory, Value m, Value n, Value kFirst,
                        Value count,
                        llvm::function_ref<void(ValueRange sums)> finish) {
  OpBuilder &builder = code.b;
  Location loc = code.loc;
  base = warpgroup.addressOf(memory);
  full = warpgroup.addressOf(
      code.shared({2 * schedule.stages}, builder.getI64Type()));
  empty = code.add(full, schedule.stages * barrierBytes);
  initialize();
  code.when(
      code.less(code.thread(), code.index(schedule.threads())),
      [&] {
        Values sums = multiply(count), fours;
        auto four = VectorType::get({4}, sums.front().getType());
        for (size_t i = 0; i < sums.size(); i += 4)
          fours.push_back(vector::FromElementsOp::create(
              builder, loc, four, ArrayRef(sums).slice(i, 4)));
        code.forFirst(schedule.threads(), [&] { finish(fours); });
      },
      [&] { copy(m, n, kFirst, count); });
}
