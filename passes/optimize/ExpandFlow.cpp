//===- ExpandFlow.cpp - branches and loops as ops without regions ---------===//
//
// Both branches of an `if` are computed, all iterations of a `scan` one after
// the other, and what the program would have is selected, element by element.
// Gradients are expanded like everything else: what is selected there are the
// gradients of a branch, so that no number of the other one has a part in them.
//
// What is stacked by one scan and sliced by another (a forward and its
// backward) goes from iteration to iteration: the backward's copy of an
// iteration is then equal to the forward's and is merged with it, and which of
// its values are saved is decided as everywhere.
//
// Where the target runs loops (the cpu), those that would become many ops, and
// those whose end is not known, stay as they are.
//
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/autodiff/Decompose.h"
#include "passes/common/EraseDeadOps.h"
#include "passes/target/Target.h"

#include "ir/Expr.h"
#include "ir/Ops.h"
#include "ir/Tags.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

namespace tandem {
#define GEN_PASS_DEF_EXPANDFLOW
#define GEN_PASS_DEF_HOISTCONSTANTS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// More ops than this are no program that is compiled in reasonable time.
static constexpr int64_t kMostOps = 30000;
/// A loop that becomes more ops than this is run as one where that can be. One
/// thread runs it, so a loop whose iterations are work for several may become
/// more.
static uint64_t mostExpanded(ScanOp scan) {
  constexpr int64_t muchWork = 10'000'000;
  auto length = std::max<int64_t>(static_cast<int64_t>(scan.getLength()), 1);
  return scan.getFlops() / length >= muchWork ? 10000 : 1000;
}

static bool isFlow(Operation *op) { return isa<IfOp, ScanOp, WhileOp>(op); }

namespace {

class Expander {
public:
  /// What a stack is made of.
  struct Stack {
    SmallVector<Value> slices; ///< behind the trips not yet zeros
    Value trips;               ///< null: all slices count
  };

  explicit Expander(func::FuncOp func)
      : func(func), runsLoops(!isForCuda(func)), builder(func) {}
  LogicalResult run(Block &block);

  unsigned expanded = 0; ///< ops

private:
  using Values = SmallVector<Value>;

  /// True if the op stays as it is.
  bool stays(Operation *op);
  /// How many ops a region, or an op, becomes.
  uint64_t size(Region &region);
  uint64_t size(Operation *op);

  FailureOr<Values> expand(Operation *op, const Values &operands);
  FailureOr<Values> expandIf(IfOp op, const Values &operands);
  FailureOr<Values> expandScan(ScanOp op, const Values &operands);
  /// Makes the ops of a region that takes `arguments`; returns what it yields.
  FailureOr<Values> inlineRegion(Region &region, ArrayRef<Value> arguments);

  Value pick(Value condition, Value yes, Value no);
  Value zeros(Type type) {
    return ConstantOp::splat(builder, loc, cast<RankedTensorType>(type), 0);
  }
  Value slice(Value stack, int64_t t, Value trips);
  Value stack(ArrayRef<Value> slices);
  Value concat(ArrayRef<Value> parts);
  LogicalResult count(Operation *op);

