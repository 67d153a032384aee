//===- Reductions.cpp - functions along dimensions ------------------------===//
//
// `dim` is a dimension or a list of them, negative ones counted from the end;
// all of them by default. They disappear, or with `keepdim` stay as 1. Floats
// are computed in f32 at least and rounded once; integers in their type.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Build.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

/// The attribute `dim`, rising; a single number is a list of one.
static List reducedDims(Call &call, int64_t rank) {
  if (call.hasAttribute("dim") && call.isInteger("dim"))
    return {call.dim("dim", 0, rank)};
  List dims = call.dims("dim", rank);
  return dims.empty() ? upTo(rank) : dims;
}

namespace {
/// What a reduction is of.
struct Reduction {
  Call &call;
  Expr x; ///< floats in the compute type
  Type element;
  List dims;
  bool keep;
  double count = 1; ///< of elements of x for one of the result

  static std::optional<Reduction> of(Call &call) {
    Expr x = call[0];
    Reduction r{call, x, elementOf(x), reducedDims(call, x.rank()),
                call.flag("keepdim", false)};
    if (call.failed())
      return std::nullopt;
    if (isFloat(x))
      r.x = wide(x);
    for (int64_t d : r.dims)
      r.count *= double(x.dim(d));
    return r;
  }
  /// The same of floats only.
  static std::optional<Reduction> ofFloats(Call &call) {
    if (failed(call.expectFloat(0)))
      return std::nullopt;
    return of(call);
  }

  Expr over(StringRef op, const Expr &value) const {
    return reduced(call, op, value, dims);
  }
  Expr sum(const Expr &value) const { return over("reduce_sum", value); }
  /// `y`, without the reduced dimensions, repeated along them.
  Expr back(const Expr &y) const { return y.expandReduced(x.shape(), dims); }
  /// The result as the call gives it, rounded.
  Expr result(Expr y) const {
    if (!y)
      return y;
    y = y.cast(element);
    return keep ? unsqueezed(call, y, dims) : y;
  }
};
} // namespace

template <typename Formula>
static CallResults reduction(Call &call, Formula formula) {
  if (isBool(call[0]))
    return call.fail("expected operand #0 to have numbers, but got bools");
  auto r = Reduction::of(call);
  if (!r)
    return failure();
  return results({r->result(formula(*r))});
}

template <typename Formula>
static CallResults floatReduction(Call &call, Formula formula) {
  if (failed(call.expectFloat(0)))
    return failure();
  return reduction(call, formula);
}

//===----------------------------------------------------------------------===//
// Sums, products, extremes
//===----------------------------------------------------------------------===//

static CallResults sum(Call &call) {
  return reduction(call, [](const Reduction &r) { return r.sum(r.x); });
}
static CallResults mean(Call &call) {
  return floatReduction(
      call, [](const Reduction &r) { return r.sum(r.x) / r.count; });
}
static CallResults prod(Call &call) {
  return reduction(
      call, [](const Reduction &r) { return r.over("reduce_prod", r.x); });
}
static CallResults amax(Call &call) {
  return reduction(
      call, [](const Reduction &r) { return r.over("reduce_max", r.x); });
}
static CallResults amin(Call &call) {
  return reduction(
      call, [](const Reduction &r) { return r.over("reduce_min", r.x); });
}

/// True for elements that are not 0, as numbers.
static Expr nonzero(const Expr &x, Type element) {
  Expr truth = isBool(x) ? x : compare(ComparePredicate::ne, x, x.like(0.0));
  return indicator(truth, element);
}

/// Products of 0 and 1, which of nothing are 1: none of nothing is 0.
static CallResults anyOrAll(Call &call, bool isAny) {
  auto r = Reduction::of(call);
  if (!r)
    return failure();
  Type i8 = call.builder.getI8Type();
  Expr one = nonzero(r->x, i8);
  Expr product = r->over("reduce_prod", isAny ? one.like(1.0) - one : one);
  if (!product)
    return failure();
  r->element = call.builder.getI1Type();
  Expr zero = product.like(0.0);
  return results({r->result(compare(
      isAny ? ComparePredicate::eq : ComparePredicate::ne, product, zero))});
}
static CallResults any(Call &call) { return anyOrAll(call, true); }
static CallResults all(Call &call) { return anyOrAll(call, false); }

static CallResults countNonzero(Call &call) {
  auto r = Reduction::of(call);
  if (!r)
    return failure();
  r->element = call.builder.getI64Type();
  return results({r->result(r->sum(nonzero(r->x, r->element)))});
}

