//===- OptimizerSpec.h - "adamw:lr=1e-3,weight_decay=0.1" -----------------===//
#ifndef TANDEM_PASSES_PARTITION_OPTIMIZERSPEC_H
#define TANDEM_PASSES_PARTITION_OPTIMIZERSPEC_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace tandem {

/// A named number of an optimizer, with PyTorch's default.
struct OptimizerOption {
  llvm::StringLiteral name;
  double value;
  /// The values that it may have: [least, most], and 0 where `orZero`.
  double least, most;
  bool orZero;
  llvm::StringLiteral meaning;
};

/// An optimizer that can be compiled in.
struct OptimizerKind {
  llvm::StringLiteral name;
  llvm::ArrayRef<OptimizerOption> options;
  llvm::StringLiteral meaning;
};

/// Returns all optimizers, in the order in which messages name them.
llvm::ArrayRef<OptimizerKind> optimizerKinds();

/// Returns the values that an option may have: "0, or from 1.18e-38 to 1e+06".
std::string rangeOf(const OptimizerOption &option);

/// An optimizer and a value for each of its options.
struct OptimizerSpec {
  const OptimizerKind *kind = nullptr;
  llvm::StringMap<double> values;
};

/// Parses `NAME` or `NAME:OPTION=NUMBER,...`. Otherwise returns nothing, and
/// `error` says everything that is wrong, and what would be right.
std::optional<OptimizerSpec> parseOptimizerSpec(llvm::StringRef text,
                                                std::string &error);

} // namespace tandem

#endif
