//===- View.cpp - views of a storage, and where their elements lie --------===//
//
// Each view maps sizes and steps to sizes and steps. A reshape is free where
// each run of dimensions that it joins or splits lies at one constant step; an
// as_strided view counts the elements of its operand in row-major order, so it
// is free where all of them lie at one constant step.
//
//===----------------------------------------------------------------------===//
#include "runtime/artifact/View.h"

#include <algorithm>
#include <string>

namespace tandem::artifact {

namespace {

constexpr std::string_view opNames[] = {"reshape",   "permute",    "slice",
                                        "broadcast", "as_strided", "bitcast",
                                        "detach"};

using Ints = std::span<const int64_t>;

Status wrong(const View &view, const std::string &what) {
  return Status::usage("'" + std::string(spelling(view.op)) + "': " + what);
}

/// The number of elements of a tensor: its type was checked.
int64_t count(Ints shape) {
  int64_t product = 1;
  for (int64_t size : shape)
    product *= size;
  return product;
}

/// No more dimensions than there is room for are taken, whatever `shape` has.
void setRowMajor(Ints shape, Layout &layout) {
  layout.rank = static_cast<int>(std::min(shape.size(), layout.sizes.size()));
  int64_t step = 1;
  for (int i = layout.rank - 1; i >= 0; --i) {
    layout.sizes[i] = shape[i];
    layout.steps[i] = step;
    step *= std::max<int64_t>(shape[i], 1);
  }
}

Status reshape(const View &view, Layout &layout) {
  if (count(view.shape) != count(layout.shape()))
    return wrong(view, "expected the elements of shape " +
                           toText(layout.shape()) + " but got shape " +
                           toText(view.shape));
  if (count(view.shape) == 0) {
    setRowMajor(view.shape, layout);
    return Status::success();
  }
  // The operand's dimensions in chunks that lie at one step, from the last on;
  // the result's dimensions must end where a chunk ends.
  Layout made = layout;
  made.rank = static_cast<int>(view.shape.size());
  std::copy(view.shape.begin(), view.shape.end(), made.sizes.begin());
  int to = made.rank - 1;
  int64_t step = layout.rank ? layout.steps[layout.rank - 1] : 1;
  int64_t chunk = 1, used = 1;
  bool fits = true;
  for (int from = layout.rank - 1; from >= 0 && fits; --from) {
    chunk *= layout.sizes[from];
    bool ends = from == 0 || (layout.sizes[from - 1] != 1 &&
                              layout.steps[from - 1] != chunk * step);
    if (!ends)
      continue;
    for (; to >= 0 && (used < chunk || made.sizes[to] == 1); --to) {
      made.steps[to] = used * step;
      used *= made.sizes[to];
    }
    fits = used == chunk;
    if (from > 0)
      step = layout.steps[from - 1];
    chunk = used = 1;
  }
  for (; to >= 0; --to) // of a scalar: all sizes are 1
    made.steps[to] = 1;
  if (!fits)
    return wrong(view, "expected strides that let shape " +
                           toText(layout.shape()) + " be seen as " +
                           toText(view.shape) +
                           " without a copy, but got strides " +
                           toText(layout.strides()));
  layout = made;
  return Status::success();
}

Status permute(const View &view, Layout &layout) {
  std::array<bool, maxManifestRank> seen{};
  bool fits = view.dims.size() == size_t(layout.rank);
  for (int64_t dim : view.dims) {
    fits = fits && dim >= 0 && dim < layout.rank && !seen[dim];
    if (!fits)
      break;
    seen[dim] = true;
  }
  if (!fits)
    return wrong(view, "expected a permutation of " +
                           std::to_string(layout.rank) +
                           " dimensions but got " + toText(view.dims));
  Layout made = layout;
  for (int i = 0; i < layout.rank; ++i) {
    made.sizes[i] = layout.sizes[view.dims[i]];
    made.steps[i] = layout.steps[view.dims[i]];
  }
  layout = made;
  return Status::success();
}

Status slice(const View &view, Layout &layout) {
  auto rank = size_t(layout.rank);
  if (view.starts.size() != rank || view.limits.size() != rank ||
      view.strides.size() != rank)
    return wrong(view, "expected starts, limits and strides for each of " +
                           std::to_string(rank) + " dimensions");
  for (size_t i = 0; i < rank; ++i) {
    int64_t start = view.starts[i], limit = view.limits[i];
    int64_t stride = view.strides[i];
    if (start < 0 || limit < start || limit > layout.sizes[i] || stride < 1)
      return wrong(view,
                   "expected a range within dimension " + std::to_string(i) +
                       " of shape " + toText(layout.shape()) + " but got [" +
                       std::to_string(start) + ", " + std::to_string(limit) +
                       ") by " + std::to_string(stride));
    int64_t size = limit == start ? 0 : (limit - start - 1) / stride + 1;
    // An empty slice stays where it is: its end may be outside.
    if (size > 0)
      layout.offset += start * layout.steps[i];
    layout.sizes[i] = size;
    // A single element has no step, and a large one may overflow.
    if (size > 1)
      layout.steps[i] *= stride;
  }
  return Status::success();
}

Status broadcast(const View &view, Layout &layout) {
  bool fits = view.dims.size() == size_t(layout.rank);
  Layout made = layout;
  made.rank = static_cast<int>(view.shape.size());
  for (int i = 0; fits && i < made.rank; ++i) {
    made.sizes[i] = view.shape[i];
    made.steps[i] = 0;
  }
  std::array<bool, maxManifestRank> seen{};
  for (int i = 0; fits && i < layout.rank; ++i) {
    int64_t dim = view.dims[i];
    fits = dim >= 0 && dim < made.rank && !seen[dim] &&
           (layout.sizes[i] == 1 || layout.sizes[i] == view.shape[dim]);
    if (!fits)
      break;
    seen[dim] = true;
    made.steps[dim] = layout.sizes[i] == 1 ? 0 : layout.steps[i];
  }
  if (!fits)
    return wrong(view, "expected dimensions that spread shape " +
                           toText(layout.shape()) + " over " +
                           toText(view.shape) + " but got " +
                           toText(view.dims));
  layout = made;
  return Status::success();
}

Status asStrided(const View &view, Layout &layout) {
  int64_t total = count(layout.shape());
  bool fits = view.strides.size() == view.shape.size();
  int64_t low = view.offset, high = view.offset;
  for (size_t i = 0; fits && i < view.shape.size(); ++i) {
    int64_t reach = 0;
    int64_t &end = view.strides[i] < 0 ? low : high;
    fits = !__builtin_mul_overflow(std::max<int64_t>(view.shape[i] - 1, 0),
                                   view.strides[i], &reach) &&
           !__builtin_add_overflow(end, reach, &end);
  }
  if (!fits || (count(view.shape) != 0 && (low < 0 || high >= total)))
    return wrong(view, "expected elements among the " + std::to_string(total) +
                           " of shape " + toText(layout.shape()) +
                           " but got sizes " + toText(view.shape) +
                           ", strides " + toText(view.strides) +
                           " and offset " + std::to_string(view.offset));
  if (count(view.shape) == 0) {
    setRowMajor(view.shape, layout);
    return Status::success();
  }
  // All elements of the operand at one step?
  int64_t step = 0, run = 1;
  for (int i = layout.rank - 1; i >= 0 && total > 1; --i) {
    if (layout.sizes[i] == 1)
      continue;
    if (run == 1)
      step = layout.steps[i];
    else if (layout.steps[i] != step * run)
      return wrong(view, "expected elements at a constant stride but got "
                         "shape " +
                             toText(layout.shape()) + " with strides " +
                             toText(layout.strides()));
    run *= layout.sizes[i];
  }
  layout.rank = static_cast<int>(view.shape.size());
  for (int i = 0; i < layout.rank; ++i) {
    layout.sizes[i] = view.shape[i];
    layout.steps[i] = view.shape[i] > 1 ? view.strides[i] * step : 0;
  }
  layout.offset += view.offset * step;
  return Status::success();
}

Status bitcast(const View &view, Layout &layout) {
  if (byteSize(view.dtype) != byteSize(layout.dtype))
    return wrong(view, "expected a type as wide as '" +
                           std::string(spelling(layout.dtype)) + "' but got '" +
                           std::string(spelling(view.dtype)) + "'");
  layout.dtype = view.dtype;
  return Status::success();
}

/// Where a tensor has no elements its strides may be anything: nothing is
/// computed from them.
void dropStrides(Layout &layout) {
  if (count(layout.shape()) == 0) {
    Layout was = layout;
    setRowMajor(was.shape(), layout);
  }
}

} // namespace

std::string toText(Ints sizes) {
  constexpr size_t most = maxManifestRank + 1;
  std::string text = "[";
  for (size_t i = 0; i < std::min(sizes.size(), most); ++i)
    text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + (sizes.size() > most
                     ? ", ... of " + std::to_string(sizes.size()) + "]"
                     : "]");
}

std::optional<int64_t> tensorBytes(DType dtype, Ints shape) {
  if (shape.size() > static_cast<size_t>(maxManifestRank))
    return std::nullopt;
  int64_t bytes = byteSize(dtype);
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0)
      return std::nullopt;
    empty |= size == 0;
    // A huge size beside a zero is refused too: strides are products of sizes.
    if (size > 0 &&
        (__builtin_mul_overflow(bytes, size, &bytes) || bytes > maxBytes))
      return std::nullopt;
  }
  return empty ? 0 : bytes;
}

