//===- SplitReductions.cpp - reductions that lower badly, made better -----===//
#include "passes/Passes.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/LoopNest.h"
#include "passes/target/Target.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/SetVector.h"

namespace tandem {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {
/// What a target's threads need.
struct Limits {
  int64_t largeReduction; ///< elements below which few threads are enough
  int64_t enoughItems;    ///< that keep the threads of a large machine busy
  /// Columns that one item of a kernel takes together, at the least.
  int64_t columnsPerItem;
  int64_t mostParts; ///< partial results per result
  /// Items that reductions of rows with each other get, where they have fewer
  /// than enough; 0: no special care is taken of them.
  int64_t itemsOfRows;
  /// Reductions of rows with each other are always made of parts, which loops
  /// over rows may make beside other things (LoopNest.h).
  bool partsOfRows;

  static Limits of(Operation *op);
};
} // namespace

static constexpr int64_t kFewestParts = 8;

Limits Limits::of(Operation *op) {
  // The items are blocks. Two for each of 132 multiprocessors, whichever GPU it
  // is: how sums are parted decides bits.
  if (isForCuda(op))
    return {1 << 18, 128, 128, 1024, 264, false};
  return {1 << 16, 16, 16, 256, 0, true};
}

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Gives a new op the tags of the reduction that it is a part of.
static Value tagged(Operation *op, Operation *reduction) {
  for (StringRef tag : {kPassAttr, kStreamAttr})
    if (Attribute value = reduction->getAttr(tag))
      op->setAttr(tag, value);
  return op->getResult(0);
}

/// The same kind of reduction, of another tensor over other dimensions.
static Value reduceLike(OpBuilder &b, ReductionOpInterface op, Value x,
                        ArrayRef<int64_t> dims) {
  SmallVector<int64_t> shape;
  for (auto [d, size] : llvm::enumerate(typeOf(x).getShape()))
    if (!llvm::is_contained(dims, static_cast<int64_t>(d)))
      shape.push_back(size);
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(x);
  state.addTypes(typeOf(x).clone(shape));
  state.addAttribute("dims", b.getDenseI64ArrayAttr(dims));
  return tagged(b.create(state), op);
}

/// Without the reduced dimensions of size 1. Null if there are none.
static Value withoutUnits(OpBuilder &b, ReductionOpInterface op) {
  Value x = op->getOperand(0);
  SmallVector<int64_t> shape, dims;
  bool found = false;
  for (auto [d, size] : llvm::enumerate(typeOf(x).getShape())) {
    bool isReduced =
        llvm::is_contained(op.getReducedDims(), static_cast<int64_t>(d));
    if (isReduced && size == 1) {
      found = true;
      continue;
    }
    if (isReduced)
      dims.push_back(shape.size());
    shape.push_back(size);
  }
  if (!found && !dims.empty())
    return {};
  if (found)
    x = ReshapeOp::create(b, op->getLoc(), x, shape);
  return dims.empty() ? x : reduceLike(b, op, x, dims);
}

/// In two steps: over the dimensions `inner` of `shape`, in which the operand
/// is seen, and then over `outer` of the rest. What is between them is not
/// rounded to less than f32.
static Value inParts(OpBuilder &b, ReductionOpInterface op,
                     ArrayRef<int64_t> shape, ArrayRef<int64_t> inner,
                     ArrayRef<int64_t> outer) {
  Location loc = op->getLoc();
  Value x = op->getOperand(0);
  Type element = typeOf(x).getElementType();
  bool isNarrow = element.isF16() || element.isBF16();
  if (isNarrow)
    x = tagged(CastOp::create(b, loc, typeOf(x).clone(b.getF32Type()), x), op);
  if (shape != typeOf(x).getShape())
    x = ReshapeOp::create(b, loc, x, shape);
  Value result = reduceLike(b, op, reduceLike(b, op, x, inner), outer);
  if (isNarrow)
    result = tagged(
        CastOp::create(b, loc, typeOf(result).clone(element), result), op);
  return result;
}

/// In two steps, if one has too few results for many threads. Null if not.
static Value inTwoSteps(OpBuilder &b, ReductionOpInterface op,
                        const Limits &limits) {
  Value x = op->getOperand(0);
  ArrayRef<int64_t> shape = typeOf(x).getShape();
  ArrayRef<int64_t> dims = op.getReducedDims();
  int64_t n = typeOf(x).getNumElements();
  int64_t items = typeOf(op->getResult(0)).getNumElements();
  if (dims.back() + 1 != typeOf(x).getRank())
    items /= limits.columnsPerItem;
  if (items >= limits.enoughItems || n < limits.largeReduction)
    return {};
  // The outermost reduced dimension is the one to part.
  int64_t dim = dims[0], parts = 0;
  if (shape[dim] >= kFewestParts && shape[dim] <= limits.mostParts &&
      dims.size() > 1)
    parts = shape[dim];
  for (int64_t p = limits.mostParts / 4; !parts && p >= kFewestParts; --p)
    if (shape[dim] % p == 0 && shape[dim] > p)
      parts = p;
  if (!parts)
    return {};

  bool isWhole = parts == shape[dim];
  SmallVector<int64_t> split(shape), first;
  if (!isWhole) {
    split[dim] = shape[dim] / parts;
    split.insert(split.begin() + dim, parts);
  }
  for (int64_t d : dims)
    if (!isWhole || d != dim)
      first.push_back(isWhole ? d : d + 1);
  return inParts(b, op, split, first, {dim});
}

namespace {
/// What a reduction of rows with each other reads.
struct Rows {
  int64_t count = 1, width = 1;
};
} // namespace

/// None if `op` is another reduction.
static std::optional<Rows> rowsOf(ReductionOpInterface op) {
  ArrayRef<int64_t> dims = op.getReducedDims();
  if (dims.front() != 0 || dims.back() + 1 != static_cast<int64_t>(dims.size()))
    return std::nullopt;
  Rows rows;
  for (auto [d, size] : llvm::enumerate(typeOf(op->getOperand(0)).getShape()))
    (d < dims.size() ? rows.count : rows.width) *= size;
  return rows;
}

/// The reduction of rows with each other by parts of rows that follow each
/// other.
static Value inParts(OpBuilder &b, ReductionOpInterface op, const Rows &rows,
                     int64_t parts) {
  SmallVector<int64_t> split{parts, rows.count / parts};
  llvm::append_range(split, typeOf(op->getOperand(0))
                                .getShape()
                                .drop_front(op.getReducedDims().size()));
  return inParts(b, op, split, /*inner=*/{1}, /*outer=*/{0});
}

/// The reduction of rows with each other: in enough parts for many threads, and
/// so few that they are little beside the rows. Null if `op` is another, or
/// small.
static Value byRows(OpBuilder &b, ReductionOpInterface op) {
  constexpr int64_t mostParts = 64, fewestRows = 32, small = 1 << 18;
  constexpr int64_t widestRow = 1 << 14, narrowestRow = 64;
  std::optional<Rows> rows = rowsOf(op);
  if (!rows || typeOf(op->getOperand(0)).getNumElements() < small ||
      rows->width < narrowestRow || rows->width > widestRow)
    return {};
  int64_t parts = std::min(mostParts, rows->count / fewestRows);
  while (parts >= kFewestParts && rows->count % parts != 0)
    --parts;
  if (parts < kFewestParts)
    return {};
  return inParts(b, op, *rows, parts);
}

/// The reduction of rows with each other, in the fewest parts that make the
/// items that it is to have, of rows enough for the threads of a block. Null if
/// `op` is another, small, or has items enough.
static Value byItems(OpBuilder &b, ReductionOpInterface op,
                     const Limits &limits) {
  constexpr int64_t fewestRows = 16, shortRow = 1024;
  std::optional<Rows> rows = rowsOf(op);
  if (!rows ||
      typeOf(op->getOperand(0)).getNumElements() < limits.largeReduction)
    return {};
  int64_t items = llvm::divideCeil(rows->width, limits.columnsPerItem);
  if (rows->width == 1 || items >= limits.enoughItems)
    return {};
  int64_t wanted = llvm::divideCeil(limits.itemsOfRows, items);
  // Loops over short rows may make the parts, each in one block (LoopNest.h).
  if (rows->width <= shortRow)
    wanted = std::max(wanted, limits.itemsOfRows / 2);
  int64_t most =
      std::min({4 * wanted, limits.mostParts, rows->count / fewestRows});
  int64_t parts = wanted;
  while (parts <= most && rows->count % parts != 0)
    ++parts;
  if (parts > most) // the most below, if there are any
    for (parts = std::min(wanted, most);
         parts >= kFewestParts && rows->count % parts != 0;)
      --parts;
  if (parts < kFewestParts)
    return {};
  return inParts(b, op, *rows, parts);
}

/// The largest of all elements of `rows` rows, by parts of rows, and then row
/// by row.
static Value largestByTiles(OpBuilder &b, ReductionOpInterface op,
                            ArrayRef<int64_t> shape) {
  int64_t parts = shape[0] / kRowsOfTileSum;
  Value x = ReshapeOp::create(b, op->getLoc(), op->getOperand(0),
                              {parts, kRowsOfTileSum, shape[1]});
  for (int64_t dim : {1, 1, 0})
    x = reduceLike(b, op, x, {dim});
  return x;
}

/// The sum over rows of what a product for CUDA makes element by element, in
/// parts of the rows that it adds up itself (LoopNest.h); of a product of bytes
/// also the largest element of all. Null if `op` is another.
static Value byTiles(OpBuilder &b, ReductionOpInterface op) {
  constexpr size_t mostValues = 256;
  constexpr int64_t mostParts = 1024; // which are added up by others
  RankedTensorType type = typeOf(op->getOperand(0));
  bool isLargest =
      isa<ReduceMaxOp>(op) && typeOf(op->getResult(0)).getRank() == 0;
  std::optional<Rows> rows = rowsOf(op);
  if (isLargest && type.getRank() == 2)
    rows = Rows{type.getDimSize(0), type.getDimSize(1)};
  if (!rows || (!isLargest && !isa<ReduceSumOp>(op)) ||
      rows->count > mostParts * kRowsOfTileSum)
    return {};
  llvm::SmallSetVector<Value, 32> work;
  work.insert(op->getOperand(0));
  for (size_t i = 0; i < work.size() && i < mostValues; ++i) {
    Operation *made = work[i].getDefiningOp();
    auto view = dyn_cast_or_null<ViewOpInterface>(made);
    bool isFound =
        makesTileSums(made) &&
        typeOf(work[i]).getShape() == ArrayRef{rows->count, rows->width};
    // The emitter of other products adds alone.
    if (isFound && isLargest)
      return typeOf(work[i]).getElementType().isF32()
                 ? largestByTiles(b, op, {rows->count, rows->width})
                 : Value();
    if (isFound)
      return inParts(b, op, *rows, rows->count / kRowsOfTileSum);
    if (isa_and_nonnull<PointwiseOpInterface>(made) || (view && view.isFree()))
      work.insert_range(made->getOperands());
  }
  return {};
}

/// The reduction of everything, by rows first: loops over rows may make it
/// beside other things. Null if `op` is another, or small.
static Value rowByRow(OpBuilder &b, ReductionOpInterface op) {
  constexpr int64_t small = 1 << 16, fewestRows = 64, mostRows = 1 << 15;
  constexpr int64_t widestRow = 1 << 14, narrowestRow = 64;
  ArrayRef<int64_t> shape = typeOf(op->getOperand(0)).getShape();
  int64_t n = typeOf(op->getOperand(0)).getNumElements();
  if (op.getReducedDims().size() != shape.size() || n < small ||
      shape.back() < narrowestRow || shape.back() > widestRow ||
      n / shape.back() < fewestRows || n / shape.back() > mostRows)
    return {};
  return inParts(b, op, {n / shape.back(), shape.back()}, {1}, {0});
}

unsigned tandem::splitReductions(func::FuncOp func) {
  unsigned count = 0;
  Limits limits = Limits::of(func);
  SmallVector<ReductionOpInterface> ops;
  func.walk([&](ReductionOpInterface op) { ops.push_back(op); });
  for (ReductionOpInterface op : ops) {
    OpBuilder b(op);
    Value better = withoutUnits(b, op);
    if (better) {
      op->getResult(0).replaceAllUsesWith(better);
      op->erase();
      op = better.getDefiningOp<ReductionOpInterface>();
      if (!op)
        continue;
      b.setInsertionPoint(op);
    }
    Value parted;
    if (limits.partsOfRows) {
      parted = rowByRow(b, op);
      if (!parted)
        parted = byRows(b, op);
    }
    if (limits.itemsOfRows > 0) {
      parted = byTiles(b, op);
      if (!parted)
        parted = byItems(b, op, limits);
    }
    if (!parted)
      parted = inTwoSteps(b, op, limits);
    if (parted) {
      op->getResult(0).replaceAllUsesWith(parted);
      op->erase();
      ++count;
    }
  }
  return count;
}

namespace {
struct SplitReductions : tandem::impl::SplitReductionsBase<SplitReductions> {
  void runOnOperation() final { split += splitReductions(getOperation()); }
};
} // namespace
