//===- OpsArithmetic.cpp - ATen: functions of two tensors or more ---------===//
//
// Operands are promoted as PyTorch does it, and broadcast by the functions.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/torch/Node.h"
#include "ir/Ops.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;

static Type elementOf(const Expr &x) { return x.type().getElementType(); }
static bool isFloat(Type type) { return isa<FloatType>(type); }

/// A function of `names`, in their promoted type (or f32 at least, if it makes
/// floats of integers). Of products and quotients numbers are exact.
static LogicalResult binary(Node &node, StringRef function, bool makesFloats,
                            ArrayRef<NamedAttribute> attributes = {},
                            ArrayRef<StringRef> names = {"self", "other"}) {
  Type narrow = node.promoted(names);
  if (narrow && makesFloats && !isFloat(narrow))
    narrow = node.builder().getF32Type();
  bool isExact = function == "multiply" || function == "divide";
  auto x = node.together(names, narrow, isExact);
  if (x.empty())
    return failure();
  Expr made = node.make(function, {x[0], x[1]}, attributes);
  return node.result(made ? node.cast(made, narrow) : made);
}

static LogicalResult add(Node &node) {
  StringRef first = "self", second = "other";
  if (node.op() == "rsub")
    std::swap(first, second);
  bool isSum = node.op() == "add";
  Type narrow = node.promoted({first, second});
  double alpha = node.number("alpha", 1);
  if (narrow && narrow.isInteger(1)) {
    if (!isSum || alpha == 0)
      return node.unsupported("a difference of bools");
    return binary(node, "bitwise_or", false);
  }
  auto x = node.together({first, second}, narrow);
  if (x.empty())
    return failure();
  // rsub has other - alpha self.
  SmallVector<NamedAttribute> list;
  if (alpha != 1)
    list.push_back(isFloat(narrow)
                       ? node.attr("alpha", Node::rounded(alpha, narrow))
                       : node.attr("alpha", node.integer("alpha", 1)));
  return node.result(node.cast(
      node.make(isSum ? "add_scaled" : "subtract", {x[0], x[1]}, list),
      narrow));
}

static LogicalResult multiply(Node &node) {
  Type narrow = node.promoted({"self", "other"});
  return binary(
      node, narrow && narrow.isInteger(1) ? "bitwise_and" : "multiply", false);
}

static LogicalResult divide(Node &node) {
  std::string mode = node.text("rounding_mode", "none");
  if (node.op() == "floor_divide")
    mode = "floor";
  if (mode == "none")
    return binary(node, "divide", true);
  return binary(node, "divide", false, node.attr("rounding_mode", mode));
}

static LogicalResult power(Node &node) {
  if (node.op() == "float_power") { // in f64, whatever its operands are
    Type wide = node.builder().getF64Type();
    auto x = node.together({"self", "exponent"}, wide);
    return x.empty() ? failure()
                     : node.result(node.make("power", {x[0], x[1]}));
  }
  // PyTorch takes roots there: of -0 it is -0, of -infinity NaN.
  Type narrow = node.promoted({"self", "exponent"});
  if (narrow && isFloat(narrow) && !node.isTensor("exponent")) {
    double exponent = node.number("exponent", 0);
    if (std::abs(exponent) == 0.5) {
      Expr x = node.cast(node.value("self"), narrow);
      if (!x)
        return failure();
      Expr y = node.make(exponent < 0 ? "rsqrt" : "sqrt", {x});
      return node.result(y ? node.cast(y, narrow) : y);
    }
  }
  return binary(node, "power", false, {}, {"self", "exponent"});
}

static LogicalResult compares(Node &node, StringRef function) {
  Type narrow = node.promoted({"self", "other"});
  // A float that no integer is compares as one.
  auto x = node.together({"self", "other"}, narrow);
  if (x.empty())
    return failure();
  return node.result(node.make(function, {x[0], x[1]}));
}

static LogicalResult logical(Node &node, StringRef function) {
  Expr a = node.value("self"), b = node.value("other");
  return node.result(a && b ? node.make(function, {a, b}) : Expr());
}

static LogicalResult where(Node &node) {
  Expr condition = node.value("condition");
  if (!node.has("self"))
    return node.unsupported("the places of what is true, whose number is data");
  Type narrow = node.promoted({"self", "other"});
  auto x = node.together({"self", "other"}, narrow);
  if (!condition || x.empty())
    return failure();
  Expr made = node.make(
      "where", {node.cast(condition, node.builder().getI1Type()), x[0], x[1]});
  return node.result(made ? node.cast(made, narrow) : made);
}

