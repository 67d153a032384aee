//===- RunConditions.cpp - which cotangents a program's ops wait for ------===//
#include "passes/plan/RunConditions.h"

#include "ir/Keys.h"
#include "ir/Signature.h"
#include "ir/UpdatePrograms.h"
#include "passes/autodiff/Definedness.h"
#include "passes/plan/FormKernels.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tandem;

namespace {

/// Builds the conditions of a function some of whose arguments may be
/// undefined, in the form of Definedness.h.
class ConditionSearch {
public:
  explicit ConditionSearch(func::FuncOp func)
      : func(func), b(func.getContext()), defined(func),
        never(b.getArrayAttr(b.getArrayAttr({}))) {
    for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i)
      if (mayBeUndefined(func, i))
        optional.insert(roleOfArgument(func, i).getName().getValue());
  }

  /// True if every value is defined whenever the program runs.
  bool isCertain() { return optional.size() < 2; }
  LogicalResult check();
  void findWanted();
  ArrayAttr choicesOf(Operation *op);

  DenseMap<Operation *, ArrayAttr> wanted;
  SmallVector<ArrayAttr> results;

private:
  ArrayAttr simplified(ArrayAttr condition);
  ArrayAttr either(ArrayAttr x, ArrayAttr y) {
    return simplified(definedEither(x, y));
  }
  ArrayAttr both(ArrayAttr x, ArrayAttr y) {
    return simplified(definedBoth(x, y));
  }
  ArrayAttr conditionOf(IfDefinedOp op) { return either(never, op.getWhen()); }
  ArrayAttr updated(Value value);
  ArrayAttr declared(unsigned result);
  ArrayAttr readBy(OpOperand &use);

  func::FuncOp func;
  Builder b;
  Definedness defined;
  ArrayAttr never;            ///< one group, in which nothing can be defined
  llvm::StringSet<> optional; ///< names of arguments
};

} // namespace

/// Without what holds whenever the program runs: one of `optional` is defined.
ArrayAttr ConditionSearch::simplified(ArrayAttr condition) {
  SmallVector<Attribute> groups;
  for (auto group : condition.getAsRange<ArrayAttr>())
    if (group.size() < optional.size())
      groups.push_back(group);
  return b.getArrayAttr(groups);
}

/// What the program says of a result beside what follows from its ops: a count
/// of steps depends on no gradient, but rises with one alone.
ArrayAttr ConditionSearch::declared(unsigned result) {
  RoleAttr role = roleOfResult(func, result);
  return role ? role.getProperty<ArrayAttr>(RoleAttr::kNeeds) : ArrayAttr();
}

LogicalResult ConditionSearch::check() {
  bool failed = false;
  bool isBackward = !takesGradients(func.getName());
  auto checkNames = [&](Operation *op, ArrayAttr condition) {
    if (!condition)
      return;
    for (auto group : condition.getAsRange<ArrayAttr>())
      for (auto name : group.getAsRange<StringAttr>()) {
        if (optional.contains(name.getValue()))
          continue;
        failed = true;
        op->emitOpError() << "expected a condition on the "
                          << (isBackward ? "cotangents" : "gradients")
                          << " of '" << func.getName() << "', but got " << name;
      }
  };
  func.walk([&](Operation *op) {
    if (auto zeros = dyn_cast<OrZeroOp>(op))
      checkNames(op, zeros.getNeeds());
    if (auto choice = dyn_cast<IfDefinedOp>(op))
      checkNames(op, choice.getWhen());
  });
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i)
    checkNames(func, declared(i));
  return failure(failed);
}

/// When an update that ends in `value` happens: what writes under a condition
/// changes nothing where it does not hold.
ArrayAttr ConditionSearch::updated(Value value) {
  value = throughFreeViews(value);
  if (auto choice = value.getDefiningOp<IfDefinedOp>())
    return either(conditionOf(choice), updated(choice.getOld()));
  auto argument = dyn_cast<BlockArgument>(value);
  bool isOld = argument && defined.of(argument).empty();
  return isOld ? never : defined.of(value);
}

