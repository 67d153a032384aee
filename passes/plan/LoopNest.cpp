//===- LoopNest.cpp - which loops a group of ops can run in ---------------===//
#include "passes/plan/LoopNest.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/LoopSpaces.h"
#include "passes/target/ByteProducts.h"
#include "passes/target/Target.h"

#include "ir/RowPadding.h"
#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tandem;

using IsInside = llvm::function_ref<bool(Operation *)>;
using Exprs = SmallVector<AffineExpr>;

static RankedTensorType typeOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t n = 1;
  for (int64_t size : sizes)
    n *= size;
  return n;
}

static int64_t productWhere(ArrayRef<int64_t> sizes, ArrayRef<bool> reduced,
                            bool which) {
  int64_t n = 1;
  for (auto [size, isReduced] : llvm::zip_equal(sizes, reduced))
    if (isReduced == which)
      n *= size;
  return n;
}

int64_t LoopNest::keptSize() const {
  return productWhere(sizes, reduced, false);
}
int64_t LoopNest::reducedSize() const {
  return productWhere(sizes, reduced, true);
}

SmallVector<unsigned> LoopNest::dims(bool isReduced) const {
  SmallVector<unsigned> result;
  for (auto [d, which] : llvm::enumerate(reduced))
    if (which == isReduced)
      result.push_back(d);
  return result;
}

int64_t LoopNest::sizeOf(ArrayRef<unsigned> dims) const {
  int64_t n = 1;
  for (unsigned d : dims)
    n *= sizes[d];
  return n;
}

SmallVector<const LoopNest::Reduction *>
LoopNest::reductionsAt(unsigned level) const {
  SmallVector<const Reduction *> result;
  for (const Reduction &reduction : reductions)
    if (reduction.level == level)
      result.push_back(&reduction);
  return result;
}

bool LoopNest::hasFullRootAt(unsigned level) const {
  return llvm::any_of(roots, [&](const Root &root) {
    return root.isFull && root.level == level;
  });
}

bool LoopNest::hasPartialAt(unsigned level) const {
  return llvm::any_of(partials, [&](const Reduction &partial) {
    return partial.level == level;
  });
}

void LoopNest::shift(MutableArrayRef<AffineExpr> index, unsigned dim,
                     int64_t low) const {
  for (AffineExpr &expr : index) {
    AffineExpr i = getAffineDimExpr(dim, expr.getContext());
    expr = simplifyIndex(expr.replace(i, i + low), sizes);
  }
}

void LoopNest::restrict(unsigned dim, int64_t low, int64_t high) {
  sizes[dim] = high - low;
  for (Root &root : roots)
    shift(root.index, dim, low);
  for (auto *list : {&reductions, &partials})
    for (Reduction &reduction : *list)
      shift(reduction.index, dim, low);
  for (Access &read : reads) {
    shift(read.place.index, dim, low);
    for (IndexGuard &guard : read.place.guards)
      shift(guard.expr, dim, low);
  }
}

namespace {
/// Follows the values of a group through a space.
class NestSearch {
public:
  NestSearch(IsInside isInside, MLIRContext *context)
      : isInside(isInside), context(context) {}

  /// Builds the nest over `space`, whose dimension d is index[d] in terms of
  /// the nest's dimensions, which have `sizes` and `reduced`.
  bool build(const LoopSpace &space, ArrayRef<AffineExpr> index,
             ArrayRef<Value> results, LoopNest &nest);

  /// The expressions that decide whether dimensions can be joined.
  Exprs positions(const LoopNest &nest);

private:
  AffineExpr position(ArrayRef<AffineExpr> index, bool kept, bool reduced);
  bool walk(Value value, const Place &place, unsigned &level);
  bool addReduction(ReductionOpInterface op, unsigned &level);
  int64_t partsOf(Value result);
  bool addPartial(Value result, int64_t parts);
  void sortReductions();

  IsInside isInside;
  MLIRContext *context;
  const LoopSpace *space = nullptr;
  Exprs index;
  AffineExpr keptPosition, reducedPosition, fullPosition;
  LoopNest *nest = nullptr;
  DenseMap<Value, SmallVector<std::pair<Place, unsigned>, 1>> seen;
  Exprs others; // guards and iotas
};
} // namespace

