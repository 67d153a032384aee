//===- OpsShape.cpp - ATen: moves that copy -------------------------------===//
#include "compiler/import/torch/Node.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;
using List = Node::List;

static Type elementOf(const Expr &x) { return x.type().getElementType(); }

/// The function of this name of `self` with these attributes.
static LogicalResult apply(Node &node, StringRef function,
                           ArrayRef<NamedAttribute> attributes) {
  Expr x = node.value("self");
  return node.result(x ? node.make(function, x.value, attributes) : x);
}

static LogicalResult joined(Node &node) {
  SmallVector<Value> given = node.values("tensors"), parts;
  RankedTensorType type = node.resultType(0);
  bool isStack = node.op() == "stack";
  Type element;
  if (type)
    element = type.getElementType();
  int64_t rank = 0;
  for (Value value : given) {
    if (!value)
      return failure();
    auto shape = cast<RankedTensorType>(value.getType());
    element = element ? element : shape.getElementType();
    // An empty vector joins anything.
    if (!isStack && shape.getRank() == 1 && shape.getDimSize(0) == 0)
      continue;
    rank = shape.getRank();
    parts.push_back(value);
  }
  if (parts.empty() && !given.empty())
    parts.push_back(given[0]);
  if (parts.empty())
    return node.error("expected at least one tensor");
  for (Value &part : parts)
    part = node.cast(node.wrap(part), element);
  rank = cast<RankedTensorType>(parts[0].getType()).getRank() + isStack;
  return node.result(node.make(isStack ? "stack" : "cat", parts,
                               node.attr("dim", node.dim("dim", 0, rank))));
}

static LogicalResult repeat(Node &node) {
  return apply(node, "repeat",
               node.attr("repeats",
                         node.integers(node.has("dims") ? "dims" : "repeats")));
}

static LogicalResult tile(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  List repeats = node.integers("dims");
  size_t rank = cast<RefType>(self.getType()).getShape().size();
  if (repeats.size() < rank)
    repeats.insert(repeats.begin(), rank - repeats.size(), 1);
  return apply(node, "repeat", node.attr("repeats", repeats));
}

static LogicalResult repeatInterleave(Node &node) {
  if (node.isTensor("repeats"))
    return node.unsupported("repeats that are data");
  SmallVector<NamedAttribute> list = {
      node.attr("repeats", node.integer("repeats", 1))};
  if (node.has("dim"))
    list.push_back(node.attr("dim", node.integer("dim", 0)));
  return apply(node, "repeat_interleave", list);
}

static LogicalResult roll(Node &node) {
  SmallVector<NamedAttribute> list = {
      node.attr("shifts", node.integers("shifts"))};
  if (node.has("dims") && !node.integers("dims").empty())
    list.push_back(node.attr("dim", node.integers("dims")));
  return apply(node, "roll", list);
}

/// Quarter turns: flips, and what stands across.
static LogicalResult rot90(Node &node) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  List plane = node.integers("dims", {0, 1});
  if (plane.size() != 2 || x.rank() < 2)
    return node.error("expected two dimensions");
  for (int64_t &d : plane)
    d += d < 0 ? x.rank() : 0;
  int64_t turns = ((node.integer("k", 1) % 4) + 4) % 4;
  if (turns == 0)
    return node.result(x);
  List flipped = turns == 1   ? List{plane[1]}
                 : turns == 2 ? plane
                              : List{plane[0]};
  x = node.make("flip", x.value, node.attr("dim", flipped));
  if (turns == 2 || !x)
    return node.result(x);
  List order;
  for (int64_t d = 0; d < x.rank(); ++d)
    order.push_back(d == plane[0] ? plane[1] : d == plane[1] ? plane[0] : d);
  return node.result(
      node.make("permute", x.value, node.attr("permutation", order)));
}

/// [n, groups c, ...] with the two halves of its channels exchanged.
static LogicalResult channelShuffle(Node &node) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  int64_t groups = node.integer("groups", 1);
  if (x.rank() < 2 || groups < 1 || x.dim(1) % groups != 0)
    return node.error("expected channels that 'groups' divides");
  List shape(x.shape()), parts = shape, order;
  parts[1] = x.dim(1) / groups;
  parts.insert(parts.begin() + 1, groups);
  for (int64_t d = 0, n = static_cast<int64_t>(parts.size()); d < n; ++d)
    order.push_back(d == 1 ? 2 : d == 2 ? 1 : d);
  x = node.make("permute", node.reshape(x, parts).value,
                node.attr("permutation", order));
  return node.result(x ? node.reshape(x, shape) : x);
}

