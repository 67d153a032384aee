//===- OpsRandom.cpp - ONNX: random numbers and dropout -------------------===//
//
// Seeds in nodes are passed over: a program has one seed, and each node draws
// numbers of its own from it.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/Translator.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

/// `x` as it is, and a mask of what is kept: all.
static LogicalResult keepAll(Node &node, Type maskElement) {
  node.result(0, node.datum(0));
  if (node.wants(1))
    node.result(1, node.splat(node.type(0).clone(maskElement), 1));
  return success();
}

/// Dropout of which ratio or mode are data.
static LogicalResult dropByData(Node &node, Value ratio, Value mode) {
  Expr x = node.expr(0);
  Type f32 = node.builder().getF32Type(), i1 = node.builder().getI1Type();
  Expr u = node.wrap(node.make("random_uniform", node.randomState(),
                               {node.attr("draw", node.nextDraw())},
                               RankedTensorType::get(x.shape(), f32)));
  Expr p = node.wrap(ratio);
  if (!u || !p)
    return failure();
  auto scalar = [&](Expr value) {
    return value.reshape({}).broadcastTo(x.shape(), {});
  };
  if (p.type().getNumElements() != 1 ||
      (mode && node.wrap(mode).type().getNumElements() != 1))
    return node.error("expected the ratio and the mode to be one number each");
  Expr wide = scalar(p.cast(f32));
  Expr kept = compare(ComparePredicate::ge, u, wide);
  Expr rest = 1.0 - wide;
  Expr isAll = compare(ComparePredicate::eq, rest, rest.like(0));
  Expr factor =
      select(isAll, rest.like(0), 1.0 / select(isAll, rest.like(1), rest));
  Expr made =
      select(kept, x * factor.cast(x.type().getElementType()), x.like(0));
  if (mode) {
    Expr training = scalar(node.wrap(mode).cast(i1));
    made = select(training, made, x);
    kept = logicalOr(kept, logicalNot(training));
  }
  node.result(0, made.value);
  if (node.wants(1))
    node.result(1, kept.value);
  return success();
}

static LogicalResult translateDropout(Node &node) {
  if (!node.type(0))
    return node.error("expected the input to be a dense tensor");
  node.ignore({"seed", "is_test", "consumed_inputs"});
  Type i1 = node.builder().getI1Type();
  double ratio = 0.5;
  bool training = node.isTraining();
  // What the model does not ask for itself is another thing in inference.
  bool isSwitched = training;
  if (node.opset() < 12) {
    ratio = node.number("ratio", 0.5);
    if (!training)
      return keepAll(node, node.opset() < 10 ? node.elementType(0) : i1);
  } else {
    bool isModeKnown = true;
    if (node.has(2)) {
      auto mode = node.knownInts(2);
      isModeKnown = mode.has_value();
      bool isAsked = mode && mode->size() == 1 && (*mode)[0] != 0;
      training |= isAsked;
      isSwitched &= !isAsked;
    }
    if (isModeKnown && !training)
      return keepAll(node, i1);
    auto known = node.knownNumbers(1);
    if ((node.has(1) && !known) || !isModeKnown)
      return dropByData(node,
                        node.has(1)
                            ? node.operand(1)
                            : node.splat(RankedTensorType::get(
                                             {}, node.builder().getF32Type()),
                                         0.5),
                        isModeKnown ? Value() : node.operand(2));
    if (known && known->size() != 1)
      return node.error("expected the ratio to be one number");
    if (known)
      ratio = (*known)[0];
  }
  if (!(ratio >= 0 && ratio <= 1))
    return node.error("expected a ratio in [0, 1]");
  if (isSwitched && !node.wants(1)) {
    node.result(
        0, node.make("dropout", {node.operand(0), node.randomState()},
                     {node.attr("p", ratio), node.attr("draw", node.nextDraw()),
                      node.flag("training")}));
    return success();
  }
  auto made =
      node.callAll("native_dropout", {node.operand(0), node.randomState()},
                   {node.attr("p", ratio), node.attr("draw", node.nextDraw())});
  if (made.empty())
    return failure();
  node.result(0, made[0]);
  if (node.wants(1))
    node.result(1, node.opset() < 10
                       ? node.wrap(made[1]).cast(node.elementType(0)).value
                       : made[1]);
  return success();
}

