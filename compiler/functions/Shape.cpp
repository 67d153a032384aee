//===- Shape.cpp - functions that move elements ---------------------------===//
//
// Dimensions may be negative: they count from the end. Nothing is computed, so
// elements may have any type.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Build.h"
#include "ir/ops/Inference.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

//===----------------------------------------------------------------------===//
// The same elements in another shape
//===----------------------------------------------------------------------===//

/// The attribute `dim`, a number or a list, rising.
static List dimsOf(Call &call, int64_t rank) {
  if (call.isInteger("dim"))
    return {call.dim("dim", 0, rank)};
  return call.dims("dim", rank);
}

static CallResults squeeze(Call &call) {
  Expr x = call[0];
  List dims =
      call.hasAttribute("dim") ? dimsOf(call, x.rank()) : upTo(x.rank());
  List shape;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (x.dim(d) != 1 || !llvm::is_contained(dims, d))
      shape.push_back(x.dim(d));
  return results({reshaped(call, x, shape)});
}

static CallResults unsqueeze(Call &call) {
  Expr x = call[0];
  int64_t count =
      call.isInteger("dim") ? 1 : int64_t(call.integers("dim").size());
  List dims = dimsOf(call, x.rank() + count);
  if (call.failed())
    return failure();
  return results({unsqueezed(call, x, dims)});
}

static CallResults flatten(Call &call) {
  Expr x = call[0];
  if (x.rank() == 0)
    return results({reshaped(call, x, 1)});
  int64_t start = call.dim("start_dim", 0, x.rank());
  int64_t end = call.dim("end_dim", -1, x.rank());
  if (call.failed())
    return failure();
  if (end < start)
    return call.fail("expected 'start_dim' to be at most 'end_dim', but got " +
                     Twine(start) + " and " + Twine(end));
  Sizes shape = x.shape();
  return results(
      {reshaped(call, x,
                joined({shape.take_front(start),
                        productOf(shape.slice(start, end - start + 1)),
                        shape.drop_front(end + 1)}))});
}

/// `shape` with its -1 replaced so that there are `count` elements.
static std::optional<List> completed(Call &call, List shape, int64_t count) {
  std::string given = infer::text(shape);
  auto *unknown = llvm::find(shape, -1);
  if (unknown != shape.end()) {
    *unknown = 1;
    int64_t others = productOf(shape);
    if (llvm::is_contained(shape, -1) || others <= 0 || count % others) {
      (void)call.fail("expected a shape of " + Twine(count) +
                      " elements with one size left open, but got " + given);
      return std::nullopt;
    }
    *unknown = count / others;
  }
  if (llvm::any_of(shape, [](int64_t n) { return n < 0; }) ||
      productOf(shape) != count) {
    (void)call.fail("expected a shape of " + Twine(count) +
                    " elements, but got " + given);
    return std::nullopt;
  }
  return shape;
}

static CallResults view(Call &call) {
  Expr x = call[0];
  auto shape = completed(call, call.integers("shape"), productOf(x.shape()));
  if (!shape)
    return failure();
  return results({reshaped(call, x, *shape)});
}

static CallResults unflatten(Call &call) {
  Expr x = call[0];
  int64_t dim = call.dim("dim", 0, x.rank());
  if (call.failed())
    return failure();
  auto sizes = completed(call, call.integers("sizes"), x.dim(dim));
  if (!sizes)
    return failure();
  return results({reshaped(call, x,
                           joined({x.shape().take_front(dim), *sizes,
                                   x.shape().drop_front(dim + 1)}))});
}

//===----------------------------------------------------------------------===//
// Dimensions in another order
//===----------------------------------------------------------------------===//

static CallResults transpose(Call &call) {
  Expr x = call[0];
  int64_t a = call.dim("dim0", 0, x.rank()), b = call.dim("dim1", 1, x.rank());
  if (call.failed())
    return failure();
  List order = upTo(x.rank());
  std::swap(order[a], order[b]);
  return results({permuted(call, x, order)});
}

static CallResults movedim(Call &call) {
  Expr x = call[0];
  int64_t from = call.dim("source", 0, x.rank());
  int64_t to = call.dim("destination", 0, x.rank());
  if (call.failed())
    return failure();
  return results({moved(call, x, from, to)});
}

