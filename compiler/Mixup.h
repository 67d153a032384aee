//===- Mixup.h - "x,labels:alpha=0.2" -------------------------------------===//
//
// `--mixup` (Zhang, Cisse, Dauphin and Lopez-Paz, "mixup: Beyond empirical risk
// minimization", 2018): training sees each row of an input mixed with another
// row of its batch, and the loss is the mix of the losses by both rows' labels.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_COMPILER_MIXUP_H
#define TANDEM_COMPILER_MIXUP_H

#include "runtime/artifact/Status.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace tandem {

struct MixupSpec {
  std::string input, labels;
  double alpha = 0.2; ///< the mix is drawn from Beta(alpha, alpha)
};

/// Parses `INPUT,LABELS:alpha=N`.
Result<MixupSpec> parseMixupSpec(const std::string &text);

/// Changes a module at `capture`: where it trains, row i of the input becomes
/// m x[i] + (1 - m) x[n - 1 - i], and the loss m loss(labels) + (1 - m)
/// loss(labels reversed), with one m a batch, drawn from the state of random
/// numbers, which the module gets if it has none. What evaluates stays. `loss`
/// names the output. Fails with Usage where the spec does not fit the module.
Status mixRows(mlir::ModuleOp module, const std::string &spec,
               const std::string &loss);

/// Returns the x of which Beta(alpha, alpha) has the part u below it, for
/// u = 0, 1/n, ..., 1.
std::vector<double> betaQuantiles(double alpha, int n);

} // namespace tandem

#endif
