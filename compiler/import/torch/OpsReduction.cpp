//===- OpsReduction.cpp - ATen: reductions, scans and orders --------------===//
#include "compiler/import/torch/Node.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;
using List = Node::List;

static Type elementOf(const Expr &x) { return x.type().getElementType(); }

static NamedAttribute keepdim(Node &node) {
  return node.attr("keepdim", node.flag("keepdim", false));
}

/// In `dtype` if that is given, integers as i64 (`ofIntegers`) or f32.
static Expr operand(Node &node, bool makesFloats) {
  Expr x = node.value("self");
  Type type = node.elementType("dtype");
  if (!x || node.failed())
    return {};
  if (!type && !isa<FloatType>(elementOf(x)))
    type = makesFloats ? Type(node.builder().getF32Type())
                       : Type(node.builder().getI64Type());
  return type ? node.cast(x, type) : x;
}

/// `dim` (all dimensions where it says none) and `keepdim`, and `more`.
static SmallVector<NamedAttribute>
overDims(Node &node, const Expr &x, ArrayRef<NamedAttribute> more = {}) {
  SmallVector<NamedAttribute> list(more);
  list.push_back(keepdim(node));
  if (x.rank())
    list.push_back(node.attr("dim", node.dims("dim", x.rank())));
  return list;
}

/// A function of this name over dimensions of `x`.
static LogicalResult reduced(Node &node, StringRef function, const Expr &x,
                             ArrayRef<NamedAttribute> more = {}) {
  return node.result(x ? node.make(function, x.value, overDims(node, x, more))
                       : x);
}

/// all and any: bools, but of uint8 in their own type.
static LogicalResult truth(Node &node) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  Expr y = node.make(node.op(), x.value, overDims(node, x));
  return node.result(
      y && elementOf(x).isUnsignedInteger(8) ? y.cast(elementOf(x)) : y);
}

/// max and min: of all elements, or along a dimension with their indices.
static LogicalResult extremeWithIndex(Node &node) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  bool isMax = node.op() == "max", isBool = elementOf(x).isInteger(1);
  if (!node.has("dim"))
    return node.result(node.make(isBool  ? isMax ? "any" : "all"
                                 : isMax ? "amax"
                                         : "amin",
                                 x.value));
  // The first of one.
  if (x.rank() == 0) {
    (void)node.dim("dim", 0, 0);
    Expr zero = node.full(node.builder().getI64Type(), {}, 0);
    return success(succeeded(node.result(0, x)) &&
                   succeeded(node.result(1, zero)));
  }
  if (isBool)
    return node.unsupported("the place of the first of some bools");
  auto made = node.makeAll(
      node.op(), x.value,
      {node.attr("dim", node.dim("dim", 0, x.rank())), keepdim(node)});
  if (made.size() != 2)
    return failure();
  return success(succeeded(node.result(0, made[0])) &&
                 succeeded(node.result(1, made[1])));
}

static LogicalResult argument(Node &node) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  SmallVector<NamedAttribute> list = {keepdim(node)};
  if (node.has("dim") && x.rank())
    list.push_back(node.attr("dim", node.dim("dim", 0, x.rank())));
  if (x.rank() == 0)
    return node.result(node.full(node.builder().getI64Type(), {}, 0));
  return node.result(
      node.make(node.op() == "argmax" ? "arg_max" : "argmin", x.value, list));
}

static LogicalResult variance(Node &node) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  double correction = node.flag("unbiased", true) ? 1 : 0;
  if (node.overload().starts_with("correction") ||
      node.overload().starts_with("names"))
    correction = node.number("correction", 1);
  auto made =
      node.makeAll(node.op(), x.value,
                   overDims(node, x, node.attr("correction", correction)));
  for (auto [i, value] : llvm::enumerate(made))
    if (failed(node.result(i, value)))
      return failure();
  return made.empty() ? failure() : success();
}

static LogicalResult norm(Node &node) {
  StringRef order = node.op() == "norm" ? "p" : "ord";
  return reduced(node, "norm", operand(node, true),
                 node.attr("p", node.number(order, 2)));
}

