//===- SavedValues.cpp - what crosses from forward to backward ------------===//
#include "passes/partition/SavedValues.h"

#include "passes/common/Phase.h"
#include "passes/partition/Cost.h"
#include "passes/partition/MaxFlow.h"
#include "passes/partition/Tags.h"
#include "passes/plan/KernelBytes.h"

#include "ir/Ops.h"
#include "ir/Signature.h"

using namespace mlir;
using namespace tandem;

//===----------------------------------------------------------------------===//
// JointView
//===----------------------------------------------------------------------===//

bool tandem::isAliasOutput(RoleAttr role) {
  return role.getKind() == RoleKind::Output && role.has(RoleAttr::kAlias);
}

/// The storage behind an argument: its own name, or that of the argument or
/// storage that the caller says it shares.
static StringRef storageOf(RoleAttr role) {
  StringAttr of = role.getAlias().of;
  return of ? of.getValue() : role.getName().getValue();
}

JointView::JointView(func::FuncOp joint, const llvm::StringSet<> &lostNames)
    : joint(joint) {
  Block &block = joint.getBody().front();
  llvm::StringSet<> written = lostNames;
  auto roles = llvm::map_range(block.getArguments(), [&](BlockArgument a) {
    return std::make_pair(a, roleOfArgument(joint, a.getArgNumber()));
  });
  // Arguments that show parts of another one have no updates of their own;
  // those that show parts of storage that is no argument have, unless one of
  // them shows all of it.
  for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(joint, i);
        role.getKind() == RoleKind::Update)
      written.insert(role.getName());
  for (auto [argument, role] : roles)
    if (role.has(RoleAttr::kResize)) {
      written.insert(role.getName());
      written.insert(storageOf(role));
    }
  for (auto [argument, role] : roles)
    if (Alias alias = role.getAlias();
        alias && alias.views.empty() && written.contains(role.getName()))
      written.insert(storageOf(role));
  for (auto [argument, role] : roles)
    if (isBackward(role))
      backwardOnly.insert(argument);
    else if (written.contains(storageOf(role)) ||
             written.contains(role.getName()))
      lost.insert(argument);
  for (Operation &op : block)
    if (llvm::any_of(op.getOperands(),
                     [&](Value operand) { return isBackwardOnly(operand); }))
      backwardOnly.insert(op.result_begin(), op.result_end());
  for (auto [i, value] : llvm::enumerate(block.getTerminator()->getOperands()))
    if (RoleAttr role = roleOfResult(joint, i); isBackward(role)) {
      backwardResults.push_back(value);
      given.insert(value);
    } else if (!isAliasOutput(role)) {
      forwardResults.push_back(value);
      // A gradient that is an output of @grad_joint is its receiver's to write.
      if (role.getKind() == RoleKind::Output && joint.getName() == "joint")
        outputs.try_emplace(value, role.getName());
    }
  pins = Pins(*this);
}

static OpClass classOf(Operation *op) {
  auto cost = dyn_cast<CostOpInterface>(op);
  return cost ? cost.getOpClass() : OpClass::Program;
}

bool JointView::isFree(Value value) const {
  if (isa<BlockArgument>(value))
    return !isBackwardOnly(value) && !isLost(value);
  return classOf(value.getDefiningOp()) == OpClass::Constant;
}

static int64_t bytesSaved(const SavedValues &saved) {
  int64_t bytes = 0;
  for (const auto &[value, reason] : saved)
    bytes += bytesOf(value);
  return bytes;
}

/// The same values, in the order in which the joint has them.
static SavedValues inOrder(const JointView &view, const SavedValues &saved) {
  SavedValues sorted;
  auto add = [&](Value value) {
    if (auto it = saved.find(value); it != saved.end())
      sorted.insert(*it);
  };
  Block &block = view.joint.getBody().front();
  llvm::for_each(block.getArguments(), add);
  for (Operation &op : block)
    llvm::for_each(op.getResults(), add);
  return sorted;
}

//===----------------------------------------------------------------------===//
// default
//===----------------------------------------------------------------------===//

/// The source of `value` if that is a view made in the forward; null otherwise.
static Value viewedBy(Value value) {
  Operation *op = value.getDefiningOp();
  if (op && isa<ViewOpInterface>(op) && passOf(op) == "forward")
    return op->getOperand(0);
  return {};
}

SavedValues tandem::saveWhatBackwardUses(const JointView &view) {
  const Pins &pins = view.pins;
  SavedValues saved;
  SmallVector<Value> views;
  DenseSet<Value> seen;
  // With what is not saved, the backward uses what that is computed from.
  SmallVector<Value> work;
  auto use = [&](Value first) {
    for (work.push_back(first); !work.empty();) {
      Value value = work.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (view.isFree(value) || view.isBackwardOnly(value) ||
          !seen.insert(value).second || (op && passOf(op) == "backward"))
        continue;
      if (viewedBy(value))
        views.push_back(value);
      else if (pins.mayNotSave(value))
        work.append(op->operand_begin(), op->operand_end());
      else
        saved.insert({value, "the backward uses it"});
    }
  };
  for (Operation &op : view.joint.getOps())
    if (passOf(&op) == "backward")
      llvm::for_each(op.getOperands(), use);
  llvm::for_each(view.backwardResults, use);

  for (size_t i = 0; i < views.size(); ++i) {
    Value smallest, source = views[i];
    bool available = false;
    for (Value link = views[i]; link && !available; link = viewedBy(link)) {
      available = view.isFree(link) || saved.contains(link);
      if (!pins.mayNotSave(link) &&
          (!smallest || bytesOf(link) <= bytesOf(smallest)))
        smallest = link;
      source = link;
    }
    if (available)
      continue;
    if (smallest)
      saved.insert({smallest, "the backward uses a view of it"});
    else
      llvm::for_each(source.getDefiningOp()->getOperands(), use);
  }
  for (Value value : pins.forced())
    saved.insert({value, ""});
  for (auto &[value, reason] : saved)
    if (pins.mayNotRepeat(value))
      reason = pins.whyKept(value);
  return inOrder(view, saved);
}

