//===- OpsShape.cpp - ONNX: moving elements -------------------------------===//
//
// Shapes, axes, starts and the like are attributes in old versions and operands
// in new ones; then they must be known.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/Known.h"
#include "compiler/import/onnx/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

using List = SmallVector<int64_t>;

/// Attribute `name` before version `version`, operand `i` from it on; nothing
/// if that is absent.
static FailureOr<std::optional<List>> listOf(Node &node, StringRef name,
                                             size_t i, int64_t version) {
  if (node.opset() < version) {
    if (!node.hasAttribute(name))
      return std::optional<List>();
    return std::optional<List>(node.integers(name));
  }
  if (!node.has(i))
    return std::optional<List>();
  auto given = node.needInts(i, ("'" + name + "'").str());
  if (failed(given))
    return failure();
  return std::optional<List>(*given);
}

//===----------------------------------------------------------------------===//
// The same elements in another shape
//===----------------------------------------------------------------------===//

static LogicalResult translateReshape(Node &node) {
  node.ignore({"consumed_inputs"});
  if (failed(expectOperands(node, node.opset() < 5 ? 1 : 2)))
    return failure();
  auto given = listOf(node, "shape", 1, 5);
  bool zeros = node.integer("allowzero", 0) != 0;
  if (failed(given))
    return failure();
  if (!*given)
    return node.error("expected a shape");
  List shape = **given;
  for (auto [d, size] : llvm::enumerate(shape)) {
    if (size != 0 || zeros)
      continue;
    if (int64_t(d) >= node.rank(0))
      return node.error("expected a dimension " + Twine(d) +
                        " of the operand, which the shape copies");
    size = node.shape(0)[d];
  }
  return give(node, node.call("view", node.operand(0),
                              node.attr("shape", ArrayRef(shape))));
}

static LogicalResult translateSqueeze(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  auto axes = listOf(node, "axes", 1, 13);
  if (failed(axes))
    return failure();
  if (!*axes)
    return give(node, node.call("squeeze", node.operand(0)));
  auto dims = dimensions(node, "axes", **axes, node.rank(0));
  if (failed(dims))
    return failure();
  for (int64_t dim : *dims)
    if (node.shape(0)[dim] != 1)
      return node.error("expected dimension " + Twine(dim) +
                        " to be 1, but got " + Twine(node.shape(0)[dim]));
  return give(node, node.call("squeeze", node.operand(0),
                              node.attr("dim", ArrayRef<int64_t>(*dims))));
}

static LogicalResult translateUnsqueeze(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  auto axes = listOf(node, "axes", 1, 13);
  if (failed(axes))
    return failure();
  if (!*axes)
    return node.error("expected axes");
  return give(node, node.call("unsqueeze", node.operand(0),
                              node.attr("dim", ArrayRef<int64_t>(**axes))));
}

static LogicalResult translateFlatten(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  int64_t rank = node.rank(0), axis = node.integer("axis", 1);
  if (axis < -rank || axis > rank)
    return node.error("expected 'axis' to be in [" + Twine(-rank) + ", " +
                      Twine(rank) + "], but got " + Twine(axis));
  axis += axis < 0 ? rank : 0;
  List shape{1, 1};
  for (auto [d, size] : llvm::enumerate(node.shape(0)))
    shape[int64_t(d) < axis ? 0 : 1] *= size;
  return give(node, node.call("view", node.operand(0),
                              node.attr("shape", ArrayRef(shape))));
}

static LogicalResult translateTranspose(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  int64_t rank = node.rank(0);
  List order = node.integers("perm");
  if (!node.hasAttribute("perm"))
    for (int64_t d = rank; d-- > 0;)
      order.push_back(d);
  auto dims = dimensions(node, "'perm'", order, rank);
  if (failed(dims))
    return failure();
  if (int64_t(dims->size()) != rank)
    return node.error("expected 'perm' to have " + Twine(rank) +
                      " entries, but got " + Twine(dims->size()));
  if (rank == 0)
    return give(node, node.operand(0));
  return give(node,
              node.make("permute", node.operand(0),
                        node.attr("permutation", ArrayRef<int64_t>(*dims))));
}

