//===- OpsIndexing.cpp - ATen: lookups and writes by index ----------------===//
//
// PyTorch counts negative indices from the end where it indexes like NumPy, and
// refuses them elsewhere. The functions count all of them from the end: what
// PyTorch takes is said of each index, for the check of inputs.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/torch/Node.h"
#include "ir/IndexRange.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;
using List = Node::List;

static Type elementOf(const Expr &x) { return x.type().getElementType(); }

static LogicalResult embedding(Node &node) {
  Expr table = node.value("weight"), indices = node.value("indices");
  if (!table || !indices)
    return failure();
  Expr made = node.make("take", {table, indices});
  int64_t padding = node.integer("padding_idx", -1);
  if (node.flag("scale_grad_by_freq", false))
    return node.unsupported("scale_grad_by_freq");
  if (!made || padding < 0)
    return node.result(made);
  // The row of what pads gets no gradient.
  Expr isPadding = compare(ComparePredicate::eq, indices,
                           indices.like(static_cast<double>(padding)));
  List dims(indices.rank());
  std::iota(dims.begin(), dims.end(), 0);
  return node.result(tandem::select(isPadding.broadcastTo(made.shape(), dims),
                                    tandem::detach(made), made));
}

/// For each of `count` indices, the bag that it is in: how many of the bags
/// begin with it or before it, less one.
static Expr bagOf(Node &node, const Expr &offsets, int64_t count,
                  int64_t bags) {
  Type i64 = node.builder().getI64Type();
  List shape = {count, bags};
  Expr number = node.make("iota", {}, node.attr("dim", int64_t(0)),
                          RankedTensorType::get(shape, i64));
  Expr first =
      node.make("narrow", node.cast(offsets, i64).value,
                {node.attr("dim", int64_t(0)), node.attr("start", int64_t(0)),
                 node.attr("length", bags)});
  if (!number || !first)
    return {};
  Expr isBegun =
      compare(ComparePredicate::ge, number, first.broadcastTo(shape, {1}));
  Expr begun =
      node.make("sum", node.cast(isBegun, i64).value,
                {node.attr("dim", List{1}), node.attr("keepdim", false)});
  return begun ? begun - begun.like(1) : begun;
}

/// Sums, means (1) or maxima (2) of the table's rows, those of a bag together;
/// a bag that has none is 0.
static LogicalResult embeddingBag(Node &node) {
  Expr table = node.value("weight"), indices = node.value("indices");
  Expr offsets = node.value("offsets");
  if (!table || !indices || !offsets)
    return failure();
  int64_t mode = node.integer("mode", 0), padding = -1;
  if (node.has("padding_idx"))
    padding = node.integer("padding_idx", -1);
  // Of core ATen's operator -1 is none; of the other one, the last row.
  if (node.has("padding_idx") && padding < 0 && node.op() == "embedding_bag")
    padding += table.dim(0);
  if (node.flag("scale_grad_by_freq", false))
    return node.unsupported("scale_grad_by_freq");
  for (size_t i = 1; i < 4; ++i)
    if (node.wants(i))
      return node.unsupported("results beside the bags");
  int64_t count = indices.dim(0), width = table.dim(1);
  int64_t bags = offsets.dim(0) - node.flag("include_last_offset", false);
  if (bags < 0)
    return node.error("expected at least one offset");
  Type element = elementOf(table);
  if (count == 0 || bags == 0)
    return node.result(node.full(element, {bags, width}, 0));
  Expr bag = bagOf(node, offsets, count, bags);
  Expr rows = node.make("take", {table, indices});
  if (!bag || !rows)
    return failure();
  // What pads is in a bag of its own, which nobody sees.
  if (padding >= 0)
    bag = tandem::select(compare(ComparePredicate::eq, indices,
                                 indices.like(static_cast<double>(padding))),
                         bag.like(static_cast<double>(bags)), bag);
  if (node.has("per_sample_weights")) {
    Expr weights = node.value("per_sample_weights");
    if (!weights)
      return failure();
    rows = rows * node.cast(weights, element).broadcastTo(rows.shape(), {0});
  }
  // Sums of narrow floats are in f32.
  bool isWide = element.getIntOrFloatBitWidth() >= 32;
  if (!isWide)
    rows = node.cast(rows, node.builder().getF32Type());
  NamedAttribute ofBags = node.attr("dim", int64_t(0));
  Expr none = node.full(elementOf(rows), {bags + 1, width}, 0), y;
  if (mode == 2)
    y = node.make("scatter_reduce",
                  {none, bag.broadcastTo(rows.shape(), {0}), rows},
                  {ofBags, node.attr("reduce", StringRef("amax")),
                   node.attr("include_self", false)});
  else
    y = node.make("index_add", {none, bag, rows}, ofBags);
  if (y && mode == 1) {
    Expr sizes = node.make("index_add",
                           {node.full(elementOf(rows), {bags + 1}, 0), bag,
                            node.full(elementOf(rows), {count}, 1)},
                           ofBags);
    if (!sizes)
      return failure();
    y = y / maximum(sizes, sizes.like(1)).broadcastTo(y.shape(), {0});
  }
  if (!y)
    return failure();
  y = node.make(
      "narrow", y.value,
      {ofBags, node.attr("start", int64_t(0)), node.attr("length", bags)});
  return node.result(y ? node.cast(y, element) : y);
}

