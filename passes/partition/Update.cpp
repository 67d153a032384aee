//===- Update.cpp - an optimizer as a program -----------------------------===//
//
// The formulas are those of torch.optim.SGD (with weight_decay, momentum and
// nesterov), Adam (D. P. Kingma and J. Ba, 2015) and AdamW (I. Loshchilov and
// F. Hutter, 2019). Parameters of f16 and bf16 are updated in f32, in which
// their states are kept, and rounded once.
//
//===----------------------------------------------------------------------===//
#include "passes/partition/Update.h"

#include "passes/partition/OptimizerSpec.h"

#include "ir/Expr.h"
#include "ir/Ops.h"
#include "ir/Signature.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

namespace {

class UpdateBuilder {
public:
  UpdateBuilder(func::FuncOp forward, func::FuncOp backward, OptimizerSpec spec)
      : forward(forward), backward(backward), spec(std::move(spec)),
        builder(backward.getContext()),
        loc(NameLoc::get(builder.getStringAttr("update"), backward.getLoc())) {}

  func::FuncOp run();

private:
  struct Param {
    Slot slot;
    Value value, gradient;
  };

  double option(StringRef name) const { return spec.values.lookup(name); }
  bool hasStep() const {
    return spec.kind->name == "adam" || spec.kind->name == "adamw";
  }
  /// States are kept and arithmetic is done in this type.
  static Type arithmeticType(Type element) {
    return element.isF64() ? element
                           : Type(Float32Type::get(element.getContext()));
  }
  void addState(const Twine &name, RankedTensorType type, double init);
  Expr state(const Twine &name);
  /// Hands over the new value of a param or state.
  void update(StringRef name, Value value);
  /// A scalar of the optimizer, for arithmetic with `like`.
  Expr spread(const Expr &scalar, const Expr &like);
  Expr biasCorrection(const Expr &step, double beta);
  void prepareScalars();
  /// Puts the updates in the order of the arguments.
  void orderResults();
  void updateParam(const Param &param);
  Expr momentumDirection(StringRef param, const Expr &g);
  Expr adamDirection(StringRef param, const Expr &g);

  func::FuncOp forward, backward;
  OptimizerSpec spec;
  OpBuilder builder;
  Location loc;
  SmallVector<Slot> arguments, results;
  SmallVector<Value> returned;
  func::FuncOp func;

  /// Scalars that all params share: what a direction is multiplied by; what
  /// AdamW leaves of a param; the square root of v's bias correction.
  Expr rate, shrink, rootOfCorrection;
};

} // namespace

void UpdateBuilder::addState(const Twine &name, RankedTensorType type,
                             double init) {
  auto value = builder.getDictionaryAttr(
      {builder.getNamedAttr("kind", builder.getStringAttr("constant")),
       builder.getNamedAttr("value", builder.getF64FloatAttr(init))});
  arguments.push_back({type,
                       RoleAttr::get(builder.getContext(), RoleKind::State,
                                     (spec.kind->name + "." + name).str())
                           .with("init", value),
                       loc});
}

Expr UpdateBuilder::state(const Twine &name) {
  auto index =
      findArgument(func, RoleKind::State, (spec.kind->name + "." + name).str());
  return {builder, loc, func.getArgument(*index)};
}

void UpdateBuilder::update(StringRef name, Value value) {
  results.push_back(
      {value.getType(),
       RoleAttr::get(builder.getContext(), RoleKind::Update, name), loc});
  returned.push_back(value);
}

Expr UpdateBuilder::spread(const Expr &scalar, const Expr &like) {
  return scalar.cast(like.type().getElementType())
      .broadcastTo(like.shape(), {});
}

/// 1 - beta^step without cancellation where beta is near 1: with
/// h = step * ln(beta) / 2 it is -tanh(h) * (1 + exp(2 h)).
Expr UpdateBuilder::biasCorrection(const Expr &step, double beta) {
  if (beta == 0)
    return step.like(1.0);
  Expr h = step * (0.5 * std::log(beta));
  return -tanh(h) * (exp(h * 2.0) + 1.0);
}

Expr UpdateBuilder::momentumDirection(StringRef param, const Expr &g) {
  std::string name = ("buffer:" + param).str();
  Expr buffer = state(name) * option("momentum") + g;
  update((spec.kind->name + "." + name).str(), buffer);
  return option("nesterov") != 0 ? g + buffer * option("momentum") : buffer;
}