static LogicalResult translateExpand(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  auto shape = node.needInts(1, "the shape");
  if (failed(shape))
    return failure();
  // Both stretch: a 1 in the shape keeps the operand's size.
  List wide(*shape);
  int64_t missing = node.rank(0) - int64_t(wide.size());
  if (missing > 0)
    wide.insert(wide.begin(), missing, 1);
  int64_t before = int64_t(wide.size()) - node.rank(0);
  for (int64_t d = 0; d < node.rank(0); ++d)
    if (wide[before + d] == 1)
      wide[before + d] = node.shape(0)[d];
  return give(node, node.call("expand", node.operand(0),
                              node.attr("shape", ArrayRef(wide))));
}

//===----------------------------------------------------------------------===//
// Parts and wholes
//===----------------------------------------------------------------------===//

static LogicalResult translateSlice(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  auto starts = listOf(node, "starts", 1, 10);
  auto ends = listOf(node, "ends", 2, 10);
  auto axes = listOf(node, "axes", 3, 10);
  auto steps = node.opset() < 10
                   ? FailureOr<std::optional<List>>(std::optional<List>())
                   : listOf(node, "steps", 4, 10);
  if (failed(starts) || failed(ends) || failed(axes) || failed(steps))
    return failure();
  if (!*starts || !*ends)
    return node.error("expected starts and ends");
  size_t count = (*starts)->size();
  List all;
  for (size_t i = 0; i < count; ++i)
    all.push_back(i);
  auto dims = dimensions(node, "axes", *axes ? **axes : all, node.rank(0));
  if (failed(dims))
    return failure();
  if ((*ends)->size() != count || dims->size() != count ||
      (*steps && (*steps)->size() != count))
    return node.error("expected as many ends, axes and steps as starts, of "
                      "which there are " +
                      Twine(count));
  Value y = node.operand(0);
  for (size_t i = 0; i < count && y; ++i)
    y = node.call("slice_along", y,
                  {node.attr("dim", (*dims)[i]),
                   node.attr("start", (**starts)[i]),
                   node.attr("end", (**ends)[i]),
                   node.attr("step", *steps ? (**steps)[i] : int64_t(1))});
  return give(node, y);
}

static LogicalResult translateSplit(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  auto dim = dimension(node, "'axis'", node.integer("axis", 0), node.rank(0));
  auto sizes = node.opset() == 1 && !node.hasAttribute("split") && node.has(1)
                   ? listOf(node, "split", 1, 1)
                   : listOf(node, "split", 1, 13);
  if (failed(dim) || failed(sizes))
    return failure();
  int64_t whole = node.shape(0)[*dim];
  List parts;
  if (*sizes) {
    parts = **sizes;
  } else {
    int64_t count =
        node.integer("num_outputs", static_cast<int64_t>(node.numResults()));
    if (count < 1 || count != static_cast<int64_t>(node.numResults()))
      return node.error("expected " + Twine(node.numResults()) +
                        " parts, but got " + Twine(count));
    // The last part is smaller where they cannot be equal.
    int64_t size = (whole + count - 1) / count;
    for (int64_t i = 0; i < count; ++i)
      parts.push_back(std::max<int64_t>(0, std::min(size, whole - i * size)));
  }
  if (parts.size() < node.numResults())
    return node.error("expected " + Twine(node.numResults()) +
                      " parts, but got " + Twine(parts.size()));
  SmallVector<Value> made = node.callAll(
      "split", node.operand(0),
      {node.attr("dim", *dim), node.attr("sizes", ArrayRef<int64_t>(parts))});
  if (made.empty())
    return failure();
  for (size_t i = 0; i < node.numResults(); ++i)
    node.result(i, made[i]);
  return success();
}

