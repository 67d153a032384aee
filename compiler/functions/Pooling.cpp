//===- Pooling.cpp - pooling over one to three dimensions -----------------===//
//
// Made of max_pool2d and avg_pool2d. One dimension is two, of which the first
// has size 1; three are two and then one. What the ops refuse (padding of more
// than half of the kernel, windows beyond the padding) is padded here.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Pooling.h"
#include "compiler/functions/Build.h"
#include "compiler/functions/Formula.h"
#include "compiler/functions/Function.h"
#include "compiler/functions/Windows.h"
#include "ir/Ops.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::formula;
using tandem::functions::kMaxTable;
using tandem::functions::lookUp;

//===----------------------------------------------------------------------===//
// What all have in common
//===----------------------------------------------------------------------===//

namespace {

/// An input [N, C, ...] and the windows over it, as two or three dimensions.
struct Pooled {
  Expr x;                      ///< of rank 4 or 5
  WindowLines lines;           ///< of its last two or three dimensions
  SmallVector<int64_t> result; ///< the shape asked for
};

/// A result, and the position of each element in the plane of the input.
struct Largest {
  Expr y, index;
};

} // namespace

static std::optional<Pooled> pooled(Call &call, int64_t dims) {
  int64_t low = dims ? dims + 2 : 3, high = dims ? dims + 2 : 5;
  if (failed(call.expectRank(0, low, high)))
    return std::nullopt;
  Expr x = call[0];
  auto kernel = windows::entries(call, "kernel", x.rank() - 2, {}, 1);
  if (!kernel)
    return std::nullopt;
  auto lines = windows::lines(call, x.shape().drop_front(2), *kernel, true);
  if (!lines || call.failed())
    return std::nullopt;
  Pooled pooled{x, *lines, {x.dim(0), x.dim(1)}};
  for (const WindowLine &line : *lines)
    pooled.result.push_back(line.output);
  if (x.rank() == 3) {
    pooled.x = x.reshape({x.dim(0), x.dim(1), 1, x.dim(2)});
    pooled.lines.insert(pooled.lines.begin(), WindowLine());
  }
  return pooled;
}

/// True if an op takes the windows as they are.
static bool fits(const WindowLine &line) {
  int64_t half = line.span() / 2;
  return line.extra == 0 && line.before <= half && line.after <= half;
}

/// The line over an input that has been padded with all that it sees.
static WindowLine overPadded(WindowLine line) {
  line.input += line.before + line.after + line.extra;
  line.before = line.after = line.extra = 0;
  return line;
}

static Expr padPlanes(Call &call, const Expr &x, const WindowLine &height,
                      const WindowLine &width, double fill) {
  return windows::pad(
      call, x, {0, 0, height.before, width.before},
      {0, 0, height.after + height.extra, width.after + width.extra}, fill);
}

//===----------------------------------------------------------------------===//
// Maximum
//===----------------------------------------------------------------------===//

/// Over x [N, C, H, W]; the index is h * W + w, in i64.
static Largest largest2d(Call &call, const Expr &x, const WindowLine &height,
                         const WindowLine &width) {
  bool isPadded = !fits(height) || !fits(width);
  WindowLine h = isPadded ? overPadded(height) : height;
  WindowLine w = isPadded ? overPadded(width) : width;
  Expr input = isPadded ? padPlanes(call, x, height, width, -kInfinity) : x;
  auto attributes = windows::attributes(call, h, w);
  attributes.push_back(call.ints("kernel", {h.kernel, w.kernel}));
  SmallVector<Value> made = call.ops("max_pool2d", input.value, attributes);
  if (made.empty())
    return {};
  Expr index = call.at(made[1]).cast(call.builder.getI64Type());
  if (isPadded) {
    if (h.input > kMaxTable / w.input) {
      (void)call.fail("expected padded planes of at most 2^24 elements");
      return {};
    }
    // The padding is -infinity as the input may be: its place stands for the
    // nearest one inside.
    SmallVector<int64_t> table;
    for (int64_t i = 0; i < h.input; ++i)
      for (int64_t j = 0; j < w.input; ++j)
        table.push_back(
            std::clamp<int64_t>(i - height.before, 0, height.input - 1) *
                width.input +
            std::clamp<int64_t>(j - width.before, 0, width.input - 1));
    index = lookUp(call, index, table);
  }
  return {call.at(made[0]), index};
}

