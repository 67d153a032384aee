//===- LoopsRows.cpp - loop kernels whose innermost index is reduced ------===//
#include "passes/lower/common/AnchorCode.h"
#include "passes/lower/cpu/loops/LoopEmitter.h"

#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;
using namespace tandem::lower;

/// The longest sum that is not made of partial sums: vectorized, each lane adds
/// some dozens of numbers.
static constexpr int64_t kPartialLength = 4096;
/// The longest row that is added in the order of its elements: shorter than any
/// processor's vector. What is longer is added in any order that vectors ask
/// for.
static constexpr int64_t kOrderedLength = 15;
/// A row of such a length has code for each of its elements, so that LLVM can
/// make vectors of the same element of several rows.
static bool isShort(const LoopNest &nest) {
  int64_t size = nest.reducedSize();
  return nest.partials.empty() && size > 1 && size <= kOrderedLength &&
         nest.dims(/*isReduced=*/true).size() == 1;
}

/// Keeps the rows of different items apart: where LLVM took several of them
/// together and the last ones alone, these would be added in another order, and
/// how the items are split would show.
static void keepApart(scf::ForOp items) {
  MLIRContext *context = items.getContext();
  auto yes = BoolAttr::get(context, true);
  auto vectorize = LLVM::LoopVectorizeAttr::get(context, /*disable=*/yes, {},
                                                {}, {}, {}, {}, {});
  auto unroll = LLVM::LoopUnrollAttr::get(context, /*disable=*/yes, {}, {}, {},
                                          {}, {}, {});
  auto annotation = LLVM::LoopAnnotationAttr::get(
      context, /*disableNonforced=*/{}, vectorize, /*interleave=*/{}, unroll,
      /*unrollAndJam=*/{}, /*licm=*/{}, /*distribute=*/{}, /*pipeline=*/{},
      /*peeled=*/{}, /*unswitch=*/{}, /*mustProgress=*/{},
      /*isVectorized=*/{}, /*startLoc=*/{}, /*endLoc=*/{},
      /*parallelAccesses=*/{});
  items->setAttr("loop_annotation", annotation);
}

static Type computeTypeOf(Value value) {
  return scalar::computeType(
      cast<RankedTensorType>(value.getType()).getElementType());
}

/// Of an element in scratch: stores of single bits become no vectors.
static Type scratchTypeOf(Value value) {
  Type type = computeTypeOf(value);
  return type.isInteger(1) ? IntegerType::get(type.getContext(), 8) : type;
}

int64_t LoopEmitter::rowBytes(Type element) const {
  int64_t bytes = nest.reducedSize() * elementBytes(element);
  return (bytes + 63) / 64 * 64;
}

SmallVector<Type> LoopEmitter::rowsInScratch(ArrayRef<CachedRow> saved) const {
  SmallVector<Type> types;
  if (!isShort(nest))
    for (const CachedRow &row : saved)
      types.push_back(scratchTypeOf(row.value));
  for (const LoopNest::Reduction &partial : nest.partials)
    types.push_back(computeTypeOf(partial.op->getResult(0)));
  return types;
}

int64_t LoopEmitter::scratchOfRows() const {
  int64_t bytes = 0;
  for (Type type : rowsInScratch(
           chooseCachedRows(KernelOp(kernel).getBody().front(), nest)))
    bytes += rowBytes(type);
  return bytes;
}

ScheduleOverride LoopEmitter::cutRows() { return cutAhead(); }

