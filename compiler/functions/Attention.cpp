//===- Attention.cpp - attention with masks, dropout and grouped heads ----===//
//
// Without dropout it is the op `attention`, for which targets have kernels.
// Otherwise softmax is computed in f32 at least, and so are scores,
// unless `wide_scores` is off: then they are rounded to the operands' type. A
// row that sees nothing gives 0.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Formula.h"
#include "compiler/functions/Function.h"
#include "compiler/functions/Windows.h"
#include "ir/ops/Composite.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::formula;

/// x [..., heads, rows, columns] with each head `times` times.
static Expr repeatHeads(const Expr &x, int64_t times) {
  if (times == 1)
    return x;
  int64_t head = x.rank() - 3;
  SmallVector<int64_t> wide(x.shape()), result(x.shape()), dims;
  wide.insert(wide.begin() + head + 1, times);
  result[head] *= times;
  for (int64_t d = 0; d <= x.rank(); ++d)
    if (d != head + 1)
      dims.push_back(d);
  return x.broadcastTo(wide, dims).reshape(result);
}

/// The mask in the shape of the scores; null after a mistake.
static Expr maskFor(Call &call, ArrayRef<int64_t> shape) {
  Expr mask = call[3];
  Type element = mask.type().getElementType();
  if (isa<FloatType>(element) || element.isInteger(1))
    return call.stretch(mask, shape);
  (void)call.fail("expected a mask of floats, which are added to the scores, "
                  "or of bools, true where a position is seen");
  return {};
}

static CallResults attend(Call &call) {
  for (size_t i = 0; i < 3; ++i)
    if (failed(call.expectFloat(i)) || failed(call.expectRank(i, 2, 64)) ||
        failed(call.expectSameElements(0, i)))
      return failure();
  Expr q = call[0], k = call[1], v = call[2];
  bool isCausal = call.flag("is_causal", false);
  bool isGrouped = call.flag("enable_gqa", false);
  bool training = call.flag("training", true);
  bool wideScores = call.flag("wide_scores", true);
  double p = call.number("dropout_p", 0);
  int64_t draw = call.integer("draw", 0);
  int64_t rank = q.rank();
  if (k.rank() != rank || v.rank() != rank)
    return call.fail("expected queries, keys and values of one rank");
  if (isGrouped) {
    if (rank < 3 || k.dim(rank - 3) < 1 || v.dim(rank - 3) < 1 ||
        q.dim(rank - 3) % k.dim(rank - 3) || q.dim(rank - 3) % v.dim(rank - 3))
      return call.fail("expected heads of the queries that the heads of keys "
                       "and values divide");
    k = repeatHeads(k, q.dim(rank - 3) / k.dim(rank - 3));
    v = repeatHeads(v, q.dim(rank - 3) / v.dim(rank - 3));
  }
  if (q.shape().drop_back(2) != k.shape().drop_back(2) ||
      q.shape().drop_back(2) != v.shape().drop_back(2) ||
      q.dim(rank - 1) != k.dim(rank - 1) || k.dim(rank - 2) != v.dim(rank - 2))
    return call.fail("expected queries [..., T, D], keys [..., S, D] and "
                     "values [..., S, E], but got " +
                     infer::text(q.shape()) + ", " + infer::text(k.shape()) +
                     " and " + infer::text(v.shape()));
  double scale =
      call.number("scale", 1 / std::sqrt(static_cast<double>(q.dim(rank - 1))));
  if (!(p >= 0 && p <= 1))
    return call.fail("expected 'dropout_p' to be in [0, 1]");
  bool drops = p > 0 && training;
  if (drops && !call.has(4))
    return call.fail("expected the state of random numbers, which dropout "
                     "draws from");
  if (call.failed())
    return failure();
  SmallVector<int64_t> scoresShape(q.shape().drop_back());
  scoresShape.push_back(k.dim(rank - 2));
  Expr mask;
  if (call.has(3)) {
    mask = maskFor(call, scoresShape);
    if (!mask)
      return failure();
  }
  Type element = q.type().getElementType(),
       wide = composite::computeType(q.value);
  if (!drops && (!mask || wideScores || wide == element)) {
    SmallVector<NamedAttribute> attributes = {call.numberAttr("scale", scale)};
    if (isCausal)
      attributes.push_back(call.unitAttr("causal"));
    SmallVector<Value> operands = {q, k, v};
    if (mask)
      operands.push_back(mask);
    return SmallVector<Value>{call.op("attention", operands, attributes)};
  }

  // Numbers of 16 bits are numbers of tf32, too: their products are the same.
  SmallVector<NamedAttribute> list = {call.unitAttr("transpose_rhs")};
  Expr left = q, right = k;
  if (wide != element && wideScores) {
    list.push_back(call.textAttr("precision", "tf32"));
    left = q.cast(wide);
    right = k.cast(wide);
  }
  Expr scores = call.op("matmul", {left, right}, list);
  if (!scores)
    return failure();
  scores = composite::maskScores(scores.cast(wide) * scale, isCausal, mask);
  Expr weights = composite::safeSoftmax(scores);
  if (drops)
    weights = call.op("dropout", {weights, call[4]},
                      {call.integerAttr("draw", draw), call.numberAttr("p", p),
                       call.unitAttr("training")});
  if (!weights)
    return failure();
  return SmallVector<Value>{call.op("matmul", {weights.cast(element), v})};
}

