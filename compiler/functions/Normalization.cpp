//===- Normalization.cpp - normalizations ---------------------------------===//
//
// Computed in f32 at least, and rounded once. Variances are means of squared
// deviations, as those of the ops layer_norm and batch_norm.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Build.h"
#include "compiler/functions/Formula.h"
#include "compiler/functions/Function.h"
#include "compiler/functions/IsTraining.h"
#include "compiler/functions/Windows.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::formula;

/// An attribute that has to be at least 0.
static double epsilonOf(Call &call, StringRef name, double otherwise) {
  double epsilon = call.number(name, otherwise);
  if (!(epsilon >= 0))
    (void)call.fail("expected '" + name + "' to be at least 0");
  return epsilon;
}

namespace {

/// What normalizing over some dimensions makes. The statistics have the size 1
/// along those.
struct Normalized {
  Expr y, mean, inverse;
};

} // namespace

static Normalized normalizeOver(const Expr &x, ArrayRef<int64_t> dims,
                                double epsilon) {
  SmallVector<int64_t> kept(x.shape());
  for (int64_t d : dims)
    kept[d] = 1;
  Expr mean = formula::mean(x, dims);
  Expr deviation = x - mean.expandReduced(x.shape(), dims);
  Expr inverse = rsqrt(formula::mean(deviation * deviation, dims) + epsilon);
  return {deviation * inverse.expandReduced(x.shape(), dims),
          mean.reshape(kept), inverse.reshape(kept)};
}

/// y times operand 1 plus operand 2, each, where there is one, over `dims`.
static Expr scaled(Call &call, Expr y, Type type, ArrayRef<int64_t> dims) {
  if (Expr weight = wide(call, 1, type))
    y = y * weight.broadcastTo(y.shape(), dims);
  if (Expr bias = wide(call, 2, type))
    y = y + bias.broadcastTo(y.shape(), dims);
  return y;
}

/// Checks that x, and weight and bias where they are, have floats, these of
/// `shape`.
static LogicalResult checkScales(Call &call, ArrayRef<int64_t> shape) {
  for (size_t i = 1; i < 3; ++i)
    if (call.has(i) &&
        (failed(call.expectFloat(i)) || failed(call.expectShape(i, shape))))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Over trailing dimensions
//===----------------------------------------------------------------------===//

static CallResults layerNorm(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 1, 64)))
    return failure();
  Expr x = call[0];
  int64_t axis = call.dim("axis", -1, x.rank());
  double epsilon = epsilonOf(call, "eps", 1e-5);
  if (call.failed() || failed(checkScales(call, x.shape().drop_front(axis))))
    return failure();
  Type type = composite::computeType(x.value);
  auto dims = llvm::to_vector(llvm::seq<int64_t>(axis, x.rank()));
  Normalized made = normalizeOver(x.cast(type), dims, epsilon);
  Expr y = scaled(call, made.y, type, dims);
  return SmallVector<Value>{y.cast(x.type().getElementType()), made.mean,
                            made.inverse};
}

static CallResults rmsNorm(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 1, 64)))
    return failure();
  Expr x = call[0];
  int64_t axis = call.dim("axis", -1, x.rank());
  Type type = composite::computeType(x.value);
  double epsilon =
      epsilonOf(call, "eps",
                type.isF64() ? std::numeric_limits<double>::epsilon()
                             : std::numeric_limits<float>::epsilon());
  if (call.failed() || failed(checkScales(call, x.shape().drop_front(axis))))
    return failure();
  auto dims = llvm::to_vector(llvm::seq<int64_t>(axis, x.rank()));
  Expr w = x.cast(type);
  Expr inverse = rsqrt(formula::mean(w * w, dims) + epsilon);
  Expr y = scaled(call, w * inverse.expandReduced(x.shape(), dims), type, dims);
  return SmallVector<Value>{y.cast(x.type().getElementType())};
}

//===----------------------------------------------------------------------===//
// Of images [N, C, ...]
//===----------------------------------------------------------------------===//

static CallResults inGroups(Call &call, int64_t groups, double epsilon) {
  Expr x = call[0];
  int64_t n = x.dim(0), c = x.dim(1);
  if (groups < 1 || c % groups)
    return call.fail("expected 'num_groups' to divide the " + Twine(c) +
                     " channels, but got " + Twine(groups));
  if (call.failed() || failed(checkScales(call, {c})))
    return failure();
  Type type = composite::computeType(x.value);
  int64_t size = c / groups * functions::productOf(x.shape().drop_front(2));
  Expr rows = x.cast(type).reshape({n, groups, size});
  Expr y = normalizeOver(rows, {2}, epsilon).y.reshape(x.shape());
  return SmallVector<Value>{
      scaled(call, y, type, {1}).cast(x.type().getElementType())};
}

