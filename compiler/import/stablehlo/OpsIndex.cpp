//===- OpsIndex.cpp - StableHLO: elements by index ------------------------===//
//
// All of them are lookups of rows, or rows that are combined into a table: the
// dimensions that are addressed come first and are one, the others are the
// rows. An index of several dimensions is one number then.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/stablehlo/Reducer.h"
#include "compiler/import/stablehlo/ScanParts.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

namespace {

/// Windows of a tensor, one for each element of a batch of indices.
struct Windows {
  Sizes shape;               ///< of the tensor
  List batch;                ///< the shape of the indices
  List sizes;                ///< of a window, for each dimension of the tensor
  SmallVector<Value> starts; ///< for each dimension: i64 [batch], or null: 0
  SmallVector<bool> addressed; ///< dimensions of which not all is in a window

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  List dims(bool isAddressed) const {
    List list;
    for (int64_t d = 0; d < rank(); ++d)
      if (addressed[d] == isAddressed)
        list.push_back(d);
    return list;
  }
};

} // namespace

/// A number in a shape.
static Value filled(Node &node, Sizes shape, int64_t value) {
  return node.full(RankedTensorType::get(shape, node.builder().getI64Type()),
                   static_cast<double>(value));
}

/// At least 0 and at most `most`.
static Value clamped(Node &node, Value x, int64_t most) {
  if (!x)
    return {};
  Sizes shape = Node::typeOf(x).getShape();
  x = node.make("maximum", {x, filled(node, shape, 0)});
  return node.make("minimum", {x, filled(node, shape, most)});
}

/// The numbers of the rows, in the shape of the batch and of the window's
/// addressed dimensions.
static Value rowsOf(Node &node, const Windows &windows) {
  List dims = windows.dims(true), shape(windows.batch);
  for (int64_t dim : dims)
    shape.push_back(windows.sizes[dim]);
  if (!isTensorShape(shape))
    return (void)node.unsupported("so many indices"), Value();
  List batchDims;
  for (size_t i = 0; i < windows.batch.size(); ++i)
    batchDims.push_back(static_cast<int64_t>(i));
  Type i64 = node.builder().getI64Type();
  Value rows;
  auto add = [&](Value more) {
    rows = rows ? node.make("add", {rows, more}) : more;
  };
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    int64_t dim = dims[i];
    auto scaled = [&](Value x) {
      return stride == 1 || !x
                 ? x
                 : node.make("mul", {x, filled(node, Node::typeOf(x).getShape(),
                                               stride)});
    };
    if (Value start = windows.starts[dim])
      add(node.broadcast(scaled(start), shape, batchDims));
    if (windows.sizes[dim] > 1)
      add(scaled(node.iota(i64, shape,
                           static_cast<int64_t>(windows.batch.size() + i))));
    stride *= windows.shape[dim];
  }
  return rows ? rows : filled(node, shape, 0);
}

/// The tensor as rows: addressed dimensions as one, then the others.
static Value asTable(Node &node, Value x, const Windows &windows) {
  List order = windows.dims(true), shape = {1};
  for (int64_t dim : order)
    shape[0] *= windows.shape[dim];
  for (int64_t dim : windows.dims(false)) {
    order.push_back(dim);
    shape.push_back(windows.shape[dim]);
  }
  return node.reshape(node.permute(x, order), shape);
}

/// Dimension `labels[i]` of the result is dimension i of `x`.
static Value placed(Node &node, Value x, Sizes labels) {
  List order(labels.size());
  for (auto [i, label] : llvm::enumerate(labels))
    order[label] = static_cast<int64_t>(i);
  return node.permute(x, order);
}

//===----------------------------------------------------------------------===//
// Dynamic slices
//===----------------------------------------------------------------------===//

/// The window of a dynamic slice; false, and an error was given, if it is none.
static bool dynamicWindow(Node &node, Value x, Sizes sizes,
                          ArrayRef<Value> starts, Windows &windows) {
  windows.shape = Node::typeOf(x).getShape();
  windows.sizes.assign(sizes.begin(), sizes.end());
  int64_t rank = windows.rank();
  if (static_cast<int64_t>(sizes.size()) != rank ||
      static_cast<int64_t>(starts.size()) != rank)
    return (void)node.error("expected a start and a size for each dimension"),
           false;
  for (int64_t d = 0; d < rank; ++d) {
    if (sizes[d] < 1 || sizes[d] > windows.shape[d])
      return (void)node.error("expected slices of at most the operand's sizes"),
             false;
    auto type = dyn_cast<RankedTensorType>(starts[d].getType());
    if (type.getRank() != 0 || !isa<IntegerType>(type.getElementType()))
      return (void)node.error("expected integers as starts"), false;
    bool isWhole = sizes[d] == windows.shape[d];
    windows.addressed.push_back(!isWhole);
    windows.starts.push_back(
        isWhole
            ? Value()
            : clamped(node, node.cast(starts[d], node.builder().getI64Type()),
                      windows.shape[d] - sizes[d]));
  }
  return !node.failed();
}

