//===- JointProblem.cpp - the problem that a joint function poses ---------===//
#include "passes/partition/budget/JointProblem.h"

#include "passes/common/Phase.h"
#include "passes/partition/Cost.h"
#include "passes/plan/KernelBytes.h"

#include "ir/Ops.h"
#include "ir/Signature.h"

#include "llvm/ADT/Hashing.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::budget;

static OpClass classOf(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost ? cost.getOpClass() : OpClass::Program;
}

/// What `value` is a name of: the source of views that is no larger.
static mlir::Value throughViews(mlir::Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<ViewOpInterface>(op) ||
        bytesOf(op->getOperand(0)) > bytesOf(value))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// True if the backward alone has the op.
static bool isOfBackward(const JointView &view, Operation *op) {
  return llvm::any_of(op->getResults(), [&](mlir::Value result) {
    return view.isBackwardOnly(result);
  });
}

void JointProblem::findLevels() {
  for (Operation &op : view.joint.getOps()) {
    unsigned most = 0;
    for (mlir::Value operand : op.getOperands())
      most = std::max(most, level.lookup(operand));
    if (JointCosts::isWhole(&op) || classOf(&op) == OpClass::Reduction)
      ++most;
    for (mlir::Value result : op.getResults())
      level[result] = most;
  }
}

/// A number for each op that is the same for ops that do the same in the same
/// surroundings: by what they are, by what gives their operands, by what reads
/// their results.
void JointProblem::findKinds() {
  SmallVector<Operation *> ops;
  for (Operation &op : view.joint.getOps())
    ops.push_back(&op);
  for (Operation *op : ops) {
    llvm::hash_code code = llvm::hash_value(op->getName().getStringRef());
    for (Type type : op->getResultTypes())
      code = llvm::hash_combine(code, mlir::hash_value(type));
    for (Type type : op->getOperandTypes())
      code = llvm::hash_combine(code, mlir::hash_value(type));
    kinds[op] = code;
  }
  for (unsigned round = 0; round < 3; ++round) {
    DenseMap<Operation *, uint64_t> next;
    for (Operation *op : ops) {
      llvm::hash_code code = llvm::hash_value(kinds.lookup(op));
      for (mlir::Value operand : op->getOperands())
        code = llvm::hash_combine(code, kinds.lookup(operand.getDefiningOp()));
      // In no order: uses of a value have none.
      uint64_t users = 0;
      for (Operation *user : op->getUsers())
        users += kinds.lookup(user);
      next[op] = llvm::hash_combine(code, users);
    }
    kinds = std::move(next);
  }
}

/// True if `value` would be nowhere but in the kernel that makes it: in the
/// forward all its readers are pointwise ops and reductions that follow at
/// once, in the backward, made again there, likewise.
bool JointProblem::livesInKernel(mlir::Value value, bool inBackward) const {
  Operation *op = value.getDefiningOp();
  OpClass own = classOf(op);
  if (own == OpClass::View || own == OpClass::Constant)
    return true;
  if (own != OpClass::Pointwise && own != OpClass::Contraction)
    return false;
  std::optional<unsigned> at;
  SmallVector<mlir::Value> work = {value};
  while (!work.empty())
    for (Operation *user : work.pop_back_val().getUsers()) {
      if (user->getNumResults() == 0)
        continue;
      // In the backward ops of the forward may run again, and read it too.
      if (!inBackward && isOfBackward(view, user))
        continue;
      if (isa<ViewOpInterface>(user)) {
        work.push_back(user->getResult(0));
        continue;
      }
      OpClass opClass = classOf(user);
      if (opClass != OpClass::Pointwise &&
          (opClass != OpClass::Reduction || own == OpClass::Contraction))
        return false;
      unsigned there = level.lookup(user->getResult(0)) -
                       (opClass == OpClass::Reduction ? 1 : 0);
      if (at.value_or(there) != there)
        return false;
      at = there;
    }
  return !at || inBackward || *at == level.lookup(value);
}

unsigned JointProblem::number(mlir::Value value) {
  value = throughViews(value);
  auto [it, isNew] = numbers.try_emplace(value, graph.values.size());
  if (isNew) {
    graph.addValue({});
    owners.push_back(value);
  }
  return it->second;
}

void JointProblem::addOp(Operation *op, bool isForward) {
  Op made;
  for (mlir::Value operand : op->getOperands())
    if (unsigned n = number(operand); !llvm::is_contained(made.operands, n))
      made.operands.push_back(n);
  for (mlir::Value result : op->getResults())
    if (throughViews(result) == result)
      made.results.push_back(number(result));
  if (made.results.empty())
    return;
  graph.addOp(made, isForward);
}

