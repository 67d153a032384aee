//===- OpsMath.cpp - ONNX: arithmetic and products ------------------------===//
#include "compiler/import/onnx/Ops.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

FailureOr<int64_t> onnx::dimension(Node &node, StringRef what, int64_t given,
                                   int64_t rank) {
  if (given >= -rank && given < rank)
    return given < 0 ? given + rank : given;
  return node.error("expected " + what + " to be in [" + Twine(-rank) + ", " +
                    Twine(rank) + "), but got " + Twine(given));
}

FailureOr<SmallVector<int64_t>> onnx::dimensions(Node &node, StringRef what,
                                                 ArrayRef<int64_t> given,
                                                 int64_t rank) {
  SmallVector<int64_t> dims;
  for (int64_t one : given) {
    auto dim = dimension(node, what, one, rank);
    if (failed(dim))
      return failure();
    if (llvm::is_contained(dims, *dim))
      return node.error("expected " + what + " to differ, but got " +
                        Twine(one) + " twice");
    dims.push_back(*dim);
  }
  return dims;
}

//===----------------------------------------------------------------------===//
// One operand
//===----------------------------------------------------------------------===//

/// Operators that are ops of the dialect, as their records say.
static const llvm::StringMap<const char *> &unaryOps() {
  static const llvm::StringMap<const char *> names = {
#define TANDEM_UNARY_ONNX(OPERATOR, MNEMONIC) {OPERATOR, MNEMONIC},
#include "ir/ops/PointwiseFunctions.h.inc"
  };
  return names;
}
static const llvm::StringMap<const char *> &binaryOps() {
  static const llvm::StringMap<const char *> names = {
#define TANDEM_BINARY_ONNX(OPERATOR, MNEMONIC) {OPERATOR, MNEMONIC},
#include "ir/ops/PointwiseFunctions.h.inc"
  };
  return names;
}
/// And those that are functions.
static const llvm::StringMap<const char *> &unaryFunctions() {
  static const llvm::StringMap<const char *> names = {
      {"Asinh", "asinh"},
      {"Acosh", "acosh"},
      {"Atanh", "atanh"},
      {"Reciprocal", "reciprocal"}};
  return names;
}

static LogicalResult translateUnary(Node &node) {
  node.ignore({"consumed_inputs"});
  if (failed(expectOperands(node, 1)))
    return failure();
  bool isUnsigned = node.elementType(0).isUnsignedInteger();
  // Of what is never negative.
  if (isUnsigned && node.op() == "Abs")
    return give(node, node.operand(0));
  return give(node, node.make(unaryOps().lookup(node.op()), node.operand(0)));
}

static LogicalResult translateUnaryFunction(Node &node) {
  node.ignore({"consumed_inputs"});
  if (failed(expectOperands(node, 1)))
    return failure();
  return give(node,
              node.call(unaryFunctions().lookup(node.op()), node.operand(0)));
}

//===----------------------------------------------------------------------===//
// Two operands, broadcast
//===----------------------------------------------------------------------===//

/// Both operands in one shape. Before version 7 the second one is stretched
/// only if told so, and `axis` says with which dimension of the first its own
/// begin.
static LogicalResult broadcastOperands(Node &node, SmallVector<Expr> &x) {
  if (failed(expectOperands(node, 2)))
    return failure();
  x = {node.expr(0), node.expr(1)};
  if (!x[0] || !x[1])
    return failure();
  if (node.opset() < 7) {
    node.ignore({"consumed_inputs"});
    bool stretches = node.integer("broadcast", 0) != 0;
    if (node.hasAttribute("axis") && stretches) {
      auto axis = dimension(node, "'axis'", node.integer("axis", 0),
                            std::max<int64_t>(x[0].rank(), 1));
      if (failed(axis))
        return failure();
      SmallVector<int64_t> shape(x[1].shape());
      int64_t after = x[0].rank() - *axis - x[1].rank();
      if (after < 0)
        return node.error("expected operand #1 to fit into operand #0 from "
                          "'axis' on");
      shape.append(after, 1);
      x[1] = x[1].reshape(shape);
    }
  }
  return success(node.broadcast(x));
}

