//===- OpsContrib.cpp - com.microsoft: what ONNX Runtime fuses ------------===//
//
// Operators that exporters and the optimizer of ONNX Runtime put in the place
// of several of ai.onnx. Their meaning is that of
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/NodeAttention.h"
#include "ir/ops/Inference.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

static constexpr StringRef domain = "com.microsoft";

/// `x` and a vector along its last dimension.
static Expr withBias(Node &node, const Expr &x, size_t i) {
  if (!x || !node.has(i))
    return x;
  Expr both[] = {x, node.expr(i)};
  if (!both[1])
    return {};
  both[1] = both[1].cast(x.type().getElementType());
  return node.broadcast(both) && both[0].shape() == x.shape()
             ? both[0] + both[1]
             : Expr();
}

/// gelu(x + bias).
static LogicalResult translateGelu(Node &node, StringRef how) {
  if (failed(expectOperands(node, 1)))
    return failure();
  Expr x = withBias(node, node.expr(0), 1);
  if (!x)
    return failure();
  return give(node,
              node.make("gelu", x.value, {node.attr("approximate", how)}));
}

static LogicalResult translateQuickGelu(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  double alpha = node.number("alpha", 1.702f);
  Expr x = node.expr(0);
  return x ? give(node, x * sigmoid(x * alpha)) : failure();
}

static LogicalResult translateBiasAdd(Node &node) {
  if (failed(expectOperands(node, 3)))
    return failure();
  Expr x = withBias(node, withBias(node, node.expr(0), 1), 2);
  return x ? give(node, x.value) : failure();
}

//===----------------------------------------------------------------------===//
// Normalizations
//===----------------------------------------------------------------------===//

/// What a normalization over the last dimension gives, with weights `gamma`
/// and, if it subtracts the mean, `beta`.
static LogicalResult normalize(Node &node, const Expr &x, size_t gamma,
                               size_t beta, bool isSimple, double epsilon) {
  if (!x)
    return failure();
  int64_t last = x.rank() - 1;
  if (last < 0 || !node.has(gamma) || !node.type(gamma) ||
      node.rank(gamma) != 1 || node.shape(gamma)[0] != x.dim(last))
    return node.error("expected a scale for each element of the last "
                      "dimension");
  SmallVector<Value> operands{x.value, node.operand(gamma)};
  if (!isSimple && node.has(beta))
    operands.push_back(node.operand(beta));
  auto made =
      node.callAll(isSimple ? "rms_norm" : "native_layer_norm", operands,
                   {node.attr("axis", int64_t(-1)), node.attr("eps", epsilon)});
  if (made.empty())
    return failure();
  node.result(0, made[0]);
  for (size_t i : {1, 2})
    if (!isSimple && node.wants(i))
      node.result(i, made[i]);
  return success();
}

/// The normalization of input + skip + bias, which is result 3 itself.
static LogicalResult translateSkipNorm(Node &node) {
  bool isSimple = node.op().contains("Simplified");
  if (failed(expectOperands(node, 3)))
    return failure();
  double epsilon = node.number("epsilon", 1e-12f);
  Expr both[] = {node.expr(0), node.expr(1)};
  if (!both[0] || !both[1] || !node.broadcast(both))
    return failure();
  if (both[0].shape() != node.shape(0))
    return node.error("expected a skip that stretches to the input");
  Expr sum = withBias(node, both[0] + both[1], isSimple ? 3 : 4);
  if (!sum)
    return failure();
  node.result(3, sum.value);
  return normalize(node, sum, 2, 3, isSimple, epsilon);
}

/// Rows of a table by index.
static Expr rowsOf(Node &node, size_t table, Value index) {
  return node.wrap(node.call("index_select", {node.operand(table), index},
                             node.attr("dim", int64_t(0))));
}

