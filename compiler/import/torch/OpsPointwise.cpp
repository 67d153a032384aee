//===- OpsPointwise.cpp - ATen: functions of one tensor -------------------===//
#include "compiler/import/torch/Node.h"
#include "ir/Ops.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;

static Type elementOf(const Expr &x) { return x.type().getElementType(); }

/// Integers count as f32 where floats are computed.
static Expr asFloat(Node &node, const Expr &x) {
  if (!x || isa<FloatType>(elementOf(x)))
    return x;
  return node.cast(x, node.builder().getF32Type());
}

/// ATen's name, and the op's or function's here where it is another.
static constexpr struct {
  StringRef aten, name;
} floats[] = {
    {"acos", {}},
    {"acosh", {}},
    {"asin", {}},
    {"asinh", {}},
    {"atan", {}},
    {"atanh", {}},
    {"cos", {}},
    {"cosh", {}},
    {"erf", {}},
    {"erfc", {}},
    {"erfinv", {}},
    {"exp", {}},
    {"exp2", {}},
    {"expm1", {}},
    {"log", {}},
    {"log10", {}},
    {"log1p", {}},
    {"log2", {}},
    {"reciprocal", {}},
    {"rsqrt", {}},
    {"sigmoid", {}},
    {"sin", {}},
    {"sinh", {}},
    {"sqrt", {}},
    {"tan", {}},
    {"tanh", {}},
    {"silu", {}},
    {"mish", {}},
    {"hardsigmoid", {}},
    {"log_sigmoid", "logsigmoid"},
    {"special_expm1", "expm1"},
    {"special_erf", "erf"},
    {"special_erfc", "erfc"},
    {"special_erfinv", "erfinv"},
    {"special_expit", "sigmoid"},
    {"special_log1p", "log1p"},
};

/// What rounds, and so leaves integers as they are.
static constexpr StringRef roundings[] = {"ceil", "floor", "round", "trunc"};

/// The attributes of a function that an argument of the same name gives.
static constexpr struct {
  StringRef aten, name;
  std::initializer_list<std::pair<StringRef, double>> arguments;
} withNumbers[] = {
    {"elu", "elu", {{"alpha", 1}, {"scale", 1}, {"input_scale", 1}}},
    {"celu", "celu", {{"alpha", 1}}},
    {"leaky_relu", "leaky_relu", {{"negative_slope", 0.01}}},
    {"softplus", "softplus", {{"beta", 1}, {"threshold", 20}}},
    {"softshrink", "softshrink", {{"lambd", 0.5}}},
    {"hardshrink", "hardshrink", {{"lambd", 0.5}}},
    {"selu", "selu", {}},
};

/// Sets bits of NaN and infinities of integers, which have none.
static LogicalResult isThere(Node &node, StringRef name, bool ofIntegers) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  if (!isa<FloatType>(elementOf(x)))
    return node.result(
        node.full(node.builder().getI1Type(), x.shape(), ofIntegers));
  return node.result(node.make(name, x.value));
}

static LogicalResult roundTo(Node &node) {
  int64_t decimals = node.integer("decimals", 0);
  Expr x = node.value("self");
  if (!x || !isa<FloatType>(elementOf(x)))
    return node.result(x);
  if (decimals == 0 || node.op() != "round")
    return node.result(node.make(node.op(), x.value));
  // f16 holds no 100 times what it holds.
  Type element = elementOf(x), f32 = node.builder().getF32Type();
  x = x.cast(element.getIntOrFloatBitWidth() < 32 ? f32 : element);
  double factor = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  Expr scaled = decimals > 0 ? x * factor : x / factor;
  Expr rounded = node.make("round", scaled.value);
  if (!rounded)
    return failure();
  rounded = decimals > 0 ? rounded / factor : rounded * factor;
  return node.result(rounded.cast(element));
}

static LogicalResult geluOp(Node &node) {
  Expr x = node.value("self");
  std::string approximate = node.text("approximate", "none");
  return node.result(
      x ? node.make("gelu", x.value, node.attr("approximate", approximate))
        : x);
}

/// Of integers too.
static LogicalResult keepsType(Node &node) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  Type element = elementOf(x);
  bool isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
  if (isUnsigned && (node.op() == "abs" || node.op() == "relu"))
    return node.result(x);
  StringRef name = llvm::StringSwitch<StringRef>(node.op())
                       .Case("negative", "neg")
                       .Case("absolute", "abs")
                       .Case("sgn", "sign")
                       .Default(node.op());
  if (isa<FloatType>(element) || name == "neg" || name == "abs")
    return node.result(node.make(name, x.value));
  // Of integers, by what it means.
  Expr zero = x.like(0), one = x.like(1);
  if (name == "relu")
    return node.result(select(compare(ComparePredicate::gt, x, zero), x, zero));
  if (name == "square")
    return node.result(x * x);
  Expr sign = select(
      compare(ComparePredicate::gt, x, zero), one,
      isUnsigned ? zero
                 : select(compare(ComparePredicate::lt, x, zero), -one, zero));
  return node.result(sign);
}

