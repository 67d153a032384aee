//===- OpsReduce.cpp - StableHLO: reductions ------------------------------===//
#include "compiler/import/stablehlo/Reducer.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

Reducer stablehlo::reducerOf(Region &region) {
  if (!region.hasOneBlock() || region.front().getNumArguments() != 2)
    return Reducer::None;
  StringRef text;
  std::string spelled = Node::spelling(region);
  text = spelled;
  if (text == "return a1")
    return Reducer::Second;
  auto [op, rest] = text.split(' ');
  if (rest != "a0 a1; return t0" && rest != "a1 a0; return t0")
    return Reducer::None;
  return llvm::StringSwitch<Reducer>(op)
      .Case("add", Reducer::Add)
      .Case("multiply", Reducer::Mul)
      .Case("maximum", Reducer::Max)
      .Case("minimum", Reducer::Min)
      .Case("and", Reducer::And)
      .Case("or", Reducer::Or)
      .Case("xor", Reducer::Xor)
      .Default(Reducer::None);
}

Value stablehlo::combine(Node &node, Reducer reducer, Value a, Value b) {
  static constexpr StringRef names[] = {
      "add", "mul", "maximum", "minimum", "bit_and", "bit_or", "bit_xor"};
  return node.make(names[static_cast<int>(reducer)], {a, b});
}

bool stablehlo::isNeutral(Node &node, Reducer reducer, Value value) {
  auto number = node.splat(value);
  if (!number)
    return false;
  Type element = Node::typeOf(value).getElementType();
  double low = 0, high = 0;
  if (auto integer = dyn_cast<IntegerType>(element)) {
    bool isUnsigned = isUnsignedType(element);
    unsigned bits = integer.getWidth();
    low = isUnsigned ? 0 : -std::ldexp(1.0, bits - 1);
    high = bits == 1 ? 1
                     : std::ldexp(1.0, isUnsigned ? bits : bits - 1) -
                           (bits > 53 ? 0 : 1);
  } else {
    high = std::numeric_limits<double>::infinity();
    low = -high;
  }
  switch (reducer) {
  case Reducer::Add:
  case Reducer::Or:
  case Reducer::Xor:
    return *number == 0;
  case Reducer::Mul:
    return *number == 1;
  case Reducer::Max:
    return *number == low;
  case Reducer::Min:
    return *number == high;
  case Reducer::And:
    return element.isInteger(1) ? *number != 0 : *number == -1;
  default:
    return false;
  }
}

/// The reduction itself, of at least one dimension.
static Value reduced(Node &node, Reducer reducer, Value x, Sizes dims) {
  Type element = Node::typeOf(x).getElementType();
  NamedAttribute over = node.attr("dims", dims);
  bool isBool = element.isInteger(1);
  switch (reducer) {
  case Reducer::Add:
    // Of truth it is an or, as `add` of two is.
    return isBool ? reduced(node, Reducer::Or, x, dims)
                  : node.make("reduce_sum", x, {over});
  case Reducer::Mul:
    return isBool ? reduced(node, Reducer::And, x, dims)
                  : node.make("reduce_prod", x, {over});
  case Reducer::Max:
  case Reducer::Or:
    if (isBool)
      return node.call("any", x, {node.attr("dim", dims)});
    if (reducer == Reducer::Max)
      return node.make("reduce_max", x, {over});
    break;
  case Reducer::Min:
  case Reducer::And:
    if (isBool)
      return node.call("all", x, {node.attr("dim", dims)});
    if (reducer == Reducer::Min)
      return node.make("reduce_min", x, {over});
    break;
  case Reducer::Xor:
    if (isBool) {
      OpBuilder &b = node.builder();
      Value sum = node.make("reduce_sum", node.cast(x, b.getI32Type()), {over});
      if (!sum)
        return {};
      Value one = node.full(Node::typeOf(sum), 1);
      return node.cast(node.make("bit_and", {sum, one}), b.getI1Type());
    }
    break;
  default:
    break;
  }
  (void)node.unsupported("a reduction of bits of integers");
  return {};
}