/// The sum of embeddings of words, positions and segments, normalized.
static LogicalResult translateEmbedNorm(Node &node) {
  if (failed(expectOperands(node, 1)) || !node.has(2) || !node.has(3))
    return node.error("expected words and the tables of words and positions");
  double epsilon = node.number("epsilon", 1e-12f);
  int64_t maskType = node.integer("mask_index_type", 0);
  (void)maskType; // for the shape of result 1
  if (!node.type(2) || !node.type(3) || node.rank(0) != 2 ||
      node.rank(2) != 2 || node.rank(3) != 2)
    return node.error("expected words [N, T] and tables of two dimensions");
  int64_t batch = node.shape(0)[0], steps = node.shape(0)[1];
  Expr sum = rowsOf(node, 2, node.operand(0));
  Expr place;
  if (node.has(8)) {
    place = rowsOf(node, 3, node.operand(8));
    if (place && place.rank() == 3 && place.dim(0) == 1 && batch != 1)
      place = place.reshape({place.dim(1), place.dim(2)});
  } else {
    Value first =
        node.call("narrow", node.operand(3),
                  {node.attr("dim", int64_t(0)), node.attr("start", int64_t(0)),
                   node.attr("length", steps)});
    place = node.wrap(first);
  }
  if (!sum || !place)
    return failure();
  if (place.rank() == 2 && place.dim(0) == steps && place.dim(1) == sum.dim(2))
    place = place.broadcastTo(sum.shape(), {1, 2});
  if (place.type() != sum.type())
    return node.error("expected embeddings of positions " +
                      infer::text(sum.shape()) + ", but got " +
                      infer::text(place.shape()));
  sum = sum + place;
  if (node.has(4)) {
    Value segments = node.operand(1);
    if (!node.has(1))
      segments = node.splat(
          RankedTensorType::get({batch, steps}, node.builder().getI64Type()),
          0);
    Expr segment = rowsOf(node, 4, segments);
    if (!segment || segment.type() != sum.type())
      return failure();
    sum = sum + segment;
  }
  if (node.wants(1)) {
    Type i32 = node.builder().getI32Type();
    Expr mask = node.expr(7);
    if (!node.has(7))
      mask = node.wrap(node.splat(RankedTensorType::get({batch, 1}, i32), 0));
    if (!mask || mask.rank() != 2)
      return node.error("expected a mask [N, T]");
    node.result(1, mask.cast(i32).reduceSum({1}).value);
  }
  node.result(2, sum.value);
  SmallVector<Value> operands{sum.value, node.operand(5), node.operand(6)};
  return give(node, node.call("native_layer_norm", operands,
                              {node.attr("axis", int64_t(-1)),
                               node.attr("eps", epsilon)}));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static LogicalResult translateFusedMatMul(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  double alpha = node.number("alpha", 1);
  Expr sides[] = {node.expr(0), node.expr(1)};
  for (auto [i, name] : {std::pair(0, "transA"), std::pair(1, "transB")}) {
    Expr &x = sides[i];
    bool isTransposed = node.integer(name, 0) != 0;
    if (!x)
      return failure();
    if (!isTransposed || x.rank() < 2)
      continue;
    SmallVector<int64_t> order;
    for (int64_t d = 0; d < x.rank(); ++d)
      order.push_back(d);
    std::swap(order[x.rank() - 1], order[x.rank() - 2]);
    x = x.permute(order);
  }
  for (const char *name : {"transBatchA", "transBatchB"})
    if (node.integer(name, 0) != 0)
      return node.unsupported("'" + Twine(name) + "'");
  Expr y =
      node.wrap(node.call("linalg_matmul", {sides[0].value, sides[1].value}));
  if (!y)
    return failure();
  return give(node, alpha == 1 ? y : y * alpha);
}

static LogicalResult refuseQuantizedWeights(Node &node) {
  return node.unsupported("weights of " + Twine(node.integer("bits", 4)) +
                          " bits, which cannot be trained: export the model "
                          "before it is quantized");
}

void onnx::addContribOps(OpTable &table) {
  auto add = [&](StringRef op, Translation translation) {
    table.add(domain, op, translation, 1, 1);
  };
  add("Gelu", [](Node &node) { return translateGelu(node, "none"); });
  add("BiasGelu", [](Node &node) { return translateGelu(node, "none"); });
  add("FastGelu", [](Node &node) { return translateGelu(node, "tanh"); });
  add("QuickGelu", translateQuickGelu);
  add("BiasAdd", translateBiasAdd);
  add("SkipLayerNormalization", translateSkipNorm);
  add("SkipSimplifiedLayerNormalization", translateSkipNorm);
  add("EmbedLayerNormalization", translateEmbedNorm);
  add("FusedMatMul", translateFusedMatMul);
  add("TransposeMatMul", translateFusedMatMul);
  for (const char *op : {"MatMulNBits", "GatherBlockQuantized", "MatMulBnb4"})
    add(op, refuseQuantizedWeights);
  addContribAttentionOps(table);
}
