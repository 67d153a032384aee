//===- Convolution.cpp - convolutions over one to three dimensions --------===//
//
// All are conv2d, or its gradient for the input. One dimension is two, of which
// the first has size 1. Of three, the first (depth) goes into the batch, and
// its taps into the channels: one product over all taps, rounded once.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Formula.h"
#include "compiler/functions/Function.h"
#include "compiler/functions/Windows.h"

#include <array>

using namespace mlir;
using namespace tandem;

/// Checks what conv and conv_transpose share: x [N, C, ...] and w of the same
/// rank, over `dims` dimensions (0: as many as there are).
static LogicalResult checkOperands(Call &call, int64_t dims) {
  int64_t low = dims ? dims + 2 : 3, high = dims ? dims + 2 : 5;
  if (failed(call.expectFloat(0)) || failed(call.expectFloat(1)) ||
      failed(call.expectSameElements(0, 1)) ||
      failed(call.expectRank(0, low, high)))
    return failure();
  if (call[0].rank() != call[1].rank())
    return call.fail("expected an input and a filter of one rank, but got " +
                     infer::text(call[0].shape()) + " and " +
                     infer::text(call[1].shape()));
  return call.has(2) ? call.expectSameElements(0, 2) : success();
}

/// Adds operand 2, if there is one, to each channel of y.
static CallResults withBias(Call &call, const Expr &y) {
  if (!y || call.failed())
    return failure();
  if (!call.has(2))
    return SmallVector<Value>{y.value};
  if (failed(call.expectShape(2, {y.dim(1)})))
    return failure();
  return SmallVector<Value>{y + call[2].broadcastTo(y.shape(), {1})};
}

//===----------------------------------------------------------------------===//
// conv
//===----------------------------------------------------------------------===//

/// x [N, C, D, H, W] as [N * OD, C * KD, H, W]: each window along depth is an
/// image, whose channels are its taps.
static Expr depthToChannels(Call &call, Expr x, const WindowLine &depth) {
  x = windows::pad(call, x, {0, 0, depth.before, 0, 0},
                   {0, 0, depth.after, 0, 0}, 0);
  SmallVector<Value> taps;
  for (int64_t tap = 0; tap < depth.kernel; ++tap) {
    int64_t start = tap * depth.dilation;
    Expr slice = windows::slice(call, x, 2, start,
                                start + (depth.output - 1) * depth.stride + 1,
                                depth.stride);
    if (!slice)
      return call.at({});
    ArrayRef<int64_t> s = slice.shape();
    taps.push_back(slice.reshape({s[0], s[1], 1, s[2], s[3], s[4]}));
  }
  Expr all = taps.size() == 1
                 ? call.at(taps[0])
                 : call.op("concat", taps, {call.integerAttr("dim", 2)});
  if (!all)
    return call.at({});
  all = all.permute({0, 3, 1, 2, 4, 5});
  ArrayRef<int64_t> s = all.shape();
  return all.reshape({s[0] * s[1], s[2] * s[3], s[4], s[5]});
}

static CallResults conv(Call &call, int64_t dims) {
  if (failed(checkOperands(call, dims)))
    return failure();
  Expr x = call[0], w = call[1];
  int64_t groups = call.integer("groups", 1);
  auto lines = windows::lines(call, x.shape().drop_front(2),
                              w.shape().drop_front(2), false);
  if (!lines || call.failed())
    return failure();
  if (groups < 1 || x.dim(1) % groups || w.dim(0) % groups ||
      w.dim(1) != x.dim(1) / groups)
    return call.fail("expected 'groups' (" + Twine(groups) +
                     ") to divide the channels and the filters, each of which "
                     "sees the channels of its group, but got an input " +
                     infer::text(x.shape()) + " and a filter " +
                     infer::text(w.shape()));
  SmallVector<int64_t> result = {x.dim(0), w.dim(0)};
  for (const WindowLine &line : *lines)
    result.push_back(line.output);

  WindowLine one, *height = &one, *width = &lines->back();
  if (x.rank() == 3) {
    x = x.reshape({x.dim(0), x.dim(1), 1, x.dim(2)});
    w = w.reshape({w.dim(0), w.dim(1), 1, w.dim(2)});
  } else {
    height = &(*lines)[lines->size() - 2];
  }
  if (x.rank() == 5) {
    x = depthToChannels(call, x, lines->front());
    w = w.reshape({w.dim(0), w.dim(1) * w.dim(2), w.dim(3), w.dim(4)});
  }
  if (!x)
    return failure();
  auto attributes = windows::attributes(call, *height, *width);
  attributes.push_back(call.integerAttr("groups", groups));
  Expr y = call.op("conv2d", {x, w}, attributes);
  if (!y)
    return failure();
  if (result.size() == 5)
    y = y.reshape({result[0], result[2], result[1], result[3], result[4]})
            .permute({0, 2, 1, 3, 4});
  return withBias(call, y.reshape(result));
}

