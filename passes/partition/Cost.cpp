//===- Cost.cpp - what saving and repeating take --------------------------===//
#include "passes/partition/Cost.h"

#include "passes/common/Phase.h"
#include "passes/partition/Programs.h"
#include "passes/plan/FormKernels.h"
#include "passes/plan/KernelBytes.h"
#include "passes/plan/Units.h"

#include "ir/Ops.h"
#include "ir/ops/Scalar.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tandem;

/// A value this many times larger than another counts without it.
static constexpr int64_t kMuchLarger = 8;

static OpClass classOf(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost ? cost.getOpClass() : OpClass::Program;
}

/// The value that a chain of views shows.
static Value throughViews(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ViewOpInterface>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

//===----------------------------------------------------------------------===//
// JointCosts
//===----------------------------------------------------------------------===//

bool JointCosts::isWhole(Operation *op) {
  switch (classOf(op)) {
  case OpClass::Constant:
  case OpClass::View:
  case OpClass::Pointwise:
  case OpClass::Reduction:
    return false;
  default:
    return true;
  }
}

bool JointCosts::isExact(Operation *op) {
  auto reduction = dyn_cast<ReductionOpInterface>(op);
  if (!reduction)
    return true;
  OpBuilder b(op->getContext());
  Block block;
  b.setInsertionPointToStart(&block);
  Type type =
      scalar::computeType(getElementTypeOrSelf(op->getResult(0).getType()));
  Value lhs = block.addArgument(type, op->getLoc());
  Value rhs = block.addArgument(type, op->getLoc());
  reduction.emitCombine(b, op->getLoc(), lhs, rhs);
  return llvm::none_of(block, [](Operation &code) {
    return isa<arith::AddFOp, arith::MulFOp>(code);
  });
}

JointCosts::JointCosts(const JointView &view)
    : rates(Rates::of(view.joint)), view(view) {
  for (Operation &op : view.joint.getOps())
    visit(op);
  findStages();
}

static bool isBarrier(Operation *op) {
  return JointCosts::isWhole(op) || classOf(op) == OpClass::Reduction;
}

void JointCosts::visit(Operation &op) {
  unsigned most = 0;
  for (Value operand : op.getOperands())
    most = std::max(most, level.lookup(operand));
  for (Value result : op.getResults())
    level[result] = most + isBarrier(&op);
  if (isBarrier(&op))
    return;
  for (Value result : op.getResults())
    if (llvm::all_of(op.getOperands(), [&](Value operand) {
          return isLight(operand) ||
                 bytesOf(operand) * kMuchLarger <= bytesOf(result);
        }))
      light.insert(result);
  if (isa<PointwiseOpInterface>(op))
    if (SmallVector<Value> sources = joinedBy(&op); !sources.empty())
      joins[&op] = std::move(sources);
}

/// The operands of a pointwise op that come from before what others follow
/// from; large ones alone.
SmallVector<Value> JointCosts::joinedBy(Operation *op) const {
  int64_t own = bytesOf(op->getResult(0));
  SmallVector<Value> sources;
  unsigned latest = 0;
  for (Value operand : op->getOperands()) {
    Value source = throughViews(operand);
    if (isLight(operand) || bytesOf(source) * kMuchLarger <= own ||
        isLight(source))
      continue;
    sources.push_back(source);
    latest = std::max(latest, level.lookup(source));
  }
  llvm::erase_if(sources,
                 [&](Value source) { return level.lookup(source) == latest; });
  return sources;
}

static unsigned depthBefore(Operation *op,
                            const DenseMap<Value, unsigned> &depth) {
  unsigned most = 0;
  for (Value operand : op->getOperands())
    most = std::max(most, depth.lookup(operand));
  return most;
}

/// How far the backward has come when it first uses a value, or what follows
/// from it without a join: the reductions and whole ops on a path from a
/// cotangent.
void JointCosts::findStages() {
  DenseMap<Value, unsigned> depth;
  for (Operation &op : view.joint.getOps())
    for (Value result : op.getResults())
      if (view.isBackwardOnly(result))
        depth[result] = depthBefore(&op, depth) + isBarrier(&op);
  for (Operation &op : llvm::reverse(view.joint.getBody().front())) {
    if (op.getNumResults() == 0)
      continue;
    unsigned first = std::numeric_limits<unsigned>::max();
    if (view.isBackwardOnly(op.getResult(0)))
      first = depthBefore(&op, depth);
    else if (isBarrier(&op) || joins.contains(&op))
      continue;
    else if (auto it = stage.find(op.getResult(0)); it != stage.end())
      first = it->second;
    for (Value operand : op.getOperands())
      if (!view.isBackwardOnly(operand)) {
        auto [it, isNew] = stage.try_emplace(operand, first);
        it->second = std::min(it->second, first);
      }
  }
}

/// Says of each op of a copy of the forward which op of the joint it is.
static constexpr StringLiteral kNumberAttr = "tandem.number";

/// Plans the kernels of a forward that saves nothing. What they give is in
/// memory.
void JointCosts::findInMemory() const {
  inMemory.emplace();
  SmallVector<Operation *> ops;
  Builder b(view.joint.getContext());
  for (Operation &op : view.joint.getOps()) {
    op.setAttr(kNumberAttr, b.getI64IntegerAttr(ops.size()));
    ops.push_back(&op);
  }
  func::FuncOp trial = buildForward(view, {}, SavedNames(view.joint, {}));
  for (Operation *op : ops)
    op->removeAttr(kNumberAttr);
  splitReductions(trial);
  if (FailureOr<RunConditions> conditions = RunConditions::of(trial);
      succeeded(conditions)) {
    Units units(trial, *conditions);
    fuse(units);
    for (unsigned unit = 0; unit < units.size(); ++unit)
      for (Value result : units.results(unit))
        if (auto number =
                result.getDefiningOp()->getAttrOfType<IntegerAttr>(kNumberAttr))
          inMemory->insert(ops[number.getInt()]->getResult(
              cast<OpResult>(result).getResultNumber()));
  }
  trial.erase();
}

double JointCosts::saving(Value value) const {
  double bytes = static_cast<double>(bytesOf(value));
  if (view.isFree(value) || view.outputOf(value))
    return rates.moving(bytes);
  if (!inMemory)
    findInMemory();
  bool isWritten = isa<BlockArgument>(value) || inMemory->contains(value);
  return rates.moving((isWritten ? 2 : 3) * bytes);
}

/// True if an op of the backward reads `value`, made again, from memory.
bool JointCosts::isReadFromMemory(Value value) const {
  SmallVector<Value> work = {value};
  while (!work.empty())
    for (Operation *user : work.pop_back_val().getUsers()) {
      if (user->getNumResults() == 0)
        continue;
      Value result = user->getResult(0);
      if (isa<ViewOpInterface>(user))
        work.push_back(result);
      else if (view.isBackwardOnly(result) && isWhole(user))
        return true;
    }
  return false;
}

/// The operands of a join that the backward comes to later than to its result.
SmallVector<Value> JointCosts::crossing(Operation *op) const {
  auto it = joins.find(op);
  if (it == joins.end())
    return {};
  SmallVector<Value> sources = it->second;
  llvm::erase_if(sources, [&](Value source) {
    return stage.lookup(source) <= stage.lookup(op->getResult(0));
  });
  return sources;
}

/// True if making the operands of `op` again begins with `source` and goes
/// through other ops.
static bool isMadeAgainFrom(Operation *op, Value source) {
  // A longer way is as bad.
  constexpr unsigned longest = 256;
  SmallVector<Operation *> work = {op};
  DenseSet<Operation *> seen;
  while (!work.empty() && seen.size() < longest) {
    Operation *next = work.pop_back_val();
    for (Value operand : next->getOperands()) {
      Operation *made = operand.getDefiningOp();
      if (operand == source && next != op)
        return true;
      if (made && !isBarrier(made) && seen.insert(made).second)
        work.push_back(made);
    }
  }
  return !work.empty();
}

double JointCosts::repeating(OpResult value) const {
  Operation *op = value.getOwner();
  if (passOf(op) == "backward")
    return 0;
  if (isWhole(op))
    return rates.secondsAlone(op);
  double seconds = rates.arithmetic(op);
  if (auto reduction = dyn_cast<ReductionOpInterface>(op))
    seconds += rates.moving(static_cast<double>(bytesOf(op->getOperand(0))));
  if (isa<PointwiseOpInterface>(op)) {
    for (Value source : crossing(op)) {
      // An argument is there in any case; what it costs is the way around it.
      bool isThere = view.isFree(source) && !isMadeAgainFrom(op, source);
      seconds += (isThere ? 1 : 3) *
                 rates.moving(static_cast<double>(bytesOf(source)));
    }
    // Reading it takes what reading a saved one takes.
    if (isReadFromMemory(value))
      seconds += rates.moving(static_cast<double>(bytesOf(value)));
  }
  return seconds;
}
