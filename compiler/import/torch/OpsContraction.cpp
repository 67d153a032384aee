//===- OpsContraction.cpp - ATen: products, convolutions, attention -------===//
#include "compiler/import/torch/Node.h"
#include "ir/Ops.h"

#include <cmath>
#include <tuple>

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;
using List = Node::List;

static LogicalResult product(Node &node, StringRef function, StringRef a,
                             StringRef b) {
  Expr x = node.value(a), y = node.value(b);
  return node.result(x && y ? node.make(function, {x, y}) : Expr());
}

static LogicalResult scaledProduct(Node &node, StringRef a, StringRef b) {
  Expr x = node.value("self"), y = node.value(a), z = node.value(b);
  if (!x || !y || !z)
    return failure();
  // Of integers PyTorch takes the integer part.
  auto factor = [&](StringRef name) {
    double number = node.number(name, 1);
    bool isFloat = isa<FloatType>(x.type().getElementType());
    return node.attr(name, isFloat ? number : std::trunc(number));
  };
  return node.result(
      node.make(node.op(), {x, y, z}, {factor("alpha"), factor("beta")}));
}

/// Of integers, which the op is not for, and with a weight that is a vector.
static LogicalResult linearAsProduct(Node &node, const Expr &x, const Expr &w) {
  Expr turned = w;
  if (w.rank() == 2)
    turned =
        node.make("permute", w.value, node.attr("permutation", List{1, 0}));
  Expr y = turned ? node.make("linalg_matmul", {x, turned}) : turned;
  if (y && node.has("bias")) {
    Expr bias = node.value("bias");
    y = bias ? node.make("add_scaled", {y, bias}) : bias;
  }
  return node.result(y);
}

static LogicalResult linear(Node &node) {
  Expr x = node.value("input"), w = node.value("weight");
  SmallVector<Value> operands = {x.value, w.value};
  if (!x || !w)
    return failure();
  if (w.rank() == 1 || !isa<FloatType>(x.type().getElementType()))
    return linearAsProduct(node, x, w);
  if (node.has("bias"))
    operands.push_back(node.value("bias"));
  // A vector is a row.
  bool isVector = x.rank() == 1;
  if (isVector)
    operands[0] = node.reshape(x, {1, x.dim(0)});
  Expr y = node.make("linear", operands);
  if (y && isVector)
    y = node.reshape(y, y.shape().drop_front());
  return node.result(y);
}

static LogicalResult einsum(Node &node) {
  SmallVector<Value> operands = node.values("tensors");
  if (node.failed() || operands.empty())
    return failure();
  return node.result(node.make(
      "einsum", operands, node.attr("equation", node.text("equation", ""))));
}

static LogicalResult tensordot(Node &node) {
  Expr a = node.value("self"), b = node.value("other");
  if (!a || !b)
    return failure();
  return node.result(
      node.make("tensordot", {a, b},
                {node.attr("dims_a", node.integers("dims_self")),
                 node.attr("dims_b", node.integers("dims_other"))}));
}

