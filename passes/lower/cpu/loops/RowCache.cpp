//===- RowCache.cpp - what a row kernel computes once for several levels --===//
#include "passes/lower/cpu/loops/RowCache.h"
#include "passes/lower/common/Indices.h"
#include "passes/target/CpuCaches.h"
#include "passes/target/Rates.h"

#include "ir/ops/Scalar.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::lower::cpu;

/// The most scratch for saved rows.
static constexpr int64_t kScratchBytes = caches::kSecond / 2;
/// The work of a chain, in instructions on vectors, from which on it pays.
static constexpr int64_t kWorthSaving = 4;

/// The instructions of one element, roughly.
static int64_t workOf(Operation *op) {
  auto pointwise = dyn_cast<PointwiseOpInterface>(op);
  if (!pointwise)
    return 0;
  if (isExpensive(pointwise))
    return 16;
  return isa<DivOp, SqrtOp>(op) ? 5 : 1;
}

namespace {
class Chooser {
public:
  Chooser(Block &region, const LoopNest &nest);
  std::vector<CachedRow> choose();

private:
  using Places = DenseMap<Value, SmallVector<Place, 1>>;

  void visit(Value value, const Place &place, unsigned level, Places &places);
  Places placesAt(unsigned level);
  int64_t chainWork(Value value, const Place &place, unsigned level);
  bool dependsOnReduced(const Place &place) const;
  void consider(PointwiseOpInterface op);

  Block &region;
  const LoopNest &nest;
  MLIRContext *context;
  AffineExpr own;
  std::vector<CachedRow> saved;
  /// What each level uses, as things are saved now.
  std::vector<Places> levels;
  /// What results with one element for each row are computed from: such an
  /// element may be one of a row, as a column that is sliced out, and has no
  /// loop to be read in.
  Places besideLoops;
  int64_t bytes = 0;
};
} // namespace

Chooser::Chooser(Block &region, const LoopNest &nest)
    : region(region), nest(nest), context(region.getParentOp()->getContext()) {
  SmallVector<AffineExpr> identity =
      lower::dimensions(context, nest.sizes.size());
  own = simplifyIndex(linearize(identity, nest.sizes, context), nest.sizes);
  for (const LoopNest::Root &root : nest.roots)
    if (!root.isFull && !root.isPartial) {
      Place place;
      place.index.assign(root.index.begin(), root.index.end());
      visit(root.value, place, nest.levels, besideLoops);
    }
}

/// Collects what the element of `value` is computed from in loops of `level`.
void Chooser::visit(Value value, const Place &place, unsigned level,
                    Places &places) {
  Operation *op = value.getDefiningOp();
  if (!op || isa<ReductionOpInterface>(op) ||
      llvm::is_contained(places[value], place))
    return;
  places[value].push_back(place);
  if (llvm::any_of(saved, [&](const CachedRow &row) {
        return row.value == value && row.level < level;
      }))
    return;
  if (auto view = dyn_cast<ViewOpInterface>(op)) {
    Place source;
    SmallVector<IndexGuard> inside;
    if (throughView(view, place, nest.sizes, source, inside))
      visit(op->getOperand(0), source, level, places);
    return;
  }
  for (Value operand : op->getOperands())
    visit(operand, place, level, places);
}

Chooser::Places Chooser::placesAt(unsigned level) {
  Places places;
  auto start = [&](Value value, ArrayRef<AffineExpr> index) {
    Place place;
    place.index.assign(index.begin(), index.end());
    visit(value, place, level, places);
  };
  for (const auto *list : {&nest.reductions, &nest.partials})
    for (const LoopNest::Reduction &reduction : *list)
      if (reduction.level == level)
        start(reduction.op->getOperand(0), reduction.index);
  for (const LoopNest::Root &root : nest.roots)
    if (root.isFull && root.level == level)
      start(root.value, root.index);
  for (const CachedRow &row : saved)
    if (row.level == level)
      start(row.value, row.index);
  return places;
}

bool Chooser::dependsOnReduced(const Place &place) const {
  for (AffineExpr expr : place.index)
    for (unsigned d : nest.dims(/*isReduced=*/true))
      if (expr.isFunctionOfDim(d))
        return true;
  return false;
}

/// The work of making an element in loops of `level` from what they load; what
/// is the same for the whole row does not count.
int64_t Chooser::chainWork(Value value, const Place &place, unsigned level) {
  Places places;
  visit(value, place, level, places);
  int64_t work = 0;
  for (auto &[made, at] : places)
    for (const Place &one : at)
      if (dependsOnReduced(one))
        work += workOf(made.getDefiningOp());
  return work;
}

void Chooser::consider(PointwiseOpInterface op) {
  Value value = op->getResult(0);
  if (llvm::any_of(saved,
                   [&](const CachedRow &row) { return row.value == value; }))
    return;
  auto type = cast<RankedTensorType>(value.getType());
  int64_t rowBytes = nest.reducedSize() *
                     elementBytes(scalar::computeType(type.getElementType()));
  rowBytes = (rowBytes + 63) / 64 * 64;
  if (bytes + rowBytes > kScratchBytes)
    return;
  SmallVector<unsigned> users;
  SmallVector<Place> all;
  for (auto [level, places] : llvm::enumerate(levels))
    if (auto found = places.find(value); found != places.end()) {
      users.push_back(level);
      llvm::append_range(all, found->second);
    }
  if (users.size() < 2 || besideLoops.contains(value) ||
      !llvm::all_equal(all) || !all[0].guards.empty() ||
      simplifyIndex(linearize(all[0].index, type.getShape(), context),
                    nest.sizes) != own ||
      chainWork(value, all[0], users[1]) < kWorthSaving)
    return;
  saved.push_back(
      {value, users[0],
       SmallVector<AffineExpr>(all[0].index.begin(), all[0].index.end())});
  bytes += rowBytes;
  for (unsigned level : users)
    levels[level] = placesAt(level);
}

std::vector<CachedRow> Chooser::choose() {
  for (unsigned level = 0; level <= nest.levels; ++level)
    levels.push_back(placesAt(level));
  for (bool expensive : {true, false})
    for (Operation &op : llvm::reverse(region))
      if (auto pointwise = dyn_cast<PointwiseOpInterface>(op);
          pointwise && (!expensive || isExpensive(pointwise)))
        consider(pointwise);
  return std::move(saved);
}

std::vector<CachedRow> lower::cpu::chooseCachedRows(Block &region,
                                                    const LoopNest &nest) {
  return Chooser(region, nest).choose();
}
