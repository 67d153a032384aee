//===- Whole.cpp - steps that depend on a parameter as a whole ------------===//
//
// Norms, means and products over a parameter. Under a mesh they are those of
// the whole one: passes/shard adds up what ranks have.
//
//===----------------------------------------------------------------------===//
#include "passes/partition/optimizers/ParamUpdate.h"

#include "ir/Ops.h"

#include <cmath>

using namespace mlir;
using namespace tandem;

using Shape = OptimizerState::Shape;
using Options = llvm::StringMap<double>;

/// `ratio`; 1 where one of the norms a and b is 0.
static Expr trustRatio(const Expr &a, const Expr &b, const Expr &ratio) {
  Expr none = a.like(0.0);
  Expr areNorms = logicalAnd(compare(ComparePredicate::gt, a, none),
                             compare(ComparePredicate::gt, b, none));
  return select(areNorms, ratio, a.like(1.0));
}

/// Whether a layer's norms make its rate: not of parameters without decay, as
/// biases, unless asked for.
static bool adapts(const ParamUpdate &u) {
  return u.option("weight_decay") != 0 || u.isOn("always_adapt");
}

static void lamb(ParamUpdate &u) {
  double beta2 = u.option("beta2");
  Expr g = u.gradient(), p = u.param();
  Expr m = lerp(u.state("m"), g, 1 - u.option("beta1"));
  Expr v = beta2 * u.state("v") + (1 - beta2) * (g * g);
  u.put("m", m);
  u.put("v", v);
  Expr ofM = 1.0 / (1.0 - powerOf(u.option("beta1"), u.step()));
  Expr ofV = 1.0 / sqrt(1.0 - powerOf(beta2, u.step()));
  Expr direction =
      u.spread(ofM) * m / (sqrt(v) * u.spread(ofV) + u.option("eps"));
  direction = plusScaled(direction, u.option("weight_decay"), p);
  Expr rate = u.rate();
  if (adapts(u)) {
    Expr w = u.norm(p), d = u.norm(direction);
    rate = rate * trustRatio(w, d, w / d);
  }
  u.setParam(p - u.spread(rate) * direction);
}

static void lars(ParamUpdate &u) {
  double decay = u.option("weight_decay"), momentum = u.option("momentum");
  Expr g = u.gradient(), p = u.param();
  if (adapts(u)) {
    Expr w = u.norm(p), d = u.norm(g);
    Expr ratio = u.option("trust") * w / (d + w * decay + u.option("eps"));
    g = plusScaled(g, decay, p) * u.spread(trustRatio(w, d, ratio));
  }
  if (momentum != 0) {
    Expr velocity = momentum * u.state("velocity") + g;
    u.put("velocity", velocity);
    g = u.isOn("nesterov") ? g + momentum * velocity : velocity;
  }
  u.setParam(p - u.spread(u.rate()) * g);
}

/// Means of squares along the last two dimensions in the place of all of them.
static void adafactor(ParamUpdate &u) {
  Expr g = u.gradient(), p = u.param();
  double eps = u.option("eps");
  Expr weight = exp(log(u.step()) * u.option("beta2_decay"));
  Expr size = u.rms(p);
  Expr rate = maximum(size, size.like(u.option("eps2"))) *
              minimum(u.rate(), 1.0 / sqrt(u.step()));
  auto follow = [&](StringRef name, const Expr &now) {
    Expr old = u.state(name);
    Expr part =
        weight.cast(old.type().getElementType()).broadcastTo(old.shape(), {});
    Expr value = old + part * (now - old);
    u.put(name, value);
    return value;
  };
  int64_t rank = u.rank();
  Expr variance;
  if (rank < 2) {
    variance = follow("v", g * g);
  } else {
    auto without = [&](int64_t dim) {
      SmallVector<int64_t> dims = u.dims();
      dims.erase(dims.begin() + dim);
      return dims;
    };
    auto mean = [](const Expr &x, int64_t dim) {
      return x.reduceSum({dim}) / static_cast<double>(x.dim(dim));
    };
    Expr rows = follow("row", mean(g * g, rank - 1));
    Expr columns = follow("column", mean(g * g, rank - 2));
    Expr all = mean(rows, rank - 2);
    all = maximum(all, all.like(eps));
    SmallVector<int64_t> outer = u.dims();
    outer.resize(rank - 2);
    variance = rows.broadcastTo(u.shape(), without(rank - 1)) *
               columns.broadcastTo(u.shape(), without(rank - 2)) /
               all.broadcastTo(u.shape(), outer);
  }
  Expr direction = g * rsqrt(maximum(variance, variance.like(eps * eps)));
  Expr length = u.rms(direction) / u.option("d");
  rate = rate / maximum(length, length.like(1.0));
  u.setParam(u.decayedParam() - u.spread(rate) * direction);
}

