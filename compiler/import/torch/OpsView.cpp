//===- OpsView.cpp - ATen: views ------------------------------------------===//
//
// What shares storage in PyTorch shares it here: views are made of refs. Where
// PyTorch decides by strides whether it copies (`reshape`, `contiguous`), the
// strides of the archive decide here.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/torch/Node.h"
#include "ir/Ops.h"
#include "ir/ops/Inference.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;
using List = Node::List;

static ArrayRef<int64_t> shapeOf(Value ref) {
  return cast<RefType>(ref.getType()).getShape();
}
static int64_t rankOf(Value ref) { return shapeOf(ref).size(); }

/// Sizes of which one may be -1.
static std::optional<List> completed(Node &node, ArrayRef<int64_t> given,
                                     ArrayRef<int64_t> from) {
  int64_t count = 1, known = 1;
  for (int64_t size : from)
    count *= size;
  List shape(given);
  int64_t *open = nullptr;
  for (int64_t &size : shape)
    if (size == -1 && !open)
      open = &size;
    else
      known *= size;
  if (open && known)
    *open = count / known;
  int64_t made = 1;
  for (int64_t size : shape)
    made *= size;
  if (made == count)
    return shape;
  (void)node.error("cannot view " + infer::text(from) + " as " +
                   infer::text(given));
  return std::nullopt;
}

/// Whether sizes and strides can be viewed as `shape` (PyTorch's
/// computeStride).
static bool isViewable(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides,
                       ArrayRef<int64_t> shape) {
  for (int64_t size : sizes)
    if (size == 0)
      return true;
  int64_t view = static_cast<int64_t>(shape.size()) - 1;
  int64_t chunk = strides.empty() ? 1 : strides.back();
  int64_t elements = 1, viewed = 1;
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; --d) {
    elements *= sizes[d];
    if (d != 0 && (sizes[d - 1] == 1 || strides[d - 1] == elements * chunk))
      continue;
    while (view >= 0 && (viewed < elements || shape[view] == 1))
      viewed *= shape[view--];
    if (viewed != elements)
      return false;
    if (d > 0) {
      chunk = strides[d - 1];
      elements = viewed = 1;
    }
  }
  return view == -1 || llvm::all_of(shape.take_front(view + 1),
                                    [](int64_t size) { return size == 1; });
}

/// The tensor `self` in another shape: a view where PyTorch makes one.
static LogicalResult reshapeTo(Node &node, ArrayRef<int64_t> given,
                               bool isAlwaysView = false) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  auto shape = completed(node, given, shapeOf(self));
  if (!shape)
    return failure();
  bool isView = isAlwaysView;
  if (!isView) {
    auto strides = node.strides("self");
    if (!strides || strides->size() != shapeOf(self).size())
      return node.unsupported("a reshape of a tensor of unknown strides");
    isView = isViewable(shapeOf(self), *strides, *shape);
  }
  if (isView)
    return node.view(node.reshapeView(self, *shape));
  return node.result(node.reshape(node.value("self"), *shape));
}

static LogicalResult reshape(Node &node) {
  StringRef name = node.has("shape") ? "shape" : "size";
  return reshapeTo(node, node.integers(name), node.op() != "reshape");
}

static LogicalResult reshapeAs(Node &node) {
  Value other = node.ref("other");
  if (!other)
    return failure();
  return reshapeTo(node, shapeOf(other), node.op() == "view_as");
}

static LogicalResult flatten(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  int64_t rank = rankOf(self);
  if (rank == 0)
    return reshapeTo(node, {1});
  int64_t first = node.dim("start_dim", 0, rank);
  int64_t last = node.dim("end_dim", -1, rank);
  if (node.failed() || first > last)
    return node.error("expected start_dim to be at most end_dim");
  if (first == last)
    return node.view(self);
  ArrayRef<int64_t> sizes = shapeOf(self);
  List shape(sizes.take_front(first));
  int64_t product = 1;
  for (int64_t d = first; d <= last; ++d)
    product *= sizes[d];
  shape.push_back(product);
  llvm::append_range(shape, sizes.drop_front(last + 1));
  return reshapeTo(node, shape);
}

