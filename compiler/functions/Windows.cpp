//===- Windows.cpp - the windows of convolution and pooling ---------------===//
#include "compiler/functions/Windows.h"
#include "ir/ops/Inference.h"

using namespace mlir;
using namespace tandem;

static constexpr int64_t kLimit = int64_t(1) << 31;

std::optional<SmallVector<int64_t>>
windows::entries(Call &call, StringRef name, size_t count,
                 ArrayRef<int64_t> otherwise, int64_t least) {
  SmallVector<int64_t> list = call.integers(name, otherwise);
  if (list.size() == 1)
    list.resize(count, list[0]);
  if (list.size() == count &&
      llvm::all_of(list, [&](int64_t x) { return x >= least && x < kLimit; }))
    return list;
  (void)call.fail("expected '" + name + "' to have " + Twine(count) +
                  " entries of at least " + Twine(least) + ", but got " +
                  infer::text(list));
  return std::nullopt;
}

std::optional<SmallVector<int64_t>> windows::padding(Call &call, size_t count,
                                                     int64_t least) {
  size_t given = call.integers("padding", {0}).size();
  if (given == 2 * count && given != 1)
    return entries(call, "padding", given, {0}, least);
  auto list = entries(call, "padding", count, {0}, least);
  if (!list)
    return std::nullopt;
  SmallVector<int64_t> both;
  for (int64_t entry : *list)
    both.append({entry, entry});
  return both;
}

/// x / y, rounded down, for y > 0.
static int64_t floorDiv(int64_t x, int64_t y) {
  return x >= 0 ? x / y : -((-x + y - 1) / y);
}

std::optional<WindowLines> windows::lines(Call &call, ArrayRef<int64_t> input,
                                          ArrayRef<int64_t> kernel,
                                          bool isPooling) {
  size_t count = input.size();
  auto strides = entries(call, "strides", count,
                         isPooling ? kernel : ArrayRef<int64_t>{1}, 1);
  auto dilation = entries(call, "dilation", count, {1}, 1);
  auto pads = padding(call, count);
  bool isCeil = isPooling && call.flag("ceil_mode", false);
  if (!strides || !dilation || !pads || call.failed())
    return std::nullopt;
  WindowLines lines;
  for (size_t d = 0; d < count; ++d) {
    if (kernel[d] < 1 || kernel[d] >= kLimit) {
      (void)call.fail("expected a kernel of at least 1, but got " +
                      infer::text(kernel));
      return std::nullopt;
    }
    WindowLine line{input[d],
                    kernel[d],
                    (*strides)[d],
                    (*dilation)[d],
                    (*pads)[2 * d],
                    (*pads)[2 * d + 1],
                    1,
                    0};
    int64_t padded = line.input + line.before + line.after;
    int64_t room = padded - line.span();
    line.output =
        floorDiv(room + (isCeil ? line.stride - 1 : 0), line.stride) + 1;
    // The last window starts in the input or in the padding before it.
    if (isCeil && (line.output - 1) * line.stride >= line.input + line.before)
      --line.output;
    if (line.output < 1) {
      (void)call.fail("expected the dilated kernel (" + Twine(line.span()) +
                      ") to fit into the padded input (" + Twine(padded) +
                      ") along dimension " + Twine(d + 2));
      return std::nullopt;
    }
    line.extra = std::max<int64_t>(0, (line.output - 1) * line.stride +
                                          line.span() - padded);
    lines.push_back(line);
  }
  return lines;
}

SmallVector<NamedAttribute> windows::attributes(Call &call,
                                                const WindowLine &height,
                                                const WindowLine &width) {
  return {call.ints("strides", {height.stride, width.stride}),
          call.ints("padding",
                    {height.before, height.after, width.before, width.after}),
          call.ints("dilation", {height.dilation, width.dilation})};
}

Expr windows::pad(Call &call, const Expr &x, ArrayRef<int64_t> before,
                  ArrayRef<int64_t> after, double fill,
                  ArrayRef<int64_t> between) {
  if (!x)
    return call.at({});
  auto isZero = [](int64_t n) { return n == 0; };
  if (llvm::all_of(before, isZero) && llvm::all_of(after, isZero) &&
      llvm::all_of(between, isZero))
    return x;
  SmallVector<int64_t> none(x.rank(), 0);
  Type element = x.type().getElementType();
  Attribute value =
      isa<FloatType>(element)
          ? Attribute(call.builder.getFloatAttr(element, fill))
          : call.builder.getIntegerAttr(element, static_cast<int64_t>(fill));
  return call.op("pad", x.value,
                 {call.ints("low", before), call.ints("high", after),
                  call.ints("interior", between.empty() ? none : between),
                  call.builder.getNamedAttr("value", value)});
}

Expr windows::slice(Call &call, const Expr &x, ArrayRef<int64_t> starts,
                    ArrayRef<int64_t> limits, ArrayRef<int64_t> strides) {
  if (!x)
    return call.at({});
  SmallVector<int64_t> ones(x.rank(), 1);
  return call.op("slice", x.value,
                 {call.ints("starts", starts), call.ints("limits", limits),
                  call.ints("strides", strides.empty() ? ones : strides)});
}

Expr windows::slice(Call &call, const Expr &x, int64_t dim, int64_t start,
                    int64_t limit, int64_t stride) {
  if (!x)
    return call.at({});
  SmallVector<int64_t> starts(x.rank(), 0), limits(x.shape()),
      strides(x.rank(), 1);
  starts[dim] = start;
  limits[dim] = limit;
  strides[dim] = stride;
  return slice(call, x, starts, limits, strides);
}