/// The largest (or smallest) and where it is, as JAX has them: the first of
/// equal ones; NaN counts as the largest (as the smallest).
static LogicalResult translateArgmax(Node &node, bool smallest, int64_t dim) {
  Value x = node.operand(0), index = node.operand(1);
  if (node.shape(0) != node.shape(1))
    return node.error("expected operands of one shape");
  SmallVector<Value> made = node.callAll(
      smallest ? "min" : "max", x,
      {node.attr("dim", dim),
       node.attr("keepdim", Attribute(node.builder().getBoolAttr(false)))});
  if (made.size() < 2)
    return failure();
  // The second operand at that place: mostly the indices themselves.
  Value taken;
  List full(node.shape(1));
  full[dim] = 1;
  Value place = node.reshape(made[1], full);
  taken = node.call("gather", {index, place}, {node.attr("dim", dim)});
  if (!taken)
    return failure();
  List shape(Node::typeOf(made[0]).getShape());
  node.result(0, made[0]);
  node.result(1, node.reshape(taken, shape));
  return success();
}

static LogicalResult translatePair(Node &node, Sizes dims) {
  std::string text = Node::spelling(node.source()->getRegion(0));
  auto isPattern = [&](StringRef direction) {
    for (StringRef kind : {"FLOAT", "SIGNED", "UNSIGNED"}) {
      auto compare = [&](StringRef how, StringRef what) {
        return ("compare " + how + " " + kind + " " + what + "; ").str();
      };
      std::string whole = compare(direction, "a0 a2") + compare("NE", "a0 a0") +
                          "or t0 t1; " + compare("EQ", "a0 a2") +
                          "compare LT SIGNED a1 a3; and t3 t4; or t2 t5; "
                          "select t2 a0 a2; select t6 a1 a3; return t7 t8";
      if (text == whole)
        return true;
    }
    return false;
  };
  bool isLargest = isPattern("GT"), isSmallest = isPattern("LT");
  if ((!isLargest && !isSmallest) || dims.size() != 1)
    return node.unsupported("a reduction of two tensors that is no argmax or "
                            "argmin as JAX writes it");
  if (!isNeutral(node, isLargest ? Reducer::Max : Reducer::Min,
                 node.operand(2)))
    return node.unsupported(
        "an argmax that does not begin at the least number");
  return translateArgmax(node, isSmallest, dims[0]);
}

static LogicalResult translateReduce(Node &node) {
  size_t count = node.numResults();
  if (failed(node.expect(2 * count, count, 1)))
    return failure();
  List dims = node.integers("dimensions");
  llvm::sort(dims);
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim < 0 || dim >= node.rank(0) || (i && dims[i - 1] == dim))
      return node.error("expected dimensions of the operand, each once");
  if (count == 2)
    return translatePair(node, dims);
  if (count != 1)
    return node.unsupported("a reduction of " + Twine(count) + " tensors");
  Reducer reducer = reducerOf(node.source()->getRegion(0));
  if (reducer == Reducer::None || reducer == Reducer::Second)
    return node.unsupported("a reduction by other than add, multiply, maximum, "
                            "minimum, and, or, xor");
  Value init = node.operand(1);
  if (node.rank(1) != 0 || node.element(1) != node.element(0))
    return node.error("expected a number of the operand's type to begin with");
  Value y = dims.empty() ? node.operand(0)
                         : reduced(node, reducer, node.operand(0), dims);
  if (y && !isNeutral(node, reducer, init))
    y = combine(node, reducer, y,
                node.broadcast(init, Node::typeOf(y).getShape(), {}));
  node.result(y);
  return success();
}

void stablehlo::addReduceOps(OpTable &table) {
  table.add("reduce", translateReduce);
}
