//===- OpsSort.cpp - StableHLO: orders ------------------------------------===//
#include "compiler/import/stablehlo/Node.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::stablehlo;

namespace {
enum class Order { Rising, Falling, None };
} // namespace

/// What a comparator of the first operand does. JAX's brings zeros and NaNs
/// into one form and compares in total order: -0 equals 0 then, and NaN is the
/// largest, as in the dialect's sort. Of the total order itself only NaNs with
/// a sign and -0 before 0 would differ.
static Order orderOf(Region &region) {
  std::string text = Node::spelling(region);
  auto isOne = [&](StringRef op) {
    for (StringRef kind : {"FLOAT", "SIGNED", "UNSIGNED", "TOTALORDER"}) {
      if (text == ("compare " + op + " " + kind + " a0 a1; return t0").str())
        return true;
      std::string canonical =
          ("compare EQ FLOAT a0 zero; select t0 zero a0; compare NE FLOAT a0 "
           "a0; select t2 nan t1; compare EQ FLOAT a1 zero; select t4 zero a1; "
           "compare NE FLOAT a1 a1; select t6 nan t5; compare " +
           op + " " + kind + " t3 t7; return t8")
              .str();
      if (text == canonical)
        return true;
    }
    return text == ("compare " + op + " a0 a1; return t0").str();
  };
  return isOne("LT")   ? Order::Rising
         : isOne("GT") ? Order::Falling
                       : Order::None;
}

static LogicalResult translateSort(Node &node) {
  size_t count = node.size();
  if (count == 0 || failed(node.expect(count, count, 1)))
    return node.error("expected operands");
  node.ignore({"is_stable"}); // It always is.
  int64_t dim = node.integer("dimension", -1);
  int64_t rank = node.rank(0);
  if (dim < 0)
    dim += rank;
  if (dim < 0 || dim >= rank)
    return node.error("expected a dimension of the operands");
  for (size_t i = 1; i < count; ++i)
    if (node.shape(i) != node.shape(0))
      return node.error("expected operands of one shape");
  Order order = orderOf(node.source()->getRegion(0));
  if (order == Order::None)
    return node.unsupported("a sort that does other than compare elements of "
                            "the first operand");
  SmallVector<NamedAttribute> attributes = {node.attr("dim", dim)};
  if (order == Order::Falling)
    attributes.push_back(node.unit("descending"));
  SmallVector<Value> made = node.makeAll("sort", node.operand(0), attributes);
  if (made.size() != 2)
    return failure();
  node.result(0, made[0]);
  for (size_t i = 1; i < count; ++i) {
    // Where the second operand counts along the dimension, that is known.
    auto iota = node.operand(i).getDefiningOp<IotaOp>();
    bool counts = iota && static_cast<int64_t>(iota.getDim()) == dim;
    node.result(i, counts ? node.cast(made[1], node.element(i))
                          : node.call("gather", {node.operand(i), made[1]},
                                      {node.attr("dim", dim)}));
  }
  return success();
}

/// The k largest along the last dimension, and where they were.
static LogicalResult translateTopK(Node &node) {
  if (failed(node.expect(1, 2)))
    return failure();
  node.ignore({"is_stable"});
  int64_t k = node.integer("k", 0);
  if (node.rank(0) == 0 || k < 1 || k > node.shape(0).back())
    return node.error("expected 1 to " +
                      Twine(node.rank(0) ? node.shape(0).back() : 0) + " as k");
  SmallVector<Value> made =
      node.callAll("topk", node.operand(0),
                   {node.attr("k", k), node.attr("dim", node.rank(0) - 1)});
  RankedTensorType type = node.resultType(1);
  if (made.size() != 2 || !type)
    return failure();
  node.result(0, made[0]);
  node.result(1, node.cast(made[1], type.getElementType()));
  return success();
}

void stablehlo::addSortOps(OpTable &table) {
  table.add("sort", translateSort);
  table.addNamed("chlo.top_k", translateTopK);
}