/// Of a matrix its diagonal, of a vector the matrix.
static LogicalResult diag(Node &node) {
  Expr x = node.value("self");
  NamedAttribute offset = node.attr("offset", node.integer("diagonal", 0));
  return node.result(
      x ? node.make(x.rank() == 1 ? "diag_embed" : "diagonal", x.value, offset)
        : x);
}

static LogicalResult padded(Node &node) {
  List pad = node.integers("pad", {});
  if (node.has("padding"))
    pad = node.integers("padding");
  std::string mode = node.text("mode", "constant");
  StringRef op = node.op();
  if (op.starts_with("reflection_pad"))
    mode = "reflect";
  else if (op.starts_with("replication_pad"))
    mode = "replicate";
  NamedAttribute attribute = node.attr("pad", pad);
  if (mode == "reflect")
    return apply(node, "reflection_pad", attribute);
  if (mode == "replicate")
    return apply(node, "replication_pad", attribute);
  if (mode == "circular")
    return apply(node, "circular_pad", attribute);
  Expr x = node.value("self");
  if (!x)
    return failure();
  Value number =
      node.has("value") ? node.scalar("value", elementOf(x)).value : Value();
  auto made = node.call("constant_pad", {x.value, number}, attribute);
  return node.result(made.empty() ? Value() : made[0]);
}

static LogicalResult triangle(Node &node) {
  return apply(node, node.op(),
               node.attr("diagonal", node.integer("diagonal", 0)));
}

static LogicalResult selectScatter(Node &node) {
  Expr x = node.value("self"), source = node.value("src");
  if (!x || !source)
    return failure();
  SmallVector<NamedAttribute> list = {
      node.attr("dim", node.dim("dim", 0, x.rank()))};
  if (node.op() == "select_scatter") {
    list.push_back(node.attr("index", node.integer("index", 0)));
    return node.result(node.make("select_scatter", {x, source}, list));
  }
  int64_t size = x.dim(node.dim("dim", 0, x.rank()));
  auto within = [&](int64_t i) {
    return std::clamp(i < 0 ? i + size : i, int64_t(0), size);
  };
  list.push_back(node.attr("start", within(node.integer("start", 0))));
  list.push_back(node.attr("end", within(node.integer("end", INT64_MAX))));
  list.push_back(node.attr("step", node.integer("step", 1)));
  return node.result(node.make("slice_scatter", {x, source}, list));
}

static LogicalResult im2col(Node &node) {
  SmallVector<NamedAttribute> list;
  for (StringRef name : {"kernel_size", "dilation", "padding", "stride"})
    list.push_back(
        node.attr(name, node.integersFor(name, 2, name == "padding" ? 0 : 1)));
  bool isFold = node.op() == "col2im";
  if (isFold)
    list.push_back(node.attr("output_size", node.integers("output_size")));
  return apply(node, isFold ? "fold" : "unfold", list);
}

static LogicalResult meshgrid(Node &node) {
  SmallVector<Value> parts = node.values("tensors");
  for (Value &part : parts) {
    if (!part)
      return failure();
    Expr x = node.wrap(part);
    part = x.rank() == 0 ? node.reshape(x, {1}).value : part;
  }
  auto made = node.makeAll("meshgrid", parts,
                           node.attr("indexing", node.text("indexing", "ij")));
  for (auto [i, value] : llvm::enumerate(made))
    if (failed(node.result(i, value)))
      return failure();
  return made.empty() ? failure() : success();
}

