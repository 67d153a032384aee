//===- NodeAttention.cpp - attention as the operators of ONNX have it -----===//
#include "compiler/import/onnx/NodeAttention.h"
#include "ir/ops/Composite.h"
#include "ir/ops/Inference.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

Expr onnx::splitHeads(Node &node, const Expr &x, int64_t heads) {
  if (x.rank() != 3 || heads < 1 || x.dim(2) % heads) {
    (void)node.error("expected an operand [N, T, width] whose width the " +
                     Twine(heads) + " heads divide, but got " +
                     infer::text(x.shape()));
    return {};
  }
  return x.reshape({x.dim(0), x.dim(1), heads, x.dim(2) / heads})
      .permute({0, 2, 1, 3});
}

Expr onnx::joinHeads(const Expr &x) {
  return x.permute({0, 2, 1, 3})
      .reshape({x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

bool NodeAttention::check() {
  if (!q || !k || !v)
    return false;
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4 || k.dim(1) < 1 ||
      q.dim(1) % k.dim(1) || k.dim(1) != v.dim(1) || q.dim(0) != k.dim(0) ||
      k.dim(0) != v.dim(0) || q.dim(3) != k.dim(3) || k.dim(2) != v.dim(2))
    return (void)node.error(
               "expected queries [N, H, T, D], keys [N, G, S, D] and values "
               "[N, G, S, E] where G divides H, but got " +
               infer::text(q.shape()) + ", " + infer::text(k.shape()) +
               " and " + infer::text(v.shape())),
           false;
  if (!isTensorShape({q.dim(0), q.dim(1), q.dim(2), k.dim(2)}))
    return (void)node.error("the scores are too large"), false;
  auto isVector = [&](const Expr &x, StringRef what) {
    if (!x || (x.rank() == 1 && x.dim(0) == q.dim(0)))
      return true;
    return (void)node.error("expected " + what + " for each of " +
                            Twine(q.dim(0)) + " sequences, but got " +
                            infer::text(x.shape())),
           false;
  };
  return isVector(pasts, "a number of keys") && isVector(lengths, "a length");
}

/// `with` (if there is one) and a comparison of two tensors of one shape.
Expr NodeAttention::where(ComparePredicate predicate, const Expr &a,
                          const Expr &b, Expr with) {
  Expr is = compare(predicate, a, b);
  return with ? logicalAnd(with, is) : is;
}

/// True where a query may see a key for where they stand: [T, S], or
/// [N, 1, T, S]; null if all see all.
Expr NodeAttention::seen() {
  Type i64 = node.builder().getI64Type();
  bool isPlaced = isCausal || left >= 0 || right >= 0;
  bool isEach = (isPlaced && pasts) || lengths;
  SmallVector<int64_t> shape{q.dim(2), k.dim(2)};
  if (isEach)
    shape.insert(shape.begin(), {q.dim(0), 1});
  int64_t rank = static_cast<int64_t>(shape.size());
  auto count = [&](int64_t dim) { return composite::iota(q, i64, shape, dim); };
  Expr yes;
  if (isPlaced) {
    Expr key = count(rank - 1), place = count(rank - 2);
    place = pasts ? place + pasts.broadcastTo(shape, {0})
                  : place + static_cast<double>(past);
    if (isCausal)
      yes = where(ComparePredicate::le, key, place, yes);
    if (left >= 0)
      yes = where(ComparePredicate::ge, key, place - static_cast<double>(left),
                  yes);
    if (right >= 0)
      yes = where(ComparePredicate::le, key, place + static_cast<double>(right),
                  yes);
  }
  if (lengths)
    yes = where(ComparePredicate::lt, count(rank - 1),
                lengths.broadcastTo(shape, {0}), yes);
  return yes;
}

/// What the scores get: bools or floats, null if nothing.
Expr NodeAttention::wholeMask() {
  Expr yes = seen();
  if (!mask)
    return yes;
  Type element = mask.type().getElementType();
  if (!element.isInteger(1) && !isa<FloatType>(element)) {
    (void)node.unsupported("a mask that is neither of bools nor of floats");
    return {};
  }
  bool isBool = element.isInteger(1);
  // What a mask that is too short does not have is not seen.
  int64_t last = mask.rank() - 1;
  if (last >= 0 && mask.dim(last) < k.dim(2) && mask.dim(last) != 1) {
    SmallVector<int64_t> more(2, 0);
    more[1] = k.dim(2) - mask.dim(last);
    Expr numbers = isBool ? mask.cast(node.builder().getI8Type()) : mask;
    numbers =
        node.wrap(node.call("constant_pad", numbers.value,
                            {node.attr("pad", ArrayRef<int64_t>(more)),
                             node.attr("value", isBool ? 0.0 : -kInfinity)}));
    if (!numbers)
      return {};
    mask = isBool ? compare(ComparePredicate::ne, numbers, numbers.like(0))
                  : numbers;
  }
  if (!yes)
    return mask;
  Expr both[] = {yes, mask};
  if (!node.broadcast(both))
    return {};
  return isBool ? logicalAnd(both[0], both[1])
                : select(both[0], both[1], both[1].like(-kInfinity));
}

/// The formula, written out.
Expr NodeAttention::written(const Expr &mask) {
  int64_t times = q.dim(1) / k.dim(1);
  auto repeated = [&](const Expr &x) {
    if (times == 1)
      return x;
    SmallVector<int64_t> wide(x.shape());
    wide.insert(wide.begin() + 2, times);
    return x.broadcastTo(wide, {0, 1, 3, 4})
        .reshape({x.dim(0), q.dim(1), x.dim(2), x.dim(3)});
  };
  Type element = q.type().getElementType();
  auto keep = [&](int64_t which, const Expr &x) {
    if (wanted == which)
      scores = x.cast(element);
  };
  Expr x = node.wrap(
      node.make("matmul", {q, repeated(k)}, {node.flag("transpose_rhs")}));
  if (!x)
    return x;
  x = x.cast(composite::computeType(q.value)) * scale;
  keep(0, x);
  if (softcap > 0)
    x = tanh(x / softcap) * softcap;
  keep(1, x);
  if (mask) {
    bool isBool = mask.type().getElementType().isInteger(1);
    Expr both[] = {isBool ? mask : mask.cast(x.type().getElementType()), x};
    if (!node.broadcast(both))
      return {};
    if (both[0].shape() != x.shape()) {
      (void)node.error("expected a mask that stretches to " +
                       infer::text(x.shape()));
      return {};
    }
    x = isBool ? select(both[0], x, x.like(-kInfinity)) : x + both[0];
  }
  keep(2, x);
  if (precision &&
      precision.getIntOrFloatBitWidth() > x.type().getElementTypeBitWidth())
    x = x.cast(precision);
  if (changeScores && !(x = changeScores(x)))
    return x;
  Expr largest = detach(x.reduceMax({3}));
  Expr isEmpty =
      compare(ComparePredicate::eq, largest, largest.like(-kInfinity));
  largest = select(isEmpty, largest.like(0), largest);
  Expr e = exp(x - largest.expandReduced(x.shape(), {3}));
  Expr sum = e.reduceSum({3});
  sum = select(isEmpty, sum.like(1), sum);
  Expr shares = e / sum.expandReduced(x.shape(), {3});
  if (changeShares && !(shares = changeShares(shares)))
    return shares;
  shares = shares.cast(element);
  keep(3, shares);
  return node.wrap(node.make("matmul", {shares, repeated(v)}));
}

Expr NodeAttention::build() {
  if (!check())
    return {};
  if (scale == 0)
    scale = 1 / std::sqrt(static_cast<double>(q.dim(3)));
  bool isPlain = isCausal && !mask && !lengths && !pasts && past == 0 &&
                 left < 0 && right < 0;
  bool isWritten =
      softcap > 0 || wanted >= 0 || precision || changeScores || changeShares;
  // Kernels know what is causal; all else is a mask.
  Expr all = isPlain && !isWritten ? Expr() : wholeMask();
  if (mask && !all)
    return {};
  if (isWritten)
    return written(all);
  SmallVector<Value> operands{q, k, v};
  if (all)
    operands.push_back(all);
  OpBuilder &b = node.builder();
  return node.wrap(
      node.call("scaled_dot_product_attention", operands,
                {node.attr("is_causal", b.getBoolAttr(isPlain)),
                 node.attr("enable_gqa", b.getBoolAttr(q.dim(1) != k.dim(1))),
                 // ONNX defines products of the operands' type.
                 node.attr("wide_scores", b.getBoolAttr(false)),
                 node.attr("scale", scale)}));
}
