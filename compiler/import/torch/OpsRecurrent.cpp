//===- OpsRecurrent.cpp - ATen: recurrent networks ------------------------===//
#include "compiler/import/torch/Node.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;

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
  int64_t layers = node.integer("num_layers", 1);
  if (node.number("dropout", 0) > 0 && node.flag("train", false) &&
      layers > 1 && !node.keepsInference())
    return node.unsupported(
        "dropout between the layers of a recurrent network");
  SmallVector<NamedAttribute> list = {
      node.attr("num_layers", layers),
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
  auto made = node.call(function, operands, list);
  for (auto [i, value] : llvm::enumerate(made))
    if (failed(node.result(i, value)))
      return failure();
  return made.empty() ? failure() : success();
}

void torch::addRecurrentOps(OpTable &table) {
  table.add("lstm gru rnn_tanh rnn_relu", recurrent);
}