/// When somebody wants the value for this use of it.
ArrayAttr ConditionSearch::readBy(OpOperand &use) {
  Operation *op = use.getOwner();
  if (op->hasTrait<OpTrait::IsTerminator>())
    return results[use.getOperandNumber()];
  auto choice = dyn_cast<IfDefinedOp>(op);
  if (choice && use.getOperandNumber() == 0)
    return both(wanted.lookup(op), conditionOf(choice));
  return wanted.lookup(op);
}

void ConditionSearch::findWanted() {
  Block &body = func.getBody().front();
  for (OpOperand &operand : body.getTerminator()->getOpOperands()) {
    RoleAttr role = roleOfResult(func, operand.getOperandNumber());
    bool isUpdate = role && role.getKind() == RoleKind::Update;
    ArrayAttr condition =
        isUpdate ? updated(operand.get()) : defined.of(operand.get());
    // The old value said to be new.
    if (condition == never)
      condition = defined.always();
    if (ArrayAttr said = declared(operand.getOperandNumber()))
      condition = both(condition, said);
    results.push_back(condition);
  }
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    ArrayAttr condition = never;
    for (OpOperand &use : op.getUses())
      condition = either(condition, readBy(use));
    if (op.getNumResults())
      condition = both(condition, defined.of(op.getResult(0)));
    wanted[&op] = condition;
  }
}

ArrayAttr ConditionSearch::choicesOf(Operation *op) {
  ArrayAttr runs = wanted.lookup(op);
  SmallVector<Attribute> list;
  auto add = [&](ArrayAttr when, std::optional<int64_t> copy) {
    SmallVector<NamedAttribute> entry{b.getNamedAttr(key::kWhen, when)};
    if (copy)
      entry.push_back(b.getNamedAttr(key::kCopy, b.getI64IntegerAttr(*copy)));
    list.push_back(b.getDictionaryAttr(entry));
  };
  if (auto sum = dyn_cast<AccumulateOp>(op)) {
    ArrayAttr lhs = defined.of(sum.getLhs()), rhs = defined.of(sum.getRhs());
    ArrayAttr all = both(lhs, rhs);
    if (definedImplies(runs, all))
      return {};
    add(all, std::nullopt);
    add(lhs, 0);
    add(rhs, 1);
  } else if (auto zeros = dyn_cast<OrZeroOp>(op)) {
    ArrayAttr x = defined.of(zeros.getX());
    if (definedImplies(runs, x))
      return {};
    add(x, 0);
    add(defined.always(), -1);
  } else if (auto choice = dyn_cast<IfDefinedOp>(op)) {
    ArrayAttr when = conditionOf(choice);
    if (definedImplies(runs, when) || choice.getFresh() == choice.getOld())
      return {};
    add(when, 0);
    add(defined.always(), 1);
  }
  return list.empty() ? ArrayAttr() : b.getArrayAttr(list);
}

FailureOr<RunConditions> RunConditions::of(func::FuncOp func) {
  ConditionSearch finder(func);
  RunConditions conditions;
  conditions.results.resize(func.getNumResults());
  if (finder.isCertain())
    return conditions;
  if (failed(finder.check()))
    return failure();
  finder.findWanted();
  auto unlessEmpty = [](ArrayAttr condition) {
    return condition.empty() ? ArrayAttr() : condition;
  };
  for (auto &[op, condition] : finder.wanted) {
    conditions.runs[op] = unlessEmpty(condition);
    if (ArrayAttr choices = finder.choicesOf(op))
      conditions.alternatives[op] = choices;
  }
  for (auto [i, condition] : llvm::enumerate(finder.results))
    conditions.results[i] = unlessEmpty(condition);
  return conditions;
}