Work LoopEmitter::emitRows() {
  SmallVector<unsigned> kept = nest.dims(/*reduced=*/false);
  rowPosition = getAffineConstantExpr(0, b.getContext());
  for (unsigned d : nest.dims(/*reduced=*/true))
    rowPosition =
        rowPosition * nest.sizes[d] + getAffineDimExpr(d, b.getContext());
  isWrittenOut = isShort(nest);
  if (SmallVector<unsigned> reduced = nest.dims(/*isReduced=*/true);
      reduced.size() == 1 && !isWrittenOut)
    for (const LoopNest::Reduction &reduction : nest.reductions)
      if (auto element = findOneHotReduction(reduction, nest, reduced[0]))
        picked.insert({reduction.op, std::move(*element)});
  std::vector<CachedRow> worthSaving =
      chooseCachedRows(kernel.getBody().front(), nest);
  Values rows;
  int64_t scratchBytes = 0;
  for (Type type : rowsInScratch(worthSaving)) {
    rows.push_back(memref::ViewOp::create(
        b, loc, MemRefType::get({nest.reducedSize()}, type), body.scratch,
        constant(scratchBytes), ValueRange{}));
    scratchBytes += rowBytes(type);
  }
  for (auto [i, row] : llvm::enumerate(worthSaving))
    saved.push_back({std::move(row), isWrittenOut ? Value() : rows[i]});
  partials.assign(rows.end() - nest.partials.size(), rows.end());
  bool staysApart = !nest.sizes.empty() && nest.sizes.back() > kOrderedLength;
  auto overRows = [&](Value low, Value high) {
    scf::ForOp rows =
        loop(low, high, [&](Value position) { emitRow(position); });
    if (staysApart)
      keepApart(rows);
  };
  if (partials.empty()) {
    overRows(body.begin, body.end);
    return workOf(nest.keptSize(), scratchBytes);
  }
  scf::ForOp items = loop(body.begin, body.end, [&](Value item) {
    overReduced([&](Value position) {
      for (auto [partial, row] : llvm::zip_equal(nest.partials, partials))
        memref::StoreOp::create(b, loc, lower::neutral(b, loc, partial), row,
                                position);
    });
    auto [low, high] =
        bounds(item, nest.keptSize() / nest.parts, nest.keptSize());
    overRows(low, high);
    overReduced([&](Value position) { storePartials(item, position); });
  });
  if (staysApart)
    keepApart(items);
  return workOf(nest.parts, scratchBytes);
}

/// One loop over the reduced indices, by their joint position.
void LoopEmitter::overReduced(llvm::function_ref<void(Value)> code) {
  loop(nest.reducedSize(), code);
}

void LoopEmitter::storePartials(Value item, Value position) {
  size_t next = 0;
  for (auto [root, output] : llvm::zip_equal(nest.roots, body.outputs)) {
    if (!root.isPartial)
      continue;
    Value sum = memref::LoadOp::create(b, loc, partials[next++], position);
    Value first =
        arith::MulIOp::create(b, loc, item, constant(nest.reducedSize()));
    lower::storeElement(
        b, loc, cast<RankedTensorType>(root.value.getType()).getElementType(),
        sum, lower::flatten(b, loc, output),
        arith::AddIOp::create(b, loc, first, position));
  }
}

/// All levels of the kept index at a joint position.
void LoopEmitter::emitRow(Value position) {
  SmallVector<unsigned> kept = nest.dims(/*reduced=*/false);
  auto emitLevels = [&](llvm::function_ref<void(unsigned)> before) {
    for (unsigned level = 0; level <= nest.levels; ++level) {
      before(level);
      emitRowLevel(level);
    }
    for (unsigned d : nest.dims(/*reduced=*/true))
      ivs[d] = constant(0); // not used by elements of kept indices
    elements.enter(ivs, nest.sizes);
    storeRoots([](const LoopNest::Root &root) {
      return !root.isFull && !root.isPartial;
    });
    // Another piece has its own.
    for (Saved &row : saved) {
      elements.unbind(row.value);
      row.elements.clear();
    }
    for (const LoopNest::Reduction &reduction : nest.reductions)
      elements.unbind(reduction.op->getResult(0));
  };
  // The picked elements' indices are those of the whole nest.
  if (!findPieces() || !picked.empty())
    return emitLevels([&](unsigned level) {
      prefetchNextRow(position, level);
      setIndices(kept, position);
    });
  for (unsigned level = 0; level <= nest.levels; ++level)
    prefetchNextRow(position, level);
  setIndices(kept, position);
  whereReadsAreKnown([&] { emitLevels([](unsigned) {}); });
}