static CallResults groupNorm(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 2, 64)))
    return failure();
  double epsilon = epsilonOf(call, "eps", 1e-5);
  return inGroups(call, call.integer("num_groups", 1), epsilon);
}

static CallResults instanceNorm(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 2, 64)))
    return failure();
  return inGroups(call, call[0].dim(1), epsilonOf(call, "eps", 1e-5));
}

/// Of what has running statistics, which are read where the program evaluates,
/// and change where it trains: `correction` times the batch's variance counts.
static CallResults batchNormWithStatistics(Call &call, Type type,
                                           double momentum, double epsilon,
                                           double correction) {
  auto orSplat = [&](size_t i, double number) {
    return call.has(i) ? wide(call, i, type)
                       : call.full(type, call[3].shape(), number);
  };
  SmallVector<Value> made = call.ops(
      "batch_norm",
      {call.value(0), orSplat(1, 1), orSplat(2, 0), wide(call, 3, type),
       wide(call, 4, type)},
      {call.numberAttr("epsilon", epsilon), call.unitAttr("training")});
  if (made.empty())
    return failure();
  Expr mean = call.at(made[1]), variance = call.at(made[2]);
  SmallVector<Value> results = {made[0], mean, rsqrt(variance + epsilon)};
  Expr trains =
      isTraining(call.builder, call.loc).broadcastTo(mean.shape(), {});
  for (auto [i, fresh] :
       {std::pair<size_t, Expr>{3, mean}, {4, variance * correction}}) {
    Expr old = call[i];
    Expr mixed = old.cast(type) * (1 - momentum) + fresh * momentum;
    results.push_back(
        select(trains, mixed.cast(old.type().getElementType()), old));
  }
  return results;
}

static CallResults batchNorm(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 2, 64)))
    return failure();
  Expr x = call[0];
  bool training = call.flag("training", true);
  bool unbiased = call.flag("unbiased", true);
  double momentum = call.number("momentum", 0.1);
  double epsilon = epsilonOf(call, "eps", 1e-5);
  int64_t channels = x.dim(1);
  double count = static_cast<double>(x.type().getNumElements() /
                                     std::max<int64_t>(channels, 1));
  if (call.failed() || failed(checkScales(call, {channels})))
    return failure();
  if (call.has(3) != call.has(4))
    return call.fail("expected a running mean and a running variance, or "
                     "neither");
  for (size_t i : {3, 4})
    if (call.has(i) && (failed(call.expectFloat(i)) ||
                        failed(call.expectShape(i, {channels}))))
      return failure();
  if (!training && !call.has(3))
    return call.fail("expected a running mean and variance, which inference "
                     "normalizes with");
  if (training && unbiased && call.has(3) && count < 2)
    return call.fail("expected more than one value for each channel, of which "
                     "a variance can be estimated");
  Type type = composite::computeType(x.value);
  if (training && call.has(3))
    return batchNormWithStatistics(call, type, momentum, epsilon,
                                   unbiased ? count / (count - 1) : 1);
  SmallVector<int64_t> dims = dimsUpTo(x.rank());
  dims.erase(dims.begin() + 1);
  Expr w = x.cast(type), mean, variance;
  if (training) {
    mean = formula::mean(w, dims);
    Expr deviation = w - mean.expandReduced(x.shape(), dims);
    variance = formula::mean(deviation * deviation, dims);
  } else {
    mean = wide(call, 3, type);
    variance = wide(call, 4, type);
  }
  Expr inverse = rsqrt(variance + epsilon);
  Expr y = (w - mean.expandReduced(x.shape(), dims)) *
           inverse.expandReduced(x.shape(), dims);
  y = scaled(call, y, type, {1}).cast(x.type().getElementType());
  SmallVector<Value> results = {y, mean, inverse};
  for (size_t i : {3, 4})
    if (call.has(i))
      results.push_back(call[i]);
  return results;
}

