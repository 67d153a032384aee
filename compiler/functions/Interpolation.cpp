//===- Interpolation.cpp - images of another size -------------------------===//
//
// Each dimension by itself: where an element of the result lies in the operand
// is known, so nearest neighbours are a view, and anything else is a product
// with a constant matrix, a row of weights for each element of the result.
// Weights are computed in double. Which element is nearest is computed in f32,
// as PyTorch and ONNX Runtime do: where 3 / 0.3 is 10, and not a bit less.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Products.h"
#include "ir/ops/Inference.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

namespace {

/// How one dimension is resized.
struct Axis {
  int64_t in, out;
  double scale; ///< of sizes: about out / in
  double start = 0,
         end = 1; ///< the part that is cut out, of tf_crop_and_resize
  float step = 0; ///< of PyTorch's nearest: about in / out; 0: by `scale`
};

/// What is done to every dimension. The words are ONNX's.
struct Resize {
  StringRef mode = "nearest"; ///< "nearest", "linear", "cubic"
  StringRef coordinates = "half_pixel";
  StringRef rounding = "round_prefer_floor";
  double cubic = -0.75;
  bool excludesOutside = false, antialias = false;

  template <typename T> T coordinate(const Axis &axis, int64_t i) const;
  int64_t nearest(const Axis &axis, int64_t i) const;
  SmallVector<double> weights(const Axis &axis) const;
};

} // namespace

static double clamp(double x, double low, double high) {
  return std::min(std::max(x, low), high);
}

/// Where element `i` of the result lies among those of the operand, in the
/// order of ONNX Runtime's operations.
template <typename T> T Resize::coordinate(const Axis &axis, int64_t i) const {
  T x = T(i), in = T(axis.in), scale = T(axis.scale), out = in * scale;
  T start = T(axis.start), end = T(axis.end);
  T scaled = (x + T(0.5)) / scale;
  if (coordinates == "half_pixel")
    return scaled - T(0.5);
  if (coordinates == "pytorch_half_pixel")
    return axis.out > 1 ? scaled - T(0.5) : T(0);
  if (coordinates == "half_pixel_symmetric")
    return in / 2 * (1 - T(axis.out) / out) + scaled - T(0.5);
  if (coordinates == "align_corners")
    return axis.out == 1 ? T(0) : x * (in - 1) / (out - 1);
  if (coordinates == "tf_half_pixel_for_nn")
    return scaled;
  if (coordinates == "tf_crop_and_resize")
    return axis.out == 1 ? (start + end) * (in - 1) / 2
                         : start * (in - 1) +
                               x * (end - start) * (in - 1) / T(axis.out - 1);
  return x / scale; // asymmetric
}

int64_t Resize::nearest(const Axis &axis, int64_t i) const {
  float whole;
  if (axis.step > 0) {
    float half = coordinates == "half_pixel" ? 0.5f : 0.0f;
    whole = std::floor((float(i) + half) * axis.step);
  } else {
    float at = coordinate<float>(axis, i);
    whole = std::floor(at);
    float rest = at - whole;
    bool isUp = rounding == "ceil"                ? rest > 0
                : rounding == "round_prefer_ceil" ? rest >= 0.5f
                : rounding == "floor"             ? false
                                                  : rest > 0.5f;
    whole += isUp ? 1.0f : 0.0f;
  }
  // A box may lie far outside.
  return static_cast<int64_t>(clamp(whole, 0, double(axis.in - 1)));
}

