//===- LinearAttention.cpp - a state of keys and values, step by step -----===//
//
// Each step adds the outer product of its key and its value to a state
// [N, G, D, E], which a query multiplies: attention without softmax, at a cost
// that grows with the length and not with its square. Source: ONNX's operator
// LinearAttention, and the papers that it names (linear attention, gated linear
// attention, DeltaNet, gated DeltaNet).
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Formula.h"
#include "compiler/functions/Function.h"
#include "compiler/functions/Loop.h"
#include "ir/ops/Inference.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::formula;

namespace {

/// Which operands there are, and their sizes.
struct Sizes {
  int64_t batch, steps, heads, groups, keys, values;
};

} // namespace

static std::optional<Sizes> sizesOf(Call &call) {
  for (size_t i : {0, 1, 2})
    if (failed(call.expectFloat(i)) || failed(call.expectRank(i, 3, 3)) ||
        failed(call.expectSameElements(0, i)))
      return std::nullopt;
  Sizes s{call[0].dim(0),
          call[0].dim(1),
          call.integer("heads", 1),
          call.integer("groups", 1),
          0,
          0};
  int64_t width = call[0].dim(2);
  if (s.groups < 1 || s.heads < 1 || s.heads % s.groups || width % s.heads ||
      call[2].dim(2) % s.groups || s.steps < 1) {
    (void)call.fail("expected 'groups' to divide 'heads', both to divide the "
                    "widths, and at least one step");
    return std::nullopt;
  }
  s.keys = width / s.heads;
  s.values = call[2].dim(2) / s.groups;
  if (s.keys >= 1 && s.values >= 1 &&
      !isTensorShape({s.batch, s.groups, s.keys, s.values})) {
    (void)call.fail("the state is too large");
    return std::nullopt;
  }
  if (s.keys < 1 || s.values < 1) {
    (void)call.fail("expected keys and values that are not empty");
    return std::nullopt;
  }
  if (failed(call.expectShape(1, {s.batch, s.steps, s.groups * s.keys})) ||
      failed(call.expectShape(2, {s.batch, s.steps, s.groups * s.values})) ||
      (call.has(3) &&
       (failed(call.expectFloat(3)) ||
        failed(call.expectShape(3, {s.batch, s.groups, s.keys, s.values})))))
    return std::nullopt;
  return s;
}

/// An operand [N, T, G M], or [N, T, M'] of one of `widths`, as
/// [T, N, G, M]; null after a mistake.
static Expr stepsOf(Call &call, size_t i, const Sizes &s, Type type) {
  if (failed(call.expectFloat(i)) || failed(call.expectRank(i, 3, 3)))
    return {};
  Expr x = wide(call, i, type);
  int64_t width = x.dim(2);
  if (x.dim(0) != s.batch || x.dim(1) != s.steps ||
      (width != 1 && width % s.groups)) {
    (void)call.fail("expected operand #" + Twine(i) + " to be [" +
                    Twine(s.batch) + ", " + Twine(s.steps) +
                    ", a multiple of " + Twine(s.groups) + "], but got " +
                    infer::text(x.shape()));
    return {};
  }
  if (width == 1 && s.groups > 1) { // one for all
    x = x.reshape({s.batch, s.steps})
            .broadcastTo({s.batch, s.steps, s.groups}, {0, 1});
    width = s.groups;
  }
  return x.reshape({s.batch, s.steps, s.groups, width / s.groups})
      .permute({1, 0, 2, 3});
}

static CallResults linearAttention(Call &call) {
  std::optional<Sizes> sizes = sizesOf(call);
  if (!sizes)
    return failure();
  const Sizes &s = *sizes;
  StringRef rule =
      call.text("rule", "linear", {"linear", "gated", "delta", "gated_delta"});
  bool isGated = rule.contains("gated"), isDelta = rule.contains("delta");
  double scale = call.number("scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(static_cast<double>(s.keys));
  if (isGated != call.has(4) || isDelta != call.has(5))
    return call.fail("expected a decay of gated rules, an update rate of delta "
                     "rules, and neither of others");
  if (call.failed())
    return failure();
  Type type = composite::computeType(call.value(0));
  Type element = call[0].type().getElementType();
  Expr k = stepsOf(call, 1, s, type), v = stepsOf(call, 2, s, type);
  // The heads of a group, side by side: [T, N, G, H / G, D].
  Expr q =
      wide(call, 0, type)
          .reshape({s.batch, s.steps, s.groups, s.heads / s.groups, s.keys})
          .permute({1, 0, 2, 3, 4});
  if (!k || !v)
    return failure();
  SmallVector<Expr> inputs{q * scale, k, v};
  if (isGated) {
    Expr decay = stepsOf(call, 4, s, type);
    if (!decay)
      return failure();
    if (decay.dim(3) != 1 && decay.dim(3) != s.keys)
      return call.fail("expected a decay for each head, or for each element "
                       "of its keys");
    inputs.push_back(exp(decay));
  }
  if (isDelta) {
    Expr rate = stepsOf(call, 5, s, type);
    if (!rate)
      return failure();
    if (rate.dim(3) != 1)
      return call.fail("expected an update rate for each head, or for all");
    inputs.push_back(rate);
  }
  SmallVector<int64_t> shape{s.batch, s.groups, s.keys, s.values};
  Expr start = call.has(3) ? wide(call, 3, type) : call.full(type, shape, 0);
  auto product = [&](const Expr &a, const Expr &b) {
    return call.op("matmul", {a.value, b.value});
  };
  auto body = [&](const LoopStep &step) -> LoopMade {
    Expr state = step.carries[0];
    const Expr &query = step.inputs[0], &key = step.inputs[1];
    Expr value = step.inputs[2];
    if (isGated) {
      const Expr &decay = step.inputs[3];
      state =
          state *
          (decay.dim(2) == 1
               ? decay.reshape({s.batch, s.groups}).broadcastTo(shape, {0, 1})
               : decay.broadcastTo(shape, {0, 1, 2}));
    }
    if (isDelta) {
      Expr row = key.reshape({s.batch, s.groups, 1, s.keys});
      Expr found = product(row, state);
      if (!found)
        return {};
      value = value - found.reshape(value.shape());
      value = value * step.inputs[isGated ? 4 : 3]
                          .reshape({s.batch, s.groups})
                          .broadcastTo(value.shape(), {0, 1});
    }
    state = state + key.broadcastTo(shape, {0, 1, 2}) *
                        value.broadcastTo(shape, {0, 1, 3});
    Expr y = product(query, state);
    return y ? LoopMade{{state}, {y}} : LoopMade{};
  };
  SmallVector<Expr> made =
      loopOver(call, s.steps, false, {start}, inputs, {}, body);
  if (made.empty())
    return failure();
  // [T, N, G, H / G, E] as [N, T, H E].
  Expr y = made[1]
               .permute({1, 0, 2, 3, 4})
               .reshape({s.batch, s.steps, s.heads * s.values});
  Type kept = call.has(3) ? call[3].type().getElementType() : element;
  return SmallVector<Value>{y.cast(element), made[0].cast(kept)};
}

void tandem::addLinearAttentionFunctions(FunctionTable &table) {
  table.add("linear_attention(q, k, v, state?, decay?, rate?; rule='linear', "
            "heads=1, groups=1, scale=0.0)",
            "ONNX's LinearAttention of q [N, T, heads D], k [N, T, groups D] "
            "and v [N, T, groups E]: [N, T, heads E] and the state [N, groups, "
            "D, E], to which each step adds k v^T; rule is linear, gated, "
            "delta or gated_delta; a scale of 0 is 1 / sqrt(D)",
            linearAttention);
}
