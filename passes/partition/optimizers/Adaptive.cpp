//===- Adaptive.cpp - rates for each element, without Adam's means --------===//
#include "passes/partition/optimizers/ParamUpdate.h"

using namespace mlir;
using namespace tandem;

static void adagrad(ParamUpdate &u) {
  Expr g = u.decayedGradient();
  Expr sum = u.state("squares") + g * g;
  u.put("squares", sum);
  Expr rate = u.rate() / (1.0 + (u.step() - 1.0) * u.option("lr_decay"));
  u.setParam(u.decayedParam() -
             u.spread(rate) * (g / (sqrt(sum) + u.option("eps"))));
}

static void adadelta(ParamUpdate &u) {
  Expr g = u.decayedGradient();
  double rho = u.option("rho"), eps = u.option("eps");
  Expr squares = rho * u.state("v") + (1 - rho) * (g * g);
  Expr moved = u.state("delta");
  Expr delta = sqrt(moved + eps) / sqrt(squares + eps) * g;
  u.put("v", squares);
  u.put("delta", rho * moved + (1 - rho) * (delta * delta));
  u.setParam(u.decayedParam() - u.spread(u.rate()) * delta);
}

static void rmsprop(ParamUpdate &u) {
  Expr g = u.decayedGradient();
  double alpha = u.option("alpha");
  Expr squares = alpha * u.state("v") + (1 - alpha) * (g * g);
  u.put("v", squares);
  if (u.isOn("centered")) {
    Expr mean = lerp(u.state("mean"), g, 1 - alpha);
    u.put("mean", mean);
    // A variance, which rounding can make negative.
    squares = squares - mean * mean;
    squares = maximum(squares, squares.like(0.0));
  }
  Expr direction = g / (sqrt(squares) + u.option("eps"));
  if (u.isOn("momentum")) {
    direction = u.option("momentum") * u.state("velocity") + direction;
    u.put("velocity", direction);
  }
  u.setParam(u.decayedParam() - u.spread(u.rate()) * direction);
}

static const OptimizerOption kAdagrad[] = {
    rateOption(1e-2),
    {"lr_decay", 0, kTiny, kMost, true,
     "the rate is divided by 1 + lr_decay * updates"},
    decayOption(0),
    {"initial", 0, kTiny, kMost, true, "what the sum of squares begins with"},
    epsOption(1e-10)};
static const OptimizerOption kAdadelta[] = {
    rateOption(1),
    below1("rho", 0.9, "decay of the means of squares"),
    {"eps", 1e-6, kTiny, kMost, false, "added to the means of squares"},
    decayOption(0)};
static const OptimizerOption kRmsprop[] = {
    rateOption(1e-2),
    below1("alpha", 0.99, "decay of the mean of squares"),
    epsOption(1e-8),
    decayOption(0),
    below1("momentum", 0, "decay of the velocity; 0: there is none"),
    flag("centered", "divide by the root of the variance")};
static const OptimizerState kSum[] = {{"squares", 0, "initial"}};
static const OptimizerState kDelta[] = {{"v"}, {"delta"}};
static const OptimizerState kRoots[] = {
    {"v"}, {"mean", 0, "", "centered"}, {"velocity", 0, "", "momentum"}};

ArrayRef<OptimizerKind> tandem::adaptiveKinds() {
  static const OptimizerKind kinds[] = {
      {"adagrad", kAdagrad, kSum, true, false, adagrad,
       "s += g * g, p -= lr * g / (sqrt(s) + eps), with g + weight_decay * p "
       "for g",
       "torch.optim.Adagrad"},
      {"adadelta", kAdadelta, kDelta, false, false, adadelta,
       "d = sqrt(delta + eps) / sqrt(v + eps) * g, p -= lr * d, where v and "
       "delta are means of g * g and d * d, with g + weight_decay * p for g",
       "torch.optim.Adadelta"},
      {"rmsprop", kRmsprop, kRoots, false, false, rmsprop,
       "p -= lr * g / (sqrt(v) + eps), where v is a mean of g * g, with g + "
       "weight_decay * p for g",
       "torch.optim.RMSprop"}};
  return kinds;
}