//===----------------------------------------------------------------------===//
// min-cut
//===----------------------------------------------------------------------===//

namespace {

/// Capacities are what moving a byte takes, in this unit; less than one decides
/// between equal cuts.
constexpr int64_t kByte = 256;

/// A value of the network: cut between `in` and `out`, it is saved.
struct Node {
  Value value;
  unsigned in, out;
};

class CutNetwork {
public:
  explicit CutNetwork(const JointView &view) : view(view), costs(view) {}
  SavedValues run();

private:
  void add(Value value);
  int64_t capacity(double seconds) const;
  /// What it takes to make `value` in the backward as well; kUnlimited if that
  /// may not be.
  int64_t costOfRepeating(OpResult value);
  std::string reasonFor(Value value);

  const JointView &view;
  const JointCosts costs;
  MaxFlow flow;
  SmallVector<Node> nodes;
  DenseMap<Value, unsigned> outOf;
};

} // namespace

int64_t CutNetwork::capacity(double seconds) const {
  return static_cast<int64_t>(seconds * costs.rates.bytes * kByte);
}

int64_t CutNetwork::costOfRepeating(OpResult value) {
  Operation *op = value.getOwner();
  // What only the backward needs is made once wherever it is made.
  if (passOf(op) != "backward" &&
      (JointCosts::isWhole(op) || !JointCosts::isExact(op)))
    return MaxFlow::kUnlimited;
  return capacity(costs.repeating(value));
}

void CutNetwork::add(Value value) {
  if (view.isBackwardOnly(value))
    return;
  Operation *op = value.getDefiningOp();
  if (op && view.isFree(value))
    return;
  unsigned in = flow.addNode(), out = flow.addNode();
  // Of equal cuts the one through values that the forward has in memory
  // anyway: not those that it would compute for the backward, nor views.
  int64_t extra = 0;
  if (op)
    extra = (passOf(op) == "backward") + (classOf(op) == OpClass::View);
  int64_t keeping = capacity(costs.saving(value)) + extra;
  int64_t cost =
      op ? costOfRepeating(cast<OpResult>(value)) : MaxFlow::kUnlimited;
  // What tags say is done, whatever it costs.
  const Pins &pins = view.pins;
  if (pins.mayNotSave(value)) {
    keeping = MaxFlow::kUnlimited;
    cost = 0;
  } else if (pins.mayNotRepeat(value)) {
    cost = MaxFlow::kUnlimited;
  } else if (costs.isLight(value)) {
    keeping = MaxFlow::kUnlimited;
  }
  if (pins.mustSave(value))
    keeping = 0;
  flow.addEdge(in, out, keeping);
  if (cost > 0)
    flow.addEdge(MaxFlow::kSource, in, cost);
  if (op)
    for (Value operand : op->getOperands())
      if (auto it = outOf.find(operand); it != outOf.end())
        flow.addEdge(it->second, in, MaxFlow::kUnlimited);
  if (view.isGiven(value) ||
      llvm::any_of(value.getUsers(), [&](Operation *user) {
        return llvm::any_of(user->getResults(), [&](Value result) {
          return view.isBackwardOnly(result);
        });
      }))
    flow.addEdge(out, MaxFlow::kSink, MaxFlow::kUnlimited);
  nodes.push_back({value, in, out});
  outOf[value] = out;
}

std::string CutNetwork::reasonFor(Value value) {
  if (view.pins.mayNotRepeat(value))
    return view.pins.whyKept(value);
  Operation *op = value.getDefiningOp();
  if (!op)
    return "it does not keep its value";
  OpClass opClass = classOf(op);
  switch (opClass) {
  case OpClass::Pointwise:
  case OpClass::View:
    return "the smallest cut goes through it";
  case OpClass::Reduction:
    return "reducing again would read more";
  default:
    return (stringify(opClass) + " ops are not computed again").str();
  }
}

SavedValues CutNetwork::run() {
  Block &block = view.joint.getBody().front();
  for (BlockArgument argument : block.getArguments())
    add(argument);
  for (Operation &op : block)
    for (Value result : op.getResults())
      add(result);
  flow.run();
  llvm::BitVector sinkSide = flow.sinkSide();
  SavedValues saved;
  for (const Node &node : nodes)
    if (!sinkSide.test(node.in) && sinkSide.test(node.out) &&
        !view.isFree(node.value))
      saved.insert({node.value, reasonFor(node.value)});
  for (Value value : view.pins.forced())
    saved.insert({value, view.pins.whyKept(value)});
  return inOrder(view, saved);
}

SavedValues tandem::saveSmallestCut(const JointView &view) {
  SavedValues cut = CutNetwork(view).run();
  SavedValues plain = saveWhatBackwardUses(view);
  // The cut also weighs what is read; where that makes it keep more, it has
  // missed its purpose.
  return bytesSaved(cut) <= bytesSaved(plain) ? cut : plain;
}
