//===- OpsSequence.cpp - ONNX: sequences, optionals and gradients ---------===//
//
// A sequence is a list that is known when compiling: how long it is, and which
// of its tensors is meant, must not depend on data.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/Translator.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

using List = std::vector<Datum>;

static void giveList(Node &node, List list) {
  Datum datum;
  datum.list = std::make_shared<const List>(std::move(list));
  node.result(0, datum);
}

static FailureOr<List> listOf(Node &node, size_t i) {
  if (!node.datum(i).list)
    return node.error("expected operand " + Twine(i) + " to be a sequence");
  return *node.datum(i).list;
}

/// A position in a list of `size`, negative ones counted from the end.
static FailureOr<int64_t> position(Node &node, size_t i, int64_t size) {
  auto at = node.needInt(i, "the position");
  if (failed(at))
    return failure();
  if (*at < -size || *at >= size)
    return node.error("expected a position in a sequence of " + Twine(size) +
                      ", but got " + Twine(*at));
  return *at < 0 ? *at + size : *at;
}

static LogicalResult translateConstruct(Node &node) {
  List list;
  for (size_t i = 0; i < node.numOperands(); ++i)
    list.push_back(node.datum(i));
  giveList(node, std::move(list));
  return success();
}

static LogicalResult translateEmpty(Node &node) {
  node.ignore({"dtype"});
  giveList(node, {});
  return success();
}

static LogicalResult translateAt(Node &node) {
  auto list = listOf(node, 0);
  if (failed(list))
    return failure();
  auto at = position(node, 1, static_cast<int64_t>(list->size()));
  if (failed(at))
    return failure();
  node.result(0, (*list)[*at]);
  return success();
}

static LogicalResult translateInsert(Node &node) {
  auto list = listOf(node, 0);
  if (failed(list))
    return failure();
  auto size = static_cast<int64_t>(list->size());
  // It may be inserted after the last one, too.
  FailureOr<int64_t> at = size;
  if (node.has(2))
    at = position(node, 2, size + 1);
  if (failed(at))
    return failure();
  if (node.has(2) && node.knownInts(2)->front() < 0)
    *at -= 1; // -1 is before the last
  list->insert(list->begin() + std::max<int64_t>(*at, 0), node.datum(1));
  giveList(node, std::move(*list));
  return success();
}

static LogicalResult translateErase(Node &node) {
  auto list = listOf(node, 0);
  if (failed(list))
    return failure();
  auto size = static_cast<int64_t>(list->size());
  FailureOr<int64_t> at = size - 1;
  if (node.has(1))
    at = position(node, 1, size);
  if (failed(at))
    return failure();
  if (size == 0)
    return node.error("expected a sequence with a tensor to take out");
  list->erase(list->begin() + *at);
  giveList(node, std::move(*list));
  return success();
}

static LogicalResult translateLength(Node &node) {
  auto list = listOf(node, 0);
  if (failed(list))
    return failure();
  auto scalar = RankedTensorType::get({}, node.builder().getI64Type());
  node.result(
      0, DenseElementsAttr::get(scalar, static_cast<int64_t>(list->size())));
  return success();
}

/// A dimension of a tensor of `rank`, negative ones counted from the end.
static FailureOr<int64_t> dimension(Node &node, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return node.error("expected an axis of a tensor of rank " + Twine(rank) +
                      ", but got " + Twine(axis));
  return axis < 0 ? axis + rank : axis;
}

/// `x` with a dimension of size 1 before `axis`, or without it.
static Value withDimension(Node &node, Value x, int64_t axis, bool isAdded) {
  SmallVector<int64_t> shape(cast<RankedTensorType>(x.getType()).getShape());
  if (isAdded)
    shape.insert(shape.begin() + axis, 1);
  else
    shape.erase(shape.begin() + axis);
  return node.make("reshape", x, {node.attr("shape", shape)});
}

static LogicalResult translateConcat(Node &node) {
  auto list = listOf(node, 0);
  if (failed(list))
    return failure();
  bool isNew = node.integer("new_axis", 0) != 0;
  int64_t asked = node.integer("axis", 0);
  SmallVector<Value> parts;
  for (const Datum &datum : *list)
    if (Value part = node.valueOf(datum))
      parts.push_back(part);
  if (parts.empty() || parts.size() != list->size())
    return node.error("expected a sequence of tensors to join");
  int64_t rank = cast<RankedTensorType>(parts[0].getType()).getRank();
  auto axis = dimension(node, asked, rank + isNew);
  if (failed(axis))
    return failure();
  if (isNew)
    for (Value &part : parts) {
      if (cast<RankedTensorType>(part.getType()).getRank() != rank)
        return node.error("expected tensors of one rank");
      part = withDimension(node, part, *axis, /*isAdded=*/true);
    }
  node.result(0, node.make("concat", parts, {node.attr("dim", *axis)}));
  return success();
}