/// The row-major position of the space's index among its kept dimensions, its
/// reduced ones, or both.
AffineExpr NestSearch::position(ArrayRef<AffineExpr> index, bool kept,
                                bool reduced) {
  Exprs part;
  SmallVector<int64_t> sizes;
  for (auto [i, size, isReduced] :
       llvm::zip_equal(index, space->sizes, space->reduced))
    if (isReduced ? reduced : kept) {
      part.push_back(i);
      sizes.push_back(size);
    }
  return simplifyIndex(linearize(part, sizes, context), nest->sizes);
}

bool NestSearch::addReduction(ReductionOpInterface op, unsigned &level) {
  for (const LoopNest::Reduction &known : nest->reductions)
    if (known.op == op) {
      level = known.level + 1;
      return true;
    }
  ArrayRef<int64_t> shape = typeOf(op->getOperand(0)).getShape();
  SmallVector<int64_t> kept, reduced;
  for (auto [d, size] : llvm::enumerate(shape)) {
    bool isReduced =
        llvm::is_contained(op.getReducedDims(), static_cast<int64_t>(d));
    (isReduced ? reduced : kept).push_back(size);
  }
  if (product(kept) != nest->keptSize() ||
      product(reduced) != nest->reducedSize())
    return false;
  Exprs keptIndex = delinearize(keptPosition, kept, nest->sizes);
  Exprs reducedIndex = delinearize(reducedPosition, reduced, nest->sizes);
  Place place;
  auto *nextKept = keptIndex.begin(), *nextReduced = reducedIndex.begin();
  for (size_t d = 0; d < shape.size(); ++d)
    place.index.push_back(
        llvm::is_contained(op.getReducedDims(), static_cast<int64_t>(d))
            ? *nextReduced++
            : *nextKept++);
  unsigned needs = 0;
  if (!walk(op->getOperand(0), place, needs))
    return false;
  nest->reductions.push_back(
      {op, needs, Exprs(place.index.begin(), place.index.end())});
  level = needs + 1;
  return true;
}

/// The parts of a partial result: the elements of the dimensions in front of
/// those that are reduced, where these are the inner ones of the kept indices
/// and those behind are the reduced ones. 0 of any other result.
int64_t NestSearch::partsOf(Value result) {
  auto op = result.getDefiningOp<ReductionOpInterface>();
  if (!op || !isInside(op))
    return 0;
  // Rows: no index is kept within a reduced one.
  ArrayRef<bool> isReduced = space->reduced;
  if (isReduced.empty() || isReduced.front() || !llvm::is_sorted(isReduced) ||
      !isReduced.back())
    return 0;
  ArrayRef<int64_t> dims = op.getReducedDims();
  ArrayRef<int64_t> shape = typeOf(op->getOperand(0)).getShape();
  if (dims.empty() ||
      dims.back() - dims.front() + 1 != static_cast<int64_t>(dims.size()))
    return 0;
  int64_t parts = product(shape.take_front(dims.front()));
  bool fits =
      product(shape.drop_front(dims.back() + 1)) == nest->reducedSize() &&
      product(shape.take_front(dims.back() + 1)) == nest->keptSize();
  return fits && parts > 1 ? parts : 0;
}

/// Numbers of the partial results of one part: they are summed in a core's own
/// cache.
static constexpr int64_t kMostPartials = 1 << 16;
/// For CUDA a warp has a row, and its threads have the sums of their elements
/// in registers: at most 32 of a row, and 72 sums of 4 bytes.
static constexpr int64_t kLongestRowOfWarp = 32 * 32,
                         kMostPartialsOfWarp = 32 * 72;
/// A part has one block there: there are that many parts, or their rows are
/// few.
static constexpr int64_t kEnoughParts = 128, kFewRows = 64;

