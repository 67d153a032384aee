//===- OpsWindow.cpp - StableHLO: convolutions, and windows that are reduced
//===//
#include "compiler/import/stablehlo/Reducer.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

/// The sizes before and after each of `count` dimensions.
static std::optional<std::pair<List, List>> paddingOf(Node &node,
                                                      size_t count) {
  List all = node.integers("padding", List(2 * count, 0)), low, high;
  if (all.size() != 2 * count)
    return (void)node.error("expected two sizes of padding for each dimension"),
           std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    low.push_back(all[2 * i]);
    high.push_back(all[2 * i + 1]);
  }
  return std::pair(low, high);
}

/// `count` integers, at least 1; empty, and an error was given, if not.
static List positive(Node &node, StringRef name, size_t count) {
  List list = node.integers(name, List(count, 1));
  if (list.size() == count &&
      llvm::all_of(list, [](int64_t n) { return n >= 1 && n < (1ll << 31); }))
    return list;
  (void)node.error("expected '" + name +
                   "' to have a number of at least 1 for "
                   "each dimension");
  return List(count, 1);
}

/// Pads with a number; negative sizes take away.
static Value padded(Node &node, Value x, Sizes low, Sizes high, Sizes interior,
                    double fill) {
  if (!x)
    return {};
  List before, after, starts, limits;
  bool isCut = false, isPadded = false;
  for (size_t d = 0; d < low.size(); ++d) {
    before.push_back(std::max<int64_t>(low[d], 0));
    after.push_back(std::max<int64_t>(high[d], 0));
    isPadded |= before[d] || after[d] || interior[d];
    isCut |= low[d] < 0 || high[d] < 0;
  }
  Type element = Node::typeOf(x).getElementType();
  Value y = x;
  if (isPadded)
    y = node.make("pad", x,
                  {node.attr("low", before), node.attr("high", after),
                   node.attr("interior", interior),
                   node.attr("value", Attribute(node.builder().getFloatAttr(
                                          element, fill)))});
  if (!isCut || !y)
    return y;
  for (size_t d = 0; d < low.size(); ++d) {
    starts.push_back(std::max<int64_t>(-low[d], 0));
    limits.push_back(Node::typeOf(y).getDimSize(d) -
                     std::max<int64_t>(-high[d], 0));
  }
  return node.slice(y, starts, limits);
}

//===----------------------------------------------------------------------===//
// Convolution
//===----------------------------------------------------------------------===//

namespace {

/// Where the dimensions of the three tensors are.
struct Numbers {
  List input, kernel, output; ///< batch, feature (or in, out), then the spatial
};

} // namespace

static std::optional<Numbers> numbersOf(Node &node) {
  DictionaryAttr fields = node.fields("dimension_numbers");
  if (!fields)
    return std::nullopt;
  auto list = [&](StringRef first, StringRef second, StringRef spatial) {
    List all = {node.integer(fields, first, -1),
                node.integer(fields, second, -1)};
    llvm::append_range(all, node.integers(fields, spatial));
    return all;
  };
  Numbers made{list("input_batch_dimension", "input_feature_dimension",
                    "input_spatial_dimensions"),
               list("kernel_output_feature_dimension",
                    "kernel_input_feature_dimension",
                    "kernel_spatial_dimensions"),
               list("output_batch_dimension", "output_feature_dimension",
                    "output_spatial_dimensions")};
  auto isOrder = [](List order, int64_t rank) {
    llvm::sort(order);
    for (auto [i, dim] : llvm::enumerate(order))
      if (dim != static_cast<int64_t>(i))
        return false;
    return static_cast<int64_t>(order.size()) == rank;
  };
  RankedTensorType type = node.resultType();
  if (!type)
    return std::nullopt;
  if (isOrder(made.input, node.rank(0)) && isOrder(made.kernel, node.rank(1)) &&
      isOrder(made.output, type.getRank()) && node.rank(0) == node.rank(1) &&
      node.rank(0) == type.getRank())
    return made;
  (void)node.error("expected dimension numbers of tensors of one rank, each "
                   "once");
  return std::nullopt;
}