static LogicalResult maskedFill(Node &node) {
  Expr x = node.value("self"), mask = node.value("mask");
  if (!x || !mask)
    return failure();
  Expr value = node.isTensor("value")
                   ? node.cast(node.value("value"), elementOf(x))
                   : node.scalar("value", elementOf(x));
  return node.result(node.make(
      "where", {node.cast(mask, node.builder().getI1Type()), value, x}));
}

/// An op of the dialect, which does not broadcast, of two that do.
static Expr ofStretched(Node &node, StringRef op, const Expr &x,
                        const Expr &y) {
  if (!x || !y)
    return {};
  const Expr &longer = x.rank() >= y.rank() ? x : y;
  const Expr &shorter = x.rank() >= y.rank() ? y : x;
  SmallVector<int64_t> shape(longer.shape());
  for (int64_t i = 1; i <= shorter.rank(); ++i)
    if (int64_t &size = shape[shape.size() - i]; size == 1)
      size = shorter.dim(shorter.rank() - i);
  return node.make(op, {node.stretch(x, shape), node.stretch(y, shape)});
}

/// Between two tensors, with PyTorch's gradients: a half each to an operand and
/// the bound that it equals, all to the operand where the bounds are equal,
/// too, and all to the upper one where they are crossed.
static LogicalResult clampBetween(Node &node, Type narrow) {
  auto in = node.together({"self", "min", "max"}, narrow);
  if (in.empty())
    return failure();
  // Of each the shape of all.
  Expr all = ofStretched(node, "maximum",
                         ofStretched(node, "maximum", in[0], in[1]), in[2]);
  if (!all)
    return failure();
  Expr x = node.stretch(in[0], all.shape());
  Expr low = node.stretch(in[1], all.shape());
  Expr high = node.stretch(in[2], all.shape());
  using P = ComparePredicate;
  Expr inOrder = compare(P::lt, low, high);
  Expr isLow = logicalAnd(inOrder, compare(P::eq, x, low));
  Expr isHigh = logicalAnd(inOrder, compare(P::eq, x, high));
  Expr isAbove = logicalOr(compare(P::gt, x, high), compare(P::gt, low, high));
  Expr y = tandem::select(compare(P::lt, x, low), low, x);
  y = tandem::select(isAbove, high, y);
  y = tandem::select(isHigh, minimum(x, high), y);
  y = tandem::select(isLow, maximum(x, low), y);
  // NaN of any.
  Expr fixed = tandem::detach(all);
  return node.result(
      tandem::select(compare(P::ne, fixed, fixed), x + fixed, y));
}

/// The bound `name` of `x`: of a number that its integers do not hold, the
/// nearest one that they do.
static Expr boundOf(Node &node, StringRef name, const Expr &x) {
  Type narrow = elementOf(x);
  if (node.isTensor(name))
    return node.cast(node.value(name), narrow);
  auto integers = dyn_cast<IntegerType>(narrow);
  if (!integers || integers.getWidth() == 1)
    return node.scalar(name, narrow);
  int64_t bound = node.integer(name, 0);
  unsigned width = integers.getWidth();
  if (integers.isUnsigned() && bound < 0)
    return x.like(0.0);
  if (width == 64)
    return node.scalar(name, narrow);
  int64_t most =
      (int64_t(1) << (integers.isUnsigned() ? width : width - 1)) - 1;
  int64_t least = integers.isUnsigned() ? 0 : -most - 1;
  return x.like(static_cast<double>(std::clamp(bound, least, most)));
}

/// Between numbers the gradient passes inside of them; of tensors that are
/// equal, as of the larger of two, each gets a half.
static LogicalResult clamp(Node &node) {
  SmallVector<StringRef> names = {"self"};
  for (StringRef name : {"min", "max"})
    if (node.has(name))
      names.push_back(name);
  Type narrow = node.promoted(names);
  Expr x = narrow ? node.cast(node.value("self"), narrow) : Expr();
  if (!x)
    return failure();
  bool isFloat = isa<FloatType>(narrow);
  if (isFloat && node.isTensor("min") && node.isTensor("max"))
    return clampBetween(node, narrow);
  SmallVector<Value> bounds;
  Expr isInside;
  for (StringRef name : {"min", "max"}) {
    Expr bound = node.has(name) ? boundOf(node, name, x) : Expr();
    if (node.has(name) && !bound)
      return failure();
    if (bound && isFloat && node.isTensor(name)) {
      x = ofStretched(node, name == "min" ? "maximum" : "minimum", x, bound);
      bound = Expr();
      if (!x)
        return failure();
    }
    bounds.push_back(bound.value);
    if (!bound || !isFloat)
      continue;
    Expr is =
        compare(name == "min" ? ComparePredicate::gt : ComparePredicate::lt, x,
                node.stretch(bound, x.shape()));
    isInside = isInside ? logicalAnd(isInside, is) : is;
  }
  if (!bounds[0] && !bounds[1])
    return node.result(x);
  Expr fixed = isFloat ? tandem::detach(x) : x;
  auto made = node.call("clamp", {fixed.value, bounds[0], bounds[1]});
  if (made.empty())
    return failure();
  Expr y = node.wrap(made[0]);
  if (!isFloat)
    return node.result(y);
  y = tandem::select(isInside, x, y);
  for (auto [name, value] :
       llvm::zip_equal(ArrayRef<StringRef>{"min", "max"}, bounds))
    if (value && std::isnan(node.number(name, 0)))
      y = node.stretch(node.wrap(value), x.shape());
  return node.result(y);
}

