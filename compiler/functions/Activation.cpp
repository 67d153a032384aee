//===- Activation.cpp - activation functions ------------------------------===//
//
// Computed in f32 at least, and rounded once to the type of the operand. At
// kinks the gradient is PyTorch's, which chooses differently from function to
// function: the comparisons here are strict or not for that reason.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Build.h"
#include "compiler/functions/Formula.h"
#include "ir/Ops.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::formula;
using functions::widened;

//===----------------------------------------------------------------------===//
// Of two pieces
//===----------------------------------------------------------------------===//

static CallResults leakyRelu(Call &call) {
  double slope = call.number("negative_slope", 0.01);
  return widened(call, [&](const Expr &x) {
    return select(isGreater(x, 0), x, x * slope);
  });
}

/// scale * (x, or alpha * (exp(x * inside) - 1)).
static CallResults elu(Call &call, double alpha, double scale, double inside) {
  return widened(call, [&](const Expr &x) {
    Expr positive = isGreater(x, 0);
    Expr bent = expm1(select(positive, x.like(0), x) * inside);
    return select(positive, x * scale, bent * (alpha * scale));
  });
}

static CallResults elu(Call &call) {
  double alpha = call.number("alpha", 1), scale = call.number("scale", 1);
  return elu(call, alpha, scale, call.number("input_scale", 1));
}

static CallResults celu(Call &call) {
  double alpha = call.number("alpha", 1);
  if (alpha == 0)
    return call.fail("expected 'alpha' not to be 0");
  return elu(call, alpha, 1, 1 / alpha);
}

// Klambauer, Unterthiner, Mayr and Hochreiter, "Self-Normalizing Neural
// Networks", 2017.
static CallResults selu(Call &call) {
  double alpha = call.number("alpha", 1.6732632423543772848170429916717);
  double scale = call.number("gamma", 1.0507009873554804934193349852946);
  return elu(call, alpha, scale, 1);
}

static CallResults prelu(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectFloat(1)) ||
      failed(call.expectSameElements(0, 1)))
    return failure();
  Expr x = call[0], weight = call[1];
  if (weight.rank() <= 1 && weight.shape() != x.shape()) {
    // One slope, or one for each channel, which is dimension 1.
    int64_t count = weight.type().getNumElements();
    if (count != 1 && (x.rank() < 2 || x.dim(1) != count))
      return call.fail("expected a slope, or one for each of the channels of "
                       "the input (dimension 1), but got " +
                       Twine(count));
    SmallVector<int64_t> shape(x.rank(), 1);
    if (count != 1)
      shape[1] = count;
    weight = weight.reshape(shape);
  }
  auto stretched = call.broadcastShape(x.shape(), weight.shape());
  if (!stretched)
    return failure();
  if (ArrayRef<int64_t>(*stretched) != x.shape())
    return call.fail("expected slopes that stretch to the input's shape");
  Type type = composite::computeType(x.value);
  Expr slope = call.stretch(weight, x.shape());
  if (!slope)
    return failure();
  Expr wide = x.cast(type);
  Expr y = select(isGreater(wide, 0), wide, wide * slope.cast(type));
  return SmallVector<Value>{y.cast(x.type().getElementType())};
}

static CallResults threshold(Call &call) {
  double bound = call.number("threshold", 1), value = call.number("value", 0);
  return widened(call, [&](const Expr &x) {
    return select(compare(ComparePredicate::le, x, x.like(bound)),
                  x.like(value), x);
  });
}

static CallResults shrink(Call &call, double bound, double bias) {
  return widened(call, [&](const Expr &x) {
    // What is no number stays none.
    Expr inside = select(compare(ComparePredicate::eq, x, x), x.like(0), x);
    return select(isGreater(x, bound), x - bias,
                  select(isLess(x, -bound), x + bias, inside));
  });
}

static CallResults shrink(Call &call) {
  double bound = call.number("lambd", 0.5);
  return shrink(call, bound, call.number("bias", 0));
}

static CallResults softshrink(Call &call) {
  double bound = call.number("lambd", 0.5);
  if (!(bound >= 0))
    return call.fail("expected 'lambd' to be at least 0");
  return shrink(call, bound, bound);
}

static CallResults hardshrink(Call &call) {
  return shrink(call, call.number("lambd", 0.5), 0);
}

//===----------------------------------------------------------------------===//
// Bounded
//===----------------------------------------------------------------------===//

