//===- Sgd.cpp - steps along the gradient ---------------------------------===//
#include "passes/partition/optimizers/ParamUpdate.h"

#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;

static void sgd(ParamUpdate &u) {
  u.newParam = SgdOp::create(u.builder, u.loc, u.oldParam, u.oldGradient,
                             u.rateValue, u.number("weight_decay"))
                   .getNewParam();
}

static void momentum(ParamUpdate &u) {
  auto op = MomentumOp::create(u.builder, u.loc, u.oldParam, u.oldGradient,
                               u.oldState("velocity"), u.rateValue,
                               u.number("momentum"), u.number("weight_decay"),
                               u.number("dampening"), u.isOn("nesterov"));
  u.newParam = op.getNewParam();
  u.newStates["velocity"] = op.getNewVelocity();
}

/// The signs of an average of m and the gradient move the parameter, and m
/// follows more slowly.
static void lion(ParamUpdate &u) {
  Expr g = u.gradient(), m = u.state("m");
  Expr direction = sign(lerp(m, g, 1 - u.option("beta1")));
  u.setParam(u.decayedParam() - u.spread(u.rate()) * direction);
  u.put("m", lerp(m, g, 1 - u.option("beta2")));
}

static const OptimizerOption kSgd[] = {rateOption(1e-3), decayOption(0)};
static const OptimizerOption kMomentum[] = {
    rateOption(1e-3),
    below1("momentum", 0.9, "decay of the velocity"),
    {"dampening", 0, kTiny, 1, true,
     "part of the gradient that is left out, in the first step too, unlike in "
     "PyTorch"},
    decayOption(0),
    flag("nesterov", "look ahead")};
static const OptimizerOption kLion[] = {
    rateOption(1e-4),
    below1("beta1", 0.9, "part of the mean of gradients in a direction"),
    below1("beta2", 0.99, "decay of the mean of gradients"), decayOption(0)};
static const OptimizerState kVelocity[] = {{"velocity"}};
static const OptimizerState kMean[] = {{"m"}};

ArrayRef<OptimizerKind> tandem::sgdKinds() {
  static const OptimizerKind kinds[] = {
      {"sgd",
       kSgd,
       {},
       false,
       true,
       sgd,
       "p -= lr * (g + weight_decay * p)",
       "torch.optim.SGD"},
      {"momentum", kMomentum, kVelocity, false, true, momentum,
       "v = momentum * v + (1 - dampening) * (g + weight_decay * p), p -= lr * "
       "v",
       "torch.optim.SGD"},
      {"lion", kLion, kMean, false, true, lion,
       "p -= lr * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p), m = "
       "beta2 * m + (1 - beta2) * g",
       "Chen et al. 2023, arXiv:2302.06675"}};
  return kinds;
}
