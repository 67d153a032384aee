//===- OpsConv.cpp - ONNX: convolutions -----------------------------------===//
#include "compiler/import/onnx/NodeWindows.h"
#include "ir/ops/Composite.h"
#include "ir/ops/Inference.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

/// The sizes behind batch and channels of operand `i`, which must be a tensor
/// of at least three dimensions.
static FailureOr<ArrayRef<int64_t>> planeOf(Node &node, size_t i,
                                            StringRef what) {
  RankedTensorType type = node.type(i);
  if (!type)
    return node.error("expected " + what + " to be a dense tensor");
  if (type.getRank() < 3)
    return node.error("expected " + what +
                      " to have at least 3 dimensions, but got " +
                      Twine(type.getRank()));
  return type.getShape().drop_front(2);
}

static LogicalResult translateConv(Node &node) {
  auto input = planeOf(node, 0, "the input");
  auto kernel = planeOf(node, 1, "the filter");
  if (failed(input) || failed(kernel))
    return failure();
  if (input->size() != kernel->size())
    return node.error("expected an input and a filter of one rank");
  auto windows = NodeWindows::get(node, *input, *kernel);
  if (failed(windows))
    return failure();
  auto attributes = windows->attributes(node, false);
  attributes.push_back(node.attr("groups", node.integer("group", 1)));
  node.result(0, node.call("conv",
                           {node.operand(0), node.operand(1), node.operand(2)},
                           attributes));
  return success();
}

/// Operand `i`, of integers, less its zero point (operand `zero`), exact in
/// f64; the zero point is one number, or one for each along `dim`. Null after
/// a mistake.
static Expr centered(Node &node, size_t i, size_t zero, int64_t dim) {
  Expr x = node.expr(i);
  if (!x)
    return x;
  Type f64 = node.builder().getF64Type();
  x = x.cast(f64);
  Expr point = node.expr(zero);
  if (!point)
    return x;
  if (point.type().getNumElements() == 1)
    return x - point.cast(f64).reshape({}).broadcastTo(x.shape(), {});
  if (point.rank() == 1 && point.dim(0) == x.dim(dim))
    return x - point.cast(f64).broadcastTo(x.shape(), {dim});
  (void)node.error("expected a zero point, or one for each of " +
                   Twine(x.dim(dim)));
  return node.wrap({});
}

/// The convolution of operands x and w, less their zero points, in f64: of
/// integers of 8 bits it is exact.
static Expr integerConv(Node &node, size_t x, size_t xZero, size_t w,
                        size_t wZero) {
  auto input = planeOf(node, x, "the input");
  auto kernel = planeOf(node, w, "the filter");
  if (failed(input) || failed(kernel))
    return node.wrap({});
  auto windows = NodeWindows::get(node, *input, *kernel);
  if (failed(windows))
    return node.wrap({});
  Expr images = centered(node, x, xZero, 1);
  Expr filter = centered(node, w, wZero, 0);
  auto attributes = windows->attributes(node, false);
  attributes.push_back(node.attr("groups", node.integer("group", 1)));
  if (!images || !filter)
    return node.wrap({});
  return node.wrap(node.call("conv", {images, filter}, attributes));
}

static LogicalResult translateConvInteger(Node &node) {
  Expr y = integerConv(node, 0, 2, 1, 3);
  if (!y)
    return failure();
  node.result(0, y.cast(node.builder().getI32Type()).value);
  return success();
}

static LogicalResult translateQLinearConv(Node &node) {
  for (size_t i = 0; i < 8; ++i)
    if (!node.type(i))
      return node.error("expected operand " + Twine(i));
  Expr y = integerConv(node, 0, 2, 3, 5);
  if (!y)
    return failure();
  Type f64 = node.builder().getF64Type();
  if (Expr bias = node.expr(8)) {
    if (bias.rank() != 1 || bias.dim(0) != y.dim(1))
      return node.error("expected a bias for each filter");
    y = y + bias.cast(f64).broadcastTo(y.shape(), {1});
  }
  /// One number, or one for each filter.
  auto scale = [&](size_t i) {
    Expr value = node.expr(i).cast(f64);
    if (value.type().getNumElements() == 1)
      return value.reshape({}).broadcastTo(y.shape(), {});
    if (value.rank() == 1 && value.dim(0) == y.dim(1))
      return value.broadcastTo(y.shape(), {1});
    (void)node.error("expected a scale, or one for each filter");
    return node.wrap({});
  };
  Expr x = scale(1), w = scale(4), out = scale(6), zero = scale(7);
  if (!x || !w || !out || !zero)
    return failure();
  Type element = node.elementType(7);
  bool isUnsigned = element.isUnsignedInteger();
  Expr rounded = round(y * (x * w / out)) + zero;
  double low = isUnsigned ? 0 : -128, high = isUnsigned ? 255 : 127;
  rounded = minimum(maximum(rounded, rounded.like(low)), rounded.like(high));
  node.result(0, rounded.cast(element).value);
  return success();
}

