//===- OpsAttention.cpp - ONNX: attention and what stands around it -------===//
#include "compiler/import/onnx/NodeAttention.h"
#include "ir/ops/Composite.h"
#include "ir/ops/Inference.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

static LogicalResult expectRanks(Node &node, size_t i,
                                 ArrayRef<int64_t> ranks) {
  if (llvm::is_contained(ranks, node.rank(i)))
    return success();
  std::string list;
  for (int64_t rank : ranks)
    list += (list.empty() ? "" : " or ") + std::to_string(rank);
  return node.error("expected operand #" + Twine(i) + " to have rank " + list +
                    ", but got " + Twine(node.rank(i)));
}

/// `more` behind `x` along a dimension.
static Expr joined(Node &node, const Expr &x, const Expr &more, int64_t dim) {
  return node.wrap(
      node.call("cat", {x.value, more.value}, node.attr("dim", dim)));
}

static Expr part(Node &node, const Expr &x, int64_t dim, int64_t from,
                 int64_t length) {
  return node.wrap(node.call("narrow", x.value,
                             {node.attr("dim", dim), node.attr("start", from),
                              node.attr("length", length)}));
}

static LogicalResult translateAttention(Node &node) {
  if (failed(expectOperands(node, 3)))
    return failure();
  int64_t heads = node.integer("q_num_heads", 0),
          groups = node.integer("kv_num_heads", 0);
  int64_t mode = node.integer("qk_matmul_output_mode", 0);
  bool isFlat = node.rank(0) == 3;
  for (size_t i = 0; i < 3; ++i)
    if (failed(expectRanks(node, i, isFlat ? 3 : 4)))
      return failure();
  Expr q = node.expr(0), k = node.expr(1), v = node.expr(2);
  if (!q || !k || !v)
    return failure();
  v = v.cast(q.type().getElementType());
  if (isFlat) {
    q = splitHeads(node, q, heads);
    k = splitHeads(node, k, groups);
    v = splitHeads(node, v, groups);
    if (!q || !k || !v)
      return failure();
  }
  int64_t past = 0;
  if (node.has(4) != node.has(5))
    return node.error("expected past keys and past values, or neither");
  if (node.has(4)) {
    if (!node.type(4) || !node.type(5))
      return node.error("expected past keys and values to be dense tensors");
    if (failed(expectRanks(node, 4, 4)) || failed(expectRanks(node, 5, 4)))
      return failure();
    past = node.shape(4)[2];
    k = joined(node, node.expr(4), k, 2);
    v = joined(node, node.expr(5).cast(v.type().getElementType()), v, 2);
    if (!k || !v)
      return failure();
  }
  NodeAttention attention(node, q, k, v);
  attention.scale = node.number("scale", 0);
  attention.softcap = node.number("softcap", 0);
  attention.isCausal = node.integer("is_causal", 0) != 0;
  attention.past = past;
  attention.left = node.integer("left_window_size", -1);
  attention.right = node.integer("right_window_size", -1);
  if (node.hasAttribute("softmax_precision") &&
      !(attention.precision =
            node.elementTypeOf(node.integer("softmax_precision", 1))))
    return failure();
  // Where it is no wider than what scores are computed in anyway.
  if (attention.precision &&
      attention.precision.getIntOrFloatBitWidth() <=
          composite::computeType(q.value).getIntOrFloatBitWidth())
    attention.precision = {};
  if (mode < 0 || mode > 3)
    return node.error("expected 'qk_matmul_output_mode' to be 0 to 3, but "
                      "got " +
                      Twine(mode));
  attention.wanted = node.wants(3) ? mode : -1;
  attention.mask = node.expr(3);
  if (node.has(6)) {
    if (node.has(4))
      return node.error("expected past keys or the lengths of sequences, but "
                        "got both");
    if (!(attention.lengths = node.expr(6)))
      return failure();
    attention.lengths = attention.lengths.cast(node.builder().getI64Type());
    attention.pasts = attention.lengths - static_cast<double>(q.dim(2));
  }
  Expr y = attention.build();
  if (!y)
    return failure();
  node.result(0, isFlat ? joinHeads(y).value : y.value);
  node.result(1, k.value);
  node.result(2, v.value);
  if (attention.scores)
    node.result(3, attention.scores.value);
  return success();
}