static LogicalResult translateBinary(Node &node) {
  SmallVector<Expr> x;
  if (failed(broadcastOperands(node, x)))
    return failure();
  return give(
      node, node.make(binaryOps().lookup(node.op()), {x[0].value, x[1].value}));
}

static LogicalResult translateMod(Node &node) {
  bool truncated = node.integer("fmod", 0) != 0;
  if (failed(expectOperands(node, 2)))
    return failure();
  return give(node, node.call(truncated ? "fmod" : "remainder",
                              {node.operand(0), node.operand(1)}));
}

/// The result has the type of the base, whatever that of the exponent is.
static LogicalResult translatePow(Node &node) {
  SmallVector<Expr> x;
  if (failed(broadcastOperands(node, x)))
    return failure();
  Type base = node.elementType(0), exponent = node.elementType(1);
  if (base == exponent)
    return give(node, node.make("pow", {x[0].value, x[1].value}));
  // In the type of the base, unless the exponent is a wider float, or the base
  // an integer and the exponent a fraction.
  Type type = base;
  if (isa<FloatType>(exponent)) {
    bool isFloat = isa<FloatType>(base);
    if (!isFloat)
      type = node.builder().getF64Type();
    else if (base.getIntOrFloatBitWidth() < exponent.getIntOrFloatBitWidth())
      type = exponent;
  } else if (!isa<FloatType>(base) &&
             exponent.getIntOrFloatBitWidth() > base.getIntOrFloatBitWidth()) {
    type = exponent;
  }
  Value y =
      node.make("pow", {castTo(node, x[0], type), castTo(node, x[1], type)});
  return give(node, castTo(node, y, base));
}

//===----------------------------------------------------------------------===//
// Any number of operands
//===----------------------------------------------------------------------===//

static LogicalResult translateVariadic(Node &node) {
  static const llvm::StringMap<const char *> names = {
      {"Sum", "add"}, {"Mean", "add"}, {"Max", "maximum"}, {"Min", "minimum"}};
  node.ignore({"consumed_inputs"});
  size_t count = node.numOperands();
  if (count == 0)
    return node.error("expected at least one operand");
  if (failed(expectOperands(node, count)))
    return failure();
  SmallVector<Expr> x;
  for (size_t i = 0; i < count; ++i)
    x.push_back(node.expr(i));
  if (llvm::any_of(x, [](const Expr &e) { return !e; }) || !node.broadcast(x))
    return failure();
  Value y = x[0];
  for (const Expr &next : ArrayRef(x).drop_front())
    if (!(y = node.make(names.lookup(node.op()), {y, next.value})))
      return failure();
  if (node.op() == "Mean") {
    if (!isa<FloatType>(node.elementType(0)))
      return node.error("expected floats");
    y = node.wrap(y) / double(count);
  }
  return give(node, y);
}

static LogicalResult translateClip(Node &node) {
  node.ignore({"consumed_inputs"});
  if (failed(expectOperands(node, 1)))
    return failure();
  SmallVector<Value> operands{node.operand(0)};
  SmallVector<NamedAttribute> list;
  if (node.opset() < 11) {
    for (auto [mine, theirs] :
         {std::pair("min", "min"), std::pair("max", "max")})
      if (node.hasAttribute(theirs))
        list.push_back(node.attr(mine, node.number(theirs, 0)));
  } else {
    for (size_t i : {1, 2}) {
      if (!node.has(i)) {
        operands.push_back({});
        continue;
      }
      Value bound = node.operand(i);
      if (!bound)
        return failure();
      if (node.type(i).getNumElements() != 1)
        return node.error("expected a bound of one number");
      operands.push_back(node.wrap(bound).reshape({}));
    }
  }
  return give(node, node.call("clamp", operands, list));
}