/// An index of `x` that PyTorch takes from `low` to below `size`, as i64. It
/// looks at none where there is nothing to look up.
static Expr taken(Node &node, const Expr &x, const Expr &index, int64_t low,
                  int64_t size) {
  if (!index || size < 1 || x.type().getNumElements() == 0)
    return index;
  Type i64 = node.builder().getI64Type();
  auto cast = CastOp::create(node.builder(), node.loc(),
                             index.type().clone(i64), index.value);
  cast->setAttr(kIndexRangeAttr,
                node.builder().getDenseI64ArrayAttr({low, size}));
  return node.wrap(cast);
}

/// One that counts from the end where it is negative.
static Expr takenFromEnd(Node &node, const Expr &x, const Expr &index,
                         int64_t size) {
  return taken(node, x, index, -size, size);
}

/// x[indices]: the tensors and their dimensions; a mask is refused.
static bool indicesOf(Node &node, const Expr &x, SmallVector<Value> &operands,
                      List &dims) {
  SmallVector<Value> indices = node.values("indices");
  bool isEmpty = llvm::any_of(indices, [&](Value index) {
    return index && node.wrap(index).type().getNumElements() == 0;
  });
  for (auto [d, index] : llvm::enumerate(indices)) {
    if (!index)
      continue;
    Expr i = node.wrap(index);
    if (elementOf(i).isInteger(1) || elementOf(i).isUnsignedInteger(8)) {
      (void)node.unsupported("an index that is a mask: how much it takes is "
                             "data");
      return false;
    }
    if (static_cast<int64_t>(d) >= x.rank()) {
      (void)node.error("expected at most as many indices as dimensions");
      return false;
    }
    dims.push_back(static_cast<int64_t>(d));
    if (!isEmpty)
      i = takenFromEnd(node, x, i, x.dim(static_cast<int64_t>(d)));
    operands.push_back(i);
  }
  return !node.failed();
}

static LogicalResult lookUp(Node &node) {
  Expr x = node.value("self");
  SmallVector<Value> operands = {x.value};
  List dims;
  if (!x || !indicesOf(node, x, operands, dims))
    return failure();
  if (dims.empty())
    return node.result(x);
  return node.result(node.make("index", operands, node.attr("dims", dims)));
}

static LogicalResult indexPut(Node &node) {
  Expr x = node.value("self"), values = node.value("values");
  if (!x || !values)
    return failure();
  bool accumulates = node.flag("accumulate", false);
  values = node.cast(values, elementOf(x));
  // A mask of one number is a choice.
  SmallVector<Value> given = node.values("indices");
  if (given.size() == 1 && given[0] &&
      elementOf(node.wrap(given[0])).isInteger(1) &&
      values.type().getNumElements() == 1) {
    Expr mask = node.wrap(given[0]);
    List shape(mask.shape());
    shape.resize(x.rank(), 1);
    mask = node.reshape(mask, shape);
    Expr one = node.reshape(values, {});
    if (accumulates)
      one = node.make("add_scaled", {x, one});
    return node.result(node.make("where", {mask, one, x}));
  }
  SmallVector<Value> operands = {x.value, values.value};
  List dims;
  if (!indicesOf(node, x, operands, dims))
    return failure();
  if (dims.empty())
    return node.unsupported("no index");
  return node.result(node.make(
      "index_put", operands,
      {node.attr("dims", dims), node.attr("accumulate", accumulates)}));
}

/// What is left of an index in a division by `size`, with the index's sign.
static Expr remainder(Node &node, const Expr &index, int64_t size) {
  if (size < 1)
    return index;
  Expr i = node.cast(index, node.builder().getI64Type());
  return node.make("rem", {i, i.like(static_cast<double>(size))});
}

/// gather, index_select, take_along_dim: along one dimension.
static LogicalResult along(Node &node) {
  Expr x = node.value("self");
  Expr i = node.value(node.op() == "take_along_dim" ? "indices" : "index");
  if (!x || !i)
    return failure();
  if (node.op() == "index_select" && i.rank() == 0)
    i = node.reshape(i, {1});
  // Nothing is taken, whatever the other sizes are.
  if (node.op() == "gather" && i.type().getNumElements() == 0)
    return node.result(node.full(elementOf(x), i.shape(), 0));
  bool isNumber = x.rank() == 0;
  if (isNumber) {
    x = node.reshape(x, {1});
    if (node.op() != "index_select")
      i = i.rank() ? i : node.reshape(i, {1});
  }
  SmallVector<NamedAttribute> list;
  int64_t size = x.type().getNumElements();
  if (node.has("dim") || node.op() != "take_along_dim") {
    int64_t d = node.dim("dim", 0, x.rank());
    if (node.failed())
      return failure();
    list.push_back(node.attr("dim", d));
    size = x.dim(d);
  }
  // Every index is taken modulo the size there.
  if (node.op() == "take_along_dim" && !list.empty())
    i = remainder(node, i, size);
  else
    i = taken(node, x, i, 0, size);
  Expr made = node.make(node.op(), {x, i}, list);
  if (made && isNumber)
    if (RankedTensorType type = node.resultType(0))
      made = node.reshape(made, type.getShape());
  return node.result(made);
}

