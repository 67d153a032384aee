//===- OpsNorm.cpp - ONNX: normalizations ---------------------------------===//
#include "compiler/import/onnx/Translator.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

/// `value` in the element type of operand `i`.
static Value like(Node &node, Value value, Type element) {
  return value ? node.wrap(value).cast(element).value : value;
}

/// The batch's statistics in programs that train, the running ones in those
/// that evaluate: what the op batch_norm does.
static LogicalResult batchNormInTraining(Node &node, ArrayRef<Value> operands,
                                         double epsilon, double momentum,
                                         bool asked) {
  Operation *made =
      node.build("batch_norm", operands,
                 {node.attr("epsilon", epsilon), node.flag("training")});
  if (!made)
    return failure();
  node.result(0, made->getResult(0));
  // In training that the model does not ask for itself, variances are as in
  // PyTorch, where weights come from and go to: estimates of the population's.
  // What the operator itself gives is the batch's, as ONNX says.
  RankedTensorType type = node.type(0);
  double count =
      static_cast<double>(type.getNumElements() / type.getDimSize(1));
  double correction = count > 1 ? count / (count - 1) : 1;
  for (size_t i : {1, 2}) {
    Expr old = node.wrap(operands[i + 2]),
         fresh = node.wrap(made->getResult(i));
    auto mixed = [&](const Expr &with) {
      return old * momentum + with * (1 - momentum);
    };
    if (node.wants(i))
      node.result(i, mixed(fresh).value);
    // The batch's own, in old versions.
    if (node.opset() < 14 && node.wants(i + 2))
      node.result(i + 2, like(node, fresh, node.elementType(i + 2)));
    // A model that trains by itself may carry its statistics as it likes.
    if (!node.isTraining() || (asked && !node.datum(i + 2).data))
      continue;
    if (failed(node.update(i + 2, mixed(i == 2 ? fresh * correction : fresh))))
      return failure();
  }
  return success();
}

static LogicalResult translateBatchNormalization(Node &node) {
  RankedTensorType type = node.type(0);
  if (!type)
    return node.error("expected the input to be a dense tensor");
  if (node.integer("spatial", 1) != 1)
    return node.unsupported("statistics for each element ('spatial' of 0)");
  node.ignore({"is_test", "consumed_inputs"});
  double epsilon = node.number("epsilon", 1e-5f);
  double momentum = node.number("momentum", 0.9f);
  bool asked =
      node.opset() < 14 ? node.wants(1) : node.integer("training_mode", 0) != 0;
  for (size_t i = 1; i < 5; ++i)
    if (!node.has(i))
      return node.error("expected operand " + Twine(i));
  SmallVector<Value> operands;
  for (size_t i = 0; i < 5; ++i)
    operands.push_back(node.operand(i));
  if (!node.keepsInference() && (asked || node.isTraining()))
    return batchNormInTraining(node, operands, epsilon, momentum, asked);
  Value y = node.call("batch_norm_functional", operands,
                      {node.attr("training", node.builder().getBoolAttr(false)),
                       node.attr("eps", epsilon)});
  if (!y)
    return failure();
  node.result(0, y);
  // Nothing of the batch counts, and nothing changes.
  for (size_t i = 1; i < 5; ++i)
    if (node.wants(i))
      node.result(i, operands[i < 3 ? i + 2 : i]);
  return success();
}

static LogicalResult translateInstanceNormalization(Node &node) {
  node.ignore({"consumed_inputs"});
  double epsilon = node.number("epsilon", 1e-5f);
  node.result(0, node.call("instance_norm",
                           {node.operand(0), node.operand(1), node.operand(2)},
                           {node.attr("eps", epsilon)}));
  return success();
}

static LogicalResult translateLayerNormalization(Node &node) {
  RankedTensorType type = node.type(0);
  if (!type)
    return node.error("expected the input to be a dense tensor");
  int64_t axis = node.integer("axis", -1), rank = type.getRank();
  double epsilon = node.number("epsilon", 1e-5f);
  int64_t stash = node.integer("stash_type", 1);
  if (axis < -rank || axis >= rank)
    return node.error("expected 'axis' to be a dimension of a tensor of rank " +
                      Twine(rank) + ", but got " + Twine(axis));
  axis += axis < 0 ? rank : 0;
  ArrayRef<int64_t> trailing = type.getShape().drop_front(axis);
  SmallVector<Value> operands = {node.operand(0)};
  for (size_t i : {1, 2}) {
    Expr scale = node.expr(i);
    // It may have to be stretched to what is normalized.
    if (scale && scale.shape() != trailing) {
      SmallVector<int64_t> dims;
      for (int64_t d = 0; d < scale.rank(); ++d)
        dims.push_back(d + static_cast<int64_t>(trailing.size()) -
                       scale.rank());
      scale =
          node.wrap(node.make("broadcast", scale.value,
                              {node.attr("shape", trailing),
                               node.attr("dims", ArrayRef<int64_t>(dims))}));
      if (!scale)
        return failure();
    }
    operands.push_back(scale.value);
  }
  auto made =
      node.callAll("native_layer_norm", operands,
                   {node.attr("axis", axis), node.attr("eps", epsilon)});
  if (made.empty())
    return failure();
  node.result(0, made[0]);
  Type element = node.elementTypeOf(stash);
  if (!element)
    return failure();
  for (size_t i : {1, 2})
    if (node.wants(i))
      node.result(i, like(node, made[i], element));
  return success();
}

