//===- DistanceLoss.cpp - losses of numbers and of distances --------------===//
#include "compiler/functions/Formula.h"
#include "compiler/functions/Function.h"
#include "ir/Ops.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::formula;

/// The first `count` operands, which must have floats, in the compute type and
/// stretched to one shape; empty after a mistake.
static SmallVector<Expr> numbers(Call &call, size_t count) {
  SmallVector<Value> values;
  for (size_t i = 0; i < count; ++i) {
    if (failed(call.expectFloat(i)))
      return {};
    values.push_back(call.value(i));
  }
  Type type = composite::computeType(values);
  SmallVector<Expr> wide;
  for (size_t i = 0; i < count; ++i)
    wide.push_back(formula::wide(call, i, type));
  (void)reduction(call);
  if (failed(call.broadcast(wide)) || call.failed())
    return {};
  return wide;
}

static CallResults give(Call &call, const Expr &loss) {
  return SmallVector<Value>{
      reduced(call, loss).cast(call[0].type().getElementType())};
}

/// At least 0; at 0 the gradient passes.
static Expr atLeastZero(const Expr &x) {
  return formula::clamp(x, x.like(0), {});
}

//===----------------------------------------------------------------------===//
// Of differences
//===----------------------------------------------------------------------===//

static CallResults l1Loss(Call &call) {
  SmallVector<Expr> x = numbers(call, 2);
  return x.empty() ? CallResults(failure()) : give(call, abs(x[0] - x[1]));
}

/// The square where it is chosen: the gradient of one that is not, of an
/// infinite difference, would be 0 times infinity.
static Expr squareUnless(const Expr &isFar, const Expr &difference) {
  Expr near = select(isFar, difference.like(0.0), difference);
  return near * near;
}

static CallResults smoothL1Loss(Call &call) {
  double beta = call.number("beta", 1);
  if (!(beta >= 0))
    return call.fail("expected 'beta' to be at least 0");
  SmallVector<Expr> x = numbers(call, 2);
  if (x.empty())
    return failure();
  Expr difference = x[0] - x[1], size = abs(difference);
  if (beta == 0)
    return give(call, size);
  Expr isFar = compare(ComparePredicate::ge, size, size.like(beta));
  return give(call, select(isFar, size - 0.5 * beta,
                           squareUnless(isFar, difference) * (0.5 / beta)));
}

static CallResults huberLoss(Call &call) {
  double delta = call.number("delta", 1);
  if (!(delta > 0))
    return call.fail("expected 'delta' to be above 0");
  SmallVector<Expr> x = numbers(call, 2);
  if (x.empty())
    return failure();
  Expr difference = x[0] - x[1], size = abs(difference);
  Expr isFar = isGreater(size, delta);
  return give(call, select(isFar, (size - 0.5 * delta) * delta,
                           squareUnless(isFar, difference) * 0.5));
}

//===----------------------------------------------------------------------===//
// Of distributions
//===----------------------------------------------------------------------===//

static CallResults klDiv(Call &call) {
  bool isLog = call.flag("log_target", false);
  bool isBatch = false;
  StringRef how =
      call.text("reduction", "mean", {"mean", "sum", "none", "batchmean"});
  isBatch = how == "batchmean";
  SmallVector<Expr> x;
  for (size_t i = 0; i < 2; ++i)
    if (failed(call.expectFloat(i)))
      return failure();
  Type type = composite::computeType({call.value(0), call.value(1)});
  x = {wide(call, 0, type), wide(call, 1, type)};
  if (failed(call.broadcast(x)) || call.failed())
    return failure();
  if (isBatch && x[0].rank() == 0)
    return call.fail("expected a batch, which 'batchmean' divides by");
  const Expr &target = x[1];
  Expr loss;
  if (isLog) {
    loss = exp(target) * (target - x[0]);
  } else {
    // 0 log 0 is 0; the logarithm of a target below 0 is no number.
    Expr isZero = equals(target, target.like(0));
    Expr inside = select(isZero, target.like(1), target);
    loss = select(isZero, target.like(0), target * log(inside)) - target * x[0];
  }
  Type element = call[0].type().getElementType();
  if (how == "none")
    return SmallVector<Value>{loss.cast(element)};
  double count = how == "mean" ? double(loss.type().getNumElements())
                 : isBatch     ? double(loss.dim(0))
                               : 1;
  Expr sum = loss.reduceSum(dimsUpTo(loss.rank()));
  return SmallVector<Value>{(sum / count).cast(element)};
}