/// Over x [N, C, D, H, W]: first in each slice, then over the slices. The first
/// of equal ones in both is the first in all.
static Largest largest3d(Call &call, const Expr &x, const WindowLines &lines) {
  int64_t n = x.dim(0), c = x.dim(1), d = x.dim(2);
  int64_t plane = x.dim(3) * x.dim(4);
  Largest slices = largest2d(call, x.reshape({n, c * d, x.dim(3), x.dim(4)}),
                             lines[1], lines[2]);
  if (!slices.y)
    return {};
  int64_t h = slices.y.dim(2), w = slices.y.dim(3);
  Largest all = largest2d(call, slices.y.reshape({n, c, d, h * w}), lines[0],
                          WindowLine{h * w, 1, 1, 1, 0, 0, h * w, 0});
  if (!all.y)
    return {};
  Type i64 = call.builder.getI64Type();
  Expr slice = composite::iota(x, i64, {n * c, d, h * w}, 1);
  Expr table = slice * static_cast<double>(plane) +
               slices.index.reshape({n * c, d, h * w});
  int64_t out = lines[0].output;
  Expr base = composite::iota(x, i64, {n * c, out * h * w}, 0) *
              static_cast<double>(d * h * w);
  Expr position = base + all.index.reshape({n * c, out * h * w});
  Expr index = call.op("take", {table.reshape({n * c * d * h * w}), position});
  return {all.y, index};
}

static CallResults maxPool(Call &call, int64_t dims) {
  auto from = pooled(call, dims);
  if (!from)
    return failure();
  // Integers of up to 32 bits are numbers of these floats.
  Type element = from->x.type().getElementType(), type = element;
  if (!isa<FloatType>(element)) {
    if (failed(call.expectInteger(0)))
      return failure();
    unsigned width = element.getIntOrFloatBitWidth();
    if (width > 32)
      return call.fail("expected floats or integers of at most 32 bits");
    type = width <= 16 ? Type(call.builder.getF32Type())
                       : call.builder.getF64Type();
  }
  Expr x = from->x.cast(type);
  Largest made = x.rank() == 5
                     ? largest3d(call, x, from->lines)
                     : largest2d(call, x, from->lines[0], from->lines[1]);
  if (!made.y || !made.index)
    return failure();
  return SmallVector<Value>{made.y.reshape(from->result).cast(element),
                            made.index.reshape(from->result)};
}

static CallResults globalMaxPool(Call &call) {
  if (failed(call.expectRank(0, 3, 64)))
    return failure();
  Expr x = call[0];
  SmallVector<int64_t> result(x.rank(), 1);
  result[0] = x.dim(0);
  result[1] = x.dim(1);
  int64_t size = functions::productOf(x.shape().drop_front(2));
  if (size == 0)
    return call.fail("expected planes with elements, but got " +
                     infer::text(x.shape()));
  Expr lines = x.reshape({x.dim(0), x.dim(1), size});
  SmallVector<Value> made =
      call.calls("max_pool", lines.value, {call.ints("kernel", {size})});
  if (made.empty())
    return failure();
  return SmallVector<Value>{call.at(made[0]).reshape(result),
                            call.at(made[1]).reshape(result)};
}

static CallResults maxUnpool(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 3, 5)) ||
      failed(call.expectInteger(1)) || failed(call.expectSameShape(0, 1)))
    return failure();
  Expr x = call[0];
  auto output = windows::entries(call, "output_size", x.rank() - 2, {}, 1);
  if (!output)
    return failure();
  SmallVector<int64_t> result = {x.dim(0), x.dim(1)};
  result.append(output->begin(), output->end());
  if (!isTensorShape(result))
    return call.fail("expected a result of at most 2^40 elements");
  int64_t planes = x.dim(0) * x.dim(1), plane = 1;
  for (int64_t size : *output)
    plane *= size;
  Type i64 = call.builder.getI64Type();
  int64_t count = x.type().getNumElements();
  Expr index = call[1].cast(i64).reshape({planes, sizeFrom(x, 2)});
  Expr isIn = logicalAnd(compare(ComparePredicate::ge, index, index.like(0)),
                         compare(ComparePredicate::lt, index,
                                 index.like(static_cast<double>(plane))));
  Expr base =
      composite::iota(x, i64, index.shape(), 0) * static_cast<double>(plane);
  // One outside of its plane is not in another one, but nowhere.
  index = select(isIn, base + index, index.like(-1));
  Expr table = call.full(x.type().getElementType(), {planes * plane}, 0);
  Expr y =
      call.op("scatter", {table, index.reshape({count}), x.reshape({count})},
              {call.builder.getNamedAttr(
                  "combine",
                  CombineAttr::get(call.builder.getContext(), Combine::set))});
  if (!y)
    return failure();
  return SmallVector<Value>{y.reshape(result)};
}

