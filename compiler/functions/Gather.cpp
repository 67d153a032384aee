//===- Gather.cpp - functions that look elements up by index --------------===//
//
// Indices are integers of any type, negative ones counted from the end. One
// that is outside gives NaN (of integers and bools 0) and takes no gradient.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Indexing.h"
#include "ir/Ops.h"
#include "ir/ops/Composite.h"
#include "ir/ops/Inference.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

//===----------------------------------------------------------------------===//
// Places in row-major order
//===----------------------------------------------------------------------===//

Expr functions::linearPlaces(Call &call, Sizes sizes, ArrayRef<Expr> index) {
  Expr linear, valid;
  for (auto [size, part] : llvm::zip_equal(sizes, index)) {
    Expr at = wrapped(call, part, size, &valid);
    if (!at)
      return at;
    linear = linear ? linear * double(size) + at : at;
  }
  return select(valid, linear, linear.like(-1));
}

Expr functions::placesAlong(Call &call, Sizes shape, int64_t dim,
                            const Expr &index) {
  SmallVector<Expr> all;
  for (int64_t d = 0; d < index.rank(); ++d)
    all.push_back(
        d == dim ? index
                 : indices(call, call.builder.getI64Type(), index.shape(), d));
  return linearPlaces(call, shape, all);
}

Expr functions::placesOfTuples(Call &call, Sizes shape, const Expr &tuples,
                               int64_t batch) {
  int64_t last = tuples.rank() - 1, length = tuples.dim(last);
  Sizes outer = tuples.shape().drop_back();
  SmallVector<Expr> all;
  for (int64_t d = 0; d < batch; ++d)
    all.push_back(indices(call, call.builder.getI64Type(), outer, d));
  for (int64_t i = 0; i < length; ++i)
    all.push_back(reshaped(call, sliced(call, tuples, last, i, 1), outer));
  return linearPlaces(call, shape.take_front(batch + length), all);
}

//===----------------------------------------------------------------------===//
// One index for each element
//===----------------------------------------------------------------------===//

LogicalResult functions::expectIndexAlong(Call &call, size_t x, size_t index,
                                          int64_t dim) {
  if (failed(call.expectInteger(index)))
    return failure();
  Sizes shape = call[x].shape(), given = call[index].shape();
  bool fits = shape.size() == given.size();
  for (int64_t d = 0; fits && d < int64_t(shape.size()); ++d)
    fits = d == dim || given[d] <= shape[d];
  if (fits)
    return success();
  return call.fail("expected indices of a shape within " + infer::text(shape) +
                   " but for dimension " + Twine(dim) + ", but got " +
                   infer::text(given));
}

static CallResults gather(Call &call) {
  Expr x = call[0], index = call[1];
  if (x.rank() == 0 && index.rank() == 0)
    return results({x});
  int64_t dim = call.dim("dim", 0, x.rank());
  if (call.failed() || failed(expectIndexAlong(call, 0, 1, dim)))
    return failure();
  Expr places = placesAlong(call, x.shape(), dim, index);
  return results(
      {taken(call, reshaped(call, x, productOf(x.shape())), 0, places)});
}

static CallResults takeAlongDim(Call &call) {
  Expr x = call[0], index = call[1];
  if (failed(call.expectInteger(1)))
    return failure();
  if (!call.hasAttribute("dim")) {
    x = reshaped(call, x, productOf(x.shape()));
    index = reshaped(call, index, productOf(index.shape()));
    return results({taken(call, x, 0, wrapped(call, index, x.dim(0)))});
  }
  int64_t dim = call.dim("dim", 0, x.rank());
  if (call.failed() || failed(call.expectRank(1, x.rank(), x.rank())))
    return failure();
  // All but the dimension itself stretch to each other.
  auto shape =
      call.broadcastShape(with(x.shape(), dim, 1), with(index.shape(), dim, 1));
  if (!shape)
    return failure();
  Expr table = call.stretch(x, with(*shape, dim, x.dim(dim)));
  Expr places = call.stretch(index, with(*shape, dim, index.dim(dim)));
  if (!table || !places)
    return failure();
  return results({call.call("gather", {table.value, places.value},
                            {call.integerAttr("dim", dim)})});
}

//===----------------------------------------------------------------------===//
// One index for each row
//===----------------------------------------------------------------------===//

