//===- LossRows.cpp - calls of losses -------------------------------------===//
#include "tests/functions/Rows.h"

using namespace tandem::test;

void tandem::test::addLossFunctionRows(std::vector<FunctionRow> &rows) {
  RowOperand scores{tensorOf("3x4x2")}, x{tensorOf("3x4")};
  RowOperand labels{tensorOf("3x2", "i64"), 0, 4};
  RowOperand weights{tensorOf("4"), 0.5, 2}, inside{tensorOf("3x4"), 0.1, 0.9};
  auto row = [&](std::string function, std::string name,
                 std::vector<RowOperand> operands, std::string attributes) {
    rows.push_back({function, name, std::move(operands), attributes});
  };
  row("cross_entropy_loss", "cross_entropy_loss", {scores, labels, weights},
      "{label_smoothing = 0.1, ignore_index = 2}");
  row("cross_entropy_loss", "cross_entropy_none", {scores, labels},
      "{reduction = \"none\"}");
  row("cross_entropy_loss", "cross_entropy_soft",
      {scores, {tensorOf("3x4x2"), 0, 1}, weights},
      "{label_smoothing = 0.2, reduction = \"sum\"}");
  row("nll_loss", "nll_loss", {scores, labels, weights}, "");
  row("binary_cross_entropy", "binary_cross_entropy",
      {inside, inside, {tensorOf("4")}}, "");
  row("binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits",
      {x, inside, {tensorOf("4")}, {tensorOf("4")}}, "");
  row("dice_loss", "dice_loss", {scores, labels}, "{ignore_index = 2}");
  row("dice_loss", "dice_loss_masks", {x, inside}, "{smooth = 1.0}");
  for (const char *name :
       {"soft_margin_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
        "poisson_nll_loss", "hinge_embedding_loss", "cosine_similarity"})
    row(name, name, {x, x}, "");
  row("kl_div", "kl_div", {x, inside}, "{reduction = \"batchmean\"}");
  row("kl_div", "kl_div_log", {x, x}, "{log_target = true}");
  row("poisson_nll_loss", "poisson_nll_loss_full",
      {{tensorOf("3x4"), 0.5, 2}, {tensorOf("3x4"), 0.5, 4}},
      "{full = true, log_input = false}");
  row("gaussian_nll_loss", "gaussian_nll_loss",
      {x, x, {tensorOf("3x4"), 0.5, 2}}, "{full = true}");
  RowOperand few{tensorOf("3")};
  row("margin_ranking_loss", "margin_ranking_loss", {few, few, few},
      "{margin = 0.2}");
  row("cosine_embedding_loss", "cosine_embedding_loss",
      {x, x, {tensorOf("3"), 1, 1}}, "");
  row("triplet_margin_loss", "triplet_margin_loss", {x, x, x},
      "{swap = true, reduction = \"sum\"}");
}