//===----------------------------------------------------------------------===//
// Mean
//===----------------------------------------------------------------------===//

/// How many of a window's elements are counted.
static double divisor(const WindowLine &line, int64_t out, bool countsPadding) {
  int64_t count = 0;
  for (int64_t tap = 0; tap < line.kernel; ++tap) {
    int64_t at = line.at(out, tap);
    count += countsPadding ? at < line.input + line.after
                           : at >= 0 && at < line.input;
  }
  return static_cast<double>(std::max<int64_t>(count, 1));
}

/// The mean over x [N, C, H, W], or with `isSum` the sum, in x's type.
static Expr mean2d(Call &call, const Expr &x, const WindowLine &height,
                   const WindowLine &width, bool countsPadding, bool isSum) {
  bool isPlain = height.dilation == 1 && width.dilation == 1;
  if (isPlain && fits(height) && fits(width) && !isSum)
    return call.op("avg_pool2d", x.value,
                   {call.ints("kernel", {height.kernel, width.kernel}),
                    call.ints("strides", {height.stride, width.stride}),
                    call.ints("padding", {height.before, height.after,
                                          width.before, width.after}),
                    call.flagAttr("count_include_pad", countsPadding)});

  Expr padded = padPlanes(call, x, height, width, 0);
  if (!padded)
    return {};
  WindowLine h = overPadded(height), w = overPadded(width);
  int64_t n = x.dim(0), c = x.dim(1);
  Expr sum;
  if (isPlain) {
    sum = call.op("avg_pool2d", padded.value,
                  {call.ints("kernel", {h.kernel, w.kernel}),
                   call.ints("strides", {h.stride, w.stride})});
    if (!sum)
      return {};
    sum = sum * static_cast<double>(h.kernel * w.kernel);
  } else {
    Expr images = padded.reshape({n * c, 1, h.input, w.input});
    Expr ones =
        call.full(x.type().getElementType(), {1, 1, h.kernel, w.kernel}, 1);
    sum = call.op("conv2d", {images, ones}, windows::attributes(call, h, w));
    if (!sum)
      return {};
    sum = sum.reshape({n, c, h.output, w.output});
  }
  if (isSum)
    return sum;
  if (h.output > kMaxTable / w.output) {
    (void)call.fail("expected planes of at most 2^24 windows");
    return {};
  }
  SmallVector<double> divisors;
  for (int64_t i = 0; i < h.output; ++i)
    for (int64_t j = 0; j < w.output; ++j)
      divisors.push_back(divisor(height, i, countsPadding) *
                         divisor(width, j, countsPadding));
  Expr by =
      call.numbersOf(x.type().getElementType(), {h.output, w.output}, divisors);
  return sum / by.broadcastTo(sum.shape(), {2, 3});
}

/// The mean or sum over all windows of `from`, in the compute type. Windows are
/// boxes: their means are means of means.
static Expr meanOf(Call &call, const Pooled &from, Expr x, bool countsPadding,
                   bool isSum) {
  if (x.rank() == 4)
    return mean2d(call, x, from.lines[0], from.lines[1], countsPadding, isSum);
  int64_t n = x.dim(0), c = x.dim(1), d = x.dim(2);
  Expr y = mean2d(call, x.reshape({n, c * d, x.dim(3), x.dim(4)}),
                  from.lines[1], from.lines[2], countsPadding, isSum);
  if (!y)
    return {};
  int64_t size = y.dim(2) * y.dim(3);
  return mean2d(call, y.reshape({n, c, d, size}), from.lines[0],
                WindowLine{size, 1, 1, 1, 0, 0, size, 0}, countsPadding, isSum);
}

static CallResults avgPool(Call &call, int64_t dims) {
  if (failed(call.expectFloat(0)))
    return failure();
  auto from = pooled(call, dims);
  bool countsPadding = call.flag("count_include_pad", true);
  int64_t by = call.integer("divisor_override", 0);
  if (!from || call.failed())
    return failure();
  if (call.hasAttribute("divisor_override") && by == 0)
    return call.fail("expected 'divisor_override' not to be 0");
  Expr x = from->x.cast(composite::computeType(from->x.value));
  Expr y = meanOf(call, *from, x, countsPadding, by != 0);
  if (!y)
    return failure();
  if (by)
    y = y / static_cast<double>(by);
  return SmallVector<Value>{
      y.reshape(from->result).cast(from->x.type().getElementType())};
}

