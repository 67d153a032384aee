//===- OpsIndex.cpp - ONNX: lookups, writes and orders --------------------===//
#include "compiler/import/onnx/Known.h"
#include "compiler/import/onnx/Ops.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

/// The attribute `axis` as a dimension of operand 0.
static FailureOr<int64_t> axisOf(Node &node, int64_t otherwise) {
  return dimension(node, "'axis'", node.integer("axis", otherwise),
                   node.rank(0));
}

//===----------------------------------------------------------------------===//
// Lookups
//===----------------------------------------------------------------------===//

static LogicalResult translateGather(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  auto dim = axisOf(node, 0);
  if (failed(dim))
    return failure();
  return give(node,
              node.call("index_select", {node.operand(0), node.operand(1)},
                        node.attr("dim", *dim)));
}

static LogicalResult translateGatherElements(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  auto dim = axisOf(node, 0);
  if (failed(dim))
    return failure();
  return give(node, node.call("gather", {node.operand(0), node.operand(1)},
                              node.attr("dim", *dim)));
}

static LogicalResult translateGatherND(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  return give(
      node, node.call("gather_nd", {node.operand(0), node.operand(1)},
                      node.attr("batch_dims", node.integer("batch_dims", 0))));
}

//===----------------------------------------------------------------------===//
// Writes
//===----------------------------------------------------------------------===//

static LogicalResult translateScatterElements(Node &node) {
  if (failed(expectOperands(node, 3)))
    return failure();
  auto dim = axisOf(node, 0);
  std::string reduce =
      node.choice("reduction", {"none", "add", "mul", "min", "max"});
  if (failed(dim))
    return failure();
  return give(node,
              node.call("scatter_elements",
                        {node.operand(0), node.operand(1), node.operand(2)},
                        {node.attr("dim", *dim),
                         node.attr("reduce", StringRef(reduce))}));
}

