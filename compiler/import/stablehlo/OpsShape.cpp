//===- OpsShape.cpp - StableHLO: constants and moved elements -------------===//
#include "compiler/import/stablehlo/Node.h"
#include "ir/Ops.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

static LogicalResult translateConstant(Node &node) {
  if (failed(node.expect(0)))
    return failure();
  Attribute value = node.attribute("value");
  RankedTensorType type = node.resultType();
  if (!type)
    return failure();
  auto elements = dyn_cast_or_null<DenseIntOrFPElementsAttr>(value);
  if (auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    bool isSplat = false;
    if (!blob ||
        !DenseElementsAttr::isValidRawBuffer(type, blob->getData(), isSplat) ||
        type.getElementType().isInteger(1))
      return node.unsupported("elements that are kept outside of the text");
    elements = cast<DenseIntOrFPElementsAttr>(
        DenseElementsAttr::getFromRawBuffer(type, blob->getData()));
  }
  if (!elements)
    return node.error("expected the elements of a tensor");
  node.result(node.constant(elements));
  return success();
}

static LogicalResult translateIota(Node &node) {
  if (failed(node.expect(0)))
    return failure();
  RankedTensorType type = node.resultType();
  if (!type)
    return failure();
  int64_t dim = node.integer("iota_dimension", -1);
  if (dim < 0 || dim >= type.getRank())
    return node.error("expected a dimension of the result");
  node.result(node.iota(type.getElementType(), type.getShape(), dim));
  return success();
}

static LogicalResult translateReshape(Node &node) {
  if (failed(node.expect(1)))
    return failure();
  RankedTensorType type = node.resultType();
  if (!type)
    return failure();
  if (type.getNumElements() != node.type(0).getNumElements())
    return node.error("expected as many elements as the operand has");
  node.result(node.reshape(node.operand(0), type.getShape()));
  return success();
}

/// True if the dimensions are some of `rank`, each once.
static bool areDims(Sizes dims, int64_t rank) {
  SmallVector<bool> seen(rank, false);
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank || seen[dim])
      return false;
    seen[dim] = true;
  }
  return true;
}

static LogicalResult translateTranspose(Node &node) {
  if (failed(node.expect(1)))
    return failure();
  List order = node.integers("permutation");
  if (static_cast<int64_t>(order.size()) != node.rank(0) ||
      !areDims(order, node.rank(0)))
    return node.error("expected an order of the operand's dimensions");
  node.result(node.permute(node.operand(0), order));
  return success();
}

static LogicalResult translateBroadcastInDim(Node &node) {
  if (failed(node.expect(1)))
    return failure();
  RankedTensorType type = node.resultType();
  if (!type)
    return failure();
  node.ignore({"known_expanding_dimensions", "known_nonexpanding_dimensions"});
  List dims = node.integers("broadcast_dimensions");
  if (static_cast<int64_t>(dims.size()) != node.rank(0) ||
      !areDims(dims, type.getRank()))
    return node.error("expected a dimension of the result for each of the "
                      "operand");
  for (auto [i, dim] : llvm::enumerate(dims))
    if (int64_t size = node.shape(0)[i];
        size != 1 && size != type.getDimSize(dim))
      return node.error("expected dimension " + Twine(i) +
                        " of the operand, of " + Twine(size) +
                        ", to be 1 or the result's size");
  Value x = node.operand(0);
  // Dimensions of the result in rising order.
  List order(dims.size());
  for (auto [i, entry] : llvm::enumerate(order))
    entry = static_cast<int64_t>(i);
  llvm::sort(order, [&](int64_t a, int64_t b) { return dims[a] < dims[b]; });
  x = node.permute(x, order);
  llvm::sort(dims);
  // Where nothing is repeated but dimensions of 1 come in, it is a reshape.
  if (x && Node::typeOf(x).getNumElements() == type.getNumElements())
    x = node.reshape(x, type.getShape());
  node.result(node.broadcast(x, type.getShape(), dims));
  return success();
}

static LogicalResult translateBroadcast(Node &node) {
  if (failed(node.expect(1)))
    return failure();
  List sizes = node.integers("broadcast_sizes");
  List shape(sizes), dims;
  llvm::append_range(shape, node.shape(0));
  for (int64_t i = 0; i < node.rank(0); ++i)
    dims.push_back(static_cast<int64_t>(sizes.size()) + i);
  node.result(node.broadcast(node.operand(0), shape, dims));
  return success();
}