static CallResults lpPool(Call &call) {
  double p = call.number("norm_type", 2);
  if (failed(call.expectFloat(0)))
    return failure();
  if (!(p >= 1) || std::isinf(p))
    return call.fail("expected 'norm_type' to be finite and at least 1");
  auto from = pooled(call, 0);
  if (!from)
    return failure();
  Expr x = from->x.cast(composite::computeType(from->x.value));
  // Of windows beyond the padding PyTorch takes the mean of what is there for
  // that of the whole.
  bool isCeil = call.flag("ceil_mode", false);
  Expr sum = meanOf(call, *from, power(p == 2 ? x : abs(x), p), true, !isCeil);
  if (sum && isCeil)
    for (const WindowLine &line : from->lines)
      sum = sum * static_cast<double>(line.kernel);
  if (!sum)
    return failure();
  return SmallVector<Value>{
      root(sum, p).reshape(from->result).cast(from->x.type().getElementType())};
}

/// The dimensions behind the channels.
static SmallVector<int64_t> planeDims(const Expr &x) {
  return llvm::to_vector(llvm::seq<int64_t>(2, x.rank()));
}

static SmallVector<int64_t> planeOfOne(const Expr &x) {
  SmallVector<int64_t> shape(x.rank(), 1);
  shape[0] = x.dim(0);
  shape[1] = x.dim(1);
  return shape;
}

static CallResults globalAvgPool(Call &call) {
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 2, 64)))
    return failure();
  Expr x = wide(call, 0, composite::computeType(call.value(0)));
  return SmallVector<Value>{formula::mean(x, planeDims(x))
                                .reshape(planeOfOne(x))
                                .cast(call[0].type().getElementType())};
}

static CallResults globalLpPool(Call &call) {
  double p = call.number("norm_type", 2);
  if (failed(call.expectFloat(0)) || failed(call.expectRank(0, 2, 64)))
    return failure();
  if (!(p >= 1))
    return call.fail("expected 'norm_type' to be at least 1");
  Expr x = wide(call, 0, composite::computeType(call.value(0)));
  return SmallVector<Value>{normOver(x, p, planeDims(x))
                                .reshape(planeOfOne(x))
                                .cast(call[0].type().getElementType())};
}

void tandem::addPoolingFunctions(FunctionTable &table) {
  table.family("Pooling");
  static const std::string window =
      "kernel, strides=kernel, padding=[0], dilation=[1], ceil_mode=false";
  std::string maxText = "(x; " + window + ")";
  table.add("max_pool" + maxText,
            "the maximum of each window of x [N, C, ...] over one to three "
            "dimensions, and where it was in its plane (i64)",
            [](Call &call) { return maxPool(call, 0); });
  table.add("max_pool1d" + maxText, "the same over one dimension",
            [](Call &call) { return maxPool(call, 1); });
  table.add("max_pool3d" + maxText, "the same over three dimensions",
            [](Call &call) { return maxPool(call, 3); });
  table.add("global_max_pool(x)", "the maximum of each plane, and where it was",
            globalMaxPool);
  table.add(
      "max_unpool(x, indices; output_size)",
      "zeros [N, C, output_size...] with x [N, C, ...] at the positions "
      "in each plane that max_pool gave; of several at one the last stays",
      maxUnpool);
  std::string avgText =
      "(x; " + window + ", count_include_pad=true, divisor_override)";
  table.add("avg_pool" + avgText,
            "the mean of each window of x [N, C, ...] over one to three "
            "dimensions",
            [](Call &call) { return avgPool(call, 0); });
  table.add("avg_pool1d" + avgText, "the same over one dimension",
            [](Call &call) { return avgPool(call, 1); });
  table.add("avg_pool3d" + avgText, "the same over three dimensions",
            [](Call &call) { return avgPool(call, 3); });
  table.add("lp_pool(x; norm_type=2.0, " + window + ")",
            "the norm of each window; where it is 0, so is its gradient",
            lpPool);
  table.add("global_avg_pool(x)", "the mean of each plane", globalAvgPool);
  table.add("global_lp_pool(x; norm_type=2.0)", "the norm of each plane",
            globalLpPool);
  functions::addAdaptivePooling(table);
}