SmallVector<const LoopNest::Reduction *>
LoopEmitter::reductionsInLoops(unsigned level) const {
  auto reductions = nest.reductionsAt(level);
  llvm::erase_if(reductions, [&](const LoopNest::Reduction *reduction) {
    return picked.contains(reduction->op);
  });
  return reductions;
}

/// The one element that such a sum is; it is read where there is one.
Value LoopEmitter::emitPicked(const LoopNest::Reduction &reduction,
                              const OneHotReduction &picked) {
  unsigned dim = nest.dims(/*isReduced=*/true).front();
  ivs[dim] = constant(0); // `at` does not depend on it
  elements.enter(ivs, nest.sizes);
  Value at = scalar::toIndex(b, loc, elements.at(b, picked.at, picked.atIndex));
  Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, at,
                                       constant(nest.sizes[dim]));
  ivs[dim] = arith::SelectOp::create(b, loc, inside, at, constant(0));
  elements.enter(ivs, nest.sizes);
  Value x = elements.at(b, picked.value, reduction.index);
  Value zero = lower::neutral(b, loc, reduction);
  return combine(reduction, zero, scalar::select(b, loc, inside, x, zero),
                 /*anyOrder=*/false);
}

void LoopEmitter::emitRowLevel(unsigned level) {
  auto bindTotal = [&](const LoopNest::Reduction &reduction, Value total) {
    elements.bind(
        reduction.op->getResult(0),
        [total](OpBuilder &, Location, const Place &) { return total; });
  };
  auto reductions = reductionsInLoops(level);
  bool isLoop =
      !reductions.empty() || nest.hasFullRootAt(level) ||
      nest.hasPartialAt(level) ||
      llvm::any_of(saved, [&](const Saved &row) { return row.level == level; });
  if (isLoop) {
    Values totals;
    for (const LoopNest::Reduction *reduction : reductions)
      totals.push_back(lower::neutral(b, loc, *reduction));
    totals =
        rowLoops(level, nest.dims(/*reduced=*/true), totals, /*isOuter=*/false);
    for (auto [reduction, total] : llvm::zip_equal(reductions, totals))
      bindTotal(*reduction, total);
  }
  for (Saved &row : saved)
    if (row.level == level)
      elements.bind(row.value,
                    [this, &row](OpBuilder &, Location, const Place &) {
                      return savedElement(row);
                    });
  for (const LoopNest::Reduction *reduction : nest.reductionsAt(level))
    if (auto found = picked.find(reduction->op); found != picked.end())
      bindTotal(*reduction, emitPicked(*reduction, found->second));
}

/// The element of a saved row where the code stands.
Value LoopEmitter::savedElement(const Saved &row) {
  if (isWrittenOut)
    return row.elements[writtenPosition];
  return lower::loadElement(
      b, loc, computeTypeOf(row.value), row.row,
      elements.expand(b, simplifyIndex(rowPosition, nest.sizes)));
}

/// `code` for each index of `dim`, one after the other.
LoopEmitter::Values
LoopEmitter::writtenOut(unsigned dim, ValueRange init,
                        llvm::function_ref<Values(ValueRange)> code) {
  Values carried(init);
  for (int64_t i = 0; i < nest.sizes[dim]; ++i) {
    writtenPosition = i;
    ivs[dim] = constant(i);
    carried = code(carried);
  }
  return carried;
}