static LogicalResult translateSplit(Node &node) {
  Value x = node.operand(0);
  if (!x)
    return node.error("the operand is missing");
  ArrayRef<int64_t> shape = node.shape(0);
  auto rank = static_cast<int64_t>(shape.size());
  auto axis = dimension(node, node.integer("axis", 0), rank);
  bool keeps = node.integer("keepdims", 1) != 0 || node.has(1);
  if (failed(axis))
    return failure();
  int64_t size = shape[*axis];
  SmallVector<int64_t> sizes;
  if (!node.has(1)) {
    sizes.assign(size, 1);
  } else {
    auto given = node.needInts(1, "the sizes");
    if (failed(given))
      return failure();
    sizes = *given;
    if (node.rank(1) == 0) { // so large is each but the last
      int64_t part = sizes[0];
      if (part < 1)
        return node.error("expected parts of at least 1");
      sizes.clear();
      for (int64_t at = 0; at < size; at += part)
        sizes.push_back(std::min(part, size - at));
    }
  }
  List list;
  int64_t at = 0;
  for (int64_t part : sizes) {
    if (part < 0 || part > size - at)
      break;
    SmallVector<int64_t> starts(rank, 0), limits(shape), strides(rank, 1);
    starts[*axis] = at;
    limits[*axis] = at += part;
    Value slice =
        node.make("slice", x,
                  {node.attr("starts", starts), node.attr("limits", limits),
                   node.attr("strides", strides)});
    if (!slice)
      return failure();
    list.push_back(
        keeps ? slice : withDimension(node, slice, *axis, /*isAdded=*/false));
  }
  if (at != size || list.size() != sizes.size())
    return node.error("expected sizes that add up to " + Twine(size));
  giveList(node, std::move(list));
  return success();
}

/// The body for each position of the first sequence.
static LogicalResult translateMap(Node &node) {
  auto body = node.graph("body");
  auto first = listOf(node, 0);
  if (!body || failed(first))
    return node.error("expected a body and a sequence");
  std::vector<List> results(node.numResults());
  for (size_t i = 0; i < first->size(); ++i) {
    SmallVector<Datum> inputs;
    for (size_t k = 0; k < node.numOperands(); ++k) {
      const Datum &datum = node.datum(k);
      if (datum.list && i >= datum.list->size())
        return node.error("expected sequences of one length");
      inputs.push_back(datum.list ? (*datum.list)[i] : datum);
    }
    auto made = node.inlineGraph(*body, inputs);
    if (failed(made))
      return failure();
    for (size_t k = 0; k < std::min(results.size(), made->size()); ++k)
      results[k].push_back((*made)[k]);
  }
  for (auto [k, list] : llvm::enumerate(results)) {
    Datum datum;
    datum.list = std::make_shared<const List>(std::move(list));
    node.result(k, datum);
  }
  return success();
}

static LogicalResult translateHasElement(Node &node) {
  auto scalar = RankedTensorType::get({}, node.builder().getI1Type());
  node.result(0, DenseElementsAttr::get(scalar, node.has(0)));
  return success();
}

static LogicalResult translateElement(Node &node) {
  if (!node.has(0))
    return node.error("expected an optional that has a value");
  node.result(0, node.datum(0));
  return success();
}

/// ai.onnx.preview.training: the gradient of a value of the graph.
static LogicalResult translateGradient(Node &node) {
  std::string y = node.text("y", "");
  size_t count = node.texts("xs").size();
  node.ignore({"zs"});
  Value of = node.valueOf(node.named(y));
  if (!of)
    return node.error("the graph has no value '" + y + "'");
  SmallVector<Value> operands = {of};
  for (size_t i = 0; i < count; ++i)
    operands.push_back(node.operand(i));
  if (llvm::is_contained(operands, Value()))
    return node.error("expected an operand for each of 'xs'");
  SmallVector<Type> types(llvm::drop_begin(ValueRange(operands).getTypes()));
  Operation *made = node.build("grad", operands, {}, types);
  for (size_t i = 0; made && i < made->getNumResults(); ++i)
    node.result(i, made->getResult(i));
  return success(made != nullptr);
}

void onnx::addSequenceOps(OpTable &table) {
  table.add("SequenceConstruct", translateConstruct);
  table.add("SequenceEmpty", translateEmpty);
  table.add("SequenceAt", translateAt);
  table.add("SequenceInsert", translateInsert);
  table.add("SequenceErase", translateErase);
  table.add("SequenceLength", translateLength);
  table.add("SequenceMap", translateMap);
  table.add("ConcatFromSequence", translateConcat);
  table.add("SplitToSequence", translateSplit);
  table.add("Optional", translateElement);
  table.add("OptionalHasElement", translateHasElement);
  table.add("OptionalGetElement", translateElement);
  table.add("ai.onnx.preview.training", "Gradient", translateGradient);
}