/// upsample_nearest2d(self, output_size, scales_h, scales_w), or `.vec`.
static LogicalResult upsample(Node &node) {
  StringRef self = node.has("input") ? "input" : "self";
  Expr x = node.value(self);
  if (!x)
    return failure();
  StringRef op = node.op();
  op.consume_front("_");
  bool isAntialiased = op.ends_with("_aa");
  op.consume_back("_aa");
  StringRef kind = op.drop_front(StringRef("upsample_").size()).drop_back(2);
  std::string mode = kind.str();
  if (kind == "nearest_exact")
    mode = "nearest-exact";
  if (isAntialiased)
    return node.unsupported("an antialiased resize");
  RankedTensorType type = node.resultType(0);
  SmallVector<NamedAttribute> list = {
      node.attr("mode", mode),
      node.attr("align_corners", node.flag("align_corners", false))};
  if (!type)
    return node.unsupported("a size that is not known");
  // A scale that was given counts, and not the ratio of the sizes.
  SmallVector<double> scales = node.numbers("scale_factors");
  static constexpr StringRef names[] = {"scales_d", "scales_h", "scales_w"};
  int64_t spatial = x.rank() - 2;
  if (scales.empty() && spatial == 1 && node.has("scales"))
    scales = {node.number("scales", 1)};
  if (scales.empty() && spatial <= 3 && spatial >= 1 &&
      node.has(names[3 - spatial]))
    for (int64_t i = 3 - spatial; i < 3; ++i)
      scales.push_back(node.number(names[i], 1));
  List sizes(type.getShape().drop_front(2));
  bool isExact = true;
  for (auto [i, scale] : llvm::enumerate(scales))
    isExact &= static_cast<double>(x.dim(i + 2)) * scale ==
               static_cast<double>(sizes[i]);
  if (!scales.empty() && !isExact)
    list.push_back(node.builder().getNamedAttr(
        "scale_factor", node.builder().getDenseF64ArrayAttr(scales)));
  else
    list.push_back(node.attr("size", sizes));
  return node.result(node.make("interpolate", x.value, list));
}

static LogicalResult gridSample(Node &node) {
  static constexpr StringRef modes[] = {"bilinear", "nearest", "bicubic"};
  static constexpr StringRef paddings[] = {"zeros", "border", "reflection"};
  Expr x = node.value("input"), grid = node.value("grid");
  int64_t mode = node.integer("interpolation_mode", 0);
  int64_t padding = node.integer("padding_mode", 0);
  if (mode < 0 || mode > 2 || padding < 0 || padding > 2)
    return node.error("expected a mode from 0 to 2");
  if (!x || !grid)
    return failure();
  return node.result(node.make(
      "grid_sample", {x, grid},
      {node.attr("mode", modes[mode]),
       node.attr("padding_mode", paddings[padding]),
       node.attr("align_corners", node.flag("align_corners", false))}));
}

void torch::addShapeOps(OpTable &table) {
  table.add("cat concat concatenate stack", joined);
  table.add("repeat", repeat);
  table.add("tile", tile);
  table.add("repeat_interleave", repeatInterleave);
  table.add("flip", [](Node &node) {
    Expr x = node.value("self");
    // Of no dimensions it is what it was.
    if (!x || x.rank() == 0)
      return node.result(x);
    return apply(node, "flip", node.attr("dim", node.integers("dims")));
  });
  table.add("roll", roll);
  table.add("rot90", rot90);
  table.add("channel_shuffle", channelShuffle);
  table.add("diag", diag);
  table.add("constant_pad_nd pad reflection_pad1d reflection_pad2d "
            "reflection_pad3d replication_pad1d replication_pad2d "
            "replication_pad3d",
            padded);
  table.add("tril triu", triangle);
  table.add("pixel_shuffle", [](Node &node) {
    // Of no channels nothing is made.
    if (RankedTensorType type = node.resultType();
        type && type.getNumElements() == 0)
      return node.result(node.full(type.getElementType(), type.getShape(), 0));
    return apply(
        node, "pixel_shuffle",
        node.attr("upscale_factor", node.integer("upscale_factor", 1)));
  });
  table.add("pixel_unshuffle", [](Node &node) {
    return apply(
        node, "pixel_unshuffle",
        node.attr("downscale_factor", node.integer("downscale_factor", 1)));
  });
  table.add("diag_embed", [](Node &node) {
    return apply(node, "diag_embed",
                 {node.attr("offset", node.integer("offset", 0)),
                  node.attr("dim1", node.integer("dim1", -2)),
                  node.attr("dim2", node.integer("dim2", -1))});
  });
  table.add("select_scatter slice_scatter", selectScatter);
  table.add("im2col col2im", im2col);
  table.add("meshgrid", meshgrid);
  table.add("upsample_nearest1d upsample_nearest2d upsample_nearest3d "
            "upsample_bilinear2d upsample_linear1d upsample_trilinear3d "
            "upsample_bicubic2d _upsample_nearest_exact1d "
            "_upsample_nearest_exact2d _upsample_nearest_exact3d "
            "_upsample_bilinear2d_aa _upsample_bicubic2d_aa",
            upsample);
  table.add("grid_sampler grid_sampler_2d grid_sampler_3d", gridSample);
}