/// The loops over the reduced dimensions `dims`: returns the totals after them.
LoopEmitter::Values LoopEmitter::rowLoops(unsigned level,
                                          ArrayRef<unsigned> dims,
                                          ValueRange totals, bool isOuter) {
  auto reductions = reductionsInLoops(level);
  auto addTo = [&](ValueRange totals, ArrayRef<Value> partial) {
    Values sums;
    for (auto [reduction, x, y] : llvm::zip_equal(reductions, totals, partial))
      sums.push_back(combine(*reduction, x, y, /*anyOrder=*/false));
    return sums;
  };
  if (dims.size() > 1)
    return loop(constant(0), constant(nest.sizes[dims[0]]), totals,
                [&](Value iv, ValueRange carried) {
                  ivs[dims[0]] = iv;
                  return rowLoops(level, dims.drop_front(), carried, true);
                });
  // A nest without reduced indices has one element to reduce.
  if (dims.empty())
    return addTo(totals, innermostRow(level, ~0u, {}, {}));
  int64_t size = nest.sizes[dims[0]];
  if (size <= kPartialLength) {
    Values partial = innermostRow(level, dims[0], constant(0), constant(size));
    return isOuter ? addTo(totals, partial) : partial;
  }
  int64_t chunks = (size + kPartialLength - 1) / kPartialLength;
  return loop(constant(0), constant(chunks), totals,
              [&](Value chunk, ValueRange carried) {
                auto [low, high] = bounds(chunk, kPartialLength, size);
                return addTo(carried, innermostRow(level, dims[0], low, high));
              });
}

/// Makes quotients in `loop` by a number from before it into products with that
/// number's reciprocal in f64, where a division of vectors of 512 bits keeps
/// its unit busy for 16 cycles. The results are the same to the last bit: a
/// product is off by less than two units in the last place of f64, and the
/// quotient of two f32 is at least 16 away from where f32 are rounded up and
/// down, or is just there, if it is denormal. So it is rounded to 50 bits
/// first.
static void multiplyByReciprocals(scf::ForOp loop) {
  loop->walk([&](arith::DivFOp op) {
    Value divisor = op.getRhs();
    if (!op.getType().isF32() ||
        op.getFastmath() != arith::FastMathFlags::none ||
        !loop.isDefinedOutsideOfLoop(divisor) ||
        loop.isDefinedOutsideOfLoop(op.getLhs()) ||
        matchPattern(divisor, m_Constant()))
      return;
    OpBuilder b(loop);
    Location loc = op.getLoc();
    Type f64 = b.getF64Type(), i64 = b.getI64Type();
    Value one = arith::ConstantOp::create(b, loc, b.getF64FloatAttr(1.0));
    Value half = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(4));
    Value mask = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(-8));
    Value reciprocal = arith::DivFOp::create(
        b, loc, one, arith::ExtFOp::create(b, loc, f64, divisor));
    b.setInsertionPoint(op);
    Value y = arith::MulFOp::create(
        b, loc, arith::ExtFOp::create(b, loc, f64, op.getLhs()), reciprocal);
    Value bits = arith::BitcastOp::create(b, loc, i64, y);
    bits = arith::AddIOp::create(b, loc, bits, half);
    bits = arith::AndIOp::create(b, loc, bits, mask);
    y = arith::BitcastOp::create(b, loc, f64, bits);
    op.replaceAllUsesWith(
        arith::TruncFOp::create(b, loc, op.getType(), y).getResult());
    op.erase();
  });
}

/// Whether the order in which it combines elements shows in its result.
static bool isRounded(const LoopNest::Reduction *reduction) {
  return isa<ReduceSumOp, ReduceProdOp>(reduction->op) &&
         isa<FloatType>(getElementTypeOrSelf(reduction->op->getResult(0)));
}