static LogicalResult unflatten(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  int64_t d = node.dim("dim", 0, rankOf(self));
  auto sizes = completed(node, node.integers("sizes"), shapeOf(self)[d]);
  if (!sizes)
    return failure();
  List shape(shapeOf(self).take_front(d));
  llvm::append_range(shape, *sizes);
  llvm::append_range(shape, shapeOf(self).drop_front(d + 1));
  return reshapeTo(node, shape, true);
}

static LogicalResult squeeze(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  List dims = node.dims("dim", rankOf(self)), shape;
  for (auto [d, size] : llvm::enumerate(shapeOf(self)))
    if (size != 1 || !llvm::is_contained(dims, static_cast<int64_t>(d)))
      shape.push_back(size);
  return node.view(node.reshapeView(self, shape));
}

static LogicalResult unsqueeze(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  int64_t d = node.dim("dim", 0, rankOf(self) + 1);
  List shape(shapeOf(self));
  shape.insert(shape.begin() + d, 1);
  return node.view(node.reshapeView(self, shape));
}

static LogicalResult permuteBy(Node &node, ArrayRef<int64_t> order) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  if (llvm::is_sorted(order))
    return node.view(self);
  return node.view(
      node.viewOf(self, "permute", node.attr("permutation", order)));
}

static LogicalResult permute(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  List order = node.integers("dims");
  for (int64_t &d : order)
    d = d < 0 ? d + rankOf(self) : d;
  return permuteBy(node, order);
}

static List identity(int64_t rank) {
  List order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

static LogicalResult transpose(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  int64_t rank = rankOf(self);
  List order = identity(rank);
  bool isNamed = node.has("dim0") || node.has("axis0");
  StringRef a = node.has("axis0") ? "axis0" : "dim0";
  StringRef b = node.has("axis0") ? "axis1" : "dim1";
  if (isNamed && rank)
    std::swap(order[node.dim(a, 0, rank)], order[node.dim(b, 0, rank)]);
  else if (!isNamed && node.op() == "numpy_T")
    std::reverse(order.begin(), order.end());
  else if (!isNamed && rank >= 2) // t, mT, adjoint
    std::swap(order[rank - 1], order[rank - 2]);
  return permuteBy(node, order);
}

static LogicalResult movedim(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  int64_t rank = rankOf(self);
  // PyTorch takes a tensor of no dimensions for one of one there.
  if (rank == 0)
    return node.view(self);
  List from = node.integers("source"), to = node.integers("destination");
  List order(rank, -1), rest;
  if (from.size() != to.size())
    return node.error("expected as many sources as destinations");
  for (auto [a, b] : llvm::zip(from, to)) {
    a = a < 0 ? a + rank : a;
    b = b < 0 ? b + rank : b;
    if (a < 0 || b < 0 || a >= rank || b >= rank)
      return node.error("expected dimensions of " + Twine(rank));
    order[b] = a;
  }
  for (int64_t d = 0; d < rank; ++d)
    if (!llvm::is_contained(from, d))
      rest.push_back(d);
  auto next = rest.begin();
  for (int64_t &d : order)
    if (d < 0)
      d = *next++;
  return permuteBy(node, order);
}

/// Elements `start`, `start + step`, ... below `end` of a dimension.
static Value sliced(Node &node, Value ref, int64_t d, int64_t start,
                    int64_t end, int64_t step) {
  ArrayRef<int64_t> shape = shapeOf(ref);
  List starts(shape.size(), 0), limits(shape), strides(shape.size(), 1);
  starts[d] = start;
  limits[d] = std::max(start, end);
  strides[d] = step;
  if (starts[d] == 0 && limits[d] == shape[d] && step == 1)
    return ref;
  return node.viewOf(ref, "slice",
                     {node.attr("starts", starts), node.attr("limits", limits),
                      node.attr("strides", strides)});
}

/// One index of a dimension, which disappears.
static Value selected(Node &node, Value ref, int64_t d, int64_t index) {
  Value part = sliced(node, ref, d, index, index + 1, 1);
  if (!part)
    return {};
  List shape(shapeOf(part));
  shape.erase(shape.begin() + d);
  return node.reshapeView(part, shape);
}

static LogicalResult slice(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  int64_t d = node.dim("dim", 0, rankOf(self));
  if (rankOf(self) == 0)
    return node.error("expected at least one dimension");
  int64_t size = shapeOf(self)[d];
  auto within = [&](int64_t i) {
    return std::clamp(i < 0 ? i + size : i, int64_t(0), size);
  };
  int64_t start = within(node.integer("start", 0));
  int64_t end = within(node.integer("end", INT64_MAX));
  int64_t step = node.integer("step", 1);
  if (step < 1)
    return node.error("expected 'step' to be at least 1");
  return node.view(sliced(node, self, d, start, end, step));
}

static LogicalResult selectOne(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  int64_t d = node.dim("dim", 0, rankOf(self));
  int64_t size = rankOf(self) ? shapeOf(self)[d] : 0;
  int64_t index = node.integer("index", 0);
  index = index < 0 ? index + size : index;
  if (index < 0 || index >= size)
    return node.error("expected 'index' to be within " + Twine(size));
  return node.view(selected(node, self, d, index));
}

static LogicalResult narrow(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  int64_t d = node.dim("dim", 0, rankOf(self));
  int64_t size = rankOf(self) ? shapeOf(self)[d] : 0;
  int64_t start = node.integer("start", 0), length = node.integer("length", 0);
  start = start < 0 ? start + size : start;
  if (start < 0 || length < 0 || start + length > size)
    return node.error("expected the part to be within " + Twine(size));
  return node.view(sliced(node, self, d, start, start + length, 1));
}

/// Parts of these sizes of a dimension, one a result.
static LogicalResult splitBy(Node &node, Value self, int64_t d,
                             ArrayRef<int64_t> sizes) {
  int64_t at = 0;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    if (failed(node.view(i, sliced(node, self, d, at, at + size, 1))))
      return failure();
    at += size;
  }
  return success();
}

