//===- Recurrent.cpp - recurrent layers: RNN, GRU, LSTM -------------------===//
//
// One layer in one or both directions, with all that ONNX has: x is [T, N, I],
// w [directions, gates * H, I], r [directions, gates * H, H], b [directions, 2
// * gates * H], the states [directions, N, H]. With `layout` 1 the batch comes
// first in x, the states and the results. PyTorch's layers are made of these
// (RecurrentStack.cpp).
//
// The products with x are one for all steps. `lengths` says how many steps each
// sequence has: behind them states stay, and outputs are 0.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Formula.h"
#include "compiler/functions/Function.h"
#include "compiler/functions/Loop.h"
#include "compiler/functions/RecurrentCells.h"
#include "compiler/functions/Windows.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::formula;

namespace {

/// The operands of a layer in the compute type, the batch in dimension 1.
struct Layer {
  Cell cell;
  Type type, element;
  int64_t steps, batch, width, directions;
  bool isBatchFirst, startsInReverse;
  Expr x;       ///< [T, N, I]
  Expr w, r, b; ///< b may be null
  Expr lengths; ///< [N] in i64, or null
  Expr peepholes;
  SmallVector<Expr> states; ///< [directions, N, H]
};

} // namespace

/// Exchanges dimensions 0 and 1.
static Expr exchanged(const Expr &x) {
  SmallVector<int64_t> order = dimsUpTo(x.rank());
  std::swap(order[0], order[1]);
  return x.permute(order);
}

/// Direction d of what has one entry for each.
static Expr entryOf(Call &call, const Expr &x, int64_t d) {
  if (!x)
    return x;
  Expr slice = windows::slice(call, x, 0, d, d + 1);
  return slice ? slice.reshape(x.shape().drop_front()) : slice;
}

/// Rows from * H up to to * H along dimension 0 (or columns of a matrix).
static std::optional<Layer> layerOf(Call &call, Cell cell) {
  Layer layer;
  layer.cell = cell;
  int64_t gates = cell.gates();
  for (size_t i : {0, 1, 2})
    if (failed(call.expectFloat(i)) || failed(call.expectRank(i, 3, 3)) ||
        failed(call.expectSameElements(0, i)))
      return std::nullopt;
  StringRef direction = call.text("direction", "forward",
                                  {"forward", "reverse", "bidirectional"});
  layer.startsInReverse = direction == "reverse";
  layer.directions = direction == "bidirectional" ? 2 : 1;
  int64_t layout = call.integer("layout", 0);
  if (layout != 0 && layout != 1)
    (void)call.fail("expected 'layout' to be 0 or 1, but got " + Twine(layout));
  layer.isBatchFirst = layout == 1;
  Expr x = call[0];
  layer.steps = x.dim(layer.isBatchFirst ? 1 : 0);
  layer.batch = x.dim(layer.isBatchFirst ? 0 : 1);
  int64_t directions = layer.directions, input = x.dim(2);
  if (layer.steps < 1)
    (void)call.fail("expected at least one step");
  layer.width = call[2].dim(2);
  int64_t width = layer.width;
  if (width >= int64_t(1) << 31 || call.failed() ||
      failed(call.expectShape(1, {directions, gates * width, input})) ||
      failed(call.expectShape(2, {directions, gates * width, width})))
    return std::nullopt;
  if (call.has(3) &&
      (failed(call.expectSameElements(0, 3)) ||
       failed(call.expectShape(3, {directions, 2 * gates * width}))))
    return std::nullopt;
  if (call.has(4) && (failed(call.expectInteger(4)) ||
                      failed(call.expectShape(4, {layer.batch}))))
    return std::nullopt;
  if (call.has(7) && (failed(call.expectSameElements(0, 7)) ||
                      failed(call.expectShape(7, {directions, 3 * width}))))
    return std::nullopt;
  layer.element = x.type().getElementType();
  layer.type = composite::computeType(x.value);
  SmallVector<int64_t> stateShape = {directions, layer.batch, width};
  if (layer.isBatchFirst)
    std::swap(stateShape[0], stateShape[1]);
  for (size_t i = 0; i < cell.states(); ++i) {
    Expr state;
    if (call.has(5 + i)) {
      if (failed(call.expectSameElements(0, 5 + i)) ||
          failed(call.expectShape(5 + i, stateShape)))
        return std::nullopt;
      state = wide(call, 5 + i, layer.type);
      if (layer.isBatchFirst)
        state = exchanged(state);
    } else {
      state = call.full(layer.type, {directions, layer.batch, width}, 0);
    }
    layer.states.push_back(state);
  }
  layer.x = wide(call, 0, layer.type);
  if (layer.isBatchFirst)
    layer.x = exchanged(layer.x);
  layer.w = wide(call, 1, layer.type);
  layer.r = wide(call, 2, layer.type);
  layer.b = wide(call, 3, layer.type);
  if (call.has(4))
    layer.lengths = call[4].cast(call.builder.getI64Type());
  layer.peepholes = wide(call, 7, layer.type);
  return layer;
}

