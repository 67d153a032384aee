//===- Sampling.cpp - images at places that are data ----------------------===//
//
// Images are [N, C, sizes...]. A sample is a sum over neighbours, each looked
// up as a row of channels and weighted; a neighbour outside has the weight 0.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Build.h"
#include "ir/ops/Inference.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

namespace {

/// Where neighbours lie along one dimension, and what they weigh.
struct Tap {
  Expr index;  ///< whole numbers, as floats
  Expr weight; ///< null: 1
};

class Sampler {
public:
  Sampler(Call &call, const Expr &x) : call(call), images(x) {}

  /// Looks up the images of `numbers` (i64, in a shape that stretches to
  /// `shape`) at all combinations of taps; [shape..., C], in f32 at least. Each
  /// tap's tensors are of `shape`.
  Expr sample(const Expr &numbers, Sizes shape,
              ArrayRef<SmallVector<Tap>> taps);

private:
  Expr lookUp(const Expr &numbers, ArrayRef<Tap> at);

  Call &call;
  Expr images, rows;
};

} // namespace

Expr Sampler::lookUp(const Expr &numbers, ArrayRef<Tap> at) {
  Type i64 = call.builder.getI64Type();
  Expr linear = numbers, inside, weight;
  for (auto [d, tap] : llvm::enumerate(at)) {
    int64_t size = images.dim(2 + int64_t(d));
    Expr here = logicalAnd(
        compare(ComparePredicate::ge, tap.index, tap.index.like(0.0)),
        isLess(tap.index, double(size)));
    inside = inside ? logicalAnd(inside, here) : here;
    Expr safe = select(here, tap.index, tap.index.like(0.0)).cast(i64);
    linear = linear * double(size) + safe;
    if (tap.weight)
      weight = weight ? weight * tap.weight : tap.weight;
  }
  Expr found = call.op("take", {rows.value, linear.value});
  if (!found)
    return found;
  found = wide(found);
  List lead = upTo(linear.rank());
  inside = along(call, inside, found.shape(), lead);
  if (!inside)
    return inside;
  found = select(inside, found, found.like(0.0));
  if (!weight)
    return found;
  weight = along(call, weight.cast(elementOf(found)), found.shape(), lead);
  // What is infinitely far away has no weight.
  return weight ? found * select(inside, weight, weight.like(0.0)) : weight;
}

Expr Sampler::sample(const Expr &numbers, Sizes shape,
                     ArrayRef<SmallVector<Tap>> taps) {
  // Rows of channels: [N, sizes..., C].
  Expr last = moved(call, images, 1, images.rank() - 1);
  if (!last || !numbers)
    return {};
  int64_t channels = images.dim(1);
  if (channels == 0)
    return call.full(computeType(images), joined({shape, 0}), 0);
  rows = reshaped(call, last, {productOf(last.shape()) / channels, channels});
  if (!rows)
    return rows;
  SmallVector<Tap> at(taps.size());
  SmallVector<size_t> which(taps.size(), 0);
  Expr sum;
  while (true) {
    for (size_t d = 0; d < taps.size(); ++d)
      at[d] = taps[d][which[d]];
    Expr one = lookUp(numbers, at);
    if (!one)
      return one;
    sum = sum ? sum + one : one;
    size_t d = taps.size();
    while (d-- > 0 && ++which[d] == taps[d].size())
      which[d] = 0;
    if (d == size_t(-1))
      return sum;
  }
}

//===----------------------------------------------------------------------===//
// grid_sample
//===----------------------------------------------------------------------===//

/// Within [0, size - 1]; where it is not strictly inside, no gradient.
static Expr clipped(const Expr &x, int64_t size) {
  Expr last = x.like(double(size - 1));
  Expr y = select(compare(ComparePredicate::ge, x, last), last, x);
  return select(compare(ComparePredicate::le, x, x.like(0.0)), x.like(0.0), y);
}

/// Mirrored at the borders: the middles of the first and last element if
/// `align`, else their outer edges.
static Expr mirrored(Call &call, const Expr &x, int64_t size, bool align) {
  double low = align ? 0.0 : -0.5;
  double span = align ? double(size - 1) : double(size);
  if (span == 0)
    return x.like(0.0);
  Expr distance = absolute(call, x - low);
  Expr over = call.op("rem", {distance.value, distance.like(span).value});
  Expr turns = call.op("floor", (distance / span).value);
  if (!over || !turns)
    return {};
  Expr half = call.op("floor", (turns * 0.5).value);
  Expr even = isEqual(turns, half * 2.0);
  return select(even, over + low, span + low - over);
}

static Expr placed(Call &call, const Expr &x, int64_t size, StringRef padding,
                   bool align) {
  if (padding == "border")
    return clipped(x, size);
  if (padding != "reflection")
    return x;
  Expr y = mirrored(call, x, size, align);
  return y ? clipped(y, size) : y;
}

/// Weights of the four neighbours in cubic interpolation, of which the second
/// is `t` in [0, 1) below.
static SmallVector<Expr> cubicWeights(const Expr &t) {
  constexpr double a = -0.75;
  auto inner = [&](const Expr &x) {
    return ((a + 2) * x - (a + 3)) * x * x + 1.0;
  };
  auto outer = [&](const Expr &x) {
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  };
  return {outer(t + 1.0), inner(t), inner(1.0 - t), outer(2.0 - t)};
}