static List inverse(Sizes order) {
  List made(order.size());
  for (auto [i, dim] : llvm::enumerate(order))
    made[dim] = static_cast<int64_t>(i);
  return made;
}

/// The groups of the batch become groups of features: [G n, C, ...] as
/// [n, G C, ...].
static Value batchGroups(Node &node, Value x, int64_t groups) {
  if (!x)
    return {};
  List shape(Node::typeOf(x).getShape());
  List split = {groups, shape[0] / groups};
  split.append(shape.begin() + 1, shape.end());
  List order = {1, 0};
  for (size_t i = 2; i < split.size(); ++i)
    order.push_back(static_cast<int64_t>(i));
  List joined = {shape[0] / groups, groups * shape[1]};
  joined.append(shape.begin() + 2, shape.end());
  return node.reshape(node.permute(node.reshape(x, split), order), joined);
}

static LogicalResult translateConvolution(Node &node) {
  if (failed(node.expect(2)))
    return failure();
  node.ignore({"precision_config"});
  auto numbers = numbersOf(node);
  if (!numbers)
    return failure();
  RankedTensorType type = node.resultType();
  size_t spatial = numbers->input.size() - 2;
  List strides = positive(node, "window_strides", spatial);
  List spread = positive(node, "lhs_dilation", spatial);
  List dilation = positive(node, "rhs_dilation", spatial);
  List reversal = node.integers("window_reversal", List(spatial, 0));
  auto padding = paddingOf(node, spatial);
  int64_t groups = node.integer("feature_group_count", 1);
  int64_t batches = node.integer("batch_group_count", 1);
  if (node.failed() || !padding)
    return failure();
  if (reversal.size() != spatial)
    return node.error("expected 'window_reversal' for each dimension");
  if (groups < 1 || batches < 1 || (groups > 1 && batches > 1) ||
      node.shape(0)[numbers->input[0]] % batches)
    return node.error("expected groups of features or of the batch");
  if (spatial > 3)
    return node.unsupported("a convolution over " + Twine(spatial) +
                            " dimensions");
  Type element = type.getElementType(), compute = element;
  for (Type one : {element, node.element(0), node.element(1)}) {
    if (!isa<FloatType>(one))
      return node.unsupported("convolutions of integers");
    if (one.getIntOrFloatBitWidth() > compute.getIntOrFloatBitWidth())
      compute = one;
  }
  Value x = node.permute(node.cast(node.operand(0), compute), numbers->input);
  Value w = node.permute(node.cast(node.operand(1), compute), numbers->kernel);
  if (batches > 1) {
    x = batchGroups(node, x, batches);
    groups = batches;
  }
  List turned;
  for (size_t i = 0; i < spatial; ++i)
    if (reversal[i])
      turned.push_back(static_cast<int64_t>(i + 2));
  if (!turned.empty())
    w = node.make("reverse", w, {node.attr("dims", turned)});
  // What the convolution itself cannot pad: between elements, and less than
  // nothing.
  auto [low, high] = *padding;
  bool isPlain = llvm::all_of(spread, [](int64_t n) { return n == 1; }) &&
                 llvm::all_of(low, [](int64_t n) { return n >= 0; }) &&
                 llvm::all_of(high, [](int64_t n) { return n >= 0; });
  if (!isPlain) {
    List before(2, 0), after(2, 0), between(2, 0);
    for (size_t i = 0; i < spatial; ++i) {
      before.push_back(low[i]);
      after.push_back(high[i]);
      between.push_back(spread[i] - 1);
    }
    x = padded(node, x, before, after, between, 0);
    low.assign(spatial, 0);
    high.assign(spatial, 0);
  }
  if (!x || !w)
    return failure();
  List shape; // of the result, as [batch, feature, spatial...]
  for (int64_t dim : numbers->output)
    shape.push_back(type.getDimSize(dim));
  if (spatial == 0) {
    List wide(Node::typeOf(x).getShape()), tall(Node::typeOf(w).getShape());
    wide.push_back(1);
    tall.push_back(1);
    x = node.reshape(x, wide);
    w = node.reshape(w, tall);
    strides = dilation = {1};
    low = high = {0};
  }
  // Of two dimensions [top, bottom, left, right]: before and after of each.
  List sides;
  for (size_t i = 0; i < low.size(); ++i) {
    sides.push_back(low[i]);
    sides.push_back(high[i]);
  }
  SmallVector<NamedAttribute> attributes = {
      node.attr("strides", strides), node.attr("padding", sides),
      node.attr("dilation", dilation), node.attr("groups", groups)};
  Value y = spatial == 2 ? node.make("conv2d", {x, w}, attributes)
                         : node.call("conv", {x, w}, attributes);
  if (y && spatial == 0)
    y = node.reshape(y, shape);
  node.result(node.cast(node.permute(y, inverse(numbers->output)), element));
  return success();
}