/// The starts, if all that matter are known.
static std::optional<List> knownStarts(Node &node, Sizes shape, Sizes sizes,
                                       ArrayRef<Value> starts) {
  List known;
  for (auto [d, size] : llvm::enumerate(sizes)) {
    auto start = node.integerOf(starts[d]);
    if (size == shape[d])
      start = 0;
    if (!start)
      return std::nullopt;
    known.push_back(std::clamp<int64_t>(*start, 0, shape[d] - size));
  }
  return known;
}

static LogicalResult translateDynamicSlice(Node &node) {
  if (node.size() < 1 || failed(node.expect(node.size())))
    return node.error("expected operands");
  List sizes = node.integers("slice_sizes");
  Value x = node.operand(0);
  ArrayRef<Value> starts = node.all().drop_front();
  Windows windows;
  if (Value slice = scanInputOf(node, x, sizes, starts))
    return node.result(slice), success();
  if (!dynamicWindow(node, x, sizes, starts, windows))
    return failure();
  if (auto known = knownStarts(node, windows.shape, sizes, starts)) {
    List limits;
    for (auto [start, size] : llvm::zip(*known, sizes))
      limits.push_back(start + size);
    node.result(node.slice(x, *known, limits));
    return success();
  }
  Value y =
      node.make("take", {asTable(node, x, windows), rowsOf(node, windows)});
  List labels = windows.dims(true);
  llvm::append_range(labels, windows.dims(false));
  node.result(placed(node, y, labels));
  return success();
}

static Value scattered(Node &node, StringRef combine, Value table, Value rows,
                       Value updates) {
  auto kind = symbolizeCombine(combine);
  return node.make(
      "scatter", {table, rows, updates},
      {node.attr("combine", Attribute(CombineAttr::get(
                                node.builder().getContext(), *kind)))});
}

/// The table as the tensor that it was.
static Value asTensor(Node &node, Value table, const Windows &windows) {
  List labels = windows.dims(true), shape;
  llvm::append_range(labels, windows.dims(false));
  for (int64_t dim : labels)
    shape.push_back(windows.shape[dim]);
  return placed(node, node.reshape(table, shape), labels);
}

static LogicalResult translateDynamicUpdateSlice(Node &node) {
  if (node.size() < 2 || failed(node.expect(node.size())))
    return node.error("expected operands");
  Value x = node.operand(0), update = node.operand(1);
  ArrayRef<Value> starts = node.all().drop_front(2);
  if (node.rank(0) != node.rank(1) || node.element(0) != node.element(1))
    return node.error("expected an update of the operand's rank and type");
  Windows windows;
  Operation *before = scanPosition(node);
  if (!dynamicWindow(node, x, node.shape(1), starts, windows))
    return failure();
  Value y;
  if (node.shape(1) == node.shape(0)) {
    y = update;
  } else {
    List order = windows.dims(true);
    llvm::append_range(order, windows.dims(false));
    y = asTensor(node,
                 scattered(node, "set", asTable(node, x, windows),
                           rowsOf(node, windows), node.permute(update, order)),
                 windows);
  }
  node.result(y);
  noteScanOutput(node, x, update, starts, y, before);
  return success();
}

//===----------------------------------------------------------------------===//
// Gather and scatter
//===----------------------------------------------------------------------===//

namespace {

/// What gather and scatter have in common: how indices address a tensor.
struct Addressing {
  List map; ///< dimensions that the entries of an index mean
  List batching, indexBatching; ///< dimensions of tensor and indices: one
  List inserted;                ///< dimensions whose windows are of 1, left out
  int64_t vectorDim = 0;        ///< of the entries
};

} // namespace

static bool areSome(Sizes dims, int64_t rank) {
  llvm::SmallDenseSet<int64_t> seen;
  return llvm::all_of(dims, [&](int64_t dim) {
    return dim >= 0 && dim < rank && seen.insert(dim).second;
  });
}

