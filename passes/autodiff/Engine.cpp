//===- Engine.cpp - reverse accumulation over a graph ---------------------===//
#include "passes/autodiff/Engine.h"

#include "ir/EmptyTensors.h"
#include "ir/Ops.h"
#include "ir/Pullback.h"
#include "ir/Signature.h"
#include "ir/Where.h"

using namespace mlir;
using namespace tandem;

/// The operands that an op gives gradients to. An op that has no gradient is
/// taken to want one everywhere.
static OperandRange flowOperands(Operation *op) {
  auto rule = dyn_cast<DifferentiableOpInterface>(op);
  return rule ? op->getOperands().take_front(rule.numGradientOperands())
              : op->getOperands();
}

/// The results that an op takes cotangents of.
static ResultRange flowResults(Operation *op) {
  auto rule = dyn_cast<DifferentiableOpInterface>(op);
  return rule ? op->getResults().take_front(rule.numGradientResults())
              : op->getResults();
}

GradientEngine::GradientEngine(func::FuncOp func, Operation *end,
                               ArrayRef<Value> sources)
    : func(func), end(end), active(sources.begin(), sources.end()) {
  for (Operation &op :
       llvm::make_range(end->getBlock()->begin(), end->getIterator())) {
    if (op.hasAttr(kNoGradAttr) || op.hasTrait<NotDifferentiable>() ||
        llvm::none_of(flowOperands(&op),
                      [&](Value operand) { return depends(operand); }))
      continue;
    for (Value result : flowResults(&op))
      if (isDifferentiableType(result.getType()))
        active.insert(result);
  }
}

LogicalResult
GradientEngine::prune(ArrayRef<Value> targets,
                      llvm::function_ref<std::string(Value)> wanter) {
  DenseSet<Value> useful(targets.begin(), targets.end());
  SmallVector<Operation *> missing;
  auto depended = [&](Value value) { return depends(value); };
  for (Operation *op = end->getPrevNode(); op; op = op->getPrevNode()) {
    if (llvm::none_of(flowOperands(op), depended) ||
        llvm::none_of(flowResults(op), [&](Value result) {
          return depends(result) && useful.contains(result);
        }))
      continue;
    if (!givesZeros(op) &&
        (!isa<DifferentiableOpInterface>(op) || op->hasAttr(kFirstOrderAttr)))
      missing.push_back(op);
    for (Value operand : flowOperands(op))
      useful.insert(operand);
  }
  // A source that `op` depends on.
  auto sourceOf = [&](Operation *op) {
    while (true) {
      Value operand = *llvm::find_if(flowOperands(op), depended);
      op = operand.getDefiningOp();
      if (!op || llvm::none_of(flowOperands(op), depended))
        return operand;
    }
  };
  for (Operation *op : llvm::reverse(missing)) {
    std::string who = wanter(sourceOf(op));
    if (auto name = op->getAttrOfType<StringAttr>(kFirstOrderAttr))
      op->emitError() << "custom_vjp " << name << " is marked first-order, but "
                      << who << " requires a second derivative through it";
    else
      op->emitError() << "'" << op->getName() << "' op has no gradient, but "
                      << who << " requires one";
  }
  DenseSet<Value> kept;
  for (Value value : active)
    if (useful.contains(value))
      kept.insert(value);
  active = std::move(kept);
  return success(missing.empty());
}

ArrayAttr GradientEngine::definedness(Value value) {
  if (!conditions)
    conditions.emplace(func);
  return conditions->of(value);
}

/// Sums are made in the order in which cotangents arrive: by op, last first,
/// and within an op by operand.
void GradientEngine::accumulate(OpBuilder &builder, Location loc, Value value,
                                Value cotangent) {
  Value &sum = cotangents[value];
  if (!sum)
    sum = cotangent;
  else if (definedness(sum) == definedness(cotangent))
    sum = AddOp::create(builder, loc, sum, cotangent);
  else
    sum = AccumulateOp::create(builder, loc, sum, cotangent);
}

void GradientEngine::seed(Value value, Value cotangent) {
  OpBuilder builder(end);
  accumulate(builder, cotangent.getLoc(), value, cotangent);
}