static CallResults clamp(Call &call) {
  Expr x = call[0];
  if (isa<FloatType>(x.type().getElementType()) ||
      (isa<IntegerType>(x.type().getElementType()) &&
       !x.type().getElementType().isInteger(1))) {
    Expr bounds[2];
    for (size_t i = 0; i < 2; ++i) {
      StringRef name = i ? "max" : "min";
      if (call.has(i + 1) && call.hasAttribute(name))
        return call.fail("expected '" + name + "' once, but got it twice");
      if (call.has(i + 1)) {
        if (failed(call.expectSameElements(0, i + 1)))
          return failure();
        bounds[i] = call[i + 1];
      } else if (call.hasAttribute(name)) {
        double bound = call.number(name, 0);
        if (isa<IntegerType>(x.type().getElementType()) &&
            !(bound == std::floor(bound) && std::abs(bound) < 0x1p53))
          return call.fail("expected '" + name +
                           "' to be an integer, as the operand's elements are");
        bounds[i] = x.like(bound);
      }
    }
    SmallVector<Expr> all = {x};
    for (const Expr &bound : bounds)
      if (bound)
        all.push_back(bound);
    if (call.failed() || failed(call.broadcast(all)))
      return failure();
    Expr low = bounds[0] ? all[1] : Expr();
    Expr high = bounds[1] ? all.back() : Expr();
    return SmallVector<Value>{formula::clamp(all[0], low, high)};
  }
  return call.fail("expected numbers to bound");
}

/// Within (low, high), the gradient does not pass at the bounds.
static Expr bounded(const Expr &x, double low, double high) {
  return select(
      compare(ComparePredicate::le, x, x.like(low)), x.like(low),
      select(compare(ComparePredicate::ge, x, x.like(high)), x.like(high), x));
}

static CallResults hardtanh(Call &call) {
  double low = call.number("min_val", -1), high = call.number("max_val", 1);
  if (!(low <= high))
    return call.fail("expected 'min_val' to be at most 'max_val'");
  return widened(call, [&](const Expr &x) { return bounded(x, low, high); });
}

static CallResults relu6(Call &call) {
  return widened(call, [](const Expr &x) { return bounded(x, 0, 6); });
}

static CallResults hardsigmoid(Call &call) {
  double alpha = call.number("alpha", 1.0 / 6), beta = call.number("beta", 0.5);
  bool isDefault = !call.hasAttribute("alpha");
  return widened(call, [&](const Expr &x) {
    return bounded((isDefault ? x / 6.0 : x * alpha) + beta, 0, 1);
  });
}

static CallResults hardswish(Call &call) {
  return widened(call, [](const Expr &x) {
    // What is not taken has no infinite factor: its cotangent is 0.
    Expr above = isGreater(x, 3);
    Expr inner = select(above, x.like(0), x);
    inner = select(isLess(x, -3), x.like(0), inner);
    return select(above, x, inner * (inner + 3) / 6);
  });
}

//===----------------------------------------------------------------------===//
// Smooth
//===----------------------------------------------------------------------===//

static CallResults softplus(Call &call) {
  double beta = call.number("beta", 1), bound = call.number("threshold", 20);
  if (beta == 0)
    return call.fail("expected 'beta' not to be 0");
  return widened(call, [&](const Expr &x) {
    Expr scaled = beta == 1 ? x : x * beta;
    Expr y = formula::softplus(scaled);
    if (beta != 1)
      y = y / beta;
    // Beyond the threshold PyTorch takes the line for the curve.
    return std::isinf(bound) ? y : select(isGreater(scaled, bound), x, y);
  });
}

static CallResults logSigmoid(Call &call) {
  return widened(call, [](const Expr &x) { return -formula::softplus(-x); });
}

static CallResults softsign(Call &call) {
  return widened(call, [](const Expr &x) { return x / (1.0 + abs(x)); });
}

static CallResults mish(Call &call) {
  return widened(call,
                 [](const Expr &x) { return x * tanh(formula::softplus(x)); });
}

static CallResults tanhshrink(Call &call) {
  return widened(call, [](const Expr &x) { return x - tanh(x); });
}