//===----------------------------------------------------------------------===//
// conv_transpose
//===----------------------------------------------------------------------===//

namespace {

/// What of the whole scattered line of one dimension is the result.
struct Scattered {
  int64_t whole = 1;             ///< without padding
  int64_t first = 0, behind = 0; ///< cut off at its ends; below 0: zeros added
  WindowLine line;

  int64_t size() const { return whole - first - behind; }
  /// Whether all that is left are zeros, as of output padding alone.
  bool isZero() const {
    return whole <= std::max<int64_t>(first, 0) + std::max<int64_t>(behind, 0);
  }
};

} // namespace

static std::optional<SmallVector<Scattered>>
scatteredLines(Call &call, ArrayRef<int64_t> input, ArrayRef<int64_t> kernel) {
  size_t count = input.size();
  auto strides = windows::entries(call, "strides", count, {1}, 1);
  auto dilation = windows::entries(call, "dilation", count, {1}, 1);
  auto more = windows::entries(call, "output_padding", count, {0}, 0);
  // Padding below 0 adds zeros: what is left of an output shape may be that.
  auto pads = windows::padding(call, count, -(int64_t(1) << 31));
  if (!strides || !dilation || !more || !pads)
    return std::nullopt;
  SmallVector<Scattered> list;
  for (size_t d = 0; d < count; ++d) {
    if (kernel[d] < 1) {
      (void)call.fail("expected a kernel of at least 1, but got " +
                      infer::text(kernel));
      return std::nullopt;
    }
    Scattered s;
    s.line.input = input[d];
    s.line.kernel = kernel[d];
    s.line.stride = (*strides)[d];
    s.line.dilation = (*dilation)[d];
    if (s.line.input > (int64_t(1) << 40) / s.line.stride ||
        s.line.kernel > (int64_t(1) << 40) / s.line.dilation) {
      (void)call.fail("expected a result of at most 2^40 elements");
      return std::nullopt;
    }
    s.whole = (s.line.input - 1) * s.line.stride + s.line.span();
    s.first = (*pads)[2 * d];
    s.behind = (*pads)[2 * d + 1] - (*more)[d];
    if (s.size() < 1) {
      (void)call.fail("expected a result of at least 1 along dimension " +
                      Twine(d + 2) + ", but got " + Twine(s.size()));
      return std::nullopt;
    }
    list.push_back(s);
  }
  return list;
}

/// The transposed convolution of x [N, C, H, W] with w [C, M / groups, KH, KW],
/// cut at its ends; zeros that are to be added are not yet.
static Expr scatter2d(Call &call, const Expr &x, const Expr &w,
                      const Scattered &height, const Scattered &width,
                      int64_t groups) {
  WindowLine lines[2];
  SmallVector<int64_t> shape = {x.dim(0), w.dim(1) * groups};
  for (auto [line, from] : llvm::zip(lines, std::array{height, width})) {
    line = from.line;
    line.before = std::max<int64_t>(from.first, 0);
    line.after = std::max<int64_t>(from.behind, 0);
    shape.push_back(from.whole - line.before - line.after);
  }
  auto attributes = windows::attributes(call, lines[0], lines[1]);
  attributes.push_back(call.integerAttr("groups", groups));
  attributes.push_back(call.ints("shape", shape));
  return call.op("conv2d_input_grad", {x, w}, attributes);
}

/// The same over depth too: `planes` [N * ID, M * KD, H, W] are what each slice
/// of the input gives for each tap along depth; they are added where they
/// belong, and cut.
static Expr scatterDepth(Call &call, Expr planes, int64_t batch,
                         const Scattered &depth) {
  int64_t taps = depth.line.kernel, input = depth.line.input;
  int64_t h = planes.dim(2), w = planes.dim(3);
  int64_t channels = planes.dim(1) / taps;
  Type element = planes.type().getElementType();
  Expr parts = planes.reshape({batch, input, channels, taps, h, w})
                   .permute({3, 0, 2, 1, 4, 5});
  Expr sum;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Expr part = windows::slice(call, parts, 0, tap, tap + 1);
    if (!part)
      return call.at({});
    part = part.reshape({batch, channels, input, h, w})
               .cast(composite::computeType(planes.value));
    int64_t low = tap * depth.line.dilation;
    part = windows::pad(call, part, {0, 0, low, 0, 0},
                        {0, 0, depth.line.span() - 1 - low, 0, 0}, 0,
                        {0, 0, depth.line.stride - 1, 0, 0});
    if (!part)
      return call.at({});
    sum = sum ? sum + part : part;
  }
  sum = windows::slice(call, sum, 2, std::max<int64_t>(depth.first, 0),
                       depth.whole - std::max<int64_t>(depth.behind, 0));
  return sum ? sum.cast(element) : sum;
}

