//===- Running.cpp - products and sums up to each element -----------------===//
//
// In blocks of about sqrt(size) elements: within each, then over the blocks.
// That is size^1.5 combinations, none of which depends on many others, and its
// gradient is exact where elements are 0.
//
// A block's product may be too large or too small for its type though what it
// is multiplied with makes it a number again: 0 times it would be NaN. So
// products of blocks are of numbers from 1 to 2, whose exponents are added up:
// the result is that of a type that has room for all, rounded to this one.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Build.h"

#include <cmath>
#include <limits>
#include <optional>

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

namespace {
/// What is combined along a dimension, element by element.
struct Running {
  using Reduce = Expr (*)(Call &, const Expr &); ///< over the last dimension
  using Combine = Expr (*)(Call &, const Expr &, const Expr &);
  Call &call;
  double neutral;
  Reduce reduce;
  Combine combine;
  /// Of the last two dimensions so many elements are of the tensor; what fills
  /// the last block up has nothing to combine, and no gradient. None: all are.
  std::optional<int64_t> size = {};

  Expr upTo(const Expr &x, int64_t distance) const;
  Expr along(const Expr &x, int64_t dim) const;
};
} // namespace

/// For each element i of the last dimension all j combined up to i - distance;
/// where there is none, the first: nothing at all may have no finite value.
Expr Running::upTo(const Expr &x, int64_t distance) const {
  int64_t rank = x.rank(), size = x.dim(rank - 1);
  List shape = joined({x.shape(), size}), dims = functions::upTo(rank - 1);
  dims.push_back(rank);
  Expr all = functions::along(call, x, shape, dims);
  Type i64 = call.builder.getI64Type();
  Expr j = indices(call, i64, shape, rank);
  Expr i = indices(call, i64, shape, rank - 1);
  if (!all || !i || !j)
    return {};
  if (distance)
    i = maximum(i - double(distance), i.like(0));
  Expr counts = compare(ComparePredicate::le, j, i);
  if (this->size && *this->size < x.dim(rank - 2) * size) {
    Expr number = indices(call, i64, shape, rank - 2);
    if (!number)
      return {};
    counts = logicalAnd(counts, functions::isLess(number * double(size) + i,
                                                  double(*this->size)));
  }
  return reduce(call, select(counts, all, all.like(neutral)));
}

Expr Running::along(const Expr &x, int64_t dim) const {
  int64_t size = x.dim(dim), last = x.rank() - 1;
  if (productOf(x.shape()) == 0)
    return x;
  auto block = static_cast<int64_t>(std::ceil(std::sqrt(double(size))));
  int64_t blocks = (size + block - 1) / block;
  Expr y = moved(call, x, dim, last);
  y = paddedAlong(call, y, last, 0, blocks * block - size, neutral);
  if (!y)
    return y;
  Sizes outer = y.shape().drop_back();
  List shape = joined({outer, {blocks, block}});
  Expr inside = upTo(reshaped(call, y, shape), 0);
  if (!inside)
    return inside;
  Expr whole = reshaped(call, sliced(call, inside, last + 1, block - 1, 1),
                        joined({outer, blocks}));
  Expr earlier = upTo(whole, 1);
  earlier = functions::along(call, earlier, shape, functions::upTo(last + 1));
  Type i64 = call.builder.getI64Type();
  Expr number = indices(call, i64, shape, last);
  Expr place = indices(call, i64, shape, last + 1);
  if (!earlier || !number || !place)
    return {};
  // What fills the last block up is cut off: its cotangents are 0, which times
  // an infinite product are not.
  if (blocks * block > size)
    earlier =
        select(functions::isLess(number * double(block) + place, double(size)),
               earlier, earlier.like(neutral));
  // Nothing is before the first block, so that what is in it is no operand.
  Expr isFirst = isEqual(number, 0.0);
  Expr both =
      combine(call, earlier, select(isFirst, inside.like(neutral), inside));
  if (!both)
    return both;
  both = select(isFirst, inside, both);
  Expr all = reshaped(call, both, joined({outer, blocks * block}));
  return moved(call, sliced(call, all, last, 0, size), last, dim);
}

static Expr multiplied(Call &call, const Expr &x) {
  return reduced(call, "reduce_prod", x, x.rank() - 1);
}

/// Of `size` elements in blocks.
static Expr productUpTo(Call &call, const Expr &x, int64_t size) {
  return Running{call, 1, multiplied, nullptr, size}.upTo(x, 0);
}

namespace {
/// Numbers of f64 as `part` * 2^exponent. The exponents are whole numbers in
/// f64.
struct Scaled {
  Expr part, exponent;

  /// With parts from 1 to 2, but for 0, infinities and NaN.
  static Scaled of(Call &call, const Expr &x);
  /// The same, of parts that have any magnitude.
  Scaled normal(Call &call) const;
  /// The numbers, rounded where they are subnormal.
  Expr value(Call &call) const;
  Scaled reshaped(Call &call, Sizes shape) const;
  Scaled sliced(Call &call, int64_t dim, int64_t start, int64_t count) const;
  Scaled padded(Call &call, int64_t dim, int64_t low, int64_t high) const;
  explicit operator bool() const { return part && exponent; }
};
} // namespace