static LogicalResult translateScatterND(Node &node) {
  if (failed(expectOperands(node, 3)))
    return failure();
  std::string reduce =
      node.choice("reduction", {"none", "add", "mul", "min", "max"});
  return give(node,
              node.call("scatter_nd",
                        {node.operand(0), node.operand(1), node.operand(2)},
                        node.attr("reduce", StringRef(reduce))));
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

static LogicalResult translateOneHot(Node &node) {
  if (failed(expectOperands(node, 3)))
    return failure();
  auto depth = node.needInt(1, "the depth");
  if (failed(depth))
    return failure();
  auto dim =
      dimension(node, "'axis'", node.integer("axis", -1), node.rank(0) + 1);
  if (failed(dim))
    return failure();
  if (*depth < 1)
    return node.error("expected a depth of at least 1, but got " +
                      Twine(*depth));
  if (node.rank(2) != 1 || node.shape(2)[0] != 2)
    return node.error("expected operand #2 to have the two values");
  Expr index = node.expr(0).cast(node.builder().getI64Type());
  // Negative indices count from the depth; what is outside is nowhere.
  index = select(compare(ComparePredicate::lt, index, index.like(0)),
                 index + double(*depth), index);
  Value hot =
      node.call("one_hot", index.value, node.attr("num_classes", *depth));
  hot = node.call(
      "movedim", hot,
      {node.attr("source", int64_t(-1)), node.attr("destination", *dim)});
  if (!hot)
    return failure();
  Expr at = node.wrap(hot);
  Expr values = node.expr(2);
  auto value = [&](int64_t i) {
    Value one = node.call("select_index", values.value, node.attr("index", i));
    return node.call("expand", one, node.attr("shape", at.shape()));
  };
  Value off = value(0), on = value(1);
  if (!off || !on)
    return failure();
  Expr isHot = compare(ComparePredicate::ne, at, at.like(0));
  return give(node, select(isHot, node.wrap(on), node.wrap(off)));
}

static LogicalResult translateReverseSequence(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  auto batch = dimension(node, "'batch_axis'", node.integer("batch_axis", 1),
                         node.rank(0));
  auto time = dimension(node, "'time_axis'", node.integer("time_axis", 0),
                        node.rank(0));
  if (failed(batch) || failed(time))
    return failure();
  return give(node,
              node.call("reverse_sequence", {node.operand(0), node.operand(1)},
                        {node.attr("batch_dim", *batch),
                         node.attr("time_dim", *time)}));
}

static LogicalResult translateTopK(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  auto dim = axisOf(node, -1);
  FailureOr<int64_t> k =
      node.opset() < 10 ? FailureOr<int64_t>(node.integer("k", 0))
      : node.has(1)     ? node.needInt(1, "the number k")
                    : FailureOr<int64_t>(node.error("expected the number k"));
  bool largest = node.integer("largest", 1) != 0;
  // What need not be sorted may be.
  bool sorted = node.integer("sorted", 1) != 0;
  (void)sorted;
  if (failed(dim) || failed(k))
    return failure();
  SmallVector<Value> made =
      node.callAll("topk", node.operand(0),
                   {node.attr("k", *k), node.attr("dim", *dim),
                    node.attr("largest", node.builder().getBoolAttr(largest))});
  if (made.empty())
    return failure();
  for (size_t i = 0; i < std::min<size_t>(2, node.numResults()); ++i)
    node.result(i, made[i]);
  return success();
}

//===----------------------------------------------------------------------===//
// What is static only if data is known
//===----------------------------------------------------------------------===//

static LogicalResult translateCompress(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  auto condition = node.needInts(1, "the condition");
  if (failed(condition))
    return failure();
  Value x = node.operand(0);
  int64_t dim = 0;
  if (node.hasAttribute("axis")) {
    auto axis = axisOf(node, 0);
    if (failed(axis))
      return failure();
    dim = *axis;
  } else {
    x = node.call("flatten", x);
    if (!x)
      return failure();
  }
  int64_t size = node.wrap(x).dim(dim);
  SmallVector<int64_t> kept;
  for (auto [i, keep] : llvm::enumerate(*condition))
    if (keep && int64_t(i) < size)
      kept.push_back(i);
  if (int64_t(condition->size()) > size)
    return node.error("expected a condition of at most " + Twine(size) +
                      " elements, but got " + Twine(condition->size()));
  return give(node,
              node.call("index_select", {x, node.constant(node.ints(kept))},
                        node.attr("dim", dim)));
}

static LogicalResult translateNonZero(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  auto numbers = node.needNumbers(0, "the tensor");
  if (failed(numbers))
    return failure();
  int64_t rank = std::max<int64_t>(node.rank(0), 1);
  ArrayRef<int64_t> shape = node.shape(0);
  SmallVector<SmallVector<int64_t>> places(rank);
  for (auto [i, number] : llvm::enumerate(*numbers)) {
    if (number == 0)
      continue;
    int64_t rest = i;
    for (int64_t d = rank; d-- > 0;) {
      int64_t size = shape.empty() ? 1 : shape[d];
      places[d].push_back(rest % size);
      rest /= size;
    }
  }
  SmallVector<int64_t> all;
  for (const auto &list : places)
    llvm::append_range(all, list);
  auto type =
      RankedTensorType::get({rank, static_cast<int64_t>(places[0].size())},
                            node.builder().getI64Type());
  node.result(0, DenseElementsAttr::get(type, ArrayRef(all)));
  return success();
}

/// Distinct elements (or parts along an axis) of a known tensor.
static LogicalResult translateUnique(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  bool sorted = node.integer("sorted", 1) != 0;
  bool flat = !node.hasAttribute("axis");
  auto axis = flat ? FailureOr<int64_t>(0) : axisOf(node, 0);
  if (failed(axis))
    return failure();
  auto numbers = node.needNumbers(0, "the tensor");
  if (failed(numbers))
    return failure();
  // Parts as lists of numbers: [before, part, after] in row-major order.
  ArrayRef<int64_t> shape = node.shape(0);
  int64_t before = 1, after = 1, parts = flat ? int64_t(numbers->size()) : 0;
  if (!flat) {
    parts = shape[*axis];
    for (int64_t size : shape.take_front(*axis))
      before *= size;
    for (int64_t size : shape.drop_front(*axis + 1))
      after *= size;
  }
  using Part = std::vector<double>;
  SmallVector<Part> list;
  for (int64_t p = 0; p < parts; ++p) {
    Part part;
    for (int64_t b = 0; b < before; ++b)
      for (int64_t a = 0; a < after; ++a)
        part.push_back((*numbers)[(b * parts + p) * after + a]);
    list.push_back(std::move(part));
  }
  // NaN is above all numbers, and like itself.
  auto isBelow = [](const Part &a, const Part &b) {
    return std::lexicographical_compare(
        a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
          return x < y || (std::isnan(y) && !std::isnan(x));
        });
  };
  std::map<Part, int64_t, decltype(isBelow)> firsts(isBelow); // first places
  SmallVector<const Part *> order;
  for (auto [p, part] : llvm::enumerate(list)) {
    auto [it, isNew] = firsts.emplace(part, p);
    if (isNew)
      order.push_back(&it->first);
  }
  if (sorted)
    llvm::sort(order,
               [&](const Part *a, const Part *b) { return isBelow(*a, *b); });
  std::map<const Part *, int64_t> numberOf;
  SmallVector<int64_t> first, inverse, counts(order.size(), 0);
  for (auto [i, part] : llvm::enumerate(order)) {
    numberOf[part] = i;
    first.push_back(firsts[*part]);
  }
  for (const Part &part : list) {
    int64_t number = numberOf[&firsts.find(part)->first];
    inverse.push_back(number);
    ++counts[number];
  }
  Value x = node.operand(0);
  if (flat && x)
    x = node.call("flatten", x);
  if (!x)
    return failure();
  Value y = node.call("index_select", {x, node.constant(node.ints(first))},
                      node.attr("dim", *axis));
  if (!y)
    return failure();
  node.result(0, y);
  const SmallVector<int64_t> *others[] = {&first, &inverse, &counts};
  for (size_t i = 1; i < std::min<size_t>(4, node.numResults()); ++i)
    if (node.wants(i))
      node.result(i, node.ints(*others[i - 1]));
  return success();
}

void onnx::addIndexOps(OpTable &table) {
  table.add("Gather", translateGather);
  table.add("GatherElements", translateGatherElements);
  table.add("GatherND", translateGatherND);
  table.add("Scatter", translateScatterElements);
  table.add("ScatterElements", translateScatterElements);
  table.add("ScatterND", translateScatterND);
  table.add("OneHot", translateOneHot);
  table.add("ReverseSequence", translateReverseSequence);
  table.add("TopK", translateTopK);
  table.add("Compress", translateCompress);
  table.add("NonZero", translateNonZero);
  table.add("Unique", translateUnique);
}