static CallResults gridSample(Call &call) {
  StringRef mode =
      call.text("mode", "bilinear", {"bilinear", "nearest", "bicubic"});
  StringRef padding =
      call.text("padding_mode", "zeros", {"zeros", "border", "reflection"});
  bool align = call.flag("align_corners", false);
  bool pixels = call.flag("pixels", false);
  if (call.failed() || failed(call.expectFloat(0)) ||
      failed(call.expectFloat(1)) || failed(call.expectRank(0, 3, 5)))
    return failure();
  Expr x = call[0], grid = call[1];
  int64_t n = x.rank() - 2;
  if (grid.rank() != x.rank() || grid.dim(0) != x.dim(0) ||
      grid.dim(grid.rank() - 1) != n || llvm::is_contained(x.shape(), 0))
    return call.fail("expected a grid [" + Twine(x.dim(0)) + ", sizes..., " +
                     Twine(n) + "], but got " + infer::text(grid.shape()));
  if (mode == "bicubic" && n != 2)
    return call.fail("expected images of two dimensions for 'bicubic', but "
                     "got " +
                     Twine(n));
  Sizes shape = grid.shape().drop_back();
  grid = wide(grid);
  SmallVector<SmallVector<Tap>> taps;
  for (int64_t d = 0; d < n; ++d) {
    int64_t size = x.dim(2 + d);
    // The grid has the last dimension first.
    Expr g = reshaped(call, sliced(call, grid, grid.rank() - 1, n - 1 - d, 1),
                      shape);
    if (!g)
      return failure();
    Expr at = pixels  ? g
              : align ? (g + 1.0) * (0.5 * double(size - 1))
                      : (g + 1.0) * (0.5 * double(size)) - 0.5;
    if (mode != "bicubic")
      at = placed(call, at, size, padding, align);
    if (!at)
      return failure();
    if (mode == "nearest") {
      taps.push_back({{call.op("round", at.value), {}}});
      continue;
    }
    Expr base = call.op("floor", at.value);
    Expr t = at - base;
    if (mode == "bilinear") {
      taps.push_back({{base, 1.0 - t}, {base + 1.0, t}});
      continue;
    }
    SmallVector<Tap> four;
    for (auto [i, weight] : llvm::enumerate(cubicWeights(t)))
      four.push_back(
          {placed(call, base + (double(i) - 1.0), size, padding, align),
           weight});
    taps.push_back(four);
  }
  Expr numbers = indices(call, call.builder.getI64Type(), shape, 0);
  Expr y = Sampler(call, x).sample(numbers, shape, taps);
  if (!y)
    return failure();
  return results({moved(call, y, y.rank() - 1, 1).cast(elementOf(x))});
}

//===----------------------------------------------------------------------===//
// roi_align
//===----------------------------------------------------------------------===//

/// Two neighbours of a place in [-1, size]: outside of that nothing, from the
/// border on the border.
static SmallVector<Tap> neighbours(Call &call, const Expr &x, int64_t size) {
  Expr last = x.like(double(size - 1));
  Expr there =
      logicalAnd(compare(ComparePredicate::ge, x, x.like(-1.0)),
                 compare(ComparePredicate::le, x, x.like(double(size))));
  Expr at = select(compare(ComparePredicate::le, x, x.like(0.0)), x.like(0.0),
                   select(compare(ComparePredicate::ge, x, last), last, x));
  Expr base = call.op("floor", at.value);
  if (!base)
    return {};
  Expr t = at - base;
  Expr none = x.like(0.0);
  return {{base, select(there, 1.0 - t, none)},
          {base + 1.0, select(there, t, none)}};
}

