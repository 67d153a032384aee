//===- RecordRanges.cpp - which labels and indices make sense -------------===//
//
// Says in the roles of integer inputs what the ops that read them take: labels
// of a cross entropy are below the number of classes, or the value that it
// ignores; indices of a take are below the rows of its table; what is NaN
// unless an index is in a range says that range. What an importer knows of an
// index it says itself (ir/IndexRange.h). Before composites are decomposed.
//
// An input has one range, for all its elements. Where ops read slices of it,
// that is one in which all their ranges are, and none unless they read it all:
// what nobody reads as an index may be anything.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/rows/RowStates.h"

#include "ir/IndexRange.h"
#include "ir/Signature.h"

#include "mlir/IR/Matchers.h"

#include <set>

namespace tandem {
#define GEN_PASS_DEF_RECORDRANGES
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

namespace {

/// What the ops say of one input.
struct Range {
  std::optional<int64_t> high;
  std::optional<int64_t> low;   ///< where negative ones count from the end
  SmallVector<int64_t> ignored; ///< what ops leave out, each one once
  bool ignoresNothing = false;  ///< some op takes every value as an index

  // Of ops that read slices.
  int64_t partHigh = 0, partLow = 0;
  int64_t partElements = 0; ///< of all different slices together
  std::set<SmallVector<const void *>> parts;

  /// An op takes `index` from `low` to below `high`.
  void takes(Value index, int64_t low, int64_t high);
  /// The slices say what the whole input takes, if nothing else does.
  void closeParts(int64_t elements);
};

/// Which elements of an argument `value` has, if it has not all: the views that
/// it is made by. How many they are is `elements`.
SmallVector<const void *> partOf(Value value, int64_t &elements) {
  SmallVector<const void *> views;
  bool isPart = false;
  elements = cast<RankedTensorType>(value.getType()).getNumElements();
  while (Operation *op = value.getDefiningOp()) {
    elements = std::min(
        elements, cast<RankedTensorType>(value.getType()).getNumElements());
    value = op->getOperand(0);
    if (isa<ViewOpInterface>(op))
      views.push_back(op->getAttrDictionary().getAsOpaquePointer());
    isPart |= isa<SliceOp>(op);
  }
  isPart &= elements < cast<RankedTensorType>(value.getType()).getNumElements();
  return isPart ? views : SmallVector<const void *>();
}

void Range::takes(Value index, int64_t from, int64_t to) {
  int64_t elements = 0;
  SmallVector<const void *> views = partOf(index, elements);
  if (views.empty()) {
    high = std::min(high.value_or(to), to);
    low = std::max(low.value_or(from), from);
    return;
  }
  partHigh = std::max(partHigh, to);
  partLow = std::min(partLow, from);
  if (parts.insert(views).second)
    partElements += elements;
}

void Range::closeParts(int64_t elements) {
  if (high || parts.empty() || partElements < elements)
    return;
  high = partHigh;
  low = partLow;
}

struct RecordRanges : tandem::impl::RecordRangesBase<RecordRanges> {
  void runOnOperation() final {
    ModuleOp module = getOperation();
    auto graph = module.lookupSymbol<func::FuncOp>("graph");
    if (!graph)
      return;
    llvm::DenseMap<Value, Range> ranges;
    graph.walk([&](Operation *op) { note(op, ranges); });
    for (BlockArgument argument : graph.getArguments())
      if (auto it = ranges.find(argument); it != ranges.end()) {
        it->second.closeParts(
            cast<RankedTensorType>(argument.getType()).getNumElements());
        record(graph, argument.getArgNumber(), it->second);
      }
    graph.walk([](CastOp cast) { cast->removeAttr(kIndexRangeAttr); });
  }

