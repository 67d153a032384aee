//===- Adam.cpp - Adam and what came of it --------------------------------===//
//
// m and v are means of gradients and of their squares, which start at 0 and are
// corrected for that.
//
//===----------------------------------------------------------------------===//
#include "passes/partition/optimizers/ParamUpdate.h"

#include "ir/Ops.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

template <typename Op> static void adam(ParamUpdate &u) {
  auto op =
      Op::create(u.builder, u.loc, u.oldParam, u.oldGradient, u.oldState("m"),
                 u.oldState("v"), u.stepValue, u.rateValue, u.number("beta1"),
                 u.number("beta2"), u.number("eps"), u.number("weight_decay"));
  u.newParam = op.getNewParam();
  u.newStates["m"] = op.getNewM();
  u.newStates["v"] = op.getNewV();
}

namespace {
/// The new means of a gradient, and what they are to be divided by.
struct Means {
  Means(ParamUpdate &u, const Expr &g)
      : m(lerp(u.state("m"), g, 1 - u.option("beta1"))),
        v(u.option("beta2") * u.state("v") + (1 - u.option("beta2")) * (g * g)),
        ofM(1.0 - powerOf(u.option("beta1"), u.step())),
        ofV(1.0 - powerOf(u.option("beta2"), u.step())) {
    u.put("m", m);
    u.put("v", v);
  }
  /// sqrt(values / ofV) + eps, with one division for all elements.
  Expr divisor(ParamUpdate &u, const Expr &values) const {
    return sqrt(values) * u.spread(1.0 / sqrt(ofV)) + u.option("eps");
  }
  Expr m, v, ofM, ofV;
};
} // namespace

static void amsgrad(ParamUpdate &u) {
  Means means(u, u.decayedGradient());
  Expr most = maximum(u.state("v_max"), means.v);
  u.put("v_max", most);
  u.setParam(u.decayedParam() - u.spread(u.rate() / means.ofM) *
                                    (means.m / means.divisor(u, most)));
}

static void nadam(ParamUpdate &u) {
  Expr g = u.decayedGradient();
  Means means(u, g);
  auto weight = [&](const Expr &step) {
    Expr faded = powerOf(0.96, step * u.option("momentum_decay"));
    return u.option("beta1") * (1.0 - 0.5 * faded);
  };
  Expr now = weight(u.step()), next = weight(u.step() + 1.0);
  Expr product = u.state("mu_product") * now;
  u.put("mu_product", product);
  Expr ofGradient = u.rate() * (1.0 - now) / (1.0 - product);
  Expr ofMean = u.rate() * next / (1.0 - product * next);
  u.setParam(u.decayedParam() -
             (u.spread(ofGradient) * g + u.spread(ofMean) * means.m) /
                 means.divisor(u, means.v));
}

/// Until the variance of v is finite, it divides nothing.
static void radam(ParamUpdate &u) {
  Means means(u, u.decayedGradient());
  double most = 2 / (1 - u.option("beta2")) - 1;
  Expr rate = u.rate() / means.ofM;
  Expr plain = u.spread(rate) * means.m;
  if (most <= 5)
    return u.setParam(u.decayedParam() - plain);
  Expr length = most - 2.0 * u.step() * (1.0 - means.ofV) / means.ofV;
  // Where it is not used, it is still a number.
  Expr used = maximum(length, length.like(5.0));
  Expr rectified = sqrt((used - 4.0) * (used - 2.0) * most /
                        (used * ((most - 4) * (most - 2)))) *
                   sqrt(means.ofV) * rate;
  Expr adaptive =
      u.spread(rectified) * (means.m / (sqrt(means.v) + u.option("eps")));
  Expr isLong = compare(ComparePredicate::gt, length, length.like(5.0));
  u.setParam(u.decayedParam() -
             select(isLong.broadcastTo(u.shape(), {}), adaptive, plain));
}

static void adamax(ParamUpdate &u) {
  Expr g = u.decayedGradient();
  Expr m = lerp(u.state("m"), g, 1 - u.option("beta1"));
  Expr most =
      maximum(u.option("beta2") * u.state("u"), abs(g) + u.option("eps"));
  u.put("m", m);
  u.put("u", most);
  Expr rate = u.rate() / (1.0 - powerOf(u.option("beta1"), u.step()));
  u.setParam(u.decayedParam() - u.spread(rate) * (m / most));
}

static std::optional<OptimizerState::Shape>
scalar(ArrayRef<int64_t>, const llvm::StringMap<double> &) {
  return OptimizerState::Shape();
}

static constexpr OptimizerOption kBeta1 =
    below1("beta1", 0.9, "decay of the mean of gradients");
static constexpr OptimizerOption kBeta2 =
    below1("beta2", 0.999, "decay of the mean of squares");
static constexpr OptimizerOption kEps = epsOption(1e-8);

static const OptimizerOption kAdam[] = {rateOption(1e-3), kBeta1, kBeta2, kEps,
                                        decayOption(0)};
static const OptimizerOption kAdamW[] = {rateOption(1e-3), kBeta1, kBeta2, kEps,
                                         decayOption(1e-2)};
static const OptimizerOption kDecoupledAdam[] = {
    rateOption(1e-3), kBeta1, kBeta2, kEps, decayOption(0), kDecoupled};
static const OptimizerOption kNAdam[] = {
    rateOption(2e-3),
    kBeta1,
    kBeta2,
    kEps,
    decayOption(0),
    {"momentum_decay", 4e-3, kTiny, kMost, true,
     "how fast the momentum reaches beta1"},
    kDecoupled};
static const OptimizerOption kAdamax[] = {
    rateOption(2e-3),
    kBeta1,
    below1("beta2", 0.999, "decay of the largest gradient"),
    {"eps", 1e-8, kTiny, kMost, false, "added to a gradient's magnitude"},
    decayOption(0)};
static const OptimizerState kMeans[] = {{"m"}, {"v"}};
static const OptimizerState kMost3[] = {{"m"}, {"v"}, {"v_max"}};
static const OptimizerState kProduct[] = {
    {"m"}, {"v"}, {"mu_product", 1, "", "", scalar}};
static const OptimizerState kLargest[] = {{"m"}, {"u"}};

ArrayRef<OptimizerKind> tandem::adamKinds() {
  static const OptimizerKind kinds[] = {
      {"adam", kAdam, kMeans, true, false, adam<AdamOp>,
       "Adam of g + weight_decay * p", "torch.optim.Adam"},
      {"adamw", kAdamW, kMeans, true, true, adam<AdamWOp>,
       "Adam of g, and p -= lr * weight_decay * p beside it",
       "torch.optim.AdamW"},
      {"amsgrad", kDecoupledAdam, kMost3, true, false, amsgrad,
       "Adam, divided by the root of the largest v until now",
       "torch.optim.Adam(amsgrad=True)"},
      {"nadam", kNAdam, kProduct, true, false, nadam,
       "Adam with Nesterov's momentum", "torch.optim.NAdam"},
      {"radam", kDecoupledAdam, kMeans, true, false, radam,
       "Adam, rectified while v is of few gradients", "torch.optim.RAdam"},
      {"adamax", kAdamax, kLargest, true, false, adamax,
       "m = mean of g + weight_decay * p, u = max(beta2 * u, |g| + eps), p -= "
       "lr / (1 - beta1^step) * m / u",
       "torch.optim.Adamax"}};
  return kinds;
}
