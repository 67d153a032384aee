//===- RecurrentStack.cpp - PyTorch's RNN, GRU and LSTM -------------------===//
//
// Layers one over the other, made of the functions of Recurrent.cpp, which have
// the gates in ONNX's order.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/Formula.h"
#include "compiler/functions/Function.h"
#include "compiler/functions/Windows.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::formula;

namespace {

struct Stack {
  StringRef layer;               ///< the function that makes one layer
  SmallVector<int64_t, 4> order; ///< ONNX's gate i is PyTorch's order[i]
  size_t states;
};

} // namespace

/// Blocks of rows in another order.
static Expr reordered(Call &call, const Expr &x, ArrayRef<int64_t> order) {
  int64_t gates = order.size();
  if (gates == 1)
    return x;
  int64_t width = x.dim(0) / gates;
  SmallVector<Value> parts;
  for (int64_t gate : order)
    parts.push_back(
        windows::slice(call, x, 0, gate * width, (gate + 1) * width));
  return call.op("concat", parts, {call.integerAttr("dim", 0)});
}

/// What each direction has, along a new dimension 0.
static Expr stacked(Call &call, ArrayRef<Expr> parts) {
  SmallVector<Value> list;
  for (const Expr &part : parts) {
    if (!part)
      return call.at({});
    SmallVector<int64_t> shape = {1};
    llvm::append_range(shape, part.shape());
    list.push_back(part.reshape(shape));
  }
  return list.size() == 1
             ? call.at(list[0])
             : call.op("concat", list, {call.integerAttr("dim", 0)});
}

static CallResults run(Call &call, const Stack &stack,
                       ArrayRef<NamedAttribute> more) {
  int64_t layers = call.integer("num_layers", 1);
  bool isBoth = call.flag("bidirectional", false);
  bool isBatchFirst = call.flag("batch_first", false);
  bool hasBias = call.flag("bias", true);
  int64_t directions = isBoth ? 2 : 1, gates = stack.order.size();
  size_t first = 1 + stack.states, each = hasBias ? 4 : 2;
  if (layers < 1 || layers > 1000)
    return call.fail("expected 'num_layers' to be at least 1 and at most 1000");
  if (call.size() != first + layers * directions * each)
    return call.fail("expected " + Twine(each) + " weights for each of " +
                     Twine(layers * directions) +
                     " layers and directions, but got " +
                     Twine(call.size() - first));
  if (call.failed() || failed(call.expectFloat(0)) ||
      failed(call.expectRank(0, 3, 3)))
    return failure();
  Expr x = call[0];
  for (size_t i = 1; i < call.size(); ++i) {
    if (!call.has(i))
      return call.fail("expected operand #" + Twine(i));
    if (failed(call.expectSameElements(0, i)))
      return failure();
  }
  for (size_t i = 1; i < first; ++i)
    if (failed(call.expectRank(i, 3, 3)) ||
        call[i].dim(0) != layers * directions)
      return call.fail("expected a state for each layer and direction");
  if (isBatchFirst)
    x = x.permute({1, 0, 2});
  SmallVector<SmallVector<Value>> states(stack.states);
  for (int64_t layer = 0; layer < layers; ++layer) {
    SmallVector<Expr> w, r, b;
    for (int64_t d = 0; d < directions; ++d) {
      size_t at = first + (layer * directions + d) * each;
      for (size_t i = 0; i < each; ++i)
        if (failed(call.expectRank(at + i, i < 2 ? 2 : 1, i < 2 ? 2 : 1)) ||
            call[at + i].dim(0) % gates)
          return call.fail("expected weights of " + Twine(gates) + " gates");
      w.push_back(reordered(call, call[at], stack.order));
      r.push_back(reordered(call, call[at + 1], stack.order));
      if (hasBias)
        b.push_back(call.op("concat",
                            {reordered(call, call[at + 2], stack.order),
                             reordered(call, call[at + 3], stack.order)},
                            {call.integerAttr("dim", 0)}));
    }
    SmallVector<Value> operands = {x, stacked(call, w), stacked(call, r),
                                   hasBias ? stacked(call, b).value : Value(),
                                   Value()};
    for (size_t i = 1; i < first; ++i)
      operands.push_back(windows::slice(call, call[i], 0, layer * directions,
                                        (layer + 1) * directions));
    if (call.failed())
      return failure();
    SmallVector<NamedAttribute> attributes(more);
    attributes.push_back(
        call.textAttr("direction", isBoth ? "bidirectional" : "forward"));
    SmallVector<Value> made = call.calls(stack.layer, operands, attributes);
    if (made.empty())
      return failure();
    Expr y = call.at(made[0]).permute({0, 2, 1, 3});
    x = y.reshape({y.dim(0), y.dim(1), y.dim(2) * y.dim(3)});
    for (size_t i = 0; i < stack.states; ++i)
      states[i].push_back(made[1 + i]);
  }
  if (isBatchFirst)
    x = x.permute({1, 0, 2});
  SmallVector<Value> results = {x};
  for (SmallVector<Value> &list : states)
    results.push_back(
        list.size() == 1
            ? list[0]
            : call.op("concat", list, {call.integerAttr("dim", 0)}).value);
  return results;
}

static CallResults rnn(Call &call) {
  StringRef which = call.text("nonlinearity", "tanh", {"tanh", "relu"});
  return run(call, {"rnn_layer", {0}, 1},
             {call.textAttr("activations", which)});
}

static CallResults gru(Call &call) {
  return run(call, {"gru_layer", {1, 0, 2}, 1},
             {call.flagAttr("linear_before_reset", true)});
}

static CallResults lstm(Call &call) {
  return run(call, {"lstm_layer", {0, 3, 1, 2}, 2}, {});
}

void tandem::addRecurrentStackFunctions(FunctionTable &table) {
  static constexpr const char *kShared =
      "num_layers=1, bidirectional=false, batch_first=false, bias=true";
  auto signature = [](StringRef head, StringRef more) {
    return (head + ", weights...; " + kShared + more + ")").str();
  };
  table.add(signature("rnn(x, h0", ", nonlinearity=tanh"),
            "PyTorch's RNN: outputs and last states; weights are w_ih, w_hh, "
            "b_ih, b_hh of each layer and direction",
            rnn);
  table.add(signature("gru(x, h0", ""), "PyTorch's GRU, with the same weights",
            gru);
  table.add(signature("lstm(x, h0, c0", ""),
            "PyTorch's LSTM: outputs, last states and last cells", lstm);
}
