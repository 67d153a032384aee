//===- Patches.cpp - neighbourhoods of elements as columns, and back ------===//
//
// Images are [N, C, sizes...] of any number of dimensions. A patch has an
// element for each place of its kernel; its elements are `dilation` apart, and
// patches `stride`. `padding` says how many zeros are around the images: a
// number for each dimension, or all before and then all after.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Build.h"
#include "ir/ops/Composite.h"
#include "ir/ops/Inference.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

namespace {
/// How patches lie in images, for each dimension.
struct Patches {
  List kernel, dilation, stride, low, high;
  List padded; ///< the images' sizes with what is around them
  List count;  ///< how many patches there are

  /// Of images of `size`.
  static std::optional<Patches> of(Call &call, Sizes size);
  int64_t dims() const { return kernel.size(); }
  /// The place in a padded image, row-major, of each element of each patch:
  /// [kernel..., count...]; null after a mistake.
  Expr places(Call &call) const;
};
} // namespace

std::optional<Patches> Patches::of(Call &call, Sizes size) {
  size_t n = size.size();
  auto list = [&](StringRef name, int64_t otherwise, bool twice) {
    List given = call.isInteger(name) ? List(n, call.integer(name, otherwise))
                                      : call.integers(name, List(n, otherwise));
    int64_t least = twice ? 0 : 1;
    if (twice && given.size() == n)
      given.append(List(given));
    bool fits = given.size() == (twice ? 2 * n : n) &&
                llvm::all_of(given, [&](int64_t x) {
                  return x >= least && x <= kMaxElements;
                });
    if (!fits) {
      (void)call.fail("expected '" + name + "' to have " + Twine(n) +
                      " entries of at least " + Twine(least) + ", but got " +
                      infer::text(given));
      given = List(2 * n, 1);
    }
    return given;
  };
  Patches p;
  p.kernel = list("kernel_size", 1, false);
  p.dilation = list("dilation", 1, false);
  p.stride = list("stride", 1, false);
  List around = list("padding", 0, true);
  if (call.failed())
    return std::nullopt;
  p.low = List(Sizes(around).take_front(n));
  p.high = List(Sizes(around).take_back(n));
  for (size_t d = 0; d < n; ++d) {
    p.padded.push_back(size[d] + p.low[d] + p.high[d]);
    double span = double(p.dilation[d]) * double(p.kernel[d] - 1) + 1;
    if (span > double(p.padded[d])) {
      (void)call.fail("expected patches within images of " +
                      infer::text(p.padded) + ", but they span " +
                      Twine(int64_t(span)) + " in dimension " + Twine(d));
      return std::nullopt;
    }
    p.count.push_back((p.padded[d] - int64_t(span)) / p.stride[d] + 1);
    // A step that is never taken may be of any size.
    p.stride[d] = std::min(p.stride[d], p.padded[d]);
    p.dilation[d] = std::min(p.dilation[d], p.padded[d]);
  }
  if (productOf(joined({p.kernel, p.count})) <= kMaxElements &&
      productOf(p.padded) <= kMaxElements)
    return p;
  (void)call.fail("would have more elements than a tensor can have");
  return std::nullopt;
}

Expr Patches::places(Call &call) const {
  Type type =
      composite::indexType(call.builder.getContext(), productOf(padded));
  List shape = joined({kernel, count});
  Expr place;
  for (int64_t d = 0; d < dims(); ++d) {
    Expr inside = indices(call, type, shape, d);
    Expr patch = indices(call, type, shape, dims() + d);
    if (!inside || !patch)
      return {};
    Expr at = inside * double(dilation[d]) + patch * double(stride[d]);
    place = place ? place * double(padded[d]) + at : at;
  }
  return place;
}