static CallResults poissonNllLoss(Call &call) {
  bool isLog = call.flag("log_input", true), isFull = call.flag("full", false);
  double epsilon = call.number("eps", 1e-8);
  SmallVector<Expr> x = numbers(call, 2);
  if (x.empty())
    return failure();
  const Expr &target = x[1];
  Expr loss =
      isLog ? exp(x[0]) - target * x[0] : x[0] - target * log(x[0] + epsilon);
  if (isFull) {
    // Stirling's formula for log(target!), which counts above 1.
    Expr isLarge = isGreater(target, 1);
    Expr t = select(isLarge, target, target.like(1));
    Expr stirling = t * log(t) - t + 0.5 * log(2 * M_PI * t);
    loss = loss + select(isLarge, stirling, stirling.like(0));
  }
  return give(call, loss);
}

static CallResults gaussianNllLoss(Call &call) {
  bool isFull = call.flag("full", false);
  double epsilon = call.number("eps", 1e-6);
  if (!(epsilon > 0))
    return call.fail("expected 'eps' to be above 0");
  SmallVector<Expr> x = numbers(call, 3);
  if (x.empty())
    return failure();
  // The bound is hidden from the gradient.
  Expr bounded = formula::clamp(x[2], x[2].like(epsilon), {});
  Expr variance = x[2].wrap(
      PassGradOp::create(call.builder, call.loc, x[2].value, bounded.value));
  Expr difference = x[0] - x[1];
  Expr loss = 0.5 * (log(variance) + difference * difference / variance);
  if (isFull)
    loss = loss + 0.5 * std::log(2 * M_PI);
  return give(call, loss);
}

//===----------------------------------------------------------------------===//
// Of labels 1 and -1
//===----------------------------------------------------------------------===//

static CallResults marginRankingLoss(Call &call) {
  double margin = call.number("margin", 0);
  SmallVector<Expr> x = numbers(call, 3);
  if (x.empty())
    return failure();
  return give(call, atLeastZero(-x[2] * (x[0] - x[1]) + margin));
}

static CallResults hingeEmbeddingLoss(Call &call) {
  double margin = call.number("margin", 1);
  SmallVector<Expr> x = numbers(call, 2);
  if (x.empty())
    return failure();
  const Expr &label = x[1];
  Expr zero = x[0].like(0);
  Expr far =
      select(equals(label, label.like(1)), zero, atLeastZero(margin - x[0]));
  Expr near = select(equals(label, label.like(-1)), zero, x[0]);
  return give(call, far + near);
}

/// The sum of products along `dim`.
static Expr dot(const Expr &a, const Expr &b, int64_t dim) {
  return (a * b).reduceSum({dim});
}

static CallResults cosineEmbeddingLoss(Call &call) {
  double margin = call.number("margin", 0);
  (void)reduction(call);
  for (size_t i = 0; i < 3; ++i)
    if (failed(call.expectFloat(i)))
      return failure();
  if (failed(call.expectSameShape(0, 1)) || failed(call.expectRank(0, 1, 2)))
    return failure();
  int64_t dim = call[0].rank() - 1;
  if (call.failed() ||
      failed(call.expectShape(2, call[0].shape().take_front(dim))))
    return failure();
  Type type =
      composite::computeType({call.value(0), call.value(1), call.value(2)});
  Expr a = wide(call, 0, type), b = wide(call, 1, type);
  Expr label = wide(call, 2, type);
  Expr cosine = dot(a, b, dim) /
                sqrt((dot(a, a, dim) + 1e-12) * (dot(b, b, dim) + 1e-12));
  Expr zero = cosine.like(0);
  return give(call, select(equals(label, label.like(1)), 1.0 - cosine, zero) +
                        select(equals(label, label.like(-1)),
                               atLeastZero(cosine - margin), zero));
}

