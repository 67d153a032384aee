//===- Engine.cpp - reverse accumulation over a graph ---------------------===//
#include "passes/autodiff/Engine.h"

#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/Signature.h"

using namespace mlir;
using namespace tandem;

GradientEngine::GradientEngine(func::FuncOp func, ArrayRef<Value> sources)
    : func(func), active(sources.begin(), sources.end()) {
  for (Operation &op : func.getOps()) {
    if (op.hasAttr(kNoGradAttr) || op.hasTrait<NotDifferentiable>() ||
        llvm::none_of(op.getOperands(),
                      [&](Value operand) { return depends(operand); }))
      continue;
    for (Value result : op.getResults())
      if (isDifferentiableType(result.getType()))
        active.insert(result);
  }
}

BlockArgument GradientEngine::sourceOf(Operation *op) const {
  while (true)
    for (Value operand : op->getOperands())
      if (depends(operand)) {
        if (auto argument = dyn_cast<BlockArgument>(operand))
          return argument;
        op = operand.getDefiningOp();
        break;
      }
}

LogicalResult GradientEngine::prune(ArrayRef<Value> targets) {
  DenseSet<Value> useful(targets.begin(), targets.end());
  SmallVector<Operation *> missing;
  for (Operation &op : llvm::reverse(func.getBody().front())) {
    auto wanted = [&](Value result) {
      return depends(result) && useful.contains(result);
    };
    if (llvm::none_of(op.getResults(), wanted))
      continue;
    if (!isa<DifferentiableOpInterface>(op))
      missing.push_back(&op);
    useful.insert(op.operand_begin(), op.operand_end());
  }
  for (Operation *op : llvm::reverse(missing)) {
    BlockArgument source = sourceOf(op);
    op->emitError() << "'" << op->getName() << "' op has no gradient, but '"
                    << roleOfArgument(func, source.getArgNumber()).str()
                    << "' requires one";
  }
  DenseSet<Value> kept;
  for (Value value : active)
    if (useful.contains(value))
      kept.insert(value);
  active = std::move(kept);
  return success(missing.empty());
}

/// Sums are made in the order in which cotangents arrive: by op, last first,
/// and within an op by operand.
void GradientEngine::accumulate(OpBuilder &builder, Location loc, Value value,
                                Value cotangent) {
  Value &sum = cotangents[value];
  sum =
      sum ? AddOp::create(builder, loc, sum, cotangent).getResult() : cotangent;
}

void GradientEngine::seed(Value value, Value cotangent) {
  OpBuilder builder(func.getBody().front().getTerminator());
  accumulate(builder, cotangent.getLoc(), value, cotangent);
}

namespace tandem {

/// One application of a rule.
class EnginePullback : public Pullback {
public:
  EnginePullback(GradientEngine &engine, OpBuilder &builder, Location loc,
                 Operation *op)
      : Pullback(builder, loc, op), engine(engine) {}

  bool has(unsigned i) const final {
    return engine.cotangents.contains(op->getResult(i));
  }
  bool needs(unsigned i) const final {
    return engine.depends(op->getOperand(i));
  }
  void set(unsigned i, const Expr &cotangent) final {
    if (!needs(i))
      return;
    if (cotangent.value.getType() != op->getOperand(i).getType()) {
      op->emitOpError() << "expected the cotangent of operand #" << i
                        << " to have type " << op->getOperand(i).getType()
                        << " but got " << cotangent.value.getType();
      ok = false;
      return;
    }
    engine.accumulate(builder, loc, op->getOperand(i), cotangent);
  }
  Value dyOrUndefined(unsigned i) final {
    return engine.cotangents.lookup(op->getResult(i));
  }
  Value state(StringAttr, Value, Type) final {
    op->emitOpError() << "reads a ref in its backward";
    ok = false;
    return {};
  }
  void update(StringAttr, Value, Value) final { ok = false; }
  void updateCotangent(unsigned, Value) final {
    op->emitOpError() << "writes a cotangent in its backward";
    ok = false;
  }
  bool ok = true;

protected:
  Value cotangent(unsigned i) final {
    Value result = op->getResult(i);
    if (Value value = engine.cotangents.lookup(result))
      return value;
    return ConstantOp::splat(builder, loc,
                             cast<RankedTensorType>(result.getType()), 0.0);
  }

private:
  GradientEngine &engine;
};

} // namespace tandem

LogicalResult GradientEngine::build() {
  Block &block = func.getBody().front();
  Operation *terminator = block.getTerminator();
  OpBuilder builder(terminator);
  bool ok = true;
  // The backward grows in front of the terminator while the walk goes up.
  for (Operation *op = terminator->getPrevNode(), *next; op; op = next) {
    next = op->getPrevNode();
    if (llvm::none_of(op->getResults(), [&](Value result) {
          return depends(result) && cotangents.contains(result);
        }))
      continue;
    StringRef name = op->getName().stripDialect();
    Location loc =
        NameLoc::get(builder.getStringAttr("grad of " + name), op->getLoc());
    EnginePullback pullback(*this, builder, loc, op);
    ok &= succeeded(cast<DifferentiableOpInterface>(op).pullback(pullback)) &&
          pullback.ok;
  }
  return success(ok);
}
