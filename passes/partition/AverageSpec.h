//===- AverageSpec.h - averages of params over updates --------------------===//
//
// torch.optim.swa_utils.AveragedModel: the first value is the param's, and
// later ones are an exponential mean, or the mean of equally many updates
// apart.
//
//===----------------------------------------------------------------------===//
#ifndef TANDEM_PASSES_PARTITION_AVERAGESPEC_H
#define TANDEM_PASSES_PARTITION_AVERAGESPEC_H

#include "ir/Expr.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace tandem {

struct AverageSpec {
  llvm::StringLiteral name;    ///< "ema" or "swa", of the states NAME:PARAM
  double decay = 0;            ///< of "ema"
  double start = 1, every = 1; ///< of "swa": the updates, from 1, to average

  /// The number of values in the average after update `update`, which counts
  /// from 1, and the new average of `old` and the param's new value.
  Expr count(const Expr &update) const;
  Expr average(const Expr &old, const Expr &param, const Expr &update) const;
};

/// Parses `0.999`, and `start=1000` or `start=1000,every=100`. Otherwise
/// returns nothing, and `error` says what is wrong.
std::optional<AverageSpec> parseEmaSpec(llvm::StringRef text,
                                        std::string &error);
std::optional<AverageSpec> parseSwaSpec(llvm::StringRef text,
                                        std::string &error);

} // namespace tandem

#endif