/// Whether CUDA's loops over rows can make `count` partial results of this
/// type, and should.
static bool areOfWarps(const LoopNest &nest, int64_t count,
                       RankedTensorType type) {
  int64_t row = nest.reducedSize(), rows = nest.keptSize() / nest.parts;
  int64_t words = (type.getElementTypeBitWidth() + 31) / 32;
  return isa<FloatType>(type.getElementType()) && row <= kLongestRowOfWarp &&
         count * row * words <= kMostPartialsOfWarp &&
         (nest.parts >= kEnoughParts || rows <= kFewRows);
}

bool NestSearch::addPartial(Value result, int64_t parts) {
  if (nest->partials.empty())
    nest->parts = parts;
  int64_t count = static_cast<int64_t>(nest->partials.size()) + 1;
  auto op = result.getDefiningOp<ReductionOpInterface>();
  if (count * nest->reducedSize() > kMostPartials ||
      (isForCuda(op) && !areOfWarps(*nest, count, typeOf(result))))
    return false;
  Place place;
  for (AffineExpr expr : delinearize(
           fullPosition, typeOf(op->getOperand(0)).getShape(), nest->sizes))
    place.index.push_back(expr);
  unsigned level = 0;
  if (parts != nest->parts || !walk(op->getOperand(0), place, level))
    return false;
  nest->partials.push_back(
      {op, level, Exprs(place.index.begin(), place.index.end())});
  nest->roots.push_back({result, /*isFull=*/false, level, {}, true, {}});
  return true;
}

void NestSearch::sortReductions() {
  for (const LoopNest::Reduction &reduction : nest->reductions)
    nest->levels = std::max(nest->levels, reduction.level + 1);
  SmallVector<LoopNest::Reduction> found = std::move(nest->reductions);
  nest->reductions.clear();
  for (unsigned level = 0; level < nest->levels; ++level)
    for (const LoopNest::Reduction &reduction : found)
      if (reduction.level == level)
        nest->reductions.push_back(reduction);
}

bool NestSearch::walk(Value value, const Place &place, unsigned &level) {
  for (auto &[known, knownLevel] : seen[value])
    if (known == place) {
      level = std::max(level, knownLevel);
      return true;
    }
  unsigned own = 0;
  Operation *op = value.getDefiningOp();
  if (!op || !isInside(op)) {
    nest->reads.push_back({value, place});
  } else if (auto view = dyn_cast<ViewOpInterface>(op)) {
    Place source;
    SmallVector<IndexGuard> inside;
    if (throughView(view, place, nest->sizes, source, inside)) {
      for (const IndexGuard &guard : inside)
        others.push_back(guard.expr);
      if (!walk(op->getOperand(0), source, own))
        return false;
    }
  } else if (isa<PointwiseOpInterface>(op)) {
    for (Value operand : op->getOperands())
      if (!walk(operand, place, own))
        return false;
  } else if (auto reduction = dyn_cast<ReductionOpInterface>(op)) {
    // Only at its own kept index, whatever the guards.
    AffineExpr at = simplifyIndex(
        linearize(place.index, typeOf(value).getShape(), context), nest->sizes);
    if (at != keptPosition || !addReduction(reduction, own))
      return false;
  } else if (auto iota = dyn_cast<IotaOp>(op)) {
    others.push_back(place.index[iota.getDim()]);
  } else if (auto constant = dyn_cast<ConstantOp>(op)) {
    if (!constant.getSplat())
      return false;
  } else {
    return false;
  }
  seen[value].push_back({place, own});
  level = std::max(level, own);
  return true;
}

