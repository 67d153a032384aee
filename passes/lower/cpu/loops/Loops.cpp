//===- Loops.cpp - pointwise loop kernels, and what all forms share -------===//
#include "passes/lower/common/AnchorCode.h"
#include "passes/lower/cpu/Methods.h"
#include "passes/lower/cpu/loops/LoopEmitter.h"
#include "passes/plan/ChooseNonTemporalStores.h"
#include "passes/target/Rates.h"

#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

/// Elements of a pointwise item: some microseconds of work, and small enough
/// for the first-level cache.
static constexpr int64_t kFewestElements = 512, kMostElements = 4096;
static constexpr double kItemSeconds = 4e-6;

int64_t lower::cpu::grainFor(int64_t items, double flopsPerItem,
                             double bytesPerItem) {
  // What is worth a second thread, and what one takes at a time: threads wait
  // for the last of these, and taking one costs some tens of nanoseconds.
  constexpr double kWorthwhile = 20e-6, kRange = 2.5e-6;
  double seconds = std::max(flopsPerItem / CpuModel::threadFlops,
                            bytesPerItem / CpuModel::threadBytes);
  items = std::max<int64_t>(items, 1);
  if (seconds * static_cast<double>(items) <= kWorthwhile)
    return items;
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(kRange / seconds)),
                             1, items);
}

static FailureOr<LoopNest> nestOf(KernelOp kernel) {
  if (std::optional<LoopNest> nest = findLoopNest(kernel))
    return std::move(*nest);
  return kernel.emitOpError()
         << "expected the ops of the region to share one loop nest";
}

FailureOr<Work> lower::cpu::emitLoops(KernelOp kernel, OpBuilder &b,
                                      KernelBody &body) {
  FailureOr<LoopNest> nest = nestOf(kernel);
  if (failed(nest))
    return failure();
  LoopEmitter emitter(kernel, *nest, b, body);
  LoopKernel loops{kernel, *nest, emitter};
  return emitByTable(kernel, loopMethods(), loops);
}

FailureOr<ChosenMethod>
lower::cpu::chooseLoops(KernelOp kernel, OpBuilder &b, KernelBody &body,
                        const MethodQuestion &question) {
  FailureOr<LoopNest> nest = nestOf(kernel);
  if (failed(nest))
    return failure();
  LoopEmitter emitter(kernel, *nest, b, body);
  LoopKernel loops{kernel, *nest, emitter};
  return chooseByTable(kernel, loopMethods(), loops, question);
}

LoopEmitter::LoopEmitter(KernelOp kernel, LoopNest nest, OpBuilder &b,
                         KernelBody &body)
    : kernel(kernel), nest(std::move(nest)), b(b), loc(kernel.getLoc()),
      body(body), elements(loc) {
  Block &region = kernel.getBody().front();
  for (auto [argument, memref] :
       llvm::zip_equal(region.getArguments(), body.inputs))
    elements.bind(argument, memref);
  elements.chooseReads();
  ivs.resize(this->nest.sizes.size());
}

//===----------------------------------------------------------------------===//
// Shared
//===----------------------------------------------------------------------===//

Value LoopEmitter::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

