//===- OpsPooling.cpp - ATen: pooling -------------------------------------===//
#include "compiler/import/torch/Node.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;
using List = Node::List;

/// What pools over the last `spatial` dimensions, of which one before may be
/// missing (no batch).
static LogicalResult
pooled(Node &node, int64_t spatial,
       llvm::function_ref<SmallVector<Value>(const Expr &)> pool) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  bool isSingle = x.rank() == spatial + 1;
  if (isSingle) {
    List shape = {1};
    llvm::append_range(shape, x.shape());
    x = node.reshape(x, shape);
  }
  auto made = pool(x);
  for (auto [i, value] : llvm::enumerate(made)) {
    Expr y = node.wrap(value);
    if (isSingle)
      y = node.reshape(y, y.shape().drop_front());
    if (failed(node.result(i, y)))
      return failure();
  }
  return made.empty() ? failure() : success();
}

/// The windows: PyTorch's stride is the kernel's size by default.
static SmallVector<NamedAttribute> windows(Node &node, int64_t spatial) {
  List kernel = node.integersFor("kernel_size", spatial, 1);
  List strides = node.integers("stride").empty()
                     ? kernel
                     : node.integersFor("stride", spatial, 1);
  return {node.attr("kernel", kernel), node.attr("strides", strides),
          node.attr("padding", node.integersFor("padding", spatial, 0)),
          node.attr("ceil_mode", node.flag("ceil_mode", false))};
}

static LogicalResult maxPool(Node &node, int64_t spatial) {
  return pooled(node, spatial, [&](const Expr &x) {
    auto list = windows(node, spatial);
    list.push_back(
        node.attr("dilation", node.integersFor("dilation", spatial, 1)));
    auto made = node.makeAll("max_pool", x.value, list);
    if (!node.wants(1) && !made.empty())
      made.resize(1);
    return made;
  });
}

static LogicalResult avgPool(Node &node, int64_t spatial) {
  return pooled(node, spatial, [&](const Expr &x) {
    auto list = windows(node, spatial);
    list.push_back(
        node.attr("count_include_pad", node.flag("count_include_pad", true)));
    if (node.has("divisor_override"))
      list.push_back(
          node.attr("divisor_override", node.integer("divisor_override", 1)));
    return node.makeAll("avg_pool", x.value, list);
  });
}

static LogicalResult adaptive(Node &node, int64_t spatial, bool isMax) {
  return pooled(node, spatial, [&](const Expr &x) {
    auto made = node.makeAll(
        isMax ? "adaptive_max_pool" : "adaptive_avg_pool", x.value,
        node.attr("output_size", node.integersFor("output_size", spatial, 1)));
    if (isMax && !node.wants(1) && !made.empty())
      made.resize(1);
    return made;
  });
}

void torch::addPoolingOps(OpTable &table) {
  for (int64_t n = 1; n <= 3; ++n) {
    std::string d = std::to_string(n) + "d";
    table.add("max_pool" + d + " max_pool" + d + "_with_indices",
              [n](Node &node) { return maxPool(node, n); });
    table.add("avg_pool" + d, [n](Node &node) { return avgPool(node, n); });
    table.add("adaptive_avg_pool" + d + " _adaptive_avg_pool" + d,
              [n](Node &node) { return adaptive(node, n, false); });
    table.add("adaptive_max_pool" + d,
              [n](Node &node) { return adaptive(node, n, true); });
  }
}
