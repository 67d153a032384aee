//===- Signal.cpp - windows and Fourier transforms ------------------------===//
//
// Complex numbers are pairs along the last dimension. A transform is a product
// with constant matrices of cosines and sines, computed in double.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Products.h"
#include "ir/ops/Inference.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace tandem;
using namespace tandem::functions;

static constexpr double kPi = std::numbers::pi;

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// `formula` of the angle 2 pi i / N of each element, N the length, less 1 for
/// a symmetric window.
template <typename Formula>
static CallResults window(Call &call, Formula formula) {
  constexpr int64_t longest = int64_t(1) << 22;
  int64_t length = call.integer("window_length", 1);
  bool periodic = call.flag("periodic", true);
  if (call.failed())
    return failure();
  if (length < 1 || length > longest)
    return call.fail("expected 'window_length' to be in [1, " + Twine(longest) +
                     "], but got " + Twine(length));
  double turn = double(periodic ? length : length - 1);
  SmallVector<double> list;
  for (int64_t i = 0; i < length; ++i)
    list.push_back(length == 1 ? 1.0 : formula(2 * kPi * double(i) / turn));
  return results({call.numbersOf(call.builder.getF32Type(), length, list)});
}

static CallResults hannWindow(Call &call) {
  return window(call, [](double angle) { return 0.5 - 0.5 * std::cos(angle); });
}
static CallResults hammingWindow(Call &call) {
  double alpha = call.number("alpha", 0.54);
  double beta = call.number("beta", 1 - alpha);
  return window(call,
                [&](double angle) { return alpha - beta * std::cos(angle); });
}
static CallResults blackmanWindow(Call &call) {
  return window(call, [](double angle) {
    return 0.42 - 0.5 * std::cos(angle) + 0.08 * std::cos(2 * angle);
  });
}

//===----------------------------------------------------------------------===//
// Fourier transforms
//===----------------------------------------------------------------------===//

namespace {
/// What a transform of the last but one dimension does.
struct Fourier {
  int64_t length; ///< of the signal
  int64_t count;  ///< of the result
  bool inverse = false;
};
} // namespace

/// [length, count] of cosines, or sines, of 2 pi n k / length.
static Expr matrix(Call &call, Type element, const Fourier &fourier,
                   bool sines) {
  SmallVector<double> list;
  list.reserve(fourier.length * fourier.count);
  for (int64_t n = 0; n < fourier.length; ++n)
    for (int64_t k = 0; k < fourier.count; ++k) {
      double angle =
          2 * kPi * double(n * k % fourier.length) / double(fourier.length);
      list.push_back(sines ? std::sin(angle) : std::cos(angle));
    }
  return call.numbersOf(element, {fourier.length, fourier.count}, list);
}

/// The transform of x [..., length, 1 or 2], in its compute type: [..., count,
/// 2].
static Expr transformed(Call &call, const Expr &x, const Fourier &fourier) {
  constexpr int64_t mostElements = int64_t(1) << 22;
  if (!x)
    return x;
  if (fourier.length * fourier.count > mostElements) {
    (void)call.fail("would need a matrix of " + Twine(fourier.length) + " by " +
                    Twine(fourier.count) + " numbers");
    return {};
  }
  int64_t last = x.rank() - 1;
  Sizes lead = x.shape().drop_back();
  Expr c = matrix(call, elementOf(x), fourier, false);
  Expr s = matrix(call, elementOf(x), fourier, true);
  auto part = [&](int64_t i) {
    return reshaped(call, sliced(call, x, last, i, 1), lead);
  };
  Expr real = part(0);
  Expr re = product(call, real, c), im = product(call, real, s);
  if (!re || !im)
    return {};
  // exp(-i a) = cos a - i sin a, and the other way exp(i a) / length.
  if (!fourier.inverse)
    im = -im;
  if (x.dim(last) == 2) {
    Expr imaginary = part(1);
    Expr ic = product(call, imaginary, c), is = product(call, imaginary, s);
    if (!ic || !is)
      return {};
    re = fourier.inverse ? re - is : re + is;
    im = im + ic;
  }
  if (fourier.inverse) {
    re = re / double(fourier.length);
    im = im / double(fourier.length);
  }
  return concatenated(
      call, {unsqueezed(call, re, last), unsqueezed(call, im, last)}, last);
}

/// Fails unless operand 0 has floats, the last dimension 1 or 2.
static LogicalResult expectSignal(Call &call, int64_t rank) {
  Expr x = call[0];
  if (failed(call.expectFloat(0)))
    return failure();
  if (x.rank() >= rank &&
      (x.dim(x.rank() - 1) == 1 || x.dim(x.rank() - 1) == 2))
    return success();
  return call.fail("expected a signal of rank at least " + Twine(rank) +
                   " whose last dimension is 1 or 2, but got " +
                   infer::text(x.shape()));
}

