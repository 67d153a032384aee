//===- OptimizerSpec.h - "adamw:lr=1e-3,weight_decay=0.1" -----------------===//
#ifndef TANDEM_PASSES_PARTITION_OPTIMIZERSPEC_H
#define TANDEM_PASSES_PARTITION_OPTIMIZERSPEC_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace tandem {

/// A named number of an optimizer, with PyTorch's default, and the values that
/// it may have: [least, most].
struct OptimizerOption {
  llvm::StringLiteral name;
  double value, least, most;
};

/// An optimizer that can be compiled in.
struct OptimizerKind {
  llvm::StringLiteral name;
  llvm::ArrayRef<OptimizerOption> options;
};

/// Returns all optimizers, in the order in which messages name them.
llvm::ArrayRef<OptimizerKind> optimizerKinds();

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
