//===- OpsLoss.cpp - ATen: losses -----------------------------------------===//
#include "compiler/import/torch/Node.h"
#include "ir/Ops.h"

using namespace mlir;
using namespace tandem;
using namespace tandem::torch;

/// PyTorch's numbers of reductions.
static StringRef reduction(Node &node) {
  static constexpr StringRef names[] = {"none", "mean", "sum"};
  int64_t number = node.integer("reduction", 1);
  if (number >= 0 && number <= 2)
    return names[number];
  (void)node.error("expected 'reduction' to be 0, 1 or 2");
  return names[1];
}

/// A function of `self`, `target` and what else is given, with numbers of the
/// same names.
static LogicalResult loss(Node &node, StringRef function,
                          ArrayRef<StringRef> more,
                          SmallVector<NamedAttribute> list) {
  SmallVector<Value> operands = {node.value("self"), node.value("target")};
  for (StringRef name : more)
    operands.push_back(node.has(name) ? node.value(name).value : Value());
  list.push_back(node.attr("reduction", reduction(node)));
  if (node.failed())
    return failure();
  // An op of the dialect, or a function, which may have absent operands.
  auto made = more.empty() ? node.makeAll(function, operands, list)
                           : node.call(function, operands, list);
  return node.result(0, made.empty() ? Value() : made[0]);
}

static LogicalResult nll(Node &node) {
  Expr x = node.value("self");
  if (!x)
    return failure();
  int64_t ignored = node.integer("ignore_index", -100);
  // Beside the loss: the sum of the weights that counted.
  bool wantsTotal = node.resultCount() > 1 && node.wants(1);
  if (wantsTotal) {
    if (node.has("weight"))
      return node.unsupported("the sum of weights as a result");
    if (Expr target = node.value("target")) {
      Expr counts = compare(ComparePredicate::ne, target,
                            target.like(static_cast<double>(ignored)));
      (void)node.result(
          1,
          node.make("sum", node.cast(counts, x.type().getElementType()).value));
    }
  }
  return loss(node, "nll_loss", {"weight"},
              {node.attr("ignore_index", ignored)});
}

static LogicalResult triplet(Node &node) {
  Expr anchor = node.value("anchor"), positive = node.value("positive");
  Expr negative = node.value("negative");
  if (!anchor || !positive || !negative)
    return failure();
  return node.result(node.make("triplet_margin_loss",
                               {anchor, positive, negative},
                               {node.attr("reduction", reduction(node)),
                                node.attr("margin", node.number("margin", 1)),
                                node.attr("p", node.number("p", 2)),
                                node.attr("eps", node.number("eps", 1e-6)),
                                node.attr("swap", node.flag("swap", false))}));
}

static LogicalResult cosineEmbedding(Node &node) {
  Expr a = node.value("input1"), b = node.value("input2");
  Expr target = node.value("target");
  if (!a || !b || !target)
    return failure();
  // Labels are 1 and -1, and may be integers.
  target = node.cast(target, a.type().getElementType());
  return node.result(
      node.make("cosine_embedding_loss", {a, b, target},
                {node.attr("reduction", reduction(node)),
                 node.attr("margin", node.number("margin", 0))}));
}

void torch::addLossOps(OpTable &table) {
  table.add("triplet_margin_loss", triplet);
  table.add("cosine_embedding_loss", cosineEmbedding);
  table.add("cross_entropy_loss", [](Node &node) {
    return loss(
        node, "cross_entropy_loss", {"weight"},
        {node.attr("ignore_index", node.integer("ignore_index", -100)),
         node.attr("label_smoothing", node.number("label_smoothing", 0))});
  });
  table.add("nll_loss nll_loss_nd nll_loss2d nll_loss_forward "
            "nll_loss2d_forward",
            nll);
  table.add("mse_loss",
            [](Node &node) { return loss(node, "mse_loss", {}, {}); });
  table.add("l1_loss",
            [](Node &node) { return loss(node, "l1_loss", {}, {}); });
  table.add("smooth_l1_loss", [](Node &node) {
    return loss(node, "smooth_l1_loss", {},
                {node.attr("beta", node.number("beta", 1))});
  });
  table.add("huber_loss", [](Node &node) {
    return loss(node, "huber_loss", {},
                {node.attr("delta", node.number("delta", 1))});
  });
  table.add("soft_margin_loss",
            [](Node &node) { return loss(node, "soft_margin_loss", {}, {}); });
  table.add("binary_cross_entropy", [](Node &node) {
    return loss(node, "binary_cross_entropy", {"weight"}, {});
  });
  table.add("binary_cross_entropy_with_logits", [](Node &node) {
    return loss(node, "binary_cross_entropy_with_logits",
                {"weight", "pos_weight"}, {});
  });
  table.add("kl_div", [](Node &node) {
    return loss(node, "kl_div", {},
                {node.attr("log_target", node.flag("log_target", false))});
  });
}
