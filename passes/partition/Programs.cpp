//===- Programs.cpp - the functions that a joint falls into ---------------===//
#include "passes/partition/Programs.h"

#include "passes/Doors.h"

#include "ir/Ops.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tandem;

namespace {

/// Copies ops of a joint into a program.
class Copier {
public:
  Copier(OpBuilder &builder) : builder(builder) {}

  void copy(Operation *op) {
    Operation *made = builder.clone(*op, map);
    // Which pass an op belongs to is now said by where it stands.
    made->removeAttr(kPassAttr);
    made->removeAttr(kNoGradAttr);
  }

  OpBuilder &builder;
  IRMapping map;
};

/// The ops that `wanted` needs and that are not in `map`.
DenseSet<Operation *> neededOps(ValueRange wanted, const IRMapping &map) {
  DenseSet<Operation *> needed;
  SmallVector<Value> work(wanted);
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (op && !map.contains(value) && needed.insert(op).second)
      work.append(op->operand_begin(), op->operand_end());
  }
  return needed;
}

/// Names saved values by the op that made them: the fourth relu of the joint is
/// "relu.3"; an argument keeps its name.
class SavedNames {
public:
  explicit SavedNames(func::FuncOp joint) : joint(joint) {
    llvm::StringMap<unsigned> counts;
    for (Operation &op : joint.getOps())
      ordinals[&op] = counts[op.getName().stripDialect()]++;
  }
  std::string nameOf(Value value) {
    std::string name;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      name = roleOfArgument(joint, argument.getArgNumber()).getName().str();
    } else {
      Operation *op = value.getDefiningOp();
      name = op->getName().stripDialect().str() + "." +
             std::to_string(ordinals[op]);
      if (unsigned result = cast<OpResult>(value).getResultNumber())
        name += ("." + Twine(result)).str();
    }
    while (!taken.insert(name).second)
      name += ".saved";
    return name;
  }

private:
  func::FuncOp joint;
  DenseMap<Operation *, unsigned> ordinals;
  llvm::StringSet<> taken;
};

} // namespace

static SmallVector<Slot> savedSlots(const JointView &view,
                                    const SavedValues &saved) {
  func::FuncOp joint = view.joint;
  MLIRContext *context = joint.getContext();
  SavedNames names(joint);
  SmallVector<Slot> slots;
  for (const auto &[value, reason] : saved)
    slots.push_back(
        {value.getType(),
         RoleAttr::get(context, RoleKind::Saved, names.nameOf(value))
             .with("reason", StringAttr::get(context, reason)),
         value.getLoc()});
  return slots;
}

static Slot argumentSlot(func::FuncOp func, BlockArgument argument) {
  return {argument.getType(), roleOfArgument(func, argument.getArgNumber()),
          argument.getLoc()};
}

static Slot resultSlot(func::FuncOp func, unsigned i) {
  return {func.getResultTypes()[i], roleOfResult(func, i), func.getLoc()};
}

func::FuncOp tandem::buildForward(const JointView &view,
                                  const SavedValues &saved) {
  func::FuncOp joint = view.joint;
  SmallVector<Slot> arguments, results;
  for (BlockArgument argument : joint.getArguments())
    if (Slot slot = argumentSlot(joint, argument);
        slot.role.getKind() != RoleKind::Cotangent)
      arguments.push_back(slot);
  for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i)
    if (Slot slot = resultSlot(joint, i); slot.role.getKind() != RoleKind::Grad)
      results.push_back(slot);
  results.append(savedSlots(view, saved));

  OpBuilder builder(joint);
  func::FuncOp forward = createGraphFunction(builder, joint.getLoc(), "forward",
                                             arguments, results);
  builder.setInsertionPointToStart(&forward.getBody().front());
  Copier copier(builder);
  unsigned next = 0;
  for (BlockArgument argument : joint.getArguments())
    if (roleOfArgument(joint, argument.getArgNumber()).getKind() !=
        RoleKind::Cotangent)
      copier.map.map(argument, forward.getArgument(next++));
  SmallVector<Value> wanted(view.forwardResults);
  for (const auto &[value, reason] : saved)
    wanted.push_back(value);
  DenseSet<Operation *> needed = neededOps(wanted, copier.map);
  for (Operation &op : joint.getOps())
    if (needed.contains(&op))
      copier.copy(&op);
  SmallVector<Value> returned;
  for (Value value : wanted)
    returned.push_back(copier.map.lookup(value));
  func::ReturnOp::create(builder, joint.getLoc(), returned);
  return forward;
}

