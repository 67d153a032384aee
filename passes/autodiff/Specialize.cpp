//===- Specialize.cpp - a backward for certain cotangents -----------------===//
#include "passes/autodiff/Specialize.h"

#include "passes/autodiff/Definedness.h"
#include "passes/common/EraseDeadOps.h"

#include "ir/Ops.h"
#include "ir/Signature.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace tandem;

namespace {

class Specializer {
public:
  Specializer(func::FuncOp func, ArrayRef<StringRef> defined)
      : func(func), defined(defined) {}

  void run();

private:
  /// What an op stands for, null if it is undefined; none if it is an op like
  /// any other.
  std::optional<Value> meaning(Operation *op);
  bool isUndefined(Value value) const { return undefined.contains(value); }

  func::FuncOp func;
  ArrayRef<StringRef> defined;
  llvm::DenseSet<Value> undefined;
};

} // namespace

std::optional<Value> Specializer::meaning(Operation *op) {
  OpBuilder builder(op);
  auto keepTags = [&](Operation *made) {
    made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    return made->getResult(0);
  };
  if (auto sum = dyn_cast<AccumulateOp>(op)) {
    bool lhs = !isUndefined(sum.getLhs()), rhs = !isUndefined(sum.getRhs());
    if (lhs && rhs)
      return keepTags(
          AddOp::create(builder, op->getLoc(), sum.getLhs(), sum.getRhs()));
    return lhs ? sum.getLhs() : rhs ? sum.getRhs() : Value();
  }
  if (auto zero = dyn_cast<OrZeroOp>(op)) {
    if (!evaluateDefined(zero.getNeeds(), defined))
      return Value();
    if (!isUndefined(zero.getX()))
      return zero.getX();
    return keepTags(ConstantOp::splat(builder, op->getLoc(),
                                      cast<RankedTensorType>(zero.getType()),
                                      0.0)
                        .getOperation());
  }
  if (auto choice = dyn_cast<IfDefinedOp>(op))
    return evaluateDefined(choice.getWhen(), defined) ? choice.getFresh()
                                                      : choice.getOld();
  return std::nullopt;
}

void Specializer::run() {
  for (BlockArgument argument : func.getArguments()) {
    RoleAttr role = roleOfArgument(func, argument.getArgNumber());
    if (role.getKind() == RoleKind::Cotangent &&
        !llvm::is_contained(defined, role.getName().getValue()))
      undefined.insert(argument);
  }
  Operation *terminator = func.getBody().front().getTerminator();
  for (Operation &op : llvm::make_early_inc_range(
           func.getBody().front().without_terminator())) {
    if (std::optional<Value> value = meaning(&op)) {
      if (*value && !isUndefined(*value)) {
        op.getResult(0).replaceAllUsesWith(*value);
        op.erase();
      } else {
        undefined.insert(op.getResult(0));
      }
    } else if (llvm::any_of(op.getOperands(),
                            [&](Value v) { return isUndefined(v); })) {
      undefined.insert(op.result_begin(), op.result_end());
    }
  }
  llvm::BitVector results(func.getNumResults()),
      arguments(func.getNumArguments());
  for (unsigned i = 0, n = func.getNumResults(); i < n; ++i)
    results[i] = isUndefined(terminator->getOperand(i));
  terminator->eraseOperands(results);
  (void)func.eraseResults(results);
  eraseDeadOps(func);
  for (BlockArgument argument : func.getArguments())
    arguments[argument.getArgNumber()] =
        isUndefined(argument) && argument.use_empty();
  (void)func.eraseArguments(arguments);
}

void tandem::specializeCotangents(func::FuncOp func,
                                  ArrayRef<StringRef> defined) {
  Specializer(func, defined).run();
}

void tandem::specializeCotangents(func::FuncOp func) {
  SmallVector<StringRef> all;
  for (unsigned i = 0, n = func.getNumArguments(); i < n; ++i)
    if (RoleAttr role = roleOfArgument(func, i);
        role.getKind() == RoleKind::Cotangent)
      all.push_back(role.getName());
  specializeCotangents(func, all);
}
