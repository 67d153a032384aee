//===- Loss.cpp - losses of classes ---------------------------------------===//
//
// Classes are along dimension 1 (0, of one row). A class index outside of them
// gives NaN, unless it is to be ignored.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Formula.h"
#include "compiler/functions/Function.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::formula;

static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

namespace {

/// Rows of classes and an index for each.
struct Picked {
  int64_t dim;    ///< of the classes
  Expr hit;       ///< of the scores' shape: true at each row's class
  Expr isInside;  ///< of the rows' shape: the index is one of a class
  Expr isCounted; ///< of the rows' shape: the index is not to be ignored
  Expr weight;    ///< of the rows' shape, its class's; null without weights
};

} // namespace

/// Without dimension `dim`.
static SmallVector<int64_t> rowsOf(const Expr &x, int64_t dim) {
  SmallVector<int64_t> shape(x.shape());
  shape.erase(shape.begin() + dim);
  return shape;
}

/// Checks operands 1 (indices) and 2 (weights) against scores x.
static std::optional<Picked> pick(Call &call, const Expr &x, Type type) {
  Picked picked;
  picked.dim = x.rank() > 1 ? 1 : 0;
  int64_t classes = x.dim(picked.dim),
          ignored = call.integer("ignore_index", -100);
  if (failed(call.expectInteger(1)) ||
      failed(call.expectShape(1, rowsOf(x, picked.dim))) ||
      (call.has(2) && (failed(call.expectFloat(2)) ||
                       failed(call.expectShape(2, {classes})))) ||
      call.failed())
    return std::nullopt;
  Type i64 = call.builder.getI64Type();
  Expr index = call[1].cast(i64);
  picked.hit = equals(composite::iota(x, i64, x.shape(), picked.dim),
                      index.expandReduced(x.shape(), picked.dim));
  picked.isInside =
      logicalAnd(compare(ComparePredicate::ge, index, index.like(0)),
                 compare(ComparePredicate::lt, index,
                         index.like(static_cast<double>(classes))));
  picked.isCounted = compare(ComparePredicate::ne, index,
                             index.like(static_cast<double>(ignored)));
  if (Expr weights = wide(call, 2, type)) {
    Expr all = weights.broadcastTo(x.shape(), {picked.dim});
    picked.weight =
        select(picked.hit, all, all.like(0)).reduceSum({picked.dim});
  }
  return picked;
}

/// What the mean over the rows is divided by.
static Expr countOf(const Picked &picked, Type type) {
  Expr one = picked.isCounted.cast(type);
  if (picked.weight)
    one = select(picked.isCounted, picked.weight, picked.weight.like(0));
  return one.reduceSum(dimsUpTo(one.rank()));
}

/// -weight * logp of each row's class, reduced.
static Expr nll(Call &call, const Expr &logp, const Picked &picked) {
  Expr loss = -select(picked.hit, logp, logp.like(0)).reduceSum({picked.dim});
  if (picked.weight)
    loss = loss * picked.weight;
  loss = select(picked.isInside, loss, loss.like(kNaN));
  loss = select(picked.isCounted, loss, loss.like(0));
  StringRef how = reduction(call);
  if (how == "none")
    return loss;
  Expr sum = loss.reduceSum(dimsUpTo(loss.rank()));
  return how == "sum" ? sum
                      : sum / countOf(picked, logp.type().getElementType());
}

static CallResults nllLoss(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 1, 64)))
    return failure();
  Type type = composite::computeType(call.value(0));
  Expr logp = wide(call, 0, type);
  auto picked = pick(call, logp, type);
  (void)reduction(call);
  if (!picked || call.failed())
    return failure();
  return SmallVector<Value>{
      nll(call, logp, *picked).cast(call[0].type().getElementType())};
}

static Expr logSoftmax(const Expr &x, int64_t dim) {
  Expr shifted = composite::shiftByMax(x, dim);
  return shifted -
         log(exp(shifted).reduceSum(dim)).expandReduced(x.shape(), dim);
}

