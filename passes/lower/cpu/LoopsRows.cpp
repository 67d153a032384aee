//===- LoopsRows.cpp - loop kernels whose innermost index is reduced ------===//
#include "passes/lower/cpu/LoopEmitter.h"

#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::cpu;
using namespace tandem::lower;

/// The longest sum that is not made of partial sums: vectorized, each lane adds
/// some dozens of numbers.
static constexpr int64_t kPartialLength = 4096;
/// The longest row that is added in the order of its elements. What is longer
/// is added in any order that the processor's vectors ask for.
static constexpr int64_t kOrderedLength = 16;
/// The most scratch for saved rows: they shall stay in the second-level cache.
static constexpr int64_t kScratchBytes = 64 * 1024;

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

Work LoopEmitter::emitRows() {
  SmallVector<unsigned> kept = nest.dims(/*reduced=*/false);
  rowPosition = getAffineConstantExpr(0, b.getContext());
  for (unsigned d : nest.dims(/*reduced=*/true))
    rowPosition =
        rowPosition * nest.sizes[d] + getAffineDimExpr(d, b.getContext());
  chooseSaved();
  int64_t scratchBytes = 0;
  for (Saved &row : saved) {
    Type element = cast<RankedTensorType>(row.value.getType()).getElementType();
    Type compute = scalar::computeType(element);
    auto type = MemRefType::get({nest.reducedSize()}, compute);
    row.row = memref::ViewOp::create(b, loc, type, body.scratch,
                                     constant(scratchBytes), ValueRange{});
    int64_t bytes = nest.reducedSize() * elementBytes(compute);
    scratchBytes += (bytes + 63) / 64 * 64;
  }
  scf::ForOp items = loop(body.begin, body.end, [&](Value item) {
    setIndices(kept, item);
    for (unsigned level = 0; level <= nest.levels; ++level)
      emitRowLevel(level);
    for (unsigned d : nest.dims(/*reduced=*/true))
      ivs[d] = constant(0); // not used by elements of kept indices
    elements.enter(ivs, nest.sizes);
    storeRoots([](const LoopNest::Root &root) { return !root.isFull; });
  });
  if (!nest.sizes.empty() && nest.sizes.back() > kOrderedLength)
    keepApart(items);
  return workOf(nest.sizeOf(kept), scratchBytes);
}

void LoopEmitter::emitRowLevel(unsigned level) {
  auto reductions = nest.reductionsAt(level);
  if (reductions.empty() && !nest.hasFullRootAt(level))
    return;
  Values totals;
  for (const LoopNest::Reduction *reduction : reductions)
    totals.push_back(lower::neutral(b, loc, *reduction));
  totals =
      rowLoops(level, nest.dims(/*reduced=*/true), totals, /*isOuter=*/false);
  for (auto [reduction, total] : llvm::zip_equal(reductions, totals))
    elements.bind(
        reduction->op->getResult(0),
        [total](OpBuilder &, Location, const Place &) { return total; });
  for (Saved &row : saved)
    if (row.level == level)
      elements.bind(
          row.value,
          [this, &row](OpBuilder &b, Location loc, const Place &) -> Value {
            Value position =
                elements.expand(b, simplifyIndex(rowPosition, nest.sizes));
            return memref::LoadOp::create(b, loc, row.row, position);
          });
}

/// The loops over the reduced dimensions `dims`: returns the totals after them.
LoopEmitter::Values LoopEmitter::rowLoops(unsigned level,
                                          ArrayRef<unsigned> dims,
                                          ValueRange totals, bool isOuter) {
  auto reductions = nest.reductionsAt(level);
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

/// One loop over a reduced dimension: stores what belongs to this level and
/// returns the reductions over it.
LoopEmitter::Values LoopEmitter::innermostRow(unsigned level, unsigned dim,
                                              Value low, Value high) {
  auto reductions = nest.reductionsAt(level);
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
        Value position =
            elements.expand(b, simplifyIndex(rowPosition, nest.sizes));
        memref::StoreOp::create(b, loc, x, row.row, position);
      }
    storeRoots([&](const LoopNest::Root &root) {
      return root.isFull && root.level == level;
    });
    return next;
  };
  if (dim == ~0u)
    return code(init);
  return loop(low, high, init, [&](Value iv, ValueRange carried) {
    ivs[dim] = iv;
    return code(carried);
  });
}

/// The last expensive values of the chains that several levels need, each if it
/// has one element per index of the nest, used at that index only.
void LoopEmitter::chooseSaved() {
  Block *region = &kernel.getBody().front();
  using Places = DenseMap<Value, SmallVector<Place, 1>>;
  std::function<void(Value, const Place &, Places &)> visit =
      [&](Value value, const Place &place, Places &places) {
        Operation *op = value.getDefiningOp();
        if (!op || isa<ReductionOpInterface>(op) ||
            llvm::is_contained(places[value], place))
          return;
        places[value].push_back(place);
        if (llvm::any_of(saved,
                         [&](const Saved &row) { return row.value == value; }))
          return;
        Place source;
        SmallVector<IndexGuard> inside;
        if (auto view = dyn_cast<ViewOpInterface>(op)) {
          if (throughView(view, place, nest.sizes, source, inside))
            visit(op->getOperand(0), source, places);
          return;
        }
        for (Value operand : op->getOperands())
          visit(operand, place, places);
      };
  auto placesAt = [&](unsigned level) {
    Places places;
    auto start = [&](Value value, ArrayRef<AffineExpr> index) {
      Place place;
      place.index.assign(index.begin(), index.end());
      visit(value, place, places);
    };
    for (const LoopNest::Reduction *reduction : nest.reductionsAt(level))
      start(reduction->op->getOperand(0), reduction->index);
    for (const LoopNest::Root &root : nest.roots)
      if (root.isFull && root.level == level)
        start(root.value, root.index);
    return places;
  };

  SmallVector<AffineExpr> identity;
  for (unsigned d = 0; d < nest.sizes.size(); ++d)
    identity.push_back(getAffineDimExpr(d, b.getContext()));
  AffineExpr own = simplifyIndex(
      linearize(identity, nest.sizes, b.getContext()), nest.sizes);
  int64_t bytes = 0;
  for (Operation &op : llvm::reverse(*region)) {
    auto pointwise = dyn_cast<PointwiseOpInterface>(op);
    if (!pointwise || !isExpensive(pointwise))
      continue;
    Value value = op.getResult(0);
    auto type = cast<RankedTensorType>(value.getType());
    int64_t rowBytes = nest.reducedSize() *
                       elementBytes(scalar::computeType(type.getElementType()));
    rowBytes = (rowBytes + 63) / 64 * 64;
    if (bytes + rowBytes > kScratchBytes)
      continue;
    SmallVector<unsigned> levels;
    SmallVector<Place> all;
    for (unsigned level = 0; level <= nest.levels; ++level) {
      Places places = placesAt(level);
      auto found = places.find(value);
      if (found == places.end())
        continue;
      levels.push_back(level);
      llvm::append_range(all, found->second);
    }
    if (levels.size() < 2 || !llvm::all_equal(all) || !all[0].guards.empty() ||
        simplifyIndex(linearize(all[0].index, type.getShape(), b.getContext()),
                      nest.sizes) != own)
      continue;
    saved.push_back(
        {value, levels[0],
         SmallVector<AffineExpr>(all[0].index.begin(), all[0].index.end()),
         Value()});
    bytes += rowBytes;
  }
}
