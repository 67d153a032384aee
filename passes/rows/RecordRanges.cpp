//===- RecordRanges.cpp - which labels and indices make sense -------------===//
//
// Says in the roles of integer inputs what the ops that read them take: labels
// of a cross entropy are below the number of classes, or the value that it
// ignores; indices of a take are below the rows of its table; what is NaN
// unless an index is in a range says that range. What an importer knows of an
// index it says itself (ir/IndexRange.h). Before composites are decomposed.
//
// Ops may read slices of an input: what they take holds for these elements, and
// what nobody reads as an index may be anything. Where slices are all of an
// input, it is said of the whole, too, what its elements are at most: data is
// checked against that before it is cut into batches.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/rows/RowStates.h"

#include "ir/IndexRange.h"
#include "ir/Signature.h"

#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/IR/Matchers.h"

#include <map>
#include <tuple>

namespace tandem {
#define GEN_PASS_DEF_RECORDRANGES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

/// What ops say of the elements of an input, or of a slice.
struct Range {
  std::optional<int64_t> high;
  std::optional<int64_t> low;   ///< where negative ones count from the end
  SmallVector<int64_t> ignored; ///< what ops leave out, each one once
  bool ignoresNothing = false;  ///< some op takes every value as an index

  /// An op takes indices from `from` to below `to`.
  void takes(int64_t from, int64_t to) {
    high = std::min(high.value_or(to), to);
    low = std::max(low.value_or(from), from);
  }
  int64_t least() const { return low.value_or(0); }
  std::optional<int64_t> theIgnored() const {
    return ignoresNothing || ignored.empty() || !llvm::all_equal(ignored)
               ? std::nullopt
               : std::optional(ignored.front());
  }
  /// Whether no element may be what `other` forbids.
  bool isWithin(const Range &other) const {
    return high && *high <= *other.high && least() >= other.least() &&
           (!theIgnored() || theIgnored() == other.theIgnored());
  }
};

/// Indices `begin + i * step` of a dimension, `size` of them.
struct Line {
  int64_t begin = 0, size = 0, step = 1;
  auto key() const { return std::tuple(begin, size, step); }
  bool operator<(const Line &other) const { return key() < other.key(); }
};
using Slice = std::vector<Line>; ///< a line for each dimension

/// What the ops say of one input, slice by slice.
struct Input {
  std::map<Slice, Range> slices;
  /// What they say of all, if slices are all; the whole is one of them.
  std::optional<Range> whole(ArrayRef<int64_t> shape) const;
};

/// Marks the elements of a slice, whose dimension `d` and those behind it begin
/// at element `at` of the input.
void mark(const Slice &slice, ArrayRef<int64_t> shape, llvm::BitVector &seen,
          size_t d = 0, int64_t at = 0) {
  if (d == slice.size()) {
    seen.set(static_cast<unsigned>(at));
    return;
  }
  const Line &line = slice[d];
  for (int64_t i = 0; i < line.size; ++i)
    mark(slice, shape, seen, d + 1, at * shape[d] + line.begin + i * line.step);
}

std::optional<Range> Input::whole(ArrayRef<int64_t> shape) const {
  Slice all;
  for (int64_t size : shape)
    all.push_back({0, size, 1});
  if (auto it = slices.find(all); it != slices.end() && it->second.high)
    return it->second;
  constexpr int64_t mostElements = 1 << 28;
  int64_t elements = ShapedType::getNumElements(shape);
  if (elements > mostElements)
    return std::nullopt;
  llvm::BitVector seen(static_cast<unsigned>(elements));
  Range most;
  for (const auto &[slice, range] : slices) {
    if (!range.high)
      continue;
    mark(slice, shape, seen);
    most.high = std::max(most.high.value_or(0), *range.high);
    most.low = std::min(most.least(), range.least());
    if (auto ignored = range.theIgnored())
      most.ignored.push_back(*ignored);
  }
  if (!most.high || !seen.all() ||
      !(most.ignored.empty() || llvm::all_equal(most.ignored)))
    return std::nullopt;
  return most;
}

/// The indices that `expr` has over dimensions of `sizes`, if they are a line:
/// each dimension's step is as long as all the steps of the ones within it.
std::optional<Line> lineOf(AffineExpr expr, ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> flat;
  if (failed(getFlattenedAffineExpr(expr, sizes.size(), 0, &flat)) ||
      flat.size() != sizes.size() + 1)
    return std::nullopt;
  Line line{flat.back(), 1, 1};
  SmallVector<std::pair<int64_t, int64_t>> steps; // and sizes
  for (auto [step, size] : llvm::zip_equal(ArrayRef(flat).drop_back(), sizes)) {
    if (step == 0 || size == 1)
      continue;
    line.begin += std::min<int64_t>(step, 0) * (size - 1);
    steps.push_back({std::abs(step), size});
  }
  llvm::sort(steps);
  if (!steps.empty())
    line.step = steps.front().first;
  for (auto [step, size] : steps) {
    if (step != line.step * line.size)
      return std::nullopt;
    line.size *= size;
  }
  return line;
}

/// The slice of the argument that `value` shows through views, if it is one.
std::optional<Slice> sliceOf(Value value) {
  auto shapeOf = [](Value of) {
    return cast<RankedTensorType>(of.getType()).getShape();
  };
  // Their order, and how often each is there, does not say which they are.
  auto leavesNone = [](Operation *op) {
    return isa<CastOp, ReshapeOp, PermuteOp, BroadcastOp, ReverseOp>(op);
  };
  while (value.getDefiningOp() && leavesNone(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  ArrayRef<int64_t> sizes = shapeOf(value);
  if (llvm::is_contained(sizes, 0))
    return std::nullopt;
  auto map =
      AffineMap::getMultiDimIdentityMap(sizes.size(), value.getContext());
  while (Operation *op = value.getDefiningOp()) {
    if (auto view = dyn_cast<ViewOpInterface>(op))
      map = view.getIndexMap().compose(map);
    value = op->getOperand(0);
  }
  Slice slice;
  llvm::SmallBitVector seen(sizes.size());
  for (auto [d, expr] : llvm::enumerate(map.getResults())) {
    auto line = lineOf(simplifyAffineExpr(expr, sizes.size(), 0), sizes);
    if (!line)
      return std::nullopt;
    // Dimensions that go on together are a diagonal.
    for (unsigned i = 0; i < sizes.size(); ++i)
      if (sizes[i] > 1 && expr.isFunctionOfDim(i)) {
        if (seen[i])
          return std::nullopt;
        seen.set(i);
      }
    slice.push_back(*line);
  }
  return slice;
}

using Inputs = llvm::DenseMap<Value, Input>;

/// What ops say of the elements that `index` shows of an argument; null where
/// it shows none, or they are no slice.
Range *rangeOf(Inputs &inputs, Value index) {
  BlockArgument argument = seenThroughViews(index);
  std::optional<Slice> slice;
  if (!argument || !(slice = sliceOf(index)))
    return nullptr;
  return &inputs[argument].slices[*slice];
}

struct RecordRanges : tandem::impl::RecordRangesBase<RecordRanges> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto graph = module.lookupSymbol<func::FuncOp>("graph");
    if (!graph)
      return;
    Inputs inputs;
    graph.walk([&](Operation *op) { note(op, inputs); });
    for (BlockArgument argument : graph.getArguments())
      if (auto it = inputs.find(argument); it != inputs.end())
        record(graph, argument.getArgNumber(), it->second);
    graph.walk([](CastOp cast) { cast->removeAttr(kIndexRangeAttr); });
  }

  static void note(Operation *op, Inputs &inputs) {
    if (auto loss = dyn_cast<CrossEntropyOp>(op)) {
      if (Range *range = rangeOf(inputs, loss.getLabels())) {
        auto logits = cast<RankedTensorType>(loss.getLogits().getType());
        range->takes(0, logits.getShape().back());
        if (auto ignored = loss.getIgnoreIndex())
          range->ignored.push_back(static_cast<int64_t>(*ignored));
        else
          range->ignoresNothing = true;
      }
    } else if (auto marked =
                   op->getAttrOfType<DenseI64ArrayAttr>(kIndexRangeAttr)) {
      // What an importer says.
      noteIndex(op->getResult(0), marked[0], marked[1], inputs);
    } else if (auto take = dyn_cast<TakeOp>(op)) {
      auto table = cast<RankedTensorType>(take.getTable().getType());
      noteIndex(take.getIndices(), 0, table.getShape()[0], inputs);
    } else if (auto select = dyn_cast<SelectOp>(op)) {
      noteNaN(select, inputs);
      noteCounted(select, inputs);
    } else if (auto compare = dyn_cast<CompareOp>(op)) {
      // Functions with a value to ignore (nll_loss) compare with it.
      APInt number;
      auto how = compare.getPredicate();
      if ((how == ComparePredicate::eq || how == ComparePredicate::ne) &&
          matchPattern(compare.getRhs(), m_ConstantInt(&number)))
        if (Range *range = rangeOf(inputs, compare.getLhs()))
          range->ignored.push_back(number.getSExtValue());
    }
  }

  static void noteIndex(Value index, int64_t low, int64_t high,
                        Inputs &inputs) {
    if (Range *range = rangeOf(inputs, index)) {
      range->takes(low, high);
      range->ignoresNothing = true;
    }
  }

  /// Notes x < 0 ? x + size : x where an index is made of it.
  static void noteCounted(SelectOp select, Inputs &inputs) {
    int64_t size = 0;
    llvm::DenseSet<Operation *> seen;
    if (countedFromEnd(select, size) && isIndex(select.getResult(), seen))
      noteIndex(select.getRhs(), -size, size, inputs);
  }

  /// Whether integers that are made of `value` are indices of a table.
  static bool isIndex(Value value, llvm::DenseSet<Operation *> &seen) {
    return llvm::any_of(value.getUses(), [&](OpOperand &use) {
      Operation *op = use.getOwner();
      if (auto take = dyn_cast<TakeOp>(op))
        return use.get() == take.getIndices();
      if (auto scatter = dyn_cast<ScatterOp>(op))
        return use.get() == scatter.getIndices();
      bool goesOn = isa<ViewOpInterface, CastOp, AddOp, MulOp, ConcatOp>(op) &&
                    getElementTypeOrSelf(op->getResult(0)).isInteger();
      return goesOn && seen.insert(op).second &&
             isIndex(op->getResult(0), seen);
    });
  }

  /// The x of x < 0 ? x + size : x.
  static BlockArgument countedFromEnd(SelectOp select, int64_t &size) {
    BlockArgument compared;
    auto zero =
        comparedBy(select.getCondition(), ComparePredicate::lt, compared);
    auto sum = select.getLhs().getDefiningOp<AddOp>();
    APInt added;
    bool is = zero == 0 && compared && sum &&
              matchPattern(sum.getRhs(), m_ConstantInt(&added)) &&
              (size = added.getSExtValue()) > 0 &&
              seenThroughViews(sum.getLhs()) == compared &&
              seenThroughViews(select.getRhs()) == compared;
    return is ? compared : BlockArgument();
  }

  /// The number that `op` compares a value of the graph with by `how`.
  static std::optional<int64_t> comparedBy(Value op, ComparePredicate how,
                                           BlockArgument &with) {
    auto compare = op.getDefiningOp<CompareOp>();
    APInt number;
    if (!compare || compare.getPredicate() != how ||
        !matchPattern(compare.getRhs(), m_ConstantInt(&number)))
      return std::nullopt;
    with = seenThroughViews(compare.getLhs());
    return number.getSExtValue();
  }

  /// What is NaN unless 0 <= index < high (nll_loss).
  static void noteNaN(SelectOp select, Inputs &inputs) {
    APFloat otherwise(0.0);
    auto both = select.getCondition().getDefiningOp<LogicalAndOp>();
    if (!both || !matchPattern(select.getRhs(), m_ConstantFloat(&otherwise)) ||
        !otherwise.isNaN())
      return;
    BlockArgument low, index;
    auto zero = comparedBy(both.getLhs(), ComparePredicate::ge, low);
    auto high = comparedBy(both.getRhs(), ComparePredicate::lt, index);
    if (zero != 0 || !high || !index || low != index)
      return;
    if (Range *range =
            rangeOf(inputs, both.getRhs().getDefiningOp<CompareOp>().getLhs()))
      range->takes(0, *high);
  }

  static void record(func::FuncOp graph, unsigned index, const Input &input) {
    RoleAttr role = roleOfArgument(graph, index);
    auto type = cast<RankedTensorType>(graph.getArgumentTypes()[index]);
    if (!role || role.getKind() != RoleKind::Input ||
        !type.getElementType().isInteger() ||
        type.getElementType().isInteger(1))
      return;
    std::optional<Range> whole = input.whole(type.getShape());
    if (auto declared = role.getProperty<IntegerAttr>(RoleAttr::kHigh)) {
      if (!whole)
        whole.emplace();
      whole->takes(0, declared.getInt());
    }
    if (auto declared = role.getProperty<IntegerAttr>(RoleAttr::kIgnored);
        declared && whole) {
      whole->ignored = {declared.getInt()};
      whole->ignoresNothing = false;
    }
    if (whole && *whole->high >= 1)
      role = withWhole(role, *whole);
    SmallVector<Attribute> ranges;
    for (const auto &[slice, range] : input.slices)
      if (range.high && *range.high >= 1 && !(whole && whole->isWithin(range)))
        ranges.push_back(rangeAttr(slice, range, graph.getContext()));
    if (!ranges.empty())
      role =
          role.with(kSliceRanges, ArrayAttr::get(graph.getContext(), ranges));
    setRoleOfArgument(graph, index, role);
  }

  static RoleAttr withWhole(RoleAttr role, const Range &whole) {
    Builder b(role.getContext());
    role = role.with(RoleAttr::kHigh, b.getI64IntegerAttr(*whole.high));
    if (whole.least() < 0)
      role = role.with(RoleAttr::kLow, b.getI64IntegerAttr(whole.least()));
    if (auto ignored = whole.theIgnored();
        ignored && !role.has(RoleAttr::kIgnored))
      role = role.with(RoleAttr::kIgnored, b.getI64IntegerAttr(*ignored));
    return role;
  }

  static Attribute rangeAttr(const Slice &slice, const Range &range,
                             MLIRContext *context) {
    Builder b(context);
    SmallVector<int64_t> begins, ends, steps;
    for (const Line &line : slice) {
      begins.push_back(line.begin);
      ends.push_back(line.begin + (line.size - 1) * line.step + 1);
      steps.push_back(line.step);
    }
    NamedAttrList fields;
    fields.set(kRangeBegins, b.getDenseI64ArrayAttr(begins));
    fields.set(kRangeEnds, b.getDenseI64ArrayAttr(ends));
    fields.set(kRangeSteps, b.getDenseI64ArrayAttr(steps));
    fields.set(RoleAttr::kLow, b.getI64IntegerAttr(range.least()));
    fields.set(RoleAttr::kHigh, b.getI64IntegerAttr(*range.high));
    if (auto ignored = range.theIgnored())
      fields.set(RoleAttr::kIgnored, b.getI64IntegerAttr(*ignored));
    return fields.getDictionary(context);
  }
};

} // namespace
