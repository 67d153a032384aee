//===- OpsLoss.cpp - ONNX: losses -----------------------------------------===//
#include "compiler/import/onnx/Translator.h"

#include <limits>

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

static Value nll(Node &node, Value scores) {
  std::string reduction = node.choice("reduction", {"mean", "sum", "none"});
  SmallVector<NamedAttribute> attributes = {
      node.attr("reduction", StringRef(reduction))};
  // Without it, no index is ignored: one that no class has.
  attributes.push_back(node.attr(
      "ignore_index",
      node.integer("ignore_index", std::numeric_limits<int32_t>::min())));
  return node.call("nll_loss", {scores, node.operand(1), node.operand(2)},
                   attributes);
}

static LogicalResult translateNegativeLogLikelihoodLoss(Node &node) {
  if (!node.type(0) || !node.type(1))
    return node.error("expected scores and class indices");
  node.result(0, nll(node, node.operand(0)));
  return success();
}

static LogicalResult translateSoftmaxCrossEntropyLoss(Node &node) {
  RankedTensorType type = node.type(0);
  if (!type || !node.type(1))
    return node.error("expected scores and class indices");
  if (type.getRank() < 2)
    return node.error("expected scores [N, C, ...], but got rank " +
                      Twine(type.getRank()));
  Value logp =
      node.make("log_softmax", node.operand(0), {node.attr("dim", int64_t(1))});
  if (!logp)
    return failure();
  node.result(0, nll(node, logp));
  if (node.wants(1))
    node.result(1, logp);
  return success();
}

void onnx::addLossOps(OpTable &table) {
  table.add("NegativeLogLikelihoodLoss", translateNegativeLogLikelihoodLoss,
            12);
  table.add("SoftmaxCrossEntropyLoss", translateSoftmaxCrossEntropyLoss, 12);
}