/// The real signal of `length` (0: an even one) whose spectrum is symmetric and
/// has this half [..., length / 2 + 1, ..., 2]: each bin but the first, and the
/// last of an even length, counts twice, for its mirror.
static CallResults realSignal(Call &call, Expr x, int64_t dim, int64_t length) {
  int64_t last = x.rank() - 1;
  if (x.dim(last) != 2)
    return call.fail("expected complex numbers of a one-sided spectrum");
  if (length == 0)
    length = 2 * (x.dim(dim) - 1);
  if (length < 1 || length > kMaxElements)
    return call.fail("expected 'length' to be at least 1, but got " +
                     Twine(length));
  int64_t bins = length / 2 + 1, have = std::min(bins, x.dim(dim));
  x = sliced(call, x, dim, 0, have);
  x = paddedAlong(call, x, dim, 0, bins - have);
  x = moved(call, x, dim, last - 1);
  if (!x)
    return failure();
  SmallVector<double> counts(bins, 2.0);
  counts[0] = 1;
  if (length % 2 == 0)
    counts[bins - 1] = 1;
  Expr twice = call.numbersOf(elementOf(x), {bins}, counts);
  x = x * twice.broadcastTo(x.shape(), {last - 1});
  // The sum of what the cosines and the sines of each bin give.
  constexpr int64_t mostElements = int64_t(1) << 22;
  if (bins * length > mostElements)
    return call.fail("would need a matrix of " + Twine(bins) + " by " +
                     Twine(length) + " numbers");
  Fourier fourier{length, bins, true};
  auto part = [&](int64_t i, bool sines) {
    Expr half =
        reshaped(call, sliced(call, x, last, i, 1), x.shape().drop_back());
    Expr waves = matrix(call, elementOf(x), fourier, sines).permute({1, 0});
    return product(call, half, waves);
  };
  Expr real = part(0, false), imaginary = part(1, true);
  if (!real || !imaginary)
    return failure();
  Expr y = (real - imaginary) / double(length);
  y = moved(call, unsqueezed(call, y, last), last - 1, dim);
  if (!y)
    return failure();
  return results({y.cast(elementOf(call[0]))});
}

static CallResults dft(Call &call) {
  if (failed(expectSignal(call, 2)))
    return failure();
  Expr x = wide(call[0]);
  int64_t last = x.rank() - 1;
  int64_t dim = call.dim("dim", -2, x.rank());
  bool onesided = call.flag("onesided", false);
  bool inverse = call.flag("inverse", false);
  if (call.failed())
    return failure();
  if (dim == last)
    return call.fail("expected a dimension other than the last one, which has "
                     "the parts of complex numbers");
  int64_t length = call.integer("length", x.dim(dim));
  if (length < 1 || length > kMaxElements)
    return call.fail("expected 'length' to be at least 1, but got " +
                     Twine(length));
  if (onesided && inverse)
    return realSignal(call, x, dim, call.integer("length", 0));
  // Cut off, or zeros at the end.
  int64_t have = std::min(length, x.dim(dim));
  x = sliced(call, x, dim, 0, have);
  x = paddedAlong(call, x, dim, 0, length - have);
  x = moved(call, x, dim, last - 1);
  Expr y = transformed(call, x,
                       {length, onesided ? length / 2 + 1 : length, inverse});
  y = moved(call, y, last - 1, dim);
  if (!y)
    return failure();
  return results({y.cast(elementOf(call[0]))});
}

static CallResults stft(Call &call) {
  if (failed(expectSignal(call, 3)) || failed(call.expectRank(0, 3, 3)))
    return failure();
  Expr x = wide(call[0]);
  bool onesided = call.flag("onesided", true);
  int64_t step = call.integer("frame_step", 1);
  if (call.has(1) && (failed(call.expectRank(1, 1, 1)) ||
                      failed(call.expectSameElements(0, 1))))
    return failure();
  int64_t length =
      call.integer("frame_length", call.has(1) ? call[1].dim(0) : x.dim(1));
  if (call.failed())
    return failure();
  if (step < 1 || length < 1 || length > x.dim(1) ||
      (call.has(1) && call[1].dim(0) != length))
    return call.fail("expected frames of the window's length within the "
                     "signal, at least 1 apart, but got " +
                     Twine(length) + " and " + Twine(step));
  // [batch, frames, length, 1 or 2].
  Expr frames =
      call.call("unfold_dim", x.value,
                {call.integerAttr("dim", 1), call.integerAttr("size", length),
                 call.integerAttr("step", step)});
  frames = permuted(call, frames, {0, 1, 3, 2});
  if (call.has(1) && frames) {
    Expr weights = along(call, wide(call[1]), frames.shape(), 2);
    if (!weights)
      return failure();
    frames = frames * weights;
  }
  Expr y = transformed(call, frames,
                       {length, onesided ? length / 2 + 1 : length, false});
  if (!y)
    return failure();
  return results({y.cast(elementOf(call[0]))});
}

void tandem::addSignalFunctions(FunctionTable &table) {
  table.family("Signals");
  table.add("hann_window(; window_length, periodic=true)",
            "0.5 - 0.5 cos a of angles a around a circle, of f32", hannWindow);
  table.add("hamming_window(; window_length, periodic=true, alpha=0.54, beta)",
            "alpha - beta cos a, of f32; beta is 1 - alpha by default",
            hammingWindow);
  table.add("blackman_window(; window_length, periodic=true)",
            "0.42 - 0.5 cos a + 0.08 cos 2 a, of f32", blackmanWindow);
  table.add("dft(x; dim=-2, length, onesided=false, inverse=false)",
            "the Fourier transform along a dimension; the last one has the "
            "real and the imaginary part, or the real one alone",
            dft);
  table.add("stft(x, window?; frame_step, frame_length, onesided=true)",
            "the Fourier transforms of frames of signals [N, length, 1 or 2]",
            stft);
}