/// What the graph of an attribute makes of a tensor, of the same type.
static std::function<Expr(const Expr &)> changeOf(Node &node,
                                                  StringRef attribute) {
  std::shared_ptr<const Graph> graph = node.graph(attribute);
  if (!graph)
    return {};
  return [&node, graph, name = attribute.str()](const Expr &x) -> Expr {
    auto made = node.inlineGraph(*graph, {Datum(x.value)});
    if (failed(made))
      return {};
    Expr y =
        node.wrap(made->size() == 1 ? node.valueOf(made->front()) : Value());
    if (y && y.type() == x.type())
      return y;
    (void)node.error("expected the graph '" + name +
                     "' to give one tensor like its operand");
    return {};
  };
}

/// Attention whose scores and their softmax graphs may change.
static LogicalResult translateFlexAttention(Node &node) {
  if (failed(expectOperands(node, 3)))
    return failure();
  NodeAttention attention(node, node.expr(0), node.expr(1), node.expr(2));
  attention.scale = node.number("scale", 0);
  if (node.hasAttribute("softmax_precision") &&
      !(attention.precision =
            node.elementTypeOf(node.integer("softmax_precision", 1))))
    return failure();
  attention.changeScores = changeOf(node, "score_mod");
  attention.changeShares = changeOf(node, "prob_mod");
  Expr y = attention.build();
  return y ? give(node, y) : failure();
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

Expr onnx::rotated(Node &node, Expr x, Expr cosine, Expr sine,
                   int64_t dimension, bool isInterleaved) {
  int64_t width = x.dim(3);
  dimension = dimension ? dimension : width;
  if (dimension < 2 || dimension % 2 || dimension > width) {
    (void)node.error("expected an even number of at most " + Twine(width) +
                     " elements to rotate, but got " + Twine(dimension));
    return {};
  }
  SmallVector<int64_t> half{x.dim(0), x.dim(1), x.dim(2), dimension / 2};
  for (Expr *angle : {&cosine, &sine}) {
    SmallVector<int64_t> expected{half[0], half[1], half[3]};
    if (angle->shape() != ArrayRef<int64_t>(expected)) {
      (void)node.error("expected sines and cosines " + infer::text(expected) +
                       ", but got " + infer::text(angle->shape()));
      return {};
    }
    *angle = angle->broadcastTo(half, {0, 1, 3});
  }
  Expr rest;
  if (dimension < width) {
    rest = part(node, x, 3, dimension, width - dimension);
    x = part(node, x, 3, 0, dimension);
  }
  Expr a, b;
  if (isInterleaved) {
    Expr pairs = x.reshape({half[0], half[1], half[2], half[3], 2});
    a = part(node, pairs, 4, 0, 1).reshape(half);
    b = part(node, pairs, 4, 1, 1).reshape(half);
  } else {
    a = part(node, x, 3, 0, half[3]);
    b = part(node, x, 3, half[3], half[3]);
  }
  Expr real = cosine * a - sine * b, imaginary = sine * a + cosine * b;
  Expr y;
  if (isInterleaved) {
    SmallVector<int64_t> one(half);
    one.push_back(1);
    y = joined(node, real.reshape(one), imaginary.reshape(one), 4)
            .reshape(x.shape());
  } else {
    y = joined(node, real, imaginary, 3);
  }
  return rest ? joined(node, y, rest, 3) : y;
}

static LogicalResult translateRotaryEmbedding(Node &node) {
  if (failed(expectOperands(node, 3)) || failed(expectRanks(node, 0, {3, 4})))
    return failure();
  int64_t heads = node.integer("num_heads", 0);
  int64_t dimension = node.integer("rotary_embedding_dim", 0);
  bool isInterleaved = node.integer("interleaved", 0) != 0;
  Expr x = node.expr(0);
  if (!x)
    return failure();
  bool isFlat = x.rank() == 3;
  if (isFlat && !(x = splitHeads(node, x, heads)))
    return failure();
  x = x.permute({0, 2, 1, 3}); // [N, T, H, D]
  Expr angles[] = {node.expr(1), node.expr(2)};
  for (Expr &angle : angles) {
    if (!angle)
      return failure();
    if (node.has(3))
      angle =
          node.wrap(node.call("index_select", {angle.value, node.operand(3)},
                              node.attr("dim", int64_t(0))));
    if (!angle)
      return failure();
  }
  Expr y = rotated(node, x, angles[0], angles[1], dimension, isInterleaved);
  if (!y)
    return failure();
  return give(node,
              isFlat ? y.reshape(node.shape(0)) : y.permute({0, 2, 1, 3}));
}

//===----------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------===//

/// Places of a cache, along the sequence, that an update is written to.
static LogicalResult translateTensorScatter(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  std::string mode = node.choice("mode", {"linear", "circular"});
  auto axis = dimension(node, "'axis'", node.integer("axis", -2), node.rank(0));
  if (failed(axis))
    return failure();
  Expr cache = node.expr(0), update = node.expr(1);
  if (!cache || !update)
    return failure();
  if (*axis == 0 || cache.rank() != update.rank())
    return node.error("expected an axis behind the batch, and an update of "
                      "the cache's rank");
  Type i64 = node.builder().getI64Type();
  Expr place = composite::iota(update, i64, update.shape(), *axis);
  if (node.has(2)) {
    Expr from = node.expr(2);
    if (!from)
      return failure();
    if (from.rank() != 1 || from.dim(0) != update.dim(0))
      return node.error("expected an index for each of " +
                        Twine(update.dim(0)) + " sequences, but got " +
                        infer::text(from.shape()));
    place = place + from.cast(i64).broadcastTo(update.shape(), {0});
  }
  if (mode == "circular") {
    Value size = place.like(static_cast<double>(cache.dim(*axis)));
    place = node.wrap(node.call("remainder", {place.value, size}));
    if (!place)
      return failure();
  }
  return give(node, node.call("scatter_elements",
                              {cache.value, place.value, update.value},
                              node.attr("dim", *axis)));
}

/// A depthwise convolution that sees the past alone, with what it saw last.
static LogicalResult translateCausalConv(Node &node) {
  if (failed(expectOperands(node, 2)) || failed(expectRanks(node, 0, 3)) ||
      failed(expectRanks(node, 1, 3)))
    return failure();
  std::string activation = node.choice("activation", {"none", "silu", "swish"});
  Expr x = node.expr(0), w = node.expr(1);
  if (!x || !w)
    return failure();
  int64_t channels = x.dim(1), length = x.dim(2), before = w.dim(2) - 1;
  if (before < 0 || w.dim(0) != channels || w.dim(1) != 1)
    return node.error("expected a filter [" + Twine(channels) +
                      ", 1, k], but got " + infer::text(w.shape()));
  SmallVector<int64_t> shape{x.dim(0), channels, before};
  Expr past = node.expr(3);
  if (!node.has(3))
    past = node.wrap(
        node.splat(RankedTensorType::get(shape, x.type().getElementType()), 0));
  if (!past)
    return failure();
  if (past.shape() != ArrayRef<int64_t>(shape))
    return node.error("expected a past state " + infer::text(shape) +
                      ", but got " + infer::text(past.shape()));
  Expr all = before ? joined(node, past, x, 2) : x;
  if (!all)
    return failure();
  SmallVector<Value> operands{all, w};
  if (node.has(2))
    operands.push_back(node.operand(2));
  Value y = node.call("conv", operands, node.attr("groups", channels));
  if (y && activation != "none")
    y = node.make("silu", y);
  if (node.wants(1))
    node.result(1,
                before ? part(node, all, 2, length, before).value : past.value);
  return give(node, y);
}

/// Keys and values summed up, instead of softmax.
static LogicalResult translateLinearAttention(Node &node) {
  if (failed(expectOperands(node, 3)))
    return failure();
  node.ignore({"chunk_size"}); // how it is computed, not what
  std::string rule =
      node.choice("update_rule", {"gated_delta", "linear", "gated", "delta"});
  SmallVector<Value> operands;
  for (size_t i = 0; i < 6; ++i)
    operands.push_back(node.operand(i));
  SmallVector<Value> made =
      node.callAll("linear_attention", operands,
                   {node.attr("rule", StringRef(rule)),
                    node.attr("heads", node.integer("q_num_heads", 0)),
                    node.attr("groups", node.integer("kv_num_heads", 0)),
                    node.attr("scale", node.number("scale", 0))});
  if (made.empty())
    return failure();
  node.result(0, made[0]);
  node.result(1, made[1]);
  return success();
}

void onnx::addAttentionOps(OpTable &table) {
  table.add("Attention", translateAttention, 23);
  table.add("ai.onnx.preview", "FlexAttention", translateFlexAttention, 1, 1);
  table.add("RotaryEmbedding", translateRotaryEmbedding, 23);
  table.add("TensorScatter", translateTensorScatter, 24);
  table.add("CausalConvWithState", translateCausalConv, 27);
  table.add("LinearAttention", translateLinearAttention, 27);
}
