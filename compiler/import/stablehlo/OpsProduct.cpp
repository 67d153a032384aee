//===- OpsProduct.cpp - StableHLO: sums of products -----------------------===//
#include "compiler/import/stablehlo/Node.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

namespace {

/// One factor of a dot_general.
struct Factor {
  Value value;
  List batch, contracted, free;

  int64_t product(Sizes dims) const {
    int64_t size = 1;
    for (int64_t dim : dims)
      size *= Node::typeOf(value).getDimSize(dim);
    return size;
  }
};

} // namespace

/// The dimensions that are neither; nothing if one is there twice or is none.
static std::optional<List> otherDims(int64_t rank, Sizes a, Sizes b) {
  SmallVector<bool> seen(rank, false);
  for (Sizes list : {a, b})
    for (int64_t dim : list) {
      if (dim < 0 || dim >= rank || seen[dim])
        return std::nullopt;
      seen[dim] = true;
    }
  List others;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!seen[dim])
      others.push_back(dim);
  return others;
}

static List joined(std::initializer_list<Sizes> lists) {
  List all;
  for (Sizes list : lists)
    llvm::append_range(all, list);
  return all;
}

/// The factor as [batch, first, second] (without a batch dimension if there is
/// none), `isSwapped` if it lies the other way round already.
static Value asMatrices(Node &node, const Factor &factor, bool freeFirst,
                        bool &isSwapped) {
  List usual = freeFirst
                   ? joined({factor.batch, factor.free, factor.contracted})
                   : joined({factor.batch, factor.contracted, factor.free});
  List other = freeFirst
                   ? joined({factor.batch, factor.contracted, factor.free})
                   : joined({factor.batch, factor.free, factor.contracted});
  isSwapped = !llvm::is_sorted(usual) && llvm::is_sorted(other);
  int64_t free = factor.product(factor.free);
  int64_t contracted = factor.product(factor.contracted);
  List shape;
  if (!factor.batch.empty())
    shape.push_back(factor.product(factor.batch));
  bool isFreeFirst = freeFirst != isSwapped;
  shape.push_back(isFreeFirst ? free : contracted);
  shape.push_back(isFreeFirst ? contracted : free);
  return node.reshape(node.permute(factor.value, isSwapped ? other : usual),
                      shape);
}

static LogicalResult translateProduct(Node &node, Factor lhs, Factor rhs) {
  RankedTensorType type = node.resultType();
  if (!type)
    return failure();
  // What is asked for here is never more than what f32 gives.
  node.ignore({"precision_config", "algorithm"});
  auto free = otherDims(node.rank(0), lhs.batch, lhs.contracted);
  auto others = otherDims(node.rank(1), rhs.batch, rhs.contracted);
  if (!free || !others || lhs.batch.size() != rhs.batch.size() ||
      lhs.contracted.size() != rhs.contracted.size())
    return node.error(
        "expected pairs of dimensions of the operands, each once");
  lhs.free = *free;
  rhs.free = *others;
  for (auto [a, b] : llvm::zip(joined({lhs.batch, lhs.contracted}),
                               joined({rhs.batch, rhs.contracted})))
    if (node.shape(0)[a] != node.shape(1)[b])
      return node.error("expected dimension " + Twine(a) + " of the lhs (" +
                        Twine(node.shape(0)[a]) + ") to equal dimension " +
                        Twine(b) + " of the rhs (" + Twine(node.shape(1)[b]) +
                        ")");
  Type element = type.getElementType();
  if (!isa<FloatType>(element) || !isa<FloatType>(node.element(0)) ||
      !isa<FloatType>(node.element(1)))
    return node.unsupported("products of integers");
  // In the widest of the three types.
  Type compute = element;
  for (Type one : {node.element(0), node.element(1)})
    if (one.getIntOrFloatBitWidth() > compute.getIntOrFloatBitWidth())
      compute = one;
  lhs.value = node.cast(lhs.value, compute);
  rhs.value = node.cast(rhs.value, compute);
  if (!lhs.value || !rhs.value)
    return failure();
  bool transposeLhs, transposeRhs;
  Value a = asMatrices(node, lhs, /*freeFirst=*/true, transposeLhs);
  Value b = asMatrices(node, rhs, /*freeFirst=*/false, transposeRhs);
  SmallVector<NamedAttribute> attributes;
  if (transposeLhs)
    attributes.push_back(node.unit("transpose_lhs"));
  if (transposeRhs)
    attributes.push_back(node.unit("transpose_rhs"));
  Value y = node.make("matmul", {a, b}, attributes);
  List shape;
  for (int64_t dim : joined({lhs.batch, lhs.free}))
    shape.push_back(node.shape(0)[dim]);
  for (int64_t dim : rhs.free)
    shape.push_back(node.shape(1)[dim]);
  node.result(node.cast(node.reshape(y, shape), element));
  return success();
}

static LogicalResult translateDotGeneral(Node &node) {
  if (failed(node.expect(2)))
    return failure();
  DictionaryAttr numbers = node.fields("dot_dimension_numbers");
  Factor lhs{node.operand(0),
             node.integers(numbers, "lhs_batching_dimensions"),
             node.integers(numbers, "lhs_contracting_dimensions"),
             {}};
  Factor rhs{node.operand(1),
             node.integers(numbers, "rhs_batching_dimensions"),
             node.integers(numbers, "rhs_contracting_dimensions"),
             {}};
  return node.failed() ? failure() : translateProduct(node, lhs, rhs);
}

static LogicalResult translateDot(Node &node) {
  if (failed(node.expect(2)))
    return failure();
  if (node.rank(0) < 1 || node.rank(1) < 1)
    return node.error("expected vectors or matrices");
  return translateProduct(node, {node.operand(0), {}, {node.rank(0) - 1}, {}},
                          {node.operand(1), {}, {0}, {}});
}

void stablehlo::addProductOps(OpTable &table) {
  table.add("dot_general", translateDotGeneral);
  table.add("dot", translateDot);
}