static CallResults convTranspose(Call &call, int64_t dims) {
  if (failed(checkOperands(call, dims)))
    return failure();
  Expr x = call[0], w = call[1];
  int64_t groups = call.integer("groups", 1), batch = x.dim(0);
  auto lines =
      scatteredLines(call, x.shape().drop_front(2), w.shape().drop_front(2));
  if (!lines || call.failed())
    return failure();
  if (groups < 1 || w.dim(0) % groups || w.dim(0) != x.dim(1))
    return call.fail("expected a filter over the " + Twine(x.dim(1)) +
                     " channels of the input, which 'groups' (" +
                     Twine(groups) + ") divides, but got " +
                     infer::text(w.shape()));
  if (groups > (int64_t(1) << 40) / std::max<int64_t>(w.dim(1), 1))
    return call.fail("expected a result of at most 2^40 elements");
  int64_t rank = x.rank();
  if (llvm::any_of(*lines, [](const Scattered &s) { return s.isZero(); })) {
    SmallVector<int64_t> shape = {batch, w.dim(1) * groups};
    for (const Scattered &s : *lines)
      shape.push_back(s.size());
    if (!isTensorShape(shape))
      return call.fail("expected a result of at most 2^40 elements");
    return withBias(call, call.full(x.type().getElementType(), shape, 0));
  }

  Scattered one, *height = &one, *width = &lines->back();
  if (rank == 3) {
    x = x.reshape({x.dim(0), x.dim(1), 1, x.dim(2)});
    w = w.reshape({w.dim(0), w.dim(1), 1, w.dim(2)});
  } else {
    height = &(*lines)[rank - 4];
  }
  if (rank == 5) {
    x = x.permute({0, 2, 1, 3, 4});
    x = x.reshape({x.dim(0) * x.dim(1), x.dim(2), x.dim(3), x.dim(4)});
    w = w.reshape({w.dim(0), w.dim(1) * w.dim(2), w.dim(3), w.dim(4)});
  }
  Expr y = scatter2d(call, x, w, *height, *width, groups);
  if (y && rank == 5)
    y = scatterDepth(call, y, batch, lines->front());
  if (!y)
    return failure();
  if (rank == 3)
    y = y.reshape({y.dim(0), y.dim(1), y.dim(3)});
  SmallVector<int64_t> low = {0, 0}, high = {0, 0};
  for (const Scattered &s : *lines) {
    low.push_back(std::max<int64_t>(-s.first, 0));
    high.push_back(std::max<int64_t>(-s.behind, 0));
  }
  y = windows::pad(call, y, low, high, 0);
  return withBias(call, y);
}

void tandem::addConvolutionFunctions(FunctionTable &table) {
  table.family("Convolution");
  static constexpr const char *kShapes =
      "x is [N, C, ...], w [O, C / groups, ...], bias [O]";
  auto name = [](StringRef head, StringRef more) {
    return (head + "(x, w, bias?; strides=[1], padding=[0], " + more +
            "dilation=[1], groups=1)")
        .str();
  };
  table.add(name("conv", ""),
            std::string("convolution over one to three dimensions: ") + kShapes,
            [](Call &call) { return conv(call, 0); });
  table.add(name("conv1d", ""), "convolution over one dimension",
            [](Call &call) { return conv(call, 1); });
  table.add(name("conv3d", ""), "convolution over three dimensions",
            [](Call &call) { return conv(call, 3); });
  StringRef more = "output_padding=[0], ";
  table.add(name("conv_transpose", more),
            "transposed convolution over one to three dimensions: x is [N, C, "
            "...], w [C, O / groups, ...], bias [O]",
            [](Call &call) { return convTranspose(call, 0); });
  table.add(name("conv_transpose1d", more),
            "transposed convolution over one dimension",
            [](Call &call) { return convTranspose(call, 1); });
  table.add(name("conv_transpose2d", more),
            "transposed convolution over two dimensions",
            [](Call &call) { return convTranspose(call, 2); });
  table.add(name("conv_transpose3d", more),
            "transposed convolution over three dimensions",
            [](Call &call) { return convTranspose(call, 3); });
}