static LogicalResult translateCumSum(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  auto given = node.needInt(1, "the axis");
  if (failed(given))
    return failure();
  auto dim = dimension(node, "the axis", *given, node.rank(0));
  if (failed(dim))
    return failure();
  SmallVector<NamedAttribute> list{node.attr("dim", *dim)};
  if (node.integer("exclusive", 0))
    list.push_back(node.flag("exclusive"));
  if (node.integer("reverse", 0))
    list.push_back(node.flag("reverse"));
  return give(node, node.make("cumsum", node.operand(0), list));
}

static LogicalResult translateCumProd(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  auto given = node.needInt(1, "the axis");
  if (failed(given))
    return failure();
  auto dim = dimension(node, "the axis", *given, node.rank(0));
  if (failed(dim))
    return failure();
  bool isExclusive = node.integer("exclusive", 0) != 0;
  bool isReversed = node.integer("reverse", 0) != 0;
  Expr x = node.expr(0);
  if (!x)
    return failure();
  if (isReversed)
    x = x.reverse({*dim});
  // A 1 comes in at the front, and the last one goes out at the end.
  int64_t size = x.dim(*dim);
  if (isExclusive && size > 0) {
    SmallVector<int64_t> one(x.shape());
    one[*dim] = 1;
    Value first =
        node.splat(RankedTensorType::get(one, x.type().getElementType()), 1);
    Value rest =
        node.call("narrow", x.value,
                  {node.attr("dim", *dim), node.attr("start", int64_t(0)),
                   node.attr("length", size - 1)});
    x = node.wrap(node.call("cat", {first, rest}, node.attr("dim", *dim)));
    if (!x)
      return failure();
  }
  Expr y = node.wrap(node.call("cumprod", x.value, node.attr("dim", *dim)));
  if (y && isReversed)
    y = y.reverse({*dim});
  return give(node, y);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static LogicalResult translateMatMul(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  return give(node,
              node.call("linalg_matmul", {node.operand(0), node.operand(1)}));
}

static LogicalResult translateGemm(Node &node) {
  node.ignore({"broadcast"});
  if (failed(expectOperands(node, 2)))
    return failure();
  SmallVector<Value> operands{node.operand(0), node.operand(1)};
  if (node.has(2))
    operands.push_back(node.operand(2));
  OpBuilder &b = node.builder();
  return give(
      node,
      node.call("gemm", operands,
                {node.attr("alpha", node.number("alpha", 1)),
                 node.attr("beta", node.number("beta", 1)),
                 node.attr("transpose_a",
                           b.getBoolAttr(node.integer("transA", 0) != 0)),
                 node.attr("transpose_b",
                           b.getBoolAttr(node.integer("transB", 0) != 0))}));
}

static LogicalResult translateEinsum(Node &node) {
  if (failed(expectOperands(node, std::max<size_t>(node.numOperands(), 1))))
    return failure();
  SmallVector<Value> operands;
  for (size_t i = 0; i < node.numOperands(); ++i)
    operands.push_back(node.operand(i));
  std::string equation = node.text("equation", "");
  return give(node, node.call("einsum", operands,
                              node.attr("equation", StringRef(equation))));
}

static LogicalResult translateDet(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  return give(node, node.call("det", node.operand(0)));
}

void onnx::addMathOps(OpTable &table) {
  for (const auto &entry : unaryOps())
    table.add(entry.getKey(), translateUnary);
  for (const auto &entry : unaryFunctions())
    table.add(entry.getKey(), translateUnaryFunction);
  for (const auto &entry : binaryOps())
    table.add(entry.getKey(), translateBinary);
  for (const char *op : {"Sum", "Mean", "Max", "Min"})
    table.add(op, translateVariadic);
  table.add("Mod", translateMod);
  table.add("Pow", translatePow);
  table.add("Clip", translateClip);
  table.add("CumSum", translateCumSum);
  table.add("CumProd", translateCumProd, 26);
  table.add("MatMul", translateMatMul);
  table.add("Gemm", translateGemm);
  table.add("Einsum", translateEinsum);
  table.add("Det", translateDet);
}
