//===- Build.cpp - what builders of functions share -----------------------===//
#include "compiler/functions/Build.h"
#include "ir/Ops.h"
#include "ir/ops/Composite.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

int64_t functions::productOf(Sizes sizes) {
  if (llvm::is_contained(sizes, 0))
    return 0;
  int64_t product = 1;
  for (int64_t size : sizes) {
    if (size > kMaxElements / product)
      return kMaxElements + 1;
    product *= size;
  }
  return product;
}

List functions::upTo(int64_t n) {
  List list(n);
  std::iota(list.begin(), list.end(), 0);
  return list;
}

List functions::without(Sizes list, int64_t i) {
  List rest(list);
  rest.erase(rest.begin() + i);
  return rest;
}

List functions::with(Sizes list, int64_t i, int64_t value) {
  List changed(list);
  changed[i] = value;
  return changed;
}

List functions::joined(std::initializer_list<Sizes> parts) {
  List all;
  for (Sizes part : parts)
    llvm::append_range(all, part);
  return all;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

Type functions::elementOf(const Expr &x) { return x.type().getElementType(); }
bool functions::isFloat(const Expr &x) { return isa<FloatType>(elementOf(x)); }
bool functions::isBool(const Expr &x) { return elementOf(x).isInteger(1); }
Type functions::computeType(const Expr &x) {
  return composite::computeType(x.value);
}
Expr functions::wide(const Expr &x) { return x.cast(computeType(x)); }

LogicalResult functions::expectOneType(Call &call, size_t first) {
  for (size_t i = first + 1; i < call.size(); ++i)
    if (call.has(i) && call.has(first) &&
        failed(call.expectSameElements(first, i)))
      return failure();
  return success();
}

SmallVector<Expr> functions::wideOperands(Call &call) {
  SmallVector<Expr> list;
  if (failed(call.expectFloat(0)) || failed(expectOneType(call)))
    return {};
  for (size_t i = 0; i < call.size(); ++i)
    list.push_back(call.has(i) ? wide(call[i]) : Expr());
  return list;
}

SmallVector<Expr> functions::stretchedOperands(Call &call) {
  SmallVector<Expr> list;
  if (failed(expectOneType(call)))
    return {};
  for (size_t i = 0; i < call.size(); ++i)
    list.push_back(call[i]);
  if (failed(call.broadcast(list)))
    return {};
  return list;
}

double functions::numberOf(Call &call, StringRef name, double otherwise,
                           const Expr &x) {
  double number = call.number(name, otherwise);
  if (isFloat(x))
    return number;
  if (number == std::trunc(number) && std::abs(number) <= 0x1p53) {
    if (holds(x.type().getElementType(), static_cast<int64_t>(number)))
      return number;
    (void)call.fail(
        "expected '" + name +
        "' to be an integer that the operand's type holds, but got " +
        Twine(static_cast<int64_t>(number)));
    return otherwise;
  }
  (void)call.fail("expected '" + name +
                  "' to be an integer, as the operand's elements are");
  return otherwise;
}

CallResults functions::results(std::initializer_list<Expr> values) {
  SmallVector<Value> list;
  for (const Expr &value : values) {
    if (!value)
      return failure();
    list.push_back(value);
  }
  return list;
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

Expr functions::isNaN(const Expr &x) {
  return compare(ComparePredicate::ne, x, x);
}
Expr functions::isLess(const Expr &x, const Expr &y) {
  return compare(ComparePredicate::lt, x, y);
}
Expr functions::isLess(const Expr &x, double y) { return isLess(x, x.like(y)); }
Expr functions::isEqual(const Expr &x, const Expr &y) {
  return compare(ComparePredicate::eq, x, y);
}
Expr functions::isEqual(const Expr &x, double y) {
  return isEqual(x, x.like(y));
}
Expr functions::isNot(const Expr &x) {
  return x.wrap(LogicalNotOp::create(*x.builder, x.loc, x.value));
}
Expr functions::replaced(const Expr &x, double at, double instead) {
  return select(isEqual(x, at), x.like(instead), x);
}
Expr functions::rootOrZero(const Expr &x) {
  return select(isEqual(x, 0.0), x.like(0.0), sqrt(replaced(x, 0.0, 1.0)));
}
Expr functions::absolute(Call &call, const Expr &x) {
  return call.op("abs", x.value);
}
Expr functions::indicator(const Expr &condition, Type element) {
  return condition.cast(element);
}

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

Expr functions::reshaped(Call &call, const Expr &x, Sizes shape) {
  if (!x || x.shape() == shape)
    return x;
  return call.op("reshape", x.value, {call.ints("shape", shape)});
}

Expr functions::permuted(Call &call, const Expr &x, Sizes permutation) {
  if (!x || llvm::is_sorted(permutation))
    return x;
  return call.op("permute", x.value, {call.ints("permutation", permutation)});
}

Expr functions::moved(Call &call, const Expr &x, int64_t from, int64_t to) {
  if (!x)
    return x;
  List order = without(upTo(x.rank()), from);
  order.insert(order.begin() + to, from);
  return permuted(call, x, order);
}

Expr functions::sliced(Call &call, const Expr &x, int64_t dim, int64_t start,
                       int64_t count, int64_t step) {
  if (!x || (start == 0 && step == 1 && count == x.dim(dim)))
    return x;
  if (count == 0)
    return call.full(elementOf(x), with(x.shape(), dim, 0), 0);
  List starts(x.rank(), 0), strides(x.rank(), 1), limits(x.shape());
  starts[dim] = start;
  limits[dim] = start + (count - 1) * step + 1;
  strides[dim] = step;
  return call.op("slice", x.value,
                 {call.ints("starts", starts), call.ints("limits", limits),
                  call.ints("strides", strides)});
}

/// `number` as an attribute of the element type.
static TypedAttr elementAttr(Type element, double number) {
  if (auto type = dyn_cast<FloatType>(element))
    return FloatAttr::get(type, number);
  auto type = cast<IntegerType>(element);
  return IntegerAttr::get(type,
                          APInt(type.getWidth(), static_cast<int64_t>(number),
                                /*isSigned=*/true,
                                /*implicitTrunc=*/true));
}

Expr functions::padded(Call &call, const Expr &x, Sizes low, Sizes high,
                       double fill) {
  auto nothing = [](int64_t n) { return n == 0; };
  if (!x || (llvm::all_of(low, nothing) && llvm::all_of(high, nothing)))
    return x;
  return call.op(
      "pad", x.value,
      {call.ints("low", low), call.ints("high", high),
       call.ints("interior", List(x.rank(), 0)),
       call.builder.getNamedAttr("value", elementAttr(elementOf(x), fill))});
}

Expr functions::paddedAlong(Call &call, const Expr &x, int64_t dim, int64_t low,
                            int64_t high, double fill) {
  if (!x)
    return x;
  List none(x.rank(), 0);
  return padded(call, x, with(none, dim, low), with(none, dim, high), fill);
}

Expr functions::concatenated(Call &call, ArrayRef<Expr> parts, int64_t dim) {
  SmallVector<Value> list;
  for (const Expr &part : parts) {
    if (!part)
      return part;
    if (part.dim(dim) > 0 || parts.size() == 1)
      list.push_back(part);
  }
  if (list.empty() && !parts.empty())
    return parts.front();
  if (list.size() == 1)
    return call.at(list.front());
  return call.op("concat", list, {call.integerAttr("dim", dim)});
}

Expr functions::reversed(Call &call, const Expr &x, Sizes dims) {
  if (!x || dims.empty())
    return x;
  return call.op("reverse", x.value, {call.ints("dims", dims)});
}

Expr functions::unsqueezed(Call &call, const Expr &x, Sizes dims) {
  if (!x)
    return x;
  List shape;
  const int64_t *next = x.shape().begin();
  for (int64_t d = 0, n = x.rank() + dims.size(); d < n; ++d)
    shape.push_back(llvm::is_contained(dims, d) ? 1 : *next++);
  return reshaped(call, x, shape);
}

Expr functions::along(Call &call, const Expr &x, Sizes shape, Sizes dims) {
  if (!x || x.shape() == shape)
    return x;
  return call.op("broadcast", x.value,
                 {call.ints("shape", shape), call.ints("dims", dims)});
}

namespace {
/// `count` indices first, first + step, ...
struct Run {
  int64_t first, count, step;
};
} // namespace

/// `indices` as runs of one step each.
static SmallVector<Run> runsOf(Sizes indices) {
  SmallVector<Run> runs;
  for (int64_t index : indices) {
    if (!runs.empty()) {
      Run &run = runs.back();
      int64_t step = index - (run.first + (run.count - 1) * run.step);
      if (run.count == 1 || step == run.step) {
        run.step = step;
        ++run.count;
        continue;
      }
    }
    runs.push_back({index, 1, 1});
  }
  return runs;
}

/// The elements of one run along `dim`.
static Expr pickedRun(Call &call, const Expr &x, int64_t dim, const Run &run) {
  if (run.step > 0 || run.count == 1)
    return sliced(call, x, dim, run.first, run.count,
                  std::max<int64_t>(run.step, 1));
  if (run.step == 0)
    return along(call, sliced(call, x, dim, run.first, 1),
                 with(x.shape(), dim, run.count), upTo(x.rank()));
  int64_t last = run.first + (run.count - 1) * run.step;
  return reversed(call, sliced(call, x, dim, last, run.count, -run.step), dim);
}

Expr functions::picked(Call &call, const Expr &x, int64_t dim, Sizes indices) {
  // Each part costs a comparison per element of the result, and as many again
  // for each part of what follows along another dimension; a lookup costs the
  // indices in memory, and is not fused with what follows.
  constexpr size_t mostParts = 3;
  if (!x)
    return x;
  if (indices.empty())
    return sliced(call, x, dim, 0, 0);
  SmallVector<Run> runs = runsOf(indices);
  if (runs.size() <= mostParts) {
    SmallVector<Expr> parts;
    for (const Run &run : runs)
      parts.push_back(pickedRun(call, x, dim, run));
    return concatenated(call, parts, dim);
  }
  Type type = composite::indexType(call.builder.getContext(), x.dim(dim));
  int64_t count = indices.size();
  Expr rows = moved(call, x, dim, 0);
  if (!rows)
    return rows;
  Expr found =
      call.op("take", {rows.value, call.integersOf(type, count, indices)});
  return moved(call, found, 0, dim);
}

Expr functions::indices(Call &call, Type element, Sizes shape, int64_t dim) {
  return call.op("iota", {}, {call.integerAttr("dim", dim)},
                 RankedTensorType::get(shape, element));
}

//===----------------------------------------------------------------------===//
// Lookups
//===----------------------------------------------------------------------===//

Expr functions::wrapped(Call &call, const Expr &index, int64_t size,
                        Expr *valid) {
  if (!index)
    return index;
  Expr given = index.cast(call.builder.getI64Type());
  Expr counted = select(isLess(given, 0.0), given + double(size), given);
  if (valid) {
    Expr inside =
        logicalAnd(compare(ComparePredicate::ge, counted, counted.like(0)),
                   isLess(counted, double(size)));
    *valid = *valid ? logicalAnd(*valid, inside) : inside;
  }
  return counted;
}

Expr functions::taken(Call &call, const Expr &x, int64_t dim,
                      const Expr &index) {
  if (!x || !index)
    return {};
  Expr rows = moved(call, x, dim, 0);
  Expr found = call.op("take", {rows.value, index.value});
  if (!found || dim == 0)
    return found;
  // The dimensions of the index come first; those before `dim` go there.
  List order;
  int64_t count = index.rank();
  for (int64_t d = 0; d < dim; ++d)
    order.push_back(count + d);
  llvm::append_range(order, upTo(count));
  for (int64_t d = dim + 1; d < x.rank(); ++d)
    order.push_back(count + d - 1);
  return permuted(call, found, order);
}

Expr functions::scattered(Call &call, const Expr &table, const Expr &index,
                          const Expr &updates, StringRef combine) {
  if (!table || !index || !updates)
    return {};
  return call.op("scatter", {table.value, index.value, updates.value},
                 call.builder.getNamedAttr(
                     "combine", CombineAttr::get(call.builder.getContext(),
                                                 *symbolizeCombine(combine))));
}

//===----------------------------------------------------------------------===//
// Reductions and products
//===----------------------------------------------------------------------===//

Expr functions::reduced(Call &call, StringRef op, const Expr &x, Sizes dims,
                        bool keep) {
  if (!x || dims.empty())
    return x;
  Expr y = call.op(op, x.value, {call.ints("dims", dims)});
  return keep ? unsqueezed(call, y, dims) : y;
}

Expr functions::indexOfLargest(Call &call, const Expr &x, int64_t dim,
                               bool last, bool smallest) {
  if (!x)
    return x;
  Expr best =
      reduced(call, smallest ? "reduce_min" : "reduce_max", x, dim, true);
  best = along(call, best, x.shape(), upTo(x.rank()));
  if (!best)
    return best;
  Expr wins = isEqual(x, best);
  // Where there is a NaN the extreme is NaN and equals nothing.
  if (isFloat(x))
    wins = logicalOr(wins, isNaN(x));
  Expr index = indices(call, call.builder.getI64Type(), x.shape(), dim);
  if (!index)
    return index;
  Expr candidates =
      select(wins, index, index.like(last ? -1.0 : double(x.dim(dim))));
  return reduced(call, last ? "reduce_max" : "reduce_min", candidates, dim);
}

Expr functions::matrixProduct(Call &call, const Expr &a, const Expr &b,
                              bool transposeA, bool transposeB) {
  if (!a || !b)
    return {};
  SmallVector<NamedAttribute> list;
  if (transposeA)
    list.push_back(call.unitAttr("transpose_lhs"));
  if (transposeB)
    list.push_back(call.unitAttr("transpose_rhs"));
  return call.op("matmul", {a.value, b.value}, list);
}
