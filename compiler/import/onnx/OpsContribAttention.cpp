//===- OpsContribAttention.cpp - com.microsoft: attention -----------------===//
//
// Attention (of one product for queries, keys and values), MultiHeadAttention
// (of products that were made before) and GroupQueryAttention. Masks of all
// forms become one that is added. What depends on caches that are written in
// place is unsupported.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/NodeAttention.h"
#include "ir/ops/Composite.h"
#include "ir/ops/Inference.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

static constexpr StringRef domain = "com.microsoft";

static Expr part(Node &node, const Expr &x, int64_t dim, int64_t from,
                 int64_t length) {
  return node.wrap(node.call("narrow", x.value,
                             {node.attr("dim", dim), node.attr("start", from),
                              node.attr("length", length)}));
}

/// One index of a dimension, which disappears.
static Expr entry(Node &node, const Expr &x, int64_t dim, int64_t index) {
  return node.wrap(
      node.call("select_index", x.value,
                {node.attr("dim", dim), node.attr("index", index)}));
}

static Expr joined(Node &node, const Expr &x, const Expr &more, int64_t dim) {
  return node.wrap(
      node.call("cat", {x.value, more.value}, node.attr("dim", dim)));
}

/// A mask of integers as what is added to scores: `filter` where it is 0. It
/// has the shapes [N] or [2 N] (where sequences end, and where they begin),
/// [N, S], [N, T, S] or [N, 1, T, S]. Null after a mistake.
static Expr maskOf(Node &node, size_t i, int64_t batch, int64_t keys,
                   Type element, double filter) {
  Expr mask = node.expr(i);
  if (!mask)
    return {};
  Type i64 = node.builder().getI64Type();
  mask = mask.cast(i64);
  Expr seen;
  int64_t rank = mask.rank();
  if (rank == 1) {
    if (mask.dim(0) != batch && mask.dim(0) != 2 * batch) {
      (void)node.unsupported("a mask of " + Twine(mask.dim(0)) +
                             " numbers for " + Twine(batch) + " sequences");
      return {};
    }
    SmallVector<int64_t> shape{batch, keys};
    Expr key = composite::iota(mask, i64, shape, 1);
    seen = compare(ComparePredicate::lt, key,
                   part(node, mask, 0, 0, batch).broadcastTo(shape, {0}));
    if (mask.dim(0) == 2 * batch)
      seen = logicalAnd(
          seen,
          compare(ComparePredicate::ge, key,
                  part(node, mask, 0, batch, batch).broadcastTo(shape, {0})));
  } else {
    seen = compare(ComparePredicate::ne, mask, mask.like(0));
  }
  SmallVector<int64_t> shape(seen.shape());
  if (shape.size() < 2 || shape.size() > 4 || shape.back() != keys) {
    (void)node.unsupported("a mask of shape " + infer::text(mask.shape()));
    return {};
  }
  while (shape.size() < 4)
    shape.insert(shape.begin() + 1, 1);
  seen = seen.reshape(shape);
  auto type = RankedTensorType::get(shape, element);
  Expr zero = node.wrap(node.splat(type, 0));
  return select(seen, zero, zero.like(filter));
}

/// Adds what operand `i` adds to scores, if there is one; false after a
/// mistake.
static bool addBias(Node &node, size_t i, Expr &mask) {
  if (!node.has(i))
    return true;
  Expr bias = node.expr(i);
  if (!bias)
    return false;
  if (!mask) {
    mask = bias;
    return true;
  }
  Expr both[] = {mask, bias.cast(mask.type().getElementType())};
  if (!node.broadcast(both))
    return false;
  mask = both[0] + both[1];
  return true;
}

static double filterOf(Node &node) {
  return node.number("mask_filter_value", -10000.0F);
}