JointProblem::JointProblem(const JointView &view) : view(view) {
  JointCosts costs(view);
  findLevels();
  findKinds();
  // What only the backward needs stands as early as it can be made.
  SmallVector<std::pair<unsigned, Operation *>> forward;
  DenseMap<Operation *, unsigned> position;
  SmallVector<Operation *> backward;
  for (auto [i, op] : llvm::enumerate(view.joint.getBody().front())) {
    if (op.getNumResults() == 0)
      continue;
    if (isOfBackward(view, &op)) {
      backward.push_back(&op);
      continue;
    }
    unsigned at = i;
    if (passOf(&op) == "backward") {
      at = 0;
      for (mlir::Value operand : op.getOperands())
        if (Operation *from = operand.getDefiningOp())
          at = std::max(at, position.lookup(from));
    }
    position[&op] = at;
    forward.push_back({at, &op});
  }
  llvm::sort(forward, [](const auto &x, const auto &y) {
    return x.first != y.first ? x.first < y.first
                              : x.second->isBeforeInBlock(y.second);
  });

  for (BlockArgument argument : view.joint.getArguments())
    number(argument);
  std::vector<Operation *> made;
  auto add = [&](Operation *op, bool isForward) {
    size_t before = graph.ops.size();
    addOp(op, isForward);
    if (graph.ops.size() == before)
      return;
    Op &o = graph.ops.back();
    auto cost = dyn_cast<CostOpInterface>(op);
    o.flops = cost ? static_cast<double>(cost.getFlops()) : 0;
    o.isLazy = isForward && passOf(op) == "backward";
    o.overwrites = classOf(op) == OpClass::Pointwise;
    // A sum has other bits where it is made among other ops.
    o.mayNotRepeat = isForward && !o.isLazy && !JointCosts::isExact(op);
    for (mlir::Value result : op->getResults())
      o.mayNotRepeat |= isForward && view.pins.mayNotRepeat(result);
    bool isAlone = JointCosts::isWhole(op);
    o.seconds =
        isAlone ? costs.rates.secondsAlone(op) : costs.rates.arithmetic(op);
    for (unsigned result : o.results) {
      Value &value = graph.values[result];
      mlir::Value owner = owners[result];
      value.bytes = bytesOf(owner);
      value.ownBytes = livesInKernel(owner, !isForward) ? 0 : value.bytes;
      value.againBytes = isForward && livesInKernel(owner, /*inBackward=*/true)
                             ? 0
                             : value.bytes;
      value.kind = kinds.lookup(op);
      if (!isForward) {
        if (!isAlone && value.ownBytes > 0)
          o.seconds += costs.rates.moving(static_cast<double>(value.bytes));
        continue;
      }
      if (!isAlone && value.ownBytes > 0)
        o.seconds += costs.rates.moving(static_cast<double>(value.bytes));
      o.againSeconds += costs.repeating(cast<OpResult>(owner));
      value.saveSeconds = costs.saving(owner);
      value.isFree = view.isFree(owner);
      // It is there anyway, and stays.
      if (view.outputOf(owner))
        value.bytes = value.ownBytes = 0;
    }
    if (o.isLazy)
      o.againSeconds = o.seconds;
    // With memory enough, whole ops are not made again (row P05), whatever the
    // costs say: that is never cheaper than keeping what they give.
    if (isForward && isAlone)
      for (unsigned result : o.results)
        o.againSeconds =
            std::max(o.againSeconds, graph.values[result].saveSeconds * 1.01);
  };
  for (auto [at, op] : forward)
    add(op, true);
  for (Operation *op : backward)
    add(op, false);
  for (BlockArgument argument : view.joint.getArguments()) {
    Value &value = graph.values[numbers.lookup(argument)];
    value.isFree = view.isFree(argument) || view.isBackwardOnly(argument);
    value.bytes = value.isFree ? 0 : bytesOf(argument);
  }
  pinValues();
}

/// What the tags say of a value, or of a view of it.
void JointProblem::pinValues() {
  for (Operation &op : view.joint.getOps())
    for (mlir::Value result : op.getResults())
      if (auto it = numbers.find(throughViews(result)); it != numbers.end()) {
        graph.values[it->second].mustSave |= view.pins.mustSave(result);
        graph.values[it->second].mustRecompute |= view.pins.mayNotSave(result);
      }
}

Set JointProblem::setOf(const SavedValues &saved) const {
  Set set(graph.values.size());
  for (const auto &[value, reason] : saved)
    if (auto it = numbers.find(throughViews(value)); it != numbers.end())
      set.set(it->second);
  return set;
}

/// Why `value` is saved.
std::string JointProblem::reasonFor(mlir::Value value) const {
  if (view.pins.mayNotRepeat(value))
    return view.pins.whyKept(value);
  const Value &own = graph.values[numbers.lookup(value)];
  if (own.producer == kNone)
    return "it does not keep its value";
  return graph.ops[own.producer].mayNotRepeat
             ? "made again it would have other bits"
             : "the memory budget has room for it";
}

SavedValues JointProblem::savedOf(const Set &set) const {
  SavedValues saved;
  llvm::SmallVector<mlir::Value> forced = view.pins.forced();
  llvm::DenseSet<mlir::Value> wanted(forced.begin(), forced.end());
  for (unsigned number : set.set_bits())
    wanted.insert(owners[number]);
  auto add = [&](mlir::Value value) {
    if (wanted.contains(value))
      saved.insert({value, view.pins.mustSave(value) ? view.pins.whyKept(value)
                                                     : reasonFor(value)});
  };
  Block &block = view.joint.getBody().front();
  llvm::for_each(block.getArguments(), add);
  for (Operation &op : block)
    llvm::for_each(op.getResults(), add);
  return saved;
}