Expr UpdateBuilder::adamDirection(StringRef param, const Expr &g) {
  double beta1 = option("beta1"), beta2 = option("beta2");
  Expr oldM = state("m:" + param), oldV = state("v:" + param);
  Expr m = oldM + (g - oldM) * (1.0 - beta1);
  Expr v = oldV * beta2 + g * g * (1.0 - beta2);
  update((spec.kind->name + ".m:" + param).str(), m);
  update((spec.kind->name + ".v:" + param).str(), v);
  return m / (sqrt(v) / spread(rootOfCorrection, g) + option("eps"));
}

void UpdateBuilder::prepareScalars() {
  Expr lr = state("lr");
  rate = lr;
  if (option("weight_decay") != 0 && spec.kind->name == "adamw")
    shrink = 1.0 - lr * option("weight_decay");
  if (!hasStep())
    return;
  Expr step = state("step") + 1.0;
  update((spec.kind->name + ".step").str(), step);
  rate = lr / biasCorrection(step, option("beta1"));
  rootOfCorrection = sqrt(biasCorrection(step, option("beta2")));
}

void UpdateBuilder::updateParam(const Param &param) {
  StringRef name = param.slot.role.getName().getValue();
  Type type = cast<RankedTensorType>(param.slot.type).getElementType();
  Expr w = Expr(builder, loc, param.value).cast(arithmeticType(type));
  Expr g = Expr(builder, loc, param.gradient).cast(arithmeticType(type));
  // AdamW shrinks the parameter itself, the others add to the gradient.
  Expr from = shrink ? w * spread(shrink, w) : w;
  if (!shrink && option("weight_decay") != 0)
    g = g + w * option("weight_decay");
  if (spec.kind->name == "momentum")
    g = momentumDirection(name, g);
  else if (hasStep())
    g = adamDirection(name, g);
  update(name, (from - spread(rate, w) * g).cast(type));
}

void UpdateBuilder::orderResults() {
  SmallVector<Slot> slots;
  SmallVector<Value> values;
  for (const Slot &argument : arguments)
    for (auto [slot, value] : llvm::zip_equal(results, returned))
      if (argument.role.getKind() != RoleKind::Grad &&
          slot.role.getName() == argument.role.getName()) {
        slots.push_back(slot);
        values.push_back(value);
      }
  results = slots;
  returned = values;
}

func::FuncOp UpdateBuilder::run() {
  MLIRContext *context = builder.getContext();
  SmallVector<Slot> params, gradients;
  bool wide = false;
  for (unsigned i = 0, n = backward.getNumResults(); i < n; ++i) {
    RoleAttr role = roleOfResult(backward, i);
    auto index = findArgument(forward, RoleKind::Param, role.getName());
    if (!index)
      continue;
    Type type = forward.getArgumentTypes()[*index];
    wide |= cast<RankedTensorType>(type).getElementType().isF64();
    params.push_back({type, roleOfArgument(forward, *index),
                      forward.getArgument(*index).getLoc()});
    gradients.push_back({type, role, loc});
  }
  arguments = params;
  arguments.append(gradients);
  auto scalar = RankedTensorType::get({}, wide ? Type(Float64Type::get(context))
                                               : Float32Type::get(context));
  addState("lr", scalar, option("lr"));
  if (hasStep())
    addState("step", scalar, 0);
  for (const Slot &param : params) {
    auto type = cast<RankedTensorType>(param.type);
    type = type.clone(arithmeticType(type.getElementType()));
    StringRef name = param.role.getName().getValue();
    if (spec.kind->name == "momentum")
      addState("buffer:" + name, type, 0);
    if (hasStep()) {
      addState("m:" + name, type, 0);
      addState("v:" + name, type, 0);
    }
  }

  // The results follow from the body; the function gets its type at the end.
  builder.setInsertionPointAfter(backward);
  func =
      createGraphFunction(builder, backward.getLoc(), "update", arguments, {});
  builder.setInsertionPointToStart(&func.getBody().front());
  prepareScalars();
  for (auto [i, slot] : llvm::enumerate(params))
    updateParam(
        {slot, func.getArgument(i), func.getArgument(params.size() + i)});
  orderResults();
  func::ReturnOp::create(builder, loc, returned);
  func.setFunctionType(builder.getFunctionType(
      func.getArgumentTypes(), TypeRange(ValueRange(returned))));
  for (auto [i, slot] : llvm::enumerate(results))
    setRoleOfResult(func, i, slot.role);
  return func;
}

FailureOr<func::FuncOp>
tandem::buildUpdate(ModuleOp module, func::FuncOp backward, StringRef text) {
  std::string error;
  auto spec = parseOptimizerSpec(text, error);
  if (!spec)
    return module.emitError() << error;
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  return UpdateBuilder(forward, backward, std::move(*spec)).run();
}