/// The powers of 2 of which a number's exponent is a sum, the largest first.
/// Three times the largest is more than any exponent.
static constexpr int64_t kPowers[] = {512, 256, 128, 64, 32, 16, 8, 4, 2, 1};

/// What any number is multiplied with so that less than 1 becomes more.
static constexpr int kLifts = 3;

Scaled Scaled::of(Call &call, const Expr &x) {
  // 0, infinities and NaN are themselves, as are their gradients.
  Expr size = absolute(call, x);
  Expr isScaled = logicalAnd(functions::isLess(size.like(0), size),
                             functions::isLess(size, kInfinity));
  size = select(isScaled, size, size.like(1));
  Scaled result{x, x.like(0)};
  auto scaleWhere = [&](const Expr &holds, int64_t power) {
    double factor = std::ldexp(1.0, static_cast<int>(-power));
    size = select(holds, size * factor, size);
    result.part = select(holds, result.part * factor, result.part);
    result.exponent =
        select(holds, result.exponent + double(power), result.exponent);
  };
  for (int i = 0; i < kLifts; ++i)
    scaleWhere(functions::isLess(size, 1.0), -kPowers[0]);
  for (int64_t power : kPowers) {
    double bound = std::ldexp(1.0, static_cast<int>(power));
    scaleWhere(compare(ComparePredicate::ge, size, size.like(bound)), power);
  }
  return result;
}

Scaled Scaled::normal(Call &call) const {
  Scaled result = of(call, part);
  result.exponent = result.exponent + exponent;
  return result;
}

Expr Scaled::value(Call &call) const {
  Scaled from = normal(call);
  List powers(Sizes{kPowers});
  powers.insert(powers.begin(), kLifts - 1, kPowers[0]);
  Expr y = from.part;
  // Small powers first: a number is subnormal, and rounded, once.
  for (double sign : {1.0, -1.0}) {
    Expr left = from.exponent * sign;
    SmallVector<Expr> holds;
    for (int64_t power : powers) {
      holds.push_back(
          compare(ComparePredicate::ge, left, left.like(double(power))));
      left = select(holds.back(), left - double(power), left);
    }
    for (size_t i = powers.size(); i-- > 0;)
      y = select(holds[i],
                 y * std::ldexp(1.0, static_cast<int>(sign) *
                                         static_cast<int>(powers[i])),
                 y);
  }
  return y;
}

Scaled Scaled::reshaped(Call &call, Sizes shape) const {
  return {functions::reshaped(call, part, shape),
          functions::reshaped(call, exponent, shape)};
}
Scaled Scaled::sliced(Call &call, int64_t dim, int64_t start,
                      int64_t count) const {
  return {functions::sliced(call, part, dim, start, count),
          functions::sliced(call, exponent, dim, start, count)};
}
Scaled Scaled::padded(Call &call, int64_t dim, int64_t low,
                      int64_t high) const {
  return {paddedAlong(call, part, dim, low, high, 1),
          paddedAlong(call, exponent, dim, low, high, 0)};
}

/// `x`, in blocks along the last two dimensions, with 1 behind the first `size`
/// of them. What fills the last block up is cut off: its cotangents are 0,
/// which times an infinite product are not.
static Expr withoutRest(Call &call, const Expr &x, int64_t size) {
  int64_t last = x.rank() - 1;
  int64_t block = x.dim(last);
  if (x.dim(last - 1) * block == size)
    return x;
  Type i64 = call.builder.getI64Type();
  Expr number = indices(call, i64, x.shape(), last - 1);
  Expr place = indices(call, i64, x.shape(), last);
  if (!number || !place)
    return {};
  return select(functions::isLess(number * double(block) + place, double(size)),
                x, x.like(1));
}

/// The products along the last dimension of normal numbers; parts are below
/// 2^(2 * kMostOfBlock).
static Scaled runningProduct(Call &call, const Scaled &x) {
  constexpr int64_t kMostOfBlock = 50; // whose parts are below 2^50
  int64_t last = x.part.rank() - 1, size = x.part.dim(last);
  int64_t block = std::min(
      kMostOfBlock, static_cast<int64_t>(std::ceil(std::sqrt(double(size)))));
  int64_t blocks = (size + block - 1) / block;
  Scaled y = x.padded(call, last, 0, blocks * block - size);
  if (!y)
    return y;
  Sizes outer = y.part.shape().drop_back();
  List whole = joined({outer, {blocks, block}}),
       ofBlocks = joined({outer, {blocks}});
  y = y.reshaped(call, whole);
  if (!y)
    return y;
  Scaled inside{
      productUpTo(call, y.part, size),
      call.op("cumsum", y.exponent.value, {call.integerAttr("dim", last + 1)})};
  if (!inside || blocks == 1)
    return inside ? inside.reshaped(call, x.part.shape()) : inside;
  Scaled total = inside.sliced(call, last + 1, block - 1, 1);
  if (!total)
    return total;
  total = total.reshaped(call, ofBlocks).normal(call);
  Scaled earlier = runningProduct(call, total);
  if (!earlier)
    return earlier;
  earlier = earlier.normal(call)
                .sliced(call, last, 0, blocks - 1)
                .padded(call, last, 1, 0);
  if (!earlier)
    return earlier;
  List dims = functions::upTo(last + 1);
  earlier = {functions::along(call, earlier.part, whole, dims),
             functions::along(call, earlier.exponent, whole, dims)};
  if (!earlier)
    return {};
  earlier.part = withoutRest(call, earlier.part, size);
  Scaled all{earlier.part * inside.part, earlier.exponent + inside.exponent};
  return all.reshaped(call, joined({outer, {blocks * block}}))
      .sliced(call, last, 0, size);
}