static Expr product(const Expr &a, const Expr &b, bool transposesB = false) {
  return a.wrap(MatmulOp::create(*a.builder, a.loc, a, b,
                                 /*transpose_a=*/false, transposesB,
                                 StringAttr()));
}

/// Five of Newton and Schulz's steps towards the orthogonal matrix that is
/// nearest, with Jordan's coefficients; in the compute type, where the source
/// has bf16.
static Expr orthogonalized(ParamUpdate &u, const Expr &matrix) {
  Expr size = u.norm(matrix);
  Expr x = matrix * u.spread(1.0 / maximum(size, size.like(1e-7)));
  bool isTall = x.dim(0) > x.dim(1);
  if (isTall)
    x = x.permute({1, 0});
  for (int i = 0; i < 5; ++i) {
    Expr gram = product(x, x, /*transposesB=*/true);
    Expr factor = -4.7750 * gram + 2.0315 * product(gram, gram);
    x = 3.4445 * x + product(factor, x);
  }
  return isTall ? x.permute({1, 0}) : x;
}

static bool isMatrix(ArrayRef<int64_t> shape, const Options &options) {
  return shape.size() == 2 && options.lookup("matrices") != 0;
}

static void muon(ParamUpdate &u) {
  Expr g = u.gradient();
  if (u.rank() == 2 && u.isOn("matrices")) {
    double momentum = u.option("momentum");
    Expr mean = lerp(u.state("momentum"), g, 1 - momentum);
    u.put("momentum", mean);
    Expr along = u.isOn("nesterov") ? lerp(g, mean, momentum) : mean;
    double rows = static_cast<double>(u.shape()[0]),
           columns = static_cast<double>(u.shape()[1]);
    double factor = u.isOn("match_rms")
                        ? 0.2 * std::sqrt(std::max(rows, columns))
                        : std::sqrt(std::max(1.0, rows / columns));
    return u.setParam(u.decayedParam() -
                      u.spread(u.rate() * factor) * orthogonalized(u, along));
  }
  double beta2 = u.option("beta2");
  Expr m = lerp(u.state("m"), g, 1 - u.option("beta1"));
  Expr v = beta2 * u.state("v") + (1 - beta2) * (g * g);
  u.put("m", m);
  u.put("v", v);
  Expr ofM = u.rate() / (1.0 - powerOf(u.option("beta1"), u.step()));
  Expr ofV = 1.0 / sqrt(1.0 - powerOf(beta2, u.step()));
  u.setParam(u.decayedParam() -
             u.spread(ofM) * (m / (sqrt(v) * u.spread(ofV) + u.option("eps"))));
}

static std::optional<Shape> rowShape(ArrayRef<int64_t> param, const Options &) {
  if (param.size() < 2)
    return std::nullopt;
  return Shape(param.drop_back());
}
static std::optional<Shape> columnShape(ArrayRef<int64_t> param,
                                        const Options &) {
  if (param.size() < 2)
    return std::nullopt;
  Shape shape(param.drop_back(2));
  shape.push_back(param.back());
  return shape;
}
static std::optional<Shape> vectorShape(ArrayRef<int64_t> param,
                                        const Options &) {
  return param.size() < 2 ? std::optional(Shape(param)) : std::nullopt;
}
static std::optional<Shape> matrixShape(ArrayRef<int64_t> param,
                                        const Options &options) {
  return isMatrix(param, options) ? std::optional(Shape(param)) : std::nullopt;
}
static std::optional<Shape> otherShape(ArrayRef<int64_t> param,
                                       const Options &options) {
  return isMatrix(param, options) ? std::nullopt : std::optional(Shape(param));
}