//===----------------------------------------------------------------------===//
// Repetition
//===----------------------------------------------------------------------===//

static CallResults expand(Call &call) {
  Expr x = call[0];
  List shape = call.integers("shape");
  int64_t more = int64_t(shape.size()) - x.rank();
  std::string given = infer::text(shape);
  bool fits = more >= 0;
  for (int64_t d = 0; fits && d < int64_t(shape.size()); ++d) {
    int64_t size = d < more ? 1 : x.dim(d - more);
    if (shape[d] == -1 && d >= more)
      shape[d] = size;
    fits = shape[d] >= 0 && (size == 1 || size == shape[d]);
  }
  if (!fits)
    return call.fail("expected a shape that " + infer::text(x.shape()) +
                     " stretches to, but got " + given);
  return results({call.stretch(x, shape)});
}

/// `x` repeated `repeats` times along each of the dimensions, as a whole; more
/// of them than x has come first.
static CallResults repeat(Call &call) {
  Expr x = call[0];
  List repeats = call.integers("repeats");
  int64_t more = int64_t(repeats.size()) - x.rank();
  if (more < 0 || llvm::any_of(repeats, [](int64_t n) { return n < 0; }))
    return call.fail("expected 'repeats' to have at least one entry per "
                     "dimension, each at least 0, but got " +
                     infer::text(repeats));
  List split, wide, merged;
  for (auto [d, count] : llvm::enumerate(repeats)) {
    int64_t size = int64_t(d) < more ? 1 : x.dim(d - more);
    split.append({1, size});
    wide.append({count, size});
    merged.push_back(productOf({count, size}));
  }
  if (productOf(merged) > kMaxElements)
    return call.fail("would have more elements than a tensor can have");
  Expr y = reshaped(call, x, split);
  return results(
      {reshaped(call, along(call, y, wide, upTo(wide.size())), merged)});
}

static CallResults repeatInterleave(Call &call) {
  Expr x = call[0];
  int64_t count = call.integer("repeats", 1);
  if (!call.hasAttribute("dim"))
    x = reshaped(call, x, productOf(x.shape()));
  int64_t dim = call.dim("dim", 0, x.rank());
  if (call.failed())
    return failure();
  if (count < 0 || productOf({productOf(x.shape()), count}) > kMaxElements)
    return call.fail("expected 'repeats' to be at least 0 and the result a "
                     "tensor, but got " +
                     Twine(count));
  Expr y = unsqueezed(call, x, dim + 1);
  y = along(call, y, with(y.shape(), dim + 1, count), upTo(y.rank()));
  return results({reshaped(call, y, with(x.shape(), dim, x.dim(dim) * count))});
}

static CallResults flip(Call &call) {
  List dims = dimsOf(call, call[0].rank());
  if (call.failed())
    return failure();
  return results({reversed(call, call[0], dims)});
}

static CallResults roll(Call &call) {
  Expr x = call[0];
  List shifts = call.isInteger("shifts") ? List{call.integer("shifts", 0)}
                                         : call.integers("shifts");
  List dims = call.isInteger("dim") ? List{call.integer("dim", 0)}
                                    : call.integers("dim");
  List shape(x.shape());
  bool flat = !call.hasAttribute("dim");
  if (flat) {
    dims = {0};
    x = reshaped(call, x, productOf(shape));
  }
  if (shifts.size() != dims.size())
    return call.fail("expected as many 'shifts' as 'dim', but got " +
                     infer::text(shifts) + " and " + infer::text(dims));
  for (auto [shift, dim] : llvm::zip(shifts, dims)) {
    if (dim < -x.rank() || dim >= x.rank())
      return call.fail("expected 'dim' to be dimensions of a tensor of rank " +
                       Twine(x.rank()) + ", but got " + infer::text(dims));
    int64_t d = dim < 0 ? dim + x.rank() : dim, size = x.dim(d);
    if (size == 0)
      continue;
    int64_t first = (size - shift % size) % size;
    x = concatenated(
        call,
        {sliced(call, x, d, first, size - first), sliced(call, x, d, 0, first)},
        d);
    if (!x)
      return failure();
  }
  return results({flat ? reshaped(call, x, shape) : x});
}

