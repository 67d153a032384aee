//===- Programs.cpp - the functions that a joint falls into ---------------===//
#include "passes/partition/Programs.h"

#include "passes/common/Phase.h"

#include "ir/PartitionMarks.h"
#include "ir/Sharding.h"
#include "ir/Where.h"

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

  Operation *copy(Operation *op) {
    Operation *made = builder.clone(*op, map);
    // Which pass an op belongs to is now said by where it stands.
    made->removeAttr(kPassAttr);
    made->removeAttr(kNoGradAttr);
    made->removeAttr(kSavedAttr);
    made->removeAttr(kPreparedAttr);
    dropTags(made);
    return made;
  }

  OpBuilder &builder;
  IRMapping map;
};

} // namespace

DenseSet<Operation *> tandem::neededOps(ValueRange wanted,
                                        const IRMapping &map) {
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

SavedNames::SavedNames(func::FuncOp joint, const SavedValues &saved,
                       StringRef prefix) {
  llvm::StringMap<unsigned> counts;
  DenseMap<Operation *, unsigned> ordinals;
  for (Operation &op : joint.getOps())
    ordinals[&op] = counts[op.getName().stripDialect()]++;
  llvm::StringSet<> taken;
  for (const auto &[value, reason] : saved) {
    std::string name = prefix.str();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      name += roleOfArgument(joint, argument.getArgNumber()).getName().str();
    } else {
      Operation *op = value.getDefiningOp();
      name += (op->getName().stripDialect() + "." + Twine(ordinals[op])).str();
      if (unsigned result = cast<OpResult>(value).getResultNumber())
        name += ("." + Twine(result)).str();
    }
    while (!taken.insert(name).second)
      name += ".saved";
    names[value] = name;
  }
}

SmallVector<Slot> tandem::savedSlots(const JointView &view,
                                     const SavedValues &saved,
                                     const SavedNames &names) {
  func::FuncOp joint = view.joint;
  Builder builder(joint.getContext());
  SmallVector<Slot> slots;
  for (const auto &[value, reason] : saved) {
    RoleAttr role =
        RoleAttr::get(joint.getContext(), RoleKind::Saved, names.of(value))
            .with(RoleAttr::kReason, builder.getStringAttr(reason));
    if (StringAttr output = view.outputOf(value))
      role = role.with(RoleAttr::kAlias,
                       Alias{{}, output, builder.getArrayAttr({}), {}}.toAttr(
                           joint.getContext()));
    else if (view.isOnHost(value))
      role = role.withUnit(RoleAttr::kHost);
    slots.push_back({value.getType(), role, value.getLoc()});
  }
  return slots;
}

static Slot argumentSlot(func::FuncOp func, BlockArgument argument) {
  return {argument.getType(), roleOfArgument(func, argument.getArgNumber()),
          argument.getLoc()};
}

static Slot resultSlot(func::FuncOp func, unsigned i) {
  return {func.getResultTypes()[i], roleOfResult(func, i), func.getLoc()};
}