static CallResults unfold(Call &call) {
  if (failed(call.expectRank(0, 3, 5)))
    return failure();
  Expr x = call[0];
  int64_t N = x.dim(0), C = x.dim(1);
  auto p = Patches::of(call, x.shape().drop_front(2));
  if (!p)
    return failure();
  x = padded(call, x, joined({{0, 0}, p->low}), joined({{0, 0}, p->high}));
  if (!x)
    return failure();
  Expr flat = reshaped(call, x, {N, C, productOf(p->padded)});
  Expr y = taken(call, flat, 2, p->places(call));
  return results(
      {reshaped(call, y, {N, C * productOf(p->kernel), productOf(p->count)})});
}

static CallResults fold(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 3, 3)))
    return failure();
  List output = call.integers("output_size");
  if (output.empty() || output.size() > 3 || productOf(output) > kMaxElements ||
      llvm::any_of(output, [](int64_t size) { return size < 1; }))
    return call.fail("expected 'output_size' to be sizes of images, but got " +
                     infer::text(output));
  auto p = Patches::of(call, output);
  if (!p)
    return failure();
  Expr x = call[0];
  int64_t N = x.dim(0), kernel = productOf(p->kernel), C = x.dim(1) / kernel;
  if (C < 1 || x.dim(1) % kernel || x.dim(2) != productOf(p->count))
    return call.fail("expected columns of a multiple of " + Twine(kernel) +
                     " elements and " + Twine(productOf(p->count)) +
                     " of them, but got " + infer::text(x.shape()));
  int64_t size = productOf(p->padded), n = p->dims();
  if (productOf({N, C, size}) > kMaxElements)
    return call.fail("would have more elements than a tensor can have");
  // Rows of what is added: [kernel..., count..., N, C].
  Expr patches = wide(x).reshape(joined({{N, C}, p->kernel, p->count}));
  List order = upTo(2 * n + 2);
  std::rotate(order.begin(), order.begin() + 2, order.end());
  patches = permuted(call, patches, order);
  Expr places = p->places(call);
  if (!places || !patches)
    return failure();
  Expr y = call.op("take_grad", {patches.value, places.value},
                   {call.ints("shape", {size, N, C})});
  y = reshaped(call, permuted(call, y, {1, 2, 0}), joined({{N, C}, p->padded}));
  for (int64_t d = 0; d < n; ++d)
    y = sliced(call, y, 2 + d, p->low[d], output[d]);
  if (!y)
    return failure();
  return results({y.cast(elementOf(call[0]))});
}

/// All windows of `size` elements, `step` apart, along a dimension; the window
/// is a new last dimension.
static CallResults windows(Call &call) {
  Expr x = call[0];
  int64_t dim = call.dim("dim", 0, x.rank());
  int64_t size = call.integer("size", 1), step = call.integer("step", 1);
  if (call.failed())
    return failure();
  if (size < 1 || step < 1 || size > x.dim(dim))
    return call.fail("expected windows of 1 to " + Twine(x.dim(dim)) +
                     " elements at least 1 apart, but got " + Twine(size) +
                     " and " + Twine(step));
  int64_t count = (x.dim(dim) - size) / step + 1;
  step = std::min(step, x.dim(dim));
  Type type = composite::indexType(call.builder.getContext(), x.dim(dim));
  Expr first = indices(call, type, {count, size}, 0);
  Expr inside = indices(call, type, {count, size}, 1);
  if (!first || !inside)
    return failure();
  Expr y = taken(call, x, dim, first * double(step) + inside);
  return results({moved(call, y, dim + 1, x.rank())});
}

void tandem::addPatchFunctions(FunctionTable &table) {
  table.family("Patches");
  table.add("unfold(x; kernel_size, dilation=1, padding=0, stride=1)",
            "patches of images [N, C, ...] as columns [N, C kernel, patches] "
            "(im2col); `padding` for each dimension, or all before and all "
            "after",
            unfold);
  table.add("fold(x; output_size, kernel_size, dilation=1, padding=0, "
            "stride=1)",
            "the sum of patches at their places in images (col2im)", fold);
  table.add("unfold_dim(x; dim=0, size, step=1)",
            "all windows along a dimension, as a new last dimension", windows);
}