//===----------------------------------------------------------------------===//
// Parts and wholes
//===----------------------------------------------------------------------===//

/// start, start + step, ... before end, as Python has it: negative ones count
/// from the end, and what is outside is moved in.
static CallResults sliceAlong(Call &call) {
  Expr x = call[0];
  int64_t dim = call.dim("dim", 0, x.rank()), step = call.integer("step", 1);
  if (call.failed())
    return failure();
  if (step == 0)
    return call.fail("expected 'step' not to be 0");
  // No step of a larger size reaches a second element.
  int64_t size = x.dim(dim);
  step = std::clamp(step, -kMaxElements, kMaxElements);
  int64_t least = step > 0 ? 0 : -1, most = step > 0 ? size : size - 1;
  auto bound = [&](StringRef name, int64_t otherwise) {
    if (!call.hasAttribute(name))
      return otherwise;
    int64_t given = call.integer(name, 0);
    return std::clamp(given < 0 ? given + size : given, least, most);
  };
  int64_t start = bound("start", step > 0 ? 0 : most);
  int64_t end = bound("end", step > 0 ? most : least);
  if (call.failed())
    return failure();
  if (step > 0) {
    int64_t count = end > start ? (end - start - 1) / step + 1 : 0;
    return results({sliced(call, x, dim, start, count, step)});
  }
  int64_t count = start > end ? (start - end - 1) / -step + 1 : 0;
  int64_t last = start + (count - 1) * step;
  Expr part = sliced(call, x, dim, count ? last : 0, count, -step);
  return results({count > 1 ? reversed(call, part, dim) : part});
}

static CallResults narrow(Call &call) {
  Expr x = call[0];
  int64_t dim = call.dim("dim", 0, x.rank());
  int64_t start = call.integer("start", 0), count = call.integer("length", 1);
  if (call.failed())
    return failure();
  int64_t size = x.dim(dim);
  start += start < 0 ? size : 0;
  if (start < 0 || count < 0 || start > size || count > size - start)
    return call.fail("expected 'start' and 'length' within a dimension of " +
                     Twine(size) + ", but got " + Twine(start) + " and " +
                     Twine(count));
  return results({sliced(call, x, dim, start, count)});
}

/// The index `index` of dimension `dim`, both of which may be negative.
static std::optional<std::pair<int64_t, int64_t>> place(Call &call) {
  Expr x = call[0];
  int64_t dim = call.dim("dim", 0, x.rank());
  int64_t index = call.integer("index", 0);
  if (call.failed())
    return std::nullopt;
  int64_t size = x.dim(dim);
  if (index < -size || index >= size) {
    (void)call.fail("expected 'index' within a dimension of " + Twine(size) +
                    ", but got " + Twine(index));
    return std::nullopt;
  }
  return std::pair(dim, index < 0 ? index + size : index);
}

static CallResults selectIndex(Call &call) {
  auto at = place(call);
  if (!at)
    return failure();
  auto [dim, index] = *at;
  Expr x = call[0];
  return results({reshaped(call, sliced(call, x, dim, index, 1),
                           without(x.shape(), dim))});
}

/// Parts of `sizes` along `dim`.
static CallResults parts(Call &call, int64_t dim, Sizes sizes) {
  SmallVector<Value> list;
  int64_t start = 0;
  for (int64_t size : sizes) {
    Expr part = sliced(call, call[0], dim, start, size);
    if (!part)
      return failure();
    list.push_back(part);
    start += size;
  }
  return list;
}

/// Parts of `size` each, the last of what is left.
static CallResults equalParts(Call &call, int64_t dim, int64_t size) {
  int64_t whole = call[0].dim(dim);
  List sizes;
  for (int64_t start = 0; start < whole; start += size)
    sizes.push_back(std::min(size, whole - start));
  if (sizes.empty())
    sizes.push_back(0);
  return parts(call, dim, sizes);
}