static LogicalResult translateConvTranspose(Node &node) {
  auto input = planeOf(node, 0, "the input");
  auto kernel = planeOf(node, 1, "the filter");
  if (failed(input) || failed(kernel))
    return failure();
  size_t count = input->size();
  if (count != kernel->size())
    return node.error("expected an input and a filter of one rank");
  auto windows = NodeWindows::get(node, *input, *kernel);
  if (failed(windows))
    return failure();
  SmallVector<int64_t> more = node.integers("output_padding");
  SmallVector<int64_t> shape = node.integers("output_shape");
  if (more.empty())
    more.assign(count, 0);
  if (shape.size() == count + 2) // with batch and channels, as some write it
    shape.erase(shape.begin(), shape.begin() + 2);
  bool isSame = StringRef(windows->autoPad).starts_with("SAME");
  if (more.size() != count || (!shape.empty() && shape.size() != count))
    return node.error("expected 'output_padding' and 'output_shape' to have " +
                      Twine(count) + " entries");
  if (isSame && shape.empty())
    for (size_t d = 0; d < count; ++d)
      shape.push_back((*input)[d] * windows->strides[d]);
  // What an output shape leaves over is padding; below 0, zeros at the end.
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 1 || shape[d] >= int64_t(1) << 31 || more[d] < 0 ||
        more[d] >= int64_t(1) << 31)
      return node.error("expected 'output_shape' to be at least 1");
    int64_t total = windows->strides[d] * ((*input)[d] - 1) + more[d] +
                    (windows->kernel[d] - 1) * windows->dilations[d] + 1 -
                    shape[d];
    // Unlike convolutions, SAME_UPPER alone pads the end more.
    int64_t less = std::max<int64_t>(total, 0) / 2;
    int64_t rest = std::max<int64_t>(total, 0) - less;
    bool isUpper = windows->autoPad == "SAME_UPPER";
    windows->padding[2 * d] = isUpper ? less : rest;
    windows->padding[2 * d + 1] =
        (isUpper ? rest : less) + std::min<int64_t>(total, 0);
  }
  auto attributes = windows->attributes(node, false);
  attributes.push_back(node.attr("groups", node.integer("group", 1)));
  attributes.push_back(node.attr("output_padding", ArrayRef<int64_t>(more)));
  node.result(0, node.call("conv_transpose",
                           {node.operand(0), node.operand(1), node.operand(2)},
                           attributes));
  return success();
}

/// The places that a filter sees, [N G, K * outputs..., outputs, 2], counted in
/// pixels: where the regular ones are, plus the offsets.
static Value deformedGrid(Node &node, const NodeWindows &windows,
                          int64_t groups, ArrayRef<int64_t> output) {
  Expr offsets = node.expr(2);
  if (!offsets)
    return {};
  int64_t batch = node.shape(0)[0];
  int64_t places = windows.kernel[0] * windows.kernel[1];
  SmallVector<int64_t> expected{batch, groups * places * 2, output[0],
                                output[1]};
  if (offsets.shape() != ArrayRef<int64_t>(expected))
    return (void)node.error("expected offsets " + infer::text(expected) +
                            ", but got " + infer::text(offsets.shape())),
           Value();
  SmallVector<int64_t> shape{batch * groups, places, output[0], output[1]};
  Type element = offsets.type().getElementType();
  offsets = offsets.reshape({shape[0], places, 2, output[0], output[1]});
  SmallVector<Value> axes;
  for (int64_t d = 0; d < 2; ++d) {
    Value mine =
        node.call("select_index", offsets.value,
                  {node.attr("dim", int64_t(2)), node.attr("index", d)});
    if (!mine)
      return {};
    Expr steps = composite::iota(offsets, element, {output[d]}, 0);
    Expr at = (steps * static_cast<double>(windows.strides[d]))
                  .broadcastTo(shape, {2 + d});
    SmallVector<double> taps;
    for (int64_t k = 0; k < places; ++k)
      taps.push_back(static_cast<double>(
          (d == 0 ? k / windows.kernel[1] : k % windows.kernel[1]) *
              windows.dilations[d] -
          windows.padding[2 * d]));
    SmallVector<mlir::Attribute> list;
    for (double tap : taps)
      list.push_back(FloatAttr::get(element, tap));
    Expr tap = node.wrap(node.constant(DenseElementsAttr::get(
        RankedTensorType::get({places}, element), list)));
    axes.push_back(at + tap.broadcastTo(shape, {1}) + node.wrap(mine));
  }
  // The grid has the last dimension first.
  std::swap(axes[0], axes[1]);
  Value grid = node.call("stack", axes, node.attr("dim", int64_t(4)));
  return grid ? node.wrap(grid)
                    .reshape({shape[0], places * output[0], output[1], 2})
                    .value
              : grid;
}

