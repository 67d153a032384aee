//===- OpsRandom.cpp - ONNX: random numbers and dropout -------------------===//
//
// Seeds in nodes are passed over: a program has one seed, and each node draws
// numbers of its own from it.
//
//===----------------------------------------------------------------------===//
#include "compiler/functions/IsTraining.h"
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

/// Dropout of which ratio or mode are data. A mode that is data counts in every
/// program; without one, programs that evaluate keep all.
static LogicalResult dropByData(Node &node, Value ratio, Value mode) {
  Expr x = node.expr(0);
  Type f32 = node.builder().getF32Type(), i1 = node.builder().getI1Type();
  Expr u = node.wrap(node.make("random_uniform", node.randomState(),
                               {node.attr("draw", node.nextDraw())},
                               RankedTensorType::get(x.shape(), f32)));
  Expr p = node.wrap(ratio);
  if (!u || !p)
    return failure();
  if (p.type().getNumElements() != 1 ||
      (mode && node.wrap(mode).type().getNumElements() != 1))
    return node.error("expected the ratio and the mode to be one number each");
  auto scalar = [&](const Expr &value) {
    return value.reshape({}).broadcastTo(x.shape(), {});
  };
  Expr wide = scalar(p.cast(f32));
  Expr kept = compare(ComparePredicate::ge, u, wide);
  Expr rest = 1.0 - wide;
  Expr isAll = compare(ComparePredicate::eq, rest, rest.like(0));
  Expr factor =
      select(isAll, rest.like(0), 1.0 / select(isAll, rest.like(1), rest));
  Expr made =
      select(kept, x * factor.cast(x.type().getElementType()), x.like(0));
  Expr drops = scalar(mode ? node.wrap(mode).cast(i1)
                           : isTraining(node.builder(), node.loc()));
  node.result(0, select(drops, made, x).value);
  if (node.wants(1))
    node.result(1, logicalOr(kept, logicalNot(drops)).value);
  return success();
}

/// Drops where the node asks for it or the graph is given a loss, and never in
/// a program that evaluates.
static LogicalResult translateDropout(Node &node) {
  if (!node.type(0))
    return node.error("expected the input to be a dense tensor");
  node.ignore({"seed", "is_test", "consumed_inputs"});
  Type f32 = node.builder().getF32Type(), i1 = node.builder().getI1Type();
  bool isData = node.opset() >= 12; // ratio and mode are operands
  double ratio = isData ? 0.5 : node.number("ratio", 0.5);
  bool training = node.isTraining();
  Value mode;
  if (isData && node.has(2) && !node.keepsInference()) {
    auto known = node.knownInts(2);
    training |= known && known->size() == 1 && (*known)[0] != 0;
    if (!known)
      mode = node.operand(2);
  }
  Type maskElement = node.opset() < 10 ? node.elementType(0) : i1;
  if (!training && !mode)
    return keepAll(node, maskElement);
  bool isKnown = !mode;
  if (isData && node.has(1)) {
    auto known = node.knownNumbers(1);
    isKnown &= known.has_value();
    if (known && known->size() != 1)
      return node.error("expected the ratio to be one number");
    if (known)
      ratio = known->front();
  }
  if (!(ratio >= 0 && ratio <= 1))
    return node.error("expected a ratio in [0, 1]");
  if (!isKnown)
    return dropByData(node,
                      node.has(1)
                          ? node.operand(1)
                          : node.splat(RankedTensorType::get({}, f32), ratio),
                      mode);
  SmallVector<NamedAttribute> attributes = {node.attr("p", ratio),
                                            node.attr("draw", node.nextDraw())};
  if (!node.wants(1)) {
    attributes.push_back(node.flag("training"));
    node.result(0, node.make("dropout", {node.operand(0), node.randomState()},
                             attributes));
    return success();
  }
  auto made = node.callAll("native_dropout",
                           {node.operand(0), node.randomState()}, attributes);
  if (made.empty())
    return failure();
  node.result(0, made[0]);
  node.result(1, node.wrap(made[1]).cast(maskElement).value);
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
