//===- IndexMath.cpp - index expressions with known ranges ----------------===//
#include "passes/plan/IndexMath.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace tandem;

/// A sum: constant + sum of multiples of atoms (dimensions, quotients,
/// remainders). Atoms are distinct and no multiple is 0.
struct Sum {
  int64_t constant = 0;
  SmallVector<std::pair<AffineExpr, int64_t>, 4> terms;

  void add(AffineExpr atom, int64_t multiple) {
    for (auto *it = terms.begin(); it != terms.end(); ++it)
      if (it->first == atom) {
        it->second += multiple;
        if (it->second == 0)
          terms.erase(it);
        return;
      }
    if (multiple != 0)
      terms.push_back({atom, multiple});
  }
  void add(const Sum &other, int64_t multiple) {
    constant += other.constant * multiple;
    for (auto [atom, m] : other.terms)
      add(atom, m * multiple);
  }
};

static IndexRange rangeOfSum(const Sum &sum, ArrayRef<int64_t> sizes) {
  IndexRange range{sum.constant, sum.constant};
  for (auto [atom, multiple] : sum.terms) {
    IndexRange term = rangeOf(atom, sizes);
    range.low += multiple * (multiple > 0 ? term.low : term.high);
    range.high += multiple * (multiple > 0 ? term.high : term.low);
  }
  return range;
}

IndexRange tandem::rangeOf(AffineExpr expr, ArrayRef<int64_t> sizes) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return {constant.getValue(), constant.getValue()};
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return {0, std::max<int64_t>(sizes[dim.getPosition()], 1) - 1};
  auto binary = cast<AffineBinaryOpExpr>(expr);
  IndexRange lhs = rangeOf(binary.getLHS(), sizes);
  IndexRange rhs = rangeOf(binary.getRHS(), sizes);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return {lhs.low + rhs.low, lhs.high + rhs.high};
  case AffineExprKind::Mul: // by a constant
    if (rhs.low < 0)
      return {lhs.high * rhs.low, lhs.low * rhs.low};
    return {lhs.low * rhs.low, lhs.high * rhs.low};
  case AffineExprKind::FloorDiv:
    return {llvm::divideFloorSigned(lhs.low, rhs.low),
            llvm::divideFloorSigned(lhs.high, rhs.low)};
  case AffineExprKind::CeilDiv:
    return {llvm::divideCeilSigned(lhs.low, rhs.low),
            llvm::divideCeilSigned(lhs.high, rhs.low)};
  default: // Mod
    if (lhs.low >= 0 && lhs.high < rhs.low)
      return lhs;
    return {0, rhs.low - 1};
  }
}

static Sum toSum(AffineExpr expr, ArrayRef<int64_t> sizes);

/// What `atom` divides, and by what, if it is of that kind; else by is 0.
static std::pair<AffineExpr, int64_t> asBinary(AffineExpr atom,
                                               AffineExprKind kind) {
  if (atom.getKind() != kind)
    return {atom, 0};
  auto binary = cast<AffineBinaryOpExpr>(atom);
  return {binary.getLHS(),
          cast<AffineConstantExpr>(binary.getRHS()).getValue()};
}

/// The sum as an expression: dimensions first, in order.
static AffineExpr toExpr(const Sum &sum, MLIRContext *context) {
  SmallVector<std::pair<AffineExpr, int64_t>, 4> dims, others;
  for (auto term : sum.terms)
    (isa<AffineDimExpr>(term.first) ? dims : others).push_back(term);
  llvm::sort(dims, [](const auto &a, const auto &b) {
    return cast<AffineDimExpr>(a.first).getPosition() <
           cast<AffineDimExpr>(b.first).getPosition();
  });
  llvm::append_range(dims, others);
  AffineExpr result;
  for (auto [atom, multiple] : dims) {
    AffineExpr term = multiple == 1 ? atom : atom * multiple;
    result = result ? result + term : term;
  }
  if (!result)
    return getAffineConstantExpr(sum.constant, context);
  return sum.constant ? result + sum.constant : result;
}

/// Writes `sum` as g * high + low with 0 <= low < g for the greatest divisor g
/// of `divisor` that it finds; `sum` becomes high. Returns g.
static int64_t reduce(Sum &sum, int64_t divisor, Sum &low,
                      ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> candidates{divisor};
  for (auto [atom, multiple] : sum.terms) {
    candidates[0] = std::gcd(candidates[0], multiple);
    candidates.push_back(std::gcd(divisor, multiple));
  }
  llvm::sort(candidates, std::greater<>());
  for (int64_t g : candidates) {
    Sum high, rest;
    for (auto [atom, multiple] : sum.terms) {
      bool divides = multiple % g == 0;
      (divides ? high : rest).add(atom, divides ? multiple / g : multiple);
    }
    high.constant = llvm::divideFloorSigned(sum.constant, g);
    rest.constant = sum.constant - high.constant * g;
    IndexRange range = rangeOfSum(rest, sizes);
    if (range.low < 0 || range.high >= g)
      continue;
    sum = high;
    low = rest;
    return g;
  }
  llvm_unreachable("a divisor of all multiples leaves less than itself");
}