//===----------------------------------------------------------------------===//
// Windows that are reduced
//===----------------------------------------------------------------------===//

namespace {

/// The windows of a tensor as those of a pooling: two dimensions in front, then
/// those over which windows go.
struct Pooling {
  List order;    ///< of the tensor's dimensions
  List in, out;  ///< the shapes of tensor and result, as [N, C, spatial...]
  List outOrder; ///< the result's sizes in `order`
  List kernel, strides, dilation, low, high;

  size_t count() const { return kernel.size(); }
};

} // namespace

/// Finds it for windows over `shape`, padded already where `low`, `high` are.
static std::optional<Pooling> poolingOf(Node &node, Sizes shape, Sizes window,
                                        Sizes strides, Sizes dilation,
                                        Sizes low, Sizes high) {
  Pooling made;
  List spatial;
  for (int64_t d = 0, rank = shape.size(); d < rank; ++d) {
    bool isWindow = window[d] != 1 || strides[d] != 1 || low[d] || high[d];
    (isWindow ? spatial : made.order).push_back(d);
  }
  if (spatial.size() > 3)
    return (void)node.unsupported("windows over " + Twine(spatial.size()) +
                                  " dimensions"),
           std::nullopt;
  // [a, b] stay; what else there is becomes one.
  if (made.order.size() == 2) {
    for (int64_t d : made.order)
      made.in.push_back(shape[d]);
  } else {
    int64_t size = 1;
    for (int64_t d : made.order)
      size *= shape[d];
    made.in = {size, 1};
  }
  made.out = made.in;
  for (int64_t d : made.order)
    made.outOrder.push_back(shape[d]);
  for (int64_t d : spatial) {
    made.order.push_back(d);
    made.in.push_back(shape[d]);
    int64_t span = (window[d] - 1) * dilation[d] + 1;
    int64_t whole = shape[d] + low[d] + high[d];
    if (whole < span)
      return (void)node.unsupported("windows that are larger than what they "
                                    "are over"),
             std::nullopt;
    made.out.push_back((whole - span) / strides[d] + 1);
    made.outOrder.push_back(made.out.back());
    made.kernel.push_back(window[d]);
    made.strides.push_back(strides[d]);
    made.dilation.push_back(dilation[d]);
    made.low.push_back(low[d]);
    made.high.push_back(high[d]);
  }
  return made;
}

static SmallVector<NamedAttribute> attributesOf(Node &node,
                                                const Pooling &pooling) {
  List sides;
  for (size_t i = 0; i < pooling.count(); ++i) {
    sides.push_back(pooling.low[i]);
    sides.push_back(pooling.high[i]);
  }
  return {node.attr("kernel", pooling.kernel),
          node.attr("strides", pooling.strides),
          node.attr("dilation", pooling.dilation), node.attr("padding", sides)};
}