/// Also SimplifiedLayerNormalization, which ONNX Runtime had before.
static LogicalResult translateRmsNormalization(Node &node) {
  RankedTensorType type = node.type(0);
  if (!type || !node.type(1))
    return node.error("expected an input and a scale");
  int64_t axis = node.integer("axis", -1), rank = type.getRank();
  double epsilon = node.number("epsilon", 1e-5f);
  Type stash = node.elementTypeOf(node.integer("stash_type", 1));
  if (!stash)
    return failure();
  if (axis < -rank || axis >= rank)
    return node.error("expected 'axis' to be a dimension of a tensor of rank " +
                      Twine(rank) + ", but got " + Twine(axis));
  axis += axis < 0 ? rank : 0;
  Value y = node.call("rms_norm", node.operand(0),
                      {node.attr("axis", axis), node.attr("eps", epsilon)});
  if (!y)
    return failure();
  // The result has the scale's type, and stretches it.
  Expr both[] = {node.wrap(y).cast(node.elementType(1)), node.expr(1)};
  if (!both[1] || !node.broadcast(both))
    return failure();
  if (both[0].shape() != type.getShape())
    return node.error("expected a scale that stretches to the input");
  node.result(0, (both[0] * both[1]).value);
  return success();
}

static LogicalResult translateGroupNormalization(Node &node) {
  RankedTensorType type = node.type(0);
  if (!type || type.getRank() < 2)
    return node.error("expected an input [N, C, ...]");
  int64_t groups = node.integer("num_groups", 0);
  double epsilon = node.number("epsilon", 1e-5f);
  node.ignore({"stash_type"});
  int64_t channels = type.getDimSize(1);
  if (groups < 1 || channels % groups)
    return node.error("expected 'num_groups' to divide the " + Twine(channels) +
                      " channels, but got " + Twine(groups));
  SmallVector<Value> operands = {node.operand(0)};
  for (size_t i : {1, 2}) {
    Expr scale = node.expr(i);
    // At first there was one for each group.
    if (scale && node.opset() < 21 && scale.rank() == 1 &&
        scale.dim(0) == groups)
      scale = scale.broadcastTo({groups, channels / groups}, {0})
                  .reshape({channels});
    operands.push_back(scale.value);
  }
  node.result(0, node.call("group_norm", operands,
                           {node.attr("num_groups", groups),
                            node.attr("eps", epsilon)}));
  return success();
}

static LogicalResult translateLpNormalization(Node &node) {
  int64_t axis = node.integer("axis", -1), p = node.integer("p", 2);
  if (p != 1 && p != 2)
    return node.unsupported("'p' of " + Twine(p));
  // Zeros stay zeros.
  node.result(0, node.call("normalize", node.operand(0),
                           {node.attr("dim", axis),
                            node.attr("p", static_cast<double>(p)),
                            node.attr("eps", 1e-37)}));
  return success();
}

static LogicalResult translateLRN(Node &node) {
  int64_t size = node.integer("size", 0);
  if (size < 1)
    return node.error("expected 'size' to be at least 1");
  node.result(0, node.call("local_response_norm", node.operand(0),
                           {node.attr("size", size),
                            node.attr("alpha", node.number("alpha", 1e-4f)),
                            node.attr("beta", node.number("beta", 0.75)),
                            node.attr("k", node.number("bias", 1)),
                            node.attr("before", (size - 1) / 2)}));
  return success();
}

static LogicalResult translateMeanVarianceNormalization(Node &node) {
  SmallVector<int64_t> axes = node.integers("axes", {0, 2, 3});
  node.result(0, node.call("mean_variance_norm", node.operand(0),
                           {node.attr("dims", ArrayRef<int64_t>(axes))}));
  return success();
}

void onnx::addNormOps(OpTable &table) {
  table.add("BatchNormalization", translateBatchNormalization, 6);
  table.add("InstanceNormalization", translateInstanceNormalization);
  table.add("LayerNormalization", translateLayerNormalization, 17);
  table.add("RMSNormalization", translateRmsNormalization, 23);
  // Models have it in either domain.
  table.add("SimplifiedLayerNormalization", translateRmsNormalization);
  table.add("com.microsoft", "SimplifiedLayerNormalization",
            translateRmsNormalization, 1, 1);
  table.add("GroupNormalization", translateGroupNormalization, 18);
  table.add("LpNormalization", translateLpNormalization);
  table.add("LRN", translateLRN);
  table.add("MeanVarianceNormalization", translateMeanVarianceNormalization, 9);
}