static LogicalResult translateConcat(Node &node) {
  size_t count = node.numOperands();
  if (failed(expectOperands(node, std::max<size_t>(count, 1))))
    return failure();
  if (node.opset() >= 4 && !node.hasAttribute("axis"))
    return node.error("expected the attribute 'axis'");
  auto dim = dimension(node, "'axis'", node.integer("axis", 1), node.rank(0));
  if (failed(dim))
    return failure();
  SmallVector<Value> parts;
  for (size_t i = 0; i < count; ++i)
    parts.push_back(node.operand(i));
  return give(node, node.call("cat", parts, node.attr("dim", *dim)));
}

static LogicalResult translateTile(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  auto repeats = node.needInts(1, "the repeats");
  if (failed(repeats))
    return failure();
  if (node.opset() < 6) {
    // One number of tiles along one axis.
    auto axis = node.needInt(2, "the axis");
    if (failed(axis))
      return failure();
    auto dim = dimension(node, "the axis", *axis, node.rank(0));
    if (failed(dim) || repeats->size() != 1)
      return node.error("expected one number of tiles");
    List all(node.rank(0), 1);
    all[*dim] = repeats->front();
    *repeats = all;
  }
  if (int64_t(repeats->size()) != node.rank(0))
    return node.error("expected " + Twine(node.rank(0)) + " repeats, but got " +
                      Twine(repeats->size()));
  return give(node,
              node.call("repeat", node.operand(0),
                        node.attr("repeats", ArrayRef<int64_t>(*repeats))));
}

//===----------------------------------------------------------------------===//
// Around a tensor
//===----------------------------------------------------------------------===//

static LogicalResult translatePad(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  std::string mode =
      node.choice("mode", {"constant", "reflect", "edge", "wrap"});
  auto pads = listOf(node, node.opset() < 2 ? "paddings" : "pads", 1, 11);
  if (failed(pads))
    return failure();
  if (!*pads)
    return node.error("expected pads");
  int64_t rank = node.rank(0);
  List all;
  for (int64_t d = 0; d < rank; ++d)
    all.push_back(d);
  FailureOr<List> dims = all;
  if (node.opset() >= 18 && node.has(3)) {
    auto axes = node.needInts(3, "the axes");
    if (failed(axes) || failed(dims = dimensions(node, "axes", *axes, rank)))
      return failure();
  }
  size_t count = dims->size();
  if ((*pads)->size() != 2 * count)
    return node.error("expected " + Twine(2 * count) + " pads, but got " +
                      Twine((*pads)->size()));
  // The function wants before and after of each dimension, the last one first.
  List pad(2 * rank, 0);
  for (auto [i, dim] : llvm::enumerate(*dims)) {
    pad[2 * (rank - 1 - dim)] = (**pads)[i];
    pad[2 * (rank - 1 - dim) + 1] = (**pads)[count + i];
  }
  NamedAttribute margins = node.attr("pad", ArrayRef<int64_t>(pad));
  if (mode != "constant") {
    static constexpr std::pair<StringRef, StringRef> names[] = {
        {"reflect", "reflection_pad"},
        {"edge", "replication_pad"},
        {"wrap", "circular_pad"}};
    for (auto [theirs, mine] : names)
      if (mode == theirs)
        return give(node, node.call(mine, node.operand(0), margins));
    return failure();
  }
  if (node.opset() < 11)
    return give(node, node.call("constant_pad", node.operand(0),
                                {margins,
                                 node.attr("value", node.number("value", 0))}));
  SmallVector<Value> operands{node.operand(0)};
  if (node.has(2)) {
    // A known number is part of the view; any other is chosen by a mask.
    if (auto known = node.knownNumbers(2); known && known->size() == 1)
      return give(node,
                  node.call("constant_pad", operands,
                            {margins, node.attr("value", known->front())}));
    Value number = node.operand(2);
    if (!number)
      return failure();
    if (node.type(2).getNumElements() != 1)
      return node.error("expected one number to pad with");
    operands.push_back(node.wrap(number).reshape({}));
  }
  return give(node, node.call("constant_pad", operands, margins));
}

