//===- Scatter.cpp - functions that write elements by index ---------------===//
//
// Each gives a new tensor. Indices are as in Gather.cpp; what is written
// outside is lost. Where several are written to one place, the last stays.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Indexing.h"
#include "ir/ops/Inference.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

/// `updates` of any shape combined into the places of `x`.
static Expr scatteredFlat(Call &call, const Expr &x, const Expr &places,
                          const Expr &updates, StringRef combine) {
  if (!x || !places || !updates)
    return {};
  Expr flat = reshaped(call, x, productOf(x.shape()));
  return reshaped(call, scattered(call, flat, places, updates, combine),
                  x.shape());
}

/// `x` in the shape of what stands where `like` is: its beginning.
static Expr within(Call &call, Expr x, Sizes shape) {
  for (int64_t d = 0; x && d < x.rank(); ++d)
    x = sliced(call, x, d, 0, shape[d]);
  return x;
}

/// PyTorch's and ONNX's words for a combination.
static StringRef combination(StringRef word) {
  if (word == "sum" || word == "add")
    return "add";
  if (word == "prod" || word == "mul" || word == "multiply")
    return "mul";
  if (word == "amax" || word == "max")
    return "max";
  if (word == "amin" || word == "min")
    return "min";
  return word == "mean" ? "mean" : "set";
}

/// The operands of a scatter along `dim`: x, index, source.
static LogicalResult expectScatter(Call &call, int64_t dim) {
  if (call.failed() || failed(expectIndexAlong(call, 0, 1, dim)) ||
      failed(call.expectSameElements(0, 2)) ||
      failed(call.expectRank(2, call[0].rank(), call[0].rank())))
    return failure();
  for (int64_t d = 0; d < call[0].rank(); ++d)
    if (call[1].dim(d) > call[2].dim(d))
      return call.fail("expected a source of at least the shape of the "
                       "indices, " +
                       infer::text(call[1].shape()) + ", but got " +
                       infer::text(call[2].shape()));
  return success();
}

static CallResults scatterElements(Call &call) {
  Expr x = call[0];
  StringRef word =
      call.text("reduce", "none", {"none", "add", "mul", "min", "max"});
  if (x.rank() == 0)
    return call.fail("expected operand #0 to have rank at least 1, but got 0");
  int64_t dim = call.dim("dim", 0, x.rank());
  if (failed(expectScatter(call, dim)))
    return failure();
  Expr places = placesAlong(call, x.shape(), dim, call[1]);
  Expr source = within(call, call[2], call[1].shape());
  return results({scatteredFlat(call, x, places, source, combination(word))});
}

/// With `include_self` false, what is written replaces x where anything is.
static CallResults scatterReduce(Call &call) {
  Expr x = call[0];
  StringRef word =
      call.text("reduce", "sum", {"sum", "prod", "mean", "amax", "amin"});
  bool self = call.flag("include_self", true);
  if (x.rank() == 0)
    return call.fail("expected operand #0 to have rank at least 1, but got 0");
  int64_t dim = call.dim("dim", 0, x.rank());
  if (failed(expectScatter(call, dim)))
    return failure();
  if (isBool(x))
    return call.fail("expected operands to have numbers, but got bools");
  if (word == "mean" && !isFloat(x))
    return call.fail("expected floats for a mean");
  Expr places = placesAlong(call, x.shape(), dim, call[1]);
  Expr source = within(call, call[2], call[1].shape());
  if (!places || !source)
    return failure();
  StringRef combine = combination(word);
  if (self && word != "mean")
    return results({scatteredFlat(call, x, places, source, combine)});
  Type element = elementOf(x);
  Expr base = isFloat(x) ? wide(x) : x;
  source = source.cast(elementOf(base));
  // How many are written to each place; a place with none keeps x.
  Type i64 = call.builder.getI64Type();
  Expr one = call.full(i64, source.shape(), 1);
  Expr zero = call.full(i64, x.shape(), 0);
  Expr count = scatteredFlat(call, zero, places, one, "add");
  if (!count)
    return failure();
  Expr untouched = isEqual(count, 0.0);
  if (!self) {
    // The neutral element where anything is written. Integers have no infinity,
    // but one of those written changes no extreme.
    Expr start = base.like(combine == "mul" ? 1.0 : 0.0);
    if (combine == "min" || combine == "max") {
      double infinity = std::numeric_limits<double>::infinity();
      start = isFloat(x) ? base.like(combine == "max" ? -infinity : infinity)
                         : scatteredFlat(call, base, places, source, "set");
    }
    if (!start)
      return failure();
    base = select(untouched, base, start);
  }
  Expr y = scatteredFlat(call, base, places, source,
                         word == "mean" ? "add" : combine);
  if (!y)
    return failure();
  if (word == "mean") {
    Expr share = (self ? count + 1.0 : count).cast(elementOf(base));
    y = y / replaced(share, 0, 1);
  }
  return results({y.cast(element)});
}

static CallResults scatterAdd(Call &call) {
  Expr x = call[0];
  if (x.rank() == 0)
    return call.fail("expected operand #0 to have rank at least 1, but got 0");
  int64_t dim = call.dim("dim", 0, x.rank());
  if (failed(expectScatter(call, dim)))
    return failure();
  Expr places = placesAlong(call, x.shape(), dim, call[1]);
  return results({scatteredFlat(
      call, x, places, within(call, call[2], call[1].shape()), "add")});
}