static CallResults glu(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 1, 64)))
    return failure();
  Expr x = call[0];
  int64_t dim = call.dim("dim", -1, x.rank());
  if (call.failed())
    return failure();
  if (x.dim(dim) % 2)
    return call.fail("expected dimension " + Twine(dim) +
                     " to have an even size, but got " + Twine(x.dim(dim)));
  int64_t half = x.dim(dim) / 2;
  auto part = [&](int64_t from) {
    SmallVector<int64_t> starts(x.rank(), 0), limits(x.shape()),
        steps(x.rank(), 1);
    starts[dim] = from;
    limits[dim] = from + half;
    Expr slice = x.wrap(SliceOp::create(call.builder, call.loc, x.value, starts,
                                        limits, steps));
    return slice.cast(composite::computeType(x.value));
  };
  Expr y = part(0) * sigmoid(part(half));
  return SmallVector<Value>{y.cast(x.type().getElementType())};
}

//===----------------------------------------------------------------------===//
// Along a dimension
//===----------------------------------------------------------------------===//

static CallResults softmin(Call &call) {
  if (failed(call.expectRank(0, 1, 64)))
    return failure();
  int64_t dim = call.dim("dim", -1, call[0].rank());
  return widened(call,
                 [&](const Expr &x) { return composite::softmax(-x, dim); });
}

static CallResults hardmax(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 1, 64)))
    return failure();
  Expr x = call[0];
  int64_t dim = call.dim("dim", -1, x.rank());
  if (call.failed())
    return failure();
  Expr index = call.op("argmax", x.value, {call.integerAttr("dim", dim)});
  if (!index)
    return failure();
  Expr place = composite::iota(x, call.builder.getI64Type(), x.shape(), dim);
  Expr hit = equals(place, index.expandReduced(x.shape(), dim));
  return SmallVector<Value>{hit.cast(x.type().getElementType())};
}

void tandem::addActivationFunctions(FunctionTable &table) {
  table.family("Activation");
  table.add("leaky_relu(x; negative_slope=0.01)",
            "x where x > 0, else negative_slope x", leakyRelu);
  table.add("elu(x; alpha=1.0, scale=1.0, input_scale=1.0)",
            "scale x where x > 0, else scale alpha (exp(input_scale x) - 1)",
            elu);
  table.add("celu(x; alpha=1.0)",
            "x where x > 0, else alpha (exp(x / alpha) - 1)", celu);
  table.add("selu(x; alpha=1.67326, gamma=1.0507)",
            "gamma x where x > 0, else gamma alpha (exp(x) - 1)", selu);
  table.add("prelu(x, weight)",
            "x where x > 0, else weight x; weight has one element, one a "
            "channel (dimension 1), or stretches to x",
            prelu);
  table.add("threshold(x; threshold=1.0, value=0.0)",
            "x where x > threshold, else value", threshold);
  table.add("shrink(x; lambd=0.5, bias=0.0)",
            "x - bias above lambd, x + bias below -lambd, else 0", shrink);
  table.add("softshrink(x; lambd=0.5)",
            "x - lambd above lambd, x + lambd below -lambd, else 0",
            softshrink);
  table.add("hardshrink(x; lambd=0.5)", "x where |x| > lambd, else 0",
            hardshrink);
  table.add("clamp(x, low?, high?; min, max)",
            "x, but at least the lower and at most the upper bound, each an "
            "operand or an attribute or absent",
            clamp);
  table.add("hardtanh(x; min_val=-1.0, max_val=1.0)",
            "clamp, whose gradient is 0 at the bounds", hardtanh);
  table.add("relu6(x)", "hardtanh from 0 to 6", relu6);
  table.add("hardsigmoid(x; alpha=1/6, beta=0.5)",
            "alpha x + beta, at least 0 and at most 1", hardsigmoid);
  table.add("hardswish(x)", "x relu6(x + 3) / 6", hardswish);
  table.add("softplus(x; beta=1.0, threshold=20.0)",
            "log(1 + exp(beta x)) / beta, and x where beta x > threshold",
            softplus);
  table.add("logsigmoid(x)", "log(sigmoid(x))", logSigmoid);
  table.add("softsign(x)", "x / (1 + |x|)", softsign);
  table.add("mish(x)", "x tanh(log(1 + exp(x)))", mish);
  table.add("tanhshrink(x)", "x - tanh(x)", tanhshrink);
  table.add("glu(x; dim=-1)",
            "a sigmoid(b) for the halves a and b of x along a dimension", glu);
  table.add("softmin(x; dim=-1)", "softmax of -x", softmin);
  table.add("hardmax(x; dim=-1)",
            "1 at the first largest along a dimension, else 0; no gradient",
            hardmax);
}
