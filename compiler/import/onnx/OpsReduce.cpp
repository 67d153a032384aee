//===- OpsReduce.cpp - ONNX: along dimensions -----------------------------===//
//
// Which dimensions are reduced is an attribute, or from some version on an
// operand; none means all of them, unless `noop_with_empty_axes`.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/onnx/Ops.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::onnx;

namespace {
struct Reduction {
  const char *function;
  int64_t axesAreOperand = 18; ///< from this version on
  bool ofIntegers = true;      ///< integers are computed in their type
};
} // namespace

static const llvm::StringMap<Reduction> &reductions() {
  static const llvm::StringMap<Reduction> table = {
      {"ReduceSum", {"sum", 13}},
      {"ReduceMean", {"mean", 18, false}},
      {"ReduceProd", {"prod"}},
      {"ReduceMax", {"amax"}},
      {"ReduceMin", {"amin"}},
      {"ReduceL1", {"sum_abs"}},
      {"ReduceL2", {"norm", 18, false}},
      {"ReduceLogSum", {"log_sum", 18, false}},
      {"ReduceLogSumExp", {"logsumexp", 18, false}},
      {"ReduceSumSquare", {"sum_square"}}};
  return table;
}

static LogicalResult translateReduce(Node &node) {
  Reduction reduction = reductions().lookup(node.op());
  if (failed(expectOperands(node, 1)))
    return failure();
  bool keep = node.integer("keepdims", 1) != 0;
  SmallVector<int64_t> axes;
  bool isNoop = false;
  if (node.opset() >= reduction.axesAreOperand) {
    isNoop = node.integer("noop_with_empty_axes", 0) != 0;
    if (node.has(1)) {
      auto given = node.needInts(1, "the axes");
      if (failed(given))
        return failure();
      axes = *given;
    }
  } else {
    axes = node.integers("axes");
  }
  auto dims = dimensions(node, "axes", axes, node.rank(0));
  if (failed(dims))
    return failure();
  Value x = node.operand(0);
  if (!x)
    return failure();
  // Nothing is summed then, but what is done to each element is done.
  if (dims->empty() && isNoop) {
    if (node.op() == "ReduceSumSquare")
      return give(node, node.make("mul", {x, x}));
    if (node.op() == "ReduceL1" || node.op() == "ReduceL2")
      return give(node, node.make("abs", x));
    return give(node, node.op() == "ReduceLogSum" ? node.make("log", x) : x);
  }
  // What is no integer even of integers is computed in f64, which holds sums
  // of them exactly; bools are 0 and 1, and unsigned: the maximum of none is 0.
  Type element = node.elementType(0);
  bool isFloat = isa<FloatType>(element);
  if (element.isInteger(1))
    x = castTo(node, x,
               IntegerType::get(node.context(), 8, IntegerType::Unsigned));
  else if (!isFloat && !reduction.ofIntegers)
    x = castTo(node, x, node.builder().getF64Type());
  llvm::sort(*dims);
  Value y = node.call(reduction.function, x,
                      {node.attr("dim", ArrayRef<int64_t>(*dims)),
                       node.attr("keepdim", node.builder().getBoolAttr(keep))});
  return give(node, castTo(node, y, element));
}

static LogicalResult translateArg(Node &node) {
  if (failed(expectOperands(node, 1)))
    return failure();
  OpBuilder &b = node.builder();
  auto dim = dimension(node, "'axis'", node.integer("axis", 0), node.rank(0));
  bool keep = node.integer("keepdims", 1) != 0;
  bool last = node.integer("select_last_index", 0) != 0;
  if (failed(dim))
    return failure();
  return give(node,
              node.call(node.op() == "ArgMax" ? "arg_max" : "argmin",
                        node.operand(0),
                        {node.attr("dim", *dim),
                         node.attr("keepdim", b.getBoolAttr(keep)),
                         node.attr("select_last_index", b.getBoolAttr(last))}));
}

void onnx::addReduceOps(OpTable &table) {
  for (const auto &entry : reductions())
    table.add(entry.getKey(), translateReduce);
  table.add("ArgMax", translateArg);
  table.add("ArgMin", translateArg);
}