/// Sums or products up to each element: a window of all before it. Null if the
/// windows are others.
static Value running(Node &node, Value x, bool isSum, Sizes window,
                     Sizes strides, Sizes dilation, Sizes low, Sizes high) {
  int64_t along = -1;
  for (size_t d = 0; d < window.size(); ++d) {
    if (window[d] == 1 && strides[d] == 1 && !low[d] && !high[d])
      continue;
    if (along >= 0 || strides[d] != 1 || dilation[d] != 1 ||
        window[d] != Node::typeOf(x).getDimSize(d))
      return {};
    along = static_cast<int64_t>(d);
  }
  if (along < 0)
    return {};
  int64_t all = window[along] - 1;
  bool isReverse = low[along] == 0 && high[along] == all && all;
  if (!isReverse && (low[along] != all || high[along] != 0))
    return {};
  SmallVector<NamedAttribute> attributes = {node.attr("dim", along)};
  if (isSum) {
    if (isReverse)
      attributes.push_back(node.unit("reverse"));
    return node.make("cumsum", x, attributes);
  }
  auto turned = [&](Value value) {
    return isReverse
               ? node.make("reverse", value, {node.attr("dims", Sizes{along})})
               : value;
  };
  return turned(node.call("cumprod", turned(x), attributes));
}

static LogicalResult translateReduceWindow(Node &node) {
  if (node.size() != 2)
    return node.unsupported("windows of several tensors");
  if (failed(node.expect(2, 1, 1)))
    return failure();
  auto rank = static_cast<size_t>(node.rank(0));
  List window = node.integers("window_dimensions");
  if (window.size() != rank)
    return node.error("expected 'window_dimensions' for each dimension");
  window = positive(node, "window_dimensions", rank);
  List strides = positive(node, "window_strides", rank);
  List spread = positive(node, "base_dilations", rank);
  List dilation = positive(node, "window_dilations", rank);
  auto padding = paddingOf(node, rank);
  if (node.failed() || !padding)
    return failure();
  auto [low, high] = *padding;
  Value x = node.operand(0), init = node.operand(1);
  if (node.rank(1) != 0 || node.element(1) != node.element(0))
    return node.error("expected a number of the operand's type to begin with");
  Reducer reducer = reducerOf(node.source()->getRegion(0));
  bool isSum = reducer == Reducer::Add;
  bool isNumber = isa<FloatType>(node.element(0));
  bool isSpread = llvm::any_of(spread, [](int64_t n) { return n != 1; });
  if ((isSum || reducer == Reducer::Mul) && !isSpread &&
      isNeutral(node, reducer, init) && !node.element(0).isInteger(1))
    if (Value made =
            running(node, x, isSum, window, strides, dilation, low, high))
      return node.result(made), success();
  if (!isSum && reducer != Reducer::Max && reducer != Reducer::Min)
    return node.unsupported("windows reduced by other than add, maximum, "
                            "minimum");
  if (!isNumber)
    return node.unsupported("windows of integers");
  if (!isNeutral(node, reducer, init))
    return node.unsupported("windows that do not begin at what changes "
                            "nothing");
  if (reducer == Reducer::Min)
    x = node.make("neg", x);
  double fill = isSum ? 0 : -std::numeric_limits<double>::infinity();
  // A pooling pads by half a window at most.
  bool isOwn = isSpread;
  for (size_t d = 0; d < rank; ++d) {
    int64_t half = ((window[d] - 1) * dilation[d] + 1) / 2;
    isOwn |= low[d] < 0 || high[d] < 0 || low[d] > half || high[d] > half;
  }
  if (isOwn) {
    List between;
    for (int64_t n : spread)
      between.push_back(n - 1);
    x = padded(node, x, low, high, between, fill);
    low.assign(rank, 0);
    high.assign(rank, 0);
  }
  if (!x)
    return failure();
  auto pooling = poolingOf(node, Node::typeOf(x).getShape(), window, strides,
                           dilation, low, high);
  if (!pooling)
    return failure();
  Value y = x;
  if (pooling->count()) {
    y = node.reshape(node.permute(x, pooling->order), pooling->in);
    SmallVector<NamedAttribute> attributes = attributesOf(node, *pooling);
    if (isSum)
      attributes.push_back(node.attr("divisor_override", int64_t(1)));
    y = node.call(isSum ? "avg_pool" : "max_pool", y, attributes);
    y = node.permute(node.reshape(y, pooling->outOrder),
                     inverse(pooling->order));
  }
  if (reducer == Reducer::Min)
    y = node.make("neg", y);
  node.result(y);
  return success();
}

