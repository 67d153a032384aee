//===- OpsNormalization.cpp - ATen: normalizations ------------------------===//
#include "compiler/import/torch/Node.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;
using List = Node::List;

static Value optional(Node &node, StringRef name) {
  return node.has(name) ? node.value(name).value : Value();
}

/// Gives the first results of a call; statistics, through which PyTorch does
/// not differentiate, in its type and shape.
static LogicalResult give(Node &node, ArrayRef<Value> made) {
  if (made.empty())
    return failure();
  for (size_t i = 0; i < made.size() && i < node.resultCount(); ++i) {
    Expr value = node.wrap(made[i]);
    if (RankedTensorType type = node.resultType(i))
      value = node.cast(node.reshape(value, type.getShape()),
                        type.getElementType());
    if (value && i > 0)
      value = tandem::detach(value);
    if (failed(node.result(i, value)))
      return failure();
  }
  return success();
}

static LogicalResult layerNorm(Node &node) {
  Expr x = node.value("input");
  if (!x)
    return failure();
  int64_t axis = x.rank() - node.integers("normalized_shape").size();
  if (axis < 0 || axis >= x.rank())
    return node.error(
        "expected a shape of at least one dimension of the input");
  bool isRms = node.op() == "rms_norm" || node.op() == "_fused_rms_norm";
  SmallVector<Value> operands = {x, optional(node, "weight")};
  SmallVector<NamedAttribute> list = {node.attr("axis", axis)};
  if (isRms) {
    if (node.has("eps"))
      list.push_back(node.attr("eps", node.number("eps", 0)));
  } else {
    operands.push_back(optional(node, "bias"));
    list.push_back(node.attr("eps", node.number("eps", 1e-5)));
  }
  if (node.failed())
    return failure();
  return give(node, node.call(isRms ? "rms_norm" : "native_layer_norm",
                              operands, list));
}

/// Means, and what is divided by, of [N, groups], as results 1 and 2.
static LogicalResult groupStatistics(Node &node, const Expr &x, int64_t groups,
                                     double eps) {
  int64_t count = x.dim(0) * groups;
  if (groups <= 0 || count == 0 || x.type().getNumElements() % count != 0)
    return node.unsupported("statistics of no groups");
  Expr flat =
      node.reshape(x, {x.dim(0), groups, x.type().getNumElements() / count});
  bool isWide = x.type().getElementTypeBitWidth() >= 32;
  if (!isWide)
    flat = node.cast(flat, node.builder().getF32Type());
  auto made =
      node.makeAll("var_mean", flat.value,
                   {node.attr("dim", List{2}), node.attr("keepdim", false),
                    node.attr("correction", 0.0)});
  if (made.size() != 2)
    return failure();
  Expr root = node.make("rsqrt", (node.wrap(made[0]) + eps).value);
  SmallVector<Value> statistics = {made[1], root};
  for (size_t i : {1, 2}) {
    RankedTensorType type = node.resultType(i);
    Expr value = node.wrap(statistics[i - 1]);
    if (value && type)
      value = node.cast(value, type.getElementType());
    if (failed(node.result(i, value ? tandem::detach(value) : value)))
      return failure();
  }
  return success();
}

static LogicalResult groupNorm(Node &node) {
  Expr x = node.value("input");
  if (!x)
    return failure();
  bool isNative = node.op() == "native_group_norm";
  SmallVector<Value> operands = {x, optional(node, "weight"),
                                 optional(node, "bias")};
  int64_t groups = node.integer(isNative ? "group" : "num_groups", 1);
  double eps = node.number("eps", 1e-5);
  if (isNative && (node.wants(1) || node.wants(2)) &&
      failed(groupStatistics(node, x, groups, eps)))
    return failure();
  auto made =
      node.call("group_norm", operands,
                {node.attr("num_groups", groups), node.attr("eps", eps)});
  return node.result(0, made.empty() ? Value() : made[0]);
}