/// Of probabilities for all classes.
static CallResults softCrossEntropy(Call &call, const Expr &logp, int64_t dim,
                                    double smoothing) {
  Type type = logp.type().getElementType();
  if (failed(call.expectSameShape(0, 1)) ||
      (call.has(2) && (failed(call.expectFloat(2)) ||
                       failed(call.expectShape(2, {logp.dim(dim)})))))
    return failure();
  Expr target = wide(call, 1, type);
  if (smoothing > 0)
    target = target * (1 - smoothing) +
             smoothing / static_cast<double>(logp.dim(dim));
  Expr each = logp * target;
  if (Expr weights = wide(call, 2, type))
    each = each * weights.broadcastTo(logp.shape(), {dim});
  Expr loss = -each.reduceSum({dim});
  return SmallVector<Value>{
      reduced(call, loss).cast(call[0].type().getElementType())};
}

static CallResults crossEntropy(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 1, 64)))
    return failure();
  Type type = composite::computeType(call.value(0));
  Expr x = wide(call, 0, type);
  double smoothing = call.number("label_smoothing", 0);
  if (!(smoothing >= 0 && smoothing <= 1))
    return call.fail("expected 'label_smoothing' to be in [0, 1]");
  StringRef how = reduction(call);
  int64_t dim = x.rank() > 1 ? 1 : 0;
  if (call.failed())
    return failure();
  if (isa<FloatType>(call[1].type().getElementType()))
    return softCrossEntropy(call, logSoftmax(x, dim), dim, smoothing);
  auto picked = pick(call, x, type);
  if (!picked)
    return failure();
  Expr logp = logSoftmax(x, dim);
  Expr loss = nll(call, logp, *picked);
  if (smoothing > 0) {
    // The classes' mean; weights count for every class here.
    Expr each = logp;
    if (Expr weights = wide(call, 2, type))
      each = each * weights.broadcastTo(logp.shape(), {dim});
    Expr smooth = -each.reduceSum({dim});
    smooth = select(picked->isCounted, smooth, smooth.like(0));
    if (how != "none")
      smooth = smooth.reduceSum(dimsUpTo(smooth.rank()));
    if (how == "mean")
      smooth = smooth / countOf(*picked, type);
    loss = loss * (1 - smoothing) +
           smooth * (smoothing / static_cast<double>(x.dim(dim)));
  }
  return SmallVector<Value>{loss.cast(call[0].type().getElementType())};
}

//===----------------------------------------------------------------------===//
// Of two classes
//===----------------------------------------------------------------------===//

/// Operand i in `type`, stretched to operand 0's shape; null if absent.
static Expr stretched(Call &call, size_t i, Type type) {
  if (!call.has(i) || failed(call.expectFloat(i)))
    return call.at({});
  return call.stretch(wide(call, i, type), call[0].shape());
}

/// log, but at least -100, where its gradient is 0.
static Expr boundedLog(const Expr &x) {
  Expr isSmall = isLess(x, 3.8e-44); // exp(-100)
  return select(isSmall, x.like(-100), log(select(isSmall, x.like(1), x)));
}

static CallResults binaryCrossEntropy(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectFloat(1)) ||
      failed(call.expectSameShape(0, 1)))
    return failure();
  Type type = composite::computeType({call.value(0), call.value(1)});
  Expr x = wide(call, 0, type), target = wide(call, 1, type);
  Expr weight = stretched(call, 2, type);
  (void)reduction(call);
  if (call.failed())
    return failure();
  Expr no = 1.0 - x;
  Expr loss = -(target * boundedLog(x) + (1.0 - target) * boundedLog(no));
  // Near 0 and 1 the gradient is that of PyTorch, whose denominator is at
  // least 1e-12: a line of that slope through the value.
  Expr isEdge = isLess(x * no, 1e-12);
  Expr slope = detach((x - target) * 1e12);
  Expr line =
      detach(loss) + (x - detach(x)) * select(isEdge, slope, slope.like(0));
  loss = select(isEdge, line, loss);
  // What is no probability has no loss.
  loss = select(logicalAnd(compare(ComparePredicate::ge, x, x.like(0)),
                           compare(ComparePredicate::le, x, x.like(1))),
                loss, loss.like(kNaN));
  if (weight)
    loss = loss * weight;
  return SmallVector<Value>{
      reduced(call, loss).cast(call[0].type().getElementType())};
}

static CallResults binaryCrossEntropyWithLogits(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectFloat(1)) ||
      failed(call.expectSameShape(0, 1)))
    return failure();
  Type type = composite::computeType({call.value(0), call.value(1)});
  Expr x = wide(call, 0, type), target = wide(call, 1, type);
  Expr weight = stretched(call, 2, type), positive = stretched(call, 3, type);
  (void)reduction(call);
  if (call.failed())
    return failure();
  Expr bent = formula::softplus(-x);
  if (positive)
    bent = bent * ((positive - 1) * target + 1);
  Expr loss = (1.0 - target) * x + bent;
  if (weight)
    loss = loss * weight;
  return SmallVector<Value>{
      reduced(call, loss).cast(call[0].type().getElementType())};
}