static LogicalResult translateAttention(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  int64_t heads = node.integer("num_heads", 0);
  SmallVector<int64_t> sizes = node.integers("qkv_hidden_sizes");
  double filter = filterOf(node);
  node.ignore({"past_present_share_buffer"});
  if (node.integer("do_rotary", 0) != 0 ||
      node.integer("rotary_embedding_dim", 0) != 0)
    return node.unsupported("rotary positions in the attention");
  if (node.rank(0) != 3 || node.rank(1) != 2)
    return node.error("expected an input [N, T, D] and weights of a matrix");
  int64_t width = node.shape(1)[1];
  if (sizes.empty())
    sizes.assign(3, width / 3);
  int64_t total = 0;
  for (int64_t size : sizes)
    total += std::clamp<int64_t>(size, 0, width);
  if (sizes.size() != 3 || total != width || heads < 1 || sizes[0] < 1 ||
      sizes[2] < 1 || sizes[0] != sizes[1])
    return node.error("expected sizes of queries, keys and values that add "
                      "up to the " +
                      Twine(width) + " columns of the weights");
  Expr all =
      node.wrap(node.call("linalg_matmul", {node.operand(0), node.operand(1)}));
  if (!all)
    return failure();
  if (node.has(2)) {
    Expr bias = node.expr(2);
    if (!bias)
      return failure();
    if (bias.rank() != 1 || bias.dim(0) != width)
      return node.error("expected a bias of " + Twine(width) + " numbers");
    all = all + bias.broadcastTo(all.shape(), {2});
  }
  Expr parts[3];
  for (int64_t i = 0, from = 0; i < 3; from += sizes[i++]) {
    Expr columns = part(node, all, 2, from, sizes[i]);
    if (!columns || !(parts[i] = splitHeads(node, columns, heads)))
      return failure();
  }
  int64_t past = 0;
  if (node.has(4)) { // [2, N, heads, past, D]
    Expr before = node.expr(4);
    if (!before)
      return failure();
    if (before.rank() != 5 || before.dim(0) != 2 || node.has(6))
      return node.unsupported("past keys and values in a shared buffer");
    past = before.dim(3);
    for (int i : {0, 1}) {
      Expr old = entry(node, before, 0, i);
      if (!old || !(parts[i + 1] = joined(node, old, parts[i + 1], 2)))
        return failure();
    }
  }
  NodeAttention attention(node, parts[0], parts[1], parts[2]);
  attention.scale = node.number("scale", 0);
  attention.isCausal = node.integer("unidirectional", 0) != 0;
  attention.past = past;
  if (node.has(3)) {
    attention.mask = maskOf(node, 3, node.shape(0)[0], parts[1].dim(2),
                            parts[0].type().getElementType(), filter);
    if (!attention.mask)
      return failure();
  }
  if (!addBias(node, 5, attention.mask))
    return failure();
  Expr y = attention.build();
  if (!y)
    return failure();
  if (node.wants(1))
    node.result(1, node.call("stack", {parts[1].value, parts[2].value},
                             node.attr("dim", int64_t(0))));
  return give(node, joinHeads(y));
}

/// Adds `from` ... of the bias to x [N, T, D]; false after a mistake.
static bool addProjectionBias(Node &node, Expr &x, int64_t from) {
  if (!node.has(3))
    return true;
  Expr bias = node.expr(3);
  if (!bias)
    return false;
  if (bias.rank() != 1 || bias.dim(0) < from + x.dim(2))
    return (void)node.error("expected a bias for queries, keys and values"),
           false;
  Expr mine = part(node, bias, 0, from, x.dim(2));
  return mine && (x = x + mine.broadcastTo(x.shape(), {2}), true);
}

/// Queries, keys and values [N, heads, T, D] in all the forms that
/// MultiHeadAttention has; false after a mistake.
static bool splitOperands(Node &node, int64_t heads, Expr (&parts)[3]) {
  if (!node.has(1)) { // [N, T, heads, 3, D]
    if (node.rank(0) != 5 || node.shape(0)[3] != 3)
      return (void)node.error("expected keys, or an input [N, T, H, 3, D]"),
             false;
    if (node.has(3))
      return (void)node.unsupported("a bias of packed operands"), false;
    for (int i : {0, 1, 2}) {
      parts[i] = entry(node, node.expr(0), 3, i);
      if (!parts[i])
        return false;
      parts[i] = parts[i].permute({0, 2, 1, 3});
    }
    return true;
  }
  if (node.rank(0) != 3)
    return (void)node.error("expected queries [N, T, D]"), false;
  parts[0] = node.expr(0);
  int64_t width = node.shape(0)[2], at = 0;
  if (!parts[0] || !addProjectionBias(node, parts[0], 0) ||
      !(parts[0] = splitHeads(node, parts[0], heads)))
    return false;
  if (!node.has(2)) { // keys and values [N, S, heads, 2, D]
    if (node.rank(1) != 5 || node.shape(1)[3] != 2 || node.has(3))
      return (void)node.unsupported("keys without values"), false;
    for (int i : {0, 1}) {
      parts[i + 1] = entry(node, node.expr(1), 3, i);
      if (!parts[i + 1])
        return false;
      parts[i + 1] = parts[i + 1].permute({0, 2, 1, 3});
    }
    return true;
  }
  at = width;
  for (size_t i : {1, 2}) {
    Expr x = node.expr(i);
    if (!x)
      return false;
    if (x.rank() == 4) { // of another attention: [N, heads, S, D]
      if (node.has(3) && i == 1 && node.rank(2) != 4)
        return (void)node.unsupported("a bias of split keys"), false;
      parts[i] = x;
      continue;
    }
    if (x.rank() != 3 || !addProjectionBias(node, x, at))
      return (void)node.error("expected keys and values [N, S, D]"), false;
    at += x.dim(2);
    if (!(parts[i] = splitHeads(node, x, heads)))
      return false;
  }
  return true;
}

