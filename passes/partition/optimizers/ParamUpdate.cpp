//===- ParamUpdate.cpp - one update of one parameter ----------------------===//
#include "passes/partition/optimizers/ParamUpdate.h"

#include "ir/ops/Composite.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

ParamUpdate::ParamUpdate(OpBuilder &builder, Location loc,
                         const OptimizerSpec &spec, Value param, Value gradient,
                         Value rate, Value step, llvm::StringMap<Value> states)
    : builder(builder), loc(loc), spec(spec), oldParam(param),
      oldGradient(gradient), rateValue(rate), stepValue(step),
      states(std::move(states)) {}

Expr ParamUpdate::in(Value value) const {
  return composite::in(builder, loc, value, composite::computeType(oldParam));
}

Expr ParamUpdate::exact(Value value) const {
  return composite::in(builder, loc, value, builder.getF64Type());
}

int64_t ParamUpdate::rank() const { return shape().size(); }

ArrayRef<int64_t> ParamUpdate::shape() const {
  return cast<RankedTensorType>(oldParam.getType()).getShape();
}

SmallVector<int64_t> ParamUpdate::dims() const {
  return llvm::to_vector(llvm::seq<int64_t>(0, rank()));
}

Expr ParamUpdate::state(StringRef name) const {
  Value value = states.lookup(name);
  for (const OptimizerState &state : spec.kind->states)
    if (state.name == name && state.shape)
      // Of any param a number, and not because the param is one.
      if (auto own = state.shape({1}, spec.values); own && own->empty())
        return exact(value);
  return in(value);
}

Expr ParamUpdate::spread(const Expr &scalar) const {
  return scalar.cast(composite::computeType(oldParam)).broadcastTo(shape(), {});
}

Expr ParamUpdate::norm(const Expr &tensor) const {
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, tensor.rank()));
  return sqrt((tensor * tensor).reduceSum(all).cast(builder.getF64Type()));
}

Expr ParamUpdate::rms(const Expr &tensor) const {
  double count = static_cast<double>(tensor.type().getNumElements());
  return norm(tensor) / std::sqrt(count);
}

Expr ParamUpdate::decayedGradient() const {
  return isOn("decoupled")
             ? gradient()
             : plusScaled(gradient(), option("weight_decay"), param());
}

Expr ParamUpdate::decayedParam() const {
  bool isCoupled = !spec.kind->takesPart && !isOn("decoupled");
  double decay = option("weight_decay");
  return isCoupled || decay == 0 ? param()
                                 : param() * spread(1.0 - rate() * decay);
}

void ParamUpdate::setParam(const Expr &value) {
  newParam = value.cast(getElementTypeOrSelf(oldParam));
}

void ParamUpdate::put(StringRef name, const Expr &value) {
  newStates[name] = value.cast(getElementTypeOrSelf(states.lookup(name)));
}

Expr tandem::plusScaled(const Expr &value, double factor, const Expr &other) {
  return factor == 0 ? value : value + factor * other;
}

Expr tandem::lerp(const Expr &a, const Expr &b, double weight) {
  return a + weight * (b - a);
}

Expr tandem::powerOf(double base, const Expr &step) {
  return base == 0 ? step.like(0.0) : exp(step * std::log(base));
}
