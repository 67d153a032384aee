//===- Definedness.cpp - which cotangents a value needs -------------------===//
#include "passes/autodiff/Definedness.h"

#include "ir/Ops.h"
#include "ir/Signature.h"
#include "ir/UpdatePrograms.h"

using namespace mlir;
using namespace tandem;

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

using Group = SmallVector<StringRef>;

static SmallVector<Group> groupsOf(ArrayAttr condition) {
  SmallVector<Group> groups;
  for (auto names : condition.getAsRange<ArrayAttr>()) {
    Group &group = groups.emplace_back();
    for (auto name : names.getAsRange<StringAttr>())
      group.push_back(name.getValue());
    llvm::sort(group);
  }
  return groups;
}

static bool includes(const Group &whole, const Group &part) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

/// A group that contains another follows from it.
static ArrayAttr normalized(MLIRContext *context, SmallVector<Group> groups) {
  llvm::sort(groups);
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  Builder builder(context);
  SmallVector<Attribute> kept;
  for (const Group &group : groups)
    if (llvm::none_of(groups, [&](const Group &other) {
          return &other != &group && includes(group, other);
        }))
      kept.push_back(builder.getStrArrayAttr(group));
  return builder.getArrayAttr(kept);
}

ArrayAttr tandem::definedBoth(ArrayAttr a, ArrayAttr b) {
  if (a == b || b.empty())
    return a;
  if (a.empty())
    return b;
  SmallVector<Group> groups = groupsOf(a);
  llvm::append_range(groups, groupsOf(b));
  return normalized(a.getContext(), std::move(groups));
}

ArrayAttr tandem::definedEither(ArrayAttr a, ArrayAttr b) {
  if (a == b || a.empty())
    return a;
  if (b.empty())
    return b;
  SmallVector<Group> groups;
  for (const Group &one : groupsOf(a))
    for (const Group &other : groupsOf(b)) {
      Group &group = groups.emplace_back();
      std::set_union(one.begin(), one.end(), other.begin(), other.end(),
                     std::back_inserter(group));
    }
  return normalized(a.getContext(), std::move(groups));
}

bool tandem::definedImplies(ArrayAttr a, ArrayAttr b) {
  SmallVector<Group> given = groupsOf(a);
  return llvm::all_of(groupsOf(b), [&](const Group &group) {
    return llvm::any_of(given,
                        [&](const Group &one) { return includes(group, one); });
  });
}

bool tandem::evaluateDefined(ArrayAttr condition, ArrayRef<StringRef> defined) {
  return llvm::all_of(groupsOf(condition), [&](const Group &group) {
    return llvm::any_of(group, [&](StringRef name) {
      return llvm::is_contained(defined, name);
    });
  });
}

//===----------------------------------------------------------------------===//
// Definedness
//===----------------------------------------------------------------------===//

bool tandem::mayBeUndefined(func::FuncOp func, unsigned argument) {
  RoleAttr role = roleOfArgument(func, argument);
  if (!role)
    return false;
  // Whoever asks for a graph of the gradients gives all cotangents.
  if (role.getKind() == RoleKind::Cotangent)
    return func.getName() != "grad_forward";
  return role.getKind() == RoleKind::Grad && takesGradients(func.getName());
}

Definedness::Definedness(func::FuncOp func)
    : none(ArrayAttr::get(func.getContext(), {})) {
  Builder builder(func.getContext());
  for (BlockArgument argument : func.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (!mayBeUndefined(func, index))
      continue;
    ++numOptional;
    StringAttr name = roleOfArgument(func, index).getName();
    known[argument] = builder.getArrayAttr(builder.getStrArrayAttr({name}));
  }
}

ArrayAttr Definedness::simplified(ArrayAttr condition) const {
  SmallVector<Attribute> groups;
  for (auto group : condition.getAsRange<ArrayAttr>())
    if (group.size() < numOptional)
      groups.push_back(group);
  return groups.size() == condition.size()
             ? condition
             : ArrayAttr::get(condition.getContext(), groups);
}

ArrayAttr Definedness::fromOperands(Operation *op) {
  auto at = [&](Value value) { return known.lookup(value); };
  if (auto sum = dyn_cast<AccumulateOp>(op))
    return simplified(definedEither(at(sum.getLhs()), at(sum.getRhs())));
  if (auto zero = dyn_cast<OrZeroOp>(op))
    return simplified(normalized(op->getContext(), groupsOf(zero.getNeeds())));
  if (isa<IfDefinedOp>(op))
    return none;
  ArrayAttr all = none;
  for (Value operand : op->getOperands())
    all = definedBoth(all, at(operand));
  return all;
}

ArrayAttr Definedness::of(Value value) {
  SmallVector<Value> work = {value};
  while (!work.empty()) {
    Value next = work.back();
    Operation *op = next.getDefiningOp();
    if (known.contains(next)) {
      work.pop_back();
      continue;
    }
    if (!op) {
      known[next] = none;
      continue;
    }
    size_t before = work.size();
    for (Value operand : op->getOperands())
      if (!known.contains(operand))
        work.push_back(operand);
    if (work.size() > before)
      continue;
    ArrayAttr condition = fromOperands(op);
    for (Value result : op->getResults())
      known[result] = condition;
  }
  return simplified(known.lookup(value));
}