static CallResults cosineSimilarity(Call &call) {
  double epsilon = call.number("eps", 1e-8);
  for (size_t i = 0; i < 2; ++i)
    if (failed(call.expectFloat(i)))
      return failure();
  Type type = composite::computeType({call.value(0), call.value(1)});
  SmallVector<Expr> x = {wide(call, 0, type), wide(call, 1, type)};
  if (failed(call.broadcast(x)) || x[0].rank() < 1)
    return call.fail("expected vectors");
  int64_t dim = call.dim("dim", x[0].rank() > 1 ? 1 : 0, x[0].rank());
  if (call.failed())
    return failure();
  Expr unit[2];
  for (int i = 0; i < 2; ++i) {
    Expr norm = normOver(x[i], 2, {dim});
    unit[i] = x[i] / formula::clamp(norm, norm.like(epsilon), {})
                         .expandReduced(x[i].shape(), {dim});
  }
  return SmallVector<Value>{
      dot(unit[0], unit[1], dim).cast(call[0].type().getElementType())};
}

static CallResults tripletMarginLoss(Call &call) {
  double margin = call.number("margin", 1), p = call.number("p", 2);
  double epsilon = call.number("eps", 1e-6);
  bool swaps = call.flag("swap", false);
  if (!(p >= 1) || std::isinf(p))
    return call.fail("expected 'p' to be finite and at least 1");
  SmallVector<Expr> x = numbers(call, 3);
  if (x.empty())
    return failure();
  if (x[0].rank() < 1)
    return call.fail("expected vectors");
  int64_t dim = x[0].rank() - 1;
  auto distance = [&](const Expr &a, const Expr &b) {
    return normOver(a - b + epsilon, p, {dim});
  };
  Expr near = distance(x[0], x[1]), far = distance(x[0], x[2]);
  if (swaps)
    far = minimum(far, distance(x[1], x[2]));
  return give(call, atLeastZero(near - far + margin));
}

void tandem::addDistanceLossFunctions(FunctionTable &table) {
  table.add("l1_loss(x, target; reduction=mean)", "|x - target|", l1Loss);
  table.add("smooth_l1_loss(x, target; reduction=mean, beta=1.0)",
            "d^2 / (2 beta) where d = |x - target| < beta, else d - beta / 2",
            smoothL1Loss);
  table.add("huber_loss(x, target; reduction=mean, delta=1.0)",
            "d^2 / 2 where d = |x - target| <= delta, else delta (d - delta / "
            "2)",
            huberLoss);
  table.add("kl_div(x, target; reduction=mean, log_target=false)",
            "target (log(target) - x), for log-probabilities x; reduction "
            "'batchmean' divides by the first size",
            klDiv);
  table.add("poisson_nll_loss(x, target; reduction=mean, log_input=true, "
            "full=false, eps=1e-8)",
            "exp(x) - target x, or x - target log(x + eps)", poissonNllLoss);
  table.add("gaussian_nll_loss(x, target, var; reduction=mean, full=false, "
            "eps=1e-6)",
            "(log(var) + (x - target)^2 / var) / 2, var at least eps",
            gaussianNllLoss);
  table.add("margin_ranking_loss(a, b, target; reduction=mean, margin=0.0)",
            "max(0, margin - target (a - b))", marginRankingLoss);
  table.add("hinge_embedding_loss(x, target; reduction=mean, margin=1.0)",
            "x where target is 1, max(0, margin - x) where it is -1",
            hingeEmbeddingLoss);
  table.add("cosine_embedding_loss(a, b, target; reduction=mean, margin=0.0)",
            "1 - cosine where target is 1, max(0, cosine - margin) where it is "
            "-1",
            cosineEmbeddingLoss);
  table.add("cosine_similarity(a, b; dim=1, eps=1e-8)",
            "the product of a / max(|a|, eps) and b / max(|b|, eps)",
            cosineSimilarity);
  table.add("triplet_margin_loss(anchor, positive, negative; reduction=mean, "
            "margin=1.0, p=2.0, eps=1e-6, swap=false)",
            "max(0, distance to positive - distance to negative + margin)",
            tripletMarginLoss);
}
