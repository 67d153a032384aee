//===- OpsRecurrent.cpp - ONNX: RNN, GRU, LSTM ----------------------------===//
#include "compiler/import/onnx/Translator.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

static LogicalResult translateLayer(Node &node, StringRef function,
                                    size_t results) {
  for (size_t i = 0; i < 3; ++i)
    if (!node.has(i))
      return node.error("expected operand " + Twine(i));
  node.ignore({"hidden_size", "output_sequence"});
  OpBuilder &b = node.builder();
  std::string direction =
      node.choice("direction", {"forward", "reverse", "bidirectional"});
  SmallVector<NamedAttribute> attributes = {
      node.attr("direction", StringRef(direction)),
      node.attr("layout", node.integer("layout", 0))};
  SmallVector<std::string> activations = node.texts("activations");
  if (!activations.empty())
    attributes.push_back(
        node.attr("activations", StringRef(llvm::join(activations, ","))));
  for (auto [name, ours] :
       {std::pair<StringRef, StringRef>{"activation_alpha", "alphas"},
        {"activation_beta", "betas"}}) {
    SmallVector<double> list = node.numbers(name);
    if (!list.empty())
      attributes.push_back(node.attr(ours, b.getDenseF64ArrayAttr(list)));
  }
  if (node.hasAttribute("clip"))
    attributes.push_back(node.attr("clip", node.number("clip", 0)));
  for (StringRef flag : {"linear_before_reset", "input_forget"})
    if (node.hasAttribute(flag))
      attributes.push_back(
          node.attr(flag, b.getBoolAttr(node.integer(flag, 0) != 0)));
  SmallVector<Value> operands;
  for (size_t i = 0; i < node.numOperands(); ++i)
    operands.push_back(node.operand(i));
  auto made = node.callAll(function, operands, attributes);
  if (made.empty())
    return failure();
  for (size_t i = 0; i < results; ++i)
    node.result(i, made[i]);
  return success();
}

void onnx::addRecurrentOps(OpTable &table) {
  table.add(
      "RNN", [](Node &node) { return translateLayer(node, "rnn_layer", 2); },
      7);
  table.add(
      "GRU", [](Node &node) { return translateLayer(node, "gru_layer", 2); },
      7);
  table.add(
      "LSTM", [](Node &node) { return translateLayer(node, "lstm_layer", 3); },
      7);
}
