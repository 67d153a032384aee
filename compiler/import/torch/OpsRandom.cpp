//===- OpsRandom.cpp - ATen: random numbers -------------------------------===//
//
// Each node draws numbers of its own from the program's one state. They are not
// PyTorch's numbers.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/IsTraining.h"
#include "compiler/import/torch/Node.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;

Expr Node::dropped(const Expr &x, double p) {
  return make("dropout", {x, randomState()},
              {attr("draw", nextDraw()), attr("p", p),
               builder().getNamedAttr("training", builder().getUnitAttr())});
}

/// Whether a node of dropout with `p` drops.
static bool drops(Node &node, double p) {
  bool training = node.flag("train", true);
  return p > 0 ? node.trains(Inactive::Dropout, training) : training;
}

static LogicalResult dropout(Node &node) {
  StringRef self = node.has("input") ? "input" : "self";
  double p = node.number("p", 0.5);
  bool training = drops(node, p);
  bool isNative = node.op() == "native_dropout";
  Value ref = node.ref(self);
  if (!ref)
    return failure();
  if (!isNative && (!training || p == 0))
    return node.view(ref);
  Expr x = node.value(self);
  if (isNative) {
    auto made =
        node.makeAll("native_dropout", {x, node.randomState()},
                     {node.attr("p", p), node.attr("training", training),
                      node.attr("draw", node.nextDraw())});
    if (made.size() != 2)
      return failure();
    return success(succeeded(node.result(0, made[0])) &&
                   succeeded(node.result(1, made[1])));
  }
  return node.result(node.dropped(x, p));
}

/// Whole channels are dropped: one draw for each of the first two dimensions.
static LogicalResult featureDropout(Node &node) {
  double p = node.number("p", 0.5);
  bool training = drops(node, p);
  Value ref = node.ref("input");
  if (!ref)
    return failure();
  if (!training || p == 0)
    return node.view(ref);
  Expr x = node.value("input");
  if (x.rank() < 2)
    return node.error("expected at least two dimensions");
  Type element = x.type().getElementType();
  Expr ones = node.full(element, x.shape().take_front(2), 1);
  Expr factor = node.dropped(ones, p);
  return node.result(factor ? x * factor.broadcastTo(x.shape(), {0, 1})
                            : factor);
}

/// Numbers of a distribution in the shape and type of the result.
static LogicalResult drawn(Node &node, StringRef function,
                           SmallVector<NamedAttribute> list) {
  RankedTensorType type = node.resultType(0);
  if (!type || !isa<FloatType>(type.getElementType()))
    return node.unsupported("random numbers that are no floats");
  list.push_back(node.attr("draw", node.nextDraw()));
  return node.result(
      node.make(function,
                {node.full(type.getElementType(), type.getShape(), 0),
                 node.randomState()},
                list));
}

static LogicalResult bernoulli(Node &node) {
  RankedTensorType type = node.resultType(0);
  if (!type)
    return node.unsupported("a tensor of a size that is not known");
  Type f32 = node.builder().getF32Type();
  Expr p = node.isTensor("p") ? node.value("p")
           : node.has("p")    ? node.full(f32, {}, node.number("p", 0.5))
                              : node.value("self");
  if (!p)
    return failure();
  p = node.stretch(node.cast(p, f32), type.getShape());
  Expr made = node.make("bernoulli_like", {p, node.randomState()},
                        node.attr("draw", node.nextDraw()));
  return node.result(made ? node.cast(made, type.getElementType()) : made);
}

static LogicalResult integers(Node &node) {
  RankedTensorType type = node.resultType(0);
  if (!type)
    return node.unsupported("a tensor of a size that is not known");
  double low = static_cast<double>(node.integer("low", 0));
  double high = static_cast<double>(node.integer("high", 1));
  if (!(high > low) || high - low > 16777216)
    return node.unsupported("a range of more than 2^24 random integers");
  Expr u =
      node.make("uniform_like",
                {node.full(node.builder().getF32Type(), type.getShape(), 0),
                 node.randomState()},
                {node.attr("low", 0.0), node.attr("high", high - low),
                 node.attr("draw", node.nextDraw())});
  if (!u)
    return failure();
  Expr whole =
      node.cast(node.make("floor", u.value), node.builder().getI64Type());
  return node.result(node.cast(whole + whole.like(low), type.getElementType()));
}

/// The order that uniform numbers sort into.
static LogicalResult permutation(Node &node) {
  RankedTensorType type = node.resultType(0);
  if (!type)
    return node.unsupported("a tensor of a size that is not known");
  if (!type.getElementType().isInteger())
    return node.unsupported("an order of numbers that are no integers");
  Expr keys =
      node.make("uniform_like",
                {node.full(node.builder().getF32Type(), type.getShape(), 0),
                 node.randomState()},
                {node.attr("low", 0.0), node.attr("high", 1.0),
                 node.attr("draw", node.nextDraw())});
  Expr order = keys ? node.make("argsort", keys.value) : keys;
  return node.result(order ? node.cast(order, type.getElementType()) : order);
}

void torch::addRandomOps(OpTable &table) {
  table.add("dropout native_dropout", dropout);
  table.add("feature_dropout", featureDropout);
  table.add("rand rand_like",
            [](Node &node) { return drawn(node, "uniform_like", {}); });
  table.add("uniform", [](Node &node) {
    return drawn(node, "uniform_like",
                 {node.attr("low", node.number("from", 0)),
                  node.attr("high", node.number("to", 1))});
  });
  table.add("randn randn_like",
            [](Node &node) { return drawn(node, "normal_like", {}); });
  table.add("normal", [](Node &node) {
    if (node.isTensor("mean") || node.isTensor("std"))
      return node.unsupported("a mean or a deviation that is a tensor");
    return drawn(node, "normal_like",
                 {node.attr("mean", node.number("mean", 0)),
                  node.attr("std", node.number("std", 1))});
  });
  table.add("bernoulli", bernoulli);
  table.add("randint randint_like", integers);
  table.add("randperm", permutation);
}