static LogicalResult hardtanh(Node &node) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  bool isSix = node.op() == "relu6";
  double low = isSix ? 0 : node.number("min_val", -1);
  double high = isSix ? 6 : node.number("max_val", 1);
  if (isa<FloatType>(elementOf(x)))
    return node.result(
        node.make("hardtanh", x.value,
                  {node.attr("min_val", low), node.attr("max_val", high)}));
  Expr least = x.like(std::trunc(low)), most = x.like(std::trunc(high));
  Expr above = select(compare(ComparePredicate::lt, x, least), least, x);
  return node.result(
      select(compare(ComparePredicate::gt, above, most), most, above));
}

static LogicalResult threshold(Node &node) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  double limit = node.number("threshold", 0), value = node.number("value", 0);
  if (isa<FloatType>(elementOf(x)))
    return node.result(
        node.make("threshold", x.value,
                  {node.attr("threshold", limit), node.attr("value", value)}));
  return node.result(
      select(compare(ComparePredicate::gt, x, x.like(std::trunc(limit))), x,
             x.like(std::trunc(value))));
}

/// With the gradients of its ends: 0 at -3, and 1 at 3.
static LogicalResult hardswish(Node &node) {
  Expr given = node.value("self");
  if (!given)
    return failure();
  bool isWide = elementOf(given).getIntOrFloatBitWidth() >= 32;
  Expr x = isWide ? given : node.cast(given, node.builder().getF32Type());
  Expr gate = node.make("hardtanh", (x + 3.0).value,
                        {node.attr("min_val", 0.0), node.attr("max_val", 6.0)});
  return node.result(gate ? node.cast(x * gate / 6.0, elementOf(given)) : gate);
}

static LogicalResult isZero(Node &node) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  return node.result(compare(ComparePredicate::eq, x, x.like(0)));
}

static LogicalResult bitwiseNot(Node &node) {
  Expr x = node.value("self");
  return node.result(x ? node.make("bitwise_not", x.value) : x);
}

static LogicalResult nanToNum(Node &node) {
  Expr x = node.value("self");
  if (!x || !isa<FloatType>(elementOf(x)))
    return node.result(x);
  SmallVector<NamedAttribute> list;
  for (StringRef name : {"nan", "posinf", "neginf"})
    if (node.has(name))
      list.push_back(node.attr(name, node.number(name, 0)));
  return node.result(node.make("nan_to_num", x.value, list));
}

static LogicalResult prelu(Node &node) {
  Expr x = node.value("self"), weight = node.value("weight");
  if (!x || !weight)
    return failure();
  return node.result(node.make("prelu", {x, weight}));
}

static LogicalResult glu(Node &node) {
  Expr x = node.value("self");
  return node.result(
      x ? node.make("glu", x.value,
                    node.attr("dim", node.dim("dim", -1, x.rank())))
        : x);
}

void torch::addPointwiseOps(OpTable &table) {
  for (auto [aten, name] : floats) {
    StringRef made = name.empty() ? aten : name;
    table.add(aten, [made](Node &node) {
      Expr x = asFloat(node, node.value("self"));
      return node.result(x ? node.make(made, x.value) : x);
    });
  }
  for (const auto &one : withNumbers)
    table.add(one.aten, [&one](Node &node) {
      Expr x = asFloat(node, node.value("self"));
      SmallVector<NamedAttribute> list;
      // Of what shrinks alone PyTorch rounds the number to the tensor's type.
      bool isRounded = x && one.aten.ends_with("shrink");
      for (auto [name, otherwise] : one.arguments) {
        double number = node.number(name, otherwise);
        list.push_back(node.attr(
            name, isRounded ? Node::rounded(number, elementOf(x)) : number));
      }
      return node.result(x ? node.make(one.name, x.value, list) : x);
    });
  for (StringRef name : roundings)
    table.add(name, roundTo);
  table.add("abs absolute neg negative relu sign sgn square", keepsType);
  table.add("isnan", [](Node &n) { return isThere(n, "isnan", false); });
  table.add("isinf", [](Node &n) { return isThere(n, "isinf", false); });
  table.add("isfinite", [](Node &n) { return isThere(n, "isfinite", true); });
  table.add("gelu", geluOp);
  table.add("hardtanh relu6", hardtanh);
  table.add("threshold", threshold);
  table.add("hardswish", hardswish);
  table.add("logical_not", isZero);
  table.add("bitwise_not", bitwiseNot);
  table.add("nan_to_num", nanToNum);
  table.add("prelu _prelu_kernel", prelu);
  table.add("glu", glu);
  table.add("frac", [](Node &node) {
    Expr x = node.value("self");
    return node.result(x ? node.make("frac", x.value) : x);
  });
}