/// Sets the batch, and the starts as they are in `indices`.
static LogicalResult findStarts(Node &node, const Addressing &how,
                                Value indices, Windows &windows) {
  auto type = Node::typeOf(indices);
  int64_t rank = windows.rank(), vector = how.vectorDim;
  if (!isa<IntegerType>(type.getElementType()))
    return node.error("expected indices of integers");
  List shape(type.getShape());
  if (vector == type.getRank())
    shape.push_back(1);
  if (vector < 0 || vector >= static_cast<int64_t>(shape.size()) ||
      shape[vector] != static_cast<int64_t>(how.map.size()) ||
      !areSome(how.map, rank) || !areSome(how.batching, rank) ||
      !areSome(how.inserted, rank) ||
      how.batching.size() != how.indexBatching.size())
    return node.error("expected dimension numbers that fit the operands");
  windows.batch = shape;
  windows.batch.erase(windows.batch.begin() + vector);
  windows.starts.assign(rank, Value());
  Type i64 = node.builder().getI64Type();
  Value all = node.cast(node.reshape(indices, shape), i64);
  for (auto [k, dim] : llvm::enumerate(how.map)) {
    List from(shape.size(), 0), to(shape);
    from[vector] = static_cast<int64_t>(k);
    to[vector] = from[vector] + 1;
    windows.starts[dim] =
        node.reshape(node.slice(all, from, to), windows.batch);
  }
  for (auto [dim, other] : llvm::zip(how.batching, how.indexBatching)) {
    int64_t at = other - (other > vector ? 1 : 0);
    if (other == vector || at < 0 ||
        at >= static_cast<int64_t>(windows.batch.size()) ||
        windows.batch[at] != windows.shape[dim] || windows.starts[dim])
      return node.error("expected batching dimensions of one size");
    windows.starts[dim] = node.iota(i64, windows.batch, at);
  }
  return failure(node.failed());
}

static LogicalResult translateGather(Node &node) {
  if (failed(node.expect(2)))
    return failure();
  node.ignore({"indices_are_sorted"});
  RankedTensorType type = node.resultType();
  DictionaryAttr numbers = node.fields("dimension_numbers");
  if (!type || !numbers)
    return failure();
  Addressing how{node.integers(numbers, "start_index_map"),
                 node.integers(numbers, "operand_batching_dims"),
                 node.integers(numbers, "start_indices_batching_dims"),
                 node.integers(numbers, "collapsed_slice_dims"),
                 node.integer(numbers, "index_vector_dim", 0)};
  List offsets = node.integers(numbers, "offset_dims");
  Windows windows;
  windows.shape = node.shape(0);
  windows.sizes = node.integers("slice_sizes");
  int64_t rank = windows.rank();
  if (static_cast<int64_t>(windows.sizes.size()) != rank ||
      !areSome(offsets, type.getRank()) || !llvm::is_sorted(offsets))
    return node.error("expected sizes for each dimension, and offsets in the "
                      "result");
  if (failed(findStarts(node, how, node.operand(1), windows)))
    return failure();
  List labels; // the place in the result of what comes out
  SmallVector<int64_t> placeOf(rank, -1);
  size_t next = 0;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t size = windows.sizes[dim];
    if (size < 1 || size > windows.shape[dim])
      return node.error("expected slices of 1 to the operand's sizes");
    bool isLeftOut = llvm::is_contained(how.inserted, dim) ||
                     llvm::is_contained(how.batching, dim);
    if (isLeftOut && size != 1)
      return node.error("expected sizes of 1 for collapsed dimensions");
    if (!isLeftOut) {
      if (next >= offsets.size())
        return node.error("expected an offset for each dimension of a slice");
      placeOf[dim] = offsets[next++];
    }
    bool isBatch = llvm::is_contained(how.batching, dim);
    bool isWhole = size == windows.shape[dim] && !isBatch && !isLeftOut;
    windows.addressed.push_back(!isWhole);
    if (isWhole)
      windows.starts[dim] = {};
    else if (Value &start = windows.starts[dim]; start && !isBatch)
      start = clamped(node, start, windows.shape[dim] - size);
  }
  if (next != offsets.size() || windows.batch.size() + offsets.size() !=
                                    static_cast<size_t>(type.getRank()))
    return node.error("expected an offset for each dimension of a slice");
  Value y = node.make(
      "take", {asTable(node, node.operand(0), windows), rowsOf(node, windows)});
  if (!y)
    return failure();
  List shape;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (!llvm::is_contained(offsets, i)) {
      shape.push_back(windows.batch[labels.size()]);
      labels.push_back(i);
    }
  for (bool isAddressed : {true, false})
    for (int64_t dim : windows.dims(isAddressed))
      if (placeOf[dim] >= 0) {
        shape.push_back(windows.sizes[dim]);
        labels.push_back(placeOf[dim]);
      }
  node.result(placed(node, node.reshape(y, shape), labels));
  return success();
}