/// Rows that belong to groups, one behind the other, each by the matrix of its
/// group; `offs` says where each group ends. As one product over groups and
/// columns, of rows that are zero in the groups they do not belong to: all
/// sizes are known, for as many times the arithmetic as there are groups.
static LogicalResult groupedProduct(Node &node) {
  bool isFallback = node.op() == "grouped_mm_fallback";
  Expr x = node.value(isFallback ? "input" : "self");
  Expr w = node.value(isFallback ? "weight" : "mat2");
  Expr ends = node.value("offs");
  if (!x || !w || !ends)
    return node.failed() ? failure() : node.unsupported("without offsets");
  if (x.rank() != 2 || w.rank() != 3 || ends.rank() != 1)
    return node.unsupported("of other than rows and a matrix for each group");
  if (node.has("bias"))
    return node.unsupported("with a bias");
  int64_t rows = x.dim(0), width = x.dim(1), groups = w.dim(0);
  List shape = {rows, groups};
  Type i64 = node.builder().getI64Type();
  auto places = RankedTensorType::get(shape, i64);
  Expr row = node.make("iota", {}, node.attr("dim", int64_t(0)), places);
  Expr group = node.make("iota", {}, node.attr("dim", int64_t(1)), places);
  if (!row || !group)
    return failure();
  // As many groups end before a row as the number of its group says.
  Expr end = node.cast(ends, i64).broadcastTo(shape, {1});
  Expr own = compare(ComparePredicate::ge, row, end).cast(i64).reduceSum({1});
  Expr isIn = compare(ComparePredicate::eq, own.broadcastTo(shape, {0}), group);
  List spread = {rows, groups, width};
  Expr wide = x.broadcastTo(spread, {0, 2});
  Expr placed =
      tandem::select(isIn.broadcastTo(spread, {0, 1}), wide, wide.like(0));
  Expr made = node.make("mm", {node.reshape(placed, {rows, groups * width}),
                               node.reshape(w, {groups * width, w.dim(2)})});
  Type given = node.elementType("out_dtype");
  return node.result(made && given ? node.cast(made, given) : made);
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// Padding before and after each dimension for a result of the operand's size.
static List samePadding(ArrayRef<int64_t> kernel, ArrayRef<int64_t> dilation) {
  List padding;
  for (auto [size, step] : llvm::zip(kernel, dilation)) {
    int64_t total = step * (size - 1);
    padding.append({total / 2, total - total / 2});
  }
  return padding;
}

static LogicalResult convolution(Node &node) {
  Expr x = node.value("input"), w = node.value("weight");
  if (!x || !w || w.rank() < 3)
    return node.failed() ? failure() : node.error("expected a filter");
  int64_t spatial = w.rank() - 2;
  bool isTransposed =
      node.op().starts_with("conv_transpose") || node.flag("transposed", false);
  bool isSingle = x.rank() == w.rank() - 1;
  if (isSingle) {
    List shape = {1};
    llvm::append_range(shape, x.shape());
    x = node.reshape(x, shape);
  }
  List dilation = node.integersFor("dilation", spatial, 1), padding;
  const Argument *pads = node.argument("padding");
  if (pads && pads->form == Argument::Form::Text)
    padding = pads->texts[0] == "same"
                  ? samePadding(w.shape().drop_front(2), dilation)
                  : List(spatial, 0);
  else
    padding = node.integersFor("padding", spatial, 0);
  SmallVector<NamedAttribute> list = {
      node.attr("strides", node.integersFor("stride", spatial, 1)),
      node.attr("padding", padding), node.attr("dilation", dilation),
      node.attr("groups", node.integer("groups", 1))};
  if (isTransposed)
    list.push_back(node.attr("output_padding",
                             node.integersFor("output_padding", spatial, 0)));
  SmallVector<Value> operands = {x, w};
  operands.push_back(node.has("bias") ? node.value("bias").value : Value());
  auto made =
      node.call(isTransposed ? "conv_transpose" : "conv", operands, list);
  if (made.empty())
    return failure();
  Expr y = node.wrap(made[0]);
  return node.result(isSingle ? node.reshape(y, y.shape().drop_front()) : y);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Queries, keys and values, whose first dimensions are stretched to those that
/// they have together.
static void stretchBatches(Node &node, MutableArrayRef<Expr> operands,
                           bool isGrouped) {
  // Heads are repeated, not stretched, where they are grouped.
  int64_t own = isGrouped ? 3 : 2;
  List batch;
  for (const Expr &x : operands) {
    if (x.rank() < own)
      return;
    List mine(x.shape().drop_back(own));
    while (batch.size() < mine.size())
      batch.insert(batch.begin(), 1);
    for (size_t i = 1; i <= mine.size(); ++i)
      if (int64_t size = mine[mine.size() - i]; size != 1)
        batch[batch.size() - i] = size;
  }
  for (Expr &x : operands) {
    List shape = batch;
    llvm::append_range(shape, x.shape().take_back(own));
    x = node.stretch(x, shape);
  }
}

static LogicalResult attention(Node &node) {
  Expr q = node.value("query"), k = node.value("key"), v = node.value("value");
  if (!q || !k || !v)
    return failure();
  Expr all[] = {q, k, v};
  stretchBatches(node, all, node.flag("enable_gqa", false));
  if (!all[0] || !all[1] || !all[2])
    return failure();
  std::tie(q, k, v) = std::tie(all[0], all[1], all[2]);
  double p = node.number("dropout_p", 0);
  Value mask;
  StringRef name = node.has("attn_mask") ? "attn_mask" : "attn_bias";
  if (node.has(name)) {
    Expr given = node.value(name);
    if (!given)
      return failure();
    mask = given.type().getElementType().isInteger(1)
               ? given
               : node.cast(given, q.type().getElementType());
  }
  SmallVector<NamedAttribute> list = {
      node.attr("is_causal", node.flag("is_causal", false)),
      node.attr("enable_gqa", node.flag("enable_gqa", false))};
  if (node.has("scale"))
    list.push_back(node.attr("scale", node.number("scale", 1)));
  SmallVector<Value> operands = {q, k, v, mask};
  if (p > 0) {
    operands.push_back(node.randomState());
    list.push_back(node.attr("dropout_p", p));
    list.push_back(node.attr("draw", node.nextDraw()));
  }
  auto made = node.call("scaled_dot_product_attention", operands, list);
  if (made.empty())
    return failure();
  return node.result(0, made[0]);
}

void torch::addContractionOps(OpTable &table) {
  table.add("mm", [](Node &n) { return product(n, "mm", "self", "mat2"); });
  table.add("bmm", [](Node &n) { return product(n, "bmm", "self", "mat2"); });
  table.add("mv", [](Node &n) { return product(n, "mv", "self", "vec"); });
  table.add("dot", [](Node &n) { return product(n, "dot", "self", "tensor"); });
  table.add("vdot", [](Node &n) { return product(n, "dot", "self", "other"); });
  table.add("inner",
            [](Node &n) { return product(n, "inner", "self", "other"); });
  table.add("matmul linalg_matmul", [](Node &n) {
    return product(n, "linalg_matmul", "self", "other");
  });
  table.add("outer ger",
            [](Node &n) { return product(n, "outer", "self", "vec2"); });
  table.add("addmm", [](Node &n) { return scaledProduct(n, "mat1", "mat2"); });
  table.add("baddbmm",
            [](Node &n) { return scaledProduct(n, "batch1", "batch2"); });
  table.add("addmv", [](Node &n) { return scaledProduct(n, "mat", "vec"); });
  table.add("addr", [](Node &n) { return scaledProduct(n, "vec1", "vec2"); });
  table.add("linear", linear);
  table.add("_grouped_mm transformers.grouped_mm_fallback", groupedProduct);
  table.add("einsum", einsum);
  table.add("tensordot", tensordot);
  table.add("bilinear", [](Node &node) {
    SmallVector<Value> operands;
    for (StringRef name : {"input1", "input2", "weight", "bias"})
      operands.push_back(node.has(name) ? node.value(name).value : Value());
    auto made = node.call("bilinear", operands);
    return node.result(made.empty() ? Value() : made[0]);
  });
  table.add("convolution conv1d conv2d conv3d conv_transpose1d "
            "conv_transpose2d conv_transpose3d",
            convolution);
  table.add("scaled_dot_product_attention", attention);
}