static CallResults roiAlign(Call &call) {
  StringRef mode = call.text("mode", "avg", {"avg", "max"});
  List size = call.isInteger("output_size")
                  ? List(2, call.integer("output_size", 1))
                  : call.integers("output_size", {1, 1});
  double scale = call.number("spatial_scale", 1.0);
  int64_t ratio = call.integer("sampling_ratio", 0);
  bool aligned = call.flag("aligned", false);
  if (call.failed() || failed(call.expectFloat(0)) ||
      failed(call.expectRank(0, 4, 4)) || failed(call.expectFloat(1)) ||
      failed(call.expectRank(1, 2, 2)) || failed(call.expectInteger(2)) ||
      failed(call.expectShape(1, {call[1].dim(0), 4})) ||
      failed(call.expectShape(2, call[1].dim(0))))
    return failure();
  if (ratio < 1)
    return call.fail("expected 'sampling_ratio' to be at least 1: else the "
                     "number of samples depends on the data");
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || ratio > kMaxElements ||
      productOf({size[0], ratio, size[1], ratio, call[1].dim(0),
                 call[0].dim(1)}) > kMaxElements)
    return call.fail("expected 'output_size' of two sizes of at least 1, and "
                     "samples that a tensor can have");
  Expr x = call[0], rois = wide(call[1]) * scale;
  int64_t count = rois.dim(0);
  if (aligned)
    rois = rois - 0.5;
  // Samples of each dimension: [R, sizes * ratio].
  List shape{count, size[0] * ratio, size[1] * ratio};
  SmallVector<SmallVector<Tap>> taps;
  for (int64_t d = 0; d < 2; ++d) {
    // A region is (x1, y1, x2, y2).
    Expr from = reshaped(call, sliced(call, rois, 1, 1 - d, 1), count);
    Expr to = reshaped(call, sliced(call, rois, 1, 3 - d, 1), count);
    int64_t samples = shape[1 + d];
    Expr at = indices(call, elementOf(rois), {count, samples}, 1);
    if (!from || !to || !at)
      return failure();
    Expr length = to - from;
    if (!aligned)
      length = maximum(length, length.like(1.0));
    Expr step = along(call, length / double(samples), {count, samples}, 0);
    Expr start = along(call, from, {count, samples}, 0);
    if (!step || !start)
      return failure();
    SmallVector<Tap> pair =
        neighbours(call, start + (at + 0.5) * step, x.dim(2 + d));
    if (pair.empty())
      return failure();
    for (Tap &tap : pair) {
      tap.index = along(call, tap.index, shape, {0, 1 + d});
      tap.weight = along(call, tap.weight, shape, {0, 1 + d});
      if (!tap.index || !tap.weight)
        return failure();
    }
    taps.push_back(pair);
  }
  Expr numbers = along(call, call[2].cast(call.builder.getI64Type()), shape, 0);
  Expr y;
  if (mode == "avg") {
    y = Sampler(call, x).sample(numbers, shape, taps);
  } else {
    // The largest of what the four neighbours give, not of their sums.
    for (const Tap &row : taps[0])
      for (const Tap &column : taps[1]) {
        Expr one = Sampler(call, x).sample(numbers, shape, {{row}, {column}});
        if (!one)
          return failure();
        y = y ? maximum(y, one) : one;
      }
  }
  y = reshaped(call, y, {count, size[0], ratio, size[1], ratio, x.dim(1)});
  y = reduced(call, mode == "max" ? "reduce_max" : "reduce_sum", y, {2, 4});
  if (!y)
    return failure();
  if (mode == "avg")
    y = y / double(ratio * ratio);
  return results({moved(call, y, 3, 1).cast(elementOf(x))});
}

//===----------------------------------------------------------------------===//
// affine_grid
//===----------------------------------------------------------------------===//

/// theta [N, k, k + 1] applied to the places of each element of [N, C, sizes].
static CallResults affineGrid(Call &call) {
  List size = call.integers("size");
  bool align = call.flag("align_corners", false);
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 3, 3)))
    return failure();
  int64_t n = int64_t(size.size()) - 2;
  if (n < 1 || n > 3 || productOf(size) > kMaxElements ||
      llvm::any_of(size, [](int64_t x) { return x < 1; }))
    return call.fail("expected 'size' to be that of images, but got " +
                     infer::text(size));
  if (failed(call.expectShape(0, {size[0], n, n + 1})))
    return failure();
  Expr theta = wide(call[0]);
  Sizes space = Sizes(size).drop_front(2);
  // [sizes..., n + 1]: from -1 to 1, the last dimension first; then 1.
  SmallVector<Expr> parts;
  List one = joined({space, 1});
  for (int64_t d = n; d-- > 0;) {
    Expr at = indices(call, elementOf(theta), one, d);
    if (!at)
      return failure();
    double count = double(space[d]);
    parts.push_back(!align       ? (at * 2.0 + 1.0) / count - 1.0
                    : count == 1 ? at.like(0.0)
                                 : at * (2.0 / (count - 1)) - 1.0);
  }
  parts.push_back(call.full(elementOf(theta), one, 1));
  Expr base = reshaped(call, concatenated(call, parts, n),
                       {1, productOf(space), n + 1});
  base = call.stretch(base, {size[0], productOf(space), n + 1});
  Expr y = matrixProduct(call, base, theta, false, true);
  y = reshaped(call, y, joined({size[0], space, n}));
  if (!y)
    return failure();
  return results({y.cast(elementOf(call[0]))});
}

void tandem::addSamplingFunctions(FunctionTable &table) {
  table.family("Sampling");
  table.add("grid_sample(x, grid; mode='bilinear', padding_mode='zeros', "
            "align_corners=false, pixels=false)",
            "images [N, C, ...] at the places of a grid, from -1 to 1 or in "
            "pixels: bilinear, nearest or bicubic; outside zeros, border or "
            "reflection",
            gridSample);
  table.add("affine_grid(theta; size, align_corners=false)",
            "the grid at which grid_sample maps images of `size` by matrices",
            affineGrid);
  table.add("roi_align(x, rois, batch; output_size, spatial_scale=1.0, "
            "sampling_ratio, aligned=false, mode='avg')",
            "regions (x1, y1, x2, y2) of images [N, C, H, W], sampled "
            "sampling_ratio^2 times for each element, averaged; with max the "
            "largest of what each sample's four neighbours add, as in ONNX",
            roiAlign);
}