Value GradientEngine::argumentInBackward(StringAttr name) {
  auto primal = findValue(func, name);
  if (!primal)
    return {};
  // Handles are the forward's to check and to change.
  RoleAttr role = roleOfArgument(func, *primal);
  for (StringRef property : {"alias", "metadata", "storage", "resize", "freed"})
    role = role.without(property);
  role = role.with(RoleAttr::kPass,
                   StringAttr::get(func.getContext(), "backward"));
  BlockArgument argument = func.getArgument(*primal);
  unsigned index = func.getNumArguments();
  auto attributes = DictionaryAttr::get(
      func.getContext(),
      NamedAttribute(StringAttr::get(func.getContext(), kRoleAttr), role));
  if (failed(func.insertArgument(index, argument.getType(), attributes,
                                 argument.getLoc())))
    return {};
  return func.getArgument(index);
}

//===----------------------------------------------------------------------===//
// One application of a rule
//===----------------------------------------------------------------------===//

namespace tandem {

class EnginePullback : public Pullback {
public:
  EnginePullback(GradientEngine &engine, OpBuilder &builder, Location loc,
                 Operation *op)
      : Pullback(builder, loc, op), engine(engine) {
    for (Value result : flowResults(op))
      if (Value cotangent = engine.cotangent(result)) {
        ArrayAttr condition = engine.definedness(cotangent);
        runs = runs ? definedEither(runs, condition) : condition;
      }
  }

  bool has(unsigned i) const final {
    return engine.cotangents.contains(op->getResult(i));
  }
  bool needs(unsigned i) const final {
    return engine.depends(op->getOperand(i));
  }
  void set(unsigned i, const Expr &cotangent) final;
  FailureOr<SmallVector<Value>> differentiate(Operation *end,
                                              ArrayRef<Value> wrt,
                                              ArrayRef<Value> targets,
                                              ArrayRef<Value> cotangents) final;
  Value dyOrUndefined(unsigned i) final {
    return engine.cotangents.lookup(op->getResult(i));
  }
  Value state(StringAttr name, Value input, Type type) final;
  void update(StringAttr name, Value input, Value value) final;
  void updateCotangent(unsigned i, Value value) final;
  bool ok = true;

protected:
  Value cotangent(unsigned i) final;

private:
  InFlightDiagnostic error() {
    ok = false;
    return op->emitOpError();
  }
  /// `value` where `condition` holds as well, and else undefined.
  Value onlyIf(ArrayAttr condition, Value value);

  GradientEngine &engine;
  /// When the op's backward runs: with any of its cotangents.
  ArrayAttr runs;
};

} // namespace tandem

Value EnginePullback::onlyIf(ArrayAttr condition, Value value) {
  ArrayAttr own = engine.definedness(value);
  ArrayAttr both = definedBoth(own, condition);
  return both == own ? value
                     : OrZeroOp::create(builder, loc, value, both).getResult();
}

Value EnginePullback::cotangent(unsigned i) {
  Value result = op->getResult(i), value = engine.cotangents.lookup(result);
  if (!value)
    return ConstantOp::splat(builder, loc,
                             cast<RankedTensorType>(result.getType()), 0.0);
  // Zeros, where only other results have a cotangent.
  if (engine.definedness(value) == runs)
    return value;
  return OrZeroOp::create(builder, loc, value, runs);
}

void EnginePullback::set(unsigned i, const Expr &cotangent) {
  if (!needs(i))
    return;
  if (cotangent.value.getType() != op->getOperand(i).getType()) {
    error() << "expected the cotangent of operand #" << i << " to have type "
            << op->getOperand(i).getType() << " but got "
            << cotangent.value.getType();
    return;
  }
  engine.accumulate(builder, loc, op->getOperand(i), onlyIf(runs, cotangent));
}

FailureOr<SmallVector<Value>>
EnginePullback::differentiate(Operation *end, ArrayRef<Value> wrt,
                              ArrayRef<Value> targets,
                              ArrayRef<Value> cotangents) {
  GradientEngine inner(engine.func, end, wrt);
  auto wanter = [&](Value) {
    return "'" + op->getName().getStringRef().str() + "'";
  };
  if (failed(inner.prune(targets, wanter)))
    return failure();
  for (auto [target, cotangent] : llvm::zip_equal(targets, cotangents))
    inner.seed(target, cotangent);
  if (failed(inner.build(/*allowsEffects=*/false)))
    return failure();
  SmallVector<Value> gradients;
  for (Value value : wrt)
    gradients.push_back(inner.cotangent(value));
  return gradients;
}