scf::ForOp LoopEmitter::loop(Value low, Value high, Body code) {
  auto op = scf::ForOp::create(b, loc, low, high, constant(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  code(op.getInductionVar());
  return op;
}

LoopEmitter::Values
LoopEmitter::loop(Value low, Value high, ValueRange init,
                  llvm::function_ref<Values(Value, ValueRange)> code) {
  auto op = scf::ForOp::create(b, loc, low, high, constant(1), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  Values next = code(op.getInductionVar(), op.getRegionIterArgs());
  if (!init.empty())
    scf::YieldOp::create(b, loc, next);
  return Values(op.getResults());
}

std::pair<Value, Value> LoopEmitter::bounds(Value block, int64_t blockSize,
                                            int64_t size) {
  Value low = arith::MulIOp::create(b, loc, block, constant(blockSize));
  Value high = arith::AddIOp::create(b, loc, low, constant(blockSize));
  if (size % blockSize != 0)
    high = arith::MinSIOp::create(b, loc, high, constant(size));
  return {low, high};
}

void LoopEmitter::setIndices(ArrayRef<unsigned> dims, Value position) {
  for (size_t i = dims.size(); i-- > 0;) {
    if (i == 0) {
      ivs[dims[0]] = position;
      return;
    }
    Value size = constant(std::max<int64_t>(nest.sizes[dims[i]], 1));
    ivs[dims[i]] = arith::RemUIOp::create(b, loc, position, size);
    position = arith::DivUIOp::create(b, loc, position, size);
  }
}

/// A kernel has code for each piece of what is concatenated: not of too many,
/// nor of many of one index each, which one load through a pointer reads
/// (ChosenReads.cpp).
static constexpr size_t kMostPieces = 32, kMostOfOne = 4;

/// The indices at which a condition of index `d` alone begins to hold, or ends.
static SmallVector<int64_t> boundsOf(const IndexGuard &guard, unsigned d,
                                     ArrayRef<int64_t> sizes) {
  int64_t step = coefficientOf(guard.expr, d).value_or(0);
  if (step == 0 ||
      llvm::any_of(llvm::seq<unsigned>(0, sizes.size()), [&](unsigned other) {
        return other != d && guard.expr.isFunctionOfDim(other);
      }))
    return {};
  SmallVector<int64_t> none(sizes.size(), 1);
  int64_t atZero = rangeOf(guard.expr, none).low;
  if (guard.isEqual)
    return {-atZero / step, -atZero / step + 1};
  if (step > 0)
    return {llvm::divideCeilSigned(-atZero, step)};
  return {llvm::divideFloorSigned(atZero, -step) + 1};
}

/// A kept dimension, not the innermost one, whose index alone decides whether
/// some inputs are read, as of what is concatenated; in few pieces, in each of
/// which it is known.
std::optional<LoopEmitter::Pieces> LoopEmitter::findPieces() const {
  for (unsigned d = 0; d + 1 < nest.sizes.size(); ++d) {
    if (nest.reduced[d])
      continue;
    std::set<int64_t> bounds = {0, nest.sizes[d]};
    for (const LoopNest::Access &read : nest.reads)
      for (const IndexGuard &guard : read.place.guards)
        for (int64_t at : boundsOf(guard, d, nest.sizes))
          if (at > 0 && at < nest.sizes[d])
            bounds.insert(at);
    size_t count = bounds.size() - 1;
    bool isOfOne = static_cast<int64_t>(2 * count) > nest.sizes[d];
    if (count > 1 && count <= (isOfOne ? kMostOfOne : kMostPieces))
      return Pieces{d, SmallVector<int64_t>(bounds.begin(), bounds.end())};
  }
  return std::nullopt;
}

void LoopEmitter::within(unsigned dim, int64_t low, int64_t high, Value at,
                         llvm::function_ref<void()> code) {
  LoopNest whole = nest;
  auto savedWhole = llvm::to_vector(
      llvm::map_range(saved, [](const Saved &row) { return row.index; }));
  Value whereItWas = ivs[dim];
  nest.restrict(dim, low, high);
  for (Saved &row : saved)
    nest.shift(row.index, dim, low);
  ivs[dim] = high - low == 1 ? constant(0)
             : low == 0      ? at
                             : arith::SubIOp::create(b, loc, at, constant(low));
  code();
  nest = std::move(whole);
  for (auto [row, index] : llvm::zip_equal(saved, savedWhole))
    row.index = index;
  ivs[dim] = whereItWas;
}

/// LLVM makes a switch of such conditions, which it neither takes out of a loop
/// nor turns into masks.
void LoopEmitter::whereReadsAreKnown(llvm::function_ref<void()> code) {
  std::optional<Pieces> pieces = findPieces();
  if (!pieces || !ivs[pieces->dim])
    return code();
  Value at = ivs[pieces->dim];
  for (auto [low, high] :
       llvm::zip(pieces->bounds, llvm::drop_begin(pieces->bounds))) {
    Value isHere = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::ult,
        arith::SubIOp::create(b, loc, at, constant(low)), constant(high - low));
    auto branch = scf::IfOp::create(b, loc, isHere, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&branch.getThenRegion().front());
    within(pieces->dim, low, high, at, code);
  }
}

/// Computes all of the roots before it stores any: one that overwrites an input
/// must not hide it from the others.
void LoopEmitter::storeRoots(
    llvm::function_ref<bool(const LoopNest::Root &)> which) {
  ArrayRef<int64_t> nonTemporal =
      kernel.getNonTemporal().value_or(ArrayRef<int64_t>());
  SmallVector<std::pair<size_t, Value>> values;
  for (auto [i, root] : llvm::enumerate(nest.roots))
    if (which(root))
      values.push_back({i, elements.at(b, root.value, root.index)});
  for (auto [i, value] : values) {
    const LoopNest::Root &root = nest.roots[i];
    auto type = cast<RankedTensorType>(root.value.getType());
    elements.store(b, value, type.getElementType(), body.outputs[i],
                   linearize(root.index, type.getShape(), b.getContext()),
                   llvm::is_contained(nonTemporal, static_cast<int64_t>(i)));
  }
}

Value LoopEmitter::combine(const LoopNest::Reduction &reduction, Value x,
                           Value y, bool anyOrder) {
  ReductionOpInterface op = reduction.op;
  Value result = op.emitCombine(b, loc, x, y);
  if (auto math = result.getDefiningOp<arith::ArithFastMathInterface>();
      math && anyOrder)
    math->setAttr(math.getFastMathAttrName(),
                  arith::FastMathFlagsAttr::get(
                      b.getContext(), arith::FastMathFlags::reassoc |
                                          arith::FastMathFlags::contract |
                                          arith::FastMathFlags::nsz));
  return result;
}

/// Of all of the kernel; functions count as ten.
static double flopsOf(KernelOp kernel) {
  double flops = 0;
  for (Operation &op : kernel.getBody().front())
    if (auto cost = dyn_cast<CostOpInterface>(op)) {
      auto pointwise = dyn_cast<PointwiseOpInterface>(op);
      flops += static_cast<double>(cost.getFlops()) *
               (pointwise && isExpensive(pointwise) ? 10 : 1);
    }
  return flops;
}

Work LoopEmitter::workOf(int64_t items, int64_t scratchBytes) {
  double bytes = 0;
  for (Type type : kernel->getOperandTypes())
    bytes += static_cast<double>(byteSize(cast<RankedTensorType>(type)));
  for (Type type : kernel->getResultTypes())
    bytes += static_cast<double>(byteSize(cast<RankedTensorType>(type)));
  double n = static_cast<double>(std::max<int64_t>(items, 1));
  return {items, grainFor(items, flopsOf(kernel) / n, bytes / n), scratchBytes};
}

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

/// About `wanted` indices a block, and a number that divides `size` where there
/// is one near.
static int64_t blockOf(int64_t size, int64_t wanted) {
  if (size <= 2 * wanted)
    return std::max<int64_t>(size, 1);
  for (int64_t block = wanted; block > wanted / 2; --block)
    if (size % block == 0)
      return block;
  return wanted;
}

/// Elements beside each other whose code stands together, because they share
/// most of it: random numbers come in blocks of four.
static int64_t neighbours(KernelOp kernel) {
  Block &region = kernel.getBody().front();
  return region.getOps<PhiloxOp>().empty() ? 1 : 4;
}

/// Whether code has functions that are long chains of steps.
static bool hasChains(Block &code) {
  bool has = false;
  code.walk([&](Operation *op) {
    has |= isa<math::ExpOp, math::LogOp, math::Log1pOp, math::TanhOp,
               math::ErfOp, math::SinOp, math::CosOp, math::PowFOp>(op);
  });
  return has;
}

/// The same of the code that a pointwise kernel will have: the formula of an
/// element is written into a block that is thrown away.
static bool elementHasChains(KernelOp kernel, const LoopNest &nest) {
  Location loc = kernel.getLoc();
  OpBuilder b(kernel.getContext());
  Block code;
  b.setInsertionPointToStart(&code);
  ElementEmitter elements(loc);
  for (BlockArgument input : kernel.getBody().getArguments()) {
    Type type = getElementTypeOrSelf(input.getType());
    Value x = code.addArgument(scalar::computeType(type), loc);
    elements.bind(input,
                  [x](OpBuilder &, Location, const Place &) { return x; });
  }
  SmallVector<Value> ivs;
  for (size_t d = 0; d < nest.sizes.size(); ++d)
    ivs.push_back(code.addArgument(b.getIndexType(), loc));
  elements.enter(ivs, nest.sizes);
  for (const LoopNest::Root &root : nest.roots)
    elements.at(b, root.value, root.index);
  return hasChains(code);
}

/// So many that nothing remains. The functions of one are a long chain of
/// steps, each of which waits for the one before it, and a processor looks
/// ahead only as far as about three such chains that follow each other. Sums
/// wait for their last step, which eight of them side by side fill.
int64_t LoopEmitter::vectorsTogether(bool hasChains, bool hasSums,
                                     int64_t size) {
  CpuModel target = CpuModel::of(kernel);
  int64_t count = hasChains ? target.registers / 8
                  : hasSums ? target.registers / 4
                            : 1;
  int64_t lanes = target.lanes(Float32Type::get(kernel.getContext()));
  while (count > 1 && size % (count * lanes) != 0)
    count /= 2;
  return count;
}

int64_t LoopEmitter::vectorsTogether(scf::ForOp loop, int64_t size) {
  return vectorsTogether(hasChains(*loop.getBody()),
                         loop.getNumRegionIterArgs() > 0, size);
}

/// LLVM writes short loops out before it makes vectors, and then makes them of
/// the loop around them, whose elements are far apart: of images of 4x4 it
/// gathered pixels.
void LoopEmitter::vectorize(scf::ForOp loop, int64_t count, int64_t size) {
  MLIRContext *context = loop.getContext();
  Builder b(context);
  int64_t lanes = CpuModel::of(kernel).lanes(Float32Type::get(context));
  bool isShort = size >= lanes && size < 4 * lanes;
  if (count == 1 && !isShort)
    return;
  auto vectors = LLVM::LoopInterleaveAttr::get(
      context, b.getI32IntegerAttr(static_cast<int32_t>(count)));
  LLVM::LoopUnrollAttr unroll;
  if (isShort)
    unroll = LLVM::LoopUnrollAttr::get(context, b.getBoolAttr(true), {}, {}, {},
                                       {}, {}, {});
  loop->setAttr("loop_annotation",
                LLVM::LoopAnnotationAttr::get(
                    context, /*disableNonforced=*/{}, /*vectorize=*/{},
                    count == 1 ? LLVM::LoopInterleaveAttr() : vectors, unroll,
                    /*unrollAndJam=*/{}, /*licm=*/{},
                    /*distribute=*/{}, /*pipeline=*/{}, /*peeled=*/{},
                    /*unswitch=*/{}, /*mustProgress=*/{}, /*isVectorized=*/{},
                    /*startLoc=*/{}, /*endLoc=*/{}, /*parallelAccesses=*/{}));
}

int64_t LoopEmitter::elementsOfItem() const {
  double all = 1;
  for (int64_t size : nest.sizes)
    all *= static_cast<double>(size);
  double most = kItemSeconds * CpuModel::threadFlops * all /
                std::max(1.0, flopsOf(kernel));
  return llvm::bit_floor(static_cast<uint64_t>(
      std::clamp<double>(most, kFewestElements, kMostElements)));
}

LoopEmitter::PointwiseCut LoopEmitter::pointwiseCut() const {
  unsigned rank = nest.sizes.size();
  PointwiseCut cut{rank};
  int64_t wanted =
      std::max<int64_t>(said().get(ScheduleKey::Block, elementsOfItem()), 2);
  int64_t inner = 1, within = 1;
  while (cut.dim > 0 && inner < wanted) {
    within = inner;
    inner *= nest.sizes[--cut.dim];
  }
  if (cut.dim == rank)
    return cut;
  int64_t size = nest.sizes[cut.dim];
  cut.block = blockOf(size, std::max<int64_t>(wanted / within, 1));
  cut.blocks = (size + cut.block - 1) / cut.block;
  cut.together = neighbours(kernel);
  if (nest.sizes[rank - 1] % cut.together != 0 ||
      (cut.dim == rank - 1 && cut.block % cut.together != 0))
    cut.together = 1;
  return cut;
}

/// The elements of the innermost loops, if LLVM knows how many; else 0.
static int64_t innermostSize(const LoopNest &nest, unsigned cutDim,
                             int64_t block) {
  if (nest.sizes.empty() || cutDim == nest.sizes.size())
    return 0;
  int64_t size = nest.sizes.back();
  if (cutDim + 1 < nest.sizes.size() || block >= size)
    return size;
  return size % block == 0 ? block : 0;
}

ScheduleOverride LoopEmitter::cutPointwise() {
  using enum ScheduleKey;
  ScheduleOverride numbers = cutAhead(), asked = said();
  if (llvm::is_contained(nest.sizes, 0))
    return numbers;
  numbers.set(Block, std::max<int64_t>(asked.get(Block, elementsOfItem()), 2));
  PointwiseCut cut = pointwiseCut();
  int64_t size = innermostSize(nest, cut.dim, cut.block);
  if (cut.together > 1 || size == 0)
    return numbers;
  if (!asked.has(Vectors))
    asked.set(Vectors, vectorsTogether(elementHasChains(kernel, nest),
                                       /*hasSums=*/false, size));
  numbers.set(Vectors, asked[Vectors]);
  return numbers;
}

Work LoopEmitter::emitPointwise() {
  unsigned rank = nest.sizes.size();
  if (llvm::is_contained(nest.sizes, 0))
    return workOf(0);
  // The dimension that is cut into blocks: those before it are of the item.
  const PointwiseCut items = pointwiseCut();
  unsigned cut = items.dim;
  int64_t block = items.block, blocks = items.blocks;
  int64_t together = items.together;
  int64_t vectors = said().get(ScheduleKey::Vectors, 1);
  askAhead();
  SmallVector<unsigned> outer;
  for (unsigned d = 0; d < cut; ++d)
    outer.push_back(d);

  auto store = [&] {
    elements.enter(ivs, nest.sizes);
    storeRoots([](const LoopNest::Root &) { return true; });
  };
  std::function<void(unsigned)> nestFrom;
  std::optional<Pieces> pieces = findPieces();
  // `count` indices of dimension d from `first` on. Where the count is known to
  // LLVM, it needs no code for what remains.
  auto loopOver = [&](unsigned d, Value first, Value count) {
    if (d + 1 < rank || together == 1) {
      scf::ForOp made = loop(constant(0), count, [&](Value i) {
        ivs[d] = arith::AddIOp::create(b, loc, first, i);
        nestFrom(d + 1);
      });
      if (auto size = getConstantIntValue(count); size && d + 1 == rank)
        vectorize(made, vectors, *size);
      return;
    }
    Value several = constant(together);
    count = arith::DivUIOp::create(b, loc, count, several);
    loop(constant(0), count, [&](Value group) {
      Value low = arith::AddIOp::create(
          b, loc, first, arith::MulIOp::create(b, loc, group, several));
      for (int64_t i = 0; i < together; ++i) {
        ivs[d] = arith::AddIOp::create(b, loc, low, constant(i));
        store();
      }
    });
  };
  // `count` indices of what is concatenated from `first` on, in one piece.
  auto overPiece = [&](int64_t low, int64_t high, Value first, Value count) {
    unsigned d = pieces->dim;
    loop(constant(0), count, [&](Value i) {
      Value at = arith::AddIOp::create(b, loc, first, i);
      within(d, low, high, at, [&] { nestFrom(d + 1); });
    });
  };
  nestFrom = [&](unsigned d) {
    if (d == rank)
      return store();
    if (pieces && d == pieces->dim) {
      for (auto [low, high] :
           llvm::zip(pieces->bounds, llvm::drop_begin(pieces->bounds)))
        overPiece(low, high, constant(low), constant(high - low));
      return;
    }
    loopOver(d, constant(0), constant(nest.sizes[d]));
  };
  loop(body.begin, body.end, [&](Value item) {
    if (cut == rank)
      return store();
    Value which = item;
    if (!outer.empty() && blocks > 1) {
      which = arith::RemUIOp::create(b, loc, item, constant(blocks));
      item = arith::DivUIOp::create(b, loc, item, constant(blocks));
    }
    setIndices(outer, item);
    auto emitItem = [&] {
      if (blocks == 1)
        return nestFrom(cut);
      auto [low, high] = bounds(which, block, nest.sizes[cut]);
      if (pieces && cut == pieces->dim) {
        for (auto [begin, end] :
             llvm::zip(pieces->bounds, llvm::drop_begin(pieces->bounds))) {
          Value first = arith::MaxSIOp::create(b, loc, low, constant(begin));
          Value last = arith::MinSIOp::create(b, loc, high, constant(end));
          overPiece(begin, end, first,
                    arith::SubIOp::create(b, loc, last, first));
        }
        return;
      }
      loopOver(cut, low,
               nest.sizes[cut] % block == 0
                   ? constant(block)
                   : arith::SubIOp::create(b, loc, high, low).getResult());
    };
    whereReadsAreKnown(emitItem);
  });
  return workOf(nest.sizeOf(outer) * blocks);
}
