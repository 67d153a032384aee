//===- ScheduleFree.cpp - AdamW without a schedule ------------------------===//
//
// Defazio et al., "The road less scheduled" (2024), as facebookresearch's
// AdamWScheduleFree: the gradient is taken at y = (1 - beta1) z + beta1 x, z
// steps by it, and x is the mean of z, weighted by the squares of the largest
// rate until then. y is the parameter, x what evaluates ('--average').
//
// weight_sum is 0 before the first update with a rate; until then z and x are
// the parameter.
//
//===----------------------------------------------------------------------===//
#include "passes/partition/optimizers/ParamUpdate.h"

using namespace mlir;
using namespace tandem;

static void scheduleFree(ParamUpdate &u) {
  double beta1 = u.option("beta1"), beta2 = u.option("beta2");
  Expr y = u.param(), g = u.gradient();
  Expr v = beta2 * u.state("v") + (1 - beta2) * (g * g);
  u.put("v", v);
  Expr ofV = 1.0 - powerOf(beta2, u.step());
  Expr direction = g / (sqrt(v) * u.spread(1.0 / sqrt(ofV)) + u.option("eps"));
  direction = plusScaled(direction, u.option("weight_decay"), y);

  Expr rate = u.rate(), most = maximum(u.state("lr_max"), rate);
  Expr weight = most * most, before = u.state("weight_sum");
  Expr sum = before + weight;
  Expr none = sum.like(0);
  Expr part = select(compare(ComparePredicate::gt, sum, none),
                     weight / select(compare(ComparePredicate::gt, sum, none),
                                     sum, sum.like(1)),
                     none);
  Expr isFirst =
      compare(ComparePredicate::eq, before, none).broadcastTo(u.shape(), {});
  Expr z = select(isFirst, y, u.state("z"));
  Expr x = select(isFirst, y, u.state("x"));
  z = z - u.spread(rate) * direction;
  x = x + u.spread(part) * (z - x);
  u.put("lr_max", most);
  u.put("weight_sum", sum);
  u.put("z", z);
  u.put("x", x);
  u.setParam(lerp(z, x, beta1));
}

static std::optional<OptimizerState::Shape>
scalar(ArrayRef<int64_t>, const llvm::StringMap<double> &) {
  return OptimizerState::Shape();
}

static const OptimizerOption kOptions[] = {
    rateOption(2.5e-3),
    below1("beta1", 0.9, "how near the gradient is taken to the mean"),
    below1("beta2", 0.999, "decay of the mean of squares"), epsOption(1e-8),
    decayOption(0)};
static const OptimizerState kStates[] = {{"z"},
                                         {"x"},
                                         {"v"},
                                         {"weight_sum", 0, "", "", scalar},
                                         {"lr_max", 0, "", "", scalar}};

ArrayRef<OptimizerKind> tandem::scheduleFreeKinds() {
  static const OptimizerKind kinds[] = {
      {"schedulefree", kOptions, kStates, true, true, scheduleFree,
       "AdamW whose rate stays, with its warm-up: p = (1 - beta1) * z + beta1 "
       "* x, z steps as AdamW without beta1, x is the mean of z, which "
       "evaluates (--average=schedulefree)",
       "facebookresearch/schedule_free, AdamWScheduleFree"}};
  return kinds;
}