static CallResults indexSelect(Call &call) {
  Expr x = call[0];
  if (x.rank() == 0)
    return call.fail("expected operand #0 to have rank at least 1, but got 0");
  int64_t dim = call.dim("dim", 0, x.rank());
  if (call.failed() || failed(call.expectInteger(1)))
    return failure();
  return results({taken(call, x, dim, wrapped(call, call[1], x.dim(dim)))});
}

static CallResults gatherNd(Call &call) {
  Expr x = call[0], tuples = call[1];
  int64_t batch = call.integer("batch_dims", 0);
  if (failed(call.expectInteger(1)))
    return failure();
  int64_t length = tuples.rank() ? tuples.dim(tuples.rank() - 1) : int64_t(0);
  if (batch < 0 || tuples.rank() < 1 || batch >= tuples.rank() || length < 1 ||
      length > x.rank() - batch ||
      x.shape().take_front(batch) != tuples.shape().take_front(batch))
    return call.fail("expected indices [batch..., n..., k] for 'batch_dims' " +
                     Twine(batch) + " of the shape " + infer::text(x.shape()) +
                     " and k of its other dimensions, but got " +
                     infer::text(tuples.shape()));
  Expr places = placesOfTuples(call, x.shape(), tuples, batch);
  int64_t rows = productOf(x.shape().take_front(batch + length));
  Expr table =
      reshaped(call, x, joined({rows, x.shape().drop_front(batch + length)}));
  return results({taken(call, table, 0, places)});
}

std::optional<IndexedDims> IndexedDims::of(Call &call, size_t first) {
  IndexedDims d;
  Expr x = call[0];
  int64_t count = int64_t(call.size()) - int64_t(first);
  d.dims = call.dims("dims", x.rank(), upTo(std::min(count, x.rank())));
  if (call.failed())
    return std::nullopt;
  // The first operand belongs to the first of them.
  List given = call.integers("dims", d.dims);
  for (int64_t &dim : given)
    dim += dim < 0 ? x.rank() : 0;
  if (given != d.dims) {
    (void)call.fail("expected 'dims' to rise, but got " + infer::text(given));
    return std::nullopt;
  }
  if (int64_t(d.dims.size()) != count || count < 1) {
    (void)call.fail("expected one tensor of indices for each of 'dims', but "
                    "got " +
                    Twine(count) + " for " + infer::text(d.dims));
    return std::nullopt;
  }
  SmallVector<Expr> all;
  for (size_t i = first; i < call.size(); ++i) {
    if (failed(call.expectInteger(i)))
      return std::nullopt;
    all.push_back(call[i].cast(call.builder.getI64Type()));
  }
  if (failed(call.broadcast(all)))
    return std::nullopt;
  d.shape = List(all[0].shape());
  List sizes;
  for (int64_t dim : d.dims)
    sizes.push_back(x.dim(dim));
  d.places = linearPlaces(call, sizes, all);
  d.order = d.dims;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (!llvm::is_contained(d.dims, i)) {
      d.order.push_back(i);
      d.rest.push_back(x.dim(i));
    }
  d.rows = productOf(sizes);
  // Neighbours are replaced where they are; others go to the front.
  bool together = d.dims.back() - d.dims.front() == count - 1;
  d.at = together ? d.dims.front() : 0;
  if (!d.places)
    return std::nullopt;
  return d;
}

/// x[indices], as NumPy's advanced indexing.
static CallResults indexed(Call &call) {
  auto d = IndexedDims::of(call, 1);
  if (!d)
    return failure();
  Expr rows = reshaped(call, permuted(call, call[0], d->order),
                       joined({d->rows, d->rest}));
  Expr y = taken(call, rows, 0, d->places);
  return results({permuted(call, y, d->toResult())});
}