static CallResults split(Call &call) {
  Expr x = call[0];
  int64_t dim = call.dim("dim", 0, x.rank());
  if (call.failed())
    return failure();
  if (call.isInteger("sizes")) {
    int64_t size = call.integer("sizes", 1);
    if (size < 1)
      return call.fail("expected 'sizes' to be at least 1, but got " +
                       Twine(size));
    return equalParts(call, dim, size);
  }
  List sizes = call.integers("sizes");
  int64_t sum = 0;
  for (int64_t size : sizes)
    sum = size < 0 || size > x.dim(dim) ? -kMaxElements : sum + size;
  if (sum != x.dim(dim))
    return call.fail("expected 'sizes' that add up to " + Twine(x.dim(dim)) +
                     ", but got " + infer::text(sizes));
  return parts(call, dim, sizes);
}

static CallResults chunk(Call &call) {
  Expr x = call[0];
  int64_t dim = call.dim("dim", 0, x.rank());
  int64_t count = call.integer("chunks", 1);
  if (call.failed())
    return failure();
  if (count < 1)
    return call.fail("expected 'chunks' to be at least 1, but got " +
                     Twine(count));
  count = std::min(count, std::max<int64_t>(x.dim(dim), 1));
  return equalParts(call, dim,
                    std::max<int64_t>(1, (x.dim(dim) - 1) / count + 1));
}

static CallResults unbind(Call &call) {
  Expr x = call[0];
  int64_t dim = call.dim("dim", 0, x.rank());
  if (call.failed())
    return failure();
  SmallVector<Value> list;
  for (int64_t i = 0; i < x.dim(dim); ++i) {
    Expr part =
        reshaped(call, sliced(call, x, dim, i, 1), without(x.shape(), dim));
    if (!part)
      return failure();
    list.push_back(part);
  }
  return list;
}

static CallResults cat(Call &call) {
  int64_t dim = call.dim("dim", 0, call[0].rank());
  if (call.failed())
    return failure();
  if (failed(expectOneType(call)))
    return failure();
  SmallVector<Expr> list;
  int64_t size = 0;
  for (size_t i = 0; i < call.size(); ++i) {
    Expr x = call[i];
    List expected(call[0].shape());
    if (x.rank() == int64_t(expected.size()))
      expected[dim] = x.dim(dim);
    if (failed(call.expectShape(i, expected)))
      return failure();
    size = std::min(size + x.dim(dim), kMaxElements + 1);
    list.push_back(x);
  }
  if (productOf(with(call[0].shape(), dim, size)) > kMaxElements)
    return call.fail("would have more elements than a tensor can have");
  return results({concatenated(call, list, dim)});
}

static CallResults stack(Call &call) {
  int64_t dim = call.dim("dim", 0, call[0].rank() + 1);
  if (call.failed() || failed(expectOneType(call)))
    return failure();
  SmallVector<Expr> list;
  for (size_t i = 0; i < call.size(); ++i) {
    if (failed(call.expectSameShape(0, i)))
      return failure();
    list.push_back(unsqueezed(call, call[i], dim));
  }
  return results({concatenated(call, list, dim)});
}

/// `x` with its part along `dim`, start, start + step, ... of `part`'s size,
/// replaced by `part`.
static Expr replacedPart(Call &call, const Expr &x, const Expr &part,
                         int64_t dim, int64_t start, int64_t step) {
  if (part.dim(dim) == 0)
    return x;
  Expr index = indices(call, call.builder.getI64Type(), x.shape(), dim);
  int64_t count = part.dim(dim);
  int64_t end = start + (count - 1) * step + 1;
  List none(x.rank(), 0);
  Expr spread =
      call.op("pad", part.value,
              {call.ints("low", with(none, dim, start)),
               call.ints("high", with(none, dim, x.dim(dim) - end)),
               call.ints("interior", with(none, dim, step - 1)),
               call.builder.getNamedAttr(
                   "value", call.builder.getZeroAttr(elementOf(part)))});
  // Which elements they are: the same padding of true.
  Expr inside = call.op(
      "pad", call.full(call.builder.getI1Type(), part.shape(), 1).value,
      {call.ints("low", with(none, dim, start)),
       call.ints("high", with(none, dim, x.dim(dim) - end)),
       call.ints("interior", with(none, dim, step - 1)),
       call.builder.getNamedAttr("value", call.builder.getBoolAttr(false))});
  if (!index || !spread || !inside)
    return {};
  return select(inside, spread, x);
}