static LogicalResult split(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  int64_t d = node.dim("dim", 0, rankOf(self));
  int64_t size = rankOf(self) ? shapeOf(self)[d] : 0;
  List sizes;
  if (node.op() == "chunk") {
    int64_t chunks = std::max<int64_t>(node.integer("chunks", 1), 1);
    int64_t each = std::max<int64_t>((size + chunks - 1) / chunks, 1);
    for (int64_t at = 0; at < size || sizes.empty(); at += each)
      sizes.push_back(std::min(each, size - at));
  } else if (node.has("split_sizes")) {
    sizes = node.integers("split_sizes");
  } else if (const Argument *argument = node.argument("split_size");
             argument && argument->form == Argument::Form::Ints) {
    sizes = node.integers("split_size");
  } else {
    int64_t each = node.integer("split_size", 1);
    if (each < 1)
      return node.error("expected 'split_size' to be at least 1");
    for (int64_t at = 0; at < size || sizes.empty(); at += each)
      sizes.push_back(std::min(each, size - at));
  }
  return splitBy(node, self, d, sizes);
}

static LogicalResult tensorSplit(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  int64_t d = node.dim("dim", 0, rankOf(self));
  int64_t size = rankOf(self) ? shapeOf(self)[d] : 0;
  List sizes;
  if (node.has("sections")) {
    int64_t parts = std::max<int64_t>(node.integer("sections", 1), 1);
    for (int64_t i = 0; i < parts; ++i)
      sizes.push_back(size / parts + (i < size % parts));
  } else {
    int64_t at = 0;
    for (int64_t end : node.integers("indices")) {
      end = std::clamp(end < 0 ? end + size : end, at, size);
      sizes.push_back(end - at);
      at = end;
    }
    sizes.push_back(size - at);
  }
  return splitBy(node, self, d, sizes);
}

static LogicalResult unbind(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  int64_t d = node.dim("dim", 0, rankOf(self));
  for (int64_t i = 0, n = rankOf(self) ? shapeOf(self)[d] : 0; i < n; ++i)
    if (failed(node.view(i, selected(node, self, d, i))))
      return failure();
  return success();
}