static CallResults scatterNd(Call &call) {
  Expr x = call[0], tuples = call[1];
  StringRef word =
      call.text("reduce", "none", {"none", "add", "mul", "min", "max"});
  if (failed(call.expectInteger(1)) || failed(call.expectSameElements(0, 2)))
    return failure();
  int64_t length = tuples.rank() ? tuples.dim(tuples.rank() - 1) : 0;
  if (length < 1 || length > x.rank())
    return call.fail("expected indices whose last dimension is 1 to " +
                     Twine(x.rank()) + ", but got " +
                     infer::text(tuples.shape()));
  if (failed(call.expectShape(2, joined({tuples.shape().drop_back(),
                                         x.shape().drop_front(length)}))))
    return failure();
  Expr places = placesOfTuples(call, x.shape(), tuples, 0);
  int64_t rows = productOf(x.shape().take_front(length));
  Expr table = reshaped(call, x, joined({rows, x.shape().drop_front(length)}));
  return results({reshaped(
      call, scattered(call, table, places, call[2], combination(word)),
      x.shape())});
}

/// x with `values` written at x[indices].
static CallResults indexPut(Call &call) {
  bool accumulate = call.flag("accumulate", false);
  if (failed(call.expectSameElements(0, 1)))
    return failure();
  auto d = IndexedDims::of(call, 2);
  if (!d)
    return failure();
  Expr x = call[0];
  // Values are as x[indices] would be, broadcast.
  List order = d->toResult(), shown, back(order.size());
  List whole = joined({d->shape, d->rest});
  for (auto [i, from] : llvm::enumerate(order)) {
    shown.push_back(whole[from]);
    back[from] = i;
  }
  Expr values = call.stretch(call[1], shown);
  values = permuted(call, values, back);
  Expr moved = permuted(call, x, d->order);
  if (!values || !moved)
    return failure();
  Expr rows = reshaped(call, moved, joined({d->rows, d->rest}));
  Expr y = scattered(call, rows, d->places, values, accumulate ? "add" : "set");
  List undo(x.rank());
  for (auto [i, from] : llvm::enumerate(d->order))
    undo[from] = i;
  return results({permuted(call, reshaped(call, y, moved.shape()), undo)});
}

/// Parts along `dim` combined at indices.
static CallResults alongDim(Call &call, StringRef combine, double alpha) {
  Expr x = call[0], index = call[1];
  if (failed(call.expectInteger(1)) || failed(call.expectRank(1, 1, 1)) ||
      failed(call.expectSameElements(0, 2)))
    return failure();
  if (x.rank() == 0)
    return call.fail("expected operand #0 to have rank at least 1, but got 0");
  int64_t dim = call.dim("dim", 0, x.rank());
  if (call.failed() ||
      failed(call.expectShape(2, with(x.shape(), dim, index.dim(0)))))
    return failure();
  Expr valid;
  Expr at = wrapped(call, index, x.dim(dim), &valid);
  at = select(valid, at, at.like(-1));
  Expr source = moved(call, call[2], dim, 0);
  if (alpha != 1)
    source = source * alpha;
  Expr y = scattered(call, moved(call, x, dim, 0), at, source, combine);
  return results({moved(call, y, 0, dim)});
}
static CallResults indexAdd(Call &call) {
  double alpha = numberOf(call, "alpha", 1.0, call[0]);
  if (isBool(call[0]))
    return call.fail("expected operands to have numbers, but got bools");
  return alongDim(call, "add", alpha);
}
static CallResults indexCopy(Call &call) { return alongDim(call, "set", 1); }

/// Where the mask is true the next element of the source, in row-major order.
static CallResults maskedScatter(Call &call) {
  if (failed(call.expectBool(1)) || failed(call.expectSameElements(0, 2)))
    return failure();
  Expr x = call[0];
  Expr mask = call.stretch(call[1], x.shape());
  if (!mask)
    return failure();
  int64_t count = productOf(x.shape());
  Expr number = reshaped(call, mask, count).cast(call.builder.getI64Type());
  Expr nth = call.op("cumsum", number.value, {call.integerAttr("dim", 0)});
  if (!nth)
    return failure();
  Expr source = reshaped(call, call[2], productOf(call[2].shape()));
  Expr found = taken(call, source, 0, nth - 1.0);
  if (!found)
    return failure();
  return results({select(mask, reshaped(call, found, x.shape()), x)});
}

void tandem::addScatterFunctions(FunctionTable &table) {
  table.family("Writes by index");
  table.add("scatter_elements(x, index, source; dim=0, reduce='none')",
            "x with elements of the source at indices along a dimension; "
            "reduce: none (the last stays), add, mul, min, max",
            scatterElements);
  table.add("scatter_add(x, index, source; dim=0)",
            "x plus elements of the source at indices along a dimension",
            scatterAdd);
  table.add("scatter_reduce(x, index, source; dim=0, reduce='sum', "
            "include_self=true)",
            "x and elements of the source combined: sum, prod, mean, amax, "
            "amin; without x where anything is written if not `include_self`",
            scatterReduce);
  table.add("scatter_nd(x, index, updates; reduce='none')",
            "x with updates at tuples of indices, the index's last dimension",
            scatterNd);
  table.add("index_put(x, values, indices...; dims, accumulate=false)",
            "x with values at x[indices], broadcast; or added there", indexPut);
  table.add("index_add(x, index, source; dim=0, alpha=1.0)",
            "x plus alpha parts of the source at indices of a dimension",
            indexAdd);
  table.add("index_copy(x, index, source; dim=0)",
            "x with parts of the source at indices of a dimension", indexCopy);
  table.add("masked_scatter(x, mask, source)",
            "x with the next element of the source wherever the mask is true",
            maskedScatter);
}