static Sum remainder(const Sum &sum, int64_t divisor, ArrayRef<int64_t> sizes,
                     MLIRContext *context);

static Sum quotient(const Sum &sum, int64_t divisor, ArrayRef<int64_t> sizes,
                    MLIRContext *context) {
  if (divisor == 1)
    return sum;
  Sum result, rest;
  for (auto [atom, multiple] : sum.terms) {
    int64_t whole = llvm::divideFloorSigned(multiple, divisor);
    result.add(atom, whole);
    rest.add(atom, multiple - whole * divisor);
  }
  result.constant = llvm::divideFloorSigned(sum.constant, divisor);
  rest.constant = sum.constant - result.constant * divisor;
  IndexRange range = rangeOfSum(rest, sizes);
  int64_t low = llvm::divideFloorSigned(range.low, divisor);
  if (low == llvm::divideFloorSigned(range.high, divisor)) {
    result.constant += low;
    return result;
  }
  Sum ignored;
  divisor /= reduce(rest, divisor, ignored, sizes);
  if (divisor == 1) {
    result.add(rest, 1);
    return result;
  }
  for (auto [atom, multiple] : rest.terms) {
    // (r + x / a) / b is (a r + x) / (a b).
    if (auto [x, by] = asBinary(atom, AffineExprKind::FloorDiv);
        by && multiple == 1) {
      Sum whole = toSum(x, sizes);
      rest.add(AffineExpr(atom), -1);
      whole.add(rest, by);
      result.add(quotient(whole, by * divisor, sizes, context), 1);
      return result;
    }
    // (x mod (a b)) / a is (x / a) mod b: so the digits of x are written in
    // one way, however often it was taken apart, and join() finds them.
    if (auto [x, by] = asBinary(atom, AffineExprKind::Mod);
        by && by % divisor == 0 && multiple == 1 && rest.terms.size() == 1 &&
        rest.constant == 0) {
      Sum high = quotient(toSum(x, sizes), divisor, sizes, context);
      result.add(remainder(high, by / divisor, sizes, context), 1);
      return result;
    }
  }
  result.add(toExpr(rest, context).floorDiv(divisor), 1);
  return result;
}

static Sum remainder(const Sum &sum, int64_t divisor, ArrayRef<int64_t> sizes,
                     MLIRContext *context) {
  Sum rest;
  for (auto [atom, multiple] : sum.terms)
    rest.add(atom,
             multiple - llvm::divideFloorSigned(multiple, divisor) * divisor);
  rest.constant =
      sum.constant - llvm::divideFloorSigned(sum.constant, divisor) * divisor;
  IndexRange range = rangeOfSum(rest, sizes);
  int64_t low = llvm::divideFloorSigned(range.low, divisor);
  if (low == llvm::divideFloorSigned(range.high, divisor)) {
    rest.constant -= low * divisor;
    return rest;
  }
  // (g x + r) mod (g d) is g (x mod d) + r where 0 <= r < g.
  Sum result;
  int64_t common = reduce(rest, divisor, result, sizes);
  divisor /= common;
  if (divisor == 1)
    return result;
  if (rest.constant == 0 && rest.terms.size() == 1 && rest.terms[0].second == 1)
    if (auto [x, by] = asBinary(rest.terms[0].first, AffineExprKind::Mod);
        by && by % divisor == 0) {
      result.add(remainder(toSum(x, sizes), divisor, sizes, context), common);
      return result;
    }
  result.add(toExpr(rest, context) % divisor, common);
  return result;
}

static int64_t countDivisions(const Sum &sum) {
  return llvm::count_if(sum.terms, [](const auto &term) {
    return !isa<AffineDimExpr>(term.first);
  });
}

