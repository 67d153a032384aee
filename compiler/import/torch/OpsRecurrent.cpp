//===- OpsRecurrent.cpp - ATen: recurrent networks ------------------------===//
#include "compiler/import/torch/Node.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;

/// Calls the function layer by layer, with dropout of what each gives the next.
static SmallVector<Value> withDropout(Node &node, StringRef function,
                                      ArrayRef<Value> operands, size_t states,
                                      int64_t layers, double p,
                                      ArrayRef<NamedAttribute> list) {
  size_t first = 1 + states, weights = operands.size() - first;
  if (layers < 1 || weights % layers) {
    (void)node.error("expected as many weights in each layer");
    return {};
  }
  Value x = operands[0];
  SmallVector<SmallVector<Value>> last(states);
  for (int64_t layer = 0; layer < layers; ++layer) {
    if (layer > 0)
      x = node.dropped(node.wrap(x), p);
    SmallVector<Value> mine = {x};
    for (Value state : operands.slice(1, states)) {
      int64_t rows = node.wrap(state).dim(0) / layers;
      mine.push_back(node.make("narrow", state,
                               {node.attr("dim", int64_t(0)),
                                node.attr("start", layer * rows),
                                node.attr("length", rows)}));
    }
    llvm::append_range(mine, operands.slice(first + layer * (weights / layers),
                                            weights / layers));
    auto made = node.call(function, mine, list);
    if (made.size() != first)
      return {};
    x = made[0];
    for (size_t i = 0; i < states; ++i)
      last[i].push_back(made[1 + i]);
  }
  SmallVector<Value> results = {x};
  for (ArrayRef<Value> parts : last)
    results.push_back(node.make("cat", parts, node.attr("dim", int64_t(0))));
  return results;
}

static LogicalResult recurrent(Node &node) {
  bool isLstm = node.op() == "lstm";
  if (node.has("batch_sizes") || node.has("data"))
    return node.unsupported("packed sequences");
  Expr x = node.value("input");
  if (!x)
    return failure();
  if (x.rank() != 3)
    return node.unsupported("a sequence without a batch");
  SmallVector<Value> operands = {x};
  if (isLstm)
    llvm::append_range(operands, node.values("hx"));
  else
    operands.push_back(node.value("hx"));
  llvm::append_range(operands, node.values("params"));
  // [layers and directions, batch, size], which a projection makes smaller.
  if (isLstm && operands.size() > 2 &&
      node.wrap(operands[1]).shape().back() !=
          node.wrap(operands[2]).shape().back())
    return node.unsupported("an LSTM with projections ('proj_size')");
  int64_t layers = node.integer("num_layers", 1);
  double p = layers > 1 ? node.number("dropout", 0) : 0;
  bool drops = node.trains(p > 0 ? Inactive::Dropout : Inactive::Nothing,
                           node.flag("train", false)) &&
               p > 0;
  SmallVector<NamedAttribute> list = {
      node.attr("num_layers", drops ? 1 : layers),
      node.attr("bidirectional", node.flag("bidirectional", false)),
      node.attr("batch_first", node.flag("batch_first", false)),
      node.attr("bias", node.flag("has_biases", true))};
  StringRef function = node.op();
  if (function.consume_front("rnn_")) {
    list.push_back(node.attr("nonlinearity", function));
    function = "rnn";
  }
  if (node.failed())
    return failure();
  auto made = drops ? withDropout(node, function, operands, isLstm ? 2 : 1,
                                  layers, p, list)
                    : node.call(function, operands, list);
  for (auto [i, value] : llvm::enumerate(made))
    if (failed(node.result(i, value)))
      return failure();
  return made.empty() ? failure() : success();
}

void torch::addRecurrentOps(OpTable &table) {
  table.add("lstm gru rnn_tanh rnn_relu", recurrent);
}