static CallResults softMargin(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectFloat(1)) ||
      failed(call.expectSameShape(0, 1)))
    return failure();
  Type type = composite::computeType({call.value(0), call.value(1)});
  Expr x = wide(call, 0, type), target = wide(call, 1, type);
  (void)reduction(call);
  if (call.failed())
    return failure();
  return SmallVector<Value>{reduced(call, formula::softplus(-(target * x)))
                                .cast(call[0].type().getElementType())};
}

//===----------------------------------------------------------------------===//
// Of regions
//===----------------------------------------------------------------------===//

/// 1 - the mean over the classes of (2 |p y| + smooth) / (|p| + |y| + smooth),
/// whose sums are over the whole batch (Milletari, Navab and Ahmadi, "V-Net",
/// 2016; MONAI's DiceLoss with batch=True).
static CallResults dice(Call &call) {
  if (failed(call.expectFloat(0)))
    return failure();
  Type type = composite::computeType(call.value(0));
  double smooth = call.number("smooth", 1e-5);
  if (!(smooth > 0))
    return call.fail("expected 'smooth' to be above 0");
  Expr x = wide(call, 0, type), p = x, y = x;
  SmallVector<int64_t> summed = dimsUpTo(x.rank());
  if (isa<FloatType>(call[1].type().getElementType())) {
    if (failed(call.expectSameShape(0, 1)))
      return failure();
    p = sigmoid(x);
    y = wide(call, 1, type);
  } else {
    if (failed(call.expectRank(0, 2, 64)))
      return failure();
    auto picked = pick(call, x, type);
    if (!picked)
      return failure();
    auto ofAll = [&](const Expr &row) {
      return row.expandReduced(x.shape(), picked->dim);
    };
    y = select(ofAll(picked->isInside), picked->hit.cast(type), x.like(kNaN));
    y = select(ofAll(picked->isCounted), y, x.like(0));
    p = select(ofAll(picked->isCounted), composite::softmax(x, picked->dim),
               x.like(0));
    summed.erase(summed.begin() + picked->dim);
  }
  Expr both = (p * y).reduceSum(summed) * 2 + smooth;
  Expr all = (p + y).reduceSum(summed) + smooth;
  Expr overlap = both / all;
  Expr loss = 1.0 - formula::mean(overlap, dimsUpTo(overlap.rank()));
  return SmallVector<Value>{loss.cast(call[0].type().getElementType())};
}

void tandem::addLossFunctions(FunctionTable &table) {
  table.family("Loss");
  table.add("cross_entropy_loss(x, target, weight?; reduction=mean, "
            "ignore_index=-100, label_smoothing=0.0)",
            "cross entropy of scores x [N, C, ...] and class indices [N, ...] "
            "or probabilities [N, C, ...]; weight is [C]",
            crossEntropy);
  table.add(
      "nll_loss(x, target, weight?; reduction=mean, ignore_index=-100)",
      "-weight x of the target class, for log-probabilities x [N, C, ...]",
      nllLoss);
  table.add("binary_cross_entropy(x, target, weight?; reduction=mean)",
            "-(target log(x) + (1 - target) log(1 - x)), logarithms at least "
            "-100; NaN where x is not from 0 to 1",
            binaryCrossEntropy);
  table.add("binary_cross_entropy_with_logits(x, target, weight?, pos_weight?; "
            "reduction=mean)",
            "the same of sigmoid(x), the first term times pos_weight",
            binaryCrossEntropyWithLogits);
  table.add("dice_loss(x, target; smooth=1e-05, ignore_index=-100)",
            "1 - the mean over the classes of (2 |p y| + smooth) / (|p| + |y| "
            "+ smooth), sums over the batch: p is softmax(x) [N, C, ...] of "
            "class indices [N, ...], or sigmoid(x) of masks of x's shape, "
            "which are one class",
            dice);
  table.add("soft_margin_loss(x, target; reduction=mean)",
            "log(1 + exp(-target x))", softMargin);
  addDistanceLossFunctions(table);
}