func::FuncOp tandem::buildBackward(const JointView &view,
                                   const SavedValues &saved,
                                   SmallVectorImpl<Operation *> &repeated) {
  func::FuncOp joint = view.joint;
  // Which arguments the backward needs follows from what it computes.
  IRMapping given;
  for (const auto &[value, reason] : saved)
    given.map(value, value);
  DenseSet<Operation *> needed = neededOps(view.gradientResults, given);
  DenseSet<Value> used(view.gradientResults.begin(),
                       view.gradientResults.end());
  for (Operation *op : needed)
    used.insert(op->operand_begin(), op->operand_end());

  SmallVector<Slot> arguments, cotangents, results;
  SmallVector<Value> sources, cotangentSources;
  for (BlockArgument argument : joint.getArguments()) {
    Slot slot = argumentSlot(joint, argument);
    if (slot.role.getKind() == RoleKind::Cotangent) {
      cotangents.push_back(slot);
      cotangentSources.push_back(argument);
    } else if (used.contains(argument) && !saved.contains(argument)) {
      arguments.push_back(slot);
      sources.push_back(argument);
    }
  }
  for (const auto &[value, reason] : saved)
    sources.push_back(value);
  sources.append(cotangentSources);
  arguments.append(savedSlots(view, saved));
  arguments.append(cotangents);
  for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i)
    if (Slot slot = resultSlot(joint, i); slot.role.getKind() == RoleKind::Grad)
      results.push_back(slot);

  OpBuilder builder(joint);
  func::FuncOp backward = createGraphFunction(builder, joint.getLoc(),
                                              "backward", arguments, results);
  builder.setInsertionPointToStart(&backward.getBody().front());
  Copier copier(builder);
  copier.map.map(sources, backward.getArguments());
  auto before = [](Operation *a, Operation *b) {
    return a->isBeforeInBlock(b);
  };
  for (Operation &op : joint.getOps()) {
    if (!needed.contains(&op) || passOf(&op) != "backward" ||
        copier.map.contains(op.getResult(0)))
      continue;
    DenseSet<Operation *> set = neededOps(op.getResults(), copier.map);
    SmallVector<Operation *> chain(set.begin(), set.end());
    llvm::sort(chain, before);
    for (Operation *link : chain) {
      copier.copy(link);
      if (passOf(link) == "forward" && !link->hasTrait<OpTrait::ConstantLike>())
        repeated.push_back(link);
    }
  }
  // A gradient may be a value that no backward op makes.
  for (Value value : view.gradientResults)
    if (!copier.map.contains(value)) {
      DenseSet<Operation *> set = neededOps(value, copier.map);
      SmallVector<Operation *> chain(set.begin(), set.end());
      llvm::sort(chain, before);
      for (Operation *link : chain)
        copier.copy(link);
    }
  SmallVector<Value> returned;
  for (Value value : view.gradientResults)
    returned.push_back(copier.map.lookup(value));
  func::ReturnOp::create(builder, joint.getLoc(), returned);
  return backward;
}

//===----------------------------------------------------------------------===//
// @step
//===----------------------------------------------------------------------===//

namespace {

/// Inlines programs one after the other; what one returns, the next takes, by
/// role and name.
class Inliner {
public:
  Inliner(OpBuilder &builder) : builder(builder) {}

  /// Makes `value` known as an argument for the programs to come.
  void define(RoleKind kind, StringRef name, Value value) {
    values[key(kind, name)] = value;
  }
  Value lookup(RoleKind kind, StringRef name) {
    return values.lookup(key(kind, name));
  }
  void inlineBody(func::FuncOp program) {
    IRMapping map;
    for (BlockArgument argument : program.getArguments()) {
      RoleAttr role = roleOfArgument(program, argument.getArgNumber());
      map.map(argument, lookup(role.getKind(), role.getName()));
    }
    Block &body = program.getBody().front();
    for (Operation &op : body.without_terminator())
      builder.clone(op, map);
    for (auto [i, value] :
         llvm::enumerate(body.getTerminator()->getOperands())) {
      RoleAttr role = roleOfResult(program, i);
      define(role.getKind(), role.getName(), map.lookup(value));
    }
  }

private:
  static std::string key(RoleKind kind, StringRef name) {
    return stringifyRoleKind(kind).str() + " " + name.str();
  }
  OpBuilder &builder;
  llvm::StringMap<Value> values;
};

} // namespace

func::FuncOp tandem::buildStep(func::FuncOp forward, func::FuncOp backward,
                               func::FuncOp update) {
  SmallVector<Slot> arguments, results;
  for (BlockArgument argument : forward.getArguments())
    arguments.push_back(argumentSlot(forward, argument));
  for (BlockArgument argument : update.getArguments()) {
    Slot slot = argumentSlot(update, argument);
    if (slot.role.getKind() == RoleKind::State)
      arguments.push_back(slot);
  }
  for (unsigned i = 0, n = forward.getNumResults(); i < n; ++i)
    if (Slot slot = resultSlot(forward, i);
        slot.role.getKind() != RoleKind::Saved)
      results.push_back(slot);
  for (unsigned i = 0, n = update.getNumResults(); i < n; ++i)
    results.push_back(resultSlot(update, i));

  OpBuilder builder(update->getContext());
  builder.setInsertionPointAfter(update);
  func::FuncOp step = createGraphFunction(builder, forward.getLoc(), "step",
                                          arguments, results);
  builder.setInsertionPointToStart(&step.getBody().front());
  Inliner inliner(builder);
  for (auto [slot, value] : llvm::zip_equal(arguments, step.getArguments()))
    inliner.define(slot.role.getKind(), slot.role.getName(), value);
  inliner.inlineBody(forward);
  for (BlockArgument argument : backward.getArguments())
    if (RoleAttr role = roleOfArgument(backward, argument.getArgNumber());
        role.getKind() == RoleKind::Cotangent)
      inliner.define(
          role.getKind(), role.getName(),
          ConstantOp::splat(builder, argument.getLoc(),
                            cast<RankedTensorType>(argument.getType()), 1.0));
  inliner.inlineBody(backward);
  inliner.inlineBody(update);
  SmallVector<Value> returned;
  for (const Slot &slot : results)
    returned.push_back(
        inliner.lookup(slot.role.getKind(), slot.role.getName()));
  func::ReturnOp::create(builder, forward.getLoc(), returned);
  return step;
}
