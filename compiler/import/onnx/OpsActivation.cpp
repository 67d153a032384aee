//===- OpsActivation.cpp - ONNX: activation functions ---------------------===//
//
// Defaults of ONNX are given in full: they are not those of the functions.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/Translator.h"
#include "ir/ops/Inference.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

/// An attribute of ONNX, the function's name for it, and the default.
struct Number {
  StringRef name, ours;
  double otherwise;
};

static LogicalResult viaFunction(Node &node, StringRef function,
                                 ArrayRef<Number> numbers = {}) {
  if (!node.has(0))
    return node.error("expected an operand");
  SmallVector<NamedAttribute> attributes;
  for (const Number &number : numbers)
    attributes.push_back(
        node.attr(number.ours, node.number(number.name, number.otherwise)));
  node.result(0, node.call(function, node.operand(0), attributes));
  return success();
}

static LogicalResult translatePRelu(Node &node) {
  if (!node.has(0) || !node.has(1))
    return node.error("expected an input and slopes");
  Expr x = node.expr(0), slope = node.expr(1);
  if (!x || !slope)
    return failure();
  // Before version 7 one slope, or one for each channel.
  if (node.opset() < 7 && slope.rank() <= 1) {
    node.result(0, node.call("prelu", {x, slope}));
    return success();
  }
  // The slopes stretch to the input, as NumPy has it.
  int64_t lead = x.rank() - slope.rank();
  SmallVector<int64_t> dims;
  for (int64_t d = 0; d < slope.rank(); ++d) {
    if (lead < 0 || (slope.dim(d) != 1 && slope.dim(d) != x.dim(d + lead)))
      return node.error("expected slopes that stretch to the input's shape " +
                        infer::text(x.shape()) + ", but got " +
                        infer::text(slope.shape()));
    dims.push_back(d + lead);
  }
  node.result(0, node.call("prelu", {x, slope.broadcastTo(x.shape(), dims)}));
  return success();
}

static LogicalResult translateGelu(Node &node) {
  std::string how = node.choice("approximate", {"none", "tanh"});
  if (!node.has(0))
    return node.error("expected an operand");
  node.result(0, node.make("gelu", node.operand(0),
                           {node.attr("approximate", StringRef(how))}));
  return success();
}

/// x sigmoid(alpha x), or that times operand 1.
static LogicalResult translateSwish(Node &node) {
  double alpha = node.number("alpha", 1);
  Expr x = node.expr(0);
  if (!x)
    return node.error("expected an operand");
  Expr y = alpha == 1 ? node.wrap(node.make("silu", x.value))
                      : x * sigmoid(x * alpha);
  if (y && node.op() == "SwiGLU") {
    Expr linear = node.expr(1);
    if (!linear || linear.type() != y.type())
      return node.error("expected two operands of one type and shape");
    y = y * linear;
  }
  node.result(0, y.value);
  return success(bool(y));
}

/// `build` along a dimension; before opset 13 along all from `axis` on.
template <typename Build>
static LogicalResult alongAxis(Node &node, Build build) {
  RankedTensorType type = node.type(0);
  if (!type)
    return node.error("expected an operand");
  int64_t rank = type.getRank();
  int64_t axis = node.integer("axis", node.opset() < 13 ? 1 : -1);
  // ONNX lets a matrix be flattened at its end, too.
  bool flattens = node.opset() < 13;
  if (axis < -rank || axis >= rank + (flattens ? 1 : 0))
    return node.error("expected 'axis' to be a dimension of a tensor of rank " +
                      Twine(rank) + ", but got " + Twine(axis));
  axis += axis < 0 ? rank : 0;
  Expr x = node.expr(0);
  if (!x)
    return failure();
  SmallVector<int64_t> shape(x.shape());
  if (flattens) {
    int64_t rows = 1, columns = 1;
    for (int64_t d = 0; d < rank; ++d)
      (d < axis ? rows : columns) *= shape[d];
    x = x.reshape({rows, columns});
    axis = 1;
  }
  Expr y = node.wrap(build(x.value, node.attr("dim", axis)));
  if (!y)
    return failure();
  node.result(0, y.reshape(shape).value);
  return success();
}

static LogicalResult alongAxisOp(Node &node, StringRef op) {
  return alongAxis(node, [&](Value x, NamedAttribute dim) {
    return node.make(op, x, {dim});
  });
}

void onnx::addActivationOps(OpTable &table) {
  table.add("LeakyRelu", [](Node &node) {
    return viaFunction(node, "leaky_relu", {{"alpha", "negative_slope", 0.01}});
  });
  table.add("Elu", [](Node &node) {
    return viaFunction(node, "elu", {{"alpha", "alpha", 1}});
  });
  table.add("Celu", [](Node &node) {
    return viaFunction(node, "celu", {{"alpha", "alpha", 1}});
  });
  table.add("Selu", [](Node &node) {
    return viaFunction(node, "selu",
                       {{"alpha", "alpha", 1.67326319217681884765625},
                        {"gamma", "gamma", 1.05070102214813232421875}});
  });
  table.add("HardSigmoid", [](Node &node) {
    return viaFunction(node, "hardsigmoid",
                       {{"alpha", "alpha", 0.2}, {"beta", "beta", 0.5}});
  });
  table.add("HardSwish",
            [](Node &node) { return viaFunction(node, "hardswish"); });
  table.add("ThresholdedRelu", [](Node &node) {
    return viaFunction(node, "threshold", {{"alpha", "threshold", 1}});
  });
  table.add("Shrink", [](Node &node) {
    return viaFunction(node, "shrink",
                       {{"lambd", "lambd", 0.5}, {"bias", "bias", 0}});
  });
  table.add("Softplus", [](Node &node) {
    if (!node.has(0))
      return LogicalResult(node.error("expected an operand"));
    node.result(
        0, node.call("softplus", node.operand(0),
                     {node.attr("threshold",
                                std::numeric_limits<double>::infinity())}));
    return LogicalResult(success());
  });
  table.add("Softsign",
            [](Node &node) { return viaFunction(node, "softsign"); });
  table.add("Mish", [](Node &node) { return viaFunction(node, "mish"); });
  table.add("PRelu", translatePRelu, 6);
  table.add("Gelu", translateGelu, 20);
  table.add("Swish", translateSwish, 24);
  table.add("SwiGLU", translateSwish, 28);
  table.add("Softmax", [](Node &node) { return alongAxisOp(node, "softmax"); });
  table.add("LogSoftmax",
            [](Node &node) { return alongAxisOp(node, "log_softmax"); });
  table.add("Hardmax", [](Node &node) {
    return alongAxis(node, [&](Value x, NamedAttribute dim) {
      return node.call("hardmax", x, {dim});
    });
  });
}