List IndexedDims::toResult() const {
  List order;
  int64_t count = shape.size();
  for (int64_t i = 0; i < at; ++i)
    order.push_back(count + i);
  llvm::append_range(order, upTo(count));
  for (int64_t i = at, n = rest.size(); i < n; ++i)
    order.push_back(count + i);
  return order;
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

static CallResults oneHot(Call &call) {
  if (failed(call.expectInteger(0)))
    return failure();
  Expr x = call[0].cast(call.builder.getI64Type());
  int64_t classes = call.integer("num_classes", 0);
  if (classes < 1 || productOf({productOf(x.shape()), classes}) > kMaxElements)
    return call.fail("expected 'num_classes' to be at least 1 and the result "
                     "a tensor, but got " +
                     Twine(classes));
  List shape = joined({x.shape(), classes});
  Expr label = along(call, x, shape, upTo(x.rank()));
  Expr column = indices(call, call.builder.getI64Type(), shape, x.rank());
  if (!label || !column)
    return failure();
  return results({isEqual(label, column).cast(call.builder.getI64Type())});
}

/// Each sequence reversed up to its own length.
static CallResults reverseSequence(Call &call) {
  Expr x = call[0];
  int64_t batch = call.dim("batch_dim", 0, x.rank());
  int64_t time = call.dim("time_dim", 1, x.rank());
  if (call.failed() || failed(call.expectInteger(1)))
    return failure();
  if (batch == time)
    return call.fail("expected two distinct dimensions, but got " +
                     Twine(time) + " twice");
  if (failed(call.expectShape(1, x.dim(batch))))
    return failure();
  Type i64 = call.builder.getI64Type();
  List shape{x.dim(batch), x.dim(time)};
  Expr length = along(call, call[1].cast(i64), shape, 0);
  Expr at = indices(call, i64, shape, 1);
  if (!length || !at)
    return failure();
  Expr source = select(isLess(at, length), length - at - 1.0, at);
  // [batch, time, rest...], looked up along the time.
  List order{batch, time}, back(x.rank());
  for (int64_t d = 0; d < x.rank(); ++d)
    if (d != batch && d != time)
      order.push_back(d);
  for (auto [i, d] : llvm::enumerate(order))
    back[d] = i;
  Expr table = permuted(call, x, order);
  if (!table)
    return failure();
  Expr row = indices(call, i64, shape, 0);
  Expr places = linearPlaces(call, shape, {row, source});
  Expr flat = reshaped(call, table,
                       joined({productOf(shape), table.shape().drop_front(2)}));
  return results({permuted(call, taken(call, flat, 0, places), back)});
}

static CallResults embeddingBag(Call &call) {
  StringRef mode = call.text("mode", "mean", {"sum", "mean", "max"});
  if (failed(call.expectRank(0, 2, 2)) || failed(call.expectFloat(0)) ||
      failed(call.expectInteger(1)) || failed(call.expectRank(1, 2, 2)))
    return failure();
  if (call.has(2) && mode != "sum")
    return call.fail("expected 'mode' to be 'sum' with weights, but got '" +
                     mode + "'");
  if (call.has(2) && (failed(call.expectSameShape(1, 2)) ||
                      failed(call.expectSameElements(0, 2))))
    return failure();
  Expr table = call[0];
  Expr rows = taken(call, table, 0, wrapped(call, call[1], table.dim(0)));
  if (!rows)
    return failure();
  rows = wide(rows);
  if (call.has(2)) {
    Expr weights = along(call, wide(call[2]), rows.shape(), {0, 1});
    if (!weights)
      return failure();
    rows = rows * weights;
  }
  Expr y = reduced(call, mode == "max" ? "reduce_max" : "reduce_sum", rows, 1);
  if (!y)
    return failure();
  if (mode == "mean")
    y = y / double(rows.dim(1));
  return results({y.cast(elementOf(table))});
}

void tandem::addGatherFunctions(FunctionTable &table) {
  table.family("Lookups by index");
  table.add("gather(x, index; dim=0)",
            "for each index the element there along a dimension, at the "
            "index's own place in the others",
            gather);
  table.add("take_along_dim(x, index; dim)",
            "gather, broadcast; from all elements without a dimension",
            takeAlongDim);
  table.add("index_select(x, index; dim=0)",
            "elements along a dimension, which the index's dimensions replace",
            indexSelect);
  table.add("gather_nd(x, index; batch_dims=0)",
            "for each tuple in the last dimension of the index the elements "
            "there",
            gatherNd);
  table.add("index(x, indices...; dims)",
            "x[indices], as NumPy's: one tensor for each of `dims`, the first "
            "ones by default, broadcast",
            indexed);
  table.add("one_hot(x; num_classes)",
            "1 at the index in a new last dimension, else 0, as i64", oneHot);
  table.add("reverse_sequence(x, lengths; batch_dim=0, time_dim=1)",
            "each sequence reversed up to its length", reverseSequence);
  table.add("embedding_bag(table, index, weights?; mode='mean')",
            "the sum, mean or maximum of rows for each row of indices",
            embeddingBag);
}