/// Storage in a shape of which sizes are -1 (as they are) or stretched.
static Value stretched(Node &node, Value ref, ArrayRef<int64_t> given) {
  List shape(given), dims;
  int64_t rank = shape.size(), first = rank - rankOf(ref);
  if (first < 0) {
    (void)node.error("expected at least as many sizes as dimensions");
    return {};
  }
  for (int64_t d = 0; d < rankOf(ref); ++d) {
    dims.push_back(first + d);
    if (shape[first + d] == -1)
      shape[first + d] = shapeOf(ref)[d];
  }
  if (ArrayRef<int64_t>(shape) == shapeOf(ref))
    return ref;
  return node.viewOf(ref, "broadcast",
                     {node.attr("shape", shape), node.attr("dims", dims)});
}

static LogicalResult expandTo(Node &node, ArrayRef<int64_t> shape) {
  Value self = node.ref("self");
  return self ? node.view(stretched(node, self, shape)) : failure();
}

static LogicalResult expand(Node &node) {
  if (Value other = node.has("other") ? node.ref("other") : Value())
    return expandTo(node, shapeOf(other));
  return expandTo(node, node.integers("size"));
}

/// All of a list, stretched to the shape that they have together.
static LogicalResult broadcastTensors(Node &node) {
  SmallVector<Value> refs = node.refs("tensors");
  List shape;
  for (Value ref : refs) {
    if (!ref)
      return failure();
    ArrayRef<int64_t> own = shapeOf(ref);
    if (own.size() > shape.size())
      shape.insert(shape.begin(), own.size() - shape.size(), 1);
    size_t first = shape.size() - own.size();
    for (auto [d, size] : llvm::enumerate(own))
      if (size != 1)
        shape[first + d] = size;
  }
  for (auto [i, ref] : llvm::enumerate(refs))
    if (failed(node.view(i, stretched(node, ref, shape))))
      return failure();
  return success();
}

static LogicalResult diagonal(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  int64_t rank = rankOf(self);
  int64_t a = node.dim("dim1", 0, rank), b = node.dim("dim2", 1, rank);
  int64_t offset = node.integer("offset", 0);
  if (a == b)
    return node.error("expected two dimensions");
  ArrayRef<int64_t> shape = shapeOf(self);
  List strides(rank, 1), sizes, steps;
  for (int64_t d = rank - 1; d-- > 0;)
    strides[d] = strides[d + 1] * shape[d + 1];
  for (int64_t d = 0; d < rank; ++d)
    if (d != a && d != b) {
      sizes.push_back(shape[d]);
      steps.push_back(strides[d]);
    }
  int64_t down = std::max<int64_t>(-offset, 0);
  int64_t right = std::max<int64_t>(offset, 0);
  sizes.push_back(
      std::max<int64_t>(0, std::min(shape[a] - down, shape[b] - right)));
  steps.push_back(strides[a] + strides[b]);
  int64_t at = sizes.back() ? down * strides[a] + right * strides[b] : 0;
  return node.view(
      node.viewOf(self, "as_strided",
                  {node.attr("sizes", sizes), node.attr("strides", steps),
                   node.attr("offset", at)}));
}

static LogicalResult unfold(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  int64_t d = node.dim("dimension", 0, rankOf(self));
  int64_t size = node.integer("size", 1), step = node.integer("step", 1);
  ArrayRef<int64_t> shape = shapeOf(self);
  // A number is a window of one.
  if (shape.empty() && step >= 1 && (size == 0 || size == 1))
    return node.view(node.viewOf(self, "as_strided",
                                 {node.attr("sizes", List{size}),
                                  node.attr("strides", List{1}),
                                  node.attr("offset", int64_t(0))}));
  if (shape.empty() || step < 1 || size < 0 || size > shape[d])
    return node.error("expected windows within " + infer::text(shape));
  List strides(shape.size(), 1);
  for (size_t i = shape.size() - 1; i-- > 0;)
    strides[i] = strides[i + 1] * shape[i + 1];
  List sizes(shape), steps(strides);
  sizes[d] = (shape[d] - size) / step + 1;
  steps[d] = strides[d] * step;
  sizes.push_back(size);
  steps.push_back(strides[d]);
  return node.view(
      node.viewOf(self, "as_strided",
                  {node.attr("sizes", sizes), node.attr("strides", steps),
                   node.attr("offset", int64_t(0))}));
}