/// A convolution that looks where offsets say, between pixels, and weighs what
/// it sees by a mask.
static LogicalResult translateDeformConv(Node &node) {
  auto input = planeOf(node, 0, "the input");
  auto kernel = planeOf(node, 1, "the filter");
  if (failed(input) || failed(kernel) || !node.type(2))
    return failure();
  if (input->size() != 2 || kernel->size() != 2)
    return node.unsupported("images that are not of two dimensions");
  auto windows = NodeWindows::get(node, *input, *kernel);
  if (failed(windows))
    return failure();
  int64_t group = node.integer("group", 1);
  int64_t groups = node.integer("offset_group", 1);
  int64_t batch = node.shape(0)[0], channels = node.shape(0)[1];
  int64_t filters = node.shape(1)[0];
  if (group < 1 || groups < 1 || channels % group || filters % group ||
      channels % groups || node.shape(1)[1] != channels / group)
    return node.error("expected groups that divide " + Twine(channels) +
                      " channels and " + Twine(filters) + " filters");
  SmallVector<int64_t> output;
  for (size_t d = 0; d < 2; ++d) {
    int64_t room = (*input)[d] + windows->padding[2 * d] +
                   windows->padding[2 * d + 1] -
                   (windows->kernel[d] - 1) * windows->dilations[d] - 1;
    if (room < 0)
      return node.error("expected a filter that fits into the image");
    output.push_back(room / windows->strides[d] + 1);
  }
  int64_t places = windows->kernel[0] * windows->kernel[1];
  int64_t plane = output[0] * output[1];
  Value grid = deformedGrid(node, *windows, groups, output);
  Expr x = node.expr(0), w = node.expr(1);
  if (!grid || !x || !w)
    return failure();
  x = x.reshape({batch * groups, channels / groups, (*input)[0], (*input)[1]});
  Expr seen = node.wrap(
      node.call("grid_sample", {x.value, grid},
                {node.attr("mode", StringRef("bilinear")),
                 node.attr("padding_mode", StringRef("zeros")),
                 node.attr("pixels", node.builder().getBoolAttr(true))}));
  if (!seen)
    return failure();
  seen = seen.reshape({batch * groups, channels / groups, places * plane});
  if (node.has(4)) {
    Expr mask = node.expr(4);
    if (!mask)
      return failure();
    if (mask.rank() != 4 || mask.dim(0) != batch ||
        mask.dim(1) != groups * places || mask.dim(2) != output[0] ||
        mask.dim(3) != output[1])
      return node.error("expected a mask of one number for each place that "
                        "the filter sees");
    seen = seen * mask.reshape({batch * groups, places * plane})
                      .broadcastTo(seen.shape(), {0, 2});
  }
  // Products of each group: [N, g, filters, channels * places] and what it saw.
  int64_t rows = channels / group * places;
  SmallVector<int64_t> weights{batch, group, filters / group, rows};
  w = w.reshape({group, filters / group, rows}).broadcastTo(weights, {1, 2, 3});
  seen = seen.reshape({batch, group, rows, plane});
  Expr y = node.wrap(node.make("matmul", {w, seen}));
  if (!y)
    return failure();
  y = y.reshape({batch, filters, output[0], output[1]});
  if (node.has(3)) {
    Expr bias = node.expr(3);
    if (!bias || bias.rank() != 1 || bias.dim(0) != filters)
      return node.error("expected a bias for each filter");
    y = y + bias.broadcastTo(y.shape(), {1});
  }
  node.result(0, y.value);
  return success();
}

void onnx::addConvOps(OpTable &table) {
  table.add("Conv", translateConv);
  table.add("ConvTranspose", translateConvTranspose);
  table.add("DeformConv", translateDeformConv, 19);
  table.add("ConvInteger", translateConvInteger, 10);
  table.add("QLinearConv", translateQLinearConv, 10);
}
