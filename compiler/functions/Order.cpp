//===- Order.cpp - functions of the order of elements ---------------------===//
//
// NaN is above all numbers. Equal elements stay in their order.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Products.h"
#include "ir/ops/Inference.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

/// Values and indices of operand 0, sorted along `dim`; empty after a mistake.
static SmallVector<Value> sorted(Call &call, const Expr &x, int64_t dim,
                                 bool descending) {
  SmallVector<NamedAttribute> list{call.integerAttr("dim", dim)};
  if (descending)
    list.push_back(call.unitAttr("descending"));
  return call.ops("sort", x.value, list);
}

static CallResults argsort(Call &call) {
  int64_t dim = call.dim("dim", -1, call[0].rank());
  bool descending = call.flag("descending", false);
  if (call.failed())
    return failure();
  SmallVector<Value> made = sorted(call, call[0], dim, descending);
  if (made.empty())
    return failure();
  return SmallVector<Value>{made[1]};
}

static CallResults topk(Call &call) {
  Expr x = call[0];
  int64_t dim = call.dim("dim", -1, x.rank()), k = call.integer("k", 1);
  bool largest = call.flag("largest", true);
  if (call.failed())
    return failure();
  if (k < 0 || k > x.dim(dim))
    return call.fail("expected 'k' to be at most " + Twine(x.dim(dim)) +
                     ", but got " + Twine(k));
  SmallVector<Value> made = sorted(call, x, dim, largest);
  if (made.empty())
    return failure();
  return results({sliced(call, call.at(made[0]), dim, 0, k),
                  sliced(call, call.at(made[1]), dim, 0, k)});
}

static CallResults kthValue(Call &call) {
  Expr x = call[0];
  int64_t dim = call.dim("dim", -1, x.rank()), k = call.integer("k", 1);
  bool keep = call.flag("keepdim", false);
  if (call.failed())
    return failure();
  if (k < 1 || k > x.dim(dim))
    return call.fail("expected 'k' to be in [1, " + Twine(x.dim(dim)) +
                     "], but got " + Twine(k));
  SmallVector<Value> made = sorted(call, x, dim, false);
  if (made.empty())
    return failure();
  List shape = keep ? with(x.shape(), dim, 1) : without(x.shape(), dim);
  auto nth = [&](Value all) {
    return reshaped(call, sliced(call, call.at(all), dim, k - 1, 1), shape);
  };
  return results({nth(made[0]), nth(made[1])});
}

//===----------------------------------------------------------------------===//
// Distances, which are of pairs
//===----------------------------------------------------------------------===//

/// The p-norm over the last dimension; 0 has the gradient 0.
static Expr distance(Call &call, const Expr &difference, double p) {
  if (!difference)
    return difference;
  return call.call(
      "norm", difference.value,
      {call.numberAttr("p", p), call.ints("dim", difference.rank() - 1)});
}

/// Whether p is a norm's.
static LogicalResult expectNorm(Call &call, double p) {
  if (p >= 0)
    return success();
  return call.fail("expected 'p' to be at least 0");
}

static CallResults cdist(Call &call) {
  double p = call.number("p", 2.0);
  Expr a = call[0], b = call[1];
  if (failed(expectNorm(call, p)) || failed(call.expectFloat(0)) ||
      failed(expectOneType(call)))
    return failure();
  if (a.rank() < 2 || b.rank() < 2 ||
      a.dim(a.rank() - 1) != b.dim(b.rank() - 1))
    return call.fail("expected rows of one length, but got " +
                     infer::text(a.shape()) + " and " + infer::text(b.shape()));
  auto batch =
      call.broadcastShape(a.shape().drop_back(2), b.shape().drop_back(2));
  if (!batch)
    return failure();
  int64_t m = a.dim(a.rank() - 2), n = b.dim(b.rank() - 2);
  List shape = joined({*batch, {m, n, a.dim(a.rank() - 1)}});
  Expr x = call.stretch(unsqueezed(call, a, a.rank() - 1), shape);
  Expr y = call.stretch(unsqueezed(call, b, b.rank() - 2), shape);
  if (!x || !y)
    return failure();
  Expr d = distance(call, wide(x) - wide(y), p);
  if (!d)
    return failure();
  return results({d.cast(elementOf(a))});
}