std::string_view spelling(View::Op op) { return opNames[static_cast<int>(op)]; }

std::optional<View::Op> parseViewOp(std::string_view name) {
  for (size_t i = 0; i < std::size(opNames); ++i)
    if (opNames[i] == name)
      return static_cast<View::Op>(i);
  return std::nullopt;
}

Layout Layout::of(DType dtype, Ints shape, Ints strides) {
  Layout layout;
  layout.dtype = dtype;
  setRowMajor(shape, layout);
  if (!strides.empty())
    std::copy_n(strides.begin(), layout.rank, layout.steps.begin());
  return layout;
}

Status applyViews(std::span<const View> chain, Layout &layout) {
  dropStrides(layout);
  for (const View &view : chain) {
    // The shape of a view that has none is that of a scalar.
    if (!tensorBytes(layout.dtype, view.shape))
      return wrong(view, "no tensor has the shape " + toText(view.shape));
    Status status;
    switch (view.op) {
    case View::Op::Reshape:
      status = reshape(view, layout);
      break;
    case View::Op::Permute:
      status = permute(view, layout);
      break;
    case View::Op::Slice:
      status = slice(view, layout);
      break;
    case View::Op::Broadcast:
      status = broadcast(view, layout);
      break;
    case View::Op::AsStrided:
      status = asStrided(view, layout);
      break;
    case View::Op::Bitcast:
      status = bitcast(view, layout);
      break;
    case View::Op::Detach:
      break;
    }
    if (!status)
      return status;
    dropStrides(layout);
  }
  return Status::success();
}

} // namespace tandem::artifact