/// Joins what delinearizing took apart: m a (x / m) + a (x mod m) is a x. Of
/// x / m what is a multiple of dimensions may stand in the sum with others.
static void join(Sum &sum, ArrayRef<int64_t> sizes, MLIRContext *context) {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto [atom, multiple] : sum.terms) {
      auto [x, by] = asBinary(atom, AffineExprKind::Mod);
      if (!by)
        continue;
      Sum whole = toSum(x, sizes);
      Sum high = quotient(whole, by, sizes, context);
      int64_t scale = multiple * by;
      bool isThere = llvm::all_of(high.terms, [&](const auto &term) {
        return isa<AffineDimExpr>(term.first) ||
               llvm::is_contained(
                   sum.terms, std::make_pair(term.first, term.second * scale));
      });
      if (!isThere || countDivisions(high) == 0)
        continue;
      Sum joined = sum;
      joined.add(atom, -multiple);
      joined.add(high, -scale);
      joined.add(whole, multiple);
      if (countDivisions(joined) >= countDivisions(sum))
        continue;
      sum = joined;
      changed = true;
      break;
    }
  }
}

static Sum toSum(AffineExpr expr, ArrayRef<int64_t> sizes) {
  MLIRContext *context = expr.getContext();
  Sum sum;
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    sum.constant = constant.getValue();
    return sum;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    if (sizes[dim.getPosition()] > 1) // else always 0
      sum.add(expr, 1);
    return sum;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Sum lhs = toSum(binary.getLHS(), sizes), rhs = toSum(binary.getRHS(), sizes);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    lhs.add(rhs, 1);
    join(lhs, sizes, context);
    return lhs;
  case AffineExprKind::Mul:
    if (!rhs.terms.empty())
      std::swap(lhs, rhs);
    sum.add(lhs, rhs.constant);
    return sum;
  case AffineExprKind::FloorDiv:
    return quotient(lhs, rhs.constant, sizes, context);
  case AffineExprKind::CeilDiv:
    lhs.constant += rhs.constant - 1;
    return quotient(lhs, rhs.constant, sizes, context);
  default:
    return remainder(lhs, rhs.constant, sizes, context);
  }
}

AffineExpr tandem::simplifyIndex(AffineExpr expr, ArrayRef<int64_t> sizes) {
  return toExpr(toSum(expr, sizes), expr.getContext());
}

AffineExpr tandem::linearize(ArrayRef<AffineExpr> index,
                             ArrayRef<int64_t> shape, MLIRContext *context) {
  AffineExpr position = getAffineConstantExpr(0, context);
  for (auto [i, size] : llvm::zip_equal(index, shape))
    position = position * size + i;
  return position;
}

SmallVector<AffineExpr> tandem::delinearize(AffineExpr position,
                                            ArrayRef<int64_t> shape,
                                            ArrayRef<int64_t> sizes) {
  SmallVector<AffineExpr> index(shape.size());
  int64_t inner = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    int64_t size = std::max<int64_t>(shape[d], 1);
    AffineExpr whole = position.floorDiv(inner);
    index[d] = simplifyIndex(d == 0 ? whole : whole % size, sizes);
    inner *= size;
  }
  return index;
}

std::optional<int64_t> tandem::coefficientOf(AffineExpr expr, unsigned dim) {
  if (!expr.isFunctionOfDim(dim))
    return 0;
  if (isa<AffineDimExpr>(expr))
    return 1;
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  auto lhs = coefficientOf(binary.getLHS(), dim);
  auto rhs = coefficientOf(binary.getRHS(), dim);
  if (binary.getKind() == AffineExprKind::Add && lhs && rhs)
    return *lhs + *rhs;
  if (binary.getKind() == AffineExprKind::Mul && lhs)
    if (auto by = dyn_cast<AffineConstantExpr>(binary.getRHS()))
      return *lhs * by.getValue();
  return std::nullopt;
}

bool tandem::throughView(ViewOpInterface view, const Place &place,
                         ArrayRef<int64_t> sizes, Place &source,
                         SmallVectorImpl<IndexGuard> &inside) {
  auto substitute = [&](AffineExpr expr) {
    return simplifyIndex(expr.replaceDims(place.index), sizes);
  };
  source.guards = place.guards;
  source.index.clear();
  if (IntegerSet domain = view.getIndexDomain())
    for (unsigned i = 0, n = domain.getNumConstraints(); i < n; ++i) {
      IndexGuard guard{substitute(domain.getConstraint(i)), domain.isEq(i)};
      IndexRange range = rangeOf(guard.expr, sizes);
      if (guard.isEqual ? range.low == 0 && range.high == 0 : range.low >= 0)
        continue;
      if (range.high < 0 || (guard.isEqual && range.low > 0))
        return false;
      inside.push_back(guard);
      if (!llvm::is_contained(source.guards, guard))
        source.guards.push_back(guard);
    }
  for (AffineExpr expr : view.getIndexMap().getResults())
    source.index.push_back(substitute(expr));
  return true;
}