static LogicalResult asStrided(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  if (!node.isWhole("self"))
    return node.unsupported("as_strided of a part of a tensor, or of one that "
                            "is not contiguous");
  return node.view(
      node.viewOf(self, "as_strided",
                  {node.attr("sizes", node.integers("size")),
                   node.attr("strides", node.integers("stride")),
                   node.attr("offset", node.integer("storage_offset", 0))}));
}

static LogicalResult alias(Node &node) { return node.view(node.ref("self")); }

static LogicalResult detached(Node &node) {
  Value self = node.ref("self");
  return node.view(self ? node.viewOf(self, "detach", {}) : self);
}

static LogicalResult copy(Node &node) {
  return node.result(node.value("self"));
}

/// A copy unless its strides are those of what it is asked for.
static LogicalResult contiguous(Node &node) {
  Value self = node.ref("self");
  auto strides = node.strides("self");
  if (!self)
    return failure();
  int64_t expected = 1;
  bool isDense = strides.has_value();
  for (size_t d = strides ? strides->size() : 0; isDense && d-- > 0;) {
    isDense = shapeOf(self)[d] == 1 || (*strides)[d] == expected;
    expected *= shapeOf(self)[d];
  }
  return isDense ? node.view(self) : node.result(node.value("self"));
}

/// `to` and what it becomes: a cast, a copy, or the tensor itself.
static LogicalResult to(Node &node) {
  Value self = node.ref("self");
  if (!self)
    return failure();
  Type from = cast<RefType>(self.getType()).getElementType();
  Type type = node.elementType("dtype");
  if (Value other = !type && node.has("other") ? node.ref("other") : Value())
    type = cast<RefType>(other.getType()).getElementType();
  if (node.failed())
    return failure();
  type = type ? type : from;
  bool isCopy = node.op() == "_to_copy" || node.flag("copy", false);
  if (type == from && !isCopy)
    return node.view(self);
  Expr x = node.value("self");
  if (type.isInteger(1) && type != from)
    return node.result(compare(ComparePredicate::ne, x, x.like(0)));
  return node.result(node.cast(x, type));
}

static LogicalResult viewType(Node &node) {
  Value self = node.ref("self");
  Type type = node.elementType("dtype");
  if (!self || !type)
    return failure();
  auto from = cast<RefType>(self.getType());
  if (from.getElementType().getIntOrFloatBitWidth() !=
      type.getIntOrFloatBitWidth())
    return node.unsupported("a view as elements of another width");
  if (from.getElementType() == type)
    return node.view(self);
  return node.view(
      node.viewOf(self, "bitcast", {},
                  RefType::get(node.context(), from.getShape(), type)));
}

void torch::addViewOps(OpTable &table) {
  table.add("view _unsafe_view reshape view_copy _reshape_alias", reshape);
  table.add("view.dtype", viewType);
  table.add("view_as reshape_as", reshapeAs);
  table.add("flatten", flatten);
  table.add("unflatten", unflatten);
  table.add("squeeze squeeze_copy", squeeze);
  table.add("unsqueeze unsqueeze_copy", unsqueeze);
  table.add("permute permute_copy", permute);
  table.add("transpose t numpy_T mT adjoint matrix_H swapaxes swapdims "
            "transpose_copy t_copy",
            transpose);
  table.add("movedim moveaxis", movedim);
  table.add("slice slice_copy", slice);
  table.add("select select_copy", selectOne);
  table.add("narrow", narrow);
  table.add("split split_with_sizes chunk split_copy split_with_sizes_copy",
            split);
  table.add("tensor_split", tensorSplit);
  table.add("unbind unbind_copy", unbind);
  table.add("expand expand_as broadcast_to expand_copy", expand);
  table.add("broadcast_tensors", broadcastTensors);
  table.add("diagonal diagonal_copy", diagonal);
  table.add("unfold", unfold);
  table.add("as_strided as_strided_copy", asStrided);
  table.add("alias lift lift_fresh positive alias_copy", alias);
  table.add("detach detach_copy", detached);
  table.add("clone lift_fresh_copy", copy);
  table.add("contiguous", contiguous);
  table.add("to _to_copy type_as", to);
}
