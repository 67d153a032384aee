//===- Random.cpp - random numbers and dropout ----------------------------===//
//
// Each takes the state of random numbers and a `draw`, as the ops do; different
// draws are independent.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Formula.h"
#include "compiler/functions/Function.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::formula;

/// The op's numbers, of `shape`, with the attribute `draw`.
static Expr numbers(Call &call, StringRef op, size_t state, Type element,
                    ArrayRef<int64_t> shape) {
  return call.op(op, call.value(state),
                 {call.integerAttr("draw", call.integer("draw", 0))},
                 RankedTensorType::get(shape, element));
}

/// What is in [0, 1) in f32 at least, of operand 0's shape.
static Expr uniformLike(Call &call, size_t state) {
  return numbers(call, "random_uniform", state,
                 call[0].type().getElementType().isF64()
                     ? Type(call.builder.getF64Type())
                     : call.builder.getF32Type(),
                 call[0].shape());
}

static CallResults bernoulli(Call &call) {
  if (failed(call.expectFloat(0)))
    return failure();
  Expr u = uniformLike(call, 1);
  if (!u)
    return failure();
  Expr p = call[0].cast(u.type().getElementType());
  return SmallVector<Value>{compare(ComparePredicate::lt, u, p)
                                .cast(call[0].type().getElementType())};
}

/// The largest number of a type that is less than `high`.
static double lastBelow(double high, FloatType type) {
  APFloat last(high);
  bool losesInfo;
  last.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
               &losesInfo);
  auto wide = [&] {
    APFloat number = last;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                   &losesInfo);
    return number.convertToDouble();
  };
  if (wide() >= high)
    last.next(/*nextDown=*/true);
  return wide();
}

static CallResults uniformLike(Call &call) {
  if (failed(call.expectFloat(0)))
    return failure();
  double low = call.number("low", 0), high = call.number("high", 1);
  Expr u = uniformLike(call, 1);
  if (!u || call.failed())
    return failure();
  auto element = cast<FloatType>(call[0].type().getElementType());
  Expr x = (u * (high - low) + low).cast(element);
  // What is rounded may become `high`.
  double last = lastBelow(high, element);
  if (last >= low)
    x = call.op("minimum", {x.value, x.like(last).value});
  if (!x)
    return failure();
  return SmallVector<Value>{x};
}

static CallResults normalLike(Call &call) {
  if (failed(call.expectFloat(0)))
    return failure();
  double mean = call.number("mean", 0), scale = call.number("std", 1);
  Expr x = numbers(call, "random_normal", 1,
                   composite::computeType(call.value(0)), call[0].shape());
  if (!x || call.failed())
    return failure();
  return SmallVector<Value>{
      (x * scale + mean).cast(call[0].type().getElementType())};
}

// The Gumbel-max trick draws without summing: argmax(x - log(-log(u))) is
// distributed as softmax(x).
static CallResults multinomial(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 1, 2)))
    return failure();
  int64_t samples = call.integer("num_samples", 1);
  if (samples < 1 || samples >= int64_t(1) << 31)
    return call.fail("expected 'num_samples' to be at least 1");
  bool isLog = call.flag("log", false);
  Expr x = call[0];
  SmallVector<int64_t> shape(x.shape());
  shape.insert(shape.end() - 1, samples);
  Type type = composite::computeType(x.value);
  Expr u = numbers(call, "random_uniform", 1, type, shape);
  if (!u || call.failed())
    return failure();
  Expr scores = x.cast(type);
  if (!isLog)
    scores = log(scores);
  SmallVector<int64_t> dims = dimsUpTo(x.rank());
  dims.back() = x.rank();

  // Away from 0, of which the noise would be infinite.
  Expr noise = -log(-log1p(-maximum(u, u.like(1e-8))));
  Expr sum = scores.broadcastTo(shape, dims) + noise;
  return SmallVector<Value>{
      call.op("argmax", sum.value, {call.integerAttr("dim", x.rank())})};
}

static CallResults nativeDropout(Call &call) {
  if (failed(call.expectFloat(0)))
    return failure();
  Expr x = call[0];
  double p = call.number("p", 0.5);
  bool training = call.flag("training", true);
  if (!(p >= 0 && p <= 1))
    return call.fail("expected 'p' to be in [0, 1]");
  Type i1 = call.builder.getI1Type();
  if (!training || p == 0 || call.failed())
    return SmallVector<Value>{x.value, call.full(i1, x.shape(), 1)};
  // What the op makes of ones says both which elements are kept and what they
  // are scaled with; in a program that evaluates it leaves them.
  Expr w = x.cast(composite::computeType(x.value));
  Expr factor = call.op("dropout", {w.like(1), call.value(1)},
                        {call.integerAttr("draw", call.integer("draw", 0)),
                         call.numberAttr("p", p), call.unitAttr("training")});
  if (!factor)
    return failure();
  Expr isKept = compare(ComparePredicate::ne, factor, factor.like(0));
  Expr y = select(isKept, w * factor, w.like(0));
  return SmallVector<Value>{y.cast(x.type().getElementType()), isKept};
}

void tandem::addRandomFunctions(FunctionTable &table) {
  table.family("Random");
  table.add("native_dropout(x, state; p=0.5, training=true, draw=0)",
            "the op dropout, and true where an element is kept: everywhere in "
            "the program that evaluates",
            nativeDropout);
  table.add("bernoulli_like(p, state; draw=0)",
            "1 with the probability that each element says, else 0", bernoulli);
  table.add("uniform_like(x, state; low=0.0, high=1.0, draw=0)",
            "numbers uniform in [low, high) in the shape of x", uniformLike);
  table.add("normal_like(x, state; mean=0.0, std=1.0, draw=0)",
            "normally distributed numbers in the shape of x", normalLike);
  table.add("multinomial(x, state; num_samples=1, log=false, draw=0)",
            "class indices (i64) [..., num_samples], drawn with replacement "
            "with the probabilities x [..., C] (with `log`: their logarithms), "
            "which need no sum of 1",
            multinomial);
}