func::FuncOp tandem::copyProgram(func::FuncOp joint, StringRef name,
                                 ArrayRef<Slot> arguments,
                                 ArrayRef<Value> sources,
                                 ArrayRef<Slot> results,
                                 ArrayRef<Value> wanted) {
  OpBuilder builder(joint);
  func::FuncOp program =
      createGraphFunction(builder, joint.getLoc(), name, arguments, results);
  setLocalAs(program, joint);
  builder.setInsertionPointToStart(&program.getBody().front());
  Copier copier(builder);
  copier.map.map(sources, program.getArguments());
  DenseSet<Operation *> needed = neededOps(wanted, copier.map);
  for (Operation &op : joint.getOps())
    if (needed.contains(&op))
      copier.copy(&op);
  SmallVector<Value> returned;
  for (Value value : wanted)
    returned.push_back(copier.map.lookup(value));
  func::ReturnOp::create(builder, joint.getLoc(), returned);
  return program;
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

func::FuncOp tandem::buildForward(const JointView &view,
                                  const SavedValues &saved,
                                  const SavedNames &names) {
  func::FuncOp joint = view.joint;
  SmallVector<Slot> arguments, results;
  SmallVector<Value> sources;
  for (BlockArgument argument : joint.getArguments())
    if (Slot slot = argumentSlot(joint, argument); !isBackward(slot.role)) {
      slot.role = slot.role.without(RoleAttr::kUnchecked);
      arguments.push_back(slot);
      sources.push_back(argument);
    }
  for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i)
    if (Slot slot = resultSlot(joint, i);
        !isBackward(slot.role) && !isAliasOutput(slot.role)) {
      if (slot.role.getKind() == RoleKind::Output)
        slot.role = slot.role.without(RoleAttr::kUnchecked);
      results.push_back(slot);
    }
  results.append(savedSlots(view, saved, names));

  SmallVector<Value> wanted(view.forwardResults);
  for (const auto &[value, reason] : saved)
    wanted.push_back(value);
  func::FuncOp forward =
      copyProgram(joint, "forward", arguments, sources, results, wanted);
  setAliases(forward, joint);
  return forward;
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

bool tandem::isRepeated(Operation *op) {
  return passOf(op) == "forward" && !op->hasTrait<OpTrait::ConstantLike>();
}

SmallVector<Operation *> tandem::backwardOps(const JointView &view,
                                             const SavedValues &saved) {
  IRMapping made;
  for (const auto &[value, reason] : saved)
    made.map(value, value);
  DenseSet<Operation *> needed = neededOps(view.backwardResults, made);
  SmallVector<Operation *> order;
  // Adds what makes `wanted`, in the order of the joint.
  auto add = [&](ValueRange wanted) {
    DenseSet<Operation *> set = neededOps(wanted, made);
    SmallVector<Operation *> chain(set.begin(), set.end());
    llvm::sort(chain, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    for (Operation *link : chain) {
      order.push_back(link);
      for (Value result : link->getResults())
        made.map(result, result);
    }
  };
  for (Operation &op : view.joint.getOps())
    if (needed.contains(&op) && passOf(&op) == "backward" &&
        !made.contains(op.getResult(0)))
      add(op.getResults());
  // A result may be a value that no backward op makes.
  for (Value value : view.backwardResults)
    if (!made.contains(value))
      add(value);
  return order;
}

RoleAttr tandem::heldRole(RoleAttr role, bool isUnchecked) {
  if (RoleAttr::belongs(role.getKind()) || role.has(RoleAttr::kPass))
    return role;
  // Handles are the forward's to check and to change.
  if (role.getKind() != RoleKind::Saved)
    for (StringRef property :
         {"alias", "metadata", "storage", "resize", "freed"})
      role = role.without(property);
  role = role.without(RoleAttr::kUnchecked);
  return isUnchecked ? role.withUnit(RoleAttr::kUnchecked) : role;
}

/// What the joint lets custom backwards alone read, and no check guards: but
/// for what `ops` compute again from it, which want what the forward saw.
static DenseSet<Value> uncheckedValues(func::FuncOp joint,
                                       ArrayRef<Operation *> ops) {
  DenseSet<Value> values;
  for (BlockArgument argument : joint.getArguments())
    if (roleOfArgument(joint, argument.getArgNumber())
            .has(RoleAttr::kUnchecked))
      values.insert(argument);
  Operation *terminator = joint.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
    if (roleOfResult(joint, i).has(RoleAttr::kUnchecked))
      values.insert(value);
  for (Operation *op : ops)
    if (passOf(op) == "forward")
      for (Value operand : op->getOperands())
        values.erase(operand);
  return values;
}

func::FuncOp tandem::buildBackward(const JointView &view,
                                   const SavedValues &saved,
                                   const SavedNames &names) {
  func::FuncOp joint = view.joint;
  SmallVector<Operation *> ops = backwardOps(view, saved);
  DenseSet<Value> unchecked = uncheckedValues(joint, ops);
  // Which arguments the backward needs follows from what it computes.
  DenseSet<Value> used(view.backwardResults.begin(),
                       view.backwardResults.end());
  for (Operation *op : ops)
    used.insert(op->operand_begin(), op->operand_end());

  SmallVector<Slot> arguments, own, results;
  SmallVector<Value> sources, ownSources;
  for (BlockArgument argument : joint.getArguments()) {
    Slot slot = argumentSlot(joint, argument);
    if (isBackward(slot.role)) {
      // What a backward finds and only overwrites is an argument all the same:
      // the update is of it.
      own.push_back(slot);
      ownSources.push_back(argument);
    } else if (used.contains(argument) && !saved.contains(argument)) {
      arguments.push_back(slot);
      sources.push_back(argument);
    }
  }
  for (const auto &[value, reason] : saved)
    sources.push_back(value);
  sources.append(ownSources);
  arguments.append(savedSlots(view, saved, names));
  arguments.append(own);
  for (auto [slot, source] : llvm::zip_equal(arguments, sources))
    slot.role = heldRole(slot.role, unchecked.contains(source));
  for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i)
    if (Slot slot = resultSlot(joint, i); isBackward(slot.role))
      results.push_back(slot);

  OpBuilder builder(joint);
  func::FuncOp backward = createGraphFunction(builder, joint.getLoc(),
                                              "backward", arguments, results);
  setLocalAs(backward, joint);
  builder.setInsertionPointToStart(&backward.getBody().front());
  Copier copier(builder);
  copier.map.map(sources, backward.getArguments());
  for (Operation *op : ops) {
    Operation *made = copier.copy(op);
    if (isRepeated(op))
      made->setLoc(recomputationOf(op->getName().stripDialect(), op->getLoc()));
  }
  SmallVector<Value> returned;
  for (Value value : view.backwardResults)
    returned.push_back(copier.map.lookup(value));
  func::ReturnOp::create(builder, joint.getLoc(), returned);
  return backward;
}