bool NestSearch::build(const LoopSpace &newSpace, ArrayRef<AffineExpr> newIndex,
                       ArrayRef<Value> results, LoopNest &newNest) {
  space = &newSpace;
  nest = &newNest;
  seen.clear();
  others.clear();
  keptPosition = position(newIndex, true, false);
  reducedPosition = position(newIndex, false, true);
  fullPosition = position(newIndex, true, true);
  int64_t kept = nest->keptSize(), full = kept * nest->reducedSize();
  for (Value yielded : results) {
    Value result = withoutRowPadding(yielded);
    // A partial result is stored as it is.
    if (int64_t parts = result == yielded ? partsOf(result) : 0) {
      if (!addPartial(result, parts))
        return false;
      continue;
    }
    RankedTensorType type = typeOf(result);
    int64_t n = type.getNumElements();
    if (n != kept && n != full)
      return false;
    bool isFull = n == full;
    Place place;
    for (AffineExpr expr : delinearize(isFull ? fullPosition : keptPosition,
                                       type.getShape(), nest->sizes))
      place.index.push_back(expr);
    unsigned level = 0;
    if (!walk(result, place, level))
      return false;
    nest->roots.push_back({result, isFull, level,
                           Exprs(place.index.begin(), place.index.end()),
                           /*isPartial=*/false,
                           SmallVector<int64_t>(typeOf(yielded).getShape())});
  }
  sortReductions();
  return true;
}

Exprs NestSearch::positions(const LoopNest &nest) {
  Exprs result(others);
  auto addPosition = [&](ArrayRef<AffineExpr> index, ArrayRef<int64_t> shape) {
    result.push_back(
        simplifyIndex(linearize(index, shape, context), nest.sizes));
  };
  auto add = [&](ArrayRef<AffineExpr> index, Value value) {
    addPosition(index, typeOf(value).getShape());
  };
  for (const LoopNest::Access &read : nest.reads) {
    add(read.place.index, read.value);
    for (const IndexGuard &guard : read.place.guards)
      result.push_back(guard.expr);
  }
  for (const LoopNest::Root &root : nest.roots)
    if (!root.isPartial)
      addPosition(root.index, root.stored);
  for (const auto &list : {nest.reductions, nest.partials})
    for (const LoopNest::Reduction &reduction : list)
      add(reduction.index, reduction.op->getOperand(0));
  return result;
}

/// Joins neighbouring dimensions that every expression steps through as one:
/// groups[i] lists dimensions of `nest`.
static SmallVector<SmallVector<unsigned>> join(const LoopNest &nest,
                                               ArrayRef<AffineExpr> exprs) {
  SmallVector<SmallVector<unsigned>> groups;
  for (unsigned d = 0; d < nest.sizes.size(); ++d) {
    if (nest.sizes[d] == 1)
      continue;
    bool joins = false;
    if (!groups.empty()) {
      unsigned last = groups.back().back();
      joins = nest.reduced[last] == nest.reduced[d] &&
              llvm::all_of(exprs, [&](AffineExpr expr) {
                auto outer = coefficientOf(expr, last);
                auto inner = coefficientOf(expr, d);
                return outer && inner && *outer == *inner * nest.sizes[d];
              });
    }
    if (joins)
      groups.back().push_back(d);
    else
      groups.push_back({d});
  }
  return groups;
}

std::optional<LoopNest> tandem::findLoopNest(ArrayRef<Value> results,
                                             IsInside isInside,
                                             MLIRContext *context) {
  std::optional<LoopNest> best;
  std::pair<size_t, size_t> bestCost;
  NestSearch finder(isInside, context);
  SmallVector<LoopSpace> spaces =
      loopSpaces(llvm::map_to_vector(results, withoutRowPadding), isInside);
  bool isCut = llvm::all_of(
      results, [](Value value) { return !isForCuda(value.getDefiningOp()); });
  for (size_t i = 0, count = spaces.size(); i < spaces.size(); ++i) {
    LoopSpace space = spaces[i];
    Exprs identity;
    for (size_t d = 0; d < space.sizes.size(); ++d)
      identity.push_back(getAffineDimExpr(d, context));
    LoopNest wide;
    wide.sizes = space.sizes;
    wide.reduced = space.reduced;
    if (!finder.build(space, identity, results, wide))
      continue;
    if (isCut && i < count)
      if (std::optional<LoopSpace> pieces =
              cutSpace(space, finder.positions(wide)))
        spaces.push_back(std::move(*pieces));

    LoopNest nest;
    Exprs index(space.sizes.size(), getAffineConstantExpr(0, context));
    for (auto [i, group] :
         llvm::enumerate(join(wide, finder.positions(wide)))) {
      SmallVector<int64_t> groupSizes;
      for (unsigned d : group)
        groupSizes.push_back(space.sizes[d]);
      int64_t size = 1;
      for (int64_t s : groupSizes)
        size *= s;
      nest.sizes.push_back(size);
      nest.reduced.push_back(space.reduced[group[0]]);
      Exprs parts =
          delinearize(getAffineDimExpr(i, context), groupSizes, nest.sizes);
      for (auto [d, part] : llvm::zip_equal(group, parts))
        index[d] = part;
    }
    if (!finder.build(space, index, results, nest))
      continue;
    auto cost = std::make_pair(static_cast<size_t>(llvm::count_if(
                                   finder.positions(nest), hasDivision)),
                               nest.sizes.size());
    if (!best || cost < bestCost) {
      best = std::move(nest);
      bestCost = cost;
    }
  }
  return best;
}