/// The kernel of linear or cubic interpolation at a distance (Keys, "Cubic
/// convolution interpolation", 1981).
static double kernel(bool isCubic, double a, double distance) {
  double x = std::abs(distance);
  if (!isCubic)
    return std::max(0.0, 1 - x);
  if (x <= 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0.0;
}

/// [out, in], row-major.
SmallVector<double> Resize::weights(const Axis &axis) const {
  bool isCubic = mode == "cubic";
  // When shrinking without aliases the kernel is as wide as what it covers.
  double squeeze = antialias ? std::min(axis.scale, 1.0) : 1.0;
  auto reach = static_cast<int64_t>(std::ceil((isCubic ? 2 : 1) / squeeze));
  SmallVector<double> all(axis.out * axis.in, 0.0);
  for (int64_t i = 0; i < axis.out; ++i) {
    double at = coordinate<double>(axis, i), sum = 0;
    if (coordinates == "tf_crop_and_resize")
      at = clamp(at, 0, double(axis.in - 1)); // else it is extrapolated
    auto base = static_cast<int64_t>(std::floor(at));
    SmallVector<std::pair<int64_t, double>> taps;
    for (int64_t k = base - reach; k <= base + reach + 1; ++k) {
      double w = kernel(isCubic, cubic, (double(k) - at) * squeeze);
      if (w == 0 || (excludesOutside && (k < 0 || k >= axis.in)))
        continue;
      taps.push_back({std::clamp<int64_t>(k, 0, axis.in - 1), w});
      sum += w;
    }
    // Without narrowing or leaving out the sum is 1.
    bool rescales = antialias || excludesOutside;
    for (auto [k, w] : taps)
      all[i * axis.in + k] += rescales && sum != 0 ? w / sum : w;
  }
  return all;
}

/// `x` resized along the dimensions.
static Expr resized(Call &call, Expr x, const Resize &resize, Sizes dims,
                    ArrayRef<Axis> axes, double outside) {
  constexpr int64_t mostWeights = int64_t(1) << 26;
  Type element = elementOf(x);
  bool isNearest = resize.mode == "nearest";
  if (!isNearest)
    x = wide(x);
  for (auto [dim, axis] : llvm::zip(dims, axes)) {
    if (!x)
      return x;
    constexpr int64_t longest = int64_t(1) << 26; // its places are listed
    if (axis.out > longest ||
        productOf(with(x.shape(), dim, axis.out)) > kMaxElements) {
      (void)call.fail("expected at most " + Twine(longest) +
                      " elements in dimension " + Twine(dim) +
                      " and a tensor, but got " + Twine(axis.out));
      return {};
    }
    bool isSame = axis.in == axis.out && axis.scale == 1 &&
                  resize.coordinates != "tf_crop_and_resize" &&
                  resize.coordinates != "tf_half_pixel_for_nn";
    if (isSame)
      continue;
    if (isNearest) {
      List index;
      for (int64_t i = 0; i < axis.out; ++i)
        index.push_back(resize.nearest(axis, i));
      x = picked(call, x, dim, index);
      continue;
    }
    if (productOf({axis.in, axis.out}) > mostWeights) {
      (void)call.fail("would need a matrix of " + Twine(axis.out) + " by " +
                      Twine(axis.in) + " weights");
      return {};
    }
    Expr matrix =
        call.numbersOf(elementOf(x), {axis.out, axis.in}, resize.weights(axis));
    Expr last = moved(call, x, dim, x.rank() - 1);
    Expr y = product(call, last, permuted(call, matrix, {1, 0}));
    x = moved(call, y, y ? y.rank() - 1 : 0, dim);
  }
  if (!x || resize.coordinates != "tf_crop_and_resize")
    return x ? x.cast(element) : x;
  // What is cut out beyond the border is one number.
  Expr inside;
  for (auto [dim, axis] : llvm::zip(dims, axes)) {
    List flags;
    for (int64_t i = 0; i < axis.out; ++i) {
      float at = resize.coordinate<float>(axis, i);
      flags.push_back(at >= 0 && at <= float(axis.in - 1));
    }
    Expr here =
        along(call, call.integersOf(call.builder.getI1Type(), axis.out, flags),
              x.shape(), dim);
    if (!here)
      return here;
    inside = inside ? logicalAnd(inside, here) : here;
  }
  if (inside)
    x = select(inside, x, x.like(outside));
  return x.cast(element);
}

static CallResults resizeFunction(Call &call) {
  Expr x = call[0];
  Resize resize;
  resize.mode = call.text("mode", "nearest", {"nearest", "linear", "cubic"});
  resize.coordinates =
      call.text("coordinates", "half_pixel",
                {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                 "align_corners", "asymmetric", "tf_half_pixel_for_nn",
                 "tf_crop_and_resize"});
  resize.rounding =
      call.text("rounding", "round_prefer_floor",
                {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"});
  resize.cubic = call.number("cubic_coefficient", -0.75);
  resize.excludesOutside = call.flag("exclude_outside", false);
  resize.antialias = call.flag("antialias", false);
  List dims = call.integers("dims", upTo(x.rank()));
  List sizes = call.integers("sizes");
  SmallVector<double> scales = call.numbers("scales"),
                      roi = call.numbers("roi");
  double outside = call.number("extrapolation_value", 0.0);
  if (call.failed())
    return failure();
  if (resize.mode != "nearest" && isBool(x))
    return call.fail("expected operand #0 to have numbers, but got bools");
  for (auto [i, dim] : llvm::enumerate(dims)) {
    dim += dim < 0 ? x.rank() : 0;
    if (dim < 0 || dim >= x.rank() ||
        llvm::is_contained(Sizes(dims).take_front(i), dim))
      return call.fail("expected 'dims' to be distinct dimensions of a tensor "
                       "of rank " +
                       Twine(x.rank()) + ", but got " + infer::text(dims));
  }
  size_t n = dims.size();
  if (sizes.empty() && scales.empty())
    return call.fail("expected 'sizes' or 'scales'");
  if ((!sizes.empty() && sizes.size() != n) ||
      (!scales.empty() && scales.size() != n) ||
      (!roi.empty() && roi.size() != 2 * n))
    return call.fail("expected a size, a scale and two ends of 'roi' for each "
                     "of " +
                     Twine(n) + " dimensions");
  SmallVector<Axis> axes;
  for (size_t i = 0; i < n; ++i) {
    Axis axis{x.dim(dims[i]), 0, 1};
    // ONNX's sizes are products in f32.
    if (!scales.empty())
      axis.scale = scales[i];
    double made = sizes.empty()
                      ? double(std::floor(float(axis.in) * float(axis.scale)))
                      : double(sizes[i]);
    if (!(axis.scale > 0) || !(made >= 1) || made > double(kMaxElements) ||
        axis.in < 1)
      return call.fail("expected sizes of at least 1 in dimension " +
                       Twine(dims[i]));
    axis.out = static_cast<int64_t>(made);
    if (scales.empty())
      axis.scale = double(axis.out) / double(axis.in);
    double exact = double(axis.in) * axis.scale;
    if (made > 2 * exact + 1 || exact > 2 * made + 1)
      return call.fail("expected sizes and scales that agree, but got " +
                       Twine(axis.out) + " of " + Twine(axis.in) +
                       " in dimension " + Twine(dims[i]));
    if (!roi.empty()) {
      axis.start = roi[i];
      axis.end = roi[n + i];
    }
    axes.push_back(axis);
  }
  return results({resized(call, x, resize, dims, axes, outside)});
}

/// PyTorch's interpolate, of [N, C, sizes...].
static CallResults interpolate(Call &call) {
  Expr x = call[0];
  StringRef mode = call.text("mode", "nearest",
                             {"nearest", "nearest-exact", "linear", "bilinear",
                              "trilinear", "bicubic"});
  bool align = call.flag("align_corners", false);
  if (failed(call.expectRank(0, 3, 5)))
    return failure();
  size_t n = x.rank() - 2;
  List size = call.isInteger("size") ? List(n, call.integer("size", 1))
                                     : call.integers("size");
  SmallVector<double> scale = call.numbers("scale_factor");
  if (call.failed())
    return failure();
  size_t wanted = mode == "linear"                          ? 1
                  : mode == "trilinear"                     ? 3
                  : mode == "bilinear" || mode == "bicubic" ? 2
                                                            : n;
  if (wanted != n)
    return call.fail("expected " + Twine(wanted) +
                     " dimensions of space for 'mode' '" + mode +
                     "', but got " + Twine(n));
  if (size.empty() == scale.empty())
    return call.fail("expected one of 'size' and 'scale_factor'");
  if ((size.empty() ? scale.size() : size.size()) != n)
    return call.fail("expected " + Twine(n) +
                     " entries of 'size' or 'scale_factor'");
  if (mode != "nearest" && mode != "nearest-exact" &&
      failed(call.expectFloat(0)))
    return failure();
  Resize resize;
  resize.mode = mode.starts_with("nearest") ? "nearest"
                : mode == "bicubic"         ? "cubic"
                                            : "linear";
  resize.coordinates = align               ? "align_corners"
                       : mode == "nearest" ? "asymmetric"
                                           : "half_pixel";
  resize.rounding = mode == "nearest" ? "floor" : "round_prefer_ceil";
  List dims;
  SmallVector<Axis> axes;
  for (size_t i = 0; i < n; ++i) {
    dims.push_back(2 + int64_t(i));
    int64_t in = x.dim(dims[i]);
    double out =
        size.empty() ? std::floor(double(in) * scale[i]) : double(size[i]);
    if (!(out >= 1) || out > double(kMaxElements) || in < 1)
      return call.fail("expected sizes of at least 1 in dimension " +
                       Twine(dims[i]));
    // Aligned corners depend on the sizes alone.
    bool bySizes = size.empty() ? align : true;
    Axis axis{in, static_cast<int64_t>(out),
              bySizes ? out / double(in) : scale[i]};
    axis.step = bySizes ? float(in) / float(out) : float(1 / scale[i]);
    axes.push_back(axis);
  }
  return results({resized(call, x, resize, dims, axes, 0)});
}

void tandem::addInterpolationFunctions(FunctionTable &table) {
  table.family("Interpolation");
  table.add("interpolate(x; size, scale_factor, mode='nearest', "
            "align_corners=false)",
            "images [N, C, ...] of another size: nearest, nearest-exact, "
            "linear, bilinear, trilinear or bicubic",
            interpolate);
  table.add("resize(x; sizes, scales, dims, mode='nearest', "
            "coordinates='half_pixel', rounding='round_prefer_floor', "
            "cubic_coefficient=-0.75, exclude_outside=false, antialias=false, "
            "roi, extrapolation_value=0.0)",
            "dimensions of another size, as ONNX's Resize: nearest, linear or "
            "cubic",
            resizeFunction);
}