/// What is cut off or put around, the same on both sides.
static LogicalResult translateCenterCropPad(Node &node) {
  if (failed(expectOperands(node, 2)))
    return failure();
  auto target = node.needInts(1, "the shape");
  int64_t rank = node.rank(0);
  List all;
  for (int64_t d = 0; d < rank; ++d)
    all.push_back(d);
  auto dims = dimensions(node, "'axes'", node.integers("axes", all), rank);
  if (failed(target) || failed(dims))
    return failure();
  if (dims->size() != target->size())
    return node.error("expected a size for each axis, but got " +
                      Twine(target->size()) + " for " + Twine(dims->size()));
  List pad(2 * rank, 0);
  for (auto [dim, size] : llvm::zip(*dims, *target)) {
    if (size < 1)
      return node.error("expected sizes of at least 1, but got " + Twine(size));
    int64_t have = node.shape(0)[dim], more = std::abs(size - have);
    int64_t before = more / 2, after = more - before;
    // When cutting, the odd one is cut off at the end, and so when padding it
    // is put there.
    int64_t sign = size < have ? -1 : 1;
    pad[2 * (rank - 1 - dim)] = sign * before;
    pad[2 * (rank - 1 - dim) + 1] = sign * after;
  }
  return give(node, node.call("constant_pad", node.operand(0),
                              node.attr("pad", ArrayRef(pad))));
}

//===----------------------------------------------------------------------===//
// Blocks, triangles, ranges
//===----------------------------------------------------------------------===//

static LogicalResult translateDepthToSpace(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  std::string mode = node.choice("mode", {"DCR", "CRD"});
  return give(node,
              node.call("depth_to_space", node.operand(0),
                        {node.attr("blocksize", node.integer("blocksize", 0)),
                         node.attr("mode", StringRef(mode))}));
}

static LogicalResult translateSpaceToDepth(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  std::string mode = node.choice("mode", {"DCR", "CRD"});
  return give(node,
              node.call("space_to_depth", node.operand(0),
                        {node.attr("blocksize", node.integer("blocksize", 0)),
                         node.attr("mode", StringRef(mode))}));
}

/// The sum of patches at their places in images.
static LogicalResult translateCol2Im(Node &node) {
  if (failed(expectOperands(node, 3)))
    return failure();
  auto size = node.needInts(1, "the size of the images");
  auto kernel = node.needInts(2, "the size of the patches");
  if (failed(size) || failed(kernel))
    return failure();
  size_t n = size->size();
  List dilations = node.integers("dilations", List(n, 1));
  List strides = node.integers("strides", List(n, 1));
  List pads = node.integers("pads", List(2 * n, 0));
  return give(node, node.call("fold", node.operand(0),
                              {node.attr("output_size", ArrayRef(*size)),
                               node.attr("kernel_size", ArrayRef(*kernel)),
                               node.attr("dilation", ArrayRef(dilations)),
                               node.attr("stride", ArrayRef(strides)),
                               node.attr("padding", ArrayRef(pads))}));
}

static LogicalResult translateTrilu(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  bool upper = node.integer("upper", 1) != 0;
  int64_t diagonal = 0;
  if (node.has(1)) {
    auto given = node.needInt(1, "the diagonal");
    if (failed(given))
      return failure();
    diagonal = *given;
  }
  return give(node, node.call(upper ? "triu" : "tril", node.operand(0),
                              node.attr("diagonal", diagonal)));
}

