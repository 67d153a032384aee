//===- FormKernels.cpp - units become kernels -----------------------------===//
#include "passes/plan/FormKernels.h"
#include "passes/plan/Units.h"

#include "mlir/IR/IRMapping.h"

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
             op == anchor)
      names.push_back(name);
  }
  if (names.empty())
    return view.str();
  bool isFused = names.size() > 1 && !anchor;
  if (names.size() > kNamedOps)
    names.truncate(kNamedOps);
  return (isFused ? "fused_" : "") + llvm::join(names, "_");
}

namespace {
/// Writes the kernels of a function behind its old ops.
class Former {
public:
  explicit Former(func::FuncOp func)
      : func(func), terminator(func.getBody().front().getTerminator()),
        b(terminator) {}

  LogicalResult form();

private:
  void emit(const Units &units, unsigned unit);
  Value copied(Value value);
  Value outer(Value value);
  void returnKernelResults();

  func::FuncOp func;
  Operation *terminator;
  OpBuilder b;
  IRMapping now; ///< old values that exist between kernels, as they are now
};
} // namespace

/// The value between kernels that stands for an old one: an argument, a
/// kernel's result, a stored constant, or a free view of one of these.
Value Former::outer(Value value) {
  if (Value known = now.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op)
    return value;
  OpBuilder::InsertionGuard guard(b);
  if (!isa<ConstantOp>(op))
    now.map(op->getOperand(0), outer(op->getOperand(0)));
  Operation *copy = b.clone(*op, now);
  copy->removeAttr(kPassAttr);
  now.map(value, copy->getResult(0));
  return copy->getResult(0);
}

void Former::emit(const Units &units, unsigned unit) {
  SmallVector<Value> results = units.results(unit);
  if (results.empty())
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
  auto kernel =
      KernelOp::create(b, FusedLoc::get(func.getContext(), locations),
                       ValueRange(results).getTypes(), inputs,
                       b.getStringAttr(nameOf(ops, units.anchor(unit))),
                       /*buffers=*/ArrayAttr(), b.getI64IntegerAttr(0),
                       /*needs=*/ArrayAttr(), /*choices=*/ArrayAttr());
  Block *body = b.createBlock(&kernel.getBody());
  IRMapping mapping;
  for (Value old : oldInputs)
    mapping.map(old, body->addArgument(old.getType(), old.getLoc()));
  for (Operation *op : ops)
    b.clone(*op, mapping)->removeAttr(kPassAttr);
  SmallVector<Value> yielded;
  for (Value result : results)
    yielded.push_back(mapping.lookup(result));
  YieldOp::create(b, kernel.getLoc(), yielded);
  b.setInsertionPointAfter(kernel);
  for (auto [old, result] : llvm::zip_equal(results, kernel.getResults()))
    now.map(old, result);
}

/// A kernel's result with the elements of `value`.
Value Former::copied(Value value) {
  auto kernel =
      KernelOp::create(b, terminator->getLoc(), TypeRange{value.getType()},
                       ValueRange{value}, b.getStringAttr("copy"), ArrayAttr(),
                       b.getI64IntegerAttr(0), ArrayAttr(), ArrayAttr());
  Block *body = b.createBlock(&kernel.getBody());
  Value x = body->addArgument(value.getType(), value.getLoc());
  YieldOp::create(b, kernel.getLoc(), x);
  b.setInsertionPointAfter(kernel);
  return kernel.getResult(0);
}

void Former::returnKernelResults() {
  DenseSet<Value> returned;
  for (OpOperand &operand : terminator->getOpOperands()) {
    Value value = outer(operand.get());
    Value source = throughFreeViews(value);
    bool isResult = source.getDefiningOp<KernelOp>() != nullptr;
    if (!isResult || !returned.insert(source).second)
      value = copied(value);
    operand.set(value);
  }
}

LogicalResult Former::form() {
  SmallVector<Operation *> old;
  for (Operation &op : func.getBody().front().without_terminator())
    old.push_back(&op);
  Units units(func);
  fuse(units);
  b.setInsertionPoint(terminator);
  SmallVector<unsigned> order = units.order();
  for (unsigned unit : order)
    emit(units, unit);
  returnKernelResults();
  for (Operation *op : llvm::reverse(old)) {
    if (!op->use_empty())
      return op->emitOpError("is still used after kernels were formed");
    op->erase();
  }
  return success();
}

LogicalResult tandem::formKernels(func::FuncOp func) {
  splitReductions(func);
  return Former(func).form();
}