static CallResults selectScatter(Call &call) {
  auto at = place(call);
  if (!at || failed(call.expectSameElements(0, 1)))
    return failure();
  auto [dim, index] = *at;
  if (failed(call.expectShape(1, without(call[0].shape(), dim))))
    return failure();
  Expr part = unsqueezed(call, call[1], dim);
  return results({replacedPart(call, call[0], part, dim, index, 1)});
}

static CallResults sliceScatter(Call &call) {
  Expr x = call[0];
  int64_t dim = call.dim("dim", 0, x.rank());
  int64_t step = call.integer("step", 1);
  if (call.failed() || failed(call.expectSameElements(0, 1)))
    return failure();
  if (step < 1)
    return call.fail("expected 'step' to be at least 1, but got " +
                     Twine(step));
  int64_t size = x.dim(dim);
  auto bound = [&](StringRef name, int64_t otherwise) {
    int64_t given = call.integer(name, otherwise);
    return std::clamp<int64_t>(given < 0 ? given + size : given, 0, size);
  };
  int64_t start = bound("start", 0), end = bound("end", size);
  int64_t count = end > start ? (end - start - 1) / step + 1 : 0;
  if (call.failed() || failed(call.expectShape(1, with(x.shape(), dim, count))))
    return failure();
  return results({replacedPart(call, x, call[1], dim, start, step)});
}

void tandem::addShapeFunctions(FunctionTable &table) {
  table.family("Shape");
  table.add("squeeze(x; dim)",
            "without dimensions of 1: all of them, or those of `dim` (a number "
            "or a list)",
            squeeze);
  table.add("unsqueeze(x; dim)",
            "with dimensions of 1, which are `dim` (a number or a list) of the "
            "result",
            unsqueeze);
  table.add("flatten(x; start_dim=0, end_dim=-1)",
            "some neighbouring dimensions as one", flatten);
  table.add("unflatten(x; dim, sizes)",
            "one dimension as several, one of which may be -1", unflatten);
  table.add("view(x; shape)",
            "the same elements in another shape, one size of which may be -1",
            view);
  table.add("transpose(x; dim0=0, dim1=1)", "two dimensions swapped",
            transpose);
  table.add("movedim(x; source, destination)", "one dimension at another place",
            movedim);
  table.add("expand(x; shape)", "stretched from sizes of 1; -1 keeps a size",
            expand);
  table.add("repeat(x; repeats)", "the whole repeated along each dimension",
            repeat);
  table.add("repeat_interleave(x; repeats, dim)",
            "each element repeated along a dimension; flat without one",
            repeatInterleave);
  table.add("flip(x; dim)", "reversed along dimensions", flip);
  table.add("roll(x; shifts, dim)",
            "shifted along dimensions; what leaves at one end enters at the "
            "other; flat without dimensions",
            roll);
  table.add("slice_along(x; dim=0, start, end, step=1)",
            "start, start + step, ... before end, as Python has it; the step "
            "may be negative",
            sliceAlong);
  table.add("narrow(x; dim=0, start=0, length=1)",
            "`length` elements from `start` on", narrow);
  table.add("select_index(x; dim=0, index=0)",
            "one index of a dimension, which disappears", selectIndex);
  table.add("split(x; dim=0, sizes)",
            "parts of given sizes, or of one size and a rest", split);
  table.add("chunk(x; dim=0, chunks)", "at most `chunks` parts of one size",
            chunk);
  table.add("unbind(x; dim=0)", "each index of a dimension", unbind);
  table.add("cat(xs...; dim=0)", "one after the other", cat);
  table.add("stack(xs...; dim=0)", "along a new dimension", stack);
  table.add("select_scatter(x, part; dim=0, index=0)",
            "x with one index of a dimension replaced", selectScatter);
  table.add("slice_scatter(x, part; dim=0, start, end, step=1)",
            "x with a slice replaced", sliceScatter);
}