static LogicalResult batchNorm(Node &node) {
  Expr x = node.value("input");
  if (!x)
    return failure();
  StringRef op = node.op();
  bool isFunctional = op == "_native_batch_norm_legit_functional";
  bool training = node.flag("training", node.flag("train", false)) &&
                  !op.ends_with("no_training");
  if (node.overload() == "no_stats")
    training = true;
  if (node.has("running_mean"))
    training = node.trains(Inactive::Norm, training);
  SmallVector<Value> operands = {
      x, optional(node, "weight"), optional(node, "bias"),
      optional(node, "running_mean"), optional(node, "running_var")};
  if (node.failed())
    return failure();
  auto made = node.call("batch_norm_functional", operands,
                        {node.attr("training", training),
                         node.attr("momentum", node.number("momentum", 0.1)),
                         node.attr("eps", node.number("eps", 1e-5))});
  if (made.empty())
    return failure();
  bool hasNew = made.size() >= 5;
  // What a program that evaluates saves for a gradient is empty.
  for (size_t i : {1, 2})
    if (RankedTensorType type = node.resultType(i);
        type && type.getNumElements() == 0)
      made[i] = node.full(type.getElementType(), type.getShape(), 0);
  if (isFunctional) {
    if (!hasNew) {
      made.resize(3);
      made.append({operands[3], operands[4]});
    }
    return give(node, made);
  }
  if (training && hasNew) {
    node.write(made[3], node.ref("running_mean"));
    node.write(made[4], node.ref("running_var"));
  }
  made.resize(3);
  return give(node, made);
}

/// Moves running statistics of an instance_norm towards those of the samples,
/// their means over the batch.
static LogicalResult moveStatistics(Node &node, const Expr &x) {
  Expr mean = node.value("running_mean"), variance = node.value("running_var");
  if (!mean || !variance)
    return failure();
  double momentum = node.number("momentum", 0.1);
  List plane;
  for (int64_t d = 2; d < x.rank(); ++d)
    plane.push_back(d);
  Expr wide = node.cast(x, mean.type().getElementTypeBitWidth() > 32
                               ? mean.type().getElementType()
                               : Type(node.builder().getF32Type()));
  auto made =
      node.makeAll("var_mean", tandem::detach(wide).value,
                   {node.attr("dim", plane), node.attr("keepdim", false),
                    node.attr("correction", 1.0)});
  if (made.size() != 2)
    return failure();
  auto move = [&](StringRef name, const Expr &old, Value now) {
    Expr mine = node.make(
        "mean", now, {node.attr("dim", List{0}), node.attr("keepdim", false)});
    if (!mine)
      return;
    Expr before = node.cast(old, mine.type().getElementType());
    node.write(node.cast(before * (1 - momentum) + mine * momentum,
                         old.type().getElementType()),
               node.ref(name));
  };
  move("running_mean", mean, made[1]);
  move("running_var", variance, made[0]);
  return success(!node.failed());
}

static LogicalResult instanceNorm(Node &node) {
  Expr x = node.value("input");
  if (!x)
    return failure();
  SmallVector<Value> operands = {x, optional(node, "weight"),
                                 optional(node, "bias")};
  if (node.has("running_mean")) {
    if (!node.trains(Inactive::Norm, node.flag("use_input_stats", true))) {
      operands.push_back(node.value("running_mean"));
      operands.push_back(node.value("running_var"));
      return give(node,
                  node.call("batch_norm_functional", operands,
                            {node.attr("training", false),
                             node.attr("eps", node.number("eps", 1e-5))}));
    }
    if (failed(moveStatistics(node, x)))
      return failure();
  }
  return give(node, node.call("instance_norm", operands,
                              node.attr("eps", node.number("eps", 1e-5))));
}

/// v g / |v|, the norms over all dimensions but one.
static LogicalResult weightNorm(Node &node) {
  Expr v = node.value("v"), g = node.value("g");
  if (!v || !g)
    return failure();
  int64_t kept = node.integer("dim", 0);
  List dims;
  for (int64_t d = 0; d < v.rank(); ++d)
    if (d != kept)
      dims.push_back(d);
  Expr norm = node.make("norm", v.value,
                        {node.attr("dim", dims), node.attr("keepdim", true)});
  Expr scale = norm ? node.make("divide", {g, norm}) : norm;
  return node.result(scale ? node.make("multiply", {v, scale}) : scale);
}

void torch::addNormalizationOps(OpTable &table) {
  table.add("layer_norm native_layer_norm rms_norm _fused_rms_norm", layerNorm);
  table.add("group_norm native_group_norm", groupNorm);
  table.add("batch_norm native_batch_norm _native_batch_norm_legit "
            "_native_batch_norm_legit_no_training "
            "_native_batch_norm_legit_functional",
            batchNorm);
  table.add("instance_norm", instanceNorm);
  table.add("_weight_norm", weightNorm);
}