static LogicalResult softmax(Node &node) {
  Expr x = operand(node, true);
  if (!x)
    return failure();
  bool isLog = node.op().contains("log");
  // Of one number.
  if (x.rank() == 0)
    return node.result(isLog ? x - x : (x - x) + 1.0);
  int64_t d = node.dim("dim", -1, x.rank());
  Type type = elementOf(x);
  if (node.flag("half_to_float", false))
    x = node.cast(x, type = node.builder().getF32Type());
  return node.result(node.make(isLog ? "log_softmax" : "softmax", x.value,
                               node.attr("dim", d)));
}

static LogicalResult scan(Node &node) {
  Expr x = operand(node, node.op() == "logcumsumexp");
  if (!x || x.rank() == 0)
    return node.result(x);
  return node.result(node.make(node.op(), x.value,
                               node.attr("dim", node.dim("dim", 0, x.rank()))));
}

static LogicalResult sorted(Node &node) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  if (x.rank() == 0) {
    Expr zero = node.full(node.builder().getI64Type(), {}, 0);
    if (node.op() == "argsort")
      return node.result(zero);
    return success(succeeded(node.result(0, x)) &&
                   succeeded(node.result(1, zero)));
  }
  int64_t d = node.dim("dim", -1, x.rank());
  bool isDescending = node.flag("descending", false);
  auto indices =
      node.make("argsort", x.value,
                {node.attr("dim", d), node.attr("descending", isDescending)});
  if (!indices)
    return failure();
  if (node.op() == "argsort")
    return node.result(indices);
  Expr values = node.make("gather", {x, indices}, node.attr("dim", d));
  return success(succeeded(node.result(0, values)) &&
                 succeeded(node.result(1, indices)));
}

static LogicalResult topk(Node &node) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  bool isK = node.op() == "kthvalue";
  // The first of one.
  if (x.rank() == 0) {
    Expr zero = node.full(node.builder().getI64Type(), {}, 0);
    return success(succeeded(node.result(0, x)) &&
                   succeeded(node.result(1, zero)));
  }
  SmallVector<NamedAttribute> list = {
      node.attr("k", node.integer("k", 1)),
      node.attr("dim", node.dim("dim", -1, x.rank()))};
  list.push_back(isK ? keepdim(node)
                     : node.attr("largest", node.flag("largest", true)));
  auto made = node.makeAll(node.op(), x.value, list);
  if (made.size() != 2)
    return failure();
  return success(succeeded(node.result(0, made[0])) &&
                 succeeded(node.result(1, made[1])));
}

static LogicalResult distances(Node &node) {
  bool isPairs = node.op() == "pdist" || node.op() == "_pdist_forward";
  NamedAttribute p = node.attr("p", node.number("p", 2));
  if (isPairs) {
    Expr x = node.value("self");
    return node.result(x ? node.make("pdist", x.value, p) : x);
  }
  Expr a = node.value("x1"), b = node.value("x2");
  return node.result(a && b ? node.make("cdist", {a, b}, p) : Expr());
}

/// The norm of x1 - x2 + eps over the last dimension.
static LogicalResult pairDistance(Node &node) {
  Expr a = node.value("x1"), b = node.value("x2");
  if (!a || !b)
    return failure();
  Expr apart = node.make("add_scaled", {a, b}, node.attr("alpha", -1.0));
  if (!apart || apart.rank() == 0)
    return node.failed() ? failure() : node.unsupported("of numbers");
  return node.result(
      node.make("norm", (apart + node.number("eps", 1e-6)).value,
                {node.attr("p", node.number("p", 2)),
                 node.attr("dim", List{apart.rank() - 1}),
                 node.attr("keepdim", node.flag("keepdim", false))}));
}

static LogicalResult similarity(Node &node) {
  Expr a = node.value("x1"), b = node.value("x2");
  if (!a || !b)
    return failure();
  if (a.rank() == 0 && b.rank() == 0) {
    a = node.reshape(a, {1});
    b = node.reshape(b, {1});
  }
  return node.result(node.make("cosine_similarity", {a, b},
                               {node.attr("dim", node.integer("dim", 1)),
                                node.attr("eps", node.number("eps", 1e-8))}));
}