/// The elements of the last dimension in blocks, with 1 behind them.
static Expr inBlocks(Call &call, const Expr &x, int64_t block) {
  int64_t last = x.rank() - 1, size = x.dim(last);
  int64_t blocks = (size + block - 1) / block;
  Expr y = paddedAlong(call, x, last, 0, blocks * block - size, 1);
  if (!y)
    return y;
  Sizes outer = y.shape().drop_back();
  return reshaped(call, y, joined({outer, {blocks, block}}));
}

/// Of numbers of f32: products of eight are in the range of f64, and so is what
/// is in front of them where it is a number of f32. So eight are multiplied as
/// they are, and scaled numbers are those of blocks alone.
static Expr productOfFew(Call &call, const Expr &x) {
  constexpr int64_t block = 8;
  int64_t last = x.rank() - 1, size = x.dim(last);
  Expr y = inBlocks(call, x, block);
  Expr inside = y ? productUpTo(call, y, size) : Expr();
  if (!inside)
    return inside;
  List whole(inside.shape());
  int64_t blocks = whole[last];
  if (blocks > 1) {
    List ofBlocks(inside.shape().drop_back());
    Expr total = sliced(call, inside, last + 1, block - 1, 1);
    total = total ? reshaped(call, total, ofBlocks) : total;
    Scaled all =
        total ? runningProduct(call, Scaled::of(call, total)) : Scaled();
    if (!all)
      return {};
    Expr earlier = sliced(call, all.value(call), last, 0, blocks - 1);
    earlier = paddedAlong(call, earlier, last, 1, 0, 1);
    earlier = earlier ? functions::along(call, earlier, whole,
                                         functions::upTo(last + 1))
                      : earlier;
    if (!earlier)
      return earlier;
    inside = withoutRest(call, earlier, size) * inside;
  }
  Sizes outer = x.shape().drop_back();
  inside = reshaped(call, inside, joined({outer, {blocks * block}}));
  return sliced(call, inside, last, 0, size);
}

static Expr productOfFloats(Call &call, const Expr &x, int64_t dim) {
  if (productOf(x.shape()) == 0)
    return x;
  int64_t last = x.rank() - 1;
  Expr y = moved(call, x, dim, last);
  if (!y)
    return y;
  if (elementOf(x).isF64()) {
    Scaled all = runningProduct(call, Scaled::of(call, y));
    y = all ? all.value(call) : Expr();
  } else {
    y = productOfFew(call, y.cast(call.builder.getF64Type()));
    y = y ? y.cast(elementOf(x)) : y;
  }
  return y ? moved(call, y, last, dim) : y;
}

static CallResults cumprod(Call &call) {
  Expr x = call[0];
  if (x.rank() == 0)
    return results({x});
  int64_t dim = call.dim("dim", 0, x.rank());
  if (isBool(x))
    return call.fail("expected operand #0 to have numbers, but got bools");
  if (call.failed())
    return failure();
  if (isFloat(x))
    return widened(call, [&](const Expr &wide) {
      return productOfFloats(call, wide, dim);
    });
  Running running{call, 1, multiplied,
                  [](Call &, const Expr &a, const Expr &b) { return a * b; }};
  Expr y = running.along(x, dim);
  if (!y)
    return failure();
  return results({y});
}

static CallResults logCumSumExp(Call &call) {
  Expr x = call[0];
  if (x.rank() == 0 && isFloat(x))
    return results({x});
  int64_t dim = call.dim("dim", 0, x.rank());
  if (failed(call.expectFloat(0)) || call.failed())
    return failure();
  Running running{call, -kInfinity,
                  [](Call &call, const Expr &x) {
                    return call.call("logsumexp", x.value,
                                     {call.integerAttr("dim", x.rank() - 1)});
                  },
                  [](Call &call, const Expr &a, const Expr &b) {
                    return call.call("logaddexp", {a.value, b.value});
                  }};
  return widened(call,
                 [&](const Expr &wide) { return running.along(wide, dim); });
}

void tandem::addRunningFunctions(FunctionTable &table) {
  table.add("cumprod(x; dim=0)",
            "products of all up to each element; floats neither overflow nor "
            "vanish on the way",
            cumprod);
  table.add("logcumsumexp(x; dim=0)",
            "log of the sums of exp of all up to each element", logCumSumExp);
}
