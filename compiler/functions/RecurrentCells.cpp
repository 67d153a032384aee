//===- RecurrentCells.cpp - one step of a recurrent layer -----------------===//
#include "compiler/functions/RecurrentCells.h"
#include "compiler/functions/Formula.h"
#include "compiler/functions/Windows.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::formula;

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

namespace {

struct Known {
  StringRef name;
  int numbers; ///< how many of alpha and beta it has
  double alpha, beta;
};

} // namespace

static constexpr Known kActivations[] = {
    {"relu", 0, 0, 0},         {"tanh", 0, 0, 0},
    {"sigmoid", 0, 0, 0},      {"softsign", 0, 0, 0},
    {"softplus", 0, 0, 0},     {"affine", 2, 1, 0},
    {"leakyrelu", 1, 0.01, 0}, {"thresholdedrelu", 1, 1, 0},
    {"scaledtanh", 2, 1, 1},   {"hardsigmoid", 2, 0.2, 0.5},
    {"elu", 1, 1, 0},
};

Expr CellActivation::operator()(const Expr &x) const {
  if (name == "relu")
    return formula::relu(x);
  if (name == "tanh")
    return tanh(x);
  if (name == "sigmoid")
    return sigmoid(x);
  if (name == "softsign")
    return x / (1.0 + abs(x));
  if (name == "softplus")
    return formula::softplus(x);
  if (name == "affine")
    return x * alpha + beta;
  if (name == "leakyrelu")
    return select(isGreater(x, 0), x, x * alpha);
  if (name == "thresholdedrelu")
    return select(isGreater(x, alpha), x, x.like(0));
  if (name == "scaledtanh")
    return tanh(x * beta) * alpha;
  if (name == "hardsigmoid") {
    Expr y = x * alpha + beta;
    return formula::clamp(y, y.like(0), y.like(1));
  }
  Expr isPositive = isGreater(x, 0);
  return select(isPositive, x, expm1(select(isPositive, x.like(0), x)) * alpha);
}

LogicalResult Cell::readAttributes(Call &call) {
  static constexpr StringRef defaults[] = {"tanh", "sigmoid,tanh",
                                           "sigmoid,tanh,tanh"};
  std::string given =
      call.text("activations", defaults[static_cast<int>(kind)]).lower();
  SmallVector<double> alphas = call.numbers("alphas");
  SmallVector<double> betas = call.numbers("betas");
  owned = std::make_shared<SmallVector<CellActivation>>();
  SmallVector<StringRef> names;
  StringRef(given).split(names, ',');
  size_t alpha = 0, beta = 0, count = activationsPerDirection();
  for (StringRef name : names) {
    name = name.trim();
    const Known *known = llvm::find_if(
        kActivations, [&](const Known &entry) { return entry.name == name; });
    if (known == std::end(kActivations))
      return call.fail("unknown activation '" + name + "'");
    CellActivation made{name.str(), known->alpha, known->beta};
    if (known->numbers > 0 && alpha < alphas.size())
      made.alpha = alphas[alpha++];
    if (known->numbers > 1 && beta < betas.size())
      made.beta = betas[beta++];
    owned->push_back(made);
  }
  if (owned->size() != count && owned->size() != 2 * count)
    return call.fail("expected " + Twine(count) +
                     " activations for each direction, but got '" + given +
                     "'");
  // Both directions have the same, unless it is said.
  if (owned->size() == count)
    owned->append(SmallVector<CellActivation>(*owned));
  activations = *owned;
  clip = call.number("clip", 0);
  if (!(clip >= 0))
    return call.fail("expected 'clip' to be at least 0");
  linearBeforeReset =
      kind == Kind::Gru && call.flag("linear_before_reset", false);
  inputForget = kind == Kind::Lstm && call.flag("input_forget", false);
  return success(!call.failed());
}

Expr Cell::activate(size_t i, const Expr &x) const {
  if (clip == 0)
    return activations[i](x);
  return activations[i](formula::clamp(x, x.like(-clip), x.like(clip)));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// The part of gate i, of `width`, along the last dimension.
static Expr gate(Call &call, const Expr &x, int64_t i, int64_t width,
                 int64_t count = 1) {
  return windows::slice(call, x, x.rank() - 1, i * width, (i + count) * width);
}

/// state r^T + bias, for rows of r.
static Expr recur(Call &call, const Expr &state, const Expr &r,
                  const Expr &bias) {
  SmallVector<Value> operands = {state, r};
  if (bias)
    operands.push_back(bias);
  return call.op("linear", operands);
}

SmallVector<Expr> Cell::step(Call &call, const CellStep &now) const {
  if (kind == Kind::Gru)
    return stepGru(call, now);
  if (kind == Kind::Lstm)
    return stepLstm(call, now);
  Expr fromState = recur(call, now.states[0], now.r, now.bias);
  if (!fromState)
    return {};
  return {activate(0, now.fromX + fromState)};
}

SmallVector<Expr> Cell::stepGru(Call &call, const CellStep &now) const {
  const Expr &h = now.states[0];
  int64_t width = h.dim(1);
  auto rows = [&](const Expr &x, int64_t from, int64_t to) {
    return x ? windows::slice(call, x, 0, from * width, to * width) : x;
  };
  int64_t together = linearBeforeReset ? 3 : 2;
  Expr fromState =
      recur(call, h, rows(now.r, 0, together), rows(now.bias, 0, together));
  if (!fromState)
    return {};
  Expr z = activate(0, gate(call, now.fromX, 0, width) +
                           gate(call, fromState, 0, width));
  Expr reset = activate(0, gate(call, now.fromX, 1, width) +
                               gate(call, fromState, 1, width));
  Expr inner;
  if (linearBeforeReset)
    inner = reset * gate(call, fromState, 2, width);
  else
    inner = recur(call, reset * h, rows(now.r, 2, 3), rows(now.bias, 2, 3));
  if (!inner)
    return {};
  Expr fresh = activate(1, gate(call, now.fromX, 2, width) + inner);
  return {(1.0 - z) * fresh + z * h};
}

SmallVector<Expr> Cell::stepLstm(Call &call, const CellStep &now) const {
  const Expr &h = now.states[0], &c = now.states[1];
  int64_t width = h.dim(1);
  Expr fromState = recur(call, h, now.r, now.bias);
  if (!fromState)
    return {};
  Expr all = now.fromX + fromState;
  auto seen = [&](Expr x, int64_t peephole, const Expr &cell) {
    if (!now.peepholes)
      return x;
    Expr weight = gate(call, now.peepholes, peephole, width);
    return x + weight.broadcastTo(cell.shape(), {1}) * cell;
  };
  Expr input = activate(0, seen(gate(call, all, 0, width), 0, c));
  Expr forget = inputForget
                    ? 1.0 - input
                    : activate(0, seen(gate(call, all, 2, width), 2, c));
  Expr fresh = activate(1, gate(call, all, 3, width));
  Expr cell = forget * c + input * fresh;
  Expr output = activate(0, seen(gate(call, all, 1, width), 1, cell));
  return {output * activations[2](cell), cell};
}