//===----------------------------------------------------------------------===//
// Variances
//===----------------------------------------------------------------------===//

/// The variance about `mean`: in two passes, so that nothing cancels.
static Expr variance(const Reduction &r, const Expr &mean, double correction) {
  Expr difference = r.x - r.back(mean);
  return r.sum(difference * difference) / std::max(0.0, r.count - correction);
}

template <typename Formula>
static CallResults spread(Call &call, bool withMean, Formula formula) {
  double correction = call.number("correction", 1.0);
  auto r = Reduction::ofFloats(call);
  if (!r)
    return failure();
  Expr mean = r->sum(r->x) / r->count;
  Expr y = r->result(formula(variance(*r, mean, correction)));
  return withMean ? results({y, r->result(mean)}) : results({y});
}
static CallResults var(Call &call) {
  return spread(call, false, [](const Expr &v) { return v; });
}
static CallResults stdFunction(Call &call) {
  return spread(call, false, rootOrZero);
}
static CallResults varMean(Call &call) {
  return spread(call, true, [](const Expr &v) { return v; });
}
static CallResults stdMean(Call &call) {
  return spread(call, true, rootOrZero);
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

/// |x|^p, whose gradient at 0 is 0 even where it would be infinite.
static Expr powerOrZero(const Expr &x, double p) {
  Expr zero = isEqual(x, 0.0);
  Expr base = select(zero, x.like(1.0), x);
  return select(zero, x.like(0.0), pow(base, base.like(p)));
}

static CallResults norm(Call &call) {
  double p = call.number("p", 2.0);
  if (call.hasAttribute("p") && std::isnan(p))
    return call.fail("expected 'p' to be a number, but got NaN");
  return floatReduction(call, [&](const Reduction &r) -> Expr {
    Expr size = absolute(call, r.x);
    if (p == kInfinity)
      return r.over("reduce_max", size);
    if (p == -kInfinity)
      return r.over("reduce_min", size);
    if (p == 0)
      return r.sum(nonzero(r.x, elementOf(r.x)));
    if (p == 1)
      return r.sum(size);
    if (p == 2)
      return rootOrZero(r.sum(r.x * r.x));
    // With p < 0 a single 0 makes the sum infinite and the norm 0.
    Expr sum =
        p > 0 ? r.sum(powerOrZero(size, p)) : r.sum(pow(size, size.like(p)));
    return powerOrZero(sum, 1 / p);
  });
}

//===----------------------------------------------------------------------===//
// Logarithms of sums
//===----------------------------------------------------------------------===//

static CallResults logSumExp(Call &call) {
  return floatReduction(call, [&](const Reduction &r) {
    Expr largest = detach(r.x.reduceMax(r.dims));
    // An infinite one cannot be subtracted. Less the largest number, nothing of
    // what is finite is left beside infinity, which is bounded, so that it
    // takes no derivative; of -infinity alone there is no logarithm to have
    // one.
    const auto &semantics =
        cast<FloatType>(elementOf(largest)).getFloatSemantics();
    double most = APFloat::getLargest(semantics).convertToDouble();
    Expr isNone = isEqual(largest, -kInfinity);
    Expr shift =
        select(isNone, largest.like(0.0), minimum(largest, largest.like(most)));
    Expr sum = r.sum(exp(minimum(r.x - r.back(shift), r.x.like(1.0))));
    return log(select(isNone, sum.like(1.0), sum)) + largest;
  });
}
static CallResults logSum(Call &call) {
  return floatReduction(call,
                        [](const Reduction &r) { return log(r.sum(r.x)); });
}
static CallResults sumSquare(Call &call) {
  return reduction(call, [](const Reduction &r) { return r.sum(r.x * r.x); });
}
static CallResults sumAbsolute(Call &call) {
  return reduction(
      call, [&](const Reduction &r) { return r.sum(absolute(call, r.x)); });
}

//===----------------------------------------------------------------------===//
// Where the extremes are
//===----------------------------------------------------------------------===//

/// The index along `dim`, or in all elements if there is none.
static Expr where(Call &call, bool smallest) {
  Expr x = call[0];
  bool keep = call.flag("keepdim", false);
  bool last = call.flag("select_last_index", false);
  bool flat = !call.hasAttribute("dim");
  if (isBool(x)) {
    (void)call.fail("expected operand #0 to have numbers, but got bools");
    return {};
  }
  int64_t dim = flat ? 0 : call.dim("dim", 0, x.rank());
  if (call.failed())
    return {};
  int64_t rank = x.rank();
  if (flat)
    x = reshaped(call, x, productOf(x.shape()));
  Expr index = indexOfLargest(call, x, dim, last, smallest);
  if (!index || !keep)
    return index;
  return flat ? reshaped(call, index, List(rank, 1))
              : unsqueezed(call, index, dim);
}
static CallResults argLargest(Call &call) {
  return results({where(call, false)});
}
static CallResults argSmallest(Call &call) {
  return results({where(call, true)});
}

/// The extreme and where it is along a dimension: the gradient goes to that
/// element alone. Without a dimension the extreme of all.
static CallResults extreme(Call &call, bool smallest) {
  if (!call.hasAttribute("dim"))
    return smallest ? amin(call) : amax(call);
  Expr x = call[0];
  bool keep = call.flag("keepdim", false);
  int64_t dim = call.dim("dim", 0, x.rank());
  if (isBool(x))
    return call.fail("expected operand #0 to have numbers, but got bools");
  if (call.failed())
    return failure();
  Expr index = indexOfLargest(call, x, dim, false, smallest);
  if (!index)
    return failure();
  index = unsqueezed(call, index, dim);
  Expr value = call.call("gather", {x.value, index.value},
                         {call.integerAttr("dim", dim)});
  if (!keep && value) {
    value = reshaped(call, value, without(x.shape(), dim));
    index = reshaped(call, index, without(x.shape(), dim));
  }
  return results({value, index});
}
static CallResults largest(Call &call) { return extreme(call, false); }
static CallResults smallest(Call &call) { return extreme(call, true); }

void tandem::addReductionFunctions(FunctionTable &table) {
  table.family("Reductions");
  table.add("sum(x; dim=[], keepdim=false)", "the sum", sum);
  table.add("mean(x; dim=[], keepdim=false)", "the mean of floats", mean);
  table.add("prod(x; dim=[], keepdim=false)", "the product", prod);
  table.add("amax(x; dim=[], keepdim=false)",
            "the largest; ties share the gradient", amax);
  table.add("amin(x; dim=[], keepdim=false)",
            "the smallest; ties share the gradient", amin);
  table.add("max(x; dim, keepdim=false)",
            "the largest along a dimension, which has the gradient, and its "
            "index; without a dimension as amax",
            largest);
  table.add("min(x; dim, keepdim=false)",
            "the smallest along a dimension, which has the gradient, and its "
            "index; without a dimension as amin",
            smallest);
  table.add("arg_max(x; dim, keepdim=false, select_last_index=false)",
            "the index of the first (or last) largest, in all elements without "
            "a dimension",
            argLargest);
  table.add("argmin(x; dim, keepdim=false, select_last_index=false)",
            "the index of the first (or last) smallest, in all elements "
            "without a dimension",
            argSmallest);
  table.add("any(x; dim=[], keepdim=false)", "whether one is not 0", any);
  table.add("all(x; dim=[], keepdim=false)", "whether none is 0", all);
  table.add("count_nonzero(x; dim=[], keepdim=false)",
            "how many are not 0, as i64", countNonzero);
  table.add("var(x; dim=[], keepdim=false, correction=1.0)",
            "the variance: the squared differences from the mean, summed and "
            "divided by their number less `correction`",
            var);
  table.add("std(x; dim=[], keepdim=false, correction=1.0)",
            "the square root of var, whose gradient at 0 is 0", stdFunction);
  table.add("var_mean(x; dim=[], keepdim=false, correction=1.0)",
            "var and mean", varMean);
  table.add("std_mean(x; dim=[], keepdim=false, correction=1.0)",
            "std and mean", stdMean);
  table.add("norm(x; p=2.0, dim=[], keepdim=false)",
            "the p-norm; p may be infinite, 0 (counts) or negative; the "
            "gradient at 0 is 0",
            norm);
  table.add("logsumexp(x; dim=[], keepdim=false)", "log of the sum of exp x",
            logSumExp);
  table.add("log_sum(x; dim=[], keepdim=false)", "log of the sum", logSum);
  table.add("sum_square(x; dim=[], keepdim=false)", "the sum of squares",
            sumSquare);
  table.add("sum_abs(x; dim=[], keepdim=false)", "the sum of |x|", sumAbsolute);
  addRunningFunctions(table);
}