/// Adds each element of the source where its window has its maximum: the
/// gradient of a pooling. Of equal ones the first counts, as in the dialect.
static LogicalResult translateSelectAndScatter(Node &node) {
  if (failed(node.expect(3, 1, 2)))
    return failure();
  auto rank = static_cast<size_t>(node.rank(0));
  List window = positive(node, "window_dimensions", rank);
  List strides = positive(node, "window_strides", rank);
  auto padding = paddingOf(node, rank);
  if (node.failed() || !padding)
    return failure();
  std::string select = Node::spelling(node.source()->getRegion(0));
  bool isMax = StringRef(select).starts_with("compare GE ") &&
               StringRef(select).ends_with(" a0 a1; return t0");
  bool isMin = StringRef(select).starts_with("compare LE ") &&
               StringRef(select).ends_with(" a0 a1; return t0");
  if ((!isMax && !isMin) || StringRef(select).contains("TOTALORDER") ||
      reducerOf(node.source()->getRegion(1)) != Reducer::Add)
    return node.unsupported("other than adding where the largest or smallest "
                            "of each window is");
  if (!isa<FloatType>(node.element(0)) || node.element(1) != node.element(0) ||
      node.type(2) != RankedTensorType::get({}, node.element(0)))
    return node.unsupported("windows of integers");
  auto [low, high] = *padding;
  Value x = node.operand(0);
  if (isMin)
    x = node.make("neg", x);
  x = padded(node, x, low, high, List(rank, 0),
             -std::numeric_limits<double>::infinity());
  if (!x)
    return failure();
  List zeros(rank, 0), ones(rank, 1), whole(Node::typeOf(x).getShape());
  auto pooling = poolingOf(node, whole, window, strides, ones, zeros, zeros);
  if (!pooling)
    return failure();
  if (pooling->count() > 2)
    return node.unsupported("windows over three dimensions");
  while (pooling->count() < 2) {
    pooling->in.push_back(1);
    pooling->out.push_back(1);
    for (List *list : {&pooling->kernel, &pooling->strides, &pooling->dilation})
      list->push_back(1);
    pooling->low.push_back(0);
    pooling->high.push_back(0);
  }
  for (auto [i, dim] : llvm::enumerate(pooling->order))
    if (node.rank(1) != node.rank(0) ||
        node.shape(1)[dim] != pooling->outOrder[i])
      return node.error("expected a source of one element for each window");
  Value in = node.reshape(node.permute(x, pooling->order), pooling->in);
  Value dy =
      node.reshape(node.permute(node.operand(1), pooling->order), pooling->out);
  SmallVector<Value> pooled =
      node.makeAll("max_pool2d", in, attributesOf(node, *pooling));
  if (pooled.size() != 2)
    return failure();
  Value dx = node.make("max_pool2d_grad", {dy, pooled[1]},
                       {node.attr("shape", pooling->in)});
  List inOrder;
  for (int64_t dim : pooling->order)
    inOrder.push_back(whole[dim]);
  Value y = node.permute(node.reshape(dx, inOrder), inverse(pooling->order));
  List minusLow, minusHigh;
  for (size_t d = 0; d < rank; ++d) {
    minusLow.push_back(-low[d]);
    minusHigh.push_back(-high[d]);
  }
  y = padded(node, y, minusLow, minusHigh, zeros, 0);
  if (y && !isNeutral(node, Reducer::Add, node.operand(2)))
    y = node.make("add", {y, node.broadcast(node.operand(2),
                                            Node::typeOf(y).getShape(), {})});
  node.result(y);
  return success();
}

void stablehlo::addWindowOps(OpTable &table) {
  table.add("convolution", translateConvolution);
  table.add("reduce_window", translateReduceWindow);
  table.add("select_and_scatter", translateSelectAndScatter);
}