Value EnginePullback::state(StringAttr name, Value input, Type type) {
  if (!name) {
    Value &copy = engine.privateStates.try_emplace(input, input).first->second;
    if (copy.getType() != type)
      error() << "expected its copy of an input to have type " << copy.getType()
              << ", but got " << type;
    return ok ? copy : Value();
  }
  if (!engine.allowsEffects) {
    error() << "reads or writes '" << name.getValue()
            << "' in its backward, which a gradient inside of the forward "
               "cannot do";
    return {};
  }
  Value &state = engine.states[name];
  if (!state)
    state = engine.argumentInBackward(name);
  if (!state)
    error() << "has a backward that reads or writes '" << name.getValue()
            << "', but there is no such argument";
  else if (state.getType() != type)
    error() << "expected '" << name.getValue() << "' to have type "
            << state.getType() << " in its backward, but got " << type;
  return ok ? state : Value();
}

void EnginePullback::update(StringAttr name, Value input, Value value) {
  Value &state = name ? engine.states[name] : engine.privateStates[input];
  if (!ok || !state)
    return;
  if (value.getType() != state.getType()) {
    error() << "expected the new value of "
            << (name ? "'" + name.str() + "'" : "its input") << " to have type "
            << state.getType() << ", but got " << value.getType();
    return;
  }
  ArrayAttr when = definedBoth(engine.definedness(value), runs);
  if (!when.empty())
    value = IfDefinedOp::create(builder, loc, value, state, when);
  state = value;
  if (name)
    engine.written[name] = {value, op};
}

void EnginePullback::updateCotangent(unsigned i, Value value) {
  auto argument = dyn_cast_or_null<BlockArgument>(
      engine.cotangents.lookup(op->getResult(i)));
  if (!argument || !engine.allowsEffects)
    return; // a sum, which is nobody else's
  RoleAttr role = roleOfArgument(engine.func, argument.getArgNumber());
  if (!role || role.getKind() != RoleKind::Cotangent)
    return;
  if (value.getType() != argument.getType()) {
    error() << "expected the new value of the cotangent of result #" << i
            << " to have type " << argument.getType() << ", but got "
            << value.getType();
    return;
  }
  auto name = builder.getStringAttr("cotangent of " + role.getName().str());
  engine.written[name] = {onlyIf(engine.definedness(argument), value), op};
}

/// No element of a result depends on an operand, or no operand has any.
bool GradientEngine::givesZeros(Operation *op) const {
  if (op->getNumRegions() != 0)
    return false;
  return areEmptyTensors(op->getResultTypes()) ||
         llvm::all_of(flowOperands(op), [&](Value operand) {
           return !depends(operand) || isEmptyTensor(operand.getType());
         });
}

void GradientEngine::setZeros(OpBuilder &builder, Location loc, Operation *op) {
  for (Value operand : flowOperands(op))
    if (depends(operand) && !cotangents.contains(operand))
      cotangents[operand] = ConstantOp::splat(
          builder, loc, cast<RankedTensorType>(operand.getType()), 0.0);
}

LogicalResult GradientEngine::build(bool allowsEffects) {
  this->allowsEffects = allowsEffects;
  OpBuilder builder(end);
  bool ok = true;
  // The backward grows in front of `end` while the walk goes up.
  for (Operation *op = end->getPrevNode(), *next; op; op = next) {
    next = op->getPrevNode();
    auto depended = [&](Value value) { return depends(value); };
    if (llvm::none_of(flowOperands(op), depended) ||
        llvm::none_of(flowResults(op), [&](Value result) {
          return depends(result) && cotangents.contains(result);
        }))
      continue;
    StringRef name = op->getName().stripDialect();
    Location loc = gradientOf(name, op->getLoc());
    Operation *last = end->getPrevNode();
    if (givesZeros(op)) {
      setZeros(builder, loc, op);
      continue;
    }
    EnginePullback pullback(*this, builder, loc, op);
    ok &= succeeded(cast<DifferentiableOpInterface>(op).pullback(pullback)) &&
          pullback.ok;
    // A backward runs where its forward does.
    if (Attribute stream = op->getAttr(kStreamAttr))
      while ((last = last->getNextNode()) != end)
        last->setAttr(kStreamAttr, stream);
  }
  return success(ok);
}
