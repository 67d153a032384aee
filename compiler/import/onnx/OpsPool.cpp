//===- OpsPool.cpp - ONNX: pooling ----------------------------------------===//
#include "compiler/import/onnx/NodeWindows.h"
#include "ir/ops/Composite.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

/// The type of operand 0, which must have at least three dimensions; null after
/// a mistake.
static RankedTensorType imagesOf(Node &node) {
  RankedTensorType type = node.type(0);
  if (!type)
    (void)node.error("expected the input to be a dense tensor");
  else if (type.getRank() < 3)
    (void)node.error("expected the input to have at least 3 dimensions, but "
                     "got " +
                     Twine(type.getRank()));
  return type && type.getRank() >= 3 ? type : RankedTensorType();
}

/// The product of the sizes from `from` on.
static int64_t elementsFrom(ArrayRef<int64_t> shape, size_t from) {
  int64_t size = 1;
  for (int64_t d : shape.drop_front(from))
    size *= d;
  return size;
}

/// ONNX counts in the whole tensor; `position` counts in each plane. With
/// `isColumnMajor` the plane is counted column by column.
static Value indicesOf(Node &node, Value position, ArrayRef<int64_t> shape,
                       bool isColumnMajor) {
  Expr index = node.wrap(position);
  Type i64 = node.builder().getI64Type();
  int64_t planes = shape[0] * shape[1], plane = 1;
  for (int64_t size : shape.drop_front(2))
    plane *= size;
  if (isColumnMajor) {
    if (plane > int64_t(1) << 24) {
      (void)node.unsupported("column-major indices of planes of more than 2^24 "
                             "elements");
      return {};
    }
    SmallVector<int64_t> table;
    for (int64_t i = 0; i < plane; ++i) {
      // Of i, the last dimension counts least; here the first does.
      int64_t rest = i, step = plane, sum = 0;
      for (int64_t size : llvm::reverse(shape.drop_front(2))) {
        step /= size;
        sum += rest % size * step;
        rest /= size;
      }
      table.push_back(sum);
    }
    Value values = node.constant(node.ints(table));
    index = node.wrap(node.make("take", {values, index.value}));
    if (!index)
      return {};
  }
  SmallVector<int64_t> result(index.shape());
  Expr flat = index.reshape({planes, elementsFrom(index.shape(), 2)});
  Expr base =
      composite::iota(flat, i64, flat.shape(), 0) * static_cast<double>(plane);
  return (flat + base).reshape(result);
}

static LogicalResult translateMaxPool(Node &node) {
  RankedTensorType type = imagesOf(node);
  if (!type)
    return failure();
  auto windows = NodeWindows::get(node, type.getShape().drop_front(2));
  int64_t order = node.integer("storage_order", 0);
  bool isCeil = node.integer("ceil_mode", 0);
  if (failed(windows))
    return failure();
  auto attributes = windows->attributes(node, true);
  attributes.push_back(
      node.attr("ceil_mode", node.builder().getBoolAttr(isCeil)));
  auto made = node.callAll("max_pool", node.operand(0), attributes);
  if (made.empty())
    return failure();
  node.result(0, made[0]);
  if (node.wants(1))
    node.result(1, indicesOf(node, made[1], type.getShape(), order != 0));
  return success();
}

static LogicalResult translateAveragePool(Node &node) {
  RankedTensorType type = imagesOf(node);
  if (!type)
    return failure();
  auto windows = NodeWindows::get(node, type.getShape().drop_front(2));
  bool counts = node.integer("count_include_pad", 0);
  bool isCeil = node.integer("ceil_mode", 0);
  if (failed(windows))
    return failure();
  auto attributes = windows->attributes(node, true);
  OpBuilder &b = node.builder();
  attributes.push_back(node.attr("ceil_mode", b.getBoolAttr(isCeil)));
  attributes.push_back(node.attr("count_include_pad", b.getBoolAttr(counts)));
  node.result(0, node.call("avg_pool", node.operand(0), attributes));
  return success();
}