/// The outputs [T, N, H] of direction d, then its last states [N, H].
static SmallVector<Expr> runDirection(Call &call, Layer &layer, int64_t d) {
  int64_t gates = layer.cell.gates(), width = layer.width;
  bool reverse = d == 1 || layer.startsInReverse;
  Expr w = entryOf(call, layer.w, d), r = entryOf(call, layer.r, d);
  Expr bias = entryOf(call, layer.b, d);
  Expr peepholes = entryOf(call, layer.peepholes, d);
  if (call.failed())
    return {};
  Expr wBias, rBias;
  if (bias) {
    wBias = windows::slice(call, bias, 0, 0, gates * width);
    rBias = windows::slice(call, bias, 0, gates * width, 2 * gates * width);
  }
  SmallVector<Value> operands = {layer.x, w};
  if (wBias)
    operands.push_back(wBias);
  Expr fromX = call.op("linear", operands);
  if (!fromX)
    return {};
  SmallVector<Expr> states, inputs = {fromX}, constants = {r};
  for (const Expr &state : layer.states)
    states.push_back(entryOf(call, state, d));
  if (rBias)
    constants.push_back(rBias);
  if (peepholes)
    constants.push_back(peepholes);
  if (layer.lengths) {
    inputs.push_back(
        composite::iota(layer.x, call.builder.getI64Type(), {layer.steps}, 0));
    constants.push_back(layer.lengths);
  }
  Cell cell = layer.cell;
  cell.activations =
      cell.activations.drop_front(cell.activationsPerDirection() * d);
  auto body = [&](const LoopStep &step) -> LoopMade {
    CellStep now{step.inputs[0], step.constants[0], {}, {}, step.carries};
    size_t next = 1;
    if (rBias)
      now.bias = step.constants[next++];
    if (peepholes)
      now.peepholes = step.constants[next++];
    SmallVector<Expr> fresh = cell.step(call, now);
    if (fresh.empty())
      return {};
    Expr y = fresh[0];
    if (layer.lengths) {
      const Expr &lengths = step.constants[next];
      Expr isIn =
          compare(ComparePredicate::lt,
                  step.inputs[1].broadcastTo(lengths.shape(), {}), lengths)
              .broadcastTo(y.shape(), {0});
      for (auto [state, old] : llvm::zip(fresh, step.carries))
        state = select(isIn, state, old);
      y = select(isIn, y, y.like(0));
    }
    return {fresh, {y}};
  };
  SmallVector<Expr> made =
      loopOver(call, layer.steps, reverse, states, inputs, constants, body);
  if (made.empty())
    return {};
  // The stack comes last.
  std::rotate(made.begin(), made.end() - 1, made.end());
  return made;
}

/// The directions' results along a new dimension `dim`.
static Expr together(Call &call, ArrayRef<Expr> parts, int64_t dim) {
  SmallVector<Value> list;
  for (const Expr &part : parts) {
    SmallVector<int64_t> shape(part.shape());
    shape.insert(shape.begin() + dim, 1);
    list.push_back(part.reshape(shape));
  }
  return list.size() == 1
             ? call.at(list[0])
             : call.op("concat", list, {call.integerAttr("dim", dim)});
}

static CallResults runLayer(Call &call, Cell cell) {
  if (failed(cell.readAttributes(call)))
    return failure();
  auto layer = layerOf(call, cell);
  if (!layer)
    return failure();
  SmallVector<SmallVector<Expr>> made(1 + cell.states());
  for (int64_t d = 0; d < layer->directions; ++d) {
    SmallVector<Expr> one = runDirection(call, *layer, d);
    if (one.empty())
      return failure();
    for (auto [list, result] : llvm::zip(made, one))
      list.push_back(result);
  }
  SmallVector<Value> results;
  for (auto [i, parts] : llvm::enumerate(made)) {
    // Outputs are [T, directions, N, H], states [directions, N, H].
    Expr all = together(call, parts, i == 0 ? 1 : 0);
    if (!all)
      return failure();
    all = all.cast(layer->element);
    if (layer->isBatchFirst)
      all = i == 0 ? all.permute({2, 0, 1, 3}) : exchanged(all);
    results.push_back(all);
  }
  return results;
}

void tandem::addRecurrentFunctions(FunctionTable &table) {
  table.family("Recurrent");
  static constexpr const char *kShared =
      "direction=forward, layout=0, activations, alphas, betas, clip";
  auto signature = [](StringRef head, StringRef more) {
    return (head + "; " + kShared + more + ")").str();
  };
  table.add(signature("rnn_layer(x, w, r, b?, lengths?, h0?", ""),
            "ONNX's RNN: outputs, last state; x is [T, N, I], or [N, T, I] "
            "with layout=1",
            [](Call &call) { return runLayer(call, Cell(Cell::Kind::Rnn)); });
  table.add(signature("gru_layer(x, w, r, b?, lengths?, h0?",
                      ", linear_before_reset=false"),
            "ONNX's GRU (gates z, r, h): outputs, last state",
            [](Call &call) { return runLayer(call, Cell(Cell::Kind::Gru)); });
  table.add(signature("lstm_layer(x, w, r, b?, lengths?, h0?, c0?, peepholes?",
                      ", input_forget=false"),
            "ONNX's LSTM (gates i, o, f, c): outputs, last state, last cell",
            [](Call &call) { return runLayer(call, Cell(Cell::Kind::Lstm)); });
  addRecurrentStackFunctions(table);
}
