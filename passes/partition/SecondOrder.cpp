//===- SecondOrder.cpp - a backward that can be differentiated ------------===//
#include "passes/partition/SecondOrder.h"

#include "passes/common/Phase.h"

#include "ir/Ops.h"
#include "ir/PartitionMarks.h"

#include "mlir/IR/IRMapping.h"

#include <map>

using namespace mlir;
using namespace tandem;

/// The role of an argument or result of @grad_joint in the joint, whose
/// cotangents, gradients and writes are inputs, outputs and updates there.
static RoleAttr asJointRole(RoleAttr role) {
  MLIRContext *context = role.getContext();
  StringRef name = role.getName();
  if (isBackward(role))
    return role;
  if (role.getKind() == RoleKind::Update) {
    name.consume_front("backward of ");
    return RoleAttr::get(context, RoleKind::Update,
                         StringAttr::get(context, name), role.getProperties())
        .with(RoleAttr::kPass, StringAttr::get(context, "backward"));
  }
  if (role.getKind() == RoleKind::Output && name.consume_front("grad of "))
    return RoleAttr::get(context, RoleKind::Grad, name);
  if (role.getKind() == RoleKind::Input && name.consume_front("cotangent of "))
    return RoleAttr::get(context, RoleKind::Cotangent, name);
  if (name.consume_front("backward of "))
    return RoleAttr::get(context, role.getKind(), name)
        .with(RoleAttr::kPass, StringAttr::get(context, "backward"));
  return role;
}

//===----------------------------------------------------------------------===//
// Which values the two joints share
//===----------------------------------------------------------------------===//

namespace {

/// Numbers values so that those of equal numbers are equal: an argument by its
/// role, an op by what it computes from what.
class Numbering {
public:
  void number(func::FuncOp func);
  unsigned of(Value value) const { return numbers.lookup(value); }

private:
  unsigned numberOf(std::vector<const void *> key) {
    return known.try_emplace(std::move(key), known.size() + 1).first->second;
  }
  std::map<std::vector<const void *>, unsigned> known;
  DenseMap<Value, unsigned> numbers;
};

} // namespace

void Numbering::number(func::FuncOp func) {
  for (BlockArgument argument : func.getArguments()) {
    RoleAttr role = asJointRole(roleOfArgument(func, argument.getArgNumber()));
    auto kind = StringAttr::get(
        func.getContext(), stringifyRoleKind(role.getKind()) +
                               (role.has(RoleAttr::kPass) ? " again" : ""));
    numbers[argument] = numberOf(
        {kind.getAsOpaquePointer(), role.getName().getAsOpaquePointer()});
  }
  for (Operation &op : func.getOps()) {
    NamedAttrList attributes(op.getAttrDictionary());
    attributes.erase(kPassAttr);
    attributes.erase(kNoGradAttr);
    attributes.erase(kSavedAttr);
    for (NamedAttribute attribute : op.getDiscardableAttrs())
      if (isTag(attribute.getName()))
        attributes.erase(attribute.getName());
    std::vector<const void *> key = {
        op.getName().getAsOpaquePointer(),
        attributes.getDictionary(func.getContext()).getAsOpaquePointer()};
    for (Type type : op.getResultTypes())
      key.push_back(type.getAsOpaquePointer());
    for (Value operand : op.getOperands())
      key.push_back(
          reinterpret_cast<const void *>(static_cast<uintptr_t>(of(operand))));
    for (OpResult result : op.getResults()) {
      key.push_back(reinterpret_cast<const void *>(
          static_cast<uintptr_t>(result.getResultNumber())));
      numbers[result] = numberOf(key);
    }
  }
}

/// The first value of `second` that equals each value of `saved`.
static llvm::MapVector<Value, Value>
findAgain(func::FuncOp joint, func::FuncOp second, const SavedValues &saved) {
  Numbering numbering;
  numbering.number(joint);
  numbering.number(second);
  DenseMap<unsigned, Value> there;
  for (BlockArgument argument : second.getArguments())
    there.try_emplace(numbering.of(argument), argument);
  for (Operation &op : second.getOps())
    for (Value result : op.getResults())
      there.try_emplace(numbering.of(result), result);
  llvm::MapVector<Value, Value> found;
  for (const auto &[value, reason] : saved)
    if (Value again = there.lookup(numbering.of(value)))
      found[again] = value;
  return found;
}

//===----------------------------------------------------------------------===//
// The two programs
//===----------------------------------------------------------------------===//

/// What @grad_joint's backward cannot read by reference: what the first joint's
/// cannot, cotangents, and what the first backward found.
static llvm::StringSet<> lostNames(const JointView &first,
                                   func::FuncOp gradJoint) {
  llvm::StringSet<> names;
  for (BlockArgument argument : first.joint.getArguments())
    if (first.isLost(argument))
      names.insert(
          roleOfArgument(first.joint, argument.getArgNumber()).getName());
  for (unsigned i = 0, n = gradJoint.getNumArguments(); i < n; ++i) {
    RoleAttr role = roleOfArgument(gradJoint, i);
    if (asJointRole(role) != role)
      names.insert(role.getName());
  }
  return names;
}

