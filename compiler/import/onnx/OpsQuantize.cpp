//===- OpsQuantize.cpp - ONNX: integers that stand for numbers ------------===//
#include "compiler/import/onnx/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

/// The attribute `axis`, where the scale has several numbers.
static FailureOr<SmallVector<NamedAttribute>> axisOf(Node &node) {
  if (node.integer("block_size", 0) != 0)
    return node.unsupported("scales of blocks");
  int64_t axis = node.integer("axis", 1);
  SmallVector<NamedAttribute> list;
  if (node.type(1).getNumElements() == 1)
    return list;
  auto dim = dimension(node, "'axis'", axis, node.rank(0));
  if (failed(dim))
    return failure();
  list.push_back(node.attr("dim", *dim));
  return list;
}

static LogicalResult translateQuantize(Node &node) {
  node.ignore({"saturate"}); // of 8-bit floats alone
  if (failed(expectOperands(node, 2)))
    return failure();
  auto list = axisOf(node);
  if (failed(list))
    return failure();
  int64_t kind = node.integer("output_dtype", 0);
  Value zero;
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
  if (!isa<IntegerType>(getElementTypeOrSelf(zero)))
    return node.unsupported("quantization to 8-bit floats");
  return give(node, node.call("quantize_linear",
                              {node.operand(0), node.operand(1), zero}, *list));
}

static LogicalResult translateDequantize(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  auto list = axisOf(node);
  if (failed(list))
    return failure();
  if (!isa<IntegerType>(node.elementType(0)))
    return node.unsupported("quantization of 8-bit floats");
  SmallVector<Value> operands{node.operand(0), node.operand(1)};
  if (node.has(2))
    operands.push_back(node.operand(2));
  return give(node, node.call("dequantize_linear", operands, *list));
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
  table.add("DynamicQuantizeLinear", translateDynamicQuantize, 11);
  table.add("MatMulInteger", translateMatMulInteger, 10);
  table.add("QLinearMatMul", translateQLinearMatMul, 10);
}