/// Differences of neighbours, n times.
static LogicalResult differences(Node &node) {
  Expr x = node.value("self");
  if (!x || x.rank() == 0)
    return node.failed() ? failure() : node.unsupported("of a number");
  int64_t d = node.dim("dim", -1, x.rank());
  SmallVector<Value> parts;
  for (StringRef name : {"prepend", "self", "append"})
    if (node.has(name))
      parts.push_back(node.cast(node.value(name), elementOf(x)));
  if (parts.size() > 1)
    x = node.make("cat", parts, node.attr("dim", d));
  for (int64_t n = node.integer("n", 1); x && n > 0; --n) {
    int64_t size = x.dim(d);
    if (size == 0)
      break;
    auto part = [&](int64_t start) {
      return node.make("narrow", x.value,
                       {node.attr("dim", d), node.attr("start", start),
                        node.attr("length", size - 1)});
    };
    Expr later = part(1), before = part(0);
    if (!later || !before)
      return failure();
    x = elementOf(x).isInteger(1) ? node.make("bitwise_xor", {later, before})
                                  : later - before;
  }
  return node.result(x);
}

/// How many numbers lie in each of equal bins, the last one with its end.
static LogicalResult histogram(Node &node) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  int64_t bins = node.integer("bins", 100);
  double least = node.number("min", 0), most = node.number("max", 0);
  if (!(least < most))
    return node.unsupported("bins whose ends are data: say min and max");
  int64_t size = x.type().getNumElements();
  if (!isa<FloatType>(elementOf(x)))
    return node.unsupported("of integers");
  // Narrow floats do not hold the numbers of many bins.
  bool isWide = elementOf(x).getIntOrFloatBitWidth() >= 32;
  Expr flat = node.reshape(
      isWide ? x : node.cast(x, node.builder().getF32Type()), {size});
  flat = tandem::detach(flat);
  Expr bin = floor((flat - least) * static_cast<double>(bins) / (most - least));
  bin = minimum(bin, bin.like(static_cast<double>(bins - 1)));
  // What lies outside, and what is no number, is in none.
  Expr isIn = logicalAnd(compare(ComparePredicate::ge, flat, flat.like(least)),
                         compare(ComparePredicate::le, flat, flat.like(most)));
  bin = tandem::select(isIn, bin, bin.like(-1));
  List shape = {size, bins};
  Expr number = node.make("iota", {}, node.attr("dim", int64_t(1)),
                          RankedTensorType::get(shape, elementOf(bin)));
  if (!number)
    return failure();
  Expr isEqual =
      compare(ComparePredicate::eq, bin.broadcastTo(shape, {0}), number);
  return node.result(
      node.make("sum", node.cast(isEqual, elementOf(x)).value,
                {node.attr("dim", List{0}), node.attr("keepdim", false)}));
}

void torch::addReductionOps(OpTable &table) {
  table.add("sum mean prod", [](Node &node) {
    return reduced(node, node.op(), operand(node, node.op() == "mean"));
  });
  table.add("amax amin count_nonzero", [](Node &node) {
    return reduced(node, node.op(), node.value("self"));
  });
  table.add("all any", truth);
  table.add("max min", extremeWithIndex);
  table.add("argmax argmin", argument);
  table.add("var std var_mean std_mean", variance);
  table.add("logsumexp", [](Node &node) {
    return reduced(node, "logsumexp", operand(node, true));
  });
  table.add("norm linalg_vector_norm", norm);
  table.add("softmax _softmax log_softmax _log_softmax special_softmax "
            "special_log_softmax",
            softmax);
  table.add("cumsum cumprod logcumsumexp", scan);
  table.add("sort argsort", sorted);
  table.add("topk kthvalue", topk);
  table.add("_cdist_forward cdist pdist _pdist_forward", distances);
  table.add("pairwise_distance", pairDistance);
  table.add("cosine_similarity", similarity);
  table.add("diff", differences);
  table.add("histc", histogram);
}