static constexpr OptimizerOption kBeta1 =
    below1("beta1", 0.9, "decay of the mean of gradients");
static constexpr OptimizerOption kBeta2 =
    below1("beta2", 0.999, "decay of the mean of squares");
static constexpr OptimizerOption kAlways =
    flag("always_adapt", "adapt the rate without weight_decay too");

static const OptimizerOption kLamb[] = {
    rateOption(1e-3),  kBeta1, kBeta2, epsOption(1e-6),
    decayOption(1e-2), kAlways};
static const OptimizerOption kLars[] = {
    rateOption(1),
    below1("momentum", 0.9, "decay of the velocity; 0: there is none"),
    decayOption(0),
    {"trust", 1e-3, kTiny, kMost, false, "what a step is of the parameter"},
    epsOption(1e-8),
    flag("nesterov", "look ahead"),
    kAlways};
static const OptimizerOption kAdafactor[] = {
    rateOption(1e-2),
    {"beta2_decay", -0.8, -10, 0, false, "1 - beta2 is the step to this power"},
    {"eps", 0x1p-23, kTiny, kMost, false,
     "the least root of a mean of squares"},
    {"eps2", 1e-3, kTiny, kMost, true, "the least size of a parameter"},
    {"d", 1, 1, kMost, false, "the most that a step's size may be"},
    decayOption(0)};
static const OptimizerOption kMuon[] = {
    rateOption(1e-3),
    decayOption(0.1),
    below1("momentum", 0.95, "decay of the mean of a matrix's gradients"),
    flag("nesterov", "look ahead", /*value=*/true),
    flag("match_rms", "steps of a matrix have the size of AdamW's"),
    flag("matrices", "false: matrices are moved as all else, by AdamW",
         /*value=*/true),
    kBeta1,
    kBeta2,
    epsOption(1e-8)};
static const OptimizerState kMeans[] = {{"m"}, {"v"}};
static const OptimizerState kVelocity[] = {{"velocity", 0, "", "momentum"}};
static const OptimizerState kFactors[] = {{"row", 0, "", "", rowShape},
                                          {"column", 0, "", "", columnShape},
                                          {"v", 0, "", "", vectorShape}};
static const OptimizerState kMuonStates[] = {
    {"momentum", 0, "", "", matrixShape},
    {"m", 0, "", "", otherShape},
    {"v", 0, "", "", otherShape}};

ArrayRef<OptimizerKind> tandem::wholeKinds() {
  static const OptimizerKind kinds[] = {
      {"lamb", kLamb, kMeans, true, false, lamb,
       "d = Adam's direction + weight_decay * p, p -= lr * |p| / |d| * d",
       "You et al. 2020, arXiv:1904.00962, as timm.optim.Lamb without its "
       "clipping"},
      {"lars", kLars, kVelocity, false, false, lars,
       "momentum of trust * |p| / (|g| + weight_decay * |p|) * (g + "
       "weight_decay * p)",
       "You et al. 2017, arXiv:1708.03888, as timm.optim.Lars"},
      {"adafactor", kAdafactor, kFactors, true, true, adafactor,
       "g over the root of means of squares along rows and columns, times the "
       "size of p",
       "torch.optim.Adafactor"},
      {"muon", kMuon, kMuonStates, true, true, muon,
       "matrices: p -= lr * sqrt(max(1, rows / columns)) * the mean of g made "
       "orthogonal; all else: AdamW",
       "torch.optim.Muon, in f32"}};
  return kinds;
}