/// The type that the attribute `dtype` says, or `otherwise`.
static Type typeOf(Node &node, Type otherwise) {
  return node.hasAttribute("dtype")
             ? node.elementTypeOf(node.integer("dtype", 1))
             : otherwise;
}

/// Numbers of a function, in the shape and type of `shaped`.
static LogicalResult draw(Node &node, StringRef function,
                          RankedTensorType shaped,
                          SmallVector<NamedAttribute> attributes) {
  node.ignore({"seed"});
  if (!shaped || !isa<FloatType>(shaped.getElementType()))
    return node.error("expected floats to be made");
  if (!isTensorShape(shaped.getShape()))
    return node.error("the tensor is empty or too large");
  attributes.push_back(node.attr("draw", node.nextDraw()));
  node.result(0,
              node.call(function, {node.splat(shaped, 0), node.randomState()},
                        attributes));
  return success();
}

static LogicalResult drawNumbers(Node &node, bool isNormal, bool isLike) {
  SmallVector<NamedAttribute> attributes;
  if (isNormal)
    attributes = {node.attr("mean", node.number("mean", 0)),
                  node.attr("std", node.number("scale", 1))};
  else
    attributes = {node.attr("low", node.number("low", 0)),
                  node.attr("high", node.number("high", 1))};
  StringRef function = isNormal ? "normal_like" : "uniform_like";
  if (isLike) {
    if (!node.type(0))
      return node.error("expected a dense tensor");
    Type element = typeOf(node, node.elementType(0));
    return element
               ? draw(node, function, node.type(0).clone(element), attributes)
               : failure();
  }
  Type element = typeOf(node, node.builder().getF32Type());
  SmallVector<int64_t> shape = node.integers("shape");
  if (!element)
    return failure();
  if (llvm::any_of(shape, [](int64_t size) { return size < 1; }))
    return node.error("expected sizes of at least 1");
  return draw(node, function, RankedTensorType::get(shape, element),
              attributes);
}

static LogicalResult translateBernoulli(Node &node) {
  if (!node.type(0))
    return node.error("expected a dense tensor");
  node.ignore({"seed"});
  Type element = typeOf(node, node.elementType(0));
  Value made =
      node.call("bernoulli_like", {node.operand(0), node.randomState()},
                {node.attr("draw", node.nextDraw())});
  if (!element || !made)
    return failure();
  node.result(0, node.wrap(made).cast(element).value);
  return success();
}

static LogicalResult translateMultinomial(Node &node) {
  if (!node.type(0))
    return node.error("expected a dense tensor");
  node.ignore({"seed"});
  Type element = typeOf(node, node.builder().getI32Type());
  // ONNX has logarithms of probabilities, which need no sum.
  Value made =
      node.call("multinomial", {node.operand(0), node.randomState()},
                {node.attr("num_samples", node.integer("sample_size", 1)),
                 node.attr("log", node.builder().getBoolAttr(true)),
                 node.attr("draw", node.nextDraw())});
  if (!element || !made)
    return failure();
  node.result(0, node.wrap(made).cast(element).value);
  return success();
}

void onnx::addRandomOps(OpTable &table) {
  table.add("Dropout", translateDropout, 6);
  table.add("RandomNormal",
            [](Node &node) { return drawNumbers(node, true, false); });
  table.add("RandomNormalLike",
            [](Node &node) { return drawNumbers(node, true, true); });
  table.add("RandomUniform",
            [](Node &node) { return drawNumbers(node, false, false); });
  table.add("RandomUniformLike",
            [](Node &node) { return drawNumbers(node, false, true); });
  table.add("Bernoulli", translateBernoulli, 15);
  table.add("Multinomial", translateMultinomial, 7);
}
