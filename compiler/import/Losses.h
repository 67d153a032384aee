//===- Losses.h - a loss for a graph that has none ------------------------===//
//
// `--loss=KIND:OUTPUT,LABELS`: OUTPUT is a value of the graph, LABELS an input
// that the importer makes, of the type that the loss wants beside OUTPUT.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_IMPORT_LOSSES_H
#define TANDEM_COMPILER_IMPORT_LOSSES_H

#include "ir/Expr.h"
#include "runtime/artifact/Status.h"

#include <string>
#include <utility>
#include <vector>

namespace tandem {

/// `--loss=KIND:OUTPUT,LABELS[,smoothing=N]`.
struct LossSpec {
  std::string kind, output, labels;
  /// Of cross_entropy: the part of each row's loss that is the mean over all
  /// classes instead of its label's (PyTorch's label_smoothing).
  double smoothing = 0;
};

/// Parses it; Usage if it is not of that form, or the kind is not known.
Result<LossSpec> parseLoss(const std::string &text);

/// Returns the kinds of losses, and what each takes of OUTPUT and LABELS.
std::vector<std::pair<std::string, std::string>> lossKinds();

/// What a loss takes: OUTPUT as it takes it, and what LABELS have to be.
struct LossOperands {
  Expr x; ///< classes brought last
  mlir::RankedTensorType labels;
  int64_t classes = 0; ///< labels are less than that; 0: they are no classes
  std::string note;    ///< which dimension the classes are; or ""
};

/// Finds the operands of a loss of the value called `output`; Usage if it
/// cannot have one.
Result<LossOperands> lossOperands(const LossSpec &spec, const Expr &output);

/// Makes the loss, or fails with a diagnostic at `loc`. Classes are the last
/// dimension of `x`.
mlir::FailureOr<mlir::Value> buildLoss(mlir::OpBuilder &builder,
                                       mlir::Location loc, const LossSpec &spec,
                                       const Expr &x, mlir::Value labels);

} // namespace tandem

#endif