/// LLVM would choose by what else is in the loop, which is the plan's choice: a
/// sum whose elements are saved had other bits than one whose elements are
/// computed again. So the vectors of partial sums follow from the length and
/// the processor alone. They are as many as the longest chains of steps allow
/// (vectorsTogether), and nothing is unrolled, which would change the order
/// before there are vectors.
void LoopEmitter::fixOrder(scf::ForOp loop, int64_t size) {
  MLIRContext *context = loop.getContext();
  Builder b(context);
  CpuModel target = CpuModel::of(kernel);
  int64_t lanes = target.lanes(Float32Type::get(context));
  int64_t count = std::max<int64_t>(target.registers / 8, 1);
  while (count > 1 && std::min(size, kPartialLength) % (count * lanes) != 0)
    count /= 2;
  auto number = [&](int64_t n) {
    return b.getI32IntegerAttr(static_cast<int32_t>(n));
  };
  auto vectorize =
      LLVM::LoopVectorizeAttr::get(context, /*disable=*/b.getBoolAttr(false),
                                   {}, {}, number(lanes), {}, {}, {});
  auto vectors = LLVM::LoopInterleaveAttr::get(context, number(count));
  auto unroll = LLVM::LoopUnrollAttr::get(context, b.getBoolAttr(true), {}, {},
                                          {}, {}, {}, {});
  loop->setAttr("loop_annotation",
                LLVM::LoopAnnotationAttr::get(
                    context, /*disableNonforced=*/{}, vectorize, vectors,
                    unroll, /*unrollAndJam=*/{}, /*licm=*/{},
                    /*distribute=*/{}, /*pipeline=*/{}, /*peeled=*/{},
                    /*unswitch=*/{}, /*mustProgress=*/{}, /*isVectorized=*/{},
                    /*startLoc=*/{}, /*endLoc=*/{}, /*parallelAccesses=*/{}));
}

/// One loop over a reduced dimension: stores what belongs to this level and
/// returns the reductions over it.
LoopEmitter::Values LoopEmitter::innermostRow(unsigned level, unsigned dim,
                                              Value low, Value high) {
  auto reductions = reductionsInLoops(level);
  bool anyOrder = dim != ~0u && nest.sizes[dim] > kOrderedLength;
  Values init;
  for (const LoopNest::Reduction *reduction : reductions)
    init.push_back(lower::neutral(b, loc, *reduction));
  auto code = [&](ValueRange carried) {
    elements.enter(ivs, nest.sizes);
    Values next;
    for (auto [reduction, sum] : llvm::zip_equal(reductions, carried)) {
      Value x = elements.at(b, reduction->op->getOperand(0), reduction->index);
      next.push_back(combine(*reduction, sum, x, anyOrder));
    }
    for (Saved &row : saved)
      if (row.level == level) {
        Value x = elements.at(b, row.value, row.index);
        if (isWrittenOut) {
          row.elements.push_back(x);
          continue;
        }
        Value position =
            elements.expand(b, simplifyIndex(rowPosition, nest.sizes));
        lower::storeElement(b, loc, computeTypeOf(row.value), x, row.row,
                            position);
      }
    for (auto [partial, row] : llvm::zip_equal(nest.partials, partials))
      if (partial.level == level) {
        Value x = elements.at(b, partial.op->getOperand(0), partial.index);
        Value position =
            elements.expand(b, simplifyIndex(rowPosition, nest.sizes));
        Value sum = memref::LoadOp::create(b, loc, row, position);
        sum = combine(partial, sum, x, /*anyOrder=*/false);
        memref::StoreOp::create(b, loc, sum, row, position);
      }
    storeRoots([&](const LoopNest::Root &root) {
      return root.isFull && root.level == level;
    });
    return next;
  };
  if (dim == ~0u)
    return code(init);
  if (isWrittenOut)
    return writtenOut(dim, init, code);
  Values totals = loop(low, high, init, [&](Value iv, ValueRange carried) {
    ivs[dim] = iv;
    return code(carried);
  });
  auto made = cast<scf::ForOp>(*std::prev(b.getInsertionPoint()));
  if (anyOrder && llvm::any_of(reductions, isRounded))
    fixOrder(made, nest.sizes[dim]);
  else if (nest.sizes[dim] <= kPartialLength)
    vectorize(made, vectorsTogether(made, nest.sizes[dim]), nest.sizes[dim]);
  if (CpuModel::of(kernel).bits >= 512)
    multiplyByReciprocals(made);
  return totals;
}