static LogicalResult translateSlice(Node &node) {
  if (failed(node.expect(1)))
    return failure();
  List starts = node.integers("start_indices");
  List limits = node.integers("limit_indices");
  List strides = node.integers("strides", List(starts.size(), 1));
  node.result(node.slice(node.operand(0), starts, limits, strides));
  return success();
}

static LogicalResult translateConcatenate(Node &node) {
  if (node.size() == 0 || failed(node.expect(node.size())))
    return node.error("expected operands");
  int64_t dim = node.integer("dimension", -1);
  if (dim < 0 || dim >= node.rank(0))
    return node.error("expected a dimension of the operands");
  node.result(node.size() == 1
                  ? node.operand(0)
                  : node.make("concat", node.all(), {node.attr("dim", dim)}));
  return success();
}

static LogicalResult translateReverse(Node &node) {
  if (failed(node.expect(1)))
    return failure();
  List dims = node.integers("dimensions");
  if (!areDims(dims, node.rank(0)))
    return node.error("expected dimensions of the operand");
  llvm::sort(dims);
  node.result(dims.empty() ? node.operand(0)
                           : node.make("reverse", node.operand(0),
                                       {node.attr("dims", dims)}));
  return success();
}

/// Negative sizes take away, which happens after the spreading.
static LogicalResult translatePad(Node &node) {
  if (failed(node.expect(2)))
    return failure();
  List low = node.integers("edge_padding_low");
  List high = node.integers("edge_padding_high");
  List interior = node.integers("interior_padding", List(low.size(), 0));
  auto rank = static_cast<size_t>(node.rank(0));
  if (low.size() != rank || high.size() != rank || interior.size() != rank)
    return node.error("expected sizes for each dimension of the operand");
  if (node.rank(1) != 0 || node.element(1) != node.element(0))
    return node.error("expected one number to pad with");
  if (llvm::any_of(interior, [](int64_t n) { return n < 0; }))
    return node.error("expected no negative sizes between elements");
  auto paddedBy = [&](Value x, Attribute value) -> Value {
    List before, after, starts, limits;
    for (size_t d = 0; d < rank; ++d) {
      before.push_back(std::max<int64_t>(low[d], 0));
      after.push_back(std::max<int64_t>(high[d], 0));
    }
    Value y =
        node.make("pad", x,
                  {node.attr("low", before), node.attr("high", after),
                   node.attr("interior", interior), node.attr("value", value)});
    if (!y)
      return {};
    bool isCut = false;
    for (size_t d = 0; d < rank; ++d) {
      starts.push_back(std::max<int64_t>(-low[d], 0));
      limits.push_back(Node::typeOf(y).getDimSize(d) -
                       std::max<int64_t>(-high[d], 0));
      isCut |= low[d] < 0 || high[d] < 0;
    }
    return isCut ? node.slice(y, starts, limits) : y;
  };
  Value number = node.operand(1);
  if (auto constant = number.getDefiningOp<ConstantOp>()) {
    node.result(paddedBy(node.operand(0), constant.getSplat()));
    return success();
  }
  // A number that is not known comes in where a padded mask is false.
  OpBuilder &b = node.builder();
  Value y = paddedBy(node.operand(0), b.getZeroAttr(node.element(0)));
  Value all = node.full(node.type(0).clone(b.getI1Type()), 1);
  Value mask = paddedBy(all, b.getBoolAttr(false));
  if (!y || !mask)
    return failure();
  Value fill = node.broadcast(number, Node::typeOf(y).getShape(), {});
  node.result(node.make("select", {mask, y, fill}));
  return success();
}

void stablehlo::addShapeOps(OpTable &table) {
  table.add("constant", translateConstant);
  table.addNamed("chlo.constant", translateConstant);
  table.add("iota", translateIota);
  table.add("reshape", translateReshape);
  table.add("transpose", translateTranspose);
  table.add("broadcast_in_dim", translateBroadcastInDim);
  table.add("broadcast", translateBroadcast);
  table.add("slice", translateSlice);
  table.add("concatenate", translateConcatenate);
  table.add("reverse", translateReverse);
  table.add("pad", translatePad);
}
