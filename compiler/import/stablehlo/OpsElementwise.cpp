//===- OpsElementwise.cpp - StableHLO: element by element -----------------===//
#include "compiler/import/stablehlo/Node.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

namespace {

/// What the name of an op is in Tandem's dialect, for a template argument.
template <size_t N> struct Name {
  constexpr Name(const char (&text)[N]) { std::copy_n(text, N, value); }
  char value[N];
};

} // namespace

/// An op of the dialect with the same meaning.
template <Name name, size_t count> static LogicalResult same(Node &node) {
  if (failed(node.expect(count)))
    return failure();
  // How precise a function has to be; the dialect's are as precise as they can.
  node.ignore({"result_accuracy"});
  node.result(node.make(name.value, node.all()));
  return success();
}

/// The same of numbers, and of bools as the specification says it: a sum is
/// "or", a product "and".
template <Name name, Name ofBools> static LogicalResult ofTwo(Node &node) {
  if (failed(node.expect(2)))
    return failure();
  bool isBool = node.element(0).isInteger(1) && node.type(0) == node.type(1);
  node.result(node.make(isBool ? ofBools.value : name.value, node.all()));
  return success();
}

/// A function of compiler/functions.
template <Name name, size_t count> static LogicalResult function(Node &node) {
  if (failed(node.expect(count)))
    return failure();
  node.ignore({"result_accuracy"});
  node.result(node.call(name.value, node.all()));
  return success();
}

static bool isInteger(Type element) { return isa<IntegerType>(element); }

/// Quotients of integers by 0 are -1 in JAX, and the dividend's remainder is
/// itself: XLA's, where the specification leaves them open.
static LogicalResult translateDivide(Node &node) {
  if (failed(node.expect(2)))
    return failure();
  Value quotient = node.make("div", node.all());
  if (quotient && isInteger(node.element(1))) {
    auto divisor = node.splat(node.operand(1));
    if (!divisor || *divisor == 0) {
      Value zero = node.full(node.type(1), 0);
      quotient = node.make("select", {node.compare("eq", node.operand(1), zero),
                                      node.make("bit_not", zero), quotient});
    }
  }
  node.result(quotient);
  return success();
}

/// Half is rounded away from zero.
static LogicalResult translateRoundAway(Node &node) {
  if (failed(node.expect(1)))
    return failure();
  Value x = node.operand(0), whole = node.make("trunc", x);
  Value rest = node.make("abs", node.make("sub", {x, whole}));
  if (!rest)
    return failure();
  Value isHalf = node.compare("ge", rest, node.full(node.type(0), 0.5));
  node.result(node.make(
      "select",
      {isHalf, node.make("add", {whole, node.make("sign", x)}), whole}));
  return success();
}

static LogicalResult translateSign(Node &node) {
  if (failed(node.expect(1)))
    return failure();
  if (!isInteger(node.element(0)))
    return node.result(node.make("sign", node.operand(0))), success();
  Value zero = node.full(node.type(0), 0), one = node.full(node.type(0), 1);
  Value x = node.operand(0);
  if (isUnsignedType(node.element(0)))
    return node.result(node.make("minimum", {x, one})), success();
  Value below = node.make(
      "select", {node.compare("lt", x, zero), node.make("neg", one), zero});
  node.result(node.make("select", {node.compare("gt", x, zero), one, below}));
  return success();
}

static LogicalResult translateCbrt(Node &node) {
  if (failed(node.expect(1)))
    return failure();
  node.ignore({"result_accuracy"});
  Value x = node.operand(0);
  Value root = node.make(
      "pow", {node.make("abs", x), node.full(node.type(0), 1.0 / 3.0)});
  node.result(node.make("mul", {node.make("sign", x), root}));
  return success();
}

/// Bits of integers, or truth.
template <Name name> static LogicalResult bits(Node &node) {
  if (failed(node.expect(name.value == std::string_view("bit_not") ? 1 : 2)))
    return failure();
  node.result(node.make(name.value, node.all()));
  return success();
}

/// The dialect's shift of unsigned integers is the logical one.
static LogicalResult translateShiftLogical(Node &node) {
  if (failed(node.expect(2)))
    return failure();
  auto type = dyn_cast<IntegerType>(node.element(0));
  if (!type || node.type(0) != node.type(1))
    return node.error("expected integers of one type");
  Type bare = IntegerType::get(type.getContext(), type.getWidth(),
                               IntegerType::Unsigned);
  Value x = node.cast(node.operand(0), bare);
  Value by = node.cast(node.operand(1), bare);
  node.result(node.cast(node.make("shift_right", {x, by}), type));
  return success();
}