static LogicalResult lerp(Node &node) {
  Type narrow = node.promoted({"self", "end"});
  auto x = node.together({"self", "end"}, narrow);
  if (x.empty())
    return failure();
  if (node.isTensor("weight"))
    return node.result(node.make(
        "lerp", {x[0], x[1], node.cast(node.value("weight"), narrow)}));
  return node.result(node.make("lerp", {x[0], x[1]},
                               node.attr("weight", node.number("weight", 0))));
}

static LogicalResult addProduct(Node &node) {
  Type narrow;
  auto x = node.together({"self", "tensor1", "tensor2"}, narrow);
  if (x.empty())
    return failure();
  double value = node.number("value", 1);
  if (!isFloat(narrow)) {
    Expr product = node.make("multiply", {x[1], x[2]});
    return node.result(node.make("add_scaled", {x[0], product},
                                 node.attr("alpha", node.integer("value", 1))));
  }
  return node.result(
      node.make(node.op(), {x[0], x[1], x[2]}, node.attr("value", value)));
}

static LogicalResult signedLike(Node &node) {
  Type narrow = node.promoted({"self", "other"});
  if (narrow && !isFloat(narrow))
    narrow = node.builder().getF32Type();
  auto x = node.together({"self", "other"}, narrow);
  if (x.empty())
    return failure();
  Expr size = node.make("abs", x[0].value);
  // 1 / x tells -0 from 0.
  Expr isNegative = node.make(
      "lt",
      {node.make("where", {compare(ComparePredicate::eq, x[1], x[1].like(0)),
                           x[1].like(1) / x[1], x[1]}),
       node.full(elementOf(x[1]), {}, 0)});
  Expr made = node.make("where", {isNegative, -size, size});
  return node.result(made ? node.cast(made, narrow) : made);
}

void torch::addArithmeticOps(OpTable &table) {
  table.add("add sub subtract rsub", add);
  table.add("mul multiply", multiply);
  table.add("div divide true_divide floor_divide", divide);
  table.add("pow float_power", power);
  for (StringRef name : {"eq", "ne", "lt", "le", "gt", "ge"})
    table.add(name, [name](Node &n) { return compares(n, name); });
  table.add("logical_and", [](Node &n) { return logical(n, "both"); });
  table.add("logical_or", [](Node &n) { return logical(n, "either"); });
  table.add("logical_xor", [](Node &n) { return logical(n, "logical_xor"); });
  static constexpr struct {
    StringRef aten, function;
    bool makesFloats;
  } pairs[] = {
      {"remainder", "remainder", false},
      {"fmod", "fmod", false},
      {"maximum max.other", "maximum", false},
      {"minimum min.other", "minimum", false},
      {"fmax", "fmax", false},
      {"fmin", "fmin", false},
      {"atan2 arctan2", "atan2", true},
      {"hypot", "hypot", false},
      {"logaddexp", "logaddexp", false},
      {"xlogy special_xlogy", "xlogy", true},
      {"bitwise_and __and__", "bitwise_and", false},
      {"bitwise_or __or__", "bitwise_or", false},
      {"bitwise_xor __xor__", "bitwise_xor", false},
      {"bitwise_left_shift __lshift__", "bitwise_left_shift", false},
      {"bitwise_right_shift __rshift__", "bitwise_right_shift", false},
  };
  for (const auto &pair : pairs)
    table.add(pair.aten, [&pair](Node &node) {
      StringRef name = pair.function;
      if (name != "maximum" && name != "minimum" && name != "atan2")
        return binary(node, name, pair.makesFloats);
      Type narrow = node.promoted({"self", "other"});
      if (narrow && pair.makesFloats && !isFloat(narrow))
        narrow = node.builder().getF32Type();
      auto x = node.together({"self", "other"}, narrow);
      return x.empty() ? failure()
                       : node.result(ofStretched(node, name, x[0], x[1]));
    });
  table.add("where", where);
  table.add("masked_fill", maskedFill);
  table.add("clamp clip clamp_min clamp_max", clamp);
  table.add("lerp", lerp);
  table.add("addcmul addcdiv", addProduct);
  table.add("copysign", signedLike);
}