static LogicalResult translateLpPool(Node &node) {
  RankedTensorType type = imagesOf(node);
  if (!type)
    return failure();
  ArrayRef<int64_t> input = type.getShape().drop_front(2);
  auto windows = NodeWindows::get(node, input);
  bool isCeil = node.integer("ceil_mode", 0);
  double p = node.opset() < 2 ? node.number("p", 2)
                              : static_cast<double>(node.integer("p", 2));
  if (failed(windows))
    return failure();
  // What the last windows see beyond the padding is padding too.
  for (size_t d = 0; isCeil && d < input.size(); ++d) {
    int64_t span = (windows->kernel[d] - 1) * windows->dilations[d] + 1;
    int64_t &after = windows->padding[2 * d + 1];
    int64_t room = input[d] + windows->padding[2 * d] + after - span;
    int64_t stride = windows->strides[d];
    // A window that begins behind the input is none, as in other pools.
    int64_t last = llvm::alignTo(std::max<int64_t>(room, 0), stride);
    if (room > 0 && last < input[d] + windows->padding[2 * d])
      after += last - room;
  }
  auto attributes = windows->attributes(node, true);
  attributes.push_back(node.attr("norm_type", p));
  node.result(0, node.call("lp_pool", node.operand(0), attributes));
  return success();
}

static LogicalResult translateGlobal(Node &node, StringRef function) {
  if (!imagesOf(node))
    return failure();
  node.result(0, node.call(function, node.operand(0)));
  return success();
}

static LogicalResult translateGlobalLpPool(Node &node) {
  if (!imagesOf(node))
    return failure();
  double p = node.opset() < 2 ? node.number("p", 2)
                              : static_cast<double>(node.integer("p", 2));
  node.result(0, node.call("global_lp_pool", node.operand(0),
                           {node.attr("norm_type", p)}));
  return success();
}

static LogicalResult translateMaxUnpool(Node &node) {
  RankedTensorType type = imagesOf(node);
  if (!type || !node.type(1))
    return node.error("expected an input [N, C, ...] and indices");
  ArrayRef<int64_t> shape = type.getShape();
  auto windows = NodeWindows::get(node, shape.drop_front(2));
  if (failed(windows))
    return failure();
  // The shape that the pool probably had, in which the indices count.
  SmallVector<int64_t> output;
  int64_t plane = 1;
  for (size_t d = 0; d < windows->kernel.size(); ++d) {
    int64_t size = (shape[d + 2] - 1) * windows->strides[d] +
                   windows->kernel[d] - windows->padding[2 * d] -
                   windows->padding[2 * d + 1];
    if (size < 1 || size >= int64_t(1) << 31)
      return node.error("expected a result of at least 1 along dimension " +
                        Twine(d + 2) + ", but got " + Twine(size));
    output.push_back(size);
    plane *= size;
    if (plane > kMaxElements)
      return node.error("the result is too large");
  }
  Expr index = node.expr(1);
  if (!index || index.shape() != shape)
    return node.error("expected an index for each element of the input");
  Type i64 = node.builder().getI64Type();
  index = index.cast(i64);
  int64_t planes = shape[0] * shape[1];
  Expr flat = index.reshape({planes, elementsFrom(shape, 2)});
  Expr base =
      composite::iota(flat, i64, flat.shape(), 0) * static_cast<double>(plane);
  index = (flat - base).reshape(shape);
  Value y = node.call("max_unpool", {node.operand(0), index},
                      {node.attr("output_size", ArrayRef<int64_t>(output))});
  if (!y)
    return failure();
  // A larger shape that is asked for has zeros behind that.
  if (node.has(2)) {
    auto asked = node.needInts(2, "the shape");
    if (failed(asked))
      return failure();
    SmallVector<int64_t> low(shape.size(), 0), high(shape.size(), 0);
    if (asked->size() != shape.size())
      return node.error("expected a shape of " + Twine(shape.size()) +
                        " sizes");
    for (size_t d = 2; d < shape.size(); ++d) {
      high[d] = (*asked)[d] - output[d - 2];
      if (high[d] < 0)
        return node.unsupported("an 'output_shape' smaller than that of the "
                                "pool's input");
    }
    y = node.make(
        "pad", y,
        {node.attr("low", ArrayRef<int64_t>(low)),
         node.attr("high", ArrayRef<int64_t>(high)),
         node.attr("interior", ArrayRef<int64_t>(low)),
         node.attr("value", mlir::Attribute(node.builder().getFloatAttr(
                                type.getElementType(), 0)))});
  }
  node.result(0, y);
  return success();
}

void onnx::addPoolOps(OpTable &table) {
  table.add("MaxPool", translateMaxPool);
  table.add("MaxUnpool", translateMaxUnpool);
  table.add("AveragePool", translateAveragePool);
  table.add("LpPool", translateLpPool);
  table.add("GlobalAveragePool", [](Node &node) {
    return translateGlobal(node, "global_avg_pool");
  });
  table.add("GlobalMaxPool", [](Node &node) {
    return translateGlobal(node, "global_max_pool");
  });
  table.add("GlobalLpPool", translateGlobalLpPool);
}