static LogicalResult translateEyeLike(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  Type element = node.hasAttribute("dtype")
                     ? node.elementTypeOf(node.integer("dtype", 1))
                     : node.elementType(0);
  int64_t diagonal = node.integer("k", 0);
  if (!element)
    return failure();
  if (node.rank(0) != 2)
    return node.error("expected a matrix, but got rank " + Twine(node.rank(0)));
  Value y = node.call("eye", {},
                      {node.attr("n", node.shape(0)[0]),
                       node.attr("m", node.shape(0)[1]),
                       node.attr("diagonal", diagonal)});
  return give(node, castTo(node, y, element));
}

static LogicalResult translateRange(Node &node) {
  if (failed(expectOperands(node, 3)))
    return failure();
  Type element = node.elementType(0);
  auto type = [&](int64_t count) {
    return RankedTensorType::get(count, element);
  };
  auto isTooLong = [&](double count) {
    return count > double(kMaxElements)
               ? node.error("would have more elements than a tensor can have")
               : success();
  };
  if (isa<FloatType>(element)) {
    auto start = node.needNumber(0, "the start");
    auto limit = node.needNumber(1, "the limit");
    auto delta = node.needNumber(2, "the step");
    if (failed(start) || failed(limit) || failed(delta))
      return failure();
    double count = std::ceil((*limit - *start) / *delta);
    if (!std::isfinite(count))
      return node.error("expected a finite number of elements");
    if (failed(isTooLong(count)))
      return failure();
    auto n = static_cast<int64_t>(std::max(count, 0.0));
    Value i = node.make("iota", {}, node.attr("dim", int64_t(0)),
                        RankedTensorType::get(n, node.builder().getF64Type()));
    if (!i)
      return failure();
    return give(node, castTo(node, node.wrap(i) * *delta + *start, element));
  }
  auto start = node.needInt(0, "the start"),
       limit = node.needInt(1, "the limit");
  auto delta = node.needInt(2, "the step");
  if (failed(start) || failed(limit) || failed(delta))
    return failure();
  if (*delta == 0)
    return node.error("expected a step that is not 0");
  double count = std::ceil((double(*limit) - double(*start)) / double(*delta));
  if (failed(isTooLong(count)))
    return failure();
  auto n = static_cast<int64_t>(std::max(count, 0.0));
  SmallVector<int64_t> values;
  // Short ones are shapes and the like, and as large as may be.
  if (n <= 4096) {
    SmallVector<mlir::Attribute> list;
    for (int64_t i = 0; i < n; ++i)
      list.push_back(IntegerAttr::get(
          element, APInt(element.getIntOrFloatBitWidth(),
                         uint64_t(*start) + uint64_t(i) * uint64_t(*delta),
                         /*isSigned=*/true, /*implicitTrunc=*/true)));
    return give(node, node.constant(DenseElementsAttr::get(type(n), list)));
  }
  Value i = node.make("iota", {}, node.attr("dim", int64_t(0)), type(n));
  if (!i)
    return failure();
  return give(node, node.wrap(i) * double(*delta) + double(*start));
}

void onnx::addShapeOps(OpTable &table) {
  table.add("Reshape", translateReshape);
  table.add("Squeeze", translateSqueeze);
  table.add("Unsqueeze", translateUnsqueeze);
  table.add("Flatten", translateFlatten);
  table.add("Transpose", translateTranspose);
  table.add("Expand", translateExpand);
  table.add("Slice", translateSlice);
  table.add("Split", translateSplit);
  table.add("Concat", translateConcat);
  table.add("Tile", translateTile);
  table.add("Pad", translatePad);
  table.add("CenterCropPad", translateCenterCropPad);
  table.add("DepthToSpace", translateDepthToSpace);
  table.add("SpaceToDepth", translateSpaceToDepth);
  table.add("Col2Im", translateCol2Im, 18);
  table.add("Trilu", translateTrilu);
  table.add("EyeLike", translateEyeLike);
  table.add("Range", translateRange);
}