static CallResults pdist(Call &call) {
  double p = call.number("p", 2.0);
  Expr x = call[0];
  if (failed(expectNorm(call, p)) || failed(call.expectFloat(0)) ||
      failed(call.expectRank(0, 2, 2)))
    return failure();
  constexpr int64_t mostRows = 2048; // their pairs are constants
  int64_t n = x.dim(0);
  if (n > mostRows)
    return call.fail("expected at most " + Twine(mostRows) + " rows, but got " +
                     Twine(n));
  List first, second;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = i + 1; k < n; ++k) {
      first.push_back(i);
      second.push_back(k);
    }
  if (first.empty())
    return results({call.full(elementOf(x), 0, 0)});
  Type i32 = call.builder.getI32Type();
  int64_t count = first.size();
  Expr a = taken(call, x, 0, call.integersOf(i32, count, first));
  Expr b = taken(call, x, 0, call.integersOf(i32, count, second));
  if (!a || !b)
    return failure();
  Expr d = distance(call, wide(a) - wide(b), p);
  if (!d)
    return failure();
  return results({d.cast(elementOf(x))});
}

//===----------------------------------------------------------------------===//
// The determinant
//===----------------------------------------------------------------------===//

/// [batch, k, k]: moves row `pivot` (one for each batch) to the top and the
/// first row, negated, to where that was: of determinant 1.
static Expr rowExchange(Call &call, const Expr &pivot, Type element,
                        Sizes shape) {
  Type i64 = call.builder.getI64Type();
  Expr row = indices(call, i64, shape, 1),
       column = indices(call, i64, shape, 2);
  Expr chosen = along(call, pivot, shape, 0);
  if (!row || !column || !chosen)
    return {};
  Expr top = isEqual(column, chosen).cast(element);
  Expr first = -isEqual(column, 0.0).cast(element);
  Expr same = isEqual(column, row).cast(element);
  return select(isEqual(row, 0.0), top,
                select(isEqual(row, chosen), first, same));
}

/// By elimination with the largest pivot of each column. Rows are exchanged by
/// products of matrices, so that each step is computed once.
static CallResults det(Call &call) {
  constexpr int64_t largest = 64;
  Expr x = call[0];
  if (failed(call.expectFloat(0)))
    return failure();
  int64_t rank = x.rank(), n = rank < 2 ? 0 : x.dim(rank - 1);
  if (rank < 2 || n < 1 || x.dim(rank - 2) != n)
    return call.fail("expected square matrices, but got " +
                     infer::text(x.shape()));
  if (n > largest)
    return call.fail("expected matrices of at most " + Twine(largest) +
                     " rows, but got " + Twine(n));
  int64_t batch = productOf(x.shape().drop_back(2));
  Expr a = reshaped(call, wide(x), {batch, n, n}), product;
  // An exchange is exact only if its factors are not rounded.
  SmallVector<NamedAttribute> precision;
  if (elementOf(a).isF32())
    precision.push_back(call.textAttr("precision", "f32"));
  for (int64_t k = n; k > 0; --k) {
    Expr column = reshaped(call, sliced(call, a, 2, 0, 1), {batch, k});
    Expr size = call.op("abs", column.value);
    Expr exchange = rowExchange(call, indexOfLargest(call, size, 1),
                                elementOf(a), {batch, k, k});
    if (!exchange)
      return failure();
    a = call.op("matmul", {exchange.value, a.value}, precision);
    Expr first = sliced(call, a, 1, 0, 1);
    Expr head = reshaped(call, sliced(call, first, 2, 0, 1), batch);
    if (!head)
      return failure();
    product = product ? product * head : head;
    if (k == 1)
      break;
    // Rows below minus their share of the pivot's.
    Expr rows = sliced(call, a, 1, 1, k - 1);
    Expr lead = reshaped(call, sliced(call, rows, 2, 0, 1), {batch, k - 1});
    Expr top = reshaped(call, sliced(call, first, 2, 1, k - 1), {batch, k - 1});
    Expr divisor = along(call, replaced(head, 0, 1), {batch, k - 1}, 0);
    Expr rest = sliced(call, rows, 2, 1, k - 1);
    if (!rest || !top || !lead || !divisor)
      return failure();
    List shape{batch, k - 1, k - 1};
    a = rest - along(call, lead / divisor, shape, {0, 1}) *
                   along(call, top, shape, {0, 2});
  }
  return results(
      {reshaped(call, product, x.shape().drop_back(2)).cast(elementOf(x))});
}

void tandem::addOrderFunctions(FunctionTable &table) {
  table.family("Orders and distances");
  table.add("argsort(x; dim=-1, descending=false)",
            "the indices that sort along a dimension", argsort);
  table.add("topk(x; k, dim=-1, largest=true)",
            "the k largest (or smallest) along a dimension, sorted, and their "
            "indices",
            topk);
  table.add("kthvalue(x; k, dim=-1, keepdim=false)",
            "the kth smallest along a dimension, and its index", kthValue);
  table.add("cdist(a, b; p=2.0)",
            "the p-norms of the differences of all pairs of rows", cdist);
  table.add("pdist(x; p=2.0)",
            "the p-norms of the differences of pairs of rows, each pair once",
            pdist);
  table.add("det(x)", "the determinants of matrices of at most 64 rows", det);
}