/// A window that is not wholly inside of the tensor is left out, as in XLA.
static LogicalResult translateScatter(Node &node) {
  if (node.size() != 3)
    return node.unsupported("a scatter of several tensors");
  if (failed(node.expect(3, 1, 1)))
    return failure();
  node.ignore({"indices_are_sorted", "unique_indices"});
  DictionaryAttr numbers = node.fields("scatter_dimension_numbers");
  if (!numbers)
    return failure();
  Addressing how{node.integers(numbers, "scatter_dims_to_operand_dims"),
                 node.integers(numbers, "input_batching_dims"),
                 node.integers(numbers, "scatter_indices_batching_dims"),
                 node.integers(numbers, "inserted_window_dims"),
                 node.integer(numbers, "index_vector_dim", 0)};
  List updateDims = node.integers(numbers, "update_window_dims");
  StringRef combine;
  switch (reducerOf(node.source()->getRegion(0))) {
  case Reducer::Second:
    combine = "set";
    break;
  case Reducer::Add:
    combine = "add";
    break;
  case Reducer::Mul:
    combine = "mul";
    break;
  case Reducer::Max:
    combine = "max";
    break;
  case Reducer::Min:
    combine = "min";
    break;
  default:
    return node.unsupported("a scatter that does other than set, add, "
                            "multiply, or take the largest or smallest");
  }
  if (node.element(0).isInteger(1) && combine != "set")
    return node.unsupported("a scatter that combines truth");
  if (node.element(2) != node.element(0))
    return node.error("expected updates of the operand's element type");
  Windows windows;
  windows.shape = node.shape(0);
  int64_t rank = windows.rank();
  if (!areSome(updateDims, node.rank(2)) || !llvm::is_sorted(updateDims))
    return node.error("expected window dimensions of the updates");
  if (failed(findStarts(node, how, node.operand(1), windows)))
    return failure();
  SmallVector<int64_t> placeOf(rank, -1);
  size_t next = 0;
  Value isInside;
  for (int64_t dim = 0; dim < rank; ++dim) {
    bool isBatch = llvm::is_contained(how.batching, dim);
    int64_t size = 1;
    if (!isBatch && !llvm::is_contained(how.inserted, dim)) {
      if (next >= updateDims.size())
        return node.error("expected a window dimension of the updates for each "
                          "of the operand");
      placeOf[dim] = updateDims[next++];
      size = node.shape(2)[placeOf[dim]];
    }
    if (size > windows.shape[dim])
      return node.error("expected windows of at most the operand's sizes");
    windows.sizes.push_back(size);
    Value start = windows.starts[dim];
    windows.addressed.push_back(start || size != windows.shape[dim]);
    if (!start || isBatch)
      continue;
    Value low = node.compare("ge", start, filled(node, windows.batch, 0));
    Value high = node.compare(
        "le", start, filled(node, windows.batch, windows.shape[dim] - size));
    Value both = node.make("logical_and", {low, high});
    isInside = isInside ? node.make("logical_and", {isInside, both}) : both;
  }
  if (next != updateDims.size() || windows.batch.size() + updateDims.size() !=
                                       static_cast<size_t>(node.rank(2)))
    return node.error("expected updates of a window for each index");
  Value rows = rowsOf(node, windows);
  if (!rows)
    return failure();
  // -1 is ignored.
  if (isInside) {
    Sizes shape = Node::typeOf(rows).getShape();
    List dims;
    for (size_t i = 0; i < windows.batch.size(); ++i)
      dims.push_back(static_cast<int64_t>(i));
    rows = node.make("select", {node.broadcast(isInside, shape, dims), rows,
                                filled(node, shape, -1)});
  }
  List order, shape;
  for (int64_t i = 0; i < node.rank(2); ++i)
    if (!llvm::is_contained(updateDims, i)) {
      if (node.shape(2)[i] != windows.batch[order.size()])
        return node.error("expected updates for each index");
      order.push_back(i);
      shape.push_back(node.shape(2)[i]);
    }
  for (bool isAddressed : {true, false})
    for (int64_t dim : windows.dims(isAddressed)) {
      if (placeOf[dim] >= 0)
        order.push_back(placeOf[dim]);
      shape.push_back(windows.sizes[dim]);
    }
  Value updates = node.reshape(node.permute(node.operand(2), order), shape);
  node.result(
      asTensor(node,
               scattered(node, combine, asTable(node, node.operand(0), windows),
                         rows, updates),
               windows));
  return success();
}

void stablehlo::addIndexOps(OpTable &table) {
  table.add("dynamic_slice", translateDynamicSlice);
  table.add("dynamic_update_slice", translateDynamicUpdateSlice);
  table.add("gather", translateGather);
  table.add("scatter", translateScatter);
}
