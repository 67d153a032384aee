//===- OpsLogic.cpp - ONNX: comparisons, bools and bits -------------------===//
#include "compiler/import/onnx/Ops.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

/// Operators of two operands that are functions.
static const llvm::StringMap<const char *> &binaryFunctions() {
  static const llvm::StringMap<const char *> names = {
      {"And", "both"},
      {"Or", "either"},
      {"Xor", "logical_xor"},
      {"Equal", "eq"},
      {"Less", "lt"},
      {"Greater", "gt"},
      {"LessOrEqual", "le"},
      {"GreaterOrEqual", "ge"},
      {"BitwiseAnd", "bitwise_and"},
      {"BitwiseOr", "bitwise_or"},
      {"BitwiseXor", "bitwise_xor"}};
  return names;
}

static LogicalResult translateBinary(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  SmallVector<Value> operands{node.operand(0), node.operand(1)};
  if (node.opset() < 7) {
    // The second operand's dimensions begin at `axis` of the first's.
    bool stretches = node.integer("broadcast", 0) != 0;
    int64_t last = node.rank(0) - node.rank(1);
    int64_t axis = node.integer("axis", last);
    if (stretches && (axis < 0 || axis > last))
      return node.error("expected operand #1 to fit into operand #0 from "
                        "'axis' on");
    int64_t after = last - axis;
    if (stretches && after > 0) {
      SmallVector<int64_t> shape(node.shape(1));
      shape.append(after, 1);
      operands[1] = node.wrap(operands[1]).reshape(shape);
    }
  }
  return give(node, node.call(binaryFunctions().lookup(node.op()), operands));
}

static LogicalResult translateNot(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  return give(node, node.make("logical_not", node.operand(0)));
}

static LogicalResult translateBitwiseNot(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  return give(node, node.call("bitwise_not", node.operand(0)));
}

static LogicalResult translateBitShift(Node &node) {
  std::string direction = node.choice("direction", {"LEFT", "RIGHT"});
  if (!node.hasAttribute("direction"))
    return node.error("expected the attribute 'direction'");
  if (failed(expectOperands(node, 2)))
    return failure();
  return give(node, node.call(direction == "LEFT" ? "bitwise_left_shift"
                                                  : "bitwise_right_shift",
                              {node.operand(0), node.operand(1)}));
}

static LogicalResult translateWhere(Node &node) {
  if (failed(expectOperands(node, 3)))
    return failure();
  return give(node, node.call("where", {node.operand(0), node.operand(1),
                                        node.operand(2)}));
}

static LogicalResult translateIsNaN(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  return give(node, node.call("isnan", node.operand(0)));
}

static LogicalResult translateIsInf(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  OpBuilder &b = node.builder();
  bool positive = node.integer("detect_positive", 1) != 0;
  bool negative = node.integer("detect_negative", 1) != 0;
  return give(
      node, node.call("isinf", node.operand(0),
                      {node.attr("detect_positive", b.getBoolAttr(positive)),
                       node.attr("detect_negative", b.getBoolAttr(negative))}));
}

void onnx::addLogicOps(OpTable &table) {
  for (const auto &entry : binaryFunctions())
    table.add(entry.getKey(), translateBinary);
  table.add("Not", translateNot);
  table.add("BitwiseNot", translateBitwiseNot);
  table.add("BitShift", translateBitShift);
  table.add("Where", translateWhere);
  table.add("IsNaN", translateIsNaN);
  table.add("IsInf", translateIsInf);
}