static LogicalResult translateShiftArithmetic(Node &node) {
  if (failed(node.expect(2)))
    return failure();
  auto type = dyn_cast<IntegerType>(node.element(0));
  if (!type || node.type(0) != node.type(1))
    return node.error("expected integers of one type");
  Type bare = IntegerType::get(type.getContext(), type.getWidth());
  Value x = node.cast(node.operand(0), bare);
  Value by = node.cast(node.operand(1), bare);
  node.result(node.cast(node.make("shift_right", {x, by}), type));
  return success();
}

/// NaN as an integer is 0 here and in XLA.
static LogicalResult translateConvert(Node &node) {
  if (failed(node.expect(1)))
    return failure();
  RankedTensorType to = node.resultType();
  if (!to)
    return failure();
  node.result(node.cast(node.operand(0), to.getElementType()));
  return success();
}

static LogicalResult translateBitcast(Node &node) {
  if (failed(node.expect(1)))
    return failure();
  RankedTensorType to = node.resultType();
  if (!to)
    return failure();
  if (to == node.type(0))
    return node.result(node.operand(0)), success();
  if (to.getShape() != node.shape(0) ||
      elementBytes(to.getElementType()) != elementBytes(node.element(0)))
    return node.unsupported("elements of another width");
  node.result(node.make("bitcast", node.operand(0), {}, to));
  return success();
}

/// Integers in the total order of floats: their bits, of negative ones all but
/// the sign turned over.
static Value ordered(Node &node, Value x) {
  OpBuilder &b = node.builder();
  unsigned bits = Node::typeOf(x).getElementTypeBitWidth();
  RankedTensorType type = Node::typeOf(x).clone(b.getIntegerType(bits));
  Value whole = node.make("bitcast", x, {}, type);
  auto number = [&](const APInt &value) {
    return node.constant(DenseElementsAttr::get(type, value));
  };
  Value sign = node.make("shift_right", {whole, number(APInt(bits, bits - 1))});
  Value mask =
      node.make("bit_and", {sign, number(APInt::getSignedMaxValue(bits))});
  return node.make("bit_xor", {whole, mask});
}