/// x [N, L, E] times w [M, E] transposed, plus the bias [M].
static Expr linear(Call &call, const Expr &x, const Expr &w, const Expr &bias) {
  SmallVector<Value> operands = {x, w};
  if (bias)
    operands.push_back(bias);
  return call.op("linear", operands);
}

static CallResults multiHead(Call &call) {
  int64_t heads = call.integer("num_heads", 1);
  for (size_t i : {0, 1, 2})
    if (failed(call.expectFloat(i)) || failed(call.expectRank(i, 3, 3)) ||
        failed(call.expectSameElements(0, i)))
      return failure();
  Expr q = call[0], k = call[1], v = call[2], in = call[3], out = call[4];
  int64_t batch = q.dim(0), width = q.dim(2);
  if (heads < 1 || width % heads)
    return call.fail("expected 'num_heads' to divide the width (" +
                     Twine(width) + "), but got " + Twine(heads));
  if (width > (int64_t(1) << 40) || call.failed() ||
      failed(call.expectShape(3, {3 * width, width})) ||
      failed(call.expectShape(4, {width, width})) ||
      (call.has(5) && failed(call.expectShape(5, {3 * width}))))
    return failure();
  Expr parts[3];
  for (int i = 0; i < 3; ++i) {
    auto rows = [&](const Expr &x) {
      return windows::slice(call, x, 0, i * width, (i + 1) * width);
    };
    Expr x = i == 0 ? q : i == 1 ? k : v;
    parts[i] = linear(call, x, rows(in), call.has(5) ? rows(call[5]) : Expr());
    if (!parts[i])
      return failure();
    parts[i] = parts[i]
                   .reshape({x.dim(0), x.dim(1), heads, width / heads})
                   .permute({0, 2, 1, 3});
  }
  SmallVector<NamedAttribute> attributes = {
      call.flagAttr("is_causal", call.flag("is_causal", false)),
      call.flagAttr("training", call.flag("training", true)),
      call.numberAttr("dropout_p", call.number("dropout_p", 0)),
      call.integerAttr("draw", call.integer("draw", 0))};
  Expr y = call.call(
      "scaled_dot_product_attention",
      {parts[0], parts[1], parts[2], call.value(7), call.value(8)}, attributes);
  if (!y)
    return failure();
  y = y.permute({0, 2, 1, 3}).reshape({batch, q.dim(1), width});
  return SmallVector<Value>{linear(call, y, out, call[6])};
}

void tandem::addAttentionFunctions(FunctionTable &table) {
  table.family("Attention");
  table.add(
      "scaled_dot_product_attention(q, k, v, mask?, state?; is_causal=false, "
      "scale, enable_gqa=false, dropout_p=0.0, draw=0, training=true, "
      "wide_scores=true)",
      "softmax(q k^T scale + mask) v for q [..., T, D], k [..., S, D], v [..., "
      "S, E]; the mask is added, or true where a position is seen; with "
      "enable_gqa keys and values have fewer heads (dimension -3); without "
      "wide_scores the scores of masked attention are rounded to the type",
      attend);
  table.add("multi_head_attention(q, k, v, in_proj_weight, out_proj_weight, "
            "in_proj_bias?, out_proj_bias?, mask?, state?; num_heads=1, "
            "is_causal=false, dropout_p=0.0, draw=0, training=true)",
            "PyTorch's MultiheadAttention of q [N, T, E] and k, v [N, S, E]",
            multiHead);
  addLinearAttentionFunctions(table);
}