  static void note(Operation *op, llvm::DenseMap<Value, Range> &ranges) {
    if (auto loss = dyn_cast<CrossEntropyOp>(op)) {
      if (BlockArgument labels = seenThroughViews(loss.getLabels())) {
        Range &range = ranges[labels];
        auto logits = cast<RankedTensorType>(loss.getLogits().getType());
        range.takes(loss.getLabels(), 0, logits.getShape().back());
        if (auto ignored = loss.getIgnoreIndex())
          range.ignored.push_back(static_cast<int64_t>(*ignored));
        else
          range.ignoresNothing = true;
      }
    } else if (auto marked =
                   op->getAttrOfType<DenseI64ArrayAttr>(kIndexRangeAttr)) {
      noteMarked(op, marked, ranges);
    } else if (auto take = dyn_cast<TakeOp>(op)) {
      noteTake(take, ranges);
    } else if (auto select = dyn_cast<SelectOp>(op)) {
      noteNaN(select, ranges);
      noteCounted(select, ranges);
    } else if (auto compare = dyn_cast<CompareOp>(op)) {
      // Functions with a value to ignore (nll_loss) compare with it.
      APInt number;
      auto how = compare.getPredicate();
      if ((how == ComparePredicate::eq || how == ComparePredicate::ne) &&
          matchPattern(compare.getRhs(), m_ConstantInt(&number)))
        if (BlockArgument value = seenThroughViews(compare.getLhs()))
          ranges[value].ignored.push_back(number.getSExtValue());
    }
  }

  static void noteTake(TakeOp take, llvm::DenseMap<Value, Range> &ranges) {
    BlockArgument indices = seenThroughViews(take.getIndices());
    if (!indices)
      return;
    auto table = cast<RankedTensorType>(take.getTable().getType());
    Range &range = ranges[indices];
    range.takes(take.getIndices(), 0, table.getShape()[0]);
    range.ignoresNothing |= isWhole(take.getIndices());
  }

  static bool isWhole(Value index) {
    int64_t elements = 0;
    return partOf(index, elements).empty();
  }

  /// What an importer says.
  static void noteMarked(Operation *op, DenseI64ArrayAttr marked,
                         llvm::DenseMap<Value, Range> &ranges) {
    BlockArgument index = seenThroughViews(op->getResult(0));
    if (!index)
      return;
    Range &range = ranges[index];
    range.takes(op->getResult(0), marked[0], marked[1]);
    range.ignoresNothing |= isWhole(op->getResult(0));
  }

  /// Notes x < 0 ? x + size : x where an index is made of it.
  static void noteCounted(SelectOp select,
                          llvm::DenseMap<Value, Range> &ranges) {
    int64_t size = 0;
    BlockArgument index = countedFromEnd(select, size);
    llvm::DenseSet<Operation *> seen;
    if (!index || !isIndex(select.getResult(), seen))
      return;
    Range &range = ranges[index];
    range.takes(select.getRhs(), -size, size);
    range.ignoresNothing |= isWhole(select.getRhs());
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
  static void noteNaN(SelectOp select, llvm::DenseMap<Value, Range> &ranges) {
    APFloat otherwise(0.0);
    auto both = select.getCondition().getDefiningOp<LogicalAndOp>();
    if (!both || !matchPattern(select.getRhs(), m_ConstantFloat(&otherwise)) ||
        !otherwise.isNaN())
      return;
    BlockArgument low, index;
    auto zero = comparedBy(both.getLhs(), ComparePredicate::ge, low);
    auto high = comparedBy(both.getRhs(), ComparePredicate::lt, index);
    if (zero == 0 && high && index && low == index)
      ranges[index].takes(both.getRhs().getDefiningOp<CompareOp>().getLhs(), 0,
                          *high);
  }

  static void record(func::FuncOp graph, unsigned index, const Range &range) {
    RoleAttr role = roleOfArgument(graph, index);
    auto type = cast<RankedTensorType>(graph.getArgumentTypes()[index]);
    if (!role || role.getKind() != RoleKind::Input ||
        !type.getElementType().isInteger() ||
        type.getElementType().isInteger(1))
      return;
    Builder b(graph.getContext());
    auto declared = role.getProperty<IntegerAttr>(RoleAttr::kHigh);
    std::optional<int64_t> high = range.high;
    if (declared && (!high || declared.getInt() < *high))
      high = declared.getInt();
    if (!high || *high < 1)
      return;
    role = role.with(RoleAttr::kHigh, b.getI64IntegerAttr(*high));
    if (range.low.value_or(0) < 0 && !declared)
      role = role.with(RoleAttr::kLow, b.getI64IntegerAttr(*range.low));
    bool hasIgnored = !range.ignoresNothing && !range.ignored.empty() &&
                      llvm::all_equal(range.ignored);
    if (hasIgnored && !role.has(RoleAttr::kIgnored))
      role = role.with(RoleAttr::kIgnored,
                       b.getI64IntegerAttr(range.ignored.front()));
    setRoleOfArgument(graph, index, role);
  }
};

} // namespace
