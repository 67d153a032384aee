//===- OpsQuantize.cpp - ONNX: integers that stand for numbers ------------===//
#include "compiler/import/onnx/Narrow.h"
#include "compiler/import/onnx/Ops.h"
#include "ir/ops/Inference.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

/// One number for each block of `size` elements along `dim` (of the last one
/// there may be less), for each element of `shape`; null after a mistake.
static Expr ofBlocks(Node &node, Expr x, ArrayRef<int64_t> shape, int64_t dim,
                     int64_t size) {
  if (!x)
    return x;
  SmallVector<int64_t> expected(shape);
  expected[dim] = (shape[dim] + size - 1) / size;
  if (x.shape() != ArrayRef<int64_t>(expected)) {
    (void)node.error("expected scales and zero points of blocks " +
                     infer::text(expected) + ", but got " +
                     infer::text(x.shape()));
    return {};
  }
  SmallVector<int64_t> wide(x.shape()), dims, whole(x.shape());
  wide.insert(wide.begin() + dim + 1, size);
  whole[dim] *= size;
  for (int64_t d = 0; d <= x.rank(); ++d)
    if (d != dim + 1)
      dims.push_back(d);
  x = x.broadcastTo(wide, dims).reshape(whole);
  return node.wrap(
      node.call("narrow", x.value,
                {node.attr("dim", dim), node.attr("start", int64_t(0)),
                 node.attr("length", shape[dim])}));
}

/// The attribute `axis`, where the scale has several numbers. Scales of blocks
/// (operand 1, and zero points) are stretched to one for each element.
static FailureOr<SmallVector<NamedAttribute>> axisOf(Node &node, Value &scale,
                                                     Value &zero) {
  int64_t axis = node.integer("axis", 1), size = node.integer("block_size", 0);
  SmallVector<NamedAttribute> list;
  if (!scale)
    return failure();
  if (size != 0) {
    auto dim = dimension(node, "'axis'", axis, node.rank(0));
    if (failed(dim))
      return failure();
    if (size < 1 || size > node.shape(0)[*dim])
      return node.error("expected a 'block_size' of 1 to " +
                        Twine(node.shape(0)[*dim]) + ", but got " +
                        Twine(size));
    scale = ofBlocks(node, node.wrap(scale), node.shape(0), *dim, size);
    if (zero && cast<RankedTensorType>(zero.getType()).getRank() > 0)
      zero = ofBlocks(node, node.wrap(zero), node.shape(0), *dim, size);
    if (!scale)
      return failure();
    return list;
  }
  if (node.type(1).getNumElements() == 1)
    return list;
  auto dim = dimension(node, "'axis'", axis, node.rank(0));
  if (failed(dim))
    return failure();
  list.push_back(node.attr("dim", *dim));
  return list;
}

static LogicalResult translateQuantize(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  if (int64_t precision = node.integer("precision", 0);
      precision && precision != int64_t(ElementKind::F32) &&
      precision != int64_t(ElementKind::F64))
    return node.unsupported("a division in another precision than float");
  int64_t kind = node.integer("output_dtype", 0);
  Value zero;
  ElementKind narrow = node.datum(2).kind;
  if (!node.has(2) && isNarrow(static_cast<ElementKind>(kind)))
    narrow = static_cast<ElementKind>(kind);
  if (!node.has(2) && isNarrow(narrow))
    kind = static_cast<int64_t>(carrierOf(narrow));
  if (node.has(2)) {
    zero = node.operand(2);
    if (!zero)
      return failure();
  } else {
    Type element =
        kind ? node.elementTypeOf(kind)
             : IntegerType::get(node.context(), 8, IntegerType::Unsigned);
    if (!element)
      return failure();
    zero = node.splat(RankedTensorType::get({}, element), 0);
  }
  bool saturates = node.integer("saturate", 1) != 0;
  if (isa<FloatType>(getElementTypeOrSelf(zero)) && !isNarrow(narrow) &&
      !saturates)
    return node.unsupported("quantization to 8-bit floats that does not "
                            "saturate");
  Value scale = node.operand(1);
  auto list = axisOf(node, scale, zero);
  if (failed(list))
    return failure();
  Value y = node.call("quantize_linear", {node.operand(0), scale, zero}, *list);
  if (!y || !isNarrow(narrow))
    return give(node, y);
  Expr carried = node.wrap(y);
  carried = isa<FloatType>(carried.type().getElementType())
                ? narrowed(node, carried, narrow, saturates)
                : clampedTo(carried, narrow);
  Datum made(carried.value);
  made.kind = narrow;
  node.result(0, made);
  return success();
}

static LogicalResult translateDequantize(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  Type element = node.elementType(1);
  if (int64_t kind = node.integer("output_dtype", 0))
    element = node.elementTypeOf(kind);
  Value scale = node.operand(1), zero = node.operand(2);
  if (!element || !scale)
    return failure();
  // Not rounded to the scale's type before that of the result.
  if (element.getIntOrFloatBitWidth() >
      node.elementType(1).getIntOrFloatBitWidth())
    scale = castTo(node, scale, element);
  auto list = axisOf(node, scale, zero);
  if (failed(list))
    return failure();
  SmallVector<Value> operands{node.operand(0), scale};
  if (node.has(2))
    operands.push_back(zero);
  return give(
      node,
      castTo(node, node.call("dequantize_linear", operands, *list), element));
}

static LogicalResult translateDynamicQuantize(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  SmallVector<Value> made =
      node.callAll("dynamic_quantize_linear", node.operand(0));
  if (made.empty())
    return failure();
  for (size_t i = 0; i < std::min<size_t>(3, node.numResults()); ++i)
    node.result(i, made[i]);
  return success();
}

static LogicalResult translateMatMulInteger(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  SmallVector<Value> operands;
  for (size_t i = 0; i < std::min<size_t>(4, node.numOperands()); ++i)
    operands.push_back(node.operand(i));
  return give(node, node.call("integer_matmul", operands));
}

static LogicalResult translateQLinearMatMul(Node &node) {
  if (failed(expectOperands(node, 8)))
    return failure();
  SmallVector<Value> operands;
  for (size_t i = 0; i < 8; ++i)
    operands.push_back(node.operand(i));
  return give(node, node.call("quantized_matmul", operands));
}

void onnx::addQuantizeOps(OpTable &table) {
  table.add("QuantizeLinear", translateQuantize, 10);
  table.add("DequantizeLinear", translateDequantize, 10);
  // What was quantized with scales of other types than ai.onnx had.
  table.add("com.microsoft", "QuantizeLinear", translateQuantize, 1, 1);
  table.add("com.microsoft", "DequantizeLinear", translateDequantize, 1, 1);
  table.add("DynamicQuantizeLinear", translateDynamicQuantize, 11);
  table.add("MatMulInteger", translateMatMulInteger, 10);
  table.add("QLinearMatMul", translateQLinearMatMul, 10);
}