static LogicalResult translateMultiHeadAttention(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  int64_t heads = node.integer("num_heads", 0);
  double filter = filterOf(node);
  for (size_t i : {1, 2})
    if (node.has(i) && !node.type(i))
      return node.unsupported("operand #" + Twine(i) +
                              ", which is no dense tensor");
  if (node.has(8) || node.has(9))
    return node.unsupported("past keys and values in a shared buffer");
  Expr parts[3];
  if (!splitOperands(node, heads, parts))
    return failure();
  int64_t past = 0;
  if (node.has(6) != node.has(7))
    return node.error("expected past keys and past values, or neither");
  for (size_t i : {0, 1}) {
    if (!node.has(6 + i))
      continue;
    Expr old = node.expr(6 + i);
    if (!old || old.rank() != 4)
      return node.error("expected past keys and values [N, H, S, D]");
    past = old.dim(2);
    if (!(parts[i + 1] = joined(node, old, parts[i + 1], 2)))
      return failure();
  }
  NodeAttention attention(node, parts[0], parts[1], parts[2]);
  attention.scale = node.number("scale", 0);
  attention.isCausal = node.integer("unidirectional", 0) != 0;
  attention.past = past;
  // Its page does not say which ones a query sees then, and in ONNX Runtime the
  // last one sees all, those before it as many as if there were no more.
  if (attention.isCausal && parts[0].dim(2) + past < parts[1].dim(2))
    return node.unsupported("'unidirectional' with more keys than queries");
  attention.wanted = node.wants(3) ? 3 : -1;
  if (node.has(4)) {
    attention.mask = maskOf(node, 4, parts[0].dim(0), parts[1].dim(2),
                            parts[0].type().getElementType(), filter);
    if (!attention.mask)
      return failure();
  }
  if (!addBias(node, 5, attention.mask))
    return failure();
  Expr y = attention.build();
  if (!y)
    return failure();
  node.result(1, parts[1].value);
  node.result(2, parts[2].value);
  if (attention.scores)
    node.result(3, attention.scores.value);
  return give(node, joinHeads(y));
}

//===----------------------------------------------------------------------===//
// Positions and groups
//===----------------------------------------------------------------------===//

/// Cosines or sines [N, T, D / 2] of a table [positions, D / 2] at positions
/// [N, T], or from one on for all sequences, or from 0 on.
static Expr anglesOf(Node &node, size_t table, size_t positions,
                     ArrayRef<int64_t> shape) {
  Expr values = node.expr(table);
  if (!values || values.rank() != 2) {
    (void)node.error("expected a table of angles [positions, D / 2]");
    return {};
  }
  Type i64 = node.builder().getI64Type();
  Expr place = composite::iota(values, i64, shape, 1);
  if (node.has(positions)) {
    Expr given = node.expr(positions);
    if (!given)
      return {};
    given = given.cast(i64);
    if (given.shape() == shape)
      place = given;
    else if (given.type().getNumElements() == 1)
      place = place + given.reshape({}).broadcastTo(shape, {});
    else {
      (void)node.error("expected positions " + infer::text(shape) +
                       " or one, but got " + infer::text(given.shape()));
      return {};
    }
  }
  return node.wrap(node.call("index_select", {values.value, place.value},
                             node.attr("dim", int64_t(0))));
}

