//===- FormKernels.cpp - units become kernels -----------------------------===//
#include "passes/plan/FormKernels.h"
#include "ir/EmptyTensors.h"
#include "ir/Signature.h"
#include "passes/Passes.h"
#include "passes/plan/Collectives.h"
#include "passes/plan/Units.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace tandem {
#define GEN_PASS_DEF_FORMKERNELS
#include "passes/Passes.h.inc"
} // namespace tandem

using namespace mlir;
using namespace tandem;

/// The most ops that a kernel's name names.
static constexpr size_t kNamedOps = 5;

/// "add", "fused_add_relu", "matmul_add_relu": what a kernel computes, views
/// and constants aside.
static std::string nameOf(ArrayRef<Operation *> ops, Operation *anchor) {
  SmallVector<StringRef> names;
  StringRef view = "constant";
  for (Operation *op : ops) {
    StringRef name = op->getName().stripDialect();
    if (isa<ViewOpInterface>(op))
      view = name;
    else if (isa<PointwiseOpInterface, ReductionOpInterface>(op) ||
             op == anchor || standsAlone(op))
      names.push_back(name);
  }
  if (names.empty())
    return view.str();
  bool isFused = names.size() > 1 && !anchor;
  if (names.size() > kNamedOps)
    names.truncate(kNamedOps);
  return (isFused ? "fused_" : "") + llvm::join(names, "_");
}

/// What is said of an op is now said of its kernel.
static void removeTags(Operation *op) {
  for (StringRef tag :
       {kPassAttr, kNoGradAttr, kStreamAttr, kFirstOrderAttr, kPartOfAttr})
    op->removeAttr(tag);
}

/// The output that a result lies in the storage of: a saved value with an
/// alias.
static StringAttr outputAlias(func::FuncOp func, unsigned result) {
  RoleAttr role = roleOfResult(func, result);
  if (!role || role.getKind() != RoleKind::Saved)
    return {};
  return role.getAlias().output;
}

namespace {
/// Writes the kernels of a function behind its old ops.
class KernelBuilder {
public:
  KernelBuilder(func::FuncOp func, const RunConditions &conditions)
      : func(func), conditions(conditions),
        terminator(func.getBody().front().getTerminator()), b(terminator) {}

  LogicalResult form();

private:
  void emit(const Units &units, unsigned unit);
  Value copied(Value value, unsigned result);
  Value outer(Value value);
  LogicalResult returnKernelResults();

  func::FuncOp func;
  const RunConditions &conditions;
  Operation *terminator;
  OpBuilder b;
  IRMapping now; ///< old values that exist between kernels, as they are now
};
} // namespace

/// The value between kernels that stands for an old one: an argument, a
/// kernel's result, a stored constant, or a free view of one of these.
Value KernelBuilder::outer(Value value) {
  if (Value known = now.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op)
    return value;
  OpBuilder::InsertionGuard guard(b);
  if (!isa<ConstantOp>(op))
    now.map(op->getOperand(0), outer(op->getOperand(0)));
  Operation *copy = b.clone(*op, now);
  removeTags(copy);
  now.map(value, copy->getResult(0));
  return copy->getResult(0);
}

/// What the backward makes again may be in one kernel with the forward's own.
static void removeRepetitions(KernelOp kernel) {
  IRRewriter rewriter(kernel.getContext());
  DominanceInfo dominance(kernel);
  eliminateCommonSubExpressions(rewriter, dominance, kernel);
}

/// Adds the free views by which loops see one tensor in several ways, so that
/// the tensor is one input of the kernel.
static void takeInViews(SmallVectorImpl<Operation *> &ops,
                        DenseSet<Operation *> &inside) {
  llvm::MapVector<Value, llvm::SetVector<Value>> shows;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp();
          !producer || !inside.contains(producer))
        shows[throughFreeViews(operand)].insert(operand);
  for (auto &[tensor, views] : shows)
    if (views.size() > 1)
      for (Value view : views)
        for (; view != tensor; view = view.getDefiningOp()->getOperand(0))
          if (inside.insert(view.getDefiningOp()).second)
            ops.push_back(view.getDefiningOp());
}

void KernelBuilder::emit(const Units &units, unsigned unit) {
  SmallVector<Value> results = units.results(unit);
  if (results.empty() && !isa<BarrierOp>(units.ops(unit).front()))
    return; // dead
  // The ops of the kernel: the unit's, and what it repeats.
  DenseSet<Operation *> inside;
  SmallVector<Operation *> work(units.ops(unit)), ops;
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (!inside.insert(op).second)
      continue;
    ops.push_back(op);
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        if (units.isInside(producer, unit))
          work.push_back(producer);
  }
  bool sharesReads = !units.anchor(unit) || units.isBeside(unit);
  if (sharesReads)
    takeInViews(ops, inside);
  llvm::sort(ops, [&](Operation *x, Operation *y) {
    return units.position(x) < units.position(y);
  });
  SmallVector<Value> oldInputs, inputs;
  SmallVector<Location> locations;
  for (Operation *op : ops)
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if ((producer && inside.contains(producer)) ||
          llvm::is_contained(oldInputs, operand))
        continue;
      oldInputs.push_back(operand);
      inputs.push_back(outer(operand));
    }
  for (Operation *op : units.ops(unit))
    locations.push_back(op->getLoc());
  auto kernel = KernelOp::create(b, FusedLoc::get(func.getContext(), locations),
                                 ValueRange(results).getTypes(), inputs,
                                 nameOf(ops, units.anchor(unit)),
                                 units.stream(unit), units.conditionOf(unit));
  kernel.setChoicesAttr(units.choices(unit));
  Block *body = b.createBlock(&kernel.getBody());
  IRMapping mapping;
  for (Value old : oldInputs)
    mapping.map(old, body->addArgument(old.getType(), old.getLoc()));
  for (Operation *op : ops)
    removeTags(b.clone(*op, mapping));
  SmallVector<Value> yielded;
  for (Value result : results)
    yielded.push_back(mapping.lookup(result));
  YieldOp::create(b, kernel.getLoc(), yielded);
  if (sharesReads)
    removeRepetitions(kernel);
  b.setInsertionPointAfter(kernel);
  for (auto [old, result] : llvm::zip_equal(results, kernel.getResults()))
    now.map(old, result);
}