static LogicalResult scatterTo(Node &node) {
  Expr x = node.value("self"), i = node.value("index");
  if (!x || !i || i.type().getNumElements() == 0)
    return node.result(x);
  Expr source;
  if (node.isTensor("src"))
    source = node.cast(node.value("src"), elementOf(x));
  else if (node.has("value"))
    source = node.stretch(node.scalar("value", elementOf(x)), i.shape());
  if (!source)
    return failure();
  bool isNumber = x.rank() == 0;
  if (isNumber) {
    x = node.reshape(x, {1});
    i = node.reshape(i, {1});
    source = node.reshape(source, {1});
  }
  int64_t d = node.dim("dim", 0, x.rank());
  if (node.failed())
    return failure();
  i = taken(node, x, i, 0, x.dim(d));
  SmallVector<NamedAttribute> list = {node.attr("dim", d)};
  StringRef function = "scatter_elements";
  if (node.op() == "scatter_add") {
    function = "scatter_add";
  } else if (node.op() == "scatter_reduce") {
    function = "scatter_reduce";
    list.push_back(node.attr("reduce", node.text("reduce", "sum")));
    list.push_back(node.attr("include_self", node.flag("include_self", true)));
  } else if (node.has("reduce")) {
    std::string how = node.text("reduce", "");
    list.push_back(node.attr("reduce", how == "multiply" ? "mul" : how));
  }
  Expr made = node.make(function, {x, i, source}, list);
  return node.result(made && isNumber ? node.reshape(made, {}) : made);
}

/// index_add, index_copy, index_fill: whole parts of a dimension.
static LogicalResult parts(Node &node) {
  Expr x = node.value("self"), i = node.value("index");
  if (!x || !i)
    return failure();
  bool isNumber = x.rank() == 0;
  if (isNumber)
    x = node.reshape(x, {1});
  int64_t d = node.dim("dim", 0, x.rank());
  if (node.failed())
    return failure();
  i = node.reshape(i, {i.type().getNumElements()});
  i = node.op() == "index_fill" ? takenFromEnd(node, x, i, x.dim(d))
                                : taken(node, x, i, 0, x.dim(d));
  List shape(x.shape());
  shape[d] = i.dim(0);
  Expr source =
      node.op() != "index_fill" ? node.cast(node.value("source"), elementOf(x))
      : node.isTensor("value")
          ? node.stretch(node.cast(node.value("value"), elementOf(x)), shape)
          : node.stretch(node.scalar("value", elementOf(x)), shape);
  if (source && isNumber)
    source = node.reshape(source, shape);
  if (!source)
    return failure();
  SmallVector<NamedAttribute> list = {node.attr("dim", d)};
  bool adds = node.op() == "index_add";
  if (adds && node.has("alpha"))
    list.push_back(isa<FloatType>(elementOf(x))
                       ? node.attr("alpha", node.number("alpha", 1))
                       : node.attr("alpha", node.integer("alpha", 1)));
  Expr made =
      node.make(adds ? "index_add" : "index_copy", {x, i, source}, list);
  return node.result(made && isNumber ? node.reshape(made, {}) : made);
}

static LogicalResult maskedScatter(Node &node) {
  Expr x = node.value("self"), mask = node.value("mask");
  Expr source = node.value("source");
  if (!x || !mask || !source)
    return failure();
  return node.result(
      node.make("masked_scatter", {x, mask, node.cast(source, elementOf(x))}));
}

static LogicalResult oneHot(Node &node) {
  Expr x = node.value("self");
  int64_t classes = node.integer("num_classes", -1);
  if (classes < 1)
    return node.unsupported("one_hot without num_classes, which is data then");
  x = taken(node, x, x, 0, classes);
  return node.result(
      x ? node.make("one_hot", x.value, node.attr("num_classes", classes)) : x);
}

void torch::addIndexingOps(OpTable &table) {
  table.add("embedding", embedding);
  table.add("embedding_bag _embedding_bag _embedding_bag_forward_only",
            embeddingBag);
  table.add("index _unsafe_index", lookUp);
  table.add("index_put _unsafe_index_put", indexPut);
  table.add("gather index_select take_along_dim", along);
  table.add("scatter scatter_add scatter_reduce", scatterTo);
  table.add("index_add index_copy index_fill", parts);
  table.add("masked_scatter", maskedScatter);
  table.add("one_hot", oneHot);
}