static LogicalResult translateRotaryEmbedding(Node &node) {
  if (failed(expectOperands(node, 4)))
    return failure();
  int64_t heads = node.integer("num_heads", 0);
  int64_t dimension = node.integer("rotary_embedding_dim", 0);
  bool isInterleaved = node.integer("interleaved", 0) != 0;
  double scale = node.number("scale", 1);
  if (node.integer("is_packed_batching", 0) != 0)
    return node.unsupported("packed sequences");
  Expr x = node.expr(0);
  if (!x)
    return failure();
  if (x.rank() != 3 && x.rank() != 4)
    return node.error("expected an input [N, T, H D] or [N, H, T, D]");
  bool isFlat = x.rank() == 3;
  // Without heads, a head is as long as the table says.
  if (isFlat && heads == 0 && node.rank(2) == 2 && node.shape(2)[1] > 0)
    heads = x.dim(2) / (2 * node.shape(2)[1]);
  if (isFlat && !(x = splitHeads(node, x, heads)))
    return failure();
  x = x.permute({0, 2, 1, 3});
  SmallVector<int64_t> shape{x.dim(0), x.dim(1)};
  Expr cosine = anglesOf(node, 2, 1, shape), sine = anglesOf(node, 3, 1, shape);
  if (!cosine || !sine)
    return failure();
  Expr y = rotated(node, x, cosine, sine, dimension, isInterleaved);
  if (!y)
    return failure();
  if (scale != 1)
    y = y * scale;
  return give(node,
              isFlat ? y.reshape(node.shape(0)) : y.permute({0, 2, 1, 3}));
}

/// Without a cache: what trains, or reads a whole text.
static LogicalResult translateGroupQueryAttention(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  int64_t heads = node.integer("num_heads", 0),
          groups = node.integer("kv_num_heads", 0);
  int64_t window = node.integer("local_window_size", -1);
  bool rotates = node.integer("do_rotary", 0) != 0;
  bool isInterleaved = node.integer("rotary_interleaved", 0) != 0;
  if (node.integer("smooth_softmax", 0) > 0 || node.has(11))
    return node.unsupported("a softmax with a sink");
  if (heads < 1 || groups < 1 || heads > kMaxElements ||
      groups > kMaxElements || node.rank(0) != 3)
    return node.error("expected queries [N, T, D] and numbers of heads");
  for (size_t i : {3, 4})
    if (node.has(i) && node.type(i) && node.type(i).getNumElements() > 0)
      return node.unsupported("a cache of past keys and values");
  Expr parts[3] = {node.expr(0), node.expr(1), node.expr(2)};
  int64_t counts[3] = {heads, groups, groups};
  if (!node.has(1)) { // all in one
    Expr all = parts[0];
    int64_t size = all ? all.dim(2) / (heads + 2 * groups) : 0;
    if (size < 1 || all.dim(2) != size * (heads + 2 * groups))
      return node.error("expected a width that the heads of queries, keys and "
                        "values divide");
    for (int64_t i = 0, from = 0; i < 3; from += counts[i++] * size)
      parts[i] = part(node, all, 2, from, counts[i] * size);
  }
  for (int i : {0, 1, 2})
    if (!parts[i] || !(parts[i] = splitHeads(node, parts[i], counts[i])))
      return failure();
  SmallVector<int64_t> shape{parts[0].dim(0), parts[0].dim(2)};
  if (rotates) {
    if (!node.has(7) || !node.has(8))
      return node.error("expected tables of angles");
    Expr cosine = anglesOf(node, 7, 9, shape),
         sine = anglesOf(node, 8, 9, shape);
    if (!cosine || !sine)
      return failure();
    for (int i : {0, 1}) {
      parts[i] = rotated(node, parts[i].permute({0, 2, 1, 3}), cosine, sine,
                         2 * cosine.dim(2), isInterleaved);
      if (!parts[i])
        return failure();
      parts[i] = parts[i].permute({0, 2, 1, 3});
    }
  }
  NodeAttention attention(node, parts[0], parts[1], parts[2]);
  attention.scale = node.number("scale", 0);
  attention.softcap = node.number("softcap", 0);
  attention.isCausal = true;
  // A window counts the query itself.
  attention.left = window > 0 ? window - 1 : -1;
  if (!addBias(node, 10, attention.mask))
    return failure();
  Expr y = attention.build();
  if (!y)
    return failure();
  node.result(1, parts[1].value);
  node.result(2, parts[2].value);
  return give(node, joinHeads(y));
}

void onnx::addContribAttentionOps(OpTable &table) {
  auto add = [&](StringRef op, Translation translation) {
    table.add(domain, op, translation, 1, 1);
  };
  add("Attention", translateAttention);
  add("MultiHeadAttention", translateMultiHeadAttention);
  add("RotaryEmbedding", translateRotaryEmbedding);
  add("GroupQueryAttention", translateGroupQueryAttention);
}