/// A kernel's result with the elements of `value`, for a result of the
/// function.
Value KernelBuilder::copied(Value value, unsigned result) {
  auto source = throughFreeViews(value).getDefiningOp<KernelOp>();
  auto kernel = KernelOp::create(
      b, terminator->getLoc(), TypeRange{value.getType()}, ValueRange{value},
      "copy", source ? source.getStream() : 0, conditions.ofResult(result));
  Block *body = b.createBlock(&kernel.getBody());
  Value x = body->addArgument(value.getType(), value.getLoc());
  YieldOp::create(b, kernel.getLoc(), x);
  b.setInsertionPointAfter(kernel);
  return kernel.getResult(0);
}

LogicalResult KernelBuilder::returnKernelResults() {
  DenseSet<Value> returned;
  for (OpOperand &operand : terminator->getOpOperands()) {
    unsigned i = operand.getOperandNumber();
    Value value = outer(operand.get());
    // Nobody writes what has no elements.
    if (isEmptyTensor(value.getType())) {
      operand.set(value);
      continue;
    }
    Value source = throughFreeViews(value);
    bool isResult = source.getDefiningOp<KernelOp>() != nullptr;
    if (!outputAlias(func, i) && (!isResult || !returned.insert(source).second))
      value = copied(value, i);
    operand.set(value);
    RoleAttr role = roleOfResult(func, i);
    if (role && (role.getKind() == RoleKind::Grad ||
                 role.getKind() == RoleKind::Update)) {
      ArrayAttr condition = conditions.ofResult(i);
      setRoleOfResult(func, i,
                      condition ? role.with(RoleAttr::kNeeds, condition)
                                : role.without(RoleAttr::kNeeds));
    }
  }
  // A saved value that is an output is what the output has become.
  for (OpOperand &operand : terminator->getOpOperands()) {
    unsigned i = operand.getOperandNumber();
    StringAttr name = outputAlias(func, i);
    if (!name)
      continue;
    auto output = findResult(func, RoleKind::Output, name.getValue());
    if (!output || func.getResultTypes()[*output] != operand.get().getType())
      return func.emitError()
             << "expected '" << roleOfResult(func, i).str()
             << "' to be the output " << name << " of its type";
    operand.set(terminator->getOperand(*output));
  }
  return success();
}

LogicalResult KernelBuilder::form() {
  SmallVector<Operation *> old;
  for (Operation &op : func.getBody().front().without_terminator())
    old.push_back(&op);
  Units units(func, conditions);
  fuse(units);
  b.setInsertionPoint(terminator);
  SmallVector<unsigned> order = units.order();
  for (unsigned unit : order)
    emit(units, unit);
  if (failed(returnKernelResults()))
    return failure();
  for (Operation *op : llvm::reverse(old)) {
    if (!op->use_empty())
      return op->emitOpError("is still used after kernels were formed");
    op->erase();
  }
  return success();
}

/// Empty tensors are constants, arguments and results, but no operands.
static LogicalResult checkEmptyTensors(func::FuncOp func) {
  bool ok = true;
  auto isEmpty = [](Value value) { return isEmptyTensor(value.getType()); };
  for (Operation &op : func.getBody().front().without_terminator())
    if (!isa<ConstantOp>(op) && (llvm::any_of(op.getOperands(), isEmpty) ||
                                 llvm::any_of(op.getResults(), isEmpty))) {
      op.emitError() << "expected no empty tensor in a kernel, but '"
                     << op.getName() << "' has one";
      ok = false;
    }
  return success(ok);
}

namespace {
/// Every function result is afterwards the result of a kernel or a free view of
/// one, and no two are of one kernel result, but for saved values that lie in
/// an output's storage: they are the output. Gradients and updates say under
/// which condition they are defined.
struct FormKernels : tandem::impl::FormKernelsBase<FormKernels> {
  void runOnOperation() final {
    func::FuncOp func = getOperation();
    if (failed(checkEmptyTensors(func)))
      return signalPassFailure();
    FailureOr<RunConditions> conditions = RunConditions::of(func);
    if (failed(conditions) || failed(KernelBuilder(func, *conditions).form()))
      return signalPassFailure();
    formed += llvm::range_size(func.getOps<KernelOp>());
  }
};
} // namespace