static LogicalResult translateCompare(Node &node) {
  if (failed(node.expect(2)))
    return failure();
  std::string direction = node.text("comparison_direction", "");
  std::string kind = node.text("compare_type", "NOTYPE");
  static constexpr StringRef names[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  if (!llvm::is_contained(names, direction))
    return node.error("expected a direction of EQ, NE, GE, GT, LE, LT");
  if (node.type(0) != node.type(1))
    return node.error("expected operands of one type");
  Value a = node.operand(0), b = node.operand(1);
  if (kind == "TOTALORDER" && isa<FloatType>(node.element(0))) {
    a = ordered(node, a);
    b = ordered(node, b);
  }
  if (!a || !b)
    return failure();
  node.result(node.compare(StringRef(direction).lower(), a, b));
  return success();
}

/// A number as a tensor of the shape.
static Value stretched(Node &node, Value x, Sizes shape) {
  if (!x || Node::typeOf(x).getShape() == shape)
    return x;
  if (Node::typeOf(x).getRank() != 0)
    return (void)node.error("expected a number or a tensor of the shape"),
           Value();
  return node.broadcast(x, shape, {});
}

static LogicalResult translateSelect(Node &node) {
  if (failed(node.expect(3)))
    return failure();
  if (!node.element(0).isInteger(1))
    return node.error("expected a condition of i1");
  if (node.type(1) != node.type(2))
    return node.error("expected two tensors of one type");
  Value condition = stretched(node, node.operand(0), node.shape(1));
  node.result(
      node.make("select", {condition, node.operand(1), node.operand(2)}));
  return success();
}

/// Its gradient is 0 at the bounds and outside, as in JAX.
static LogicalResult translateClamp(Node &node) {
  if (failed(node.expect(3)))
    return failure();
  Value x = node.operand(1);
  if (node.element(0) != node.element(1) || node.element(2) != node.element(1))
    return node.error("expected operands of one element type");
  Value low = stretched(node, node.operand(0), node.shape(1));
  Value high = stretched(node, node.operand(2), node.shape(1));
  Value inside = node.make("minimum", {node.make("maximum", {x, low}), high});
  if (!inside || isInteger(node.element(1)))
    return node.result(inside), success();
  Value isAbove = node.compare("gt", x, low),
        isBelow = node.compare("lt", x, high);
  Value isInside = node.make("logical_and", {isAbove, isBelow});
  // Of crossed bounds the upper one, always.
  Value isLow = node.make("logical_and", {node.compare("gt", low, x),
                                          node.compare("lt", low, high)});
  Value bounds = node.make(
      "select", {isLow, low,
                 node.make("select", {node.compare("lt", high, x), high,
                                      node.make("detach", inside)})});
  node.result(node.make("select", {isInside, x, bounds}));
  return success();
}

static LogicalResult translateReducePrecision(Node &node) {
  if (failed(node.expect(1)))
    return failure();
  int64_t exponent = node.integer("exponent_bits", 0);
  int64_t mantissa = node.integer("mantissa_bits", 0);
  OpBuilder &b = node.builder();
  Type own = node.element(0), low;
  if (exponent == 8 && mantissa == 7)
    low = b.getBF16Type();
  else if (exponent == 5 && mantissa == 10)
    low = b.getF16Type();
  else if (exponent == 8 && mantissa == 23)
    low = b.getF32Type();
  else if (exponent == 11 && mantissa == 52)
    low = b.getF64Type();
  if (!low || !isa<FloatType>(own))
    return node.unsupported("numbers of " + Twine(exponent) + " and " +
                            Twine(mantissa) + " bits");
  // More bits than the type has change nothing.
  if (low.getIntOrFloatBitWidth() >= own.getIntOrFloatBitWidth() &&
      low != own && !own.isF16() && !own.isBF16())
    return node.result(node.operand(0)), success();
  node.result(node.cast(node.cast(node.operand(0), low), own));
  return success();
}

static LogicalResult translateSquare(Node &node) {
  if (failed(node.expect(1)))
    return failure();
  node.result(node.make("mul", {node.operand(0), node.operand(0)}));
  return success();
}

/// Of infinite numbers: which signs count.
template <int sign> static LogicalResult isInfinite(Node &node) {
  if (failed(node.expect(1)))
    return failure();
  double infinity = std::numeric_limits<double>::infinity();
  Value x = sign ? node.operand(0) : node.make("abs", node.operand(0));
  Value limit = node.full(node.type(0), sign < 0 ? -infinity : infinity);
  node.result(node.compare("eq", x, limit));
  return success();
}

void stablehlo::addElementwiseOps(OpTable &table) {
  table.add("abs", same<"abs", 1>);
  table.add("add", ofTwo<"add", "bit_or">);
  table.add("and", bits<"bit_and">);
  table.add("atan2", same<"atan2", 2>);
  table.add("bitcast_convert", translateBitcast);
  table.add("cbrt", translateCbrt);
  table.add("ceil", same<"ceil", 1>);
  table.add("clamp", translateClamp);
  table.add("compare", translateCompare);
  table.add("convert", translateConvert);
  table.add("cosine", same<"cos", 1>);
  table.add("divide", translateDivide);
  table.add("exponential", same<"exp", 1>);
  table.add("exponential_minus_one", same<"expm1", 1>);
  table.add("floor", same<"floor", 1>);
  table.add("is_finite", function<"isfinite", 1>);
  table.add("log", same<"log", 1>);
  table.add("log_plus_one", same<"log1p", 1>);
  table.add("logistic", same<"sigmoid", 1>);
  table.add("maximum", ofTwo<"maximum", "bit_or">);
  table.add("minimum", ofTwo<"minimum", "bit_and">);
  table.add("multiply", ofTwo<"mul", "bit_and">);
  table.add("negate", same<"neg", 1>);
  table.add("not", bits<"bit_not">);
  table.add("or", bits<"bit_or">);
  table.add("power", same<"pow", 2>);
  table.add("reduce_precision", translateReducePrecision);
  table.add("remainder", same<"rem", 2>);
  table.add("round_nearest_afz", translateRoundAway);
  table.add("round_nearest_even", same<"round", 1>);
  table.add("rsqrt", same<"rsqrt", 1>);
  table.add("select", translateSelect);
  table.add("shift_left", same<"shift_left", 2>);
  table.add("shift_right_arithmetic", translateShiftArithmetic);
  table.add("shift_right_logical", translateShiftLogical);
  table.add("sign", translateSign);
  table.add("sine", same<"sin", 1>);
  table.add("sqrt", same<"sqrt", 1>);
  table.add("subtract", same<"sub", 2>);
  table.add("tan", same<"tan", 1>);
  table.add("tanh", same<"tanh", 1>);
  table.add("xor", bits<"bit_xor">);
  table.addNamed("chlo.acos", same<"acos", 1>);
  table.addNamed("chlo.acosh", function<"acosh", 1>);
  table.addNamed("chlo.asin", same<"asin", 1>);
  table.addNamed("chlo.asinh", function<"asinh", 1>);
  table.addNamed("chlo.atan", same<"atan", 1>);
  table.addNamed("chlo.atanh", function<"atanh", 1>);
  table.addNamed("chlo.cosh", same<"cosh", 1>);
  table.addNamed("chlo.erf", same<"erf", 1>);
  table.addNamed("chlo.erf_inv", function<"erfinv", 1>);
  table.addNamed("chlo.erfc", function<"erfc", 1>);
  table.addNamed("chlo.is_inf", isInfinite<0>);
  table.addNamed("chlo.is_neg_inf", isInfinite<-1>);
  table.addNamed("chlo.is_pos_inf", isInfinite<1>);
  table.addNamed("chlo.sinh", same<"sinh", 1>);
  table.addNamed("chlo.square", translateSquare);
  table.addNamed("chlo.tan", same<"tan", 1>);
}