Value tandem::withoutRowPadding(Value yielded) {
  Operation *op = yielded.getDefiningOp();
  return op && isRowPadding(op) && isForCuda(op) ? op->getOperand(0) : yielded;
}

bool tandem::makesTileSums(Operation *anchor) {
  constexpr int64_t largestTile = 256;
  auto product = dyn_cast_or_null<MatmulOp>(anchor);
  if (!product || !isForCuda(product))
    return false;
  RankedTensorType type = product.getY().getType();
  Type element = type.getElementType();
  return type.getRank() == 2 &&
         (element.isBF16() || element.isF16() ||
          (element.isF32() && multipliesBytes(product))) &&
         type.getDimSize(0) % largestTile == 0 &&
         type.getDimSize(1) % largestTile == 0;
}

Value tandem::summedInTiles(Value sum, Operation *anchor) {
  auto op = sum.getDefiningOp<ReductionOpInterface>();
  if (!op || !isa<ReduceSumOp, ReduceMaxOp>(op) || !makesTileSums(anchor))
    return {};
  RankedTensorType type = typeOf(op->getOperand(0));
  RankedTensorType product = cast<MatmulOp>(anchor).getY().getType();
  if (isa<ReduceMaxOp>(op) && !product.getElementType().isF32())
    return {};
  ArrayRef<int64_t> made = product.getShape();
  bool isSum = type.getRank() == 3 && type.getElementType().isF32() &&
               type.getDimSize(0) * kRowsOfTileSum == made[0] &&
               type.getDimSize(1) == kRowsOfTileSum &&
               type.getDimSize(2) == made[1] &&
               op.getReducedDims() == ArrayRef<int64_t>{1};
  return isSum ? op->getOperand(0) : Value();
}

SmallVector<SmallVector<Value>> tandem::partsOf(KernelOp kernel) {
  OperandRange results =
      kernel.getBody().front().getTerminator()->getOperands();
  SmallVector<int64_t> sizes{static_cast<int64_t>(results.size())};
  if (auto parts = kernel.getParts())
    sizes.assign(parts->begin(), parts->end());
  SmallVector<SmallVector<Value>> lists;
  size_t first = 0;
  for (int64_t size : sizes) {
    lists.emplace_back(results.begin() + first, results.begin() + first + size);
    first += size;
  }
  return lists;
}

std::optional<std::vector<LoopNest>> tandem::findLoopNests(KernelOp kernel) {
  Block *body = &kernel.getBody().front();
  std::vector<LoopNest> nests;
  for (const SmallVector<Value> &results : partsOf(kernel)) {
    if (results.empty())
      return std::nullopt;
    auto nest = findLoopNest(
        results, [&](Operation *op) { return op->getBlock() == body; },
        kernel.getContext());
    if (!nest)
      return std::nullopt;
    nests.push_back(std::move(*nest));
  }
  return nests;
}

std::optional<LoopNest> tandem::findLoopNest(KernelOp kernel) {
  Block *body = &kernel.getBody().front();
  SmallVector<Value> results(body->getTerminator()->getOperands());
  if (results.empty())
    return std::nullopt;
  return findLoopNest(
      results, [&](Operation *op) { return op->getBlock() == body; },
      kernel.getContext());
}