JointView tandem::viewOfGradJoint(const JointView &first,
                                  func::FuncOp gradJoint) {
  return JointView(gradJoint, lostNames(first, gradJoint));
}

SecondOrder::SecondOrder(const JointView &first, JointView second,
                         SavedValues secondSaved, SavedValues &firstSaved)
    : view(std::move(second)),
      given(findAgain(first.joint, view.joint, firstSaved)),
      saved(std::move(secondSaved)) {
  func::FuncOp gradJoint = view.joint;
  IRMapping map;
  for (const auto &[value, source] : given)
    map.map(value, value);
  SmallVector<Value> wanted(view.forwardResults);
  for (const auto &[value, reason] : saved)
    wanted.push_back(value);
  DenseSet<Value> used(wanted.begin(), wanted.end());
  for (Operation *op : neededOps(wanted, map))
    used.insert(op->operand_begin(), op->operand_end());
  for (BlockArgument argument : gradJoint.getArguments()) {
    RoleAttr role = roleOfArgument(gradJoint, argument.getArgNumber());
    if (!used.contains(argument) || given.contains(argument) ||
        !view.isLost(argument) || asJointRole(role) != role)
      continue;
    Value primal =
        first.joint.getArgument(*findValue(first.joint, role.getName()));
    firstSaved.insert({primal, "the gradient of the backward needs it"});
    given[argument] = primal;
  }
  given.remove_if([&](const auto &pair) { return !used.contains(pair.first); });
  for (const auto &[value, source] : given)
    if (first.isOnHost(source))
      onHost.insert(source);
}

/// True if `program` reads the argument `name` as it was at the forward.
static bool takesPrimal(func::FuncOp program, StringRef name) {
  for (unsigned i = 0, n = program.getNumArguments(); i < n; ++i)
    if (RoleAttr role = roleOfArgument(program, i);
        role.getName() == name && role.getKind() != RoleKind::Saved &&
        !isBackward(role))
      return true;
  return false;
}

void SecondOrder::build(const SavedNames &names) {
  func::FuncOp joint = view.joint;
  MLIRContext *context = joint.getContext();
  SavedNames ownNames(joint, saved, "grad.");
  IRMapping map;
  for (const auto &[value, source] : given)
    map.map(value, value);
  SmallVector<Value> wanted(view.forwardResults);
  for (const auto &[value, reason] : saved)
    wanted.push_back(value);
  DenseSet<Value> used(wanted.begin(), wanted.end());
  for (Operation *op : neededOps(wanted, map))
    used.insert(op->operand_begin(), op->operand_end());
  func::FuncOp backward;
  if (!view.backwardResults.empty()) {
    backward = buildBackward(view, saved, ownNames);
    backward.setName("grad_backward");
  }

  SmallVector<Slot> arguments, own, results;
  SmallVector<Value> sources, ownSources;
  for (BlockArgument argument : joint.getArguments()) {
    RoleAttr role = roleOfArgument(joint, argument.getArgNumber());
    Slot slot = {argument.getType(), asJointRole(role), argument.getLoc()};
    if (isBackward(role))
      continue;
    if (slot.role.getKind() == RoleKind::Cotangent ||
        (slot.role != role &&
         (used.contains(argument) || slot.role.has(RoleAttr::kPass)))) {
      own.push_back(slot);
      ownSources.push_back(argument);
    } else if ((used.contains(argument) && !given.contains(argument)) ||
               (backward && takesPrimal(backward, role.getName()))) {
      // Also what it only hands on to its backward, by reference.
      arguments.push_back(slot);
      sources.push_back(argument);
    }
  }
  for (const auto &[value, source] : given) {
    RoleAttr role = RoleAttr::get(context, RoleKind::Saved, names.of(source));
    if (onHost.contains(source))
      role = role.withUnit(RoleAttr::kHost);
    arguments.push_back({value.getType(), role, source.getLoc()});
    sources.push_back(value);
  }
  arguments.append(own);
  sources.append(ownSources);
  for (Slot &slot : arguments)
    slot.role = heldRole(slot.role, /*isUnchecked=*/false);
  for (unsigned i = 0, n = joint.getNumResults(); i < n; ++i)
    if (RoleAttr role = roleOfResult(joint, i); !isBackward(role))
      results.push_back(
          {joint.getResultTypes()[i], asJointRole(role), joint.getLoc()});
  results.append(savedSlots(view, saved, ownNames));

  func::FuncOp forward =
      copyProgram(joint, "grad_forward", arguments, sources, results, wanted);
  if (backward)
    forward->moveBefore(backward);
}