  func::FuncOp func;
  bool runsLoops;
  OpBuilder builder;
  Location loc = UnknownLoc::get(func.getContext());
  int64_t made = 0;
  DenseMap<Value, Stack> stacks;
};

} // namespace

uint64_t Expander::size(Region &region) {
  uint64_t ops = 0;
  for (Operation &op : region.front().without_terminator())
    ops = llvm::SaturatingAdd(ops, size(&op));
  return ops;
}

uint64_t Expander::size(Operation *op) {
  if (!isFlow(op) || stays(op))
    return 1;
  if (auto scan = dyn_cast<ScanOp>(op))
    return llvm::SaturatingMultiply<uint64_t>(scan.getLength(),
                                              size(scan.getBody()));
  uint64_t ops = 0;
  for (Region &region : op->getRegions())
    ops = llvm::SaturatingAdd(ops, size(region));
  return ops;
}

/// A branch stays if a loop in it does, which would else run in vain.
bool Expander::stays(Operation *op) {
  if (!runsLoops)
    return false;
  if (auto scan = dyn_cast<ScanOp>(op))
    return llvm::SaturatingMultiply<uint64_t>(
               scan.getLength(), size(scan.getBody())) > mostExpanded(scan);
  if (isa<WhileOp>(op))
    return true;
  return llvm::any_of(op->getRegions(), [&](Region &region) {
    return llvm::any_of(region.front(), [&](Operation &inner) {
      return isFlow(&inner) && stays(&inner);
    });
  });
}

LogicalResult Expander::count(Operation *op) {
  if (++made <= kMostOps)
    return success();
  return mlir::emitError(op->getLoc())
         << "unsupported: the loops of '" << func.getName() << "' become more "
         << "than " << kMostOps << " ops; expected fewer iterations";
}

Value Expander::pick(Value condition, Value yes, Value no) {
  if (yes == no)
    return yes;
  Expr all(builder, loc, condition);
  all = all.broadcastTo(cast<RankedTensorType>(yes.getType()).getShape(), {});
  return SelectOp::create(builder, loc, all, yes, no);
}

/// Slice `t`, for a scan of `trips`.
Value Expander::slice(Value whole, int64_t t, Value trips) {
  // Of a scan with as many trips nothing but slices that count is looked at.
  if (auto found = stacks.find(whole); found != stacks.end())
    if (!found->second.trips || found->second.trips == trips)
      return found->second.slices[t];
  auto type = cast<RankedTensorType>(whole.getType());
  SmallVector<int64_t> starts(type.getRank(), 0), limits(type.getShape()),
      strides(type.getRank(), 1);
  starts[0] = t;
  limits[0] = t + 1;
  Expr part(builder, loc,
            SliceOp::create(builder, loc, whole, starts, limits, strides));
  return part.reshape(type.getShape().drop_front());
}

Value Expander::concat(ArrayRef<Value> parts) {
  if (parts.size() == 1)
    return parts[0];
  return ConcatOp::create(builder, loc, parts, 0);
}

/// By halves: a concat of many parts looks at all of them for each element.
Value Expander::stack(ArrayRef<Value> slices) {
  SmallVector<Value> parts;
  for (Value value : slices) {
    Expr part(builder, loc, value);
    SmallVector<int64_t> shape = {1};
    llvm::append_range(shape, part.shape());
    parts.push_back(part.reshape(shape));
  }
  while (parts.size() > 1) {
    SmallVector<Value> halves;
    for (size_t i = 0; i < parts.size(); i += 4)
      halves.push_back(concat(
          ArrayRef(parts).slice(i, std::min<size_t>(4, parts.size() - i))));
    parts = std::move(halves);
  }
  return parts[0];
}

FailureOr<Expander::Values> Expander::inlineRegion(Region &region,
                                                   ArrayRef<Value> arguments) {
  IRMapping map;
  map.map(region.getArguments(), arguments);
  for (Operation &op : region.front().without_terminator()) {
    if (failed(count(&op)))
      return failure();
    if (isFlow(&op) && !stays(&op)) {
      Values operands;
      for (Value operand : op.getOperands())
        operands.push_back(map.lookup(operand));
      Location outside = std::exchange(loc, op.getLoc());
      auto values = expand(&op, operands);
      loc = outside;
      if (failed(values))
        return failure();
      map.map(op.getResults(), *values);
    } else {
      builder.clone(op, map);
    }
  }
  Values yielded;
  for (Value value : region.front().getTerminator()->getOperands())
    yielded.push_back(map.lookup(value));
  return yielded;
}

FailureOr<Expander::Values> Expander::expandIf(IfOp op,
                                               const Values &operands) {
  ArrayRef<Value> inputs = ArrayRef(operands).drop_front();
  auto yes = inlineRegion(op.getThen(), inputs);
  if (failed(yes))
    return failure();
  auto no = inlineRegion(op.getOtherwise(), inputs);
  if (failed(no))
    return failure();
  Values results;
  for (auto [a, b] : llvm::zip_equal(*yes, *no))
    results.push_back(pick(operands[0], a, b));
  return results;
}

FailureOr<Expander::Values> Expander::expandScan(ScanOp op,
                                                 const Values &operands) {
  auto length = static_cast<int64_t>(op.getLength());
  unsigned numCarries = op.getCarries().size(),
           numInputs = op.getInputs().size();
  ArrayRef<Value> rest = operands;
  Value trips = op.getTrips() ? rest.consume_front() : Value();
  Values carries(rest.take_front(numCarries));
  rest = rest.drop_front(numCarries);
  ArrayRef<Value> inputs = rest.take_front(numInputs);
  ArrayRef<Value> constants = rest.drop_front(numInputs);
  SmallVector<Stack> stacked(op.stacks().size());
  SmallVector<Values> counted(stacked.size());
  for (auto [one, list] : llvm::zip(stacked, counted)) {
    one.trips = trips;
    one.slices.resize(length);
    list.resize(length);
  }
  for (int64_t i = 0; i < length; ++i) {
    int64_t t = op.getReverse() ? length - 1 - i : i;
    Value goes;
    if (trips) {
      Expr end(builder, loc, trips);
      goes = compare(ComparePredicate::lt, end.like(t), end);
    }
    Values arguments = carries;
    for (Value input : inputs)
      arguments.push_back(slice(input, t, trips));
    llvm::append_range(arguments, constants);
    auto made = inlineRegion(op.getBody(), arguments);
    if (failed(made))
      return failure();
    for (auto [carry, value] : llvm::zip(carries, *made))
      carry = goes ? pick(goes, value, carry) : value;
    for (unsigned k = 0; k < stacked.size(); ++k) {
      Value value = (*made)[numCarries + k];
      stacked[k].slices[t] = value;
      counted[k][t] = goes ? pick(goes, value, zeros(value.getType())) : value;
    }
  }
  Values results = carries;
  for (auto [result, one, list] : llvm::zip(op.stacks(), stacked, counted)) {
    Value whole = length ? stack(list) : zeros(result.getType());
    stacks[whole] = std::move(one);
    results.push_back(whole);
  }
  return results;
}

FailureOr<Expander::Values> Expander::expand(Operation *op,
                                             const Values &operands) {
  if (auto branch = dyn_cast<IfOp>(op))
    return expandIf(branch, operands);
  if (auto scan = dyn_cast<ScanOp>(op))
    return expandScan(scan, operands);
  return mlir::emitError(op->getLoc())
         << "unsupported: '" << op->getName()
         << "', whose number of iterations nothing bounds";
}

LogicalResult Expander::run(Block &block) {
  SmallVector<Operation *> ops;
  for (Operation &op : block)
    if (isFlow(&op) && !stays(&op))
      ops.push_back(&op);
  bool ok = true;
  for (Operation *op : ops) {
    Operation *before = op->getPrevNode();
    builder.setInsertionPoint(op);
    loc = op->getLoc();
    auto values = expand(op, Values(op->getOperands()));
    if (failed(values)) {
      ok = false;
      continue;
    }
    Operation *first = before ? before->getNextNode() : &block.front();
    for (; first != op; first = first->getNextNode()) {
      for (NamedAttribute attribute : op->getDiscardableAttrs())
        if (!isTag(attribute.getName()))
          first->setDiscardableAttr(attribute.getName(), attribute.getValue());
      addTags(first, op);
    }
    op->replaceAllUsesWith(*values);
    op->erase();
    ++expanded;
  }
  if (!ok)
    return failure();
  if (!ops.empty())
    eraseDeadOps(block);
  // What stays has regions, in which the rest is expanded.
  for (Operation &op : block)
    if (isFlow(&op))
      for (Region &region : op.getRegions())
        if (failed(run(region.front())))
          return failure();
  return success();
}

namespace {
struct ExpandFlow : tandem::impl::ExpandFlowBase<ExpandFlow> {
  void runOnOperation() final {
    Expander expander(getOperation());
    // What was in regions has composites of its own.
    if (failed(expander.run(getOperation().getBody().front())) ||
        failed(decomposeComposites(getOperation())))
      return signalPassFailure();
    expanded += expander.expanded;
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Constants of loops that stay
//===----------------------------------------------------------------------===//

/// Gives the regions of `op` one more argument.
static void addOperand(Operation *op, Value value) {
  if (auto branch = dyn_cast<IfOp>(op))
    branch.getInputsMutable().append(value);
  else if (auto scan = dyn_cast<ScanOp>(op))
    scan.getConstantsMutable().append(value);
  else
    cast<WhileOp>(op).getConstantsMutable().append(value);
  for (Region &region : op->getRegions())
    region.addArgument(value.getType(), value.getLoc());
}

static void hoistConstants(func::FuncOp func) {
  // Inner ones first: what leaves them leaves the outer ones next.
  func.walk([](Operation *op) {
    if (!isFlow(op))
      return;
    for (Region &region : op->getRegions())
      for (auto constant :
           llvm::make_early_inc_range(region.front().getOps<ConstantOp>())) {
        if (constant.getSplat())
          continue;
        addOperand(op, OpBuilder(op).clone(*constant)->getResult(0));
        constant.replaceAllUsesWith(Value(region.getArguments().back()));
        constant.erase();
      }
  });
}

namespace {
struct HoistConstants : tandem::impl::HoistConstantsBase<HoistConstants> {
  void runOnOperation() final { hoistConstants(getOperation()); }
};
} // namespace