static CallResults localResponseNorm(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 3, 64)))
    return failure();
  Expr x = call[0];
  int64_t size = call.integer("size", 5);
  double alpha = call.number("alpha", 1e-4), beta = call.number("beta", 0.75);
  double k = call.number("k", 1);
  if (size < 1 || size >= int64_t(1) << 20)
    return call.fail("expected 'size' to be at least 1, and less than 2^20");
  int64_t before = call.integer("before", size / 2);
  if (before < 0 || before >= size)
    return call.fail("expected 'before' to be at least 0 and less than 'size'");
  if (call.failed())
    return failure();
  int64_t n = x.dim(0), c = x.dim(1);
  int64_t plane = functions::productOf(x.shape().drop_front(2));
  Expr w = x.cast(composite::computeType(x.value));
  Expr mean =
      call.call("avg_pool", (w * w).reshape({n, 1, c, plane}).value,
                {call.ints("kernel", {size, 1}), call.ints("strides", {1}),
                 call.ints("padding", {before, size - 1 - before, 0, 0})});
  if (!mean)
    return failure();
  Expr by = power(mean.reshape(x.shape()) * alpha + k, beta);
  return SmallVector<Value>{(w / by).cast(x.type().getElementType())};
}

//===----------------------------------------------------------------------===//
// Over any dimensions
//===----------------------------------------------------------------------===//

static CallResults normalize(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 1, 64)))
    return failure();
  Expr x = call[0];
  double p = call.number("p", 2);
  double epsilon = epsilonOf(call, "eps", 1e-12);
  int64_t dim = call.dim("dim", x.rank() > 1 ? 1 : 0, x.rank());
  if (!(p >= 1))
    return call.fail("expected 'p' to be at least 1");
  if (call.failed())
    return failure();
  Expr w = x.cast(composite::computeType(x.value));
  Expr norm = normOver(w, p, {dim});
  Expr by = formula::clamp(norm, norm.like(epsilon), {});
  return SmallVector<Value>{
      (w / by.expandReduced(x.shape(), {dim})).cast(x.type().getElementType())};
}

static CallResults meanVarianceNorm(Call &call) {
  if (failed(call.expectFloat(0)))
    return failure();
  Expr x = call[0];
  SmallVector<int64_t> dims = call.dims("dims", x.rank(), {0, 2, 3});
  double epsilon = epsilonOf(call, "eps", 1e-9);
  if (call.failed())
    return failure();
  Expr w = x.cast(composite::computeType(x.value));
  Expr deviation = w - formula::mean(w, dims).expandReduced(x.shape(), dims);
  Expr spread = root(formula::mean(deviation * deviation, dims), 2) + epsilon;
  return SmallVector<Value>{(deviation / spread.expandReduced(x.shape(), dims))
                                .cast(x.type().getElementType())};
}

void tandem::addNormalizationFunctions(FunctionTable &table) {
  table.family("Normalization");
  table.add("native_layer_norm(x, weight?, bias?; axis=-1, eps=1e-5)",
            "layer_norm over the dimensions from `axis` on; the mean; 1 / "
            "sqrt(variance + eps)",
            layerNorm);
  table.add("rms_norm(x, weight?; axis=-1, eps)",
            "x / sqrt(mean of x^2 + eps) weight over the dimensions from "
            "`axis` on; eps is that of the type",
            rmsNorm);
  table.add("group_norm(x, weight?, bias?; num_groups=1, eps=1e-5)",
            "normalizes x [N, C, ...] over each group of channels, then scales "
            "and shifts each channel",
            groupNorm);
  table.add("instance_norm(x, weight?, bias?; eps=1e-5)",
            "group_norm of groups of one channel", instanceNorm);
  table.add("batch_norm_functional(x, weight?, bias?, running_mean?, "
            "running_var?; training=true, momentum=0.1, eps=1e-5, "
            "unbiased=true)",
            "batch_norm; the mean and 1 / sqrt(variance + eps) that were used; "
            "where there are running statistics, their new values",
            batchNorm);
  table.add("local_response_norm(x; size=5, alpha=1e-4, beta=0.75, k=1.0, "
            "before)",
            "x / (k + alpha mean of x^2 over `size` channels)^beta, of which "
            "`before` (size / 2) come before x's",
            localResponseNorm);
  table.add("normalize(x; p=2.0, dim=1, eps=1e-12)",
            "x / max(norm of x along a dimension, eps)", normalize);
  table.add("mean_variance_norm(x; dims=[0, 2, 3], eps=1e-9)",
            "(x - mean) / (standard deviation + eps)", meanVarianceNorm);
}
